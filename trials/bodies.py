"""What the API reads about sessions, trials and logs."""

from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from hub.core import fields
from hub.core.patch import Patch
from trials.models import Verdict
from trials.picks import Named
from trials.rules.bracket import BRACKETED
from trials.rules.status import STATUSES
from trials.schemas import CHECKPOINT_NAME, SheetPart, ToleranceField


@extend_schema_field(CHECKPOINT_NAME)
class CheckpointName(serializers.Field[Named, Any, Any, Any]):
    """A checkpoint's id, or its run and step (C4-05)."""

    def to_internal_value(self, data: Any) -> Named:
        if type(data) is str and 0 < len(data) <= 32:
            return Named(id=data)
        if type(data) is dict and set(data) == {"run", "step"}:
            run, step = data["run"], data["step"]
            if type(run) is str and type(step) is int and 0 <= step <= fields.MAX_NUMBER:
                return Named(run=run, step=step)
        raise ValidationError('This must be a checkpoint\'s id, or {"run": …, "step": …}.')


def _checkpoints(**how: Any) -> fields.ListOf:
    return fields.ListOf(CheckpointName(), max_length=settings.SESSION_CANDIDATES, **how)


class PlanBody(fields.Body):
    """What every way into planning takes."""

    device_id = fields.Text(max_length=32, required=False, allow_null=True)
    reason = fields.Text(max_length=settings.TEXT_CHARS)
    tolerances = fields.ListOf(ToleranceField(), max_length=len(BRACKETED), required=False)


class Shortlist(PlanBody):
    shortlist = _checkpoints()
    controls = _checkpoints()


class CreateSession(PlanBody):
    """A decided round's shortlist, or explicit candidates and controls with a campaign or a device."""

    campaign = fields.Text(max_length=32, required=False, allow_null=True)
    round = fields.Text(max_length=32, required=False, allow_null=True)
    candidates = _checkpoints(required=False)
    controls = _checkpoints(required=False)


class NameDevice(fields.Body):
    device_id = fields.Text(max_length=32)


class SessionQuery(fields.Body):
    campaign = fields.Text(max_length=32, required=False)
    round = fields.Text(max_length=32, required=False)
    device = fields.Text(max_length=32, required=False)


class TrialQuery(fields.Body):
    status = fields.Choice(STATUSES, required=False)
    approval_id = fields.Text(max_length=32, required=False)
    session = fields.Text(max_length=32, required=False)
    campaign = fields.Text(max_length=32, source="session__campaign", required=False)


class UpdateRunSheet(Patch):
    """
    What may change until the approval is issued. What never changes may be sent along as it is.
    """

    stages = SheetPart(allow_null=True)
    gain_profile = SheetPart(allow_null=True)
    kd_scale = SheetPart(allow_null=True)
    power_scale = SheetPart(allow_null=True)
    environment = SheetPart(allow_null=True)
    abort_rules = SheetPart(allow_null=True)
    criteria = SheetPart(allow_null=True)
    version = SheetPart(allow_null=True)
    trial_id = SheetPart(allow_null=True)
    session_id = SheetPart(allow_null=True)
    position = SheetPart(allow_null=True)
    role = SheetPart(allow_null=True)
    checkpoint = SheetPart(allow_null=True)
    judging = SheetPart(allow_null=True)
    predictions = SheetPart(allow_null=True)


class DeclaredLogFile(fields.Body):
    name = fields.Text(max_length=80)
    stage = fields.Text(max_length=64)
    bytes = fields.Integer(min_value=0, max_value=fields.MAX_NUMBER)
    sha256 = fields.Sha256()


class OpenLogUpload(fields.Body):
    files = fields.ListOf(DeclaredLogFile(), min_length=1, max_length=settings.LOG_FILES)


class SeriesQuery(fields.Body):
    channels = fields.Text(max_length=2000, required=False)
    buckets = fields.QueryInteger(required=False)
    t0 = fields.QueryNumber(required=False)
    t1 = fields.QueryNumber(required=False)


class GiveVerdict(fields.Body):
    """A promotion may acknowledge a bracket that does not hold, and name the checkpoint that it replaces."""

    option = fields.Choice(Verdict.Option.choices)
    reason = fields.Text(max_length=settings.TEXT_CHARS)
    acknowledge_bracket = fields.Flag(default=False)
    replaces = fields.Text(max_length=32, required=False, allow_null=True, default=None)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["option"] != Verdict.Option.PROMOTE and attrs["replaces"] is not None:
            raise ValidationError({"replaces": ["Only a promotion replaces something."]})
        return attrs
