"""Draws the picture of docs/objectives.md: `python docs/figures/clip.py`."""

from __future__ import annotations

import numpy as np
from matplotlib import pyplot as plt
from style import BLUE, GRAY, GREEN, ORANGE, save

CLIP_PARAM, DUAL_CLIP = 0.2, 3.0


def objective(ratio: np.ndarray, advantage: float) -> np.ndarray:
    """min(r A, clip(r) A), to maximize."""
    return np.minimum(ratio * advantage, np.clip(ratio, 1 - CLIP_PARAM, 1 + CLIP_PARAM) * advantage)


def draw() -> None:
    """One sample's objective over its ratio, better than expected at the left, worse at the right."""
    figure, panels = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
    label_offsets = {1.0: ((8, -18), (8, 10)), -1.0: ((-36, -40), (8, 10))}  # in points
    ratios = np.linspace(0.0, 4.5, 901)
    for axes, advantage in zip(panels, (1.0, -1.0), strict=True):
        axes.axvspan(1 - CLIP_PARAM, 1 + CLIP_PARAM, color=GRAY, alpha=0.12, lw=0, label="clip range")
        axes.plot(ratios, ratios * advantage, color=GRAY, ls=(0, (1, 1.5)), label="r A, without a clip")
        axes.plot(ratios, objective(ratios, advantage), color=BLUE, label="clipped")
        if advantage < 0:
            dual = np.maximum(objective(ratios, advantage), DUAL_CLIP * advantage)
            axes.plot(ratios, dual, color=ORANGE, ls=(0, (5, 1.5)), label="with dual_clip = 3")
        for ratio, offset in zip((0.5, 2.0), label_offsets[advantage], strict=True):
            value = objective(np.array(ratio), advantage).item()
            axes.plot(ratio, value, "o", color=GREEN, ms=8, zorder=3)
            label = f"r = {ratio}: loss {-value:.1f}"
            axes.annotate(label, (ratio, value), offset, textcoords="offset points", color=GREEN)
        axes.set(xlabel="ratio r = new(a) / old(a)", xlim=(0, 4.5), title=f"A = {advantage:+.0f}")
        axes.legend(loc="lower right" if advantage > 0 else "upper right")
    panels[0].set(ylim=(-0.2, 2.6), ylabel="objective of one sample (loss = -objective)")
    panels[1].set(ylim=(-4.6, 0.2))
    save(figure, "clip")


if __name__ == "__main__":
    draw()
