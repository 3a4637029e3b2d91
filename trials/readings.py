"""From rows to the plain values that the rules judge by, gathered afresh on every read."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import models

from devices.models import Approval
from trials.models import Trial, TrialLog, TrialSession, Verdict
from trials.rules import noise, status
from trials.rules.bracket import Bracket, Tolerance, bracket
from trials.rules.criteria import Case, JudgedCriterion, judge
from trials.rules.noise import Comparison, ControlPair
from trials.rules.runs import Run, Sides, sides_of
from trials.rules.status import Standing

PAIRS_REMEMBERED = 50  # the newest; a device that runs every day for years needs no more


@dataclass(frozen=True)
class TrialLine:
    """A trial and where it stands: what a list says of it."""

    trial: Trial
    status: str


@dataclass(frozen=True, kw_only=True)
class Clock:
    """
    When a trial ran, in seconds from the session's first start, and how long the robot had stood before.
    """

    started_at: datetime | None
    stopped_at: datetime | None
    clock_s: float | None
    waited_s: float | None


@dataclass(frozen=True, kw_only=True)
class SessionReading:
    """A session at one moment: its trials in order, each as the rules see it, and what the controls say."""

    session: TrialSession
    trials: Sequence[Trial]
    standings: Sequence[Standing]
    runs: Sequence[Run]
    past: Sequence[ControlPair]
    sides: Sides
    bracket: Bracket

    @property
    def controls(self) -> list[Run]:
        return [run for run in self.runs if run.role == "control"]

    @property
    def lines(self) -> list[TrialLine]:
        return [TrialLine(trial, self.status_of(trial)) for trial in self.trials]

    def comparisons(self) -> list[Comparison]:
        """Each candidate beside the controls; under a bracket that does not hold, each decides nothing."""
        return noise.compare(self.runs, sides=self.sides, past=self.past, holds=self.bracket["holds"])

    def status_of(self, trial: Trial) -> status.Status:
        return status.status(self.standings[trial.position - 1])

    def clock_of(self, trial: Trial) -> Clock:
        run = self.runs[trial.position - 1]
        starts = [other.started_at for other in self.runs if other.started_at]
        stops = [other.stopped_at for other in self.runs[: trial.position - 1] if other.stopped_at]
        return Clock(
            started_at=run.started_at,
            stopped_at=run.stopped_at,
            clock_s=_seconds(min(starts, default=None), run.started_at),
            waited_s=_seconds(max(stops, default=None), run.started_at),
        )

    def judge(self, trial: Trial) -> list[JudgedCriterion]:
        """The trial's criteria as they stand now; those of a session whose bracket does not hold say so."""
        baseline = self.session.baseline
        return judge(
            Case(
                own=self.runs[trial.position - 1],
                controls=self.controls,
                criteria=trial.run_sheet.document["criteria"],
                sides=sides_of_trial(trial),
                gates=trial.gates,
                measured=trial.sim_measured or {},
                baseline=baseline and baseline["summary"],
                past=self.past,
                holds=self.bracket["holds"],
            )
        )


@dataclass(frozen=True, kw_only=True)
class TrialReading:
    """One trial at one moment, within its session."""

    trial: Trial
    session: SessionReading

    @property
    def status(self) -> str:
        return self.session.status_of(self.trial)

    @property
    def criteria(self) -> list[JudgedCriterion]:
        return self.session.judge(self.trial)

    @property
    def comparisons(self) -> list[Comparison]:
        return [said for said in self.session.comparisons() if said["trial"] == self.trial.pk]

    @property
    def clock(self) -> Clock:
        return self.session.clock_of(self.trial)

    @property
    def stages(self) -> list[dict[str, Any]]:
        """The sheet's stages, each with what the signed log says became of it."""
        log = log_of(self.trial)
        summary = (log.summary if log else None) or {"stages": []}
        said = {stage["name"]: stage for stage in summary["stages"]}
        return [
            {**stage, **{key: said.get(stage["name"], {}).get(key) for key in _SAID_OF_STAGES}}
            for stage in self.trial.run_sheet.document["stages"]
        ]


_SAID_OF_STAGES = ("status", "reason", "t0_s")


def read_trial(trial: Trial, *, at: datetime) -> TrialReading:
    session = read_session(trial.session, at=at)
    return TrialReading(trial=session.trials[trial.position - 1], session=session)


def read_session(session: TrialSession, *, at: datetime) -> SessionReading:
    """Read a session and all its trials, in a number of queries that does not grow with them."""
    trials = list(in_order(session.trials.all()))
    return reading_of(session, trials, past=past_pairs(session), at=at)


def reading_of(
    session: TrialSession, trials: Sequence[Trial], *, past: Sequence[ControlPair], at: datetime
) -> SessionReading:
    """The same from trials that are loaded, all of the session's, in order."""
    standings = standings_of(session, trials, at=at)
    runs = [run_of(trial, standing) for trial, standing in zip(trials, standings, strict=True)]
    sides = sides_of_trial(trials[0])
    controls = [run for run in runs if run.role == "control"]
    tolerances: list[Tolerance] = session.tolerances
    return SessionReading(
        session=session,
        trials=trials,
        standings=standings,
        runs=runs,
        past=past,
        sides=sides,
        bracket=bracket(controls, tolerances, sides),
    )


def in_order(trials: "models.QuerySet[Trial]") -> "models.QuerySet[Trial]":
    """A session's trials with what judging reads of each."""
    return with_what_is_read(trials).order_by("position")


def with_what_is_read(trials: "models.QuerySet[Trial]") -> "models.QuerySet[Trial]":
    return trials.select_related(
        "checkpoint__run", "checkpoint__contract", "approval", "run_sheet", "log", "verdict__by"
    )


def with_trials(sessions: "models.QuerySet[TrialSession]") -> "models.QuerySet[TrialSession]":
    """Sessions with their trials in order, in one more query for all of them."""
    return sessions.prefetch_related(models.Prefetch("trials", in_order(Trial.objects.all())))


def standings_of(session: TrialSession, trials: Sequence[Trial], *, at: datetime) -> list[Standing]:
    last_started = max((trial.position for trial in trials if trial.has_started), default=0)
    return [
        Standing(
            trial=trial.pk,
            position=trial.position,
            role=trial.role,  # type: ignore[arg-type]  # the column's choices are the rules' roles
            approval=None if trial.approval is None else str(trial.approval.state_at(at)),
            log=log.state if (log := log_of(trial)) else None,  # type: ignore[arg-type]
            has_verdict=verdict_of(trial) is not None,
            is_overtaken=trial.position < last_started,
            is_cancelled=session.is_cancelled,
        )
        for trial in trials
    ]


def run_of(trial: Trial, standing: Standing) -> Run:
    approval, log = trial.approval, log_of(trial)
    return Run(
        trial=trial.pk,
        position=trial.position,
        role=standing.role,
        checkpoint=trial.checkpoint_id,
        log=log.state if log else "awaiting",  # type: ignore[arg-type]
        summary=log.summary if log else None,
        hub_check=log.hub_check if log else None,
        is_closed=status.is_closed_for_good(standing),
        started_at=approval.started_at if approval else None,
        stopped_at=approval.stopped_at if approval else None,
    )


def _seconds(since: datetime | None, until: datetime | None) -> float | None:
    return (until - since).total_seconds() if since is not None and until is not None else None


def log_of(trial: Trial) -> TrialLog | None:
    return getattr(trial, "log", None)


def verdict_of(trial: Trial) -> Verdict | None:
    return getattr(trial, "verdict", None)


def sides_of_trial(trial: Trial) -> Sides:
    return sides_of(trial.run_sheet.document["judging"]["pairs"])


def past_pairs(session: TrialSession) -> list[ControlPair]:
    """What control runs of earlier sessions on this session's device said, newest first."""
    if session.device_id is None:
        return []
    return pairs_on(session.device_id, before=session.pk)


def pairs_on(device_id: str, *, before: str | None = None) -> list[ControlPair]:
    """Pairs of one checkpoint run first and last in a session on this device, both with a log."""
    controls = Trial.objects.filter(
        role=Trial.Role.CONTROL, approval__device=device_id, approval__state=Approval.State.STOPPED
    ).filter(log__state="uploaded")
    if before is not None:
        controls = controls.filter(session__lt=before)
    rows = controls.order_by("-session", "position")[: 2 * PAIRS_REMEMBERED]
    by_session: dict[str, list[tuple[str, Any]]] = {}
    for session_id, checkpoint_id, summary in rows.values_list("session", "checkpoint", "log__summary"):
        by_session.setdefault(session_id, []).append((checkpoint_id, summary))
    return [
        ControlPair(first=found[0][1], last=found[1][1])
        for found in by_session.values()
        if len(found) == 2 and found[0][0] == found[1][0]
    ]
