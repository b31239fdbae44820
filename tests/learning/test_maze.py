"""Curiosity finds what chance does not. A quarter of a minute per run: `make learn`."""

from itertools import pairwise

import pytest
import torch

from learning.maze import CURIOUS, Maze, train
from surefoot.envs import check_vec_env

SEEDS = range(3)


def distances(env: Maze) -> dict[int, int]:
    """Cell -> steps from the start on the shortest way."""
    found, queue = {env.start: 0}, [env.start]
    for cell in queue:
        for beyond in env.next_cell[cell].tolist():
            if beyond not in found:
                found[beyond] = found[cell] + 1
                queue.append(beyond)
    return found


def test_the_maze_keeps_the_contract():
    assert check_vec_env(Maze(4), steps=300) == []


def test_every_cell_can_be_reached_and_none_is_farther_than_the_goal():
    env = Maze(1)
    steps = distances(env)
    assert len(steps) == len(env.cells)
    assert max(steps.values()) == steps[env.goal] == 42


def test_the_shortest_way_is_rewarded_at_its_end_only():
    env = Maze(2)
    steps = distances(env)
    way = [env.goal]
    while way[-1] != env.start:
        way.append(next(cell for cell in env.next_cell[way[-1]].tolist() if steps[cell] < steps[way[-1]]))
    way.reverse()
    env.reset()
    for here, there in pairwise(way):
        move = env.next_cell[here].tolist().index(there)
        blocked = env.next_cell[env.start].tolist().index(env.start)
        obs, rewards, dones, extras = env.step(torch.tensor([move, blocked]))  # the second one stays
        assert rewards.tolist() == [float(there == env.goal), 0.0]
    assert dones.tolist() == [True, False]
    assert extras["time_outs"].tolist() == [False, False]
    assert torch.equal(extras["final_obs"]["policy"][0], env.looks[env.goal])
    assert torch.equal(obs["policy"][0], env.looks[env.start])


def test_chance_does_not_find_the_goal():
    env, generator = Maze(1000), torch.Generator().manual_seed(0)
    for _ in range(500):
        _, rewards, _, _ = env.step(torch.randint(4, (1000,), generator=generator))
        assert not rewards.any()


@pytest.mark.learning
@pytest.mark.parametrize("seed", SEEDS)
def test_curiosity_finds_the_goal_and_ppo_learns_the_way(seed):
    outcome = train(CURIOUS, seed)
    assert outcome.found_after is not None
    assert outcome.success >= 0.9
    assert outcome.solved
    assert outcome.seconds < 60


@pytest.mark.learning
@pytest.mark.parametrize("seed", SEEDS)
def test_without_curiosity_it_is_not_found(seed):
    assert train(None, seed).success < 0.05
