"""Rounds: gates and what simulation measured, drafted, then locked, then decided once."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Max

from driver.wire import moments
from hub.accounts.actors import Actor
from hub.audit import services as audit
from hub.campaigns.models import Campaign, Checkpoint, Round, RoundResult
from hub.campaigns.rules import gates as rule
from hub.campaigns.services import campaigns, lineage
from hub.core.lifecycle import WrongState
from hub.core.problems import Conflict, Unprocessable

Measured = dict[str, float | None]


class NotReady(Conflict):
    slug = "round-not-ready"
    title = "The round has nothing to lock yet."


class AlreadyDecided(Conflict):
    slug = "round-already-decided"
    title = "The round has its shortlist, and there is only one."


@transaction.atomic
def create_round(*, campaign: Campaign, content: Mapping[str, Any], by: Actor, at: datetime) -> Round:
    """
    Draft the campaign's next round; `content` may hold `resumes_from`, `gates` and `results`.

    :raises LineageEnded, FailedInSim: for a checkpoint that no round may resume from
    :raises Unprocessable: naming each fault of gates and results
    """
    campaign = campaigns.locked(campaign)
    last = campaign.rounds.aggregate(last=Max("number"))["last"] or 0
    round = Round.objects.create(campaign=campaign, number=last + 1, created_at=at)
    _write(round, campaign, content)
    resumed = f", resuming from {round.resumes_from}" if round.resumes_from else ""
    _record("round.created", round, by=by, at=at, sentence=f"drafted {_called(round, campaign)}{resumed}.")
    return round


@transaction.atomic
def update_round(*, round: Round, changes: Mapping[str, Any], by: Actor, at: datetime) -> Round:
    """
    Change a draft: `resumes_from`, and `gates` or `results` as a whole. Saying what it says changes nothing.

    :raises WrongState: once it is locked
    :raises LineageEnded, FailedInSim: for a checkpoint that no round may resume from
    :raises Unprocessable: naming each fault of gates and results
    """
    campaign = campaigns.locked(round.campaign)
    round = locked(round)
    if round.state != Round.State.DRAFT:
        raise WrongState(
            f"The round is {round.state}; gates and results change while it is a draft.",
            state=str(round.state),
            wanted=str(Round.State.DRAFT),
        )
    changed = _write(round, campaign, changes)
    if changed:
        said = f"changed {' and '.join(changed)} of {_called(round, campaign)}.".replace("_", " ")
        _record("round.changed", round, by=by, at=at, sentence=said)
    return round


@transaction.atomic
def lock_round(*, round: Round, by: Actor, at: datetime) -> Round:
    """
    Fix gates and measurements, so that they are known before anyone chooses.

    :raises WrongState: when it is no draft
    :raises NotReady: without a gate, and without a result
    :raises LineageEnded, FailedInSim: when what it resumes from has been ended meanwhile
    """
    campaign = campaigns.locked(round.campaign)
    round = locked(round)
    round.move_to(Round.State.LOCKED)
    sims = sims_of(round)
    if not round.gates or not sims:
        raise NotReady("Give it at least one gate and one result first.")
    if round.resumes_from:
        _check_resumable(round.resumes_from, campaign)
    round.locked_at = at
    round.save(update_fields=["state", "locked_at"])
    passed = sum(sim["verdict"] == "PASS" for sim, _ in sims.values())
    said = f"locked {_called(round, campaign)}: {len(round.gates)} gates, {passed} of {len(sims)} pass."
    _record("round.locked", round, by=by, at=at, sentence=said)
    return round


@transaction.atomic
def mark_decided(*, round: Round, session_id: str, by: Actor, at: datetime) -> Round:
    """
    Note that a round has its shortlist. The planning that calls holds its transaction open around this, and
    calls it with the id that the session is going to have, before it writes the session.

    :raises AlreadyDecided: the second time, naming the session
    :raises WrongState: for a draft
    """
    campaign = campaigns.locked(round.campaign)  # two may shortlist at once
    round = locked(round)
    if round.state == Round.State.DECIDED:
        raise AlreadyDecided(
            f"{_called(round, campaign)} was decided by {round.decided_by}.",
            session=round.session_id,
            decided_by=round.decided_by,
            decided_at=round.decided_at and moments.write(round.decided_at),
        )
    round.move_to(Round.State.DECIDED)
    round.decided_at, round.decided_by, round.session_id = at, by.label, session_id
    round.save(update_fields=["state", "decided_at", "decided_by", "session_id"])
    said = f"shortlisted {_called(round, campaign)} into a session."
    _record("round.decided", round, by=by, at=at, sentence=said, session=session_id)
    return round


def locked(round: Round) -> Round:
    """Lock a round's row for the rest of the transaction; the campaign's comes before it."""
    rows = Round.objects.select_for_update(of=("self",), no_key=True)
    return rows.select_related("campaign__robot", "resumes_from__run").get(pk=round.pk)


def sim_of(round: Round, checkpoint: Checkpoint) -> tuple[rule.Sim, Measured] | tuple[None, None]:
    """A checkpoint's verdict in simulation and each gate's measurement; nothing where it was not measured."""
    return sims_of(round).get(checkpoint.pk, (None, None))


def sims_of(round: Round) -> dict[str, tuple[rule.Sim, Measured]]:
    """Checkpoint id → its verdict in simulation and each gate's measurement, for all that were measured."""
    return {row.checkpoint_id: (row.sim, row.by_gate) for row in round.results.all()}


def has_failed(checkpoint: Checkpoint) -> bool:
    """Whether the round that was locked last of those that measured it says FAIL."""
    rows = checkpoint.results.filter(round__locked_at__isnull=False).select_related("round")
    newest = rows.order_by("-round__locked_at", "-pk").first()
    return newest is not None and newest.sim["verdict"] == "FAIL"


def _write(round: Round, campaign: Campaign, content: Mapping[str, Any]) -> list[str]:
    """Write what is new in `content`, and say which parts that are."""
    before = [row.as_written for row in round.results.order_by("pk")]
    now = content.get("gates", round.gates), content.get("results", before)
    _check(*now)
    changed = []
    if "resumes_from" in content and content["resumes_from"] != round.resumes_from_id:
        round.resumes_from = _resumable(content["resumes_from"], campaign)
        changed.append("resumes_from")
    if now[0] != round.gates:
        round.gates = now[0]
        changed.append("gates")
    if changed:
        round.save(update_fields=changed)
    if now[1] != before:
        _write_results(round, campaign, now[1])
        changed.append("results")
    return changed


def _write_results(round: Round, campaign: Campaign, results: Sequence[rule.Result]) -> None:
    known = _verified(campaign, [result["checkpoint"] for result in results])
    errors = {
        f"results.{at}.checkpoint": [lineage.NOT_VERIFIED]
        for at, result in enumerate(results)
        if result["checkpoint"] not in known
    }
    if errors:
        raise Unprocessable(errors=errors)
    round.results.all().delete()
    RoundResult.objects.bulk_create(
        RoundResult(
            round=round,
            checkpoint=known[result["checkpoint"]],
            seeds_run=result["seeds_run"],
            seeds_upright=result["seeds_upright"],
            measured=result["measured"],
        )
        for result in results
    )


def _resumable(checkpoint_id: str | None, campaign: Campaign) -> Checkpoint | None:
    if checkpoint_id is None:
        return None
    checkpoint = _verified(campaign, [checkpoint_id]).get(checkpoint_id)
    if checkpoint is None:
        raise Unprocessable(errors={"resumes_from": [lineage.NOT_VERIFIED]})
    _check_resumable(checkpoint, campaign)
    return checkpoint


def _check_resumable(checkpoint: Checkpoint, campaign: Campaign) -> None:
    lineage.check_resumable(checkpoint, campaign, failed=has_failed(checkpoint))


def _verified(campaign: Campaign, wanted: Sequence[str]) -> dict[str, Checkpoint]:
    rows = Checkpoint.objects.verified().filter(run__campaign=campaign).select_related("run")
    return rows.in_bulk(wanted)


def _check(gates: Sequence[rule.Gate], results: Sequence[rule.Result]) -> None:
    try:
        rule.check_gates(gates)
        rule.check_results(results, gates)
    except rule.BadShape as bad:
        raise Unprocessable(errors={_dotted(path): said for path, said in bad.errors.items()}) from bad


def _dotted(path: str) -> str:
    """`gates[0].op` in the spelling of every other answer, `gates.0.op`."""
    return re.sub(r"\[(\d+)\]", r".\1", path)


def _called(round: Round, campaign: Campaign) -> str:
    return f"round {round.number} of {campaign.name}"


def _record(action: str, round: Round, *, by: Actor, at: datetime, sentence: str, **data: object) -> None:
    audit.record(
        action,
        by=by,
        account_id=round.campaign.owner_id,
        target=round,
        at=at,
        sentence=f"{by.label} {sentence}",
        **data,
    )
