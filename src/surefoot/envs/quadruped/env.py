"""A quadruped that learns to walk where it is told."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from surefoot.envs.quadruped import observations, randomization
from surefoot.envs.quadruped.commands import Commands
from surefoot.envs.quadruped.config import CONTROL_DT, QuadrupedConfig
from surefoot.envs.quadruped.measures import measures
from surefoot.envs.quadruped.mirror import LEFT_RIGHT, Mirror
from surefoot.envs.quadruped.rewards import weighted_terms
from surefoot.envs.quadruped.robot import (
    DEFAULT_POSE,
    JOINT_LOWER,
    JOINT_UPPER,
    JOINTS,
    NUM_JOINTS,
    load_model,
)
from surefoot.envs.quadruped.state import State
from surefoot.envs.quadruped.terminations import fallen
from surefoot.envs.vec_env import VecEnv
from surefoot.errors import ConfigError, NonFiniteError, ShapeError
from surefoot.types import Extras, Observations

if TYPE_CHECKING:
    from surefoot.envs.quadruped.physics import Physics
    from surefoot.envs.quadruped.render import Renderer

MOST_ENVS = 1_000_000
"""Largest `num_envs`: a number beyond it is a slip of the hand, and would fill the memory before it fails."""


class QuadrupedEnv(VecEnv):
    """`N` Go1-class robots on flat ground, each with its own velocity command.

    An action is twelve joint offsets from the standing pose, in units of `cfg.action_scale`. Observation
    groups: `policy` `[N, 47]`, what a real robot measures (with noise); `proprioception` `[N, 45]`, the same
    numbers without the clock of the reference trot; `privileged` `[N, 13]`, which the simulator alone knows,
    and `hidden` `[N, 2]`, what differs from episode to episode and no sensor shows: friction and payload. All
    are new tensors at every step. All randomness comes from one generator: the same seed gives
    the same numbers, whatever the number of threads.

    Velocities, in rewards and in measures, are those of the trunk at the end of the control step, in its
    own frame.

    `extras["measures"]` is described in `measures.py`; tracking errors count from `cfg.settle_seconds` after
    a command change or a start.
    """

    def __init__(
        self,
        num_envs: int = 256,
        *,
        seed: int = 0,
        device: str = "cpu",
        cfg: QuadrupedConfig | None = None,
        num_threads: int | None = None,
    ) -> None:
        """Build the simulations and start the first episodes.

        Args:
            num_envs: `N`, at least 1.
            seed: of all randomness.
            device: where tensors live; the physics runs on the CPU.
            cfg: settings; None for the defaults.
            num_threads: physics threads; None for one per available core.

        Raises:
            ConfigError: `num_envs` or `num_threads` is out of range, or so many robots do not fit in memory.
            MissingExtraError: MuJoCo is not installed.
        """
        if not 1 <= num_envs <= MOST_ENVS:
            raise ConfigError(f"num_envs is {num_envs}; it must be at least 1 and at most {MOST_ENVS}")
        if num_threads is not None and num_threads < 1:
            raise ConfigError(f"num_threads is {num_threads}; it must be at least 1")
        cfg = QuadrupedConfig() if cfg is None else cfg
        self.cfg: QuadrupedConfig = cfg  # pyright: ignore[reportIncompatibleVariableOverride]
        self.num_envs = num_envs
        self.num_actions = NUM_JOINTS
        self.device = torch.device(device)
        self.max_episode_length = cfg.steps(cfg.episode_seconds)
        self._settle_steps = round(cfg.settle_seconds / CONTROL_DT)
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.int64, device=self.device)

        self._rng = np.random.default_rng(seed)
        self.physics = _make_physics(num_envs, num_threads)
        self.commands = Commands(
            num_envs,
            (cfg.vx, cfg.vy, cfg.yaw_rate),
            cfg.standing,
            cfg.steps(cfg.command_seconds),
            cfg.steps(cfg.stopping_seconds),
            self._rng,
        )
        self._phase = np.zeros(num_envs, dtype=np.float32)
        self._action = np.zeros((num_envs, NUM_JOINTS), dtype=np.float32)
        self._previous_action = np.zeros_like(self._action)
        self._noise = cfg.observation_noise * observations.noise_amplitudes()
        self._mirror = Mirror(self.physics.model, LEFT_RIGHT, self.device)
        self._renderer: Renderer | None = None
        self._observations, _ = self.reset()

    @property
    def step_dt(self) -> float:
        """Simulated seconds per step."""
        return CONTROL_DT

    def reset(self) -> tuple[Observations, Extras]:
        """Start a new episode in every environment. The times of the next command changes are spread out."""
        everyone = np.arange(self.num_envs)
        self._start_episodes(everyone)
        self.commands.draw(everyone, desynchronize=True)
        self._observations = self._observe(self._state())
        return self._observations, {}

    def get_observations(self) -> Observations:
        """Return the observations that the next action answers to."""
        return self._observations

    def step(self, actions: Tensor) -> tuple[Observations, Tensor, Tensor, Extras]:
        """Advance every robot by one control step and reset those whose episode ended.

        Args:
            actions: `[N, 12]` joint offsets.

        Returns:
            Observations, rewards `[N]`, dones `[N]` bool, extras (see the class and `VecEnv`).

        Raises:
            NonFiniteError: an action is NaN or infinite.
            ShapeError: the actions are not `[N, 12]`.
        """
        targets = self._joint_targets(actions)
        self._push_some()
        diverged = self.physics.step(targets)
        self._advance_clocks()

        state = self._state()
        fell, time_outs = self._ends(state, diverged)
        dones = fell | time_outs
        rewards, log = self._rewards(state, diverged)
        extras: Extras = {
            "time_outs": self._tensor(time_outs),
            "log": log,
            "measures": self._measures(state, fell, dones),
        }
        if dones.any():
            extras["final_obs"] = self._observe(state)

        self.commands.advance()
        self._start_episodes(np.flatnonzero(dones))
        self._observations = self._observe(self._state())
        return self._observations, rewards, self._tensor(dones), extras

    def reset_envs(self, ids: Tensor) -> Observations:
        """Start a new episode for robots `ids`, `[K]`; the others go on."""
        if len(ids) > 0:
            self._start_episodes(np.unique(ids.cpu().numpy()))  # MuJoCo wants them in order
            fresh = self._observe(self._state())
            self._observations = {
                group: obs.index_copy(0, ids, fresh[group][ids]) for group, obs in self._observations.items()
            }
        return self._observations

    def set_command(self, vx: float, vy: float, yaw_rate: float) -> None:
        """Fix the command of every environment, from now on and across episodes (m/s, m/s, rad/s)."""
        self.commands.fix(np.array([vx, vy, yaw_rate], dtype=np.float32))
        self._observations = self._observe(self._state())

    def mirror_observations(self, obs: Tensor, group: str) -> Tensor:
        """Swap left and right in observations `[B, D]` of a group."""
        return self._mirror.observations(obs, group)

    def mirror_actions(self, actions: Tensor) -> Tensor:
        """Swap left and right in actions `[B, 12]`."""
        return self._mirror.actions(actions)

    def render(self) -> np.ndarray:
        """Return a picture of robot 0, `[height, width, 3]` uint8, with its commanded and actual velocity."""
        if self._renderer is None:
            from surefoot.envs.quadruped.render import Renderer

            self._renderer = Renderer()
        return self._renderer.frame(
            self.physics.qpos[0], self.commands.values[0], self.physics.body_velocity[0]
        )

    def _joint_targets(self, actions: Tensor) -> np.ndarray:
        """Check and clip the actions, remember them, and turn them into joint positions `[N, 12]` (rad)."""
        if actions.shape != (self.num_envs, NUM_JOINTS):
            raise ShapeError(f"actions are {tuple(actions.shape)}; expected {(self.num_envs, NUM_JOINTS)}")
        action = actions.detach().cpu().numpy()
        if not np.isfinite(action).all():
            row, column = np.argwhere(~np.isfinite(action))[0]
            raise NonFiniteError(f"action of environment {row}, {JOINTS[column]}, is {action[row, column]}")
        self._previous_action = self._action
        self._action = np.clip(action, -self.cfg.action_clip, self.cfg.action_clip, dtype=np.float32)
        return np.clip(DEFAULT_POSE + self.cfg.action_scale * self._action, JOINT_LOWER, JOINT_UPPER)

    def _push_some(self) -> None:
        """Kick some robots; the policy notices in its next observation."""
        cfg = self.cfg
        ids, kicks = randomization.pushes(
            self.num_envs, CONTROL_DT / cfg.push_interval, cfg.push_speed, cfg.push_turn, self._rng
        )
        self.physics.qvel[ids, :6] += kicks

    def _advance_clocks(self) -> None:
        # A new tensor: a caller may hold on to the counts of the step before.
        self.episode_length_buf = self.episode_length_buf + 1
        self._phase = (self._phase + np.float32(CONTROL_DT * self.cfg.gait_frequency)) % np.float32(1.0)
        if self.cfg.restart_gait:
            self._phase[self.commands.standing] = 0.0

    def _state(self) -> State:
        physics = self.physics
        return State(
            base_height=physics.base_position[:, 2],
            body_velocity=physics.body_velocity,
            angular_velocity=physics.angular_velocity,
            projected_gravity=physics.projected_gravity,
            joint_position=physics.joint_position,
            joint_velocity=physics.joint_velocity,
            torque=physics.torque,
            foot_height=physics.foot_height,
            foot_velocity=physics.foot_velocity,
            foot_contact=physics.foot_contact,
            friction=physics.friction,
            payload=physics.payload,
            command=self.commands.values,
            standing=self.commands.standing,
            phase=self._phase,
            action=self._action,
            previous_action=self._previous_action,
        )

    def _ends(self, state: State, diverged: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`[N]` bool: robots that fell, and others whose time is up.

        `episode_length_buf` alone decides about time, since trainers write to it to spread the ends.
        """
        max_tilt = math.radians(self.cfg.max_tilt)
        fell = diverged | fallen(state, max_tilt=max_tilt, min_height=self.cfg.min_height)
        over_time = (self.episode_length_buf >= self.max_episode_length).cpu().numpy()
        return fell, over_time & ~fell

    def _measures(self, state: State, fell: np.ndarray, dones: np.ndarray) -> dict[str, Tensor]:
        settled = self.commands.age >= self._settle_steps
        return {name: self._tensor(values) for name, values in measures(state, settled, fell, dones).items()}

    def _rewards(self, state: State, diverged: np.ndarray) -> tuple[Tensor, dict[str, Tensor]]:
        """Rewards `[N]`, zero where the simulation diverged, and the mean of each term per second."""
        terms = weighted_terms(state, self.cfg.weights)
        values = np.stack(list(terms.values())).astype(np.float32) * ~diverged
        means = torch.from_numpy(values.mean(axis=1)).to(self.device)
        log = {f"reward/{name}": mean for name, mean in zip(terms, means.unbind(), strict=True)}
        return self._tensor(values.sum(axis=0) * np.float32(CONTROL_DT)), log

    def _start_episodes(self, ids: np.ndarray) -> None:
        """Put robots `ids` back on their feet, each with its own friction, load, gait phase and command."""
        if ids.size == 0:
            return
        cfg = self.cfg
        self.physics.set_friction(ids, self._rng.uniform(*cfg.friction, size=len(ids)))
        if cfg.payload[1] > 0.0:
            self.physics.set_payload(ids, self._rng.uniform(*cfg.payload, size=len(ids)))
        self.physics.place(ids, *randomization.start_states(len(ids), cfg.start_joint_noise, self._rng))
        self.commands.draw(ids)
        self.episode_length_buf = self.episode_length_buf.index_fill(0, self._tensor(ids), 0)
        self._phase[ids] = 0.0 if cfg.restart_gait else self._rng.random(len(ids))
        self._action[ids] = 0.0
        self._previous_action[ids] = 0.0

    def _observe(self, state: State) -> dict[str, Tensor]:
        """All groups, as new tensors."""
        policy = observations.policy_observation(state)
        if self.cfg.observation_noise > 0.0:
            uniform = self._rng.random(policy.shape, dtype=np.float32)
            policy += self._noise * (2.0 * uniform - 1.0)
        groups = {
            "policy": policy,
            "privileged": observations.privileged_observation(state),
            "proprioception": observations.without_clock(policy),
            "hidden": observations.hidden_observation(state),
        }
        return {name: self._tensor(values) for name, values in groups.items()}

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(array).to(self.device)


def _make_physics(num_envs: int, num_threads: int | None) -> Physics:
    model = load_model()  # before the next line, since it says what to do where MuJoCo is missing
    from surefoot.envs.quadruped.physics import Physics

    try:
        return Physics(model, num_envs, control_dt=CONTROL_DT, num_threads=num_threads)
    except (MemoryError, RuntimeError) as error:  # MuJoCo's bindings may hide std::bad_alloc in the second
        raise ConfigError(
            f"num_envs is {num_envs}: the simulations do not fit in memory ({type(error).__name__}: {error})"
        ) from error
