"""The names that users write stay, and every name that a package offers exists."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import surefoot

PUBLIC = {
    "surefoot": "make train distill evaluate load_policy __version__",
    "surefoot.functional": "gae normalize_advantages clipped_surrogate value_loss approx_kl "
    "explained_variance",
    "surefoot.distributions": "Gaussian Categorical",
    "surefoot.runners": "OnPolicyRunner DistillationRunner",
    "surefoot.envs": "VecEnv check_vec_env make_gymnasium",
    "surefoot.envs.quadruped": "QuadrupedEnv",
}
MODULES = sorted(module.name for module in pkgutil.walk_packages(surefoot.__path__, "surefoot."))


@pytest.mark.parametrize(("module", "names"), PUBLIC.items(), ids=PUBLIC)
def test_public_names_resolve(module, names):
    package = importlib.import_module(module)
    for name in names.split():
        assert getattr(package, name) is not None
        assert name in package.__all__


@pytest.mark.parametrize("module", ["surefoot", *MODULES])
def test_all_resolves(module):
    imported = importlib.import_module(module)
    names = getattr(imported, "__all__", [])
    assert len(set(names)) == len(names)
    for name in names:
        assert hasattr(imported, name)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'surefoot' has no attribute 'trian'"):
        surefoot.trian  # noqa: B018


def test_dir_offers_what_is_loaded_on_first_use():
    assert {"make", "train", "evaluate", "load_policy", "__version__"} <= set(dir(surefoot))


def test_version_is_that_of_the_installed_package():
    from importlib.metadata import version

    assert surefoot.__version__ == version("surefoot")
