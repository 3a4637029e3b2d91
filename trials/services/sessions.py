"""Sessions: planned through one function, whoever asks, and called off."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from django.db import transaction

from devices.models import Approval
from devices.services import approvals
from driver.wire.sheet import BadSheet, sheet_digest
from hub.accounts.actors import Actor
from hub.audit import services as audit
from hub.campaigns.models import Campaign, Checkpoint, Round
from hub.campaigns.services import rounds
from hub.campaigns.services.rounds import AlreadyDecided
from hub.core import ids
from hub.core.problems import Conflict, Unprocessable
from trials.models import RunSheet, Trial, TrialSession
from trials.rules import drafting
from trials.rules.drafting import Sheet, Subject
from trials.rules.order import Place
from trials.services import filing, locks, planning
from trials.services.planning import Plan, Review


class NotShortlisted(Conflict):
    slug = "round-not-decided"
    title = "The round has no shortlist yet."


class SessionUnderWay(Conflict):
    slug = "session-under-way"
    title = "The session cannot be called off any more."


@transaction.atomic
def plan_session(*, plan: Plan, by: Actor, at: datetime, pk: str | None = None) -> TrialSession:
    """
    Write down a session: its order, its run sheets, and the requests if a device is named or only one fits.

    This is the one planning function; it never consents to anything.

    :raises PicksRefused: :raises Unprocessable: naming what does not fit
    :raises LineageEnded: for a pick that a stop verdict ended
    :raises DeviceNotActive: :raises ContractNotAccepted: for a named device; then there is no session either
    """
    plan = _locked(plan)
    review = planning.review(plan)
    session = TrialSession.objects.create(
        pk=pk or ids.new_id("ses"),
        owner=plan.owner,
        campaign=plan.campaign,
        round=plan.round,
        device=review.device,
        reason=plan.reason,
        tolerances=review.tolerances,
        baseline=review.baseline,
        planned_by=by.label,
        created_at=at,
    )
    trials = _write_trials(session, review, at=at)
    _record_plan(session, trials, by=by, at=at)
    if review.device is not None:
        filing.file_approvals(session=session, device=review.device, by=by, at=at)
    return session


@transaction.atomic
def decide_round(*, round: Round, plan: Plan, by: Actor, at: datetime) -> TrialSession:
    """
    Plan the session of a round's shortlist; the round is decided with it, once.

    :raises AlreadyDecided: naming the session
    :raises WrongState: for a draft
    """
    pk = ids.new_id("ses")
    decided = rounds.mark_decided(round=round, session_id=pk, by=by, at=at)
    return plan_session(plan=replace(plan, round=decided), by=by, at=at, pk=pk)


@transaction.atomic
def replan_round(*, round: Round, plan: Plan, by: Actor, at: datetime) -> TrialSession:
    """
    Plan the shortlist of a decided round once more, after its session was called off.

    :raises NotShortlisted: before the round is decided
    :raises AlreadyDecided: naming the session that is open
    """
    locks.hold_campaigns([round.campaign_id])
    round = rounds.locked(round)
    last = round.trial_sessions.order_by("-pk").first()
    if last is None:
        raise NotShortlisted(f"{round} is {round.state}: shortlist it first.", state=str(round.state))
    if not last.is_cancelled:
        raise AlreadyDecided(f"{round} has its session.", session=last.pk)
    return plan_session(plan=_with_picks_of(last, replace(plan, round=round)), by=by, at=at)


@transaction.atomic
def cancel_session(*, session: TrialSession, by: Actor, at: datetime) -> TrialSession:
    """
    Call a session off before anything of it ran: what is requested is withdrawn, and nothing filed any more.

    A second time changes nothing.

    :raises SessionUnderWay: while a consent is given, which a person revokes first, and once a run started
    """
    session = locks.session(session)
    if session.is_cancelled:
        return session
    locks.hold_approvals(session)
    open_ones = list(Approval.objects.filter(trial__session=session).order_by("pk"))
    _check_not_under_way(open_ones, at=at)
    for approval in open_ones:
        if approval.state_at(at) == Approval.State.REQUESTED:
            approvals.withdraw_approval(approval=approval, reason="the session was called off", by=by, at=at)
    session.cancelled_at, session.cancelled_by = at, by.label
    session.save(update_fields=["cancelled_at", "cancelled_by"])
    audit.record(
        "session.cancelled",
        by=by,
        account_id=session.owner_id,
        target=session,
        at=at,
        sentence=f"{by.label} called off {session}.",
    )
    return session


def _locked(plan: Plan) -> Plan:
    """Hold the campaigns whose lineages are read, then read the picks afresh."""
    named = [checkpoint.pk for checkpoint in plan.picks]
    owners = Campaign.objects.filter(runs__checkpoints__in=named).values_list("pk", flat=True)
    locks.hold_campaigns([*owners, *([plan.campaign.pk] if plan.campaign else [])])
    fresh = Checkpoint.objects.select_related("run__campaign", "contract__robot").in_bulk(named)
    campaign = plan.campaign and Campaign.objects.select_related("owner", "robot").get(pk=plan.campaign.pk)
    return replace(
        plan,
        campaign=campaign,
        controls=[fresh[checkpoint.pk] for checkpoint in plan.controls],
        candidates=[fresh[checkpoint.pk] for checkpoint in plan.candidates],
    )


def _with_picks_of(session: TrialSession, plan: Plan) -> Plan:
    trials = session.trials.select_related("checkpoint").order_by("position")
    controls = {trial.checkpoint_id: trial.checkpoint for trial in trials if trial.is_control}
    candidates = [trial.checkpoint for trial in trials if not trial.is_control]
    return replace(plan, controls=list(controls.values()), candidates=candidates)


def _write_trials(session: TrialSession, review: Review, *, at: datetime) -> list[Trial]:
    trials = Trial.objects.bulk_create(_trial(session, place, review) for place in review.places)
    RunSheet.objects.bulk_create(_sheet(trial, review, at=at) for trial in trials)
    return trials


def _trial(session: TrialSession, place: Place, review: Review) -> Trial:
    simulated = review.simulated[place.checkpoint]
    return Trial(
        session=session,
        position=place.position,
        role=place.role,
        checkpoint=review.checkpoints[place.checkpoint],
        gates=list(simulated.gates),
        sim=simulated.sim,
        sim_measured=simulated.measured,
    )


def _sheet(trial: Trial, review: Review, *, at: datetime) -> RunSheet:
    try:
        document = _draft(trial, review)
    except BadSheet as bad:
        raise Unprocessable("No run sheet can be drafted for it.", errors=bad.errors) from bad
    return RunSheet(trial=trial, document=document, digest=sheet_digest(document), updated_at=at)


def _draft(trial: Trial, review: Review) -> Sheet:
    checkpoint = trial.checkpoint
    subject = Subject(
        trial=trial.pk,
        session=trial.session_id,
        position=trial.position,
        role=trial.role,  # type: ignore[arg-type]  # the column's choices are the rules' roles
        checkpoint=checkpoint.pk,
        run=checkpoint.run.name,
        step=checkpoint.step,
        onnx_sha256=checkpoint.onnx_sha256,
        contract=str(checkpoint.contract),
    )
    return drafting.draft_sheet(
        subject,
        pairs=planning.robot_pairs(checkpoint),
        gates=trial.gates,
        measured=trial.sim_measured,
        baseline=review.baseline and review.baseline["summary"],
    )


def _record_plan(session: TrialSession, trials: Sequence[Trial], *, by: Actor, at: datetime) -> None:
    where = f" on {session.device}" if session.device else ", on no device yet"
    order = ", ".join(str(trial.checkpoint) for trial in trials)
    audit.record(
        "session.planned",
        by=by,
        account_id=session.owner_id,
        target=session,
        at=at,
        sentence=f"{by.label} planned a session of {len(trials)} trials{where} ({order}): {session.reason}",
        trials=[trial.pk for trial in trials],
    )


def _check_not_under_way(found: Sequence[Approval], *, at: datetime) -> None:
    for approval in found:
        if approval.started_at is not None:
            raise SessionUnderWay(
                "A run of it has started; what has run stays on record.", trial=approval.subject_id
            )
        if approval.state_at(at) == Approval.State.ISSUED:
            raise SessionUnderWay(
                "Consent to one of its trials is given; revoke that first.", trial=approval.subject_id
            )
