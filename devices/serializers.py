"""What the API reads and says about devices and approvals."""

from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from devices.models import Approval, Device
from driver.wire import canonical
from hub.campaigns.schemas import ContractTable
from hub.core import fields
from hub.core.patch import Patch
from hub.storage import s3


class Envelope(fields.Body):
    """A payload and the signature over its canonical bytes. What is inside has a shape of its own."""

    payload = fields.Document()
    kid = fields.Text(max_length=16)
    signature = fields.Text(max_length=88)


class SignedAnswer(serializers.Serializer[Any]):
    """The hub's word, under its signature."""

    payload = fields.Document()
    kid = fields.Text()
    signature = fields.Text()


class EventAnswer(serializers.Serializer[Any]):
    """A start is answered with a signed "go on"; every other event with its number."""

    seq = fields.Integer(max_value=fields.MAX_NUMBER, required=False)
    received_at = fields.Text(required=False)
    stop_requested = fields.ListOf(fields.Text(), max_length=100, required=False)
    payload = fields.Document(required=False)
    kid = fields.Text(required=False)
    signature = fields.Text(required=False)


def _contracts() -> fields.ListOf:
    return fields.ListOf(fields.Text(max_length=120), max_length=settings.DEVICE_CONTRACTS, required=False)


class CreateDevice(fields.Body):
    account = fields.Text(max_length=32, required=False)
    robot = fields.Text(max_length=32)
    name = fields.Text(max_length=120)
    accepted_contracts = _contracts()


class UpdateDevice(Patch):
    """Contracts are given as a whole, each by its name or as `robot@rate`, which is any of that rate."""

    name = fields.Text(max_length=120)
    accepted_contracts = _contracts()


class Reason(fields.Body):
    reason = fields.Text(max_length=settings.TEXT_CHARS, required=False, default="", allow_blank=True)


class NewDeviceAnswer(serializers.Serializer[Any]):
    """The code is shown this once; the box types it."""

    device_id = fields.Text(source="device.pk")
    code = fields.Text()
    code_expires_at = fields.Moment(source="device.enrol_until")


class KeyAnswer(serializers.Serializer[Any]):
    kid = fields.Text()
    public_key = fields.Text()
    active_from = fields.Moment()
    active_until = fields.Moment(allow_null=True)


class DeviceAnswer(serializers.Serializer[Device]):
    """A robot box; the heartbeat is its own last word, and `heartbeat_at` when it came."""

    id = fields.Text()
    account = fields.Text(source="owner_id")
    robot = fields.Text(source="robot_id")
    robot_slug = fields.Text(source="robot.slug")
    name = fields.Text()
    state = fields.Choice(Device.State.choices)
    accepted_contracts = fields.ListOf(fields.Text(), max_length=100)
    keys = KeyAnswer(many=True)
    last_seen_at = fields.Moment(allow_null=True)
    heartbeat = fields.Document(allow_null=True)
    heartbeat_at = fields.Moment(allow_null=True)
    revoked_at = fields.Moment(allow_null=True)
    created_at = fields.Moment()


class HubKeyAnswer(serializers.Serializer[Any]):
    kid = fields.Text()
    public_key = fields.Text()
    valid_from = fields.Text()
    valid_until = fields.Text(allow_null=True)


class HubAnswer(serializers.Serializer[Any]):
    """What a device pins: whose signatures it trusts, and whose URLs it opens."""

    keys = HubKeyAnswer(many=True)
    storage_hosts = fields.ListOf(fields.Text(), max_length=10)


class EnrolAnswer(serializers.Serializer[Any]):
    device_id = fields.Text()
    hub = HubAnswer()


class DeviceQuery(fields.Body):
    account = fields.Text(max_length=32, source="owner", required=False)
    robot = fields.Text(max_length=32, required=False)
    state = fields.Choice(Device.State.choices, required=False)


class States(fields.Text):
    """One state, or several with commas between them."""

    def to_internal_value(self, data: Any) -> Any:
        states = super().to_internal_value(data).split(",")
        if unknown := [state for state in states if state not in Approval.State]:
            raise serializers.ValidationError(f"There is no state {', '.join(unknown)}.")
        return states


class ApprovalQuery(fields.Body):
    state = States(required=False)
    device = fields.Text(max_length=32, required=False)
    subject = fields.Text(max_length=32, source="subject_id", required=False)


class OfferQuery(fields.Body):
    state = States(required=False)


class IssueApproval(fields.Body):
    """The digest of the run sheet that the person read."""

    run_sheet_sha256 = fields.Sha256(required=False)


class ApprovedCheckpoint(serializers.Serializer[Any]):
    id = fields.Text()
    run = fields.Text(source="run.name")
    step = fields.Integer(max_value=fields.MAX_NUMBER)
    onnx_sha256 = fields.Text()
    bytes = fields.Integer(max_value=fields.MAX_NUMBER)
    contract = fields.Text(source="contract.name", allow_null=True)


class ApprovalAnswer(serializers.Serializer[Approval]):
    """
    A consent request and what became of it.

    `accepted_as` is the word by which the device takes the contract: its name, or any of a robot and rate.
    """

    id = fields.Text()
    device = fields.Text(source="device_id")
    device_name = fields.Text(source="device.name")
    account = fields.Text(source="device.owner_id")
    subject_kind = fields.Text()
    subject = fields.Text(source="subject_id")
    about = fields.Text()
    checkpoint = ApprovedCheckpoint()
    accepted_as = serializers.SerializerMethodField()
    reason = fields.Text()
    state = serializers.SerializerMethodField()
    requested_at = fields.Moment()
    requested_by = fields.Text()
    expires_at = fields.Moment()
    issued_at = fields.Moment(allow_null=True)
    issued_by = fields.Text(source="issued_by.email", allow_null=True, default=None)
    is_self_approved = fields.Flag()
    run_sheet_sha256 = serializers.SerializerMethodField()
    ended_at = fields.Moment(allow_null=True)
    ended_by = fields.Text()
    ended_reason = fields.Text()
    started_at = fields.Moment(allow_null=True)
    stop_requested_at = fields.Moment(allow_null=True)
    stop_requested_by = fields.Text()
    stopped_at = fields.Moment(allow_null=True)
    stopped_by = fields.Text()
    stopped_reason = fields.Text()
    last_word_at = fields.Moment(source="device.last_seen_at", allow_null=True)

    @extend_schema_field(fields.Choice(Approval.State.choices))
    def get_state(self, approval: Approval) -> str:
        return str(approval.state_at(self.context["view"].at))

    def get_run_sheet_sha256(self, approval: Approval) -> str | None:
        return approval.document_sha256 or None

    def get_accepted_as(self, approval: Approval) -> str | None:
        contract = approval.checkpoint.contract
        return approval.device.accepted_as(contract) if contract else None


class OfferedCheckpoint(serializers.Serializer[Approval]):
    """Where the box gets the ONNX file for an hour, what it must hash to, and what it needs of the box."""

    url = serializers.SerializerMethodField()
    bytes = fields.Integer(source="checkpoint.bytes", max_value=fields.MAX_NUMBER)
    onnx_sha256 = fields.Text()
    contract = ContractTable(source="checkpoint.contract.document", allow_null=True)

    @extend_schema_field(fields.Text(allow_null=True))
    def get_url(self, approval: Approval) -> str | None:
        """None for what can run no more."""
        at, checkpoint = self.context["view"].at, approval.checkpoint
        if approval.state_at(at) not in Approval.STARTABLE or checkpoint.object is None:
            return None
        filename = f"{checkpoint.onnx_sha256[:12]}.onnx"
        return s3.presign_get(checkpoint.object.key, filename=filename, at=at).url


class OfferAnswer(serializers.Serializer[Approval]):
    """An approval as its device gets it. It believes nothing of it before it has verified the token."""

    approval_id = fields.Text(source="pk")
    state = serializers.SerializerMethodField()
    token = serializers.SerializerMethodField()
    run_sheet = serializers.SerializerMethodField()
    checkpoint = OfferedCheckpoint(source="*")
    stop_requested_at = fields.Moment(allow_null=True)

    @extend_schema_field(fields.Choice(Approval.State.choices))
    def get_state(self, approval: Approval) -> str:
        return str(approval.state_at(self.context["view"].at))

    @extend_schema_field(SignedAnswer(allow_null=True))
    def get_token(self, approval: Approval) -> Any:
        return canonical.parse(approval.token.encode()) if approval.token else None

    @extend_schema_field(fields.Document(allow_null=True))
    def get_run_sheet(self, approval: Approval) -> Any:
        return canonical.parse(bytes(approval.document)) if approval.document else None
