"""Observation sets: which groups of the environment each network reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from surefoot.errors import ConfigError, did_you_mean

FALLBACK = "policy"
"""The group that a set reads which is not configured and has no group of its own name."""


def resolve_obs_groups(
    obs_groups: Mapping[str, Sequence[str]],
    shapes: Mapping[str, tuple[int, ...]],
    sets: Sequence[str],
    default: Sequence[str] | None = None,
) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Complete the observation sets by rsl_rl's rules and check them against the environment.

    A set that is missing reads what the environment says is to be read by default. If it says nothing, the
    set reads the group of its own name, if the environment offers one, or else `policy`.

    Args:
        obs_groups: set -> groups, as configured.
        shapes: group -> shape of one observation, as offered by the environment.
        sets: those that are needed.
        default: groups to read where nothing is configured; None if the environment has no opinion.

    Returns:
        Set -> groups for every set that is needed or configured, and what was assumed, in sentences.

    Raises:
        ConfigError: a set is empty, names a group that is not offered or names one twice; or it is missing
            and there is nothing to read in its place.
    """
    resolved = {name: tuple(groups) for name, groups in obs_groups.items()}
    remarks = []
    for name in sets:
        if name in resolved:
            continue
        if default is not None:
            resolved[name] = tuple(default)
            continue
        group = name if name in shapes else FALLBACK
        if group not in shapes:
            raise ConfigError(
                f"obs_groups has no set '{name}', and the environment offers neither '{name}' nor "
                f"'{FALLBACK}' to read in its place; offered: {', '.join(shapes)}"
            )
        resolved[name] = (group,)
        remarks.append(f"obs_groups has no set '{name}': it reads the group '{group}'")
    for name, groups in resolved.items():
        _check_set(name, groups, shapes)
    return resolved, remarks


def describe_obs_sets(obs_groups: Mapping[str, Sequence[str]], shapes: Mapping[str, tuple[int, ...]]) -> str:
    """One line that says what every network reads, such as `actor = policy [47]`."""

    def size(group: str) -> str:
        return "x".join(map(str, shapes[group]))

    sets = (
        f"{name} = {' + '.join(f'{group} [{size(group)}]' for group in groups)}"
        for name, groups in obs_groups.items()
    )
    return f"Observations: {'; '.join(sets)}"


def _check_set(name: str, groups: tuple[str, ...], shapes: Mapping[str, tuple[int, ...]]) -> None:
    if not groups:
        raise ConfigError(f"obs_groups.{name} is empty; offered: {', '.join(shapes)}")
    for group in groups:
        if group not in shapes:
            raise ConfigError(
                f"obs_groups.{name}: no observation group '{group}'{did_you_mean(group, shapes)}"
            )
    if len(set(groups)) < len(groups):
        raise ConfigError(f"obs_groups.{name} = {list(groups)}: names a group twice")
