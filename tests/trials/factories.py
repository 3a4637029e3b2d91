"""Sessions and trials, driven to a state by the services; the box really signs, the store really keeps."""

import hashlib
import http.client
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from devices.models import Approval, Device
from devices.services import approvals, consent
from driver.wire import csvlog, signatures, statements
from driver.wire.csvlog import Log
from driver.wire.summary import Judging, Protection, RunFacts, StageLog, summarize
from hub.accounts import actors
from hub.accounts.models import Account, User
from hub.campaigns.models import Campaign, Checkpoint, Round
from tests.devices import factories as devices
from tests.devices.factories import Box
from tests.factories import NOON, actor
from tests.hub.campaigns import factories as campaigns
from trials import readings
from trials.models import Trial, TrialLog, TrialSession, Verdict
from trials.rules.verdicts import Asked
from trials.services import filing, log_uploads, logs, sessions, verdicts
from trials.services.planning import Plan

MINUTE = timedelta(minutes=1)
REASON = "is it better than what walks today?"


@dataclass
class Bench:
    """An account with a campaign, a control, two candidates measured in a locked round, and a box."""

    owner: Account
    by: User
    campaign: Campaign
    control: Checkpoint
    good: Checkpoint
    bad: Checkpoint
    round: Round
    box: Box

    @property
    def device(self) -> Device:
        return self.box.device

    def plan(self, **said: Any) -> Plan:
        picks = {"controls": [self.control], "candidates": [self.good, self.bad]}
        campaign = said.pop("campaign", self.campaign)
        return Plan(owner=self.owner, campaign=campaign, reason=REASON, **{**picks, **said})

    def decide(self, *, at: datetime = NOON, **said: Any) -> TrialSession:
        """Shortlist the round."""
        plan = self.plan(picked_as="shortlist", **said)
        return sessions.decide_round(round=self.round, plan=plan, by=actor(self.by), at=at)

    def session(self, *, at: datetime = NOON, **said: Any) -> TrialSession:
        """Plan explicit picks."""
        return sessions.plan_session(plan=self.plan(**said), by=actor(self.by), at=at)

    def file(
        self, session: TrialSession, *, device: Device | None = None, at: datetime = NOON
    ) -> TrialSession:
        return filing.file_approvals(session=session, device=device or self.device, by=actor(self.by), at=at)

    def consent(self, trial: Trial, *, at: datetime = NOON) -> Approval:
        return consent_to(trial, digest=fresh(trial).run_sheet.digest, by=self.by, at=at)

    def revoke(self, trial: Trial, *, at: datetime = NOON) -> Approval:
        return approvals.revoke_approval(
            approval=approval_of(trial), reason="", by=actor(self.by, signed_in_at=at), at=at
        )

    def decline(self, trial: Trial, *, at: datetime = NOON) -> Approval:
        return approvals.decline_approval(
            approval=approval_of(trial), reason="not today", by=actor(self.by, signed_in_at=at), at=at
        )

    def start(self, trial: Trial, *, at: datetime = NOON) -> None:
        self.box.tell(self.box.started(approval_of(trial)), at=at)

    def stop(self, trial: Trial, *, at: datetime = NOON) -> None:
        self.box.tell(self.box.stopped(approval_of(trial)), at=at)

    def run(self, trial: Trial, *, at: datetime = NOON) -> Trial:
        """Consent, start and stop, a minute apart."""
        self.consent(trial, at=at)
        self.start(trial, at=at + MINUTE)
        self.stop(trial, at=at + 2 * MINUTE)
        return fresh(trial)

    def upload(self, trial: Trial, content: Sequence["StageFile"], *, at: datetime = NOON) -> None:
        """Ask for URLs and put the files there, as the box does."""
        opened = log_uploads.open_log_upload(trial=trial, files=[file.declared for file in content], at=at)
        for file, one in zip(content, opened, strict=True):
            assert put(one.put.url, one.put.headers, file.content) == 200

    def statement(self, trial: Trial, **said: Any) -> dict[str, Any]:
        """The signed envelope of a log; without anything else, of one that is missing."""
        payload = statements.trial_log_payload(
            **{
                "approval_id": str(fresh(trial).approval_id),
                "device_id": self.device.pk,
                "trial_id": trial.pk,
                "state": "missing",
                "files": [],
                "summary": None,
                "detail": "the command wrote no log",
                "at": NOON,
                **said,
            }
        )
        return signatures.sign(payload, self.box.key)

    def record(self, trial: Trial, envelope: dict[str, Any], *, at: datetime = NOON) -> TrialLog:
        by = actors.device(self.device.pk)
        return logs.record_log(trial=fresh(trial), envelope=envelope, by=by, at=at)

    def log(self, trial: Trial, *, at: datetime = NOON, **numbers: Any) -> TrialLog:
        """Upload and record a log of which the hub finds the same numbers; they can be chosen."""
        content = stage_files(trial, **numbers)
        self.upload(trial, content, at=at)
        return self.record(trial, self.uploaded(trial, content), at=at)

    def uploaded(self, trial: Trial, content: Sequence["StageFile"], **changed: Any) -> dict[str, Any]:
        return self.statement(
            trial,
            state="uploaded",
            files=[file.said for file in content],
            summary=summary_of(trial, content, **changed),
            detail=None,
        )

    def lose_log(self, trial: Trial, *, at: datetime = NOON) -> TrialLog:
        return self.record(trial, self.statement(trial), at=at)

    def judge(self, trial: Trial, option: str = "iterate", *, at: datetime = NOON, **asked: Any) -> Verdict:
        return verdicts.give_verdict(
            trial=fresh(trial),
            asked=Asked(option=option, **asked),  # type: ignore[arg-type]
            reason="that is what the run showed",
            by=actor(self.by, signed_in_at=at),
            at=at,
        )


def bench(owner: Account, by: User, *, name: str = "walk") -> Bench:
    campaign = campaigns.campaign(owner, name=name)
    control = campaigns.checkpoint(campaign, step=700)
    good = campaigns.checkpoint(campaign, run="walk-8", step=400)
    bad = campaigns.checkpoint(campaign, run="walk-8", step=800)
    round_ = campaigns.round_of(
        campaign,
        campaigns.result(control, tilt=1.2),
        campaigns.result(good, tilt=1.0),
        campaigns.result(bad, tilt=2.5, upright=9),
    )
    box = devices.box(owner, by, robot=campaign.robot)
    return Bench(
        owner=owner,
        by=by,
        campaign=campaign,
        control=control,
        good=good,
        bad=bad,
        round=round_,
        box=box,
    )


def fresh(trial: Trial) -> Trial:
    """The trial as it is now, read as a view reads it."""
    found = readings.in_order(Trial.objects.filter(pk=trial.pk))
    return found.select_related("session__owner", "session__campaign").get()


def trials_of(session: TrialSession) -> list[Trial]:
    return list(readings.in_order(session.trials.all()))


def approval_of(trial: Trial) -> Approval:
    return Approval.objects.select_related("device__owner").get(pk=fresh(trial).approval_id)


def cancel(session: TrialSession, *, by: User, at: datetime = NOON) -> TrialSession:
    return sessions.cancel_session(session=session, by=actor(by), at=at)


def consent_to(trial: Trial, *, digest: str, by: User, at: datetime = NOON) -> Approval:
    return consent.issue_approval(
        approval=approval_of(trial), run_sheet_sha256=digest, by=actor(by, signed_in_at=at), at=at
    )


@dataclass(frozen=True)
class StageFile:
    """A version 1 log of one stage."""

    name: str
    stage: str
    content: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def declared(self) -> Any:
        return {
            "name": self.name,
            "stage": self.stage,
            "bytes": len(self.content),
            "sha256": self.sha256,
        }

    @property
    def said(self) -> dict[str, Any]:
        return {**self.declared, "rows": self.log.rows}

    @property
    def log(self) -> Log:
        return csvlog.read(self.content)


def stage_files(trial: Trial, **numbers: Any) -> list[StageFile]:
    """Hang and floor, with these numbers in both; the operator stopped before teleop."""
    content = csv(trial, **numbers)
    return [StageFile("01-hang.csv", "hang", content), StageFile("02-floor.csv", "floor", content)]


def csv(
    trial: Trial,
    *,
    tilt: float = 1.0,
    tracking: float = 0.02,
    asym: float = 1.0,
    fell: bool = False,
    rows: int = 101,
    spike_at: int | None = None,
) -> bytes:
    """A log whose tilt, asymmetry (degrees) and tracking error (rad) stay at these numbers."""
    pairs = fresh(trial).run_sheet.document["judging"]["pairs"]
    columns = ["t", "tick", "g_x", "g_y", "g_z", "fall"]
    columns += [
        f"{kind}:{pair[side]}" for pair in pairs for side in ("left", "right") for kind in ("q", "tgt")
    ]
    left = math.radians(asym)
    stream = io.BytesIO()
    with_joints = [value for _ in pairs for value in (left, left + tracking, 0.0, tracking)]
    writer = csvlog.Writer(stream, columns)
    for row in range(rows):
        angle = math.radians(30.0 if row == spike_at else tilt)
        gravity = [math.sin(angle), 0.0, -math.cos(angle)]
        writer.write([row * 0.02, row, *gravity, 1.0 if fell and row > rows // 2 else 0.0, *with_joints])
    return stream.getvalue()


def summary_of(trial: Trial, content: Sequence[StageFile], **changed: Any) -> dict[str, Any]:
    """What the driver would say of these files; the sheet's other stages did not run."""
    sheet = fresh(trial).run_sheet.document
    by_stage = {file.stage: file for file in content}
    stages = [
        _stage(stage, by_stage.get(stage["name"]), at=3.0 * number)
        for number, stage in enumerate(sheet["stages"])
    ]
    run = RunFacts(stopped_by="operator", reason=None)
    return {**summarize(stages, judging=Judging.of_sheet(sheet), run=run), **changed}


def _stage(said: dict[str, Any], file: StageFile | None, *, at: float) -> StageLog:
    if file is None:
        return StageLog(name=said["name"], status="not_run", free_standing=said["free_standing"])
    return StageLog(
        name=said["name"],
        log=file.log,
        free_standing=said["free_standing"],
        t0_s=at,
        duration_s=2.0,
        protection=Protection(armed=True, threshold_deg=45.0),
    )


def put(url: str, headers: Mapping[str, str], body: bytes) -> int:
    """What a box does with a presigned URL."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=10)
    connection.request("PUT", f"{parts.path}?{parts.query}", body=body, headers=dict(headers))
    status = connection.getresponse().status
    connection.close()
    return status


def whole_session(
    bench: Bench, *numbers: Mapping[str, Any], at: datetime = NOON, **said: Any
) -> TrialSession:
    """Plan explicit picks and run them to the end; each trial's log has these numbers, or is lost."""
    session = bench.session(at=at, **said)
    for trial, given in zip(trials_of(session), numbers, strict=True):
        bench.run(trial, at=at + 10 * MINUTE * (trial.position - 1))
        if given.get("lost"):
            bench.lose_log(trial)
        else:
            bench.log(trial, **given)
    return session


def get(url: str) -> tuple[int, Mapping[str, str], bytes]:
    """What a person's browser does with a presigned URL."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=10)
    connection.request("GET", f"{parts.path}?{parts.query}")
    response = connection.getresponse()
    found = response.status, dict(response.getheaders()), response.read()
    connection.close()
    return found
