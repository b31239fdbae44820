"""The reference trot: when each foot should be in the air, and how high.

One phase in [0, 1) drives all four feet. Diagonal pairs move together, the second pair half a period after
the first, so that the left-right mirror image of the trot is the same trot half a period later. A foot
stands for the first half of its own cycle and swings for the second.
"""

from __future__ import annotations

import numpy as np

LEG_OFFSETS = np.array([0.0, 0.5, 0.5, 0.0], dtype=np.float32)
"""Phase offset of each leg (FR, FL, RR, RL), in periods."""


def leg_phases(phase: np.ndarray) -> np.ndarray:
    """Phase of each leg, `[N, 4]` in [0, 1), from the phase of the gait `[N]`."""
    return (phase[:, None] + LEG_OFFSETS) % 1.0


def stance_schedule(phase: np.ndarray, standing: np.ndarray) -> np.ndarray:
    """Which feet should be on the floor, `[N, 4]` bool; all of them where the command is to stand."""
    return (leg_phases(phase) < 0.5) | standing[:, None]


def foot_clearance(phase: np.ndarray, standing: np.ndarray, swing_height: float) -> np.ndarray:
    """Height (m) of each foot's lowest point above the floor, `[N, 4]`.

    The swing is a raised cosine: it lifts off and touches down with zero vertical speed, which keeps
    impacts soft.
    """
    swing = np.clip(2.0 * leg_phases(phase) - 1.0, 0.0, 1.0)
    height = 0.5 * swing_height * (1.0 - np.cos(2.0 * np.pi * swing))
    return np.where(standing[:, None], 0.0, height).astype(np.float32)


def clock(phase: np.ndarray, standing: np.ndarray) -> np.ndarray:
    """Sine and cosine of the gait phase, `[N, 2]`; zeros where the command is to stand."""
    angle = 2.0 * np.pi * phase
    moving = ~standing
    return np.stack((np.sin(angle) * moving, np.cos(angle) * moving), axis=1)
