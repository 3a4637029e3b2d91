"""The approval token: a person's consent to one run of one checkpoint on one device, signed by the hub."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from driver.wire import moments, shape, signatures
from driver.wire.canonical import JSON

KIND = "approval_token"


class TokenRefused(ValueError):
    """A token that permits nothing here; `reason` is a stable word, the message says it in words."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def token_payload(
    *,
    approval_id: str,
    session_id: str,
    trial_id: str,
    position: int,
    device_id: str,
    robot: str,
    contract: str,
    checkpoint_id: str,
    onnx_sha256: str,
    onnx_bytes: int,
    run_sheet_sha256: str,
    issued_at: datetime,
    expires_at: datetime,
    approver: str,
) -> dict[str, Any]:
    """What the hub signs when a person consents; `expires_at` is the latest start."""
    return {
        "kind": KIND,
        "version": 1,
        "approval_id": approval_id,
        "session_id": session_id,
        "trial_id": trial_id,
        "position": position,
        "device_id": device_id,
        "robot": robot,
        "contract": contract,
        "checkpoint": {"id": checkpoint_id, "onnx_sha256": onnx_sha256, "bytes": onnx_bytes},
        "run_sheet_sha256": run_sheet_sha256,
        "issued_at": moments.write(issued_at),
        "expires_at": moments.write(expires_at),
        "approver": approver,
    }


def accepts(accepted: Collection[str], *, contract: str, robot: str, rate_hz: float | None) -> bool:
    """Say whether a device takes a contract: by name, or as any of a robot and rate (`my-robot@50`)."""
    if contract in accepted:
        return True
    return rate_hz is not None and f"{robot}@{rate_hz:g}" in accepted


def verify_token(
    envelope: Mapping[str, JSON],
    *,
    hub_keys: Mapping[str, bytes],
    device_id: str,
    sheet_sha256: str,
    onnx_sha256: str,
    onnx_bytes: int,
    accepted: Collection[str],
    now: datetime,
    rate_hz: float | None = None,
    trial_id: str | None = None,
    approval_id: str | None = None,
    used: Collection[str] = (),
) -> dict[str, Any]:
    """
    Give the payload of a token that permits this run.

    `hub_keys` are the pinned ones, by kid; `now` is the hub's time as well as the box knows it; `used` are
    the approvals that have started a run here.

    :raises TokenRefused: with the first reason met
    """
    said = _signed(envelope, hub_keys)
    checkpoint, contract = said["checkpoint"], said["contract"]
    for is_wrong, reason, message in (
        (said["device_id"] != device_id, "other_device", f"it is for the device {said['device_id']}"),
        (trial_id not in (None, said["trial_id"]), "other_trial", f"it is for the trial {said['trial_id']}"),
        (
            approval_id not in (None, said["approval_id"]),
            "other_approval",
            f"it is the token of {said['approval_id']}",
        ),
        (said["approval_id"] in used, "used_before", f"{said['approval_id']} has started a run already"),
        (now > moments.read(said["expires_at"]), "expired", f"its latest start was {said['expires_at']}"),
        (
            said["run_sheet_sha256"] != sheet_sha256,
            "sheet_digest",
            "the run sheet is not the one consented to",
        ),
        (
            checkpoint["bytes"] != onnx_bytes,
            "onnx_size",
            f"the ONNX file has {onnx_bytes} bytes, not {checkpoint['bytes']}",
        ),
        (
            checkpoint["onnx_sha256"] != onnx_sha256,
            "onnx_digest",
            "the ONNX file is not the one consented to",
        ),
        (
            not accepts(accepted, contract=contract, robot=said["robot"], rate_hz=rate_hz),
            "contract_not_accepted",
            f"this box does not accept the contract {contract}",
        ),
    ):
        if is_wrong:
            raise TokenRefused(reason, message)
    return said


def check_token(payload: JSON) -> None:
    """:raises TokenRefused: when the payload is no token of version 1"""
    if errors := shape.errors_in(payload, _TOKEN):
        said = "; ".join(f"{path}: {', '.join(said)}" for path, said in errors.items())
        raise TokenRefused("malformed", f"no approval token of version 1: {said}")


def _signed(envelope: Mapping[str, JSON], hub_keys: Mapping[str, bytes]) -> dict[str, Any]:
    try:
        payload, kid, _ = signatures.opened(envelope)
    except signatures.BadEnvelope as error:
        raise TokenRefused("malformed", str(error)) from None
    if kid not in hub_keys:
        raise TokenRefused("unknown_key", f"signed by key {kid[:16]!r}, which this box has not pinned")
    try:
        signatures.verify(envelope, hub_keys[kid])
    except signatures.SignatureError as error:
        raise TokenRefused("wrong_signature", str(error)) from None
    check_token(payload)
    return payload


_LABEL = shape.text(least=1, most=200)

_TOKEN = shape.record(
    {
        "kind": shape.one_of(KIND),
        "version": shape.one_of(1),
        "approval_id": shape.identifier("apr"),
        "session_id": shape.identifier("ses"),
        "trial_id": shape.identifier("trl"),
        "position": shape.integer(least=1),
        "device_id": shape.identifier("dev"),
        "robot": _LABEL,
        "contract": _LABEL,
        "checkpoint": shape.record(
            {"id": shape.identifier("ckp"), "onnx_sha256": shape.digest, "bytes": shape.integer(least=1)}
        ),
        "run_sheet_sha256": shape.digest,
        "issued_at": shape.moment,
        "expires_at": shape.moment,
        "approver": _LABEL,
    }
)
