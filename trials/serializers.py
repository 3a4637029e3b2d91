"""What the API says about sessions, trials and logs."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from devices.models import Approval
from hub.campaigns.models import Checkpoint
from hub.campaigns.views.rounds import SimAnswer
from hub.core import fields
from hub.storage import s3
from trials import readings
from trials.models import RunSheet, TrialLogFile, Verdict
from trials.readings import SessionReading, TrialLine, TrialReading
from trials.rules.bracket import BRACKETED, sentence
from trials.rules.drafting import CHANGEABLE
from trials.rules.noise import ORDER_BY_STEP, ORDER_IS_RISK
from trials.rules.status import STATUSES
from trials.schemas import (
    BracketField,
    ChannelsField,
    ComparisonsField,
    CriteriaField,
    HubCheckField,
    Plain,
    StagesField,
    ToleranceField,
)


class TrialCheckpoint(serializers.Serializer[Checkpoint]):
    id = fields.Text()
    run = fields.Text(source="run.name")
    step = fields.Integer(max_value=fields.MAX_NUMBER)
    onnx_sha256 = fields.Sha256()
    contract = fields.Text(source="contract.name")
    lineage_ended_at = fields.Moment(allow_null=True)


class TrialApproval(serializers.Serializer[Approval]):
    """The newest consent request of a trial."""

    id = fields.Text()
    device = fields.Text(source="device_id")
    state = serializers.SerializerMethodField()
    requested_at = fields.Moment()
    expires_at = fields.Moment()
    issued_at = fields.Moment(allow_null=True)
    is_self_approved = fields.Flag()
    started_at = fields.Moment(allow_null=True)
    stop_requested_at = fields.Moment(allow_null=True)
    stopped_at = fields.Moment(allow_null=True)

    @extend_schema_field(fields.Choice(Approval.State.choices))
    def get_state(self, approval: Approval) -> str:
        return str(approval.state_at(self.context["view"].at))


class VerdictAnswer(serializers.Serializer[Verdict]):
    """What was decided, and on what: criteria and bracket as they stood then."""

    id = fields.Text()
    trial = fields.Text(source="trial_id")
    option = fields.Choice(Verdict.Option.choices)
    reason = fields.Text()
    by = fields.Text(source="by.email")
    at = fields.Moment()
    bracket_acknowledged = fields.Flag()
    replaces = fields.Text(source="replaces_id", allow_null=True)
    criteria = CriteriaField()
    bracket = BracketField()
    rules_version = fields.Integer()


class TrialLineAnswer(serializers.Serializer[TrialLine]):
    """A trial in a list; `getTrial` judges it too."""

    id = fields.Text(source="trial.id")
    session = fields.Text(source="trial.session_id")
    position = fields.Integer(source="trial.position")
    role = fields.Choice(["control", "candidate"], source="trial.role")
    checkpoint = TrialCheckpoint(source="trial.checkpoint")
    status = fields.Choice(STATUSES)
    approval = TrialApproval(source="trial.approval", allow_null=True)
    sim = SimAnswer(source="trial.sim", allow_null=True)
    log_state = serializers.SerializerMethodField()
    verdict = serializers.SerializerMethodField()

    @extend_schema_field(fields.Choice(["awaiting", "uploaded", "missing", "malformed"]))
    def get_log_state(self, line: TrialLine) -> str:
        log = readings.log_of(line.trial)
        return str(log.state) if log else "awaiting"

    @extend_schema_field(fields.Choice(Verdict.Option.choices, allow_null=True))
    def get_verdict(self, line: TrialLine) -> str | None:
        verdict = readings.verdict_of(line.trial)
        return str(verdict.option) if verdict else None


class BaselineAnswer(serializers.Serializer[Any]):
    """The promoted policy's own numbers, frozen when the session was planned."""

    trial = fields.Text()
    checkpoint = fields.Text()
    summary = Plain(allow_null=True)


class SessionAnswer(serializers.Serializer[SessionReading]):
    """A session in the order that was written down, and what its two control runs say of it."""

    id = fields.Text(source="session.id")
    account = fields.Text(source="session.owner_id")
    campaign = fields.Text(source="session.campaign_id", allow_null=True)
    round = fields.Text(source="session.round_id", allow_null=True)
    device = fields.Text(source="session.device_id", allow_null=True)
    reason = fields.Text(source="session.reason")
    planned_by = fields.Text(source="session.planned_by")
    created_at = fields.Moment(source="session.created_at")
    cancelled_at = fields.Moment(source="session.cancelled_at", allow_null=True)
    tolerances = fields.ListOf(ToleranceField(), source="session.tolerances", max_length=len(BRACKETED))
    baseline = BaselineAnswer(source="session.baseline", allow_null=True)
    bracket = BracketField()
    bracket_says = serializers.SerializerMethodField()
    order_says = serializers.SerializerMethodField()
    trials = TrialLineAnswer(source="lines", many=True)

    def get_bracket_says(self, reading: SessionReading) -> str:
        return sentence(reading.bracket)

    def get_order_says(self, reading: SessionReading) -> str:
        return ORDER_IS_RISK if any(trial.sim for trial in reading.trials) else ORDER_BY_STEP


class SessionDetail(SessionAnswer):
    """The same, with every candidate beside the controls."""

    comparisons = ComparisonsField()


class SheetBrief(serializers.Serializer[RunSheet]):
    digest = fields.Sha256()
    locked_at = fields.Moment(allow_null=True)


class RunSheetAnswer(serializers.Serializer[RunSheet]):
    """A sheet and the digest of its canonical bytes, which a person names when they consent."""

    trial = fields.Text(source="trial_id")
    document = Plain()
    digest = fields.Sha256()
    locked_at = fields.Moment(allow_null=True)
    updated_at = fields.Moment()
    changeable = serializers.SerializerMethodField()

    @extend_schema_field(fields.ListOf(fields.Text(), max_length=len(CHANGEABLE)))
    def get_changeable(self, sheet: RunSheet) -> list[str]:
        """The keys that a PATCH may change now."""
        return [] if sheet.locked_at else list(CHANGEABLE)


class LogFileAnswer(serializers.Serializer[TrialLogFile]):
    """A recorded file; a person or a key gets a URL that downloads it for an hour."""

    name = fields.Text()
    stage = fields.Text()
    sha256 = fields.Sha256()
    bytes = fields.Integer(max_value=fields.MAX_NUMBER)
    rows = fields.Integer(max_value=fields.MAX_NUMBER, allow_null=True)
    url = serializers.SerializerMethodField()

    @extend_schema_field(fields.Text(allow_null=True))
    def get_url(self, file: TrialLogFile) -> str | None:
        view = self.context["view"]
        if view.by.device_id is not None:
            return None
        return s3.presign_get(file.object.key, filename=file.name, at=view.at).url


class LogAnswer(serializers.Serializer[Any]):
    """The driver's signed word; `awaiting` until it came."""

    id = fields.Text(allow_null=True)
    state = fields.Choice(["awaiting", "uploaded", "missing", "malformed"])
    detail = fields.Text(allow_null=True)
    recorded_at = fields.Moment(allow_null=True)
    kid = fields.Text(allow_null=True)
    files = LogFileAnswer(many=True)
    summary = Plain(allow_null=True)
    hub_check = HubCheckField(allow_null=True)


AWAITED: dict[str, Any] = {
    "id": None,
    "state": "awaiting",
    "detail": None,
    "recorded_at": None,
    "kid": None,
    "files": [],
    "summary": None,
    "hub_check": None,
}


class ClockAnswer(serializers.Serializer[Any]):
    """When it ran, on the session's clock, and how long the robot had stood before."""

    started_at = fields.Moment(allow_null=True)
    stopped_at = fields.Moment(allow_null=True)
    clock_s = fields.Number(allow_null=True)
    waited_s = fields.Number(allow_null=True)


class TrialAnswer(serializers.Serializer[TrialReading]):
    """A trial as a record, judged now against what was written down before it ran."""

    id = fields.Text(source="trial.id")
    session = fields.Text(source="trial.session_id")
    campaign = fields.Text(source="session.session.campaign_id", allow_null=True)
    position = fields.Integer(source="trial.position")
    of = serializers.SerializerMethodField()
    role = fields.Choice(["control", "candidate"], source="trial.role")
    checkpoint = TrialCheckpoint(source="trial.checkpoint")
    status = fields.Choice(STATUSES)
    approval = TrialApproval(source="trial.approval", allow_null=True)
    run_sheet = SheetBrief(source="trial.run_sheet")
    stages = StagesField()
    clock = ClockAnswer()
    sim = SimAnswer(source="trial.sim", allow_null=True)
    criteria = CriteriaField()
    comparisons = ComparisonsField()
    bracket = BracketField(source="session.bracket")
    bracket_says = serializers.SerializerMethodField()
    log = serializers.SerializerMethodField()
    verdict = serializers.SerializerMethodField()

    @extend_schema_field(fields.Integer())
    def get_of(self, reading: TrialReading) -> int:
        """How many trials the session has."""
        return len(reading.session.trials)

    def get_bracket_says(self, reading: TrialReading) -> str:
        return sentence(reading.session.bracket)

    @extend_schema_field(LogAnswer())
    def get_log(self, reading: TrialReading) -> Any:
        log = readings.log_of(reading.trial)
        if log is None:
            return AWAITED
        said = {key: getattr(log, key) for key in AWAITED if key != "files"}
        files = log.files.select_related("object").order_by("number")
        return LogAnswer({**said, "detail": log.detail or None, "files": files}, context=self.context).data

    @extend_schema_field(VerdictAnswer(allow_null=True))
    def get_verdict(self, reading: TrialReading) -> Any:
        verdict = readings.verdict_of(reading.trial)
        return VerdictAnswer(verdict).data if verdict else None


class UploadedFile(serializers.Serializer[Any]):
    """Where to PUT the bytes, with exactly these headers."""

    name = fields.Text(source="upload.name")
    url = fields.Text(source="put.url")
    headers = fields.MapOf(fields.Text(), source="put.headers")
    expires_at = fields.Moment(source="put.expires_at")


class UploadsAnswer(serializers.Serializer[Any]):
    files = UploadedFile(many=True)


class StageSpanAnswer(serializers.Serializer[Any]):
    name = fields.Text()
    t0 = fields.Number()
    t1 = fields.Number()
    rows = fields.Integer(max_value=fields.MAX_NUMBER)


class SeriesAnswer(serializers.Serializer[Any]):
    """Channels on the trial's own clock; not decimated, each row is there and min equals max."""

    trial = fields.Text()
    channels = ChannelsField()
    known = fields.ListOf(fields.Text(), max_length=2000)
    decimated = fields.Flag()
    bucket_s = fields.Number(allow_null=True)
    rows = fields.Integer(max_value=fields.MAX_NUMBER)
    stages = StageSpanAnswer(many=True)
