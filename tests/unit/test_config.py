from dataclasses import dataclass, field
from typing import Literal

import pytest
import yaml

from surefoot.config import expand_path, from_mapping, override, require, to_mapping
from surefoot.errors import ConfigError
from surefoot.runners import RunnerConfig


@dataclass(frozen=True)
class Inner:
    rate: float = 0.5
    count: int = 3
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        require(self, "high", self.high > self.low, f"above low = {self.low}")


@dataclass(frozen=True)
class Outer:
    inner: Inner = field(default_factory=Inner)
    dims: tuple[int, ...] = (4, 5)
    pair: tuple[float, float] = (0.0, 1.0)
    kind: Literal["red", "green"] = "red"
    limit: float | None = None
    mixed: int | str = 1
    flag: bool = False
    name: str = "x"
    sets: dict[str, tuple[str, ...]] = field(default_factory=lambda: {"actor": ("policy",)})


@dataclass(frozen=True)
class Needy:
    task: str
    number: int = 1


def message(call, *arguments) -> str:
    with pytest.raises(ConfigError) as error:
        call(*arguments)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_fields_left_out_keep_their_defaults():
    assert from_mapping(Outer, {"inner": {"rate": 2}}) == Outer(inner=Inner(rate=2.0))


def test_the_callers_mapping_is_not_changed():
    values = {"inner": {"rate": 2}, "dims": [1, 2], "sets": {"actor": ["a"]}}
    cfg = from_mapping(Outer, values)
    assert values == {"inner": {"rate": 2}, "dims": [1, 2], "sets": {"actor": ["a"]}}
    values["sets"]["actor"].append("b")
    assert cfg.sets == {"actor": ("a",)}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"inner": {"rat": 1}}, "unknown setting 'inner.rat'; did you mean 'rate'?"),
        ({"zzz": 1}, "unknown setting 'zzz'; valid: dims, flag, inner, "),
        ({"inner": {"rate": "fast"}}, "inner.rate = 'fast': expected a number"),
        ({"inner": {"rate": True}}, "inner.rate = True: expected a number"),
        ({"inner": {"count": 1.5}}, "inner.count = 1.5: expected an integer"),
        ({"inner": {"count": True}}, "inner.count = True: expected an integer"),
        ({"inner": {"count": "three"}}, "inner.count = 'three': expected an integer"),
        ({"inner": 3}, "inner = 3: expected a mapping"),
        ({"inner": None}, "inner = None: expected a mapping"),
        ({"dims": 64}, "dims = 64: expected a list [an integer, ...]"),
        ({"dims": [1, "a"]}, "dims[1] = 'a': expected an integer"),
        ({"pair": [1.0]}, "pair = [1.0]: expected a list [a number, a number]"),
        ({"pair": [1.0, None]}, "pair[1] = None: expected a number"),
        ({"kind": "blue"}, "kind = 'blue': expected one of red, green"),
        ({"flag": "yes"}, "flag = 'yes': expected true or false"),
        ({"flag": 1}, "flag = 1: expected true or false"),
        ({"name": 5}, "name = 5: expected text"),
        ({"limit": "much"}, "limit = 'much': expected a number"),
        ({"sets": {"actor": "policy"}}, "sets.actor = 'policy': expected a list [text, ...]"),
        ({"inner": {"low": 2.0}}, "Inner.high = 1.0: expected above low = 2.0"),
    ],
)
def test_mistakes_are_named_with_their_path(values, expected):
    assert expected in message(from_mapping, Outer, values)


def test_a_setting_that_has_no_default_is_asked_for():
    assert "missing setting 'task'" in message(from_mapping, Needy, {"number": 2})


@pytest.mark.parametrize("values", [None, [], "text", 3])
def test_something_else_than_a_mapping_is_refused(values):
    assert "expected a mapping" in message(from_mapping, Outer, values)


@pytest.mark.parametrize(
    ("values", "attribute", "expected"),
    [
        ({"inner": {"rate": 3}}, "inner", Inner(rate=3.0)),
        ({"inner": {"rate": "1e-3"}}, "inner", Inner(rate=0.001)),  # YAML 1.1 reads 1e-3 as text
        ({"inner": {"count": 4.0}}, "inner", Inner(count=4)),
        ({"inner": Inner(count=9)}, "inner", Inner(count=9)),
        ({"dims": []}, "dims", ()),
        ({"dims": [7, 8, 9]}, "dims", (7, 8, 9)),
        ({"limit": None}, "limit", None),
        ({"limit": 2}, "limit", 2.0),
        ({"mixed": "text"}, "mixed", "text"),
        ({"mixed": 5}, "mixed", 5),
        ({"kind": "green"}, "kind", "green"),
        ({"sets": {"actor": ["a", "b"], "critic": []}}, "sets", {"actor": ("a", "b"), "critic": ()}),
    ],
)
def test_values_are_converted_where_nothing_is_lost(values, attribute, expected):
    assert getattr(from_mapping(Outer, values), attribute) == expected


def test_numbers_become_floats_where_floats_are_asked_for():
    assert isinstance(from_mapping(Outer, {"inner": {"rate": 3}}).inner.rate, float)
    assert isinstance(from_mapping(Outer, {"inner": {"count": 4.0}}).inner.count, int)


def test_override_reads_text_as_yaml():
    settings = {
        "inner.rate": "1e-3", "dims": "[8, 8]", "limit": "null", "flag": "true", "kind": "green",
        "name": "'5'",
    }  # fmt: skip
    cfg = override(Outer(limit=1.0), settings)
    assert cfg == Outer(inner=Inner(rate=0.001), dims=(8, 8), limit=None, flag=True, kind="green", name="5")


def test_override_changes_a_copy():
    cfg = Outer()
    assert override(cfg, {"inner.rate": 9.0}).inner.rate == 9.0
    assert cfg == Outer()


def test_settings_that_belong_together_change_together():
    cfg = override(Outer(), {"inner.low": "5", "inner.high": "6"})
    assert (cfg.inner.low, cfg.inner.high) == (5.0, 6.0)
    assert message(override, Outer(), {"inner.low": "5"}) == "Inner.high = 1.0: expected above low = 5.0"


def test_override_reaches_into_dictionaries():
    assert override(Outer(), {"sets.actor": "[a, b]"}).sets == {"actor": ("a", "b")}


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("inner.rat", "1", "unknown setting 'inner.rat': no 'rat' in 'inner'; did you mean 'rate'?"),
        ("iner.rate", "1", "unknown setting 'iner.rate': no 'iner'; did you mean 'inner'"),
        ("name.x", "1", "unknown setting 'name.x': no 'x' in 'name'"),
        ("dims", "[1", "setting 'dims': cannot read value '[1'"),
        ("inner.rate", "fast", "inner.rate = 'fast': expected a number"),
    ],
)
def test_override_names_what_is_wrong(path, value, expected):
    assert message(override, Outer(), {path: value}).startswith(expected)


@dataclass(frozen=True)
class Leaf:
    a: int = 1


@dataclass(frozen=True)
class Branch:
    a: Leaf = field(default_factory=Leaf)


def test_a_path_may_repeat_a_name():
    assert override(Branch(), {"a.a": "2"}) == Branch(Leaf(2))


TREE = {
    "algorithm": {"gamma": 1},
    "actor": {"init": 1, "dims": 2},
    "critic": {"init": 1},
    "seed": 0,
    "env": {"seed": 1},
}


@pytest.mark.parametrize(
    ("name", "path"),
    [("gamma", "algorithm.gamma"), ("actor.init", "actor.init"), ("dims", "actor.dims"), ("seed", "seed")],
)
def test_the_end_of_a_path_is_completed(name, path):
    assert expand_path(name, TREE) == path


def test_an_ambiguous_end_names_the_candidates():
    assert message(expand_path, "init", TREE) == "setting 'init' is ambiguous: actor.init or critic.init"


def test_an_unknown_end_names_the_nearest():
    assert message(expand_path, "gama", TREE) == "unknown setting 'gama'; did you mean 'gamma'?"
    assert message(expand_path, "qqqq", TREE).startswith("unknown setting 'qqqq'; config.yaml")
    assert "unknown setting 'amma'" in message(
        expand_path, "amma", TREE
    )  # a part of a word is no end of a path


def test_runner_settings_survive_a_file():
    cfg = override(
        RunnerConfig(),
        {
            "algorithm.learning_rate": "3e-5", "algorithm.schedule": "linear",
            "actor.hidden_dims": "[64, 32]", "actor.obs_clip": "5", "critic.std_range": "[0.1, 2]",
            "obs_groups.critic": "[policy, extra]", "seed": "7",
        },
    )  # fmt: skip
    text = yaml.safe_dump(to_mapping(cfg))
    assert from_mapping(RunnerConfig, yaml.safe_load(text)) == cfg
    assert from_mapping(RunnerConfig, to_mapping(RunnerConfig())) == RunnerConfig()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("algorithm.gamma", "1.1"), ("algorithm.gamma", ".nan"), ("algorithm.lam", "-0.1"),
        ("algorithm.clip_param", "0"), ("algorithm.learning_rate", "-1"), ("algorithm.learning_rate", ".inf"),
        ("algorithm.num_mini_batches", "0"), ("algorithm.num_learning_epochs", "0"),
        ("algorithm.max_grad_norm", ".nan"), ("algorithm.entropy_coef", ".nan"),
        ("algorithm.kl_adaptation_factor", "1"), ("algorithm.learning_rate_range", "[1e-2, 1e-5]"),
        ("num_steps_per_env", "0"), ("save_interval", "0"), ("seed", "-1"),
        ("obs_groups", "{actor: [policy], acto: [policy]}"),
    ],
)  # fmt: skip
def test_training_settings_out_of_range_are_refused_by_name(path, value):
    assert f".{path.split('.')[-1]} = " in message(override, RunnerConfig(), {path: value})


def test_a_path_as_it_stands_in_config_yaml():
    tree = {"algorithm": {"gamma": 0.9}, "env": {"kwargs": {}}}
    assert expand_path("train.algorithm.gamma", tree) == "algorithm.gamma"
    assert expand_path("env.kwargs", tree) == "env.kwargs"


def test_a_new_key_of_an_empty_mapping_is_given_with_the_mapping():
    tree = {"env": {"kwargs": {}, "backend": "auto"}}
    text = message(expand_path, "env.kwargs.foo", tree)
    assert text == "unknown setting 'env.kwargs.foo': to add foo, write env.kwargs={foo: VALUE}"
    assert "to add" not in message(expand_path, "env.backend.foo", tree)


def test_a_setting_of_something_that_is_switched_off_says_how_to_switch_it_on():
    with pytest.raises(
        ConfigError, match=r"'algorithm.rnd' is none: to set weight, write algorithm.rnd=\{weight: VALUE\}"
    ):
        override(RunnerConfig(), {"algorithm.rnd.weight": "0.5"})
