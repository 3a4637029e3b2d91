"""What a device signed, checked in the order of the wire: shape, then signature, then what it is bound to."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from devices.models import Device, DeviceKey
from driver.wire import base64url, canonical, signatures, statements
from driver.wire.canonical import JSON
from hub.core.problems import Forbidden, Unprocessable


class StatementInvalid(Unprocessable):
    slug = "statement-invalid"
    title = "The signed statement does not have its shape."


class WrongSignature(Forbidden):
    slug = "statement-signature"
    title = "The statement is not signed by the key that it needs."


class NotBound(Unprocessable):
    slug = "statement-binding"
    title = "The statement is about something else."


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A payload whose signature holds: the exact bytes, and the key that signed them."""

    payload: dict[str, Any]
    raw: bytes
    signature: str
    public_key: bytes

    @property
    def kid(self) -> str:
        return signatures.kid(self.public_key)

    @property
    def sha256(self) -> str:
        return canonical.sha256_hex(self.raw)


def shaped(envelope: JSON, check: Callable[[JSON], None]) -> dict[str, Any]:
    """
    Give the payload of an envelope whose signature nobody has looked at yet.

    :raises StatementInvalid: naming each fault
    """
    if not isinstance(envelope, dict):
        raise StatementInvalid("Send a signed envelope: payload, kid and signature.")
    try:
        payload, _, _ = signatures.opened(envelope)
        check(payload)
    except signatures.BadEnvelope as why:
        raise StatementInvalid(f"This is no signed envelope: {why}.") from why
    except statements.BadStatement as why:
        raise StatementInvalid(errors={f"payload.{path}": said for path, said in why.errors.items()}) from why
    return payload


def signed(envelope: Mapping[str, JSON], *, by: Iterable[bytes]) -> Statement:
    """
    Check the signature of an envelope that has its shape against the public keys that may have made it.

    :raises WrongSignature: when none of them did
    """
    for public_key in by:
        if envelope["kid"] != signatures.kid(public_key):
            continue
        try:
            raw = signatures.verify(envelope, public_key)
        except signatures.SignatureError as why:
            raise WrongSignature(f"Key {envelope['kid']}: {why}.") from why
        return Statement(
            payload=dict(envelope["payload"]),  # type: ignore[arg-type]  # its shape has been checked
            raw=raw,
            signature=str(envelope["signature"]),
            public_key=public_key,
        )
    raise WrongSignature("It names a key that may not sign this.", kid=envelope["kid"])


def public_bytes(key: DeviceKey) -> bytes:
    return base64url.decode(key.public_key)


def active_key(device: Device) -> DeviceKey:
    """The key that a device signs with today."""
    return device.keys.get(active_until=None)


def key_at(device: Device, moment: datetime) -> DeviceKey | None:
    """The key that was the device's at a moment, also when another has taken over since."""
    active = device.keys.filter(active_from__lte=moment).exclude(active_until__lte=moment)
    return active.order_by("-active_from").first()


def check_device(statement: Statement, device: Device) -> None:
    """:raises NotBound: for the statement of another device"""
    if statement.payload["device_id"] != device.pk:
        raise NotBound(errors={"payload.device_id": [f"The request is signed by {device.pk}."]})
