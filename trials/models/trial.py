from typing import Self

from django.db import models

from devices.models import Approval
from hub.accounts.actors import Actor
from hub.campaigns.models import Checkpoint
from hub.core import ids
from trials.models.session import TrialSession


class TrialQuerySet(models.QuerySet["Trial"]):
    def visible_to(self, by: Actor) -> Self:
        """Whoever sees the session; a device, the trials whose approval is its own."""
        if by.device_id is not None:
            return self.filter(approval__device=by.device_id)
        return self.filter(session__owner__in=by.accounts())


class Trial(models.Model):
    """One checkpoint's place in a session, and everything that came of it."""

    class Role(models.TextChoices):
        CONTROL = "control"
        CANDIDATE = "candidate"

    id = ids.id_field("trl")
    session = models.ForeignKey(TrialSession, models.PROTECT, related_name="trials")
    position = models.PositiveSmallIntegerField()
    role = models.CharField(max_length=16, choices=Role)
    checkpoint = models.ForeignKey(Checkpoint, models.PROTECT, related_name="trials")
    sim = models.JSONField(null=True, help_text="the round's verdict on the checkpoint, as locked")
    sim_measured = models.JSONField(null=True, help_text="the round's measurement of each gate")
    # The newest one; those that ended without a start are found by their subject.
    approval = models.OneToOneField(Approval, models.PROTECT, null=True, related_name="trial")

    objects = TrialQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(name="one_trial_a_position", fields=["session", "position"])]

    @property
    def is_control(self) -> bool:
        return self.role == self.Role.CONTROL

    def __str__(self) -> str:
        return self.id
