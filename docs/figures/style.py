"""The look that all figures share."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

IMAGES = Path(__file__).resolve().parent.parent / "images"

# Okabe and Ito's colors, told apart by every kind of color vision; dash patterns differ, too.
BLUE, ORANGE, GREEN, PURPLE, GRAY = "#0072B2", "#D55E00", "#009E73", "#AA4499", "#666666"

mpl.use("Agg")
mpl.rcParams.update(
    {
        "axes.grid": True,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "figure.facecolor": "white",
        "font.size": 12,
        "grid.alpha": 0.25,
        "legend.edgecolor": "none",
        "legend.framealpha": 1.0,
        "lines.linewidth": 2.2,
        "savefig.facecolor": "white",
    }
)


def save(figure: Figure, name: str) -> None:
    """Write `docs/images/<name>.png`, the same bytes on every run."""
    IMAGES.mkdir(exist_ok=True)
    figure.savefig(IMAGES / f"{name}.png", dpi=130, metadata={"Software": None})
