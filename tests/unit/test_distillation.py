"""Distillation by itself: one step by hand, the teacher's answers, memory, and what is left alone."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from random_rollouts import POLICIES, STD_TYPES, Policy, random_mask
from surefoot.algorithms import Distillation, DistillationConfig
from surefoot.envs.action_specs import num_actions
from surefoot.errors import ConfigError, EnvironmentContractError
from surefoot.functional import Past, reset_state
from surefoot.models import Actor, ModelConfig, build_actor
from surefoot.storage import RolloutStorage
from surefoot.types import ACTION_MASK, ActionSpec, BoxActions, DiscreteActions

LINEAR = ModelConfig(hidden_dims=())
SMALL = ModelConfig(hidden_dims=(8,), activation="tanh")
LSTM = replace(SMALL, rnn_type="lstm", rnn_hidden_dim=6)
GRU = replace(SMALL, rnn_type="gru", rnn_hidden_dim=6, rnn_num_layers=2)
SHAPES = {"seen": (3,), "hidden": (2,)}
STEPS, ENVS = 7, 4


def build(groups=("seen",), cfg=SMALL, actions: ActionSpec = BoxActions(2), shapes=SHAPES, seed=0) -> Actor:  # noqa: B008
    torch.manual_seed(seed)
    actor = build_actor(shapes, groups, actions, cfg)
    for parameter in actor.parameters():  # heads begin near 0: there would be little to see
        parameter.data += 0.3 * torch.randn_like(parameter)
    return actor


def make(student=SMALL, teacher=SMALL, *, actions: ActionSpec = BoxActions(2), steps=STEPS, **settings):  # noqa: B008
    """A student that reads `seen`, and a teacher that reads `hidden`, too."""
    return Distillation(
        build(("seen",), student, actions, seed=1),
        build(("seen", "hidden"), teacher, actions, seed=2),
        RolloutStorage(steps, ENVS, "cpu"),
        DistillationConfig(**settings),
        generator=torch.Generator().manual_seed(3),
    )


def noise(seed: int, masked_actions: ActionSpec | None = None):
    """Endless observations."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        obs = {group: torch.randn(ENVS, *shape, generator=generator) for group, shape in SHAPES.items()}
        if masked_actions is not None:
            obs[ACTION_MASK] = random_mask(masked_actions, ENVS, generator)
        yield obs


def some_dones(step: int) -> Tensor:
    """Environment 0 ends at the third step, 1 at the first and the last, 2 at two steps in a row, 3 never."""
    return torch.tensor([step == 2, step in (0, STEPS - 1), step in (3, 4), False])


def collect(alg: Distillation, world, valid: Tensor | None = None) -> None:
    """Fill the rollout and have the teacher answer; `valid`, `[T, N]`, marks what is to be learned from."""
    for step in range(alg.storage.num_steps):
        alg.act(next(world))
        good = None if valid is None else valid[step]
        alg.process_env_step({}, torch.zeros(ENVS), some_dones(step), {}, good)
    alg.compute_returns({})


class PlainDescent:
    """Stands in for the optimizer: small steps, and a record of the gradients."""

    def __init__(self, module: torch.nn.Module) -> None:
        self.module, self.gradients = module, []

    def step(self, loss: Tensor) -> Tensor:
        self.module.zero_grad()
        loss.backward()
        trained = [p for p in self.module.parameters() if p.grad is not None]
        self.gradients.append([p.grad.clone() for p in trained])
        for parameter in trained:
            parameter.data -= 0.1 * parameter.grad
        return torch.zeros(())


def descend_step_by_step(student: Actor, state, alg: Distillation, valid: Tensor) -> PlainDescent:
    """The same update without sequences: one step after the other, the past cut off between windows."""
    storage, descent = alg.storage, PlainDescent(student)
    labels = alg.labels.mode.view(storage.num_steps, ENVS, -1)
    parts = math.ceil(storage.num_steps / alg.cfg.gradient_length)
    for _ in range(alg.cfg.num_learning_epochs):
        memory = state
        for window in torch.arange(storage.num_steps).tensor_split(parts):
            errors = []
            for step in window.tolist():
                obs = {group: storage.observations[group][step] for group in SHAPES}
                distribution, memory = student.run(obs, Past(memory))
                errors.append((distribution.mode - labels[step])[valid[step]].square())
                memory = reset_state(memory, storage.ended[step])
            errors = torch.cat(errors)
            if len(errors):
                descent.step(errors.mean())
            memory = tuple(each.detach() for each in memory)
    return descent


def assert_close(some: list[list[Tensor]], others: list[list[Tensor]]) -> None:
    assert len(some) == len(others)
    for step, other in zip(some, others, strict=True):
        for a, b in zip(step, other, strict=True):
            torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(
    ("loss_type", "loss", "norm"),
    [("mse", 17.0, math.hypot(13.0, 8.0)), ("huber", 3.5, math.hypot(1.5, 1.0))],
)
def test_one_step_by_hand(loss_type, loss, norm):
    """Inputs 1 and 2, student x, teacher 3 x + 1: errors -3, -5, gradients -13, -8 (Huber: -1.5, -1)."""
    shapes, actions = {"x": (1,)}, BoxActions(1)
    student, teacher = (build(("x",), LINEAR, actions, shapes) for _ in range(2))
    for actor, weight, bias in ((student, 1.0, 0.0), (teacher, 3.0, 1.0)):
        actor.head.output.weight.data.fill_(weight)
        actor.head.output.bias.data.fill_(bias)
    cfg = DistillationConfig(loss_type=loss_type, learning_rate=0.01, max_grad_norm=None)
    alg = Distillation(student, teacher, RolloutStorage(2, 1, "cpu"), cfg)
    alg.begin_iteration(0.0)
    for x in (1.0, 2.0):
        alg.act({"x": torch.tensor([[x]])})
        alg.process_env_step({}, torch.zeros(1), torch.zeros(1), {})
    alg.compute_returns({})
    assert alg.labels.mode.flatten().tolist() == [4.0, 7.0]
    metrics = alg.update()
    assert metrics["behavior_loss"].item() == pytest.approx(loss)
    assert metrics["gradient_norm"].item() == pytest.approx(norm)
    assert metrics["learning_rate"].item() == pytest.approx(0.01)
    # The first step of Adam is the learning rate against the sign of the gradient.
    assert student.head.output.weight.item() == pytest.approx(1.01)
    assert student.head.output.bias.item() == pytest.approx(0.01)


def test_the_teacher_stays_as_it_is_bit_for_bit():
    alg = make(teacher=replace(SMALL, obs_normalization=True), student=replace(SMALL, obs_normalization=True))
    teacher = copy.deepcopy(alg.teacher.state_dict())
    student = copy.deepcopy(alg.student.state_dict())
    world = noise(0)
    for _ in range(3):
        collect(alg, world)
        alg.update()
    assert all(torch.equal(value, teacher[name]) for name, value in alg.teacher.state_dict().items())
    assert all(parameter.grad is None for parameter in alg.teacher.parameters())
    changed = {
        name for name, value in alg.student.state_dict().items() if not torch.equal(value, student[name])
    }
    assert {"encoder.normalizer.mean", "head.output.weight", "head.output.bias"} <= changed


@pytest.mark.parametrize("cfg", [SMALL, LSTM], ids=["mlp", "lstm"])
def test_the_students_normalizer_learns_what_it_saw_after_the_update(cfg):
    alg = make(student=replace(cfg, obs_normalization=True))
    world = noise(0)
    collect(alg, world)
    seen = alg.storage.observations["seen"].flatten(0, 1).clone()
    assert alg.student.encoder.normalizer.count == 0
    alg.update()
    torch.testing.assert_close(alg.student.encoder.normalizer.mean, seen.mean(0))
    assert alg.student.encoder.normalizer.count == len(seen)


@pytest.mark.parametrize("student", [LSTM, GRU, SMALL], ids=["lstm", "gru", "mlp"])
@pytest.mark.parametrize("teacher", [SMALL, LSTM], ids=["mlp", "lstm"])
def test_case_C9_the_labels_are_what_the_teacher_does_by_itself(student, teacher):
    """Teacher and student differ in input, width, memory and normalizer; episodes end, rollouts go on."""
    alg = make(student, replace(teacher, hidden_dims=(5, 4), obs_normalization=True))
    alg.teacher.encoder.absorb(next(noise(9)))
    alone = copy.deepcopy(alg.teacher)
    memory, world = alone.initial_state(ENVS), noise(0)
    for _ in range(2):
        collect(alg, world)
        for step in range(STEPS):
            obs = {group: values[step] for group, values in alg.storage.observations.items()}
            with torch.no_grad():
                distribution, memory = alone.run(obs, Past(memory))
            memory = reset_state(memory, some_dones(step))
            label = alg.labels.mode.view(STEPS, ENVS, -1)[step]
            torch.testing.assert_close(label, distribution.mode, atol=1e-6, rtol=1e-5)
        alg.update()


def test_case_N2_the_label_of_a_last_step_is_for_what_was_acted_on_not_for_the_next_episode():
    alg = make()
    collect(alg, noise(0))
    acted_on = [obs for obs, _ in zip(noise(0), range(STEPS), strict=False)]
    expected = torch.stack([alg.teacher(obs).mode for obs in acted_on])
    torch.testing.assert_close(alg.labels.mode.view(STEPS, ENVS, -1), expected)


@pytest.mark.parametrize("std_type", STD_TYPES)
def test_case_K5_the_std_has_no_gradient_and_gradients_are_clipped(std_type):
    alg = make(replace(SMALL, std_type=std_type), max_grad_norm=0.1)
    before = copy.deepcopy(alg.student.head.state_dict())
    collect(alg, noise(0))
    assert alg.update()["gradient_norm"] > 0.1
    of_std = {name: p for name, p in alg.student.named_parameters() if "spread" in name}
    assert bool(of_std) == (std_type != "fixed")
    for name, parameter in of_std.items():
        assert parameter.grad is None
        assert torch.equal(parameter, before[name.removeprefix("head.")])
    others = [p.grad for p in alg.student.parameters() if p.grad is not None]
    assert torch.stack([grad.norm() for grad in others]).norm() <= 0.1 + 1e-6


@pytest.mark.parametrize("gradient_length", [1, 2, 3, STEPS, 100])
@pytest.mark.parametrize("student", [LSTM, GRU, SMALL], ids=["lstm", "gru", "mlp"])
def test_an_update_equals_one_that_goes_step_by_step(student, gradient_length):
    """Also in the second rollout, whose first steps remember the first, and after ends within a window."""
    alg = make(student, gradient_length=gradient_length, num_learning_epochs=2)
    world = noise(0)
    for _ in range(2):
        reference, state = copy.deepcopy(alg.student), alg._memory
        alg.optimizer = PlainDescent(alg.student)
        collect(alg, world)
        expected = descend_step_by_step(reference, state, alg, torch.ones(STEPS, ENVS, dtype=torch.bool))
        alg.update()
        assert len(alg.optimizer.gradients) == 2 * math.ceil(STEPS / gradient_length)
        assert_close(alg.optimizer.gradients, expected.gradients)


@pytest.mark.parametrize("student", [LSTM, SMALL], ids=["lstm", "mlp"])
def test_steps_that_are_not_valid_are_left_out(student):
    """One step of the first window, and all of the second one."""
    valid = torch.ones(STEPS, ENVS, dtype=torch.bool)
    valid[1, 2] = False
    valid[3:5] = False
    alg = make(student, gradient_length=3)
    assert [len(part) for part in torch.arange(STEPS).tensor_split(3)] == [3, 2, 2]
    reference, state = copy.deepcopy(alg.student), alg._memory
    alg.optimizer = PlainDescent(alg.student)
    collect(alg, noise(0), valid)
    expected = descend_step_by_step(reference, state, alg, valid)
    alg.update()
    assert len(alg.optimizer.gradients) == 2
    assert_close(alg.optimizer.gradients, expected.gradients)


def test_a_student_remembers_from_rollout_to_rollout_and_forgets_where_an_episode_ends():
    alg = make(LSTM)
    collect(alg, noise(0))
    assert alg._memory[0][:, 1].count_nonzero() == 0  # ended with the last step
    assert alg._memory[0][:, [0, 2, 3]].count_nonzero() > 0
    remembered = alg._memory[0].clone()
    alg.update()
    assert torch.equal(alg._memory[0], remembered)


def distillation_of(policy: Policy, teacher: Policy | None = None) -> Distillation:
    """For a head and an action space of the contract suites."""
    shapes = SHAPES | ({ACTION_MASK: (num_actions(policy.actions),)} if policy.masked else {})
    student = build(("seen",), policy.model(SMALL), policy.actions, shapes, seed=1)
    mentor = build(("seen",), (teacher or policy).model(SMALL), policy.actions, shapes, seed=2)
    cfg = DistillationConfig(learning_rate=0.02, num_learning_epochs=4)
    return Distillation(student, mentor, RolloutStorage(STEPS, ENVS, "cpu"), cfg)


@pytest.mark.parametrize("name", POLICIES)
def test_a_student_with_any_head_learns(name):
    policy = POLICIES[name]
    alg = distillation_of(policy)
    world, losses = noise(0, policy.actions if policy.masked else None), []
    for _ in range(60):
        alg.begin_iteration(0.0)
        collect(alg, world)
        losses.append(alg.update()["behavior_loss"].item())
    assert losses[-1] < 0.25 * losses[0]


@pytest.mark.parametrize("teacher", ["beta", "squashed_gaussian-log"])
def test_real_valued_actions_are_compared_as_the_environment_sees_them(teacher):
    """So that the heads may differ."""
    alg = distillation_of(Policy(None, POLICIES[teacher].actions), POLICIES[teacher])
    collect(alg, noise(0))
    student = alg.student(alg.storage.flat_observations()).mode
    expected = (student - alg.labels.mode).square().mean().item()
    alg.cfg = replace(alg.cfg, num_learning_epochs=1)
    assert alg.update()["behavior_loss"].item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    "name", ["categorical", "categorical-masked", "multi_categorical-masked", "bernoulli"]
)
def test_choices_are_learned_by_the_divergence_from_the_teacher(name):
    policy = POLICIES[name]
    alg = distillation_of(policy)
    alg.cfg = replace(alg.cfg, num_learning_epochs=1)
    collect(alg, noise(0, policy.actions if policy.masked else None))
    obs = alg.storage.flat_observations()
    with torch.no_grad():
        expected = alg.teacher(obs).kl(alg.student(obs)).mean().item()
    assert 0 < expected < 100  # also where choices are forbidden
    assert alg.update()["behavior_loss"].item() == pytest.approx(expected, rel=1e-5)


def test_a_mask_that_leaves_no_choice_is_refused():
    alg = distillation_of(POLICIES["categorical-masked"])
    obs = next(noise(0, DiscreteActions(4)))
    obs[ACTION_MASK][2] = False
    with pytest.raises(EnvironmentContractError, match="environment 2 leaves no choice, in step 0"):
        alg.act(obs)


def test_the_learning_rate_follows_its_schedule():
    alg = make(schedule="linear", learning_rate=0.01)
    world = noise(0)
    for progress in (0.0, 0.25, 1.0):
        alg.begin_iteration(progress)
        collect(alg, world)
        assert alg.update()["learning_rate"].item() == pytest.approx(0.01 * (1 - progress))


def test_the_state_holds_everything_that_training_changes():
    alg, other = make(), make(student=replace(SMALL, init="torch"))
    world = noise(0)
    collect(alg, world)
    alg.update()
    other.load_state_dict(copy.deepcopy(alg.state_dict()))
    for each in (alg, other):
        collect(each, noise(5))
        each.update()
    for a, b in zip(alg.student.parameters(), other.student.parameters(), strict=True):
        assert torch.equal(a, b)


def test_another_teacher_may_come_before_training_if_it_reads_more():
    alg = make()
    collect(alg, noise(0))
    alg.update()
    alg.learn_from(build(("hidden",)))
    collect(alg, noise(0))
    late = make()
    late.learn_from(build(("seen",)))
    collect(late, noise(0))
    late.update()
    with pytest.raises(ConfigError, match="reads hidden has to be loaded before training begins"):
        late.learn_from(build(("hidden",)))


def test_verbs_out_of_order_are_refused():
    alg = make()
    with pytest.raises(RuntimeError, match="holds 0 of 7 steps"):
        alg.compute_returns({})
    with pytest.raises(RuntimeError, match="compute_returns"):
        alg.update()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"gradient_length": 0}, "gradient_length = 0: expected at least 1"),
        ({"num_learning_epochs": 0}, "num_learning_epochs = 0: expected at least 1"),
        ({"learning_rate": 0.0}, "learning_rate = 0.0: expected a positive number"),
        ({"max_grad_norm": -1.0}, "max_grad_norm = -1.0: expected a positive number or none"),
        ({"loss_type": "mae"}, "loss_type = 'mae': expected one of mse, huber"),
        ({"schedule": "adaptive"}, "schedule = 'adaptive': expected one of fixed, linear, cosine"),
    ],
)
def test_settings_out_of_range_are_refused(setting, message):
    with pytest.raises(ConfigError, match=message):
        DistillationConfig(**setting)
