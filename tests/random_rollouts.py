"""Learners fed with noise: all that an update needs, and no environment.

`POLICIES` holds one entry per head and kind of standard deviation, `OBJECTIVES` one per way to improve them.
A new head or objective joins the contract suites by adding its entry here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Generator, Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from surefoot.algorithms import Learner, PPOConfig, make_learner
from surefoot.distributions import Bernoulli, Beta, Categorical, Gaussian, MultiCategorical, SquashedGaussian
from surefoot.envs.action_specs import mask_parts, num_actions
from surefoot.extensions import SymmetryAugmentation
from surefoot.models import ModelConfig, build_actor, build_critic
from surefoot.storage import RolloutStorage
from surefoot.types import (
    ACTION_MASK,
    ActionSpec,
    BoxActions,
    DiscreteActions,
    MultiBinaryActions,
    MultiDiscreteActions,
)

STEPS, ENVS, WIDTH = 6, 5, 3
SMALL = ModelConfig(hidden_dims=(8, 8), activation="tanh")
NORMALIZED = replace(SMALL, obs_normalization=True, obs_clip=5.0)

OPEN = BoxActions(2)
BOUNDED = BoxActions(2, (-2.0, 0.0), (2.0, 1.0))
PARTS = MultiDiscreteActions((3, 2, 4))
STD_TYPES = ("scalar", "log", "fixed", "state", "gsde")


@dataclass(frozen=True)
class Policy:
    """An action space, the head for it, and whether a mask forbids some of the choices."""

    kind: Any
    actions: ActionSpec
    head: dict[str, Any] = field(default_factory=dict)
    masked: bool = False

    def model(self, base: ModelConfig = SMALL) -> ModelConfig:
        return replace(base, **self.head)

    @property
    def name(self) -> str:
        return self.head.get("distribution", "auto")

    @property
    def learns_std(self) -> bool:
        return self.head.get("std_type", "fixed") != "fixed"


POLICIES: dict[str, Policy] = {
    **{
        f"{name}-{std_type}": Policy(kind, actions, {"distribution": name, "std_type": std_type})
        for name, kind, actions in (
            ("gaussian", Gaussian, OPEN),
            ("squashed_gaussian", SquashedGaussian, BOUNDED),
        )
        for std_type in STD_TYPES
    },
    "beta": Policy(Beta, BOUNDED, {"distribution": "beta"}),
    **{
        name + ("-masked" if masked else ""): Policy(kind, actions, {"distribution": name}, masked)
        for name, kind, actions in (
            ("categorical", Categorical, DiscreteActions(4)),
            ("multi_categorical", MultiCategorical, PARTS),
            ("bernoulli", Bernoulli, MultiBinaryActions(3)),
        )
        for masked in (False, True)
    },
}

OBJECTIVES: dict[str, PPOConfig] = {
    "clip": PPOConfig(),
    "dual_clip": PPOConfig(dual_clip=3.0),
    "kl_penalty": PPOConfig(objective="kl_penalty"),
    "fixed_kl_penalty": PPOConfig(objective="kl_penalty", kl_coef_schedule="fixed"),
    "trpo": PPOConfig(objective="trpo"),
}


class Mirror:
    """The first of three features changes sign; so does the first real action; choices count from the end."""

    def __init__(self, actions: ActionSpec = OPEN) -> None:
        self.actions = actions

    def mirror_observations(self, obs: Tensor, group: str) -> Tensor:
        return obs * torch.tensor([-1.0, 1.0, 1.0])

    def mirror_actions(self, actions: Tensor) -> Tensor:
        if isinstance(self.actions, DiscreteActions):
            return self.actions.n - 1 - actions
        if isinstance(self.actions, MultiBinaryActions):
            return actions.flip(-1)
        return actions * torch.tensor([-1.0, 1.0])


def random_mask(actions: ActionSpec, rows: int, generator: Generator) -> Tensor:
    """Forbid about half of all choices, but never all of a part."""
    mask = torch.rand(rows, num_actions(actions), generator=generator) < 0.5
    if parts := mask_parts(actions):
        for part in mask.split(parts, dim=1):
            kept = torch.randint(part.shape[1], (rows,), generator=generator)
            part[torch.arange(rows), kept] = True
    return mask


def learner_for(
    policy: Policy,
    cfg: PPOConfig | None = None,
    base: ModelConfig = SMALL,
    *,
    num_envs: int = ENVS,
    num_steps: int = STEPS,
    symmetry: SymmetryAugmentation | None = None,
) -> Learner:
    """A fresh learner, always with the same weights and random numbers."""
    torch.manual_seed(0)
    cfg = cfg or PPOConfig()
    shapes = {"policy": (WIDTH,)} | ({ACTION_MASK: (num_actions(policy.actions),)} if policy.masked else {})
    return make_learner(
        build_actor(shapes, ("policy",), policy.actions, policy.model(base)),
        build_critic(shapes, ("policy",), base, cfg.normalize_values),
        RolloutStorage(num_steps, num_envs, "cpu"),
        cfg,
        symmetry=symmetry,
        generator=torch.Generator().manual_seed(1),
    )


def collect(
    learner: Learner,
    seed: int = 2,
    *,
    dtype: torch.dtype = torch.float32,
    with_ends: bool = True,
    reward_scale: float = 1.0,
) -> None:
    """Fill the rollout with noise that some episodes end in, by time limit and otherwise, and judge it.

    The first action is worth half a point per unit, so that there is something to learn.
    """
    generator = torch.Generator().manual_seed(seed)
    storage = learner.storage

    def observe() -> dict[str, Tensor]:
        noise = torch.randn(storage.num_envs, WIDTH, generator=generator, dtype=torch.float64)
        obs = {"policy": (3.0 + 2.0 * noise).to(dtype)}
        if learner.actor.masked:
            obs[ACTION_MASK] = random_mask(_spec_of(learner), storage.num_envs, generator)
        return obs

    obs = observe()
    for t in range(storage.num_steps):
        actions = learner.act(obs)
        obs = observe()
        dones = torch.arange(storage.num_envs) == (t if with_ends else -1)
        noise = torch.randn(storage.num_envs, generator=generator)
        rewards = reward_scale * (noise + actions.reshape(len(dones), -1)[:, 0] / 2)
        extras = {"time_outs": dones & (t % 2 == 0), "final_obs": observe()}
        learner.process_env_step(obs, rewards.float(), dones, extras)
    learner.compute_returns(obs)


def _spec_of(learner: Learner) -> ActionSpec:
    """What a head for choices chooses from."""
    head = learner.actor.head
    if hasattr(head, "nvec"):
        return MultiDiscreteActions(head.nvec)  # type: ignore[arg-type]
    return head.drives(head.output.out_features)  # type: ignore[call-arg,arg-type]


def parameters(learner: Learner) -> list[Tensor]:
    """Copies of all parameters, the actor's first."""
    return [p.detach().clone() for p in (*learner.actor.parameters(), *learner.critic.parameters())]


def all_equal(some: list[Tensor], others: list[Tensor]) -> bool:
    """Bit for bit."""
    return all(torch.equal(a, b) for a, b in zip(some, others, strict=True))


class RecordHostReads(TorchDispatchMode):
    """Names every operation that makes the host wait for a number."""

    WAITS = ("_local_scalar_dense", "is_nonzero", "item", "nonzero", "masked_select", "equal")

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name.removeprefix("aten::")
        indices = [i for i in args[1] if i is not None] if name in ("index", "index_put_") else []
        if name in self.WAITS or any(index.dtype == torch.bool for index in indices):
            self.reads.append(name)
        return func(*args, **(kwargs or {}))
