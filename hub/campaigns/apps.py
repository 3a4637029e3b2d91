from django.apps import AppConfig

from hub.audit import actions


class CampaignsConfig(AppConfig):
    name = "hub.campaigns"
    label = "campaigns"

    def ready(self) -> None:
        actions.register(
            {
                "robot.created": "a robot was added from its robot file",
                "campaign.created": "a campaign was started",
                "campaign.changed": "a campaign got another name or rule",
                "campaign.policy": "a checkpoint became the policy on the robot",
                "checkpoint.declared": "room was made for a checkpoint's upload",
                "checkpoint.verified": "a checkpoint's bytes and contract were found to be what was declared",
                "checkpoint.refused": "a checkpoint's upload was refused and its room given back",
                "lineage.ended": "no round may resume from a checkpoint and what comes from it",
                "round.created": "a round was drafted",
                "round.changed": "a draft round's gates, results or parent were changed",
                "round.locked": "a round's gates and results were fixed",
                "round.decided": "a round's shortlist became a session",
                "agent.attached": "an agent was attached to a campaign",
                "agent.woken": "the agents of a campaign were woken",
                "wake.acked": "an agent said that it has what woke it",
            }
        )
