from typing import Self

from django.db import models
from django.db.models import Q

from hub.accounts.actors import Actor
from hub.accounts.models import Account
from hub.campaigns.models.robot import Robot
from hub.core import ids


class CampaignQuerySet(models.QuerySet["Campaign"]):
    def visible_to(self, by: Actor) -> Self:
        return self.filter(owner__in=by.accounts())

    def with_policy(self) -> Self:
        return self.select_related("robot", "policy_on_robot__run")


class Campaign(models.Model):
    """The way from a policy on the robot to a better one, round by round."""

    id = ids.id_field("cam")
    owner = models.ForeignKey(Account, models.PROTECT, related_name="campaigns")
    robot = models.ForeignKey(Robot, models.PROTECT, related_name="campaigns")
    name = models.CharField(max_length=200)
    fail_ends_lineage = models.BooleanField(default=True)
    # The promoting trial lives in an app above this one, so its id is a plain column.
    policy_on_robot = models.ForeignKey("campaigns.Checkpoint", models.PROTECT, null=True, related_name="+")
    policy_trial_id = models.CharField(max_length=32, default="", blank=True)
    policy_put_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()

    objects = CampaignQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="policy_on_robot_and_its_moment_together",
                condition=Q(policy_on_robot=None, policy_put_at=None)
                | Q(policy_on_robot__isnull=False, policy_put_at__isnull=False),
            )
        ]

    def __str__(self) -> str:
        return self.name
