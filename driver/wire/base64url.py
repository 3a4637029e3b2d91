"""Base64url with one spelling: a text that decodes is the text that its bytes encode to."""

import base64
import binascii
import re

_ALPHABET = re.compile(r"[A-Za-z0-9_-]*={0,2}", re.ASCII)


class BadEncoding(ValueError):
    """Text that is no base64url, or another spelling of some bytes."""


def encode(data: bytes) -> str:
    """Write without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def decode(text: str) -> bytes:
    """
    Read with or without padding.

    :raises BadEncoding: for blanks, the standard alphabet, a wrong length or spare bits that are set
    """
    if not _ALPHABET.fullmatch(text):
        raise BadEncoding("not base64url")
    bare = text.rstrip("=")
    padded = bare + "=" * (-len(bare) % 4)
    if text not in (bare, padded):
        raise BadEncoding("wrong padding")
    try:
        data = base64.urlsafe_b64decode(padded)
    except binascii.Error:
        raise BadEncoding("wrong length") from None
    if encode(data) != bare:
        raise BadEncoding("bits are set behind the last byte")
    return data
