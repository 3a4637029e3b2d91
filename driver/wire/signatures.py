"""Ed25519 over canonical JSON, by PyNaCl alone: other libraries let keys of small order through."""

from collections.abc import Mapping
from typing import Any

from nacl import bindings
from nacl.exceptions import CryptoError
from nacl.signing import SigningKey

from driver.wire import base64url, canonical
from driver.wire.canonical import JSON

ENVELOPE_KEYS = {"payload", "kid", "signature"}


class SignatureError(ValueError):
    """What is wrong about a key, an envelope or a signature."""


class BadKey(SignatureError):
    """Bytes that are no usable Ed25519 public key."""


class BadEnvelope(SignatureError):
    """Not `{payload, kid, signature}`, so that no signature could be checked at all."""


class BadSignature(SignatureError):
    """The check was made and failed."""


def kid(public_key: bytes) -> str:
    """The short name of a key: the first 16 hex digits of its sha256."""
    return canonical.sha256_hex(public_key)[:16]


def check_public_key(raw: bytes) -> bytes:
    """
    Give the key back when it may be registered.

    :raises BadKey: for a wrong length, another spelling of a point, a point of small or mixed order
    """
    if len(raw) != bindings.crypto_sign_PUBLICKEYBYTES:
        raise BadKey("an Ed25519 public key has 32 bytes")
    if not bindings.crypto_core_ed25519_is_valid_point(raw):
        raise BadKey("not a public key that one private key stands behind")
    return raw


def is_signed(message: bytes, *, signature: bytes, public_key: bytes) -> bool:
    """
    Say whether the key signed the message; never raises.

    The key is looked at here too, not only where it is registered, so that nothing signed by a key of small
    or mixed order ever counts.
    """
    if len(signature) != bindings.crypto_sign_BYTES:
        return False
    try:
        check_public_key(public_key)
        bindings.crypto_sign_open(signature + message, public_key)
    except (CryptoError, SignatureError, ValueError):
        return False
    return True


def sign(payload: Mapping[str, Any], key: SigningKey) -> dict[str, JSON]:
    """Make the envelope of a payload; the signature covers its canonical bytes."""
    body = canonical.dumps(dict(payload))
    signature = key.sign(body).signature
    return {
        "payload": dict(payload),
        "kid": kid(key.verify_key.encode()),
        "signature": base64url.encode(signature),
    }


def verify(envelope: Mapping[str, JSON], public_key: bytes) -> bytes:
    """
    Give the canonical bytes that the key signed: keep these, they are what the signature is about.

    :raises BadEnvelope: when there is nothing to check
    :raises BadSignature: when another key or nobody signed it
    """
    payload, named, signature = opened(envelope)
    body = _canonical(payload)
    if named != kid(public_key):
        raise BadSignature(f"signed by key {named}, not by {kid(public_key)}")
    if not is_signed(body, signature=signature, public_key=public_key):
        raise BadSignature("the signature does not fit the payload")
    return body


def opened(envelope: Mapping[str, JSON]) -> tuple[dict[str, JSON], str, bytes]:
    """
    Take payload, kid and signature out of an envelope whose signature is not checked yet.

    :raises BadEnvelope: for another shape or a signature in another spelling
    """
    if not isinstance(envelope, Mapping) or set(envelope) != ENVELOPE_KEYS:
        raise BadEnvelope("an envelope has payload, kid and signature and nothing else")
    payload, named, text = envelope["payload"], envelope["kid"], envelope["signature"]
    if not isinstance(payload, dict) or not isinstance(named, str) or not isinstance(text, str):
        raise BadEnvelope("payload is an object, kid and signature are text")
    try:
        signature = base64url.decode(text)
    except base64url.BadEncoding as error:
        raise BadEnvelope(f"signature: {error}") from None
    if len(signature) != bindings.crypto_sign_BYTES:
        raise BadEnvelope("signature: an Ed25519 signature has 64 bytes")
    return payload, named, signature


def _canonical(payload: dict[str, JSON]) -> bytes:
    try:
        return canonical.dumps(payload)
    except canonical.NotStrict as error:
        raise BadEnvelope(f"payload: {error}") from None
