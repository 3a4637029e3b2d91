"""Robots: what a contract, a device and a campaign have in common."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from driver.wire import robot as wire_robot
from hub.accounts.actors import Actor
from hub.accounts.models import Account
from hub.audit import services as audit
from hub.campaigns.models import Robot
from hub.core.problems import Conflict, Unprocessable


class SlugTaken(Conflict):
    slug = "robot-slug-taken"
    title = "This account has a robot of that slug."


@transaction.atomic
def create_robot(*, owner: Account, document: Mapping[str, Any], by: Actor, at: datetime) -> Robot:
    """
    Add a robot from its robot file, `{"robot": {…}}`.

    :raises Unprocessable: naming each fault of the file
    :raises SlugTaken: a slug is how contracts and box configs name the robot, so it never changes hands
    """
    described = _read(document)
    try:
        with transaction.atomic():
            robot = Robot.objects.create(
                owner=owner,
                slug=described.slug,
                name=described.name,
                document={"robot": document["robot"]},
                created_at=at,
            )
    except IntegrityError:
        raise SlugTaken(f"{owner.name} has a robot {described.slug} already.") from None
    audit.record(
        "robot.created",
        by=by,
        account_id=owner.pk,
        target=robot,
        at=at,
        sentence=f"{by.label} added the robot {robot.slug} with {len(described.joints)} joints "
        f"and {len(described.pairs)} left-right pairs.",
    )
    return robot


def _read(document: Mapping[str, Any]) -> wire_robot.Robot:
    try:
        return wire_robot.robot_from_document(document)
    except wire_robot.BadRobot as bad:
        raise Unprocessable("The robot file does not fit.", errors=bad.errors) from bad
