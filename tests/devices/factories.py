"""Boxes with real keys, and approvals made through the services, about subjects of the tests' own."""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.test import Client
from django.utils import timezone
from nacl.signing import SigningKey

from devices import subjects
from devices.models import Approval, Device
from devices.services import consent, enrolment, events
from devices.subjects import Frozen, OutOfOrder
from driver.wire import canonical, requests, signatures, statements
from hub.accounts.models import Account, User
from hub.campaigns.models import Checkpoint, Contract, Robot
from hub.core import ids
from tests.factories import NOON, actor
from tests.hub.campaigns import factories as campaigns

KIND = "errand"
RUN_DATA = {
    "boot_id": "b-1",
    "battery_v": 47.9,
    "motor_temps_c": {"left_knee": 31.0},
    "ambient_c": None,
    "minutes_since_last_run": None,
    "go_by": "local",
}
BEAT_DATA = {
    "version": "0.1.0",
    "state": "idle",
    "waiting_for_go": False,
    "free_bytes": 10**9,
    "unsent": 0,
    "skew_s": 0.1,
}


@dataclass
class Errands:
    """What the tests' approvals are about: a document each, and the ones whose turn has not come."""

    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    too_early: set[str] = field(default_factory=set)

    def new(self, **document: Any) -> str:
        subject_id = ids.new_id("trl")
        self.documents[subject_id] = {"version": 1, "trial_id": subject_id, **document}
        return subject_id

    def describe(self, approval: Approval) -> str:
        return f"the errand with {approval.checkpoint}"

    def freeze(self, approval: Approval, at: datetime) -> Frozen:
        claims = {"session_id": "ses_1", "trial_id": approval.subject_id, "position": 1}
        return Frozen(claims=claims, document=self.bytes_of(approval.subject_id))

    def check_start(self, approval: Approval, at: datetime) -> None:
        if approval.subject_id in self.too_early:
            raise OutOfOrder("The trial trl_first comes first.", trial="trl_first")

    def bytes_of(self, subject_id: str) -> bytes:
        return canonical.dumps(self.documents[subject_id])


ERRANDS = Errands()
subjects.register(KIND, ERRANDS)


@dataclass
class Box:
    """A robot box: a device of the hub, and the key that only the box has."""

    device: Device
    key: SigningKey
    seq: int = 0

    @property
    def path(self) -> str:
        return f"/api/v1/devices/{self.device.pk}"

    def event(
        self, kind: str, data: Mapping[str, Any], *, approval: Approval | None = None, seq: int | None = None
    ) -> dict[str, Any]:
        """The signed envelope of an event, under the next number."""
        self.seq = seq if seq is not None else self.seq + 1
        payload = statements.device_event_payload(
            approval_id=approval.pk if approval else None,
            device_id=self.device.pk,
            trial_id=approval.subject_id if approval else None,
            kind=kind,
            seq=self.seq,
            data=data,
            at=NOON,
        )
        return signatures.sign(payload, self.key)

    def started(self, approval: Approval) -> dict[str, Any]:
        return self.event("run_started", RUN_DATA, approval=approval)

    def stopped(self, approval: Approval) -> dict[str, Any]:
        return self.event("run_stopped", RUN_DATA, approval=approval)

    def heartbeat(self, **data: Any) -> dict[str, Any]:
        return self.event("heartbeat", {**BEAT_DATA, **data})

    def tell(self, envelope: dict[str, Any], *, at: datetime = NOON) -> dict[str, Any]:
        """Post an event through the service."""
        return events.post_event(device=self.device, envelope=envelope, at=at)

    def post(self, path: str, body: Any = None, **how: Any) -> Any:
        return self.request("POST", path, body=b"" if body is None else json.dumps(body).encode(), **how)

    def get(self, path: str, **how: Any) -> Any:
        return self.request("GET", path, body=b"", **how)

    def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes,
        sent: bytes | None = None,
        sent_as: str | None = None,
        origin: str | None = None,
        created: datetime | None = None,
        nonce: str | None = None,
        key: SigningKey | None = None,
        device_id: str | None = None,
        changed: Mapping[str, str] | None = None,
    ) -> Any:
        """Send a request that the box signed; `sent` and `sent_as` say another body and method."""
        signed = requests.sign_request(
            method=method,
            url=(origin or settings.DEVICE_ORIGINS[0]) + path,
            headers={},
            body=body,
            key=key or self.key,
            device_id=device_id or self.device.pk,
            created=created or timezone.now(),
            nonce=nonce or secrets.token_urlsafe(24),
        )
        return Client().generic(
            sent_as or method,
            path,
            body if sent is None else sent,
            content_type="application/json",
            headers={**signed, **(changed or {})},
        )


def enrol_envelope(code: str, key: SigningKey, *, public_key: bytes | None = None) -> dict[str, Any]:
    shown = public_key if public_key is not None else key.verify_key.encode()
    return signatures.sign(statements.enrol_payload(code=code, public_key=shown, at=NOON), key)


def new_device(
    owner: Account, by: User, *, robot: Robot | None = None, at: datetime = NOON, **said: Any
) -> enrolment.NewDevice:
    """A device that waits for its box."""
    robot = robot or Robot.objects.filter(owner=owner).first() or campaigns.robot(owner)
    accepted = said.pop("accepts", [campaigns.contract(robot).name])
    return enrolment.create_device(
        owner=owner,
        robot=robot,
        name=said.pop("name", "box"),
        accepted_contracts=accepted,
        by=actor(by, signed_in_at=at),
        at=at,
    )


def box(owner: Account, by: User, **said: Any) -> Box:
    """A box that has enrolled."""
    at = said.get("at", NOON)
    new, key = new_device(owner, by, **said), SigningKey.generate()
    device = enrolment.enrol_device(envelope=enrol_envelope(new.code, key), at=at)
    return Box(device=device, key=key)


def checkpoint_for(device: Device, **said: Any) -> Checkpoint:
    campaign = campaigns.Campaign.objects.filter(robot=device.robot).first()
    return campaigns.checkpoint(campaign or campaigns.campaign(device.owner, robot=device.robot), **said)


def contract_of(device: Device) -> Contract:
    return campaigns.contract(device.robot)


def requested(device: Device, by: User, *, at: datetime = NOON, **said: Any) -> Approval:
    """A request, for a subject of its own unless one is given."""
    count = Checkpoint.objects.count()
    return consent.request_approval(
        device=device,
        subject_kind=KIND,
        subject_id=said.get("subject_id") or ERRANDS.new(),
        checkpoint=said.get("checkpoint") or checkpoint_for(device, step=count + 1),
        reason="to see whether it walks",
        by=said.get("asked_by") or actor(by, signed_in_at=at),
        at=at,
    )


def digest_of(approval: Approval) -> str:
    return canonical.sha256_hex(ERRANDS.bytes_of(approval.subject_id))


def consent_to(
    approval: Approval,
    by: User,
    *,
    at: datetime = NOON,
    digest: str | None = None,
    signed_in_at: datetime | None = None,
) -> Approval:
    """Consent to the document as it is, unless another digest is said."""
    return consent.issue_approval(
        approval=approval,
        run_sheet_sha256=digest or digest_of(approval),
        by=actor(by, signed_in_at=signed_in_at or at),
        at=at,
    )


def issued(device: Device, by: User, *, at: datetime = NOON, **said: Any) -> Approval:
    return consent_to(requested(device, by, at=at, **said), by, at=at)


def running(box: Box, by: User, *, at: datetime = NOON, **said: Any) -> Approval:
    approval = issued(box.device, by, at=at, **said)
    box.tell(box.started(approval), at=at + timedelta(minutes=1))
    return Approval.objects.get(pk=approval.pk)


def stopped(box: Box, by: User, *, at: datetime = NOON, **said: Any) -> Approval:
    approval = running(box, by, at=at, **said)
    box.tell(box.stopped(approval), at=at + timedelta(minutes=2))
    return Approval.objects.get(pk=approval.pk)


def running_after(box: Box, by: User, earlier: Approval, *, at: datetime) -> Approval:
    """A second run, once an earlier one of the box has stopped."""
    box.tell(box.stopped(earlier), at=at)
    return running(box, by, at=at)
