"""Images beside vectors: what an encoder makes of them, who shares it, and who is blamed for a bad pixel."""

from dataclasses import replace

import pytest
import torch

from surefoot.algorithms import PPOConfig
from surefoot.envs import VecEnv, check_vec_env
from surefoot.errors import ConfigError, EnvironmentContractError, NonFiniteError, TaskError
from surefoot.models import ModelConfig, ObservationEncoder
from surefoot.modules import CNNConfig
from surefoot.runners import OnPolicyRunner, RunnerConfig
from surefoot.runners.interface import Interface
from surefoot.types import DiscreteActions

SHAPES = {"policy": (3,), "camera": (3, 8, 10), "goal": (2,), "scan": (1, 8, 8)}
CFG = ModelConfig(
    hidden_dims=(8,), cnn=CNNConfig((4,)), cnn_by_group={"scan": CNNConfig((2,), global_pool="avg")}
)
ALL = ("camera", "policy", "scan", "goal")


def observations(rows=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return {group: torch.rand(rows, *shape, generator=generator) for group, shape in SHAPES.items()}


def test_vectors_come_first_and_images_follow_in_the_order_of_the_set():
    encoder, obs = ObservationEncoder(SHAPES, ALL, CFG), observations()
    out = encoder(obs)
    assert encoder.output_dim == 3 + 2 + 4 * 4 * 5 + 2  # 8 x 10 -> 4 x 5; one number per channel of the scan
    assert out.shape == (5, encoder.output_dim)
    assert torch.equal(out[:, :5], torch.cat([obs["policy"], obs["goal"]], dim=1))
    assert torch.equal(out[:, 5:85], encoder.cnns["camera"](obs["camera"]))
    assert torch.equal(out[:, 85:], encoder.cnns["scan"](obs["scan"]))


def test_a_set_of_one_image_has_its_features_alone():
    encoder, obs = ObservationEncoder(SHAPES, ("scan",), CFG), observations()
    assert encoder.output_dim == 2
    assert torch.equal(encoder(obs), encoder.cnns["scan"](obs["scan"]))


def test_the_normalizer_is_of_the_vectors_only():
    cfg = replace(CFG, obs_normalization=True)
    encoder, obs = ObservationEncoder(SHAPES, ALL, cfg, {"goal": (1,)}), observations(64)
    assert encoder.normalizer.mean.shape == (5,)
    assert encoder.normalizer.exempt.tolist() == [False, False, False, False, True]
    before = encoder(obs)
    encoder.absorb(obs)
    vectors = torch.cat([obs["policy"], obs["goal"]], dim=1)
    torch.testing.assert_close(encoder.normalizer.mean, vectors.mean(0))
    assert torch.equal(encoder(obs)[:, 5:], before[:, 5:])
    assert not torch.equal(encoder(obs)[:, :4], before[:, :4])
    images_only = ObservationEncoder(SHAPES, ("camera",), cfg)
    images_only.absorb(obs)
    assert images_only.normalizer is None


def test_bytes_are_255ths_and_real_numbers_are_themselves():
    encoder = ObservationEncoder(SHAPES, ("camera",), CFG)
    pixels = torch.randint(0, 256, (5, 3, 8, 10), dtype=torch.uint8)
    assert torch.equal(encoder({"camera": pixels}), encoder({"camera": pixels.float() / 255.0}))
    assert torch.equal(encoder({"camera": pixels.int()}), encoder({"camera": pixels.float() / 255.0}))
    switches = pixels > 100
    assert torch.equal(encoder({"camera": switches}), encoder({"camera": switches.float()}))


def test_case_N1_a_shared_encoder_is_the_same_parameters():
    first = ObservationEncoder(SHAPES, ALL, CFG)
    second = ObservationEncoder(SHAPES, ("camera", "goal"), CFG, cnns=first.cnns)
    assert second.cnns["camera"] is first.cnns["camera"]
    own = {id(parameter) for parameter in first.parameters()}
    assert {id(parameter) for parameter in second.parameters()} < own


def test_sharing_what_the_other_encoder_has_not_got_is_refused():
    first = ObservationEncoder(SHAPES, ("scan",), CFG)
    with pytest.raises(ConfigError, match="the convolutions of 'camera' cannot be shared: the other network"):
        ObservationEncoder(SHAPES, ("camera",), CFG, cnns=first.cnns)


def test_without_images_the_state_is_what_it_was_before_there_were_any():
    encoder = ObservationEncoder(SHAPES, ("policy", "goal"), replace(CFG, obs_normalization=True))
    assert list(encoder.state_dict()) == ["normalizer.mean", "normalizer.var", "normalizer.count"]
    assert list(ObservationEncoder(SHAPES, ("policy",), CFG).state_dict()) == []


@pytest.mark.parametrize("group", ["head.camera", "keys"])
def test_a_name_that_pytorch_cannot_take_is_refused(group):
    with pytest.raises(ConfigError, match=f"image group '{group}' needs another name: "):
        ObservationEncoder({group: (1, 8, 8)}, (group,), CFG)


def test_an_image_too_small_for_its_convolutions_is_named():
    cfg = replace(CFG, cnn=CNNConfig((4,), kernel_size=9, padding=0))
    with pytest.raises(
        ConfigError, match=r"^image group 'camera': convolution 0 has a kernel of 9 x 9, .* 8 x 10"
    ):
        ObservationEncoder(SHAPES, ("camera",), cfg)


class Camera(VecEnv):
    """Sees noise: a vector, a picture of bytes and a depth map; episodes of 4 steps. `edit` may spoil it."""

    def __init__(self, edit=lambda obs, step: None):
        self.num_envs, self.num_actions, self.device = 3, 2, torch.device("cpu")
        self.max_episode_length = 4
        self.episode_length_buf = torch.zeros(3, dtype=torch.int64)
        self.generator = torch.Generator().manual_seed(0)
        self.edit, self.steps = edit, -1
        self.now = self.look()

    def look(self):
        obs = {
            "policy": torch.rand(3, 2, generator=self.generator),
            "camera": torch.randint(0, 256, (3, 1, 8, 8), generator=self.generator, dtype=torch.uint8),
            "depth": torch.rand(3, 2, 4, 5, generator=self.generator),
        }
        self.edit(obs, self.steps)
        return obs

    def get_observations(self):
        return self.now

    def reset(self):
        self.episode_length_buf = torch.zeros(3, dtype=torch.int64)
        self.now = self.look()
        return self.now, {}

    def step(self, actions):
        self.steps += 1
        counted = self.episode_length_buf + 1
        dones = counted == 4
        self.episode_length_buf = counted.masked_fill(dones, 0)
        final = self.look()
        self.now = self.look()
        return self.now, torch.ones(3), dones, {"time_outs": dones, "final_obs": final}


def spoiled(group, index, value, step=2):
    def edit(obs, now):
        if now == step:
            obs[group][index] = value

    return edit


def test_the_interface_survives_a_checkpoint():
    interface = Interface.of(Camera())
    assert interface.observations == {"policy": (2,), "camera": (1, 8, 8), "depth": (2, 4, 5)}
    assert Interface.from_mapping(interface.to_mapping()) == interface


def test_older_checkpoints_hold_plain_widths():
    values = {
        "observations": {"policy": 4},
        "actions": {"kind": "discrete", "n": 3},
        "categorical_columns": {"policy": [1]},
    }
    expected = Interface({"policy": (4,)}, DiscreteActions(3), {"policy": (1,)})
    assert Interface.from_mapping(values) == expected


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (
            (3, 8, 8),
            r"has shape \(3, 8, 8\), expected .* give an image without channels one with unsqueeze\(1\)",
        ),
        ((3,), r"has shape \(3,\), .* a width of 1"),
        (
            (2, 5),
            r"has shape \(2, 5\), expected \(3, width\) or, for images, \(3, channels, height, width\)$",
        ),
        ((3, 1, 2, 8, 8), r"has shape \(3, 1, 2, 8, 8\)"),
        ((), r"has shape \(\)"),
    ],
)
def test_groups_of_other_dimensions_are_refused(shape, message):
    env = Camera()
    env.now["odd"] = torch.zeros(shape)
    with pytest.raises(TaskError, match=f"observation group 'odd' {message}"):
        Interface.of(env)


def test_the_contract_allows_images():
    assert check_vec_env(Camera(), steps=12) == []


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (spoiled("depth", (1, 1, 2, 3), float("nan")), "is nan in environment 1, channel 1, row 2, column 3"),
        (lambda obs, step: obs.update(camera=obs["camera"].int()), r"is torch.int32, not .* or torch.uint8"),
        (lambda obs, step: obs.update(policy=obs["camera"][:, 0, 0]), "'policy' .* torch.uint8, not a float"),
        (lambda obs, step: obs.update(camera=obs["camera"][:, 0]), r"shape \[3, 8, 8\], .* unsqueeze\(1\)"),
    ],
)  # fmt: skip
def test_a_broken_rule_of_images_is_named(edit, message):
    with pytest.raises(EnvironmentContractError, match=message):
        check_vec_env(Camera(edit), steps=12)


SETS = {"actor": ("policy", "camera", "depth"), "critic": ("depth",)}
RUN = RunnerConfig(
    num_steps_per_env=6,
    obs_groups=SETS,
    actor=CFG,
    critic=CFG,
    algorithm=PPOConfig(num_mini_batches=2, num_learning_epochs=1),
)


def test_case_N1_a_run_with_images_keeps_bytes_as_bytes():
    runner = OnPolicyRunner(Camera(), RUN)
    runner.learn(2)
    stored = runner.alg.storage.observations
    assert {group: (tuple(obs.shape), obs.dtype) for group, obs in stored.items()} == {
        "policy": ((6, 3, 2), torch.float32),
        "camera": ((6, 3, 1, 8, 8), torch.uint8),
        "depth": ((6, 3, 2, 4, 5), torch.float32),
    }


@pytest.mark.parametrize("shares", [True, False])
def test_case_N1_the_optimizer_counts_a_shared_encoder_once(shares):
    cfg = replace(RUN, algorithm=replace(RUN.algorithm, share_cnn_encoders=shares))
    learner = OnPolicyRunner(Camera(), cfg).alg
    trained = [p for group in learner.optimizer.adam.param_groups for p in group["params"]]
    depth = sum(p.numel() for p in learner.critic.encoder.cnns.parameters())
    apart = sum(p.numel() for net in (learner.actor, learner.critic) for p in net.parameters())
    assert depth == 4 * 2 * 9 + 4
    assert len(trained) == len({id(p) for p in trained})
    assert sum(p.numel() for p in trained) == apart - depth * shares


@pytest.mark.parametrize("value", [float("nan"), -float("inf"), 1e20])
@pytest.mark.parametrize("step", [2, 5])
def test_case_K2_a_bad_pixel_is_named(value, step):
    env = Camera(spoiled("depth", (1, 0, 3, 4), value, step))
    place = (
        f"observation group 'depth': iteration 0, step {step + 1}, environment 1, channel 0, row 3, column 4"
    )
    with pytest.raises(NonFiniteError, match=place):
        OnPolicyRunner(env, RUN).learn(1)


def test_case_K2_a_bad_pixel_at_an_end_is_named():
    class AtTheEnd(Camera):
        def step(self, actions):
            obs, rewards, dones, extras = super().step(actions)
            if dones.any():
                extras["final_obs"]["depth"][2, 1, 0, 0] = float("nan")
            return obs, rewards, dones, extras

    place = "final observation group 'depth': iteration 0, step 3, environment 2, channel 1, row 0, column 0"
    with pytest.raises(NonFiniteError, match=place):
        OnPolicyRunner(AtTheEnd(), RUN).learn(1)


def test_final_pixels_where_no_episode_ended_are_not_looked_at():
    class Nothing(Camera):
        def step(self, actions):
            obs, rewards, dones, extras = super().step(actions)
            extras["final_obs"]["depth"][~dones] = float("nan")
            return obs, rewards, dones, extras

    OnPolicyRunner(Nothing(), RUN).learn(1)


def test_case_K2_a_step_with_a_bad_pixel_can_be_discarded(monkeypatch):
    class Resettable(Camera):
        def reset_envs(self, ids):
            self.now = {group: obs.index_fill(0, ids, 0) for group, obs in self.now.items()}
            self.episode_length_buf = self.episode_length_buf.index_fill(0, ids, 0)
            return self.now

    env = Resettable(spoiled("depth", (1, 0, 3, 4), float("nan")))
    runner, discarded = OnPolicyRunner(env, replace(RUN, on_nonfinite="reset")), []
    update = runner.alg.update
    monkeypatch.setattr(runner.alg, "update", lambda: discarded.append(~runner.alg.storage.valid) or update())
    runner.learn(1)
    assert discarded[0].nonzero().tolist() == [[2, 1]]


def test_the_saved_step_holds_the_images(tmp_path):
    env = Camera(spoiled("depth", (1, 0, 3, 4), float("nan")))
    with pytest.raises(NonFiniteError, match="the step is saved in"):
        OnPolicyRunner(env, RUN, tmp_path).learn(1)
    saved = torch.load(next(tmp_path.rglob("nonfinite_*.pt")), weights_only=True)
    assert saved["observations"]["camera"].shape == (1, 1, 8, 8)
    assert saved["observations"]["camera"].dtype == torch.uint8
    assert saved["next_observations"]["depth"][0].isnan().nonzero().tolist() == [[0, 3, 4]]
