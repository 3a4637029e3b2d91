"""The hub's own signing keys: made once, kept in one file that only the hub may read, old ones with it."""

import json
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from nacl.signing import SigningKey

from driver.wire import base64url, moments, signatures
from driver.wire.canonical import JSON


@dataclass(frozen=True, kw_only=True)
class HubKey:
    """One key and the time in which the hub signs with it. What it signed then stays good."""

    secret: SigningKey
    valid_from: datetime
    valid_until: datetime | None = None

    @property
    def public_key(self) -> bytes:
        return self.secret.verify_key.encode()

    @property
    def kid(self) -> str:
        return signatures.kid(self.public_key)

    def is_valid(self, at: datetime) -> bool:
        return self.valid_from <= at and (self.valid_until is None or at < self.valid_until)


def sign(payload: Mapping[str, Any], *, at: datetime) -> dict[str, JSON]:
    """Put the hub's signature under a payload."""
    return signatures.sign(payload, signing_key(at=at).secret)


def signing_key(*, at: datetime) -> HubKey:
    """The newest key that is valid now. A hub whose clock went back signs on with its oldest."""
    keys = all_keys(at=at)
    valid = [key for key in keys if key.is_valid(at)]
    return max(valid, key=_age) if valid else min(keys, key=_age)


def published(*, at: datetime) -> list[dict[str, str | None]]:
    """The public halves of all keys, newest first, as boxes and verifiers read them."""
    return [
        {
            "kid": key.kid,
            "public_key": base64url.encode(key.public_key),
            "valid_from": moments.write(key.valid_from),
            "valid_until": _until(key),
        }
        for key in sorted(all_keys(at=at), key=_age, reverse=True)
    ]


def all_keys(*, at: datetime) -> list[HubKey]:
    """Every key of the key file, which is made with a first key when there is none."""
    path = Path(settings.HUB_KEY_FILE)
    if not path.exists():
        _create(path, [HubKey(secret=SigningKey.generate(), valid_from=at)])
    return _read(path)


def rotate(*, at: datetime) -> HubKey:
    """
    Add a key that takes over at a moment, ahead or now.

    A box trusts the one key whose fingerprint came with its code, so then each has to enrol anew.
    """
    new = HubKey(secret=SigningKey.generate(), valid_from=at)
    until = [replace(key, valid_until=key.valid_until or at) for key in all_keys(at=at)]
    path = Path(settings.HUB_KEY_FILE)
    with _draft(path, [*until, new]) as draft:
        draft.replace(path)
    return new


def _age(key: HubKey) -> datetime:
    return key.valid_from


def _until(key: HubKey) -> str | None:
    return None if key.valid_until is None else moments.write(key.valid_until)


def _create(path: Path, keys: list[HubKey]) -> None:
    """Give the file its name unless another process was first; then that one's key is the hub's."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _draft(path, keys) as draft, suppress(FileExistsError):
        path.hardlink_to(draft)


@contextmanager
def _draft(path: Path, keys: list[HubKey]) -> Iterator[Path]:
    """The whole file under another name, on disk: a name is never given to half a file."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # 0600 from its first moment
    try:
        with os.fdopen(handle, "w") as file:
            file.write(_text(keys))
            file.flush()
            os.fsync(file.fileno())
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def _text(keys: list[HubKey]) -> str:
    rows = [
        {
            "secret": base64url.encode(key.secret.encode()),
            "valid_from": moments.write(key.valid_from),
            "valid_until": _until(key),
        }
        for key in keys
    ]
    return json.dumps({"keys": rows}, indent=1) + "\n"


def _read(path: Path) -> list[HubKey]:
    try:
        with path.open() as file:
            _check_private(path, os.fstat(file.fileno()))
            return [_key(row) for row in json.load(file)["keys"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ImproperlyConfigured(f"The hub's keys in {path} cannot be read: {error}.") from error


def _check_private(path: Path, found: os.stat_result) -> None:
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise ImproperlyConfigured(f"Others may read the hub's keys; run `chmod 600 {path}`.")


def _key(row: dict[str, Any]) -> HubKey:
    until = row["valid_until"]
    return HubKey(
        secret=SigningKey(base64url.decode(row["secret"])),
        valid_from=moments.read(row["valid_from"]),
        valid_until=None if until is None else moments.read(until),
    )
