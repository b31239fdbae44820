"""Is a model its own mirror image? Everything that moves it is compared: masses, joints, motors, feet, pose.

A robot whose numbers are mirrored although its body is not learns from experience that it can never have.
"""

# pyright: reportAttributeAccessIssue=false
# (MuJoCo's compiled modules carry no types.)

from __future__ import annotations

from collections.abc import Iterator

import mujoco
import numpy as np

from surefoot.envs.quadruped.mirror import Reflection
from surefoot.envs.quadruped.physics import rotation_matrix
from surefoot.envs.quadruped.robot import HOME, LEGS, TRUNK
from surefoot.errors import SymmetryError

PARTS = ("hip", "thigh", "calf")

Comparison = tuple[str, str, np.ndarray, np.ndarray]
"""Whose, what, the value, and the mirror image of the other one's."""


def require_symmetry(model: mujoco.MjModel, reflection: Reflection) -> None:
    """Raise a SymmetryError unless the model is its own mirror image; it lists what differs."""
    reasons = asymmetries(model, reflection)
    if reasons:
        raise SymmetryError(f"the robot has no {reflection.name} symmetry", reasons)


def asymmetries(model: mujoco.MjModel, reflection: Reflection, *, tolerance: float = 1e-6) -> list[str]:
    """Say what differs between a model and its mirror image.

    Args:
        model: with the names of `robot.py`.
        reflection: at which plane.
        tolerance: largest absolute difference that counts as none, in the units of the model.

    Returns:
        One sentence for each difference; none where the model is symmetric.
    """
    found = []
    for whose, what, value, mirrored in _comparisons(model, reflection):
        if not np.allclose(value, mirrored, rtol=0.0, atol=tolerance):
            found.append(f"{whose}: {what} {_numbers(value)}, in the mirror {_numbers(mirrored)}")
    return found


def _comparisons(model: mujoco.MjModel, reflection: Reflection) -> Iterator[Comparison]:
    yield from _body(model, reflection, TRUNK, TRUNK)
    for place, leg in enumerate(LEGS):
        partner = reflection.partner(leg)
        if reflection.legs[place] < place:
            continue  # compared already, the other way around
        for number, part in enumerate(PARTS):
            one, other = f"{leg}_{part}", f"{partner}_{part}"
            sign = reflection.joint_signs[3 * place + number]
            yield from _placement(model, reflection, one, other)
            yield from _body(model, reflection, one, other)
            yield from _joint(model, reflection, one, other, sign)
            yield from _motor(model, one, other, sign)
        yield from _foot(model, reflection, leg, partner)
    yield from _standing_pose(model, reflection)


def _placement(model: mujoco.MjModel, reflection: Reflection, one: str, other: str) -> Iterator[Comparison]:
    """Where a link is attached, and how it is turned."""
    a, b = model.body(one), model.body(other)
    turned = rotation_matrix(np.array([a.quat, b.quat]))
    yield _pair(one, other), "position", a.pos, reflection.vector * b.pos
    yield _pair(one, other), "orientation", turned[0], _mirrored_matrix(turned[1], reflection)


def _body(model: mujoco.MjModel, reflection: Reflection, one: str, other: str) -> Iterator[Comparison]:
    a, b = model.body(one), model.body(other)
    axes = rotation_matrix(np.array([a.iquat, b.iquat]))
    inertia = axes @ (np.array([a.inertia, b.inertia])[:, :, None] * axes.transpose(0, 2, 1))
    whose = _pair(one, other)
    yield whose, "mass", a.mass, b.mass
    yield whose, "center of mass", a.ipos, reflection.vector * b.ipos
    yield whose, "inertia", inertia[0], _mirrored_matrix(inertia[1], reflection)


def _joint(
    model: mujoco.MjModel, reflection: Reflection, one: str, other: str, sign: float
) -> Iterator[Comparison]:
    a, b = model.joint(one), model.joint(other)
    whose = _pair(one, other)
    yield whose, "joint position", a.pos, reflection.vector * b.pos
    yield whose, "joint axis", a.axis, sign * reflection.rotation * b.axis
    yield whose, "joint range", a.range, np.sort(sign * b.range)
    for what in ("stiffness", "damping", "armature", "frictionloss"):
        yield whose, what, np.asarray(getattr(a, what)), np.asarray(getattr(b, what))


def _motor(model: mujoco.MjModel, one: str, other: str, sign: float) -> Iterator[Comparison]:
    a, b = model.actuator(one), model.actuator(other)
    whose = _pair(one, other)
    yield whose, "motor gain", a.gainprm, b.gainprm
    yield whose, "motor offset", a.biasprm[:1], sign * b.biasprm[:1]
    yield whose, "motor stiffness and damping", a.biasprm[1:], b.biasprm[1:]
    yield whose, "motor gear", a.gear, b.gear
    yield whose, "motor limits", a.forcerange, np.sort(sign * b.forcerange)
    yield whose, "motor targets", a.ctrlrange, np.sort(sign * b.ctrlrange)


def _foot(model: mujoco.MjModel, reflection: Reflection, one: str, other: str) -> Iterator[Comparison]:
    a, b = model.geom(one), model.geom(other)
    whose = f"feet {_pair(one, other)}"
    yield whose, "position", a.pos, reflection.vector * b.pos
    for what in ("size", "friction", "condim", "solref", "solimp"):
        yield whose, what, np.asarray(getattr(a, what)), np.asarray(getattr(b, what))


def _standing_pose(model: mujoco.MjModel, reflection: Reflection) -> Iterator[Comparison]:
    """Zero actions ask for it, so that it has to be its own mirror image."""
    home = model.key(HOME)
    trunk = rotation_matrix(home.qpos[None, 3:7])[0]
    yield "standing pose", "orientation", trunk, _mirrored_matrix(trunk, reflection)
    for what, pose in (("joints", home.qpos[7:]), ("motor targets", home.ctrl)):
        yield "standing pose", what, pose, reflection.joint_signs * pose[reflection.joints]


def _mirrored_matrix(matrix: np.ndarray, reflection: Reflection) -> np.ndarray:
    """A rotation or an inertia `[3, 3]` in the mirror."""
    return reflection.vector[:, None] * matrix * reflection.vector


def _pair(one: str, other: str) -> str:
    return one if one == other else f"{one} and {other}"


def _numbers(values: np.ndarray) -> str:
    return np.array2string(values + 0.0, precision=6, separator=", ").replace("\n", "")
