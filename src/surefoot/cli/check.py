"""`surefoot check`: does an environment keep the contract that the trainer relies on?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg

from surefoot.cli.output import print_line


@dataclass(frozen=True)
class Check:
    """Test a task's environment against the contract in `surefoot.envs.vec_env`, and its mirror functions."""

    task: Annotated[Positional[str], arg(metavar="TASK")]
    """A name from `surefoot tasks`, or any Gymnasium id."""

    def __call__(self) -> None:
        """Print what is allowed and probably not meant; a broken rule is an error."""
        from surefoot.envs import check_symmetry, check_vec_env
        from surefoot.tasks.run import make

        env = make(self.task, num_envs=4)
        try:
            warnings = check_vec_env(env)
            if hasattr(env, "mirror_observations"):
                warnings += check_symmetry(env)
        finally:
            env.close()
        for warning in warnings:
            print_line(f"warning: {warning}")
        print_line(f"{self.task} keeps the environment contract")
