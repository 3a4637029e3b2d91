from typing import Self

from django.db import models
from django.db.models import F, Q

from hub.accounts.actors import Actor
from hub.campaigns.models.campaign import Campaign
from hub.campaigns.models.checkpoint import Checkpoint
from hub.campaigns.rules import gates
from hub.core import ids
from hub.core.lifecycle import Lifecycle


class RoundQuerySet(models.QuerySet["Round"]):
    def visible_to(self, by: Actor) -> Self:
        return self.filter(campaign__owner__in=by.accounts())

    def with_results(self) -> Self:
        """Everything that is shown of a round, in two queries."""
        rows = RoundResult.objects.select_related("checkpoint__run").order_by("pk")
        return self.prefetch_related(models.Prefetch("results", rows))


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
        constraints = [
            models.UniqueConstraint(name="one_round_a_number", fields=["campaign", "number"]),
            models.CheckConstraint(
                name="a_locked_round_has_its_moment",
                condition=Q(state="draft", locked_at=None) | ~Q(state="draft") & Q(locked_at__isnull=False),
            ),
            models.CheckConstraint(
                name="a_decided_round_has_its_session_and_moment",
                condition=Q(state="decided", decided_at__isnull=False) & ~Q(session_id="")
                | ~Q(state="decided") & Q(decided_at=None, session_id=""),
            ),
        ]

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
        constraints = [
            models.UniqueConstraint(name="one_result_a_checkpoint", fields=["round", "checkpoint"]),
            models.CheckConstraint(
                name="no_more_seeds_upright_than_run", condition=Q(seeds_upright__lte=F("seeds_run"))
            ),
        ]

    @property
    def as_written(self) -> gates.Result:
        return {
            "checkpoint": self.checkpoint_id,
            "seeds_run": self.seeds_run,
            "seeds_upright": self.seeds_upright,
            "measured": self.measured,
        }

    @property
    def by_gate(self) -> dict[str, float | None]:
        """The measurement of each gate; None where simulation gave none."""
        return {gate["key"]: self.measured.get(gate["key"]) for gate in self.round.gates}

    @property
    def sim(self) -> gates.Sim:
        return gates.sim_verdict(self.round.gates, self.as_written)

    def __str__(self) -> str:
        return f"{self.checkpoint_id} in {self.round_id}"
