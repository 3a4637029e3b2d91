"""What a person decides on a trial, and the three things that may follow."""

from datetime import datetime
from typing import Any

from django.db import transaction

from driver.wire import moments
from hub.accounts.actors import Actor
from hub.accounts.models import User
from hub.accounts.permissions import PersonsOnly, may_decide, signed_in_recently
from hub.audit import services as audit
from hub.campaigns.services import agents, campaigns, lineage
from hub.core.problems import Conflict
from trials import readings
from trials.models import Trial, Verdict
from trials.readings import SessionReading
from trials.rules import RULES_VERSION
from trials.rules import verdicts as rule
from trials.rules.verdicts import Asked, Facts
from trials.services import locks


class NoVerdict(Conflict):
    """`because` names the reason for programs; the detail says it to a person."""

    slug = "trial-takes-no-verdict"
    title = "This trial does not take this verdict now."


@transaction.atomic
def give_verdict(*, trial: Trial, asked: Asked, reason: str, by: Actor, at: datetime) -> Verdict:
    """
    Write down what a person decided on a candidate that has run, with what it was decided on, and do it.

    promote puts the checkpoint on the robot, iterate wakes the campaign's agents, stop ends the lineage.

    :raises RecentSignInNeeded: for a session that is too old
    :raises NoVerdict: for a control, before the run, a second time, and where the option cannot be
    """
    may_decide(by, trial.session.owner)
    signed_in_recently(by, at=at)
    locks.hold_campaigns([trial.session.campaign_id, trial.checkpoint.run.campaign_id])
    trial = locks.trial(trial)  # two may tap at once
    reading = readings.read_session(trial.session, at=at)
    _check(trial, reading, asked)
    verdict = _write(trial, reading, asked, reason, by=by, at=at)
    _CONSEQUENCES[asked.option](verdict, reading, by=by, at=at)
    _record(verdict, by=by, at=at)
    return verdict


def facts_of(trial: Trial, reading: SessionReading) -> Facts:
    """What stands at this moment, for the rules and for the page on which a person decides."""
    session = reading.session
    baseline = session.baseline
    return Facts(
        role=trial.role,  # type: ignore[arg-type]  # the column's choices are the rules' roles
        has_started=trial.has_started,
        has_verdict=readings.verdict_of(trial) is not None,
        has_campaign=session.campaign is not None,
        bracket_holds=reading.bracket["holds"],
        policy_at_planning=baseline and baseline["checkpoint"],
        policy_now=session.campaign.policy_on_robot_id if session.campaign else None,
        lineage_ended=trial.checkpoint.lineage_ended_at is not None,
    )


def _check(trial: Trial, reading: SessionReading, asked: Asked) -> None:
    try:
        rule.check_verdict(facts_of(trial, reading), asked)
    except rule.WrongReplacement as why:
        raise NoVerdict(str(why), because=why.slug, current=why.current) from why
    except rule.VerdictRefused as why:
        raise NoVerdict(str(why), because=why.slug) from why


def _write(
    trial: Trial, reading: SessionReading, asked: Asked, reason: str, *, by: Actor, at: datetime
) -> Verdict:
    is_promotion, holds = asked.option == "promote", reading.bracket["holds"]
    campaign = trial.session.campaign
    return Verdict.objects.create(
        trial=trial,
        option=asked.option,
        reason=reason,
        by=_person(by),
        at=at,
        bracket_acknowledged=is_promotion and asked.acknowledge_bracket and holds is not True,
        replaces=campaign.policy_on_robot if is_promotion and campaign else None,
        criteria=reading.judge(trial),
        bracket=reading.bracket,
        rules_version=RULES_VERSION,
    )


def _person(by: Actor) -> User:
    if by.user is None:
        raise PersonsOnly
    return by.user


def _promote(verdict: Verdict, reading: SessionReading, *, by: Actor, at: datetime) -> None:
    trial, campaign = verdict.trial, verdict.trial.session.campaign
    if campaign is None:
        raise LookupError("the rules refuse a promotion without a campaign")
    campaigns.put_on_robot(campaign=campaign, checkpoint=trial.checkpoint, trial_id=trial.pk, by=by, at=at)


def _iterate(verdict: Verdict, reading: SessionReading, *, by: Actor, at: datetime) -> None:
    campaign = verdict.trial.session.campaign
    if campaign is not None:
        agents.wake_agents(campaign=campaign, payload=_wake(verdict), by=by, at=at)


def _stop(verdict: Verdict, reading: SessionReading, *, by: Actor, at: datetime) -> None:
    lineage.end_lineage(checkpoint=verdict.trial.checkpoint, reason=verdict.reason, by=by, at=at)


_CONSEQUENCES = {"promote": _promote, "iterate": _iterate, "stop": _stop}


def _wake(verdict: Verdict) -> dict[str, Any]:
    """What an agent gets up to: enough to draft the next round from."""
    trial = verdict.trial
    return {
        "kind": "verdict",
        "session": trial.session_id,
        "trial": trial.pk,
        "checkpoint": {
            "id": trial.checkpoint_id,
            "run": trial.checkpoint.run.name,
            "step": trial.checkpoint.step,
        },
        "verdict": {
            "option": verdict.option,
            "reason": verdict.reason,
            "by": verdict.by.email,
            "at": moments.write(verdict.at),
        },
        "criteria": verdict.criteria,
        "bracket": verdict.bracket,
        "notes": None,
        "summary": log.summary if (log := readings.log_of(trial)) else None,
    }


_DID = {"promote": "promoted", "iterate": "sent back to simulation", "stop": "stopped"}


def _record(verdict: Verdict, *, by: Actor, at: datetime) -> None:
    trial = verdict.trial
    instead = f" in place of {verdict.replaces}" if verdict.replaces else ""
    warned = " The bracket did not hold, which was acknowledged." if verdict.bracket_acknowledged else ""
    audit.record(
        "trial.verdict",
        by=by,
        account_id=trial.session.owner_id,
        target=trial,
        at=at,
        sentence=f"{by.label} {_DID[verdict.option]} {trial.checkpoint}{instead} after {trial} of "
        f"{trial.session}: {verdict.reason}{warned}",
        option=verdict.option,
        verdict=verdict.pk,
    )
