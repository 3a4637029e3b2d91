from django.urls import path

from hub.campaigns.views import agents, campaigns, checkpoints, robots, rounds

urlpatterns = [
    path("robots", robots.Robots.as_view()),
    path("robots/<str:robot_id>", robots.OneRobot.as_view()),
    path("campaigns", campaigns.Campaigns.as_view()),
    path("campaigns/<str:campaign_id>", campaigns.OneCampaign.as_view()),
    path("campaigns/<str:campaign_id>/checkpoints", checkpoints.Checkpoints.as_view()),
    path("campaigns/<str:campaign_id>/rounds", rounds.Rounds.as_view()),
    path("checkpoints/<str:checkpoint_id>", checkpoints.OneCheckpoint.as_view()),
    path("checkpoints/<str:checkpoint_id>/complete", checkpoints.CheckpointComplete.as_view()),
    path("rounds/<str:round_id>", rounds.OneRound.as_view()),
    path("rounds/<str:round_id>/lock", rounds.RoundLock.as_view()),
    path("agent-sessions", agents.AgentSessions.as_view()),
    path("agent-sessions/<str:agent_session_id>/wakes", agents.Wakes.as_view()),
    path("wakes/<str:wake_id>/ack", agents.WakeAck.as_view()),
]
