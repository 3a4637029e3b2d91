"""The box comes to a hub: it makes its key, proves it, and pins whom it trusts from then on."""

import re
from typing import Any

from driver import answers, hub, keys, pins
from driver.clock import Clock
from driver.config import Config
from driver.exits import DriverError, Exit
from driver.journal import Journal
from driver.pins import Pins
from driver.wire import base64url, canonical, signatures, statements
from driver.wire.canonical import JSON

CODE = re.compile(r"[A-Za-z0-9_-]{20}\.([0-9a-f]{16})")


class EnrolmentRefused(DriverError):
    """The box trusts nobody more than before."""

    exit = Exit.REFUSED


def enrol(config: Config, code: str, *, clock: Clock) -> Pins:
    """
    Register this box's key and pin the hub that the code is from. May be repeated with the same code.

    :raises EnrolmentRefused: for a text that is no code, and for a hub that is not the one that made it
    :raises HubRefused: for a code that is wrong, spent or too old
    """
    fingerprint = fingerprint_in(code)
    state_dir, key_file = config.device.state_dir, config.device.key_file
    key = keys.load(key_file) if key_file.exists() else keys.generate(key_file)
    payload = statements.enrol_payload(code=code, public_key=key.verify_key.encode(), at=clock.now())
    answer = hub.enrol(config.hub.url, canonical.dumps(signatures.sign(payload, key)))
    pinned = _pinned(answer, url=config.hub.url, fingerprint=fingerprint)
    Journal.create(state_dir)
    pins.save(state_dir, pinned)
    return pinned


def fingerprint_in(code: str) -> str:
    """
    The fingerprint of the hub's key, which is the code's end.

    :raises EnrolmentRefused: for a text that is no code
    """
    match = CODE.fullmatch(code)
    if match is None:
        raise EnrolmentRefused("that is no enrolment code: 20 characters, a dot, and 16 of 0-9 a-f")
    return match[1]


def _pinned(answer: dict[str, JSON], *, url: str, fingerprint: str) -> Pins:
    """
    What the answer may be trusted for.

    The fingerprint came to the box by a person's hand, so it vouches for one key. Other keys in the answer
    have only the network's word, and are not pinned.
    """
    said = answers.table(answer, "hub")
    published = [_key(item) for item in answers.items(said, key="keys")]
    trusted = {signatures.kid(key): key for key in published if signatures.kid(key) == fingerprint}
    if not trusted:
        raise EnrolmentRefused(
            f"the hub at {url} is not the one that made this code: none of its keys is {fingerprint}"
        )
    hosts: Any = said.get("storage_hosts")
    if not isinstance(hosts, list) or not all(isinstance(host, str) and host for host in hosts):
        raise EnrolmentRefused("the hub names no storage hosts")
    return Pins(
        url=url, device_id=answers.text(answer, "device_id"), keys=trusted, storage_hosts=tuple(hosts)
    )


def _key(item: dict[str, JSON]) -> bytes:
    try:
        return signatures.check_public_key(base64url.decode(answers.text(item, "public_key")))
    except (base64url.BadEncoding, signatures.BadKey) as error:
        raise EnrolmentRefused(f"the hub publishes a key that is none: {error}") from None
