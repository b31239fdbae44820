"""Observation sets: rsl_rl's rules, and what is said about them."""

import pytest

from surefoot.errors import ConfigError
from surefoot.runners.obs_sets import describe_obs_sets, resolve_obs_groups

SHAPES = {"policy": (4,), "critic": (7,), "depth": (1, 16, 16)}


def test_a_configured_set_stays_as_it_is():
    sets = {"actor": ("policy", "depth"), "critic": ("critic",)}
    assert resolve_obs_groups(sets, SHAPES, ["actor", "critic"]) == (sets, [])


def test_a_missing_set_reads_the_group_of_its_name_or_else_policy():
    resolved, remarks = resolve_obs_groups({}, SHAPES, ["actor", "critic"])
    assert resolved == {"actor": ("policy",), "critic": ("critic",)}
    assert remarks == [
        "obs_groups has no set 'actor': it reads the group 'policy'",
        "obs_groups has no set 'critic': it reads the group 'critic'",
    ]


def test_the_callers_sets_are_not_changed():
    sets = {"actor": ["policy"]}
    resolve_obs_groups(sets, SHAPES, ["actor", "critic"])
    assert sets == {"actor": ["policy"]}


@pytest.mark.parametrize(
    ("sets", "shapes", "message"),
    [
        ({"actor": ()}, SHAPES, "obs_groups.actor is empty; offered: policy, critic, depth"),
        ({"actor": ("polcy",)}, SHAPES, "no observation group 'polcy'; did you mean 'policy'"),
        ({"actor": ("policy", "policy")}, SHAPES, "names a group twice"),
        ({"actor": ("state",)}, {"state": (3,)}, "offers neither 'critic' nor 'policy'"),
    ],
)
def test_sets_that_do_not_fit_are_refused(sets, shapes, message):
    with pytest.raises(ConfigError, match=message):
        resolve_obs_groups(sets, shapes, ["actor", "critic"])


def test_the_summary_names_every_set_its_groups_and_their_shapes():
    text = describe_obs_sets({"actor": ("policy", "depth"), "critic": ("critic",)}, SHAPES)
    assert text == "Observations: actor = policy [4] + depth [1x16x16]; critic = critic [7]"


def test_an_environment_may_say_what_is_read_by_default():
    resolved, remarks = resolve_obs_groups(
        {"critic": ("critic",)}, SHAPES, ["actor", "critic"], ("policy", "depth")
    )
    assert resolved == {"actor": ("policy", "depth"), "critic": ("critic",)}
    assert remarks == []
