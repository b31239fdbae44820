"""Pictures come without OpenGL, show the robot where it is, and follow it."""

import numpy as np
import torch

from surefoot.envs.quadruped import QuadrupedEnv
from surefoot.envs.quadruped.render import ACTUAL, COMMANDED, Renderer
from surefoot.envs.quadruped.robot import load_model

HOME = load_model().key("home").qpos
STILL = np.zeros(3)


def colored_like(image, color):
    """Pixels whose hue is that of `color`, whatever the shadow."""
    hue = image / np.maximum(image.sum(axis=2, keepdims=True), 1)
    return np.abs(hue - color / color.sum()).max(axis=2) < 0.06


def orange(image):
    return (image[:, :, 0] > 1.6 * image[:, :, 2]) & (image[:, :, 0] > 60)


def test_env_renders_robot_zero():
    env = QuadrupedEnv(2, num_threads=1)
    image = env.render()
    assert (image.shape, image.dtype) == ((480, 640, 3), np.uint8)
    env.step(torch.full((2, 12), 0.5))
    assert (env.render() != image).any()


def test_robot_is_in_the_middle_and_whole():
    image = Renderer(320, 240).frame(HOME, STILL, STILL).astype(int)
    rows, columns = np.nonzero(orange(image))
    assert rows.size > 600
    assert 60 < rows.min() < rows.max() < 200
    assert 60 < columns.min() < columns.max() < 260
    # Calves and feet, which alone may collide, are dark and below the orange parts.
    dark = image.max(axis=2) < 60
    assert np.nonzero(dark)[0].max() > rows.max()
    assert dark[rows.max() - 10 :].sum() > 100


def test_camera_follows_while_the_tiles_slide_past():
    renderer = Renderer(320, 240)
    moved = HOME + np.r_[0.3, 0.1, np.zeros(17)]
    here, there = (renderer.frame(qpos, STILL, STILL).astype(int) for qpos in (HOME, moved))
    assert (orange(here) == orange(there)).mean() > 0.999
    assert (np.abs(here - there).max(axis=2) > 10).mean() > 0.1


def test_arrows_show_command_and_velocity():
    renderer = Renderer(320, 240)
    none = renderer.frame(HOME, STILL, STILL)
    both = renderer.frame(HOME, np.array([1.0, 0.0, 0.0]), np.array([0.0, -1.0, 0.0]))
    for color in (COMMANDED, ACTUAL):
        assert colored_like(none, color).sum() == 0
        assert colored_like(both, color).sum() > 60
    # Forward is to the right of the picture, the robot's right is towards the camera.
    assert np.nonzero(colored_like(both, COMMANDED))[1].mean() > 160
    assert np.nonzero(colored_like(both, ACTUAL))[0].mean() > 130


def test_a_turned_robot_turns_its_arrow():
    renderer = Renderer(320, 240)
    backwards = HOME.copy()
    backwards[3:7] = [0, 0, 0, 1]
    image = renderer.frame(backwards, np.array([1.0, 0.0, 0.0]), STILL)
    assert np.nonzero(colored_like(image, COMMANDED))[1].mean() < 160
