"""A device's new key: announced under the old one, with a proof inside that the device has the new one."""

from datetime import datetime
from typing import Any

from nacl.signing import SigningKey

from driver.wire import base64url, moments, shape, signatures
from driver.wire.canonical import JSON
from driver.wire.statements import BadStatement

KIND = "rotate_key"
PROOF_KIND = "rotate_key_proof"


def rotation_payload(*, device_id: str, new_key: SigningKey, at: datetime) -> dict[str, Any]:
    """What the old key signs; the proof in it is signed by the new one."""
    payload = {
        "kind": KIND,
        "device_id": device_id,
        "public_key": base64url.encode(new_key.verify_key.encode()),
        "ts": moments.write(at),
    }
    return {**payload, "proof": signatures.sign(proof_payload(payload), new_key)}


def proof_payload(payload: dict[str, Any]) -> dict[str, Any]:
    """What the new key signs: everything that the old key says of it."""
    return {
        "kind": PROOF_KIND,
        "device_id": payload["device_id"],
        "public_key": payload["public_key"],
        "ts": payload["ts"],
    }


def check_rotation(payload: JSON) -> None:
    """:raises BadStatement: for anything but a rotation with a proof of the same shape"""
    if errors := shape.errors_in(payload, _ROTATION):
        raise BadStatement(errors)


_DEVICE = shape.identifier("dev")


def _key(value: JSON, path: str, errors: shape.Errors) -> None:
    try:
        is_key = isinstance(value, str) and len(base64url.decode(value)) == 32
    except base64url.BadEncoding:
        is_key = False
    if not is_key:
        shape.add(errors, path, "must be 32 bytes in base64url")


def _proof(value: JSON, path: str, errors: shape.Errors) -> None:
    try:
        if not isinstance(value, dict):
            raise signatures.BadEnvelope("must be a signed envelope")
        payload, _, _ = signatures.opened(value)
    except signatures.BadEnvelope as why:
        shape.add(errors, path, str(why))
    else:
        _PROOF(payload, shape.below(path, "payload"), errors)


_PROOF = shape.record(
    {"kind": shape.one_of(PROOF_KIND), "device_id": _DEVICE, "public_key": _key, "ts": shape.moment}
)
_ROTATION = shape.record(
    {
        "kind": shape.one_of(KIND),
        "device_id": _DEVICE,
        "public_key": _key,
        "ts": shape.moment,
        "proof": _proof,
    }
)
