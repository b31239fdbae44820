from dataclasses import replace

import pytest
import torch

from surefoot.distributions import Categorical, Gaussian
from surefoot.errors import ConfigError
from surefoot.models import ModelConfig, ObservationEncoder, build_actor, build_critic
from surefoot.types import ACTION_MASK, BoxActions, DiscreteActions

SHAPES = {"policy": (3,), "privileged": (2,)}
OBS = {"policy": torch.arange(6.0).reshape(2, 3), "privileged": torch.tensor([[10.0, 11.0], [12.0, 13.0]])}
SMALL = ModelConfig(hidden_dims=(8,))


def test_encoder_concatenates_its_groups_in_the_given_order():
    encoder = ObservationEncoder(SHAPES, ("privileged", "policy"), ModelConfig())
    assert encoder.output_dim == 5
    assert encoder(OBS)[0].tolist() == [10.0, 11.0, 0.0, 1.0, 2.0]


def test_encoder_ignores_groups_outside_its_set():
    encoder = ObservationEncoder(SHAPES, ("policy",), ModelConfig())
    assert torch.equal(encoder({"policy": OBS["policy"]}), OBS["policy"])


def test_unknown_group_names_the_nearest():
    with pytest.raises(ConfigError, match=r"no observation group 'privilege'; did you mean 'privileged'\?"):
        ObservationEncoder(SHAPES, ("privilege",), ModelConfig())
    with pytest.raises(ConfigError, match="at least one group"):
        ObservationEncoder(SHAPES, (), ModelConfig())


def test_actor_and_critic_read_their_own_sets():
    actor = build_actor(SHAPES, ("policy",), BoxActions(4), SMALL)
    critic = build_critic(SHAPES, ("policy", "privileged"), SMALL)
    changed = {**OBS, "privileged": OBS["privileged"] + 1}
    assert torch.equal(actor(OBS).mean, actor(changed).mean)
    assert not torch.equal(critic(OBS), critic(changed))


def test_the_action_space_chooses_the_distribution():
    gaussian = build_actor(SHAPES, ("policy",), BoxActions(4), SMALL)(OBS)
    categorical = build_actor(SHAPES, ("policy",), DiscreteActions(5), SMALL)(OBS)
    assert isinstance(gaussian, Gaussian)
    assert gaussian.mean.shape == (2, 4)
    assert isinstance(categorical, Categorical)
    assert categorical.probs.shape == (2, 5)


def test_critic_returns_one_value_per_row():
    assert build_critic(SHAPES, ("policy",), SMALL)(OBS).shape == (2,)


def test_a_fresh_policy_is_nearly_indifferent():
    torch.manual_seed(0)
    obs = {"policy": torch.randn(100, 3)}
    actor = build_actor(SHAPES, ("policy",), BoxActions(4), ModelConfig())
    assert actor(obs).mean.abs().max() < 0.1
    probs = build_actor(SHAPES, ("policy",), DiscreteActions(4), ModelConfig())(obs).probs
    assert (probs - 0.25).abs().max() < 0.05


def test_init_torch_leaves_pytorchs_own_weights():
    torch.manual_seed(0)
    reference = torch.nn.Linear(3, 8).weight
    torch.manual_seed(0)
    actor = build_actor(SHAPES, ("policy",), BoxActions(4), ModelConfig(hidden_dims=(8,), init="torch"))
    assert torch.equal(actor.mlp.linear_layers[0].weight, reference)


def test_observation_normalization_is_part_of_the_saved_model():
    cfg = ModelConfig(hidden_dims=(8,), obs_normalization=True, obs_clip=5.0)
    actor = build_actor(SHAPES, ("policy",), BoxActions(4), cfg)
    actor.encoder.absorb({"policy": 100 + torch.randn(50, 3)})
    twin = build_actor(SHAPES, ("policy",), BoxActions(4), cfg)
    twin.load_state_dict(actor.state_dict())
    obs = {"policy": 100 + torch.randn(5, 3)}
    assert torch.equal(twin(obs).mean, actor(obs).mean)
    assert actor.encoder(obs).abs().max() <= 5.0
    assert torch.equal(actor.encoder({"policy": torch.full((1, 3), 1e9)}), torch.full((1, 3), 5.0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hidden_dims": (64, 0)}, "ModelConfig.hidden_dims = (64, 0): expected positive widths"),
        ({"activation": "swish"}, "ModelConfig.activation = 'swish': expected one of elu, "),
        ({"obs_clip": -1.0}, "ModelConfig.obs_clip = -1.0: expected a positive number or none"),
        ({"obs_clip": float("nan")}, "ModelConfig.obs_clip = nan"),
        ({"std_range": (1.0, 0.1)}, "ModelConfig.std_range = (1.0, 0.1): expected two positive numbers"),
        ({"init_std": 0.0}, "ModelConfig.init_std = 0.0: expected within std_range"),
        ({"init_std": float("nan")}, "ModelConfig.init_std = nan"),
    ],
)
def test_settings_out_of_range_are_refused_by_name(settings, message):
    with pytest.raises(ConfigError) as error:
        ModelConfig(**settings)
    assert message in str(error.value)


# Actors whose choices are masked

MASKED = {"policy": (3,), ACTION_MASK: (4,)}


def test_a_masked_actor_reads_the_mask_which_is_no_input_of_the_network():
    actor = build_actor(MASKED, ("policy",), DiscreteActions(4), SMALL)
    assert actor.groups == ("policy", ACTION_MASK)
    assert actor.encoder.output_dim == 3
    mask = torch.tensor([[1, 0, 1, 0], [0, 0, 0, 1]])  # of whatever type
    obs = {"policy": OBS["policy"], ACTION_MASK: mask}
    probs = actor(obs).probs
    assert (probs[mask == 0] == 0).all()
    assert probs[1].tolist() == [0.0, 0.0, 0.0, 1.0]
    assert torch.equal(actor({**obs, ACTION_MASK: mask.bool()}).probs, probs)
    assert torch.equal(actor({**obs, ACTION_MASK: mask.float()}).probs, probs)


def test_a_set_may_name_the_mask_as_an_input_too():
    actor = build_actor(MASKED, ("policy", ACTION_MASK), DiscreteActions(4), SMALL)
    assert actor.groups == ("policy", ACTION_MASK)
    assert actor.encoder.output_dim == 7


def test_without_a_mask_in_the_environment_there_is_none_to_read():
    actor = build_actor(SHAPES, ("policy",), DiscreteActions(4), SMALL)
    assert actor.groups == ("policy",)
    assert (actor(OBS).probs > 0).all()


def test_exploring_draws_from_the_distribution_that_a_call_returns():
    actor = build_actor(MASKED, ("policy",), DiscreteActions(4), SMALL)
    mask = torch.tensor([[True, False, True, False], [False, False, False, True]])
    obs = {"policy": OBS["policy"], ACTION_MASK: mask}
    distribution, actions, _ = actor.explore(obs, (), 0, torch.Generator().manual_seed(0))
    assert torch.equal(distribution.params[0], actor(obs).params[0])
    assert torch.equal(actions, distribution.sample(torch.Generator().manual_seed(0)))


def test_categorical_columns_are_never_normalized_wherever_their_group_stands():
    cfg = replace(SMALL, obs_normalization=True)
    actor = build_actor(
        SHAPES, ("privileged", "policy"), BoxActions(1), cfg, {"policy": (1,), "elsewhere": (0,)}
    )
    actor.encoder.absorb({group: 5.0 + 3.0 * torch.randn(100, 3)[:, : SHAPES[group][0]] for group in SHAPES})
    encoded = actor.encoder(OBS)
    assert torch.equal(encoded[:, 3], OBS["policy"][:, 1])
    kept = encoded == torch.cat([OBS["privileged"], OBS["policy"]], dim=1)
    assert kept.all(0).tolist() == [False, False, False, True, False]
