"""`N` robots stepped together by MuJoCo's batched physics.

A thin layer over `mujoco.batch.Batch`: it binds the few fields that the environment reads, turns them into
float32 arrays in the frames that a controller uses, and repairs simulations that diverge.
"""

# pyright: reportAttributeAccessIssue=false
# (MuJoCo's compiled modules carry no types.)

from __future__ import annotations

import mujoco
import numpy as np
from mujoco.batch import Batch, SimulationError

from surefoot.envs.quadruped.robot import FOOT_RADIUS, HOME, JOINTS, LEGS, NUM_LEGS, PAYLOAD_HEIGHT, TRUNK
from surefoot.machine import available_cores

CONTACT_FORCE = 1.0
"""A foot that presses harder than this (N) counts as touching the floor."""

SPEED_LIMIT = 200.0
"""A generalized velocity beyond this (m/s, rad/s) is a numerical failure, not a movement."""


class Physics:
    """The simulations and what can be measured on them.

    MuJoCo's free joint keeps the linear velocity in the world frame and the angular velocity in the body
    frame; `body_velocity` and `angular_velocity` are both in the body frame.

    Attributes:
        base_position: `[N, 3]` m, world frame.
        quaternion: `[N, 4]` orientation of the trunk, w first.
        world_velocity: `[N, 3]` m/s, world frame.
        body_velocity: `[N, 3]` m/s, body frame.
        angular_velocity: `[N, 3]` rad/s, body frame.
        projected_gravity: `[N, 3]` direction of gravity, body frame.
        joint_position, joint_velocity: `[N, 12]` rad, rad/s.
        torque: `[N, 12]` N m, actuator force within the motor's limits.
        foot_height: `[N, 4]` m, lowest point of each foot above the floor.
        foot_position, foot_velocity: `[N, 4, 3]` m, m/s, center of each foot, world frame.
        foot_contact: `[N, 4]` bool.
        friction: `[N]` sliding friction of the feet; written by `set_friction`.
        payload: `[N]` kg on the trunk; written by `set_payload`.
    """

    base_position: np.ndarray
    quaternion: np.ndarray
    world_velocity: np.ndarray
    body_velocity: np.ndarray
    angular_velocity: np.ndarray
    projected_gravity: np.ndarray
    joint_position: np.ndarray
    joint_velocity: np.ndarray
    torque: np.ndarray
    foot_height: np.ndarray
    foot_position: np.ndarray
    foot_velocity: np.ndarray
    foot_contact: np.ndarray

    def __init__(
        self, model: mujoco.MjModel, num_envs: int, *, control_dt: float, num_threads: int | None = None
    ) -> None:
        self.model = model
        self.substeps = round(control_dt / model.opt.timestep)
        self.batch = Batch(model, num_envs, available_cores() if num_threads is None else num_threads)
        self.qpos = self.batch.bind("qpos")
        self.qvel = self.batch.bind("qvel")
        self._ctrl = self.batch.bind("ctrl")
        self._torque = self.batch.bind("actuator_force")
        self._sensors = self.batch.bind("sensordata")
        self._check_layout()

        self._foot_geoms = [model.geom(leg).id for leg in LEGS]
        self._foot_friction = self.batch.expand("geom_friction")
        self.friction = self._foot_friction[:, self._foot_geoms[0], 0].astype(np.float32)
        self.payload = np.zeros(num_envs, dtype=np.float32)
        self._home = model.key(HOME)
        self.place(np.arange(num_envs), self._home.qpos, self._home.qvel)

    def _check_layout(self) -> None:
        """The slices below take joints, motors and sensors in the order of `robot.py`."""
        joints = tuple(self.model.joint(1 + i).name for i in range(len(JOINTS)))
        motors = tuple(self.model.actuator(i).name for i in range(len(JOINTS)))
        sensors = tuple(self.model.sensor(i).name for i in range(self.model.nsensor))
        expected = tuple(f"{leg}_{kind}" for kind in ("force", "position", "velocity") for leg in LEGS)
        assert joints == motors == JOINTS
        assert sensors == expected

    def step(self, targets: np.ndarray) -> np.ndarray:
        """Hold joint position `targets` (`[N, 12]` rad) for one control step.

        A simulation in which MuJoCo raises, warns, or reaches an absurd or non-finite velocity is put back
        on its feet at once, so that everything read afterwards is finite; the others are not affected.

        Returns:
            `[N]` bool, the simulations that diverged.
        """
        self._ctrl[:] = targets
        self.batch.warning[:] = 0
        diverged = np.zeros(self.batch.nsim, dtype=bool)
        try:
            # No stage after the last substep: feet and torques lag by one substep (5 ms), which costs
            # nothing, while computing them anew would cost 15 % of the speed. Base and joints come from the
            # state itself.
            self.batch.step(nstep=self.substeps)
        except SimulationError as error:
            diverged[error.ids] = True
        # MuJoCo resets a simulation by itself when its state is bad, and
        # a warning is the only trace that it leaves.
        diverged |= self.batch.warning.any(axis=(1, 2))
        diverged |= ~(np.abs(self.qvel).max(axis=1) < SPEED_LIMIT)
        if diverged.any():
            self.place(np.flatnonzero(diverged), self._home.qpos, self._home.qvel)
        else:
            self._read()
        return diverged

    def place(self, ids: np.ndarray, qpos: np.ndarray, qvel: np.ndarray) -> None:
        """Put simulations `ids` into a new state, with no memory of the old one.

        Args:
            ids: `[K]` simulations.
            qpos: `[K, 19]` or `[19]` positions.
            qvel: `[K, 18]` or `[18]` velocities.
        """
        ids = ids.astype(np.int32)
        self.batch.reset(ids, stage=mujoco.mjtStage.mjSTAGE_NONE.value)
        self.qpos[ids] = qpos
        self.qvel[ids] = qvel
        self._ctrl[ids] = self.qpos[ids, 7:]
        self.batch.forward(ids)
        self._read()

    def set_friction(self, ids: np.ndarray, friction: np.ndarray) -> None:
        """Set the sliding friction of the feet of simulations `ids`; `[K]`."""
        self._foot_friction[ids[:, None], self._foot_geoms, 0] = friction[:, None]
        self.friction[ids] = friction

    def set_payload(self, ids: np.ndarray, payload: np.ndarray) -> None:
        """Load the backs of simulations `ids` with a point mass each, `[K]` kg, `PAYLOAD_HEIGHT` up.

        It is one rigid body with the trunk: mass, center of mass and inertia change, and with them the
        constants that MuJoCo derives, such as the apparent inertia that contacts feel.
        """
        trunk = self.model.body(TRUNK)
        mass = trunk.mass + payload
        self.batch.expand("body_mass")[ids, trunk.id] = mass
        self.batch.expand("body_ipos")[ids, trunk.id, 2] = trunk.ipos[2] + PAYLOAD_HEIGHT * payload / mass
        # The parallel axis theorem, for two masses above each other: rolling and pitching get harder.
        added = PAYLOAD_HEIGHT**2 * trunk.mass * payload / mass
        self.batch.expand("body_inertia")[ids, trunk.id, :2] = trunk.inertia[:2] + added[:, None]
        self.batch.set_const(ids.astype(np.int32))
        self.payload[ids] = payload

    def _read(self) -> None:
        """Copy the bound fields into float32 arrays and rotate velocities into the body frame."""
        qpos = self.qpos.astype(np.float32)
        qvel = self.qvel.astype(np.float32)
        sensors = self._sensors.astype(np.float32)
        self.base_position, self.quaternion = qpos[:, :3], qpos[:, 3:7]
        self.joint_position, self.joint_velocity = qpos[:, 7:], qvel[:, 6:]
        self.world_velocity, self.angular_velocity = qvel[:, :3], qvel[:, 3:6]
        rotation = rotation_matrix(self.quaternion)
        self.body_velocity = np.einsum("nij,ni->nj", rotation, self.world_velocity)
        self.projected_gravity = -rotation[:, 2]
        self.torque = self._torque.astype(np.float32)
        self.foot_contact = sensors[:, :NUM_LEGS] > CONTACT_FORCE
        self.foot_position = sensors[:, 4:16].reshape(-1, NUM_LEGS, 3)
        self.foot_velocity = sensors[:, 16:28].reshape(-1, NUM_LEGS, 3)
        self.foot_height = self.foot_position[:, :, 2] - FOOT_RADIUS


def rotation_matrix(quaternion: np.ndarray) -> np.ndarray:
    """Body-to-world rotation `[N, 3, 3]` of unit quaternions `[N, 4]`, w first."""
    w, x, y, z = quaternion.T
    rotation = np.empty((len(quaternion), 3, 3), dtype=quaternion.dtype)
    rotation[:, 0, 0] = 1 - 2 * (y * y + z * z)
    rotation[:, 0, 1] = 2 * (x * y - w * z)
    rotation[:, 0, 2] = 2 * (x * z + w * y)
    rotation[:, 1, 0] = 2 * (x * y + w * z)
    rotation[:, 1, 1] = 1 - 2 * (x * x + z * z)
    rotation[:, 1, 2] = 2 * (y * z - w * x)
    rotation[:, 2, 0] = 2 * (x * z - w * y)
    rotation[:, 2, 1] = 2 * (y * z + w * x)
    rotation[:, 2, 2] = 1 - 2 * (x * x + y * y)
    return rotation
