"""The signature on every request that a device makes: RFC 9421, by PyNaCl."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from http_message_signatures import (
    HTTPMessageSigner,
    HTTPMessageVerifier,
    HTTPSignatureAlgorithm,
    HTTPSignatureKeyResolver,
    InvalidSignature,
)
from http_message_signatures.exceptions import HTTPMessageSignaturesException
from nacl.signing import SigningKey

from driver.wire import signatures

TAG = "trial-hub"
LABEL = "hub"
COVERED = ("@method", "@target-uri")
CLOCK_TOLERANCE = timedelta(minutes=5)

_NONCE = re.compile(r"[A-Za-z0-9_-]{16,64}", re.ASCII)


class BadRequestSignature(ValueError):
    """The request is not signed as it must be; `reason` says what was met."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ClockOutside(BadRequestSignature):
    """The signature holds, but was made by a clock that is too far from ours."""

    def __init__(self, created: datetime, now: datetime) -> None:
        super().__init__(f"the request's clock is {(created - now).total_seconds():+.0f} s from ours")
        self.created, self.now = created, now


@dataclass(frozen=True, kw_only=True)
class SignedBy:
    """Who signed a request. (device_id, nonce) may count once, which the caller sees to."""

    device_id: str
    nonce: str
    created: datetime
    public_key: bytes


def sign_request(
    *,
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes | None,
    key: SigningKey,
    device_id: str,
    created: datetime,
    nonce: str,
) -> dict[str, str]:
    """Give the headers that sign a request; `url` is spelled as it is sent, `body` as its raw bytes."""
    message = _Message(method=method, url=url, headers=dict(headers))
    before = set(message.headers)
    signer = HTTPMessageSigner(signature_algorithm=_Ed25519, key_resolver=_OwnKey(key))
    signer.sign(
        message,
        key_id=device_id,
        created=created,
        nonce=nonce,
        tag=TAG,
        label=LABEL,
        covered_component_ids=COVERED,
        body=body or None,
    )
    return {name: value for name, value in message.headers.items() if name not in before}


def verify_request(
    *,
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes | None,
    public_key_of: Callable[[str], Sequence[bytes]],
    now: datetime,
) -> SignedBy:
    """
    Say which device signed a request.

    `url` is a configured public origin with the request's path and query, never what Host says. A device may
    have several keys while one takes over from another.

    :raises ClockOutside: when the signature holds but was not made within five minutes of `now`
    :raises BadRequestSignature: for everything else
    """
    keys = _DeviceKeys(public_key_of)
    verifier = _Verifier(signature_algorithm=_Ed25519, key_resolver=keys)
    try:
        results = verifier.verify(
            _Message(method=method, url=url, headers=dict(headers.items())),
            max_age=None,
            expect_tag=TAG,
            require_components=COVERED,
            body=body or b"",
        )
    except HTTPMessageSignaturesException as error:
        if keys.failure is not None:
            raise keys.failure from None
        raise BadRequestSignature(_readable(error)) from None
    if len(results) != 1 or keys.used is None:
        raise BadRequestSignature("more than one signature carries our tag")
    return _signed_by(results[0].parameters, keys.used, now=now)


def _signed_by(parameters: Mapping[str, Any], public_key: bytes, *, now: datetime) -> SignedBy:
    nonce = parameters.get("nonce")
    if not isinstance(nonce, str) or not _NONCE.fullmatch(nonce):
        raise BadRequestSignature("a nonce has 16 to 64 letters, digits, dashes and underscores")
    if "expires" in parameters:
        raise BadRequestSignature("a request of a device has no expires")
    created = _moment(parameters["created"])
    if abs(created - now) > CLOCK_TOLERANCE:
        raise ClockOutside(created, now)
    return SignedBy(device_id=parameters["keyid"], nonce=nonce, created=created, public_key=public_key)


def _moment(seconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, tz=UTC)
    except (OverflowError, ValueError, OSError):
        raise BadRequestSignature("created is no moment") from None


def _readable(error: Exception) -> str:
    text = str(error) or "the signature does not fit the request"
    return "".join(letter if letter.isprintable() else "?" for letter in text[:200])


@dataclass
class _Message:
    method: str
    url: str
    headers: dict[str, str] = field(default_factory=dict)


class _DeviceKeys(HTTPSignatureKeyResolver):
    """The keys of the device that a signature names; afterwards, the one that fitted."""

    def __init__(self, public_key_of: Callable[[str], Sequence[bytes]]) -> None:
        self.public_key_of = public_key_of
        self.keys: Sequence[bytes] = ()
        self.used: bytes | None = None
        self.failure: Exception | None = None

    def resolve_public_key(self, key_id: str) -> "_DeviceKeys | None":
        try:
            self.keys = self.public_key_of(key_id)
        except Exception as error:
            self.failure = error  # the package would make a bad signature of it
            raise
        return self if self.keys else None

    def fits(self, message: bytes, signature: bytes) -> bool:
        for key in self.keys:
            if signatures.is_signed(message, signature=signature, public_key=key):
                self.used = key
                return True
        return False


class _OwnKey(HTTPSignatureKeyResolver):
    def __init__(self, key: SigningKey) -> None:
        self.key = key

    def resolve_private_key(self, key_id: str) -> SigningKey:
        return self.key


class _Ed25519(HTTPSignatureAlgorithm):
    """The package's own Ed25519 goes through a library that accepts keys of small order."""

    algorithm_id = "ed25519"

    def __init__(self, public_key: _DeviceKeys | None = None, private_key: SigningKey | None = None) -> None:
        self.keys, self.key = public_key, private_key

    def sign(self, message: bytes) -> bytes:
        if self.key is None:
            raise InvalidSignature("there is no key to sign with")
        return self.key.sign(message).signature

    def verify(self, signature: bytes, message: bytes) -> None:
        if self.keys is None or not self.keys.fits(message, signature):
            raise InvalidSignature("the signature does not fit the request")


class _Verifier(HTTPMessageVerifier):
    """Leaves the clock to `verify_request`, which is told the time and can say how far a clock is off."""

    def validate_created_and_expires(self, sig_input: Any, max_age: timedelta | None = None) -> None:
        if "created" not in sig_input.params:
            raise InvalidSignature("the signature does not say when it was made")
