"""Values on the command line: numbers with a range, and the settings given by `--set`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from tyro.conf import Positional, arg
from tyro.constructors import PrimitiveConstructorSpec

from surefoot.errors import ConfigError


def parse_count(text: str) -> int:
    """Read a whole number of at least 1; `1_000` and `1000` are the same."""
    return _whole_number(text, least=1)


def parse_seed(text: str) -> int:
    """Read a whole number of at least 0."""
    return _whole_number(text, least=0)


def parse_seconds(text: str) -> float:
    """Read a finite number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"needs a number of seconds above 0, got {text!r}")
    return value


def parse_velocity(texts: Sequence[str]) -> tuple[float, float, float]:
    """Read three finite numbers."""
    try:
        forward, left, turn = (float(text) for text in texts)
    except ValueError:
        forward = left = turn = math.nan
    if not all(map(math.isfinite, (forward, left, turn))):
        raise ValueError(f"needs three numbers, got {' '.join(texts)!r}")
    return forward, left, turn


def parse_path(text: str) -> Path:
    """Read a path; an empty one, as an unset shell variable leaves it, would mean the working directory."""
    if not text.strip():
        raise ValueError("needs a path, got ''")
    return Path(text)


_OPTION_OF = {  # entries of config.yaml that an option decides
    "task": "the argument TASK",
    "num_envs": "--num-envs",
    "device": "--device",
    "budget": "--seconds, --iterations or --env-steps",
    "budget.seconds": "--seconds",
    "budget.iterations": "--iterations",
    "budget.env_steps": "--env-steps",
}


def parse_settings(settings: Iterable[str]) -> dict[str, str]:
    """Split `KEY=VALUE` at the first equals sign; the last one wins where a key comes twice.

    Raises:
        ConfigError: a setting has no equals sign or no key, or belongs to an option.
    """
    pairs: dict[str, str] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not (key.strip() and equals):
            raise ConfigError(f"--set {setting}: write it as KEY=VALUE, such as --set algorithm.gamma=0.97")
        if key.strip() in _OPTION_OF:
            raise ConfigError(f"--set {key.strip()}: use {_OPTION_OF[key.strip()]}")
        pairs[key.strip()] = value.strip()
    return pairs


def _whole_number(text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise ValueError(f"needs a whole number of at least {least}, got {text!r}")
    return value


def _number(parse: Callable[[str], Any], metavar: str) -> PrimitiveConstructorSpec[Any]:
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=lambda texts: parse(texts[0]),
        is_instance=lambda value: value is None or isinstance(value, int | float),
        str_from_instance=lambda value: [str(value)],
    )


Count: TypeAlias = Annotated[int, _number(parse_count, "N")]
OptionalCount: TypeAlias = Annotated[int | None, _number(parse_count, "N")]
Seed: TypeAlias = Annotated[int, _number(parse_seed, "N")]
OptionalSeed: TypeAlias = Annotated[int | None, _number(parse_seed, "N")]
Seconds: TypeAlias = Annotated[float, _number(parse_seconds, "S")]
OptionalSeconds: TypeAlias = Annotated[float | None, _number(parse_seconds, "S")]
Velocity: TypeAlias = Annotated[
    tuple[float, float, float] | None,
    PrimitiveConstructorSpec(
        nargs=3,
        metavar="VX VY WZ",
        instance_from_str=parse_velocity,
        is_instance=lambda value: value is None or isinstance(value, tuple),
        str_from_instance=lambda value: [str(number) for number in value or ()],
    ),
]
_PATH: PrimitiveConstructorSpec[Any] = PrimitiveConstructorSpec(
    nargs=1,
    metavar="PATH",
    instance_from_str=lambda texts: parse_path(texts[0]),
    is_instance=lambda value: value is None or isinstance(value, Path),
    str_from_instance=lambda value: [str(value)],
)
OptionalPath: TypeAlias = Annotated[Path | None, _PATH]
RunFolder: TypeAlias = Annotated[Positional[Path], _PATH, arg(metavar="RUN")]
