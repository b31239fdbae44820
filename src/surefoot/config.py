"""Frozen dataclasses as configuration: validate, read from mappings, override by path."""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeVar

import yaml

from surefoot.errors import ConfigError, did_you_mean

Config = TypeVar("Config")


def require(cfg: object, field: str, valid: bool, expected: str) -> None:
    """Raise a ConfigError that names the field, its value and what would be valid, unless `valid`."""
    if not valid:
        raise ConfigError(f"{type(cfg).__name__}.{field} = {getattr(cfg, field)!r}: expected {expected}")


def from_mapping(cls: type[Config], values: Mapping[str, Any], path: str = "") -> Config:
    """Build a config from nested mappings; the mapping is not changed.

    Args:
        cls: a dataclass; its fields may be dataclasses.
        values: field name -> value. Fields left out keep their defaults.
        path: where `values` sits in a larger config, for messages.

    Raises:
        ConfigError: unknown field (with its path and the nearest names), missing field, wrong type, value out
            of range.
    """
    if not isinstance(values, Mapping):
        raise ConfigError(f"{path or cls.__name__} = {values!r}: expected a mapping")
    hints = typing.get_type_hints(cls)
    fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for name in values:
        if name not in fields:
            raise ConfigError(f"unknown setting '{_join(path, name)}'{did_you_mean(str(name), fields)}")
    for name, field in fields.items():
        if name not in values and field.default is field.default_factory is dataclasses.MISSING:
            raise ConfigError(f"missing setting '{_join(path, name)}'")
    converted = {name: _convert(value, hints[name], _join(path, name)) for name, value in values.items()}
    return cls(**converted)


def to_mapping(cfg: Any) -> dict[str, Any]:
    """Turn a config into nested dicts and lists that YAML and JSON can hold; inverse of `from_mapping`."""
    return {field.name: _plain(getattr(cfg, field.name)) for field in dataclasses.fields(cfg)}


def override(cfg: Config, settings: Mapping[str, Any]) -> Config:
    """Return a copy with settings replaced, such as `{"algorithm.gamma": "0.97"}`.

    Text is read as YAML, so that `0.97`, `[64, 64]`, `true` and `null` mean what they say. All settings are
    applied before the result is validated, so that two that belong together may change together.

    Raises:
        ConfigError: unknown path, wrong type, value out of range.
    """
    tree = to_mapping(cfg)
    for path, value in settings.items():
        _assign(tree, path, _parse(value, path))
    return from_mapping(type(cfg), tree)


def expand_path(name: str, tree: Mapping[str, Any]) -> str:
    """Complete the end of a path, such as `gamma`, to the one path that ends so, `algorithm.gamma`.

    A path may also start with `train.`, as it stands in `config.yaml`.

    Args:
        name: a path or its last part or parts.
        tree: nested mappings, as from `to_mapping`.

    Raises:
        ConfigError: no path ends so, or several do.
    """
    paths = list(_paths(tree))
    name = name.removeprefix("train.")
    matches = [path for path in paths if path == name] or [p for p in paths if p.endswith("." + name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise ConfigError(f"setting '{name}' is ambiguous: {' or '.join(matches)}")
    parent, _, key = name.rpartition(".")
    if any(path == parent or path.endswith("." + parent) for path in paths if _is_empty(tree, path)):
        raise ConfigError(f"unknown setting '{name}': to add {key}, write {parent}={{{key}: VALUE}}")
    ends = {end for path in paths for end in (path, path.rsplit(".", 1)[-1])}
    close = did_you_mean(name, ends) if difflib.get_close_matches(name, ends, cutoff=0.5) else ""
    raise ConfigError(f"unknown setting '{name}'{close or '; config.yaml of any run lists them all'}")


def _paths(tree: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in tree.items():
        path = _join(prefix, name)
        yield path
        if isinstance(value, Mapping):
            yield from _paths(value, path)


def _is_empty(tree: Mapping[str, Any], path: str) -> bool:
    """Whether there is nothing at this path: no mapping, or one without entries."""
    node: Any = tree
    for name in path.split("."):
        node = node.get(name) if isinstance(node, Mapping) else None
    return node is None or (isinstance(node, Mapping) and not node)


def _assign(tree: dict[str, Any], path: str, value: Any) -> None:
    *parents, leaf = path.split(".")
    node, walked = tree, ""
    for depth, name in enumerate((*parents, leaf)):
        if node is None:
            raise ConfigError(f"'{walked}' is none: to set {name}, write {walked}={{{name}: VALUE}}")
        if not isinstance(node, dict) or (name not in node):
            choices = node if isinstance(node, dict) else []
            where = f" in '{walked}'" if walked else ""
            raise ConfigError(f"unknown setting '{path}': no '{name}'{where}{did_you_mean(name, choices)}")
        walked = _join(walked, name)
        if depth < len(parents):
            node = node[name]
    node[leaf] = value


def _parse(value: Any, path: str) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return yaml.safe_load(value)
    except yaml.YAMLError:
        raise ConfigError(f"setting '{path}': cannot read value {value!r}") from None


def _convert(value: Any, hint: Any, path: str) -> Any:
    """Check `value` against a type annotation, converting where nothing is lost."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        if isinstance(value, hint):  # type: ignore[arg-type]
            return value
        if isinstance(value, Mapping):
            return from_mapping(hint, value, path)  # type: ignore[arg-type]
    elif origin in (typing.Union, types.UnionType):
        return _convert_union(value, args, path)
    elif origin is Literal:
        if value in args:
            return value
        raise ConfigError(f"{path} = {value!r}: expected one of {', '.join(map(str, args))}")
    elif origin is tuple and isinstance(value, (list, tuple)):
        items = [args[0]] * len(value) if args[-1] is Ellipsis else args
        if len(items) == len(value):
            pairs = enumerate(zip(value, items, strict=True))
            return tuple(_convert(item, item_hint, f"{path}[{i}]") for i, (item, item_hint) in pairs)
    elif origin in (dict, Mapping) and isinstance(value, Mapping):
        return {key: _convert(item, args[1], _join(path, str(key))) for key, item in value.items()}
    elif hint is float:
        number = _as_float(value)
        if number is not None:
            return number
    elif hint is int and isinstance(value, float) and value.is_integer():
        return int(value)
    elif hint is Any or _is_plainly(value, hint):
        return value
    raise ConfigError(f"{path} = {value!r}: expected {_describe(hint)}")


def _convert_union(value: Any, args: tuple[Any, ...], path: str) -> Any:
    if value is None and type(None) in args:
        return None
    options = [arg for arg in args if arg is not type(None)]
    if isinstance(value, Mapping):  # its settings deserve an error of their own
        options = [arg for arg in options if dataclasses.is_dataclass(arg)] or options
    if len(options) == 1:
        return _convert(value, options[0], path)
    for option in options:
        try:
            return _convert(value, option, path)
        except ConfigError:
            continue
    raise ConfigError(f"{path} = {value!r}: expected {' or '.join(map(_describe, options))}")


def _is_plainly(value: Any, hint: Any) -> bool:
    """Whether `hint` is a class and `value` of it; a bool is no int here."""
    return (
        isinstance(hint, type) and isinstance(value, hint) and not (hint is int and isinstance(value, bool))
    )


def _as_float(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        return float(value)  # text too: YAML 1.1 reads 1e-3 as text
    except (TypeError, ValueError):
        return None


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return to_mapping(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def _describe(hint: Any) -> str:
    if typing.get_origin(hint) is tuple:
        items = ["..." if arg is Ellipsis else _describe(arg) for arg in typing.get_args(hint)]
        return f"a list [{', '.join(items)}]"
    if dataclasses.is_dataclass(hint):
        return "a mapping"
    return {int: "an integer", float: "a number", str: "text", bool: "true or false"}.get(hint, str(hint))


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else str(name)
