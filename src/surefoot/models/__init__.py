"""Networks that read observation sets."""

from surefoot.models.config import ModelConfig
from surefoot.models.encoder import ObservationEncoder
from surefoot.models.model import Actor, Critic, Model, build_actor, build_critic

__all__ = ["Actor", "Critic", "Model", "ModelConfig", "ObservationEncoder", "build_actor", "build_critic"]
