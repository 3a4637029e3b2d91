from typing import Self

from django.db import models

from hub.accounts.actors import Actor
from hub.campaigns.models.campaign import Campaign
from hub.core import ids


class AgentSessionQuerySet(models.QuerySet["AgentSession"]):
    def visible_to(self, by: Actor) -> Self:
        return self.filter(campaign__owner__in=by.accounts())


class AgentSession(models.Model):
    """An agent attached to a campaign: an iterate verdict wakes it."""

    id = ids.id_field("ags")
    campaign = models.ForeignKey(Campaign, models.PROTECT, related_name="agent_sessions")
    name = models.CharField(max_length=120)
    created_at = models.DateTimeField()

    objects = AgentSessionQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name


class WakeQuerySet(models.QuerySet["Wake"]):
    def visible_to(self, by: Actor) -> Self:
        return self.filter(agent_session__campaign__owner__in=by.accounts())


class Wake(models.Model):
    """One reason to get up, kept until the agent says that it has it."""

    id = ids.id_field("wak")
    agent_session = models.ForeignKey(AgentSession, models.PROTECT, related_name="wakes")
    payload = models.JSONField()
    created_at = models.DateTimeField()
    acked_at = models.DateTimeField(null=True)

    objects = WakeQuerySet.as_manager()

    def __str__(self) -> str:
        return self.id
