"""What `surefoot train` and `surefoot distill` have in common."""

from __future__ import annotations

from dataclasses import dataclass
from signal import Signals
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import UseAppendAction, arg, create_mutex_group

from surefoot.cli.arguments import OptionalCount, OptionalPath, OptionalSeconds, OptionalSeed, parse_settings
from surefoot.cli.output import print_line
from surefoot.errors import ConfigError

if TYPE_CHECKING:
    from surefoot.tasks.session import TrainResult

_BUDGET = create_mutex_group(required=False, title="budget (default: the task's own)")


@dataclass(frozen=True)
class TrainingOptions:
    """Options of a command that trains."""

    seconds: Annotated[OptionalSeconds, _BUDGET, arg(help_behavior_hint="")] = None
    """Stop after this many seconds of training."""

    iterations: Annotated[OptionalCount, _BUDGET, arg(help_behavior_hint="")] = None
    """Stop after this many iterations."""

    env_steps: Annotated[OptionalCount, _BUDGET, arg(help_behavior_hint="")] = None
    """Stop after this many steps, all environments together."""

    num_envs: Annotated[OptionalCount, arg(help_behavior_hint="(default: the task's own)")] = None
    """Environments that run side by side."""

    seed: Annotated[OptionalSeed, arg(help_behavior_hint="(default: 0)")] = None
    """Decides every random choice of the run."""

    device: Annotated[
        str | None, arg(metavar="D", help_behavior_hint="(default: cpu, or that of --resume)")
    ] = None
    """Where the networks live: cpu, cuda or cuda:N."""

    run_dir: Annotated[
        OptionalPath, arg(metavar="DIR", help_behavior_hint="(default: a new one under runs/)")
    ] = None
    """Folder for this run."""

    resume: Annotated[OptionalPath, arg(metavar="RUN", help_behavior_hint="")] = None
    """Go on from the last checkpoint of this run, in its folder. Number of environments and seed are the
    run's own; budgets count from its beginning."""

    render: bool = False
    """Show the first environment while training."""

    logger: Annotated[UseAppendAction[tuple[Literal["tensorboard"], ...]], arg(metavar="NAME")] = ()
    """Write the measurements here too: tensorboard."""

    settings: Annotated[
        UseAppendAction[tuple[tuple[str, ...], ...]], arg(name="set", metavar="KEY=VALUE ...")
    ] = ()
    """Change settings of the run, such as `--set algorithm.gamma=0.97`."""

    def wishes(self, **origin: Any) -> dict[str, Any]:
        """Arguments for `surefoot.tasks.run.train` or `distill`.

        Args:
            **origin: the option that says where a policy or a teacher comes from.

        Raises:
            ConfigError: an option that a run which goes on would have to ignore, or a bad `--set`.
        """
        own = {"run_dir": self.run_dir, "num_envs": self.num_envs, "seed": self.seed, **origin}
        for name, value in own.items():
            if self.resume is not None and value is not None:
                option = f"--{name.replace('_', '-')} {value}"
                raise ConfigError(f"{option} cannot be combined with --resume: it is the run's own")
        return {
            **own,
            "seconds": self.seconds,
            "iterations": self.iterations,
            "env_steps": self.env_steps,
            "device": self.device,
            "resume": self.resume,
            "render": self.render,
            "loggers": self.logger,
            "overrides": parse_settings(setting for group in self.settings for setting in group),
        }


def report_end(result: TrainResult) -> int:
    """Print how training ended and what to do next; return the exit code: 0, or 128 + N after signal N."""
    print_line(
        f"Stopped by {result.stopped_by} after {result.iteration} iterations, {result.env_steps:,} steps "
        f"and {result.seconds:.0f} s. Run folder: {result.run_dir}"
    )
    print_line(f"Next: surefoot evaluate {result.run_dir}  or  surefoot play {result.run_dir}")
    signals = Signals.__members__
    return 128 + signals[result.stopped_by] if result.stopped_by in signals else 0
