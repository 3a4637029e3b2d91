"""The device's private key: made once on the box, mode 0600, and it never leaves it."""

import os
import stat
from pathlib import Path

from nacl.signing import SigningKey

from driver import durable
from driver.exits import DriverError, Exit
from driver.wire import base64url


class KeyRefused(DriverError):
    """The key file cannot be used; the sentence says what to do about it."""

    exit = Exit.CONFIG


def generate(path: Path) -> SigningKey:
    """
    Make a new key.

    :raises KeyRefused: when a file is there already, so that no key is ever lost by accident
    """
    key = SigningKey.generate()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        raise KeyRefused(f"{path} exists already; move it away to make a new key") from None
    with os.fdopen(handle, "wb") as file:
        file.write(base64url.encode(key.encode()).encode("ascii") + b"\n")
        file.flush()
        os.fsync(file.fileno())
    durable.sync_folder(path.parent)
    return key


def load(path: Path) -> SigningKey:
    """
    Read the key.

    :raises KeyRefused: when it is absent, others may read it, or it holds no key
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        raise KeyRefused(f"{path} is not there; run `trial-driver enroll` first") from None
    except OSError as error:
        raise KeyRefused(f"{path} cannot be opened: {error.strerror}") from None
    with os.fdopen(handle, "rb") as file:
        _check_private(path, os.fstat(file.fileno()))
        return _key_of(path, file.read(200))


def _check_private(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise KeyRefused(f"{path} is not a regular file")
    if found.st_uid != os.geteuid():
        raise KeyRefused(f"{path} belongs to another user; run `chown {os.geteuid()} {path}`")
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise KeyRefused(f"others may read {path}; run `chmod 600 {path}`")


def _key_of(path: Path, raw: bytes) -> SigningKey:
    try:
        return SigningKey(base64url.decode(raw.decode("ascii").strip()))
    except (ValueError, TypeError):
        raise KeyRefused(f"{path} does not hold a key of 32 bytes in base64url") from None
