"""What a session is planned from: the picks, and what simulation, past runs and the policy say of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from devices.models import Device
from devices.services import devices
from driver.wire.robot import Pair
from hub.accounts.models import Account
from hub.campaigns.models import Campaign, Checkpoint, Round, RoundResult
from hub.campaigns.rules.gates import Gate, Sim
from hub.campaigns.services import lineage, rounds
from hub.core.problems import Unprocessable
from trials import readings
from trials.models import TrialLog
from trials.rules import order
from trials.rules.bracket import BadTolerances, Tolerance, plan_tolerances
from trials.rules.order import BadPlan, Candidate, Place
from trials.rules.runs import sides_of


class PicksRefused(Unprocessable):
    slug = "picks-refused"
    title = "What was picked makes no session."


@dataclass(frozen=True, kw_only=True)
class Plan:
    """
    What somebody wants to try, and why. The owner is the campaign's, else the device's: it has one or both.

    `picked_as` is what the caller calls the candidates; with a round they are its shortlist.
    """

    owner: Account
    controls: Sequence[Checkpoint]
    candidates: Sequence[Checkpoint]
    reason: str
    campaign: Campaign | None = None
    round: Round | None = None
    device: Device | None = None
    tolerances: Sequence[Mapping[str, Any]] = ()
    picked_as: Literal["candidates", "shortlist"] = "candidates"

    @property
    def picks(self) -> list[Checkpoint]:
        return [*self.controls, *self.candidates]


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """What a locked round says of a checkpoint; nothing where none measured it."""

    gates: Sequence[Gate] = ()
    sim: Sim | None = None
    measured: Mapping[str, float | None] | None = None


@dataclass(frozen=True, kw_only=True)
class Review:
    """Everything that a session is drafted from, looked up and checked."""

    places: Sequence[Place]
    checkpoints: Mapping[str, Checkpoint]
    simulated: Mapping[str, Simulated]
    device: Device | None
    tolerances: Sequence[Tolerance]
    baseline: dict[str, Any] | None


def review(plan: Plan) -> Review:
    """
    Check the picks and look up what is known of them. The caller holds the locks of their campaigns.

    :raises PicksRefused: naming the checkpoint in the way
    :raises LineageEnded: for a checkpoint that a stop verdict ended
    :raises Unprocessable: for tolerances that cannot be
    """
    for checkpoint in plan.picks:
        _check_pick(checkpoint, plan)
    simulated = _simulated(plan)
    places = _in_order(plan, simulated)
    for checkpoint in plan.picks:
        lineage.check_goes_on(checkpoint)
    device = plan.device or _only_device(plan)
    return Review(
        places=places,
        checkpoints={checkpoint.pk: checkpoint for checkpoint in plan.picks},
        simulated=simulated,
        device=device,
        tolerances=_tolerances(plan, device),
        baseline=_baseline(plan.campaign),
    )


def _check_pick(checkpoint: Checkpoint, plan: Plan) -> None:
    robot = plan.campaign.robot if plan.campaign else None
    if checkpoint.contract is None or checkpoint.verified_at is None:
        raise _refused(plan, checkpoint, "is not uploaded and verified yet")
    if robot is not None and checkpoint.contract.robot_id != robot.pk:
        raise _refused(plan, checkpoint, f"is for another robot than {robot}")


def _refused(plan: Plan, checkpoint: Checkpoint, said: str) -> PicksRefused:
    field = "controls" if checkpoint in plan.controls else plan.picked_as
    return PicksRefused(errors={field: [f"{checkpoint} {said}."]}, checkpoint=checkpoint.pk)


def _simulated(plan: Plan) -> dict[str, Simulated]:
    if plan.round is None:
        return _newest_of(plan.picks)
    sims = rounds.sims_of(plan.round)
    for checkpoint in plan.candidates:
        if checkpoint.pk not in sims:
            raise _refused(plan, checkpoint, f"was not measured in {plan.round}")
    nothing: tuple[None, None] = (None, None)
    found = {checkpoint.pk: sims.get(checkpoint.pk, nothing) for checkpoint in plan.picks}
    return {
        pk: Simulated(gates=plan.round.gates, sim=sim, measured=measured)
        for pk, (sim, measured) in found.items()
    }


def _newest_of(checkpoints: Sequence[Checkpoint]) -> dict[str, Simulated]:
    """By the newest locked round that measured each: the best that is known without a round of one's own."""
    rows = (
        RoundResult.objects.filter(checkpoint__in=checkpoints)
        .exclude(round__state=Round.State.DRAFT)
        .select_related("round")
        .order_by("round__locked_at", "pk")
    )
    newest = {row.checkpoint_id: row for row in rows}
    return {
        checkpoint.pk: _of_row(newest[checkpoint.pk]) if checkpoint.pk in newest else Simulated()
        for checkpoint in checkpoints
    }


def _of_row(row: RoundResult) -> Simulated:
    return Simulated(gates=row.round.gates, sim=row.sim, measured=row.by_gate)


def _in_order(plan: Plan, simulated: Mapping[str, Simulated]) -> list[Place]:
    candidates = [
        Candidate(checkpoint.pk, checkpoint.step, simulated[checkpoint.pk].sim, str(checkpoint))
        for checkpoint in plan.candidates
    ]
    try:
        return order.plan_order(
            controls=[checkpoint.pk for checkpoint in plan.controls], candidates=candidates
        )
    except BadPlan as bad:
        field = bad.field if bad.field == "controls" else plan.picked_as
        raise PicksRefused(errors={field: [str(bad)]}, checkpoint=bad.checkpoint) from bad


def _only_device(plan: Plan) -> Device | None:
    contracts = [checkpoint.contract for checkpoint in plan.picks if checkpoint.contract is not None]
    return devices.device_for(owner=plan.owner, contracts=contracts)


def _tolerances(plan: Plan, device: Device | None) -> list[Tolerance]:
    past = readings.pairs_on(device.pk) if device is not None else []
    sides = sides_of(pair.as_json() for pair in robot_pairs(plan.picks[0]))
    try:
        return plan_tolerances(plan.tolerances, past=past, sides=sides)
    except BadTolerances as bad:
        raise Unprocessable(errors=bad.errors) from bad


def robot_pairs(checkpoint: Checkpoint) -> Sequence[Pair]:
    if checkpoint.contract is None:
        raise LookupError("picks are verified, and so have a contract")
    return checkpoint.contract.robot.described.pairs


def _baseline(campaign: Campaign | None) -> dict[str, Any] | None:
    """The promoted policy's own numbers; they are null where its log never came."""
    if campaign is None or campaign.policy_on_robot_id is None:
        return None
    log = TrialLog.objects.filter(trial=campaign.policy_trial_id, state=TrialLog.State.UPLOADED).first()
    return {
        "trial": campaign.policy_trial_id,
        "checkpoint": campaign.policy_on_robot_id,
        "summary": log.summary if log else None,
    }
