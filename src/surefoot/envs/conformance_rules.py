"""The rules of the `VecEnv` contract that one tensor alone keeps or breaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from surefoot.envs.action_specs import mask_parts, num_actions
from surefoot.errors import EnvironmentContractError
from surefoot.types import ActionSpec, BoxActions


def require(kept: bool, broken: str) -> None:
    """Raise an `EnvironmentContractError` that says `broken`, unless `kept`."""
    if not kept:
        raise EnvironmentContractError(f"the environment breaks the contract: {broken}")


def require_vector(value: Any, num_envs: int, label: str) -> None:
    """A tensor with one entry per environment."""
    require(isinstance(value, Tensor), f"{label} is {kind(value)}, not a tensor")
    require(list(value.shape) == [num_envs], f"{label} has shape {list(value.shape)}, not [{num_envs}]")


def require_observations(value: Any, num_envs: int, label: str) -> None:
    """A vector or an image for each environment."""
    require(isinstance(value, Tensor), f"{label} is {kind(value)}, not a tensor")
    shape, expected = list(value.shape), f"[{num_envs}, D] or, for images, [{num_envs}, C, H, W]"
    advice = "; give an image without channels one with unsqueeze(1)" if value.dim() == 3 else ""
    fits = value.dim() in (2, 4) and len(value) == num_envs
    require(fits, f"{label} has shape {shape}, not {expected}{advice}")


def require_device(value: Tensor, device: torch.device | str, label: str) -> None:
    """On the device of the environment."""
    device = torch.device(device)
    same = value.device.type == device.type and device.index in (None, value.device.index)
    require(same, f"{label} is on {value.device} and the environment on {device}")


def require_finite(value: Tensor, label: str) -> None:
    """No infinity and no NaN."""
    if bool(value.isfinite().all()):
        return
    row, *indices = (~value.isfinite()).nonzero()[0].tolist()
    axes = ("channel", "row", "column")[3 - len(indices) :]
    at = "".join(map(", {} {}".format, axes, indices))
    require(False, f"{label} is {value[row, *indices].item()} in environment {row}{at}")


def require_number_type(value: Tensor, label: str) -> None:
    """Floating-point numbers, or the bytes of an image."""
    is_image = value.dim() == 4
    choices = "a floating-point number" + " or torch.uint8" * is_image
    fits = value.is_floating_point() or (is_image and value.dtype == torch.uint8)
    require(fits, f"{label} is {value.dtype}, not {choices}")


def require_mask(mask: Tensor, spec: ActionSpec, label: str) -> None:
    """An action mask that leaves something to choose in each part, in each environment."""
    require(not isinstance(spec, BoxActions), f"{label} masks actions that are real numbers")
    require(mask.dtype == torch.bool, f"{label} is {mask.dtype}, not torch.bool")
    shape = [len(mask), num_actions(spec)]
    require(list(mask.shape) == shape, f"{label} has shape {list(mask.shape)}, not {shape}")
    parts = mask_parts(spec)
    for number, part in enumerate(mask.split(list(parts), dim=1) if parts else ()):
        nothing = (~part.any(1)).nonzero().flatten().tolist()
        where = f" of part {number}" if len(parts) > 1 else ""
        require(not nothing, f"{label} allows nothing{where} in environments {nothing}")


def require_codes(value: Tensor, columns: Sequence[int], label: str) -> None:
    """Zeros and ones in the columns of an observation group that are one-hot codes or switches."""
    width = value.shape[-1]
    outside = [column for column in columns if not 0 <= column < width]
    require(not outside, f"categorical_columns names columns {outside} of {label}, which has {width}")
    codes = value[..., list(columns)]
    wrong = ((codes != 0) & (codes != 1)).nonzero().tolist()
    if wrong:
        row, column, found = wrong[0][0], columns[wrong[0][-1]], codes[tuple(wrong[0])].item()
        told = "which categorical_columns names: it must be 0 or 1"
        require(False, f"{label} is {found:g} in environment {row}, column {column}, {told}")


def kind(value: object) -> str:
    """What a value is, in words."""
    shape = f" of shape {list(value.shape)}" if isinstance(value, Tensor) else ""
    return f"a {type(value).__name__}{shape}"
