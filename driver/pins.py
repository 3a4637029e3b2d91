"""What this box trusts: the hub key and the storage hosts that it pinned when it was enrolled."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driver import durable
from driver.exits import DriverError, Exit
from driver.wire import base64url, signatures


class NotEnrolled(DriverError):
    """There is nothing to trust yet."""

    exit = Exit.CONFIG


@dataclass(frozen=True, kw_only=True)
class Pins:
    url: str
    device_id: str
    keys: Mapping[str, bytes]
    storage_hosts: tuple[str, ...]


def path_in(folder: Path) -> Path:
    return folder / "hub.json"


def save(folder: Path, pins: Pins) -> None:
    said = {
        "url": pins.url,
        "device_id": pins.device_id,
        "keys": {kid: base64url.encode(key) for kid, key in pins.keys.items()},
        "storage_hosts": list(pins.storage_hosts),
    }
    durable.write(path_in(folder), json.dumps(said, indent=1).encode())


def load(folder: Path) -> Pins:
    """:raises NotEnrolled: when nothing is pinned, or it cannot be read"""
    path = path_in(folder)
    try:
        return _pins(json.loads(path.read_bytes()))
    except FileNotFoundError:
        raise NotEnrolled("this box is not enrolled; run `trial-driver enroll CODE --hub URL`") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotEnrolled(f"{path} cannot be read ({error}); enrol this box again") from None


def _pins(said: dict[str, Any]) -> Pins:
    keys = {kid: signatures.check_public_key(base64url.decode(text)) for kid, text in said["keys"].items()}
    if not keys or any(signatures.kid(key) != kid for kid, key in keys.items()):
        raise ValueError("a key does not fit its name")
    return Pins(
        url=str(said["url"]),
        device_id=str(said["device_id"]),
        keys=keys,
        storage_hosts=tuple(str(host) for host in said["storage_hosts"]),
    )
