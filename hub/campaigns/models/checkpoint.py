from typing import TYPE_CHECKING, Self

from django.db import models
from django.db.models import Q

from hub.accounts.actors import Actor
from hub.campaigns.models.campaign import Campaign
from hub.campaigns.models.robot import Contract
from hub.core import ids
from hub.storage.models import StoredObject

if TYPE_CHECKING:
    from hub.campaigns.models.round import RoundResult


class TrainingRun(models.Model):
    id = ids.id_field("run")
    campaign = models.ForeignKey(Campaign, models.PROTECT, related_name="runs")
    name = models.CharField(max_length=120)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(name="one_run_a_name", fields=["campaign", "name"])]

    def __str__(self) -> str:
        return self.name


class CheckpointQuerySet(models.QuerySet["Checkpoint"]):
    def visible_to(self, by: Actor) -> Self:
        return self.filter(run__campaign__owner__in=by.accounts())

    def verified(self) -> Self:
        return self.filter(verified_at__isnull=False)

    def shown(self) -> Self:
        """Everything that is shown of a checkpoint, in three queries."""
        return self.select_related("run", "contract").prefetch_related("results__round")


class Checkpoint(models.Model):
    """One step of a training run, as an ONNX file that a digest pins."""

    id = ids.id_field("ckp")
    run = models.ForeignKey(TrainingRun, models.PROTECT, related_name="checkpoints")
    step = models.PositiveBigIntegerField()
    parent = models.ForeignKey("self", models.PROTECT, null=True, related_name="children")
    onnx_sha256 = models.CharField(max_length=64)
    bytes = models.PositiveBigIntegerField()
    sidecar = models.JSONField(null=True, help_text="what the uploader said where the file says nothing")
    # Room for the upload at first, then the hub's own copy of it; null once an upload was refused.
    object = models.OneToOneField(StoredObject, models.PROTECT, null=True, related_name="+")
    contract = models.ForeignKey(Contract, models.PROTECT, null=True, related_name="checkpoints")
    verified_at = models.DateTimeField(null=True)
    lineage_ended_at = models.DateTimeField(null=True)
    lineage_ended_reason = models.TextField(default="", blank=True)
    created_at = models.DateTimeField()

    objects = CheckpointQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(name="one_checkpoint_a_step", fields=["run", "step"]),
            models.CheckConstraint(
                name="a_verified_checkpoint_has_a_contract",
                condition=Q(verified_at=None) | Q(contract__isnull=False, object__isnull=False),
            ),
            models.CheckConstraint(
                name="an_ended_lineage_has_its_reason",
                condition=Q(lineage_ended_at=None, lineage_ended_reason="")
                | Q(lineage_ended_at__isnull=False) & ~Q(lineage_ended_reason=""),
            ),
        ]

    @property
    def campaign(self) -> Campaign:
        return self.run.campaign

    @property
    def in_locked_rounds(self) -> "list[RoundResult]":
        """What locked rounds measured of it, the one locked last first."""
        told = [(row.round.locked_at, row.pk, row) for row in self.results.all() if row.round.locked_at]
        return [row for _, _, row in sorted(told, reverse=True)]

    def __str__(self) -> str:
        return f"{self.run.name} step {self.step}"
