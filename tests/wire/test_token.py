from datetime import timedelta
from typing import Any

import pytest

from driver.wire import sheet, signatures, token
from driver.wire.token import TokenRefused
from tests import keys
from tests.wire import samples

HUB = keys.key("hub")
HUB_KEYS = {signatures.kid(HUB.verify_key.encode()): HUB.verify_key.encode()}


def verify(payload: dict[str, Any], **changes: Any) -> dict[str, Any]:
    expected: dict[str, Any] = {
        "hub_keys": HUB_KEYS,
        "device_id": "dev_01",
        "trial_id": "trl_01",
        "approval_id": "apr_01",
        "sheet_sha256": sheet.sheet_digest(samples.run_sheet()),
        "onnx_sha256": samples.DIGEST,
        "onnx_bytes": 760_000,
        "accepted": [samples.CONTRACT],
        "now": samples.NOON,
        **changes,
    }
    return token.verify_token(signatures.sign(payload, HUB), **expected)


def test_a_token_for_this_run_is_taken() -> None:
    assert verify(samples.approval_token())["approver"] == "ana@example.org"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"hub_keys": {}}, "unknown_key"),
        ({"device_id": "dev_02"}, "other_device"),
        ({"trial_id": "trl_02"}, "other_trial"),
        ({"approval_id": "apr_02"}, "other_approval"),
        ({"used": {"apr_01"}}, "used_before"),
        ({"now": samples.NOON + timedelta(hours=11, seconds=1)}, "expired"),
        ({"sheet_sha256": "0" * 64}, "sheet_digest"),
        ({"onnx_sha256": "0" * 64}, "onnx_digest"),
        ({"onnx_bytes": 760_001}, "onnx_size"),
        ({"accepted": []}, "contract_not_accepted"),
        ({"accepted": ["unitree-g1-29@50"], "rate_hz": 200}, "contract_not_accepted"),
        ({"accepted": ["unitree-g1-29@50"]}, "contract_not_accepted"),
    ],
)
def test_a_token_for_another_run_is_refused_with_its_reason(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(TokenRefused) as refused:
        verify(samples.approval_token(), **changes)

    assert refused.value.reason == reason
    assert str(refused.value)


def test_a_token_may_start_a_run_until_its_last_moment() -> None:
    assert verify(samples.approval_token(), now=samples.NOON + timedelta(hours=11))


def test_every_contract_of_a_robot_and_rate_may_be_accepted_together() -> None:
    assert verify(samples.approval_token(), accepted=["unitree-g1-29@50"], rate_hz=50.0)


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "trial_log"},
        {"version": 2},
        {"checkpoint": {"id": "ckp_01", "onnx_sha256": samples.DIGEST}},
        {"approver": None},
        {"expires_at": "tomorrow"},
        {"unlimited": True},
        {"position": "1"},
    ],
)
def test_a_signed_payload_that_is_no_token_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(TokenRefused) as refused:
        verify(samples.approval_token(**changes))

    assert refused.value.reason == "malformed"


def test_a_token_changed_after_it_was_signed_is_refused() -> None:
    envelope = signatures.sign(samples.approval_token(), HUB)
    envelope["payload"] = samples.approval_token(position=2)

    with pytest.raises(TokenRefused) as refused:
        token.verify_token(
            envelope,
            hub_keys=HUB_KEYS,
            device_id="dev_01",
            sheet_sha256="",
            onnx_sha256="",
            onnx_bytes=0,
            accepted=[],
            now=samples.NOON,
        )

    assert refused.value.reason == "wrong_signature"


def test_what_is_no_envelope_is_refused() -> None:
    with pytest.raises(TokenRefused) as refused:
        token.verify_token(
            {"token": "eyJ"},
            hub_keys=HUB_KEYS,
            device_id="dev_01",
            sheet_sha256="",
            onnx_sha256="",
            onnx_bytes=0,
            accepted=[],
            now=samples.NOON,
        )

    assert refused.value.reason == "malformed"
