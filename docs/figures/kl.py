"""Draws the two pictures of docs/kl.md: `python docs/figures/kl.py`.

Old policy N(0, 1), new policy N(d, 1), so that log r = d a - d^2 / 2 and KL(old || new) = d^2 / 2.
"""

from __future__ import annotations

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from style import BLUE, GRAY, GREEN, ORANGE, PURPLE, save

# Name -> (term as a function of r, color, dashes).
TERMS = {
    "k1 = -log r": (lambda r: -np.log(r), BLUE, (0, (1, 1))),
    "(r - 1)² / 2, the note's": (lambda r: (r - 1) ** 2 / 2, ORANGE, (0, (5, 1.5))),
    "k2 = (log r)² / 2": (lambda r: np.log(r) ** 2 / 2, PURPLE, (0, (5, 1.5, 1, 1.5))),
    "k3 = (r - 1) - log r": (lambda r: r - 1 - np.log(r), GREEN, "solid"),
}


def draw_terms() -> None:
    """One sample's contribution to each estimate over its ratio; at the right the clip range enlarged."""
    figure, (wide, near) = plt.subplots(1, 2, figsize=(12, 5.2), layout="constrained")
    for axes, (low, high) in ((wide, (0.4, 2.0)), (near, (0.76, 1.24))):
        ratios = np.linspace(low, high, 400)
        axes.axvspan(0.8, 1.2, color=GRAY, alpha=0.12, lw=0)
        axes.axhline(0.0, color="black", lw=0.8)
        for name, (term, color, dashes) in TERMS.items():
            axes.plot(ratios, term(ratios), color=color, ls=dashes, label=name)
        axes.set(xlabel="ratio r = new(a) / old(a)", xlim=(low, high))
    wide.set(ylabel="contribution of one sample", ylim=(-0.75, 0.95), title="r from 0.4 to 2")
    wide.text(1.0, -0.7, "clip range\n0.8 to 1.2", ha="center", color=GRAY)
    wide.legend(loc="upper right")
    near.set(ylim=(-0.002, 0.034), title="the clip range, enlarged")
    label_edges(wide, {"k1": 0.31}, {"k1": -0.33})
    label_edges(near, {"k2": 0.0287, "k3": 0.0245, "(r": 0.0203}, {"(r": 0.0245, "k3": 0.0208, "k2": 0.0171})
    save(figure, "kl-terms")


def label_edges(axes: Axes, left: dict[str, float], right: dict[str, float]) -> None:
    """Write the values at r = 0.8 and 1.2 at the given heights, by the start of the term's name."""
    for edge, heights, side in ((0.8, left, "left"), (1.2, right, "right")):
        x = edge + (0.045 if edge < 1 else -0.045)
        for start, height in heights.items():
            term, color, _ = next(value for name, value in TERMS.items() if name.startswith(start))
            axes.plot(edge, term(edge), "o", color=color, ms=6, zorder=3)
            arrow = {"arrowstyle": "-", "color": color, "lw": 1}
            axes.annotate(f"{term(edge):.4f}", (edge, term(edge)), (x, height), color=color, ha=side,
                          va="center", arrowprops=arrow)  # fmt: skip


def draw_bias_and_spread(num_samples: int = 100_000) -> None:
    """Mean and standard deviation of each term, in units of the exact KL, over the exact KL."""
    figure, (bias, spread) = plt.subplots(1, 2, figsize=(12, 5.2), layout="constrained")
    exact = np.geomspace(1e-3, 2.0, 15)
    distance = np.sqrt(2 * exact)[:, None]
    noise = np.random.default_rng(0).standard_normal(num_samples)
    ratios = np.exp(distance * noise - distance**2 / 2)
    kl = np.geomspace(1e-3, 2.0, 300)
    for name, (term, color, dashes) in TERMS.items():
        mean, std = moments(name, 2 * kl)
        samples = term(ratios)
        for axes, line, dots in ((bias, mean, samples.mean(1)), (spread, std, samples.std(1))):
            axes.plot(kl, line / kl, color=color, ls=dashes, label=name)
            axes.plot(exact, dots / exact, "o", color=color, ms=5, mfc="white", mew=1.5)
    for axes in (bias, spread):
        axes.axvline(0.01, color=GRAY, lw=1)
        axes.set(xscale="log", xlabel="exact KL(old || new)")
        axes.xaxis.set_major_formatter("{x:g}")
    bias.text(0.0107, 0.83, "default target\n0.01", color=GRAY)
    bias.set(ylim=(0.8, 2.2), ylabel="mean of the terms / exact KL", title="Bias: 1 is right")
    spread.set(
        yscale="log", ylim=(0.7, 100), ylabel="std of one term / exact KL", title="Spread: low is good"
    )
    spread.yaxis.set_major_formatter("{x:g}")
    bias.legend(loc="upper left")
    save(figure, "kl-estimators")


def moments(name: str, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Exact mean and standard deviation of a term, q = d^2; from E_old[r^n] = exp(n (n - 1) q / 2)."""
    if name.startswith("k1"):
        return q / 2, np.sqrt(q)
    if name.startswith("k2"):
        return q / 2 + q**2 / 8, np.sqrt(q**2 / 2 + q**3 / 4)
    if name.startswith("k3"):
        return q / 2, np.sqrt(np.expm1(q) - q)
    mean = np.expm1(q) / 2
    fourth = np.exp(6 * q) - 4 * np.exp(3 * q) + 6 * np.exp(q) - 3
    return mean, np.sqrt(fourth / 4 - mean**2)


if __name__ == "__main__":
    draw_terms()
    draw_bias_and_spread()
