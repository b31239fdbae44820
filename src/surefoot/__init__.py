"""PPO for legged robots and Gymnasium tasks.

import surefoot

run = surefoot.train("CartPole-v1", seconds=30)
print(surefoot.evaluate(run.run_dir))
policy = surefoot.load_policy(run.run_dir)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surefoot.tasks.run import distill, evaluate, load_policy, make, train

    __version__: str

__all__ = ["__version__", "distill", "evaluate", "load_policy", "make", "train"]


def __getattr__(name: str) -> Any:  # on first use: torch alone takes seconds to import
    if name == "__version__":
        from importlib.metadata import version

        return version("surefoot")
    if name in __all__:
        from importlib import import_module

        return getattr(import_module("surefoot.tasks.run"), name)
    raise AttributeError(f"module 'surefoot' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
