"""Campaigns: their rule, and which policy is on the robot."""

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction

from hub.accounts.actors import Actor
from hub.accounts.models import Account
from hub.audit import services as audit
from hub.campaigns.models import Campaign, Checkpoint, Robot
from hub.core import patch
from hub.core.problems import Unprocessable


def locked(campaign: Campaign) -> Campaign:
    """
    Lock a campaign's row for the rest of the transaction.

    It is the first lock of every act that numbers rounds, ends lineages or reads whether they have ended.
    Rows that point to the campaign can be written meanwhile.
    """
    return Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)


@transaction.atomic
def create_campaign(
    *, owner: Account, robot: Robot, name: str, by: Actor, at: datetime, fail_ends_lineage: bool = True
) -> Campaign:
    """
    Start a campaign on a robot of the same account.

    :raises Unprocessable: for a robot of another account
    """
    if robot.owner_id != owner.pk:
        raise Unprocessable(errors={"robot": [f"{robot.slug} belongs to another account."]})
    campaign = Campaign.objects.create(
        owner=owner, robot=robot, name=name, fail_ends_lineage=fail_ends_lineage, created_at=at
    )
    audit.record(
        "campaign.created",
        by=by,
        account_id=owner.pk,
        target=campaign,
        at=at,
        sentence=f"{by.label} started the campaign {name} on {robot.slug}.",
    )
    return campaign


@transaction.atomic
def update_campaign(
    *, campaign: Campaign, changes: Mapping[str, object], by: Actor, at: datetime
) -> Campaign:
    """
    Change a campaign's name or its rule. Saying what it says already changes nothing.

    What is on the robot changes by a verdict alone, and a lineage that has ended stays ended.
    """
    campaign = locked(campaign)
    changed = patch.apply(campaign, changes)
    if not changed:
        return campaign
    campaign.save(update_fields=changed)
    audit.record(
        "campaign.changed",
        by=by,
        account_id=campaign.owner_id,
        target=campaign,
        at=at,
        sentence=f"{by.label} changed the campaign {campaign.name}: {_what(campaign, changed)}.",
        **{field: getattr(campaign, field) for field in changed},
    )
    return campaign


@transaction.atomic
def put_on_robot(
    *, campaign: Campaign, checkpoint: Checkpoint, trial_id: str, by: Actor, at: datetime
) -> Campaign:
    """Make a checkpoint the campaign's policy on the robot, by the verdict on that trial."""
    campaign = locked(campaign)
    before = campaign.policy_on_robot
    campaign.policy_on_robot = checkpoint
    campaign.policy_trial_id, campaign.policy_put_at = trial_id, at
    campaign.save(update_fields=["policy_on_robot", "policy_trial_id", "policy_put_at"])
    instead = f" instead of {before}" if before is not None and before != checkpoint else ""
    audit.record(
        "campaign.policy",
        by=by,
        account_id=campaign.owner_id,
        target=campaign,
        at=at,
        sentence=f"{by.label} put {checkpoint} on the robot of {campaign.name}{instead}.",
        checkpoint=checkpoint.pk,
        replaces=before and before.pk,
        trial=trial_id,
    )
    return campaign


def _what(campaign: Campaign, changed: list[str]) -> str:
    said = {
        "name": "it has a new name",
        "fail_ends_lineage": "a FAIL in simulation ends a lineage"
        if campaign.fail_ends_lineage
        else "a FAIL in simulation ends no lineage",
    }
    return ", ".join(said[field] for field in changed)
