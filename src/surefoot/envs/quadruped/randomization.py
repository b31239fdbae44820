"""What differs from robot to robot and from moment to moment, so that the policy copes with a real one."""

from __future__ import annotations

import math

import numpy as np

from surefoot.envs.quadruped.robot import DEFAULT_POSE, JOINT_LOWER, JOINT_UPPER, NUM_JOINTS, START_HEIGHT


def start_states(num: int, joint_noise: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Standing robots at the origin that face anywhere, each joint off by up to `joint_noise` rad.

    Returns:
        Positions `[num, 19]` and velocities `[num, 18]` of the free joint and the twelve hinges.
    """
    yaw = rng.uniform(-math.pi, math.pi, num)
    pose = DEFAULT_POSE + rng.uniform(-joint_noise, joint_noise, (num, NUM_JOINTS))
    qpos = np.zeros((num, 7 + NUM_JOINTS))
    qpos[:, 2] = START_HEIGHT
    qpos[:, 3] = np.cos(0.5 * yaw)
    qpos[:, 6] = np.sin(0.5 * yaw)
    qpos[:, 7:] = np.clip(pose, JOINT_LOWER, JOINT_UPPER)
    return qpos, np.zeros((num, 6 + NUM_JOINTS))


def pushes(
    num_envs: int, probability: float, speed: float, turn: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Choose robots to push, each with `probability`, and how.

    Returns:
        Indices `[K]` and changes of the base velocity `[K, 6]`: up to `speed` m/s along world x and y, up
        to `turn` rad/s about each body axis.
    """
    ids = np.flatnonzero(rng.random(num_envs) < probability)
    kicks = np.zeros((len(ids), 6))
    kicks[:, :2] = rng.uniform(-speed, speed, (len(ids), 2))
    kicks[:, 3:] = rng.uniform(-turn, turn, (len(ids), 3))
    return ids, kicks
