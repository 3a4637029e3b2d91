"""A device comes to the hub: a code that a person carries to the box, and a key that the box makes."""

import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import IntegrityError, transaction

from devices import keys, statements
from devices.models import Device, DeviceKey
from devices.services.devices import contract_names
from driver.wire import base64url, rotation, signatures
from driver.wire import statements as wire
from driver.wire.canonical import JSON, sha256_hex
from hub.accounts import actors
from hub.accounts.actors import Actor
from hub.accounts.models import Account
from hub.accounts.permissions import may_manage
from hub.audit import services as audit
from hub.campaigns.models import Robot
from hub.core.problems import Conflict, NotSignedIn, Unprocessable

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # no letter that reads like a digit: people type it
HANDLE_CHARS, CODE_CHARS = 8, 20


class EnrolmentRefused(NotSignedIn):
    """The same for an unknown, a wrong, a spent and an expired code: a stranger learns of no device."""

    slug = "enrolment-refused"
    title = "This code enrols nothing."


class KeyTaken(Conflict):
    slug = "key-taken"
    title = "This key is or was another device's."


class KeyRefused(Unprocessable):
    slug = "key-refused"
    title = "This key cannot be a device's."


@dataclass(frozen=True, kw_only=True)
class NewDevice:
    """A device that waits for its box, and the code, which is shown this once."""

    device: Device
    code: str


@transaction.atomic
def create_device(
    *, owner: Account, robot: Robot, name: str, accepted_contracts: Sequence[str], by: Actor, at: datetime
) -> NewDevice:
    """
    Add a device and the code with which its box enrols.

    :raises RoleForbidden: for everybody but an owner of the account
    :raises Unprocessable: for a robot of another account, and for names that no contract of the robot has
    """
    may_manage(by, owner)
    if robot.owner_id != owner.pk:
        raise Unprocessable(errors={"robot": ["It belongs to another account than the device would."]})
    names = contract_names(accepted_contracts, robot=robot)
    code = _new_code(at=at)
    device = Device.objects.create(
        owner=owner,
        robot=robot,
        name=name,
        accepted_contracts=names,
        enrol_handle=code[:HANDLE_CHARS],
        enrol_code_sha256=sha256_hex(code.encode()),
        enrol_until=at + settings.ENROLMENT_FOR,
        created_at=at,
    )
    audit.record(
        "device.created",
        by=by,
        account_id=owner.pk,
        target=device,
        at=at,
        sentence=f"{by.label} added the device {name} for the robot {robot.slug}.",
        accepted_contracts=device.accepted_contracts,
    )
    return NewDevice(device=device, code=code)


def enrol_device(*, envelope: JSON, at: datetime) -> Device:
    """
    Let a box take its place with the key that signed the envelope. A repeat by the same key changes nothing.

    :raises StatementInvalid: for another shape
    :raises KeyRefused: for a key of small order
    :raises WrongSignature: without proof that the box has the private half
    :raises EnrolmentRefused: for a code that enrols nothing (any more)
    :raises KeyTaken: for the key of another device
    """
    payload = statements.shaped(envelope, wire.check_enrol)
    public_key = _usable(base64url.decode(payload["public_key"]))
    statements.signed(envelope, by=[public_key])  # type: ignore[arg-type]  # its shape has been checked
    with transaction.atomic():
        device = _waiting_for(payload["code"])
        is_enrolled = device is not None and _try(device, payload["code"], public_key, at=at)
    # Only now the refusal: a wrong try has to be counted, and a refusal inside would undo that.
    if device is None or not is_enrolled:
        raise EnrolmentRefused("Ask an owner for a new code, and use it within its minutes.")
    return device


@transaction.atomic
def rotate_device_key(*, device: Device, envelope: JSON, at: datetime) -> DeviceKey:
    """
    Let a new key take over. The old one stays in the history: what it signed stays good.

    :raises StatementInvalid: for another shape
    :raises KeyRefused: for a key of small order
    :raises WrongSignature: unless the old key signed the whole and the new one the proof inside
    :raises NotBound: for the statement of another device
    :raises KeyTaken: for a key that is or was in use
    """
    payload = statements.shaped(envelope, rotation.check_rotation)
    public_key = _usable(base64url.decode(payload["public_key"]))
    device = Device.objects.select_for_update(no_key=True).get(pk=device.pk)
    old = statements.active_key(device)
    rotated = statements.signed(envelope, by=[statements.public_bytes(old)])  # type: ignore[arg-type]
    statements.signed(payload["proof"], by=[public_key])
    statements.check_device(rotated, device)
    if payload["proof"]["payload"] != rotation.proof_payload(payload):
        raise statements.NotBound(errors={"payload.proof": ["It proves another key, device or moment."]})
    old.active_until = at
    old.save(update_fields=["active_until"])
    new = _add_key(device, public_key, at=at)
    audit.record(
        "device.key-rotated",
        by=actors.device(device.pk),
        account_id=device.owner_id,
        target=device,
        at=at,
        sentence=f"The device {device.name} changed its key from {old.kid} to {new.kid}.",
        old=old.kid,
        new=new.kid,
    )
    return new


def _new_code(*, at: datetime) -> str:
    """Random letters, and the fingerprint by which the box knows the hub it was meant for."""
    random = "".join(secrets.choice(ALPHABET) for _ in range(CODE_CHARS))
    return f"{random}.{keys.signing_key(at=at).kid}"


def _usable(public_key: bytes) -> bytes:
    try:
        return signatures.check_public_key(public_key)
    except signatures.BadKey as why:
        raise KeyRefused(errors={"payload.public_key": [f"{why}."]}) from why


def _waiting_for(code: str) -> Device | None:
    """The device whose code begins like this, locked, so that tries are counted one by one."""
    return Device.objects.select_for_update(no_key=True).filter(enrol_handle=code[:HANDLE_CHARS]).first()


def _try(device: Device, code: str, public_key: bytes, *, at: datetime) -> bool:
    if device.enrol_until is None or at >= device.enrol_until:
        return False
    if device.enrol_wrong_tries >= settings.ENROLMENT_TRIES:
        return False
    if not hmac.compare_digest(sha256_hex(code.encode()), device.enrol_code_sha256):
        _count_wrong_try(device, at=at)
        return False
    if device.state == Device.State.PENDING:
        _activate(device, public_key, at=at)
        return True
    return _is_its_own(device, public_key)


def _count_wrong_try(device: Device, *, at: datetime) -> None:
    device.enrol_wrong_tries += 1
    device.save(update_fields=["enrol_wrong_tries"])
    if device.enrol_wrong_tries == settings.ENROLMENT_TRIES:
        audit.record(
            "device.code-ended",
            by=actors.ANYBODY,
            account_id=device.owner_id,
            target=device,
            at=at,
            sentence=f"{device.enrol_wrong_tries} wrong tries ended the enrolment code of {device.name}.",
        )


def _activate(device: Device, public_key: bytes, *, at: datetime) -> None:
    device.move_to(Device.State.ACTIVE)
    device.save(update_fields=["state"])
    key = _add_key(device, public_key, at=at)
    audit.record(
        "device.enrolled",
        by=actors.device(device.pk),
        account_id=device.owner_id,
        target=device,
        at=at,
        sentence=f"The device {device.name} enrolled with the key {key.kid}.",
        kid=key.kid,
    )


def _is_its_own(device: Device, public_key: bytes) -> bool:
    """A box whose answer was lost asks again, and is known by its key."""
    text = base64url.encode(public_key)
    return (
        device.state == Device.State.ACTIVE
        and device.keys.filter(public_key=text, active_until=None).exists()
    )


def _add_key(device: Device, public_key: bytes, *, at: datetime) -> DeviceKey:
    try:
        with transaction.atomic():
            return device.keys.create(
                public_key=base64url.encode(public_key), kid=signatures.kid(public_key), active_from=at
            )
    except IntegrityError:
        raise KeyTaken("Make a new key on the box and enrol with that.") from None
