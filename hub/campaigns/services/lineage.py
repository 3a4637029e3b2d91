"""Lineages: what no round may resume from, and nothing be trained on from, any more."""

from datetime import datetime

from django.db import transaction

from driver.wire import moments
from hub.accounts.actors import Actor
from hub.audit import services as audit
from hub.campaigns.models import Campaign, Checkpoint
from hub.campaigns.rules import lineage as rule
from hub.campaigns.services import campaigns
from hub.core.problems import Conflict

NOT_VERIFIED = "This is no checkpoint of the campaign that is uploaded and verified."


class LineageEnded(Conflict):
    slug = "lineage-ended"
    title = "The lineage of this checkpoint has ended."


class FailedInSim(Conflict):
    slug = "failed-in-simulation"
    title = "The checkpoint failed in simulation, and here a FAIL ends the lineage."


@transaction.atomic
def end_lineage(*, checkpoint: Checkpoint, reason: str, by: Actor, at: datetime) -> list[Checkpoint]:
    """
    End the lineage of a checkpoint: it and all that come from it. Those that had ended keep their moment.

    What ended now comes back; where that is nothing, nothing is written.
    """
    campaign = campaigns.locked(checkpoint.campaign)
    below = rule.descendants(checkpoint.pk, parents_of(campaign))
    going_on = Checkpoint.objects.filter(pk__in=[checkpoint.pk, *below], lineage_ended_at=None)
    ended = list(going_on.select_related("run").select_for_update(of=("self",), no_key=True).order_by("pk"))
    if not ended:
        return []
    for each in ended:
        inherited = "" if each == checkpoint else f"It comes from {checkpoint}: "
        each.lineage_ended_at, each.lineage_ended_reason = at, f"{inherited}{reason}"
    Checkpoint.objects.bulk_update(ended, ["lineage_ended_at", "lineage_ended_reason"])
    others = sum(each != checkpoint for each in ended)
    audit.record(
        "lineage.ended",
        by=by,
        account_id=campaign.owner_id,
        target=checkpoint,
        at=at,
        sentence=f"{by.label} ended the lineage of {checkpoint}{_and(others)}: {reason}",
        checkpoints=[each.pk for each in ended],
    )
    return ended


def check_goes_on(checkpoint: Checkpoint) -> None:
    """
    Refuse a checkpoint whose lineage has ended. The caller holds the campaign's lock.

    :raises LineageEnded: saying since when and why
    """
    if checkpoint.lineage_ended_at is not None:
        raise _ended(checkpoint)


def check_resumable(checkpoint: Checkpoint, campaign: Campaign, *, failed: bool) -> None:
    """
    Refuse a checkpoint that no round may resume from. The caller holds the campaign's lock.

    :raises LineageEnded: whatever the campaign's rule
    :raises FailedInSim: where the rule says that a FAIL ends the lineage
    """
    try:
        rule.check_resumable(
            checkpoint.pk,
            parents=parents_of(campaign),
            ended=ended_in(campaign),
            failed={checkpoint.pk} if failed else set(),
            fail_ends_lineage=campaign.fail_ends_lineage,
        )
    except rule.LineageEnded as why:
        raise _ended(Checkpoint.objects.select_related("run").get(pk=why.ended_at)) from why
    except rule.FailedInSim as why:
        raise FailedInSim(f"{checkpoint} is FAIL in simulation.", checkpoint=checkpoint.pk) from why


def line_of(checkpoint: Checkpoint | None) -> list[Checkpoint]:
    """The checkpoint and those it comes from, nearest first."""
    if checkpoint is None:
        return []
    line = list(rule.line(checkpoint.pk, parents_of(checkpoint.campaign)))
    found = Checkpoint.objects.select_related("run").in_bulk(line)
    return [found[pk] for pk in line]


def parents_of(campaign: Campaign) -> dict[str, str | None]:
    return dict(Checkpoint.objects.filter(run__campaign=campaign).values_list("pk", "parent_id"))


def ended_in(campaign: Campaign) -> set[str]:
    ended = Checkpoint.objects.filter(run__campaign=campaign, lineage_ended_at__isnull=False)
    return set(ended.values_list("pk", flat=True))


def _ended(checkpoint: Checkpoint) -> LineageEnded:
    return LineageEnded(
        f"The lineage of {checkpoint} has ended: {checkpoint.lineage_ended_reason}",
        checkpoint=checkpoint.pk,
        lineage_ended_at=checkpoint.lineage_ended_at and moments.write(checkpoint.lineage_ended_at),
    )


def _and(others: int) -> str:
    return f" and of {others} that {'comes' if others == 1 else 'come'} from it" if others else ""
