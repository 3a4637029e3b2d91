import json
from typing import Any

import pytest
from nacl import bindings

from driver.wire import base64url, canonical, signatures
from driver.wire.signatures import BadEnvelope, BadKey, BadSignature
from tests import cases, keys

PUBLIC = keys.key("device").verify_key.encode()
PAYLOAD = {"kind": "heartbeat", "seq": 3, "t": 0.1}


def fits(case: dict[str, str], *, key: str, message: str, signature: str) -> bool:
    return signatures.is_signed(
        bytes.fromhex(case[message]),
        signature=bytes.fromhex(case[signature]),
        public_key=bytes.fromhex(case[key]),
    )


def test_wycheproof_is_answered_case_by_case() -> None:
    path = cases.path("vectors/wycheproof/testvectors_v1/ed25519_test.json")
    groups = json.loads(path.read_text())["testGroups"]
    answers = {"valid": 0, "invalid": 0}
    for group in groups:
        for case in group["tests"]:
            signed = fits({**case, "pk": group["publicKey"]["pk"]}, key="pk", message="msg", signature="sig")
            assert signed == (case["result"] == "valid"), case
            answers[case["result"]] += 1

    assert answers == {"valid": 88, "invalid": 63}


def test_no_speccheck_case_is_signed() -> None:
    """All twelve are refused; case 3, where both equations hold, because its key has mixed order."""
    path = cases.path("vectors/ed25519-speccheck/cases.json")
    found = json.loads(path.read_text())

    assert len(found) == 12
    assert not any(fits(case, key="pub_key", message="message", signature="signature") for case in found)


def test_only_two_speccheck_keys_can_be_registered() -> None:
    """
    Cases 6 and 7 are about an S that is too large: their key is sound, and the signature is refused. In all
    others the key has small or mixed order, or is another spelling of a point.
    """
    found = json.loads(cases.path("vectors/ed25519-speccheck/cases.json").read_text())

    assert [number for number, case in enumerate(found) if is_key(case["pub_key"])] == [6, 7]


def is_key(text: str) -> bool:
    try:
        signatures.check_public_key(bytes.fromhex(text))
    except BadKey:
        return False
    return True


def test_none_of_196_small_order_pairs_is_signed_and_no_such_key_can_be_registered() -> None:
    found = json.loads(cases.path("vectors/zip215/small_order_196_computed.json").read_text())["tests"]

    assert len(found) == 196
    for case in found:
        assert not fits(case, key="pk", message="msg", signature="sig")
        with pytest.raises(BadKey):
            signatures.check_public_key(bytes.fromhex(case["pk"]))


@pytest.mark.parametrize(
    "raw",
    [b"", PUBLIC[:31], PUBLIC + b"\0", bytes(32), b"\x01" + bytes(31), b"\xff" * 32, b"\xee" + b"\xff" * 31],
)
def test_bytes_that_are_no_key_cannot_be_registered(raw: bytes) -> None:
    with pytest.raises(BadKey):
        signatures.check_public_key(raw)


@pytest.mark.parametrize("length", [0, 1, 63, 65])
def test_a_signature_of_another_length_does_not_fit_and_does_not_raise(length: int) -> None:
    assert not signatures.is_signed(b"", signature=bytes(length), public_key=PUBLIC)


def test_a_key_of_another_length_does_not_fit_and_does_not_raise() -> None:
    assert not signatures.is_signed(b"", signature=bytes(64), public_key=b"short")


def test_an_envelope_gives_the_canonical_bytes_that_were_signed() -> None:
    envelope = signatures.sign(PAYLOAD, keys.key("device"))

    assert signatures.verify(envelope, PUBLIC) == b'{"kind":"heartbeat","seq":3,"t":0.1}'


def test_an_envelope_survives_another_spelling_of_its_payload() -> None:
    envelope = signatures.sign(PAYLOAD, keys.key("device"))
    sent = json.dumps(envelope, indent=2, sort_keys=True).replace("0.1", "1e-1").encode()

    assert signatures.verify(canonical.object_of(sent), PUBLIC)


def test_a_changed_payload_is_refused() -> None:
    envelope = signatures.sign(PAYLOAD, keys.key("device"))
    envelope["payload"] = {**PAYLOAD, "seq": 4}

    with pytest.raises(BadSignature, match="does not fit"):
        signatures.verify(envelope, PUBLIC)


def test_another_keys_envelope_is_refused_by_its_name() -> None:
    envelope = signatures.sign(PAYLOAD, keys.key("stranger"))

    with pytest.raises(BadSignature, match="signed by key"):
        signatures.verify(envelope, PUBLIC)


def test_another_keys_signature_under_our_name_is_refused() -> None:
    envelope = signatures.sign(PAYLOAD, keys.key("stranger"))
    envelope["kid"] = signatures.kid(PUBLIC)

    with pytest.raises(BadSignature, match="does not fit"):
        signatures.verify(envelope, PUBLIC)


SIGNED = signatures.sign(PAYLOAD, keys.key("device"))


@pytest.mark.parametrize(
    "envelope",
    [
        {},
        [],
        "text",
        {**SIGNED, "alg": "none"},
        {"payload": PAYLOAD, "signature": SIGNED["signature"]},
        {**SIGNED, "payload": "text"},
        {**SIGNED, "kid": 7},
        {**SIGNED, "signature": None},
        {**SIGNED, "signature": f"{SIGNED['signature']} "},
        {**SIGNED, "signature": base64url.encode(bytes(63))},
        {**SIGNED, "payload": {"n": 1e300}},
    ],
)
def test_what_is_no_envelope_is_not_called_a_bad_signature(envelope: Any) -> None:
    with pytest.raises(BadEnvelope):
        signatures.verify(envelope, PUBLIC)


def test_a_kid_is_the_start_of_the_keys_digest() -> None:
    assert signatures.kid(PUBLIC) == canonical.sha256_hex(PUBLIC)[:16]


def test_a_payload_that_has_no_canonical_form_is_not_signed() -> None:
    with pytest.raises(canonical.NotStrict):
        signatures.sign({"value": float("nan")}, keys.key("device"))


def test_the_library_itself_still_refuses_small_order_keys() -> None:
    assert not bindings.crypto_core_ed25519_is_valid_point(b"\x01" + bytes(31))
