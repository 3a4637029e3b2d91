from hub.campaigns.models.agent_session import AgentSession, Wake
from hub.campaigns.models.campaign import Campaign
from hub.campaigns.models.checkpoint import Checkpoint, TrainingRun
from hub.campaigns.models.robot import Contract, Robot
from hub.campaigns.models.round import Round, RoundResult

__all__ = [
    "AgentSession",
    "Campaign",
    "Checkpoint",
    "Contract",
    "Robot",
    "Round",
    "RoundResult",
    "TrainingRun",
    "Wake",
]
