from typing import Self

from django.db import models

from hub.accounts.actors import Actor
from hub.campaigns.models.campaign import Campaign
from hub.campaigns.models.checkpoint import Checkpoint
from hub.core import ids
from hub.core.lifecycle import Lifecycle


class RoundQuerySet(models.QuerySet["Round"]):
    def visible_to(self, by: Actor) -> Self:
        return self.filter(campaign__owner__in=by.accounts())


class Round(Lifecycle):
    """Checkpoints measured in simulation against gates that are locked before anyone chooses."""

    class State(models.TextChoices):
        DRAFT = "draft"
        LOCKED = "locked"
        DECIDED = "decided"

    NEXT = {State.DRAFT: {State.LOCKED}, State.LOCKED: {State.DECIDED}}

    id = ids.id_field("rnd")
    campaign = models.ForeignKey(Campaign, models.PROTECT, related_name="rounds")
    number = models.PositiveIntegerField()
    resumes_from = models.ForeignKey(Checkpoint, models.PROTECT, null=True, related_name="resumed_by")
    gates = models.JSONField(default=list)
    state = models.CharField(max_length=16, choices=State, default=State.DRAFT)
    locked_at = models.DateTimeField(null=True)
    decided_at = models.DateTimeField(null=True)
    decided_by = models.CharField(max_length=200, default="", blank=True)
    # The session lives in an app above this one, so its id is a plain column.
    session_id = models.CharField(max_length=32, default="", blank=True)
    created_at = models.DateTimeField()

    objects = RoundQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(name="one_round_a_number", fields=["campaign", "number"])]

    def __str__(self) -> str:
        return f"round {self.number}"


class RoundResult(models.Model):
    """What simulation said of one checkpoint in one round."""

    round = models.ForeignKey(Round, models.CASCADE, related_name="results")
    checkpoint = models.ForeignKey(Checkpoint, models.PROTECT, related_name="results")
    seeds_run = models.PositiveIntegerField()
    seeds_upright = models.PositiveIntegerField()
    measured = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(name="one_result_a_checkpoint", fields=["round", "checkpoint"])]
