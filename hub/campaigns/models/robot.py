from functools import cached_property
from typing import Self

from django.db import models

from driver.wire import robot as wire_robot
from hub.accounts.actors import Actor
from hub.accounts.models import Account
from hub.core import ids


class RobotQuerySet(models.QuerySet["Robot"]):
    def visible_to(self, by: Actor) -> Self:
        return self.filter(owner__in=by.accounts())


class Robot(models.Model):
    """An embodiment: what a contract, a device and a campaign have in common."""

    id = ids.id_field("rob")
    owner = models.ForeignKey(Account, models.PROTECT, related_name="robots")
    slug = models.CharField(max_length=80)
    name = models.CharField(max_length=200)
    document = models.JSONField(help_text="the robot file as sent: joints, mirror signs, explicit pairs")
    created_at = models.DateTimeField()

    objects = RobotQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(name="one_robot_a_slug", fields=["owner", "slug"])]

    @cached_property
    def described(self) -> wire_robot.Robot:
        return wire_robot.robot_from_document(self.document)

    def __str__(self) -> str:
        return self.slug


class Contract(models.Model):
    """What a checkpoint needs of a box, under a name that its content gives it."""

    id = ids.id_field("con")
    robot = models.ForeignKey(Robot, models.PROTECT, related_name="contracts")
    name = models.CharField(max_length=120)
    document = models.JSONField()
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(name="one_contract_a_name", fields=["robot", "name"])]

    @property
    def family(self) -> str:
        """Robot and rate, the wider name under which a device may accept it: `my-robot@50`."""
        return f"{self.robot.slug}@{self.document['rate_hz']:g}"

    def __str__(self) -> str:
        return self.name
