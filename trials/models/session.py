from typing import Self

from django.db import models
from django.db.models import Q

from devices.models import Device
from hub.accounts.actors import Actor
from hub.accounts.models import Account
from hub.campaigns.models import Campaign, Round
from hub.core import ids


class TrialSessionQuerySet(models.QuerySet["TrialSession"]):
    def visible_to(self, by: Actor) -> Self:
        return self.filter(owner__in=by.accounts())


class TrialSession(models.Model):
    """Trials on one device in an order that is written before anything runs."""

    id = ids.id_field("ses")
    owner = models.ForeignKey(Account, models.PROTECT, related_name="trial_sessions")
    campaign = models.ForeignKey(Campaign, models.PROTECT, null=True, related_name="trial_sessions")
    round = models.ForeignKey(Round, models.PROTECT, null=True, related_name="trial_sessions")
    device = models.ForeignKey(Device, models.PROTECT, null=True, related_name="trial_sessions")
    reason = models.TextField()
    tolerances = models.JSONField(
        help_text="which metrics decide the bracket, and each limit with its source"
    )
    baseline = models.JSONField(null=True, help_text="the promoted policy's own numbers, frozen at planning")
    planned_by = models.CharField(max_length=254)
    created_at = models.DateTimeField()
    cancelled_at = models.DateTimeField(null=True)
    cancelled_by = models.CharField(max_length=254, default="", blank=True)

    objects = TrialSessionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="a_session_has_a_campaign_or_a_device",
                condition=Q(campaign__isnull=False) | Q(device__isnull=False),
            ),
            models.UniqueConstraint(
                name="one_open_session_a_round", fields=["round"], condition=Q(cancelled_at=None)
            ),
        ]

    @property
    def is_cancelled(self) -> bool:
        return self.cancelled_at is not None

    def __str__(self) -> str:
        return self.id
