"""What a mirror function keeps or breaks on one batch. Every rule yields what is broken, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from surefoot.envs.action_specs import mask_parts
from surefoot.types import ActionSpec, BoxActions, DiscreteActions, MultiBinaryActions

_FEW = 8
"""Columns that a message lists."""


def function_faults(
    mirror: Callable[[Tensor], Tensor], batch: Tensor, tolerance: float
) -> tuple[list[str], Tensor]:
    """Check one function on `[B, ...]`: twice is the identity, rows are independent, the input is left alone.

    Returns:
        The faults, and the mirror images; the batch itself where there are none.
    """
    given = batch.clone()
    try:
        image = mirror(given)
        faults = [] if torch.equal(given, batch) else ["changes its input in place"]
        fault = _kind_fault(image, batch)
        if fault:
            return [*faults, fault], batch
        image = image.clone()  # before the next call, which may write to the same memory
        faults += _differences("mirrored twice", mirror(image.clone()), batch, tolerance)
        faults += _differences("in a batch in another order", _reversed(mirror, batch), image, tolerance)
        faults += _differences("in a batch of one row", mirror(batch[:1].clone()), image[:1], tolerance)
    except Exception as error:  # whatever it is, the other functions are still to be checked
        return [f"raises {type(error).__name__}: {error}"], batch
    return faults, image


def resting_faults(mirror: Callable[[Tensor], Tensor], resting: Tensor, tolerance: float) -> list[str]:
    """What should look the same in the mirror, `[B, ...]`."""
    try:
        return [*_differences("at rest", mirror(resting.clone()), resting, tolerance)]
    except Exception as error:
        return [f"at rest: raises {type(error).__name__}: {error}"]


def difference(value: Tensor, expected: Tensor, tolerance: float) -> str | None:
    """Where two batches differ by more than the tolerance, absolute and relative, and by how much."""
    if value.shape != expected.shape:
        return f"shape {list(value.shape)} instead of {list(expected.shape)}"
    found, right = value.double(), expected.to(value.device).double()
    wrong = ~torch.isclose(found, right, rtol=tolerance, atol=tolerance)
    if not bool(wrong.any()):
        return None
    first = tuple(wrong.nonzero()[0].tolist())
    example = f"{found[first]:g} instead of {right[first]:g} in row {first[0]}"
    return f"{_place(wrong)}, {example}" if wrong.dim() > 1 else example


def action_faults(spec: ActionSpec, images: Tensor, tolerance: float) -> Iterator[str]:
    """Mirrored actions `[B, ...]` that nobody may take."""
    if isinstance(spec, BoxActions):
        for bound, sign, name in ((spec.low, -1, "below the lower"), (spec.high, 1, "above the upper")):
            if bound is not None:
                excess = sign * (images - torch.tensor(bound, device=images.device))
                yield from _outside(excess > tolerance, images, f"{name} bound")
        return
    choices = {"n": 2} if isinstance(spec, MultiBinaryActions) else vars(spec)
    limit = torch.tensor(choices.get("nvec", choices.get("n")), device=images.device)
    yield from _outside((images < 0) | (images >= limit), images, f"not a choice: there are {limit.tolist()}")


def mask_faults(spec: ActionSpec, mask: Tensor, actions: Tensor) -> Iterator[str]:
    """Mirrored actions `[B, ...]`, allowed before, that the mirrored mask `[B, n]` does not allow."""
    forbidden = ~_allowed(spec, mask, actions)
    if bool(forbidden.any()):
        row = int(forbidden.nonzero()[0])
        yield (
            f"forbids action {actions[row].tolist()}, the mirror image of one that was allowed, in row {row}"
        )


def constant_columns(batch: Tensor) -> list[int]:
    """Columns of vectors `[B, D]` that hold the same number in every row; none for images and masks."""
    is_vector = batch.dim() == 2 and batch.dtype != torch.bool
    return (batch == batch[:1]).all(0).nonzero().flatten().tolist() if is_vector else []


def _kind_fault(image: Any, batch: Tensor) -> str | None:
    if not isinstance(image, Tensor):
        return f"returns a {type(image).__name__}, not a tensor"
    for what in ("shape", "dtype", "device"):
        found, right = getattr(image, what), getattr(batch, what)
        if found != right:
            return f"changes the {what} from {_plain(right)} to {_plain(found)}"
    finite = bool(image.isfinite().all())
    return None if finite else "returns numbers that are not finite"


def _plain(value: object) -> object:
    return list(value) if isinstance(value, torch.Size) else value


def _differences(when: str, value: Tensor, expected: Tensor, tolerance: float) -> Iterator[str]:
    found = difference(value, expected, tolerance)
    if found is not None:
        yield f"{when}: {found}"


def _reversed(mirror: Callable[[Tensor], Tensor], batch: Tensor) -> Tensor:
    return mirror(batch.flip(0)).flip(0)


def _place(wrong: Tensor) -> str:
    """Which columns of vectors; the first pixel of images."""
    if wrong.dim() == 4:
        channel, row, column = wrong.nonzero()[0, 1:].tolist()
        return f"channel {channel}, row {row}, column {column}"
    columns = wrong.any(0).nonzero().flatten().tolist()
    listed = ", ".join(map(str, columns[:_FEW])) + ", ..." * (len(columns) > _FEW)
    return f"column{'s' * (len(columns) > 1)} {listed}"


def _outside(wrong: Tensor, images: Tensor, why: str) -> Iterator[str]:
    if bool(wrong.any()):
        first = tuple(wrong.nonzero()[0].tolist())
        place = f"{_place(wrong)}, " if wrong.dim() > 1 else ""
        yield f"{place}{images[first].item():g} is {why}"


def _allowed(spec: ActionSpec, mask: Tensor, actions: Tensor) -> Tensor:
    """Whether the mask `[B, n]` allows the actions; `[B]` bool."""
    if isinstance(spec, MultiBinaryActions):
        return (mask | (actions == 0)).all(1)
    parts = mask.split(list(mask_parts(spec)), dim=1)
    choices = actions[:, None] if isinstance(spec, DiscreteActions) else actions
    columns = zip(parts, choices.unbind(1), strict=True)
    return torch.stack([part.gather(1, choice[:, None])[:, 0] for part, choice in columns]).all(0)
