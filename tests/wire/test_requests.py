from datetime import timedelta

import pytest
from http_message_signatures import HTTPMessageSigner

from driver.wire import requests
from driver.wire.requests import BadRequestSignature, ClockOutside, SignedBy
from tests import keys
from tests.wire.samples import NOON

URL = "https://hub.example/api/v1/devices/dev_01/events"
BODY = b'{"payload":{}}'
NONCE = "n0nce-" * 4
PUBLIC = keys.key("device").verify_key.encode()


def signed(**changes: object) -> dict[str, str]:
    given = {
        "method": "POST",
        "url": URL,
        "headers": {"Content-Type": "application/json"},
        "body": BODY,
        "key": keys.key("device"),
        "device_id": "dev_01",
        "created": NOON,
        "nonce": NONCE,
        **changes,
    }
    return {"Content-Type": "application/json", **requests.sign_request(**given)}  # type: ignore[arg-type]


def verify(headers: dict[str, str], **changes: object) -> SignedBy:
    given = {
        "method": "POST",
        "url": URL,
        "headers": headers,
        "body": BODY,
        "public_key_of": lambda device: [PUBLIC] if device == "dev_01" else [],
        "now": NOON,
        **changes,
    }
    return requests.verify_request(**given)  # type: ignore[arg-type]


def test_a_signed_request_says_who_sent_it() -> None:
    assert verify(signed()) == SignedBy(device_id="dev_01", nonce=NONCE, created=NOON, public_key=PUBLIC)


def test_a_request_without_a_body_carries_no_digest() -> None:
    headers = signed(method="GET", body=None)

    assert "Content-Digest" not in headers
    assert verify(headers, method="GET", body=b"").device_id == "dev_01"


def test_the_key_that_fitted_is_told_while_one_takes_over_from_another() -> None:
    old = keys.key("stranger").verify_key.encode()

    assert verify(signed(), public_key_of=lambda _: [old, PUBLIC]).public_key == PUBLIC


def test_header_names_may_come_in_any_case() -> None:
    headers = {name.upper(): value for name, value in signed().items()}

    assert verify(headers).device_id == "dev_01"


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "PUT"},
        {"url": URL + "?state=issued"},
        {"url": URL.replace("https", "http")},
        {"url": URL.replace("hub.example", "hub.example:443")},
        {"url": URL.replace("/api", "/%61pi")},
        {"url": "no url"},
        {"body": BODY + b" "},
        {"body": b""},
        {"body": None},
        {"public_key_of": lambda _: []},
        {"public_key_of": lambda _: [keys.key("stranger").verify_key.encode()]},
        {"public_key_of": lambda _: [b"short"]},
    ],
)
def test_a_request_that_is_not_the_one_signed_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(BadRequestSignature):
        verify(signed(), **changes)


@pytest.mark.parametrize("seconds", [-300, -299, 0, 299, 300])
def test_a_clock_within_five_minutes_is_taken(seconds: int) -> None:
    assert verify(signed(created=NOON + timedelta(seconds=seconds))).device_id == "dev_01"


@pytest.mark.parametrize("seconds", [-301, 301, -86_400, 10**9])
def test_a_clock_outside_is_told_apart_from_a_bad_signature(seconds: int) -> None:
    with pytest.raises(ClockOutside) as refused:
        verify(signed(created=NOON + timedelta(seconds=seconds)))

    assert refused.value.created - refused.value.now == timedelta(seconds=seconds)


def test_a_wrong_signature_by_a_wrong_clock_is_a_wrong_signature() -> None:
    headers = signed(created=NOON - timedelta(days=1))

    with pytest.raises(BadRequestSignature) as refused:
        verify(headers, body=b"other")

    assert not isinstance(refused.value, ClockOutside)


@pytest.mark.parametrize("nonce", ["", "short", "n" * 65, "a nonce with blanks", 'quo"te' * 4])
def test_a_nonce_that_says_too_little_or_too_much_is_refused(nonce: str) -> None:
    with pytest.raises(BadRequestSignature, match="nonce"):
        verify(signed(nonce=nonce))


def test_an_unsigned_request_is_refused() -> None:
    with pytest.raises(BadRequestSignature, match="Signature-Input"):
        verify({"Content-Type": "application/json"})


def test_another_partys_signature_does_not_count() -> None:
    headers = {name: value.replace("trial-hub", "someone-else") for name, value in signed().items()}

    with pytest.raises(BadRequestSignature):
        verify(headers)


@pytest.mark.parametrize("covered", [["@method"], ["@target-uri"], ["content-digest"]])
def test_a_sound_signature_that_covers_too_little_is_refused(covered: list[str]) -> None:
    message = requests._Message(method="POST", url=URL)
    signer = HTTPMessageSigner(
        signature_algorithm=requests._Ed25519, key_resolver=requests._OwnKey(keys.key("device"))
    )
    signer.sign(
        message,
        key_id="dev_01",
        created=NOON,
        nonce=NONCE,
        tag=requests.TAG,
        covered_component_ids=covered,
        body=BODY,
    )

    with pytest.raises(BadRequestSignature, match="was not covered"):
        verify(message.headers)


def test_two_signatures_with_our_tag_are_one_too_many() -> None:
    headers = signed()
    for name in ("Signature-Input", "Signature"):
        headers[name] += ", " + headers[name].replace("hub=", "two=", 1)

    with pytest.raises(BadRequestSignature, match="more than one"):
        verify(headers)


@pytest.mark.parametrize("name", ["Signature", "Signature-Input", "Content-Digest"])
@pytest.mark.parametrize(
    "change", [lambda text: text[:-5], lambda text: text[::-1], lambda text: "x" + text * 2]
)
def test_mangled_headers_raise_nothing_else(name: str, change) -> None:  # type: ignore[no-untyped-def]
    headers = signed()
    headers[name] = change(headers[name])

    with pytest.raises(BadRequestSignature):
        verify(headers)


def test_a_failing_key_lookup_is_not_taken_for_a_bad_signature() -> None:
    def broken(device_id: str) -> list[bytes]:
        raise ConnectionError("the database is away")

    with pytest.raises(ConnectionError):
        verify(signed(), public_key_of=broken)
