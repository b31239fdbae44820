"""Convolutions: sizes and features by hand, what is refused, and that a sample is judged by itself."""

from dataclasses import replace

import pytest
import torch

from surefoot.config import from_mapping, override, to_mapping
from surefoot.errors import ConfigError
from surefoot.models import ModelConfig
from surefoot.modules import CNN, CNNConfig

ATARI = CNNConfig(output_channels=(32, 64, 64), kernel_size=(8, 4, 3), stride=(4, 2, 1), padding=0)


@pytest.mark.parametrize(
    ("shape", "cfg", "dim"),
    [
        ((4, 84, 84), ATARI, 64 * 7 * 7),  # 84 -> 20 -> 9 -> 7, the network of Mnih et al., 2015
        ((1, 16, 16), CNNConfig(), 32 * 2 * 2),  # 16 -> 8 -> 4 -> 2
        ((3, 64, 64), CNNConfig(), 32 * 8 * 8),
        ((1, 84, 84), CNNConfig(), 32 * 11 * 11),  # 84 -> 42 -> 21 -> 11
        ((1, 17, 11), CNNConfig(), 32 * 3 * 2),  # 17 -> 9 -> 5 -> 3, 11 -> 6 -> 3 -> 2
        ((2, 6, 10), CNNConfig((5,), kernel_size=2, stride=3, padding=0), 5 * 2 * 3),
        ((2, 6, 10), CNNConfig((5, 7), 3, (1, 2), (1, 0), global_pool="max"), 7),
        ((2, 6, 10), CNNConfig((5, 7), 3, (1, 2), (1, 0), global_pool="avg"), 7),
        ((1, 1, 1), CNNConfig(), 32),
    ],
)
def test_output_dim_is_the_width_of_the_output(shape, cfg, dim):
    cnn = CNN(shape, cfg)
    assert cnn.output_dim == dim
    assert cnn(torch.rand(3, *shape)).shape == (3, dim)


def filled(cfg, shape=(1, 3, 3)):
    """A network whose filters add up what they see."""
    cnn = CNN(shape, cfg)
    for name, parameter in cnn.named_parameters():
        torch.nn.init.constant_(parameter, 1.0 if "weight" in name else 0.0)
    return cnn


SUMS = CNNConfig((1,), kernel_size=2, stride=1, padding=0, activation="relu")
IMAGE = torch.arange(9.0).view(1, 1, 3, 3)


@pytest.mark.parametrize(
    ("cfg", "features"),
    [
        (SUMS, [8.0, 12.0, 20.0, 24.0]),  # 0+1+3+4, 1+2+4+5, 3+4+6+7, 4+5+7+8
        (replace(SUMS, padding=1, stride=2), [0.0, 3.0, 9.0, 24.0]),  # zeros around
        (replace(SUMS, global_pool="max"), [24.0]),
        (replace(SUMS, global_pool="avg"), [16.0]),
    ],
)
def test_features_by_hand(cfg, features):
    assert filled(cfg)(IMAGE).tolist() == [features]


def test_layer_norm_standardizes_each_sample_over_channels_and_pixels():
    cnn = filled(replace(SUMS, norm="layer"))
    sums = torch.tensor([8.0, 12.0, 20.0, 24.0])
    standard = (sums - 16.0) / sums.var(correction=0).sqrt()
    torch.testing.assert_close(cnn(IMAGE)[0], standard.relu(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("cfg", [ATARI, CNNConfig(norm="layer"), CNNConfig(global_pool="avg")])
def test_a_sample_has_the_same_features_whatever_its_neighbors(cfg):
    cnn = CNN((2, 40, 40), cfg)
    images = torch.rand(5, 2, 40, 40)
    torch.testing.assert_close(cnn(images)[3:4], cnn(images[3:4]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_images_of_any_precision_are_read(dtype):
    cnn, images = CNN((1, 8, 8), CNNConfig()), torch.rand(2, 1, 8, 8).to(dtype)
    assert torch.equal(cnn(images), cnn(images.float()))
    assert cnn.double()(images).dtype == torch.float64


@pytest.mark.parametrize(
    ("shape", "cfg", "message"),
    [
        ((1, 20, 30), replace(ATARI, kernel_size=(8, 5, 3)), "1 has a kernel of 5 x 5, .* only 4 x 6"),
        ((1, 5, 30), ATARI, "convolution 0 has a kernel of 8 x 8, but its input is only 5 x 30"),
        ((1, 3, 3), CNNConfig((4,), 6, padding=1), r"kernel of 6 x 6, .* 3 x 3 \(padding 1\)"),
    ],
)
def test_an_image_that_became_too_small_names_the_layer(shape, cfg, message):
    with pytest.raises(ConfigError, match=message):
        CNN(shape, cfg)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"output_channels": ()}, r"output_channels = \(\): expected at least one layer"),
        ({"output_channels": (4, 0)}, "output_channels = .*positive numbers"),
        ({"kernel_size": 0}, "kernel_size = 0: expected numbers of at least 1"),
        ({"kernel_size": (3, 3)}, r"kernel_size = \(3, 3\): expected .* one for each of 3 layers"),
        ({"stride": 0}, "stride = 0: expected numbers of at least 1"),
        ({"padding": -1}, "padding = -1: expected numbers of at least 0"),
        ({"norm": "batch"}, "norm = 'batch': expected one of none, layer"),
        ({"activation": "sin"}, "activation = 'sin': expected one of elu"),
        ({"global_pool": "sum"}, "global_pool = 'sum': expected one of none, max, avg"),
    ],
)
def test_settings_out_of_range_are_refused_by_name(settings, message):
    with pytest.raises(ConfigError, match=message):
        CNNConfig(**settings)


def test_orthogonal_filters_are_orthogonal_and_biases_zero():
    cnn = CNN((2, 16, 16), CNNConfig((8, 4)))
    cnn.init_orthogonal()
    first, second = (layer for layer in cnn.layers if isinstance(layer, torch.nn.Conv2d))
    for conv in (first, second):
        filters = conv.weight.flatten(1)
        torch.testing.assert_close(filters @ filters.T, 2.0 * torch.eye(len(filters)), rtol=1e-5, atol=1e-5)
        assert not conv.bias.any()


def test_settings_survive_a_file_and_the_command_line():
    cfg = ModelConfig(cnn=ATARI, cnn_by_group={"scan": CNNConfig((8,), stride=1)})
    assert from_mapping(ModelConfig, to_mapping(cfg)) == cfg
    changed = override(
        ModelConfig(), {"cnn.output_channels": "[8, 16]", "cnn.stride": "[1, 2]", "cnn.padding": "0"}
    )
    assert changed.cnn == CNNConfig((8, 16), stride=(1, 2), padding=0)
