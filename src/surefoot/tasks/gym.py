"""Gymnasium tasks: tuned settings for well-known environments, sensible ones for all others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from surefoot.algorithms import PPOConfig
from surefoot.envs.gymnasium import GymnasiumEnv, make_gymnasium
from surefoot.envs.gymnasium_single import find_environment, known_ids
from surefoot.models import ModelConfig
from surefoot.runners.config import RunnerConfig
from surefoot.tasks.registry import Task, check_view

__all__ = ["PRESETS", "GymOptions", "Preset", "default_preset", "gym_task", "known_ids"]


@dataclass(frozen=True)
class GymOptions:
    """How a Gymnasium environment is built; see `surefoot.envs.make_gymnasium`.

    Attributes:
        backend: how the copies are stepped.
        workers: worker processes; None for one per core.
        reward: what to train on: `module:function`; "note", the shaped reward of CartPole; None for the
            environment's own.
        action_mapping: what the numbers of a real-valued action mean.
        action_masks: whether masks that the environment offers are kept to.
        kwargs: passed to the environment.
    """

    backend: Literal["auto", "vector_entry_point", "sync", "async", "envpool"] = "auto"
    workers: int | None = None
    reward: str | None = None
    action_mapping: Literal["scale", "clip"] = "scale"
    action_masks: bool = True
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Preset:
    """Settings that train one environment well.

    Attributes:
        num_envs: environments side by side.
        train: settings of learning.
    """

    num_envs: int
    train: RunnerConfig


def gym_task(env_id: str) -> Task:
    """The task for a Gymnasium id, `Name-v1` or `module:Name-v1`.

    Raises:
        TaskError: no environment of that id, or the module cannot be imported.
    """
    spec = find_environment(env_id)
    preset = PRESETS[spec.id]() if spec.id in PRESETS else default_preset()
    tuned = "tuned settings" if spec.id in PRESETS else "default settings"
    return Task(
        name=env_id,  # with the module, which has to be imported again to evaluate or play
        summary=f"Gymnasium, {tuned}",
        num_envs=preset.num_envs,
        env_config=GymOptions(),
        make_env=_maker(env_id),
        train_config=preset.train,
    )


def _maker(env_id: str) -> Callable[[int, int, str, GymOptions, str | None], GymnasiumEnv]:
    def make(num_envs: int, seed: int, device: str, cfg: GymOptions, view: str | None) -> GymnasiumEnv:
        check_view(view)
        return make_gymnasium(
            env_id,
            num_envs,
            seed=seed,
            device=device,
            workers=cfg.workers,
            backend=cfg.backend,
            render=view == "window",
            render_mode="rgb_array" if view == "pictures" else None,
            reward=cfg.reward,
            action_mapping=cfg.action_mapping,
            action_masks=cfg.action_masks,
            **cfg.kwargs,
        )

    return make


def _network(*hidden_dims: int, **settings: Any) -> ModelConfig:
    return ModelConfig(hidden_dims=hidden_dims, activation="tanh", **settings)


_BASE = PPOConfig(
    num_learning_epochs=10,
    num_mini_batches=16,
    entropy_coef=0.0,
    learning_rate=1e-3,
    schedule="linear",
    max_grad_norm=0.5,
    normalize_values=True,
)


def _preset(num_envs: int, steps: int, iterations: int, network: ModelConfig, **ppo: Any) -> Preset:
    """A preset whose settings of PPO are those of `_BASE` but for `ppo`."""
    train = RunnerConfig(
        num_steps_per_env=steps,
        max_iterations=iterations,
        save_interval=max(10, iterations // 20),
        obs_groups={},  # all that the environment observes
        actor=network,
        critic=network,
        algorithm=replace(_BASE, **ppo),
    )
    return Preset(num_envs, train)


def default_preset() -> Preset:
    """For environments nobody tuned: normalized observations and values, a rate that falls to zero."""
    return _preset(
        num_envs=16,
        steps=128,
        iterations=500,
        network=_network(64, 64, obs_normalization=True, obs_clip=10.0, std_type="log"),
        learning_rate=3e-4,
    )


def _cartpole() -> Preset:
    return _preset(
        num_envs=8,
        steps=32,
        iterations=390,  # 100,000 steps
        network=_network(64, 64),
        num_learning_epochs=20,
        num_mini_batches=1,
        gamma=0.98,
        lam=0.8,
        value_loss_coef=0.5,
        use_clipped_value_loss=False,
        normalize_values=False,
    )


def _pendulum() -> Preset:
    return _preset(
        num_envs=16,
        steps=128,
        iterations=200,
        network=_network(64, 64, obs_normalization=True, std_type="log"),
        gamma=0.95,
        learning_rate=5e-4,
    )


def _acrobot() -> Preset:
    return _preset(
        num_envs=16,
        steps=128,
        iterations=100,
        network=_network(64, 64, obs_normalization=True),
        num_mini_batches=8,
        lam=0.94,
    )


def _mountain_car_continuous() -> Preset:
    return _preset(
        num_envs=16,
        steps=256,
        iterations=50,
        network=_network(64, 64, obs_normalization=True, init_std=2.0, std_type="log"),
        num_mini_batches=8,
        gamma=0.999,
        lam=0.98,
    )


def _lunar_lander() -> Preset:
    return _preset(
        num_envs=16,
        steps=256,
        iterations=250,
        network=_network(64, 64, obs_normalization=True),
        num_learning_epochs=6,
        gamma=0.995,
        lam=0.98,
        entropy_coef=0.01,
    )


_MUJOCO_TASKS = (
    "Ant-v5",
    "HalfCheetah-v5",
    "Hopper-v5",
    "Humanoid-v5",
    "HumanoidStandup-v5",
    "InvertedDoublePendulum-v5",
    "InvertedPendulum-v5",
    "Pusher-v5",
    "Reacher-v5",
    "Swimmer-v5",
    "Walker2d-v5",
)

PRESETS: Mapping[str, Callable[[], Preset]] = {
    "CartPole-v1": _cartpole,
    "Pendulum-v1": _pendulum,
    "Acrobot-v1": _acrobot,
    "MountainCarContinuous-v0": _mountain_car_continuous,
    "LunarLander-v3": _lunar_lander,
    **dict.fromkeys(_MUJOCO_TASKS, default_preset),  # the defaults were chosen on these
}
"""Gymnasium id -> its tuned settings."""
