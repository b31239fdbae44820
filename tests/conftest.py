import pytest
import torch


@pytest.fixture(autouse=True)
def _one_thread():
    """Networks this small are fastest on one core, and sums then add up in one order."""
    torch.set_num_threads(1)
