"""Learners with every kind of network, fed with noise: vectors, images, and episodes that end midway."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Generator, Tensor

from surefoot.algorithms import Learner, PPOConfig, make_learner
from surefoot.extensions import SymmetryAugmentation
from surefoot.models import ModelConfig, build_actor, build_critic
from surefoot.modules import CNNConfig
from surefoot.storage import RolloutStorage
from surefoot.types import ActionSpec, BoxActions, DiscreteActions

STEPS, ENVS = 7, 5
SHAPES = {"policy": (3,), "image": (2, 8, 8)}

MLP = ModelConfig(hidden_dims=(8,), activation="tanh", obs_normalization=True)
LSTM = replace(MLP, rnn_type="lstm", rnn_hidden_dim=6)
GRU = replace(MLP, rnn_type="gru", rnn_hidden_dim=6)
CNN = replace(MLP, cnn=CNNConfig(output_channels=(4,), kernel_size=3, stride=2))

KINDS: dict[str, ModelConfig] = {
    "mlp": MLP,
    "lstm": LSTM,
    "lstm-2": replace(LSTM, rnn_num_layers=2),
    "gru": GRU,
    "gru-2": replace(GRU, rnn_num_layers=2),
    "cnn": CNN,
    "cnn-lstm": replace(LSTM, cnn=CNN.cnn),
}
ACTIONS: dict[str, ActionSpec] = {"box": BoxActions(2), "discrete": DiscreteActions(4)}


class Mirror:
    """The first of three features changes sign, images are flipped, choices count from the end."""

    def mirror_observations(self, obs: Tensor, group: str) -> Tensor:
        return obs.flip(-1) if group == "image" else obs * torch.tensor([-1.0, 1.0, 1.0])

    def mirror_actions(self, actions: Tensor) -> Tensor:
        return actions * torch.tensor([-1.0, 1.0]) if actions.is_floating_point() else 3 - actions


def groups_of(kind: str) -> tuple[str, ...]:
    """What a network of that kind reads."""
    return ("policy", "image") if "cnn" in kind else ("policy",)


def learner_with(
    actor: str,
    critic: str,
    actions: str = "box",
    cfg: PPOConfig | None = None,
    *,
    symmetric: bool = False,
    num_envs: int = ENVS,
    num_steps: int = STEPS,
) -> Learner:
    """A fresh learner, always with the same weights and random numbers."""
    torch.manual_seed(0)
    cfg = cfg or PPOConfig(num_mini_batches=2, num_learning_epochs=2)
    policy = build_actor(SHAPES, groups_of(actor), ACTIONS[actions], KINDS[actor])
    shared = policy.encoder.cnns if cfg.share_cnn_encoders else None
    return make_learner(
        policy,
        build_critic(SHAPES, groups_of(critic), KINDS[critic], cfg.normalize_values, cnns=shared),
        RolloutStorage(num_steps, num_envs, "cpu"),
        cfg,
        symmetry=SymmetryAugmentation(Mirror(), cfg.mirror_symmetry) if symmetric else None,
        generator=torch.Generator().manual_seed(1),
    )


class Noise:
    """A world without sense that goes on from one rollout to the next."""

    def __init__(self, seed: int = 2, num_envs: int = ENVS) -> None:
        self.generator = Generator().manual_seed(seed)
        self.num_envs = num_envs
        self.obs = self.observe()

    def observe(self) -> dict[str, Tensor]:
        draw = {g: torch.randn(self.num_envs, *s, generator=self.generator) for g, s in SHAPES.items()}
        return {"policy": 3.0 + 2.0 * draw["policy"], "image": draw["image"]}

    def collect(self, learner: Learner, end_probability: float = 0.25) -> None:
        """Fill the rollout and judge it; half of the ends are time limits."""
        for _ in range(learner.storage.num_steps):
            actions = learner.act(self.obs)
            self.obs = self.observe()
            chance = torch.rand(2, self.num_envs, generator=self.generator)
            dones = chance[0] < end_probability
            rewards = actions.reshape(self.num_envs, -1)[:, 0] + chance[1]
            extras = {"time_outs": dones & (chance[1] < 0.5), "final_obs": self.observe()}
            learner.process_env_step(self.obs, rewards.float(), dones, extras)
        learner.compute_returns(self.obs)
