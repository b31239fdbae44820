"""The same data through rsl_rl and Surefoot. Needs `rsl-rl-lib`; skipped without it."""

import pytest
import torch

from surefoot.algorithms import PPO, PPOConfig
from surefoot.models import ModelConfig, build_actor, build_critic
from surefoot.storage import RolloutStorage
from surefoot.types import BoxActions

pytest.importorskip("rsl_rl", reason="rsl-rl-lib is not installed")
tensordict = pytest.importorskip("tensordict")

STEPS, ENVS, WIDTH, ACTIONS = 8, 6, 5, 3
SETTINGS = {
    "num_mini_batches": 1,  # one batch holds the whole rollout: its order does not matter
    "num_learning_epochs": 4,
    "clip_param": 0.1,
    "gamma": 31 / 32,  # exact in single precision, in which rsl_rl multiplies gamma and lambda
    "lam": 7 / 8,
    "value_loss_coef": 0.8,
    "entropy_coef": 0.01,
    "learning_rate": 3e-3,
    "max_grad_norm": 0.5,
}


@pytest.fixture(autouse=True)
def _double_precision():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def make_surefoot(rnn_type: str = "none", **settings) -> PPO:
    torch.manual_seed(0)
    model = ModelConfig(
        hidden_dims=(16, 8), init_std=0.7, rnn_type=rnn_type, rnn_hidden_dim=7, rnn_num_layers=2
    )
    return PPO(
        build_actor({"policy": (WIDTH,)}, ("policy",), BoxActions(ACTIONS), model),
        build_critic({"policy": (WIDTH,)}, ("policy",), model),
        RolloutStorage(STEPS, ENVS, "cpu"),
        PPOConfig(**SETTINGS, adam_eps=1e-8, **settings),
    )


def make_rsl_rl(twin: PPO, rnn_type: str = "none", **settings):
    from rsl_rl import algorithms, models, storage

    obs = as_tensordict({"policy": torch.zeros(ENVS, WIDTH)})
    groups = {"actor": ["policy"], "critic": ["policy"]}
    gaussian = {"class_name": "GaussianDistribution", "init_std": 0.7, "std_type": "scalar"}
    kind, memory = models.MLPModel, {}
    if rnn_type != "none":
        kind, memory = models.RNNModel, {"rnn_type": rnn_type, "rnn_hidden_dim": 7, "rnn_num_layers": 2}
    actor = kind(obs, groups, "actor", ACTIONS, (16, 8), "elu", distribution_cfg=gaussian, **memory)
    critic = kind(obs, groups, "critic", 1, (16, 8), "elu", **memory)
    for theirs, ours in ((actor, twin.actor), (critic, twin.critic)):
        theirs.mlp.load_state_dict(torch.nn.Sequential(*ours.mlp, ours.head.output).state_dict())
        if ours.memory is not None:
            theirs.rnn.rnn.load_state_dict(ours.memory.rnn.state_dict())
    rollout = storage.RolloutStorage("rl", ENVS, STEPS, obs, (ACTIONS,))
    return algorithms.PPO(actor, critic, rollout, **SETTINGS, **settings)


def as_tensordict(obs):
    return tensordict.TensorDict(obs, batch_size=[ENVS])


def collect(ours: PPO, theirs, seed: int = 1) -> None:
    """Give both the same observations, actions, rewards, ends and time-outs."""
    generator = torch.Generator().manual_seed(seed)
    obs = {"policy": torch.randn(ENVS, WIDTH, generator=generator)}
    for _ in range(STEPS):
        actions = ours.act(obs)
        with torch.no_grad():
            theirs.act(as_tensordict(obs))
        theirs.transition.actions = actions
        theirs.transition.actions_log_prob = theirs.actor.get_output_log_prob(actions).detach()
        rewards = torch.randn(ENVS, generator=generator) - actions.square().sum(1)
        dones = torch.rand(ENVS, generator=generator) < 0.3
        time_outs = dones & (torch.rand(ENVS, generator=generator) < 0.5)
        obs = {"policy": torch.randn(ENVS, WIDTH, generator=generator)}
        ours.process_env_step(obs, rewards, dones, {"time_outs": time_outs})
        with torch.no_grad():
            theirs.process_env_step(as_tensordict(obs), rewards, dones, {"time_outs": time_outs})
    assert ours.storage.truncated.any()
    assert ours.storage.terminated.any()
    ours.compute_returns(obs)
    with torch.no_grad():
        theirs.compute_returns(as_tensordict(obs))


def test_returns_agree_where_no_final_observations_are_handed_over():
    ours = make_surefoot(schedule="fixed")
    theirs = make_rsl_rl(ours, schedule="fixed")
    collect(ours, theirs)
    torch.testing.assert_close(ours.rollout.returns, theirs.storage.returns.flatten(), rtol=0, atol=1e-12)
    values = theirs.storage.values.flatten()
    torch.testing.assert_close(ours.rollout.values, values, rtol=0, atol=1e-12)


@pytest.mark.parametrize("rnn_type", ["none", "lstm", "gru"])
@pytest.mark.parametrize("schedule", ["fixed", "adaptive"])
@pytest.mark.parametrize("use_clipped_value_loss", [False, True])
def test_updates_agree(schedule, use_clipped_value_loss, rnn_type):
    settings = {
        "schedule": schedule, "use_clipped_value_loss": use_clipped_value_loss, "rnn_type": rnn_type
    }  # fmt: skip
    ours = make_surefoot(**settings)
    theirs = make_rsl_rl(ours, **settings)
    for seed in range(3):
        collect(ours, theirs, seed)
        metrics, losses = ours.update(), theirs.update()
        assert metrics["value_loss"].item() == pytest.approx(losses["value"], rel=1e-9)
        assert metrics["surrogate_loss"].item() == pytest.approx(losses["surrogate"], rel=1e-9, abs=1e-12)
        assert metrics["learning_rate"].item() == pytest.approx(theirs.optimizer.param_groups[0]["lr"])
    for model, reference in ((ours.actor, theirs.actor), (ours.critic, theirs.critic)):
        mine_all = [*model.mlp.parameters(), *model.head.output.parameters()]
        its_all = [*reference.mlp.parameters()]
        if model.memory is not None:
            mine_all += model.memory.parameters()
            its_all += reference.rnn.parameters()
        for mine, its in zip(mine_all, its_all, strict=True):
            torch.testing.assert_close(mine, its, rtol=0, atol=1e-10)
    std = theirs.actor.distribution.std_param
    torch.testing.assert_close(ours.actor.head.spread.param, std, rtol=0, atol=1e-10)
