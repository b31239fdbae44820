"""An environment whose every number is on record, and that returns bad ones where it is told to."""

from dataclasses import dataclass

import torch

from surefoot.envs.vec_env import VecEnv

NAN, INF = float("nan"), float("inf")
ENVS, HORIZON, WIDTHS = 6, 4, {"policy": 3, "critic": 8}


@dataclass(frozen=True)
class Fault:
    """At `step`, counted over the whole run, environment `env` returns `value` in `place`."""

    place: str  # "reward", a group, or "final " and a group
    step: int
    env: int
    column: int | None = None
    value: float = NAN


class FaultyEnv(VecEnv):
    """Episodes of `HORIZON` steps; those of even environments end by a time limit. Actions change nothing."""

    def __init__(self, *faults: Fault, spoiled_after_reset: bool = False):
        self.num_envs, self.num_actions, self.device = ENVS, 2, torch.device("cpu")
        self.max_episode_length = HORIZON
        self.episode_length_buf = torch.zeros(ENVS, dtype=torch.int64)
        self.faults, self.spoiled_after_reset = faults, spoiled_after_reset
        self.generator, self.reset_generator = torch.Generator().manual_seed(1), torch.Generator()
        self.now = self.draw(self.generator)
        self.acted_on, self.rewards, self.final, self.speeds, self.dones = [], [], [], [], []
        self.resets = []

    def draw(self, generator):
        return {group: 5.0 + torch.randn(ENVS, width, generator=generator) for group, width in WIDTHS.items()}

    def get_observations(self):
        return self.now

    def reset(self):
        raise NotImplementedError

    def reset_envs(self, ids):
        if len(ids) == 0:
            return self.now
        self.resets.append((len(self.rewards) - 1, ids.tolist()))
        self.episode_length_buf = self.episode_length_buf.index_fill(0, ids, 0)
        fresh = self.draw(self.reset_generator)
        if self.spoiled_after_reset:
            fresh["critic"][:, 1] = NAN
        self.now = {group: obs.index_copy(0, ids, fresh[group][ids]) for group, obs in self.now.items()}
        return self.now

    def step(self, actions):
        step = len(self.rewards)
        self.acted_on.append(self.now)
        self.now, final = self.draw(self.generator), self.draw(self.generator)
        rewards = 1.0 + torch.randn(ENVS, generator=self.generator)
        speeds = torch.rand(ENVS, generator=self.generator)
        self.episode_length_buf = self.episode_length_buf + 1
        dones = self.episode_length_buf >= HORIZON
        self.episode_length_buf = self.episode_length_buf.masked_fill(dones, 0)
        # What is on record is what was meant.
        self.rewards.append(rewards.clone())
        self.final.append({group: obs.clone() for group, obs in final.items()})
        self.speeds.append(speeds)
        self.dones.append(dones)
        for fault in (fault for fault in self.faults if fault.step == step):
            target = {"reward": rewards, **self.now, **{f"final {g}": obs for g, obs in final.items()}}
            index = fault.env if fault.column is None else (fault.env, fault.column)
            target[fault.place][index] = fault.value
        extras = {
            "time_outs": dones & (torch.arange(ENVS) % 2 == 0),
            "measures": {"speed": speeds},
            "log": {"reward/speed": rewards.mean()},
        }
        if dones.any():
            extras["final_obs"] = final
        return self.now, rewards, dones, extras
