"""A box comes to a hub, and pins whom it trusts from then on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nacl.signing import SigningKey

from driver import enrolment, journal, keys, pins
from driver.answers import HubRefused, HubUnreachable
from driver.clock import Clock
from driver.enrolment import EnrolmentRefused
from driver.exits import Exit
from driver.wire import base64url, signatures
from tests.driver.rig.box import TestBox
from tests.driver.rig.hub import DEVICE, Answer, FakeHub, NoAnswer


@pytest.fixture
def fresh(tmp_path: Path, hub: FakeHub) -> Iterator[TestBox]:
    """A box that no hub knows."""
    folder = tmp_path / "fresh"
    folder.mkdir()
    box = TestBox(folder, hub)
    yield box
    box.close()


def published(key: SigningKey) -> dict[str, Any]:
    public_key = key.verify_key.encode()
    return {"kid": signatures.kid(public_key), "public_key": base64url.encode(public_key)}


def answered(hub: FakeHub, *keys_: SigningKey, hosts: Any = ("s3.example",)) -> None:
    said = {"device_id": DEVICE, "hub": {"keys": [published(key) for key in keys_], "storage_hosts": hosts}}

    def instead() -> None:
        raise Answer(200, said, kind="application/json")

    hub.instead["enrol_device"] = instead


def test_the_box_proves_its_key_and_pins_the_hub_that_made_the_code(fresh: TestBox, hub: FakeHub) -> None:
    fresh.enrol()

    pinned = pins.load(fresh.state_dir)
    assert pinned.device_id == DEVICE
    assert list(pinned.keys.values()) == [hub.key.verify_key.encode()]
    assert pinned.storage_hosts == (hub.url.removeprefix("http://"),)
    assert hub.device_key == keys.load(fresh.state_dir / "device.key").verify_key.encode()
    assert journal.read(journal.path_in(fresh.state_dir)) == journal.State()


def test_a_hub_that_did_not_make_the_code_is_not_trusted(fresh: TestBox, hub: FakeHub) -> None:
    answered(hub, SigningKey.generate())

    with pytest.raises(EnrolmentRefused, match="is not the one that made this code"):
        fresh.enrol()

    assert not pins.path_in(fresh.state_dir).exists()


def test_a_key_that_the_code_does_not_vouch_for_is_not_pinned(fresh: TestBox, hub: FakeHub) -> None:
    answered(hub, SigningKey.generate(), hub.key)

    fresh.enrol()

    assert list(pins.load(fresh.state_dir).keys.values()) == [hub.key.verify_key.encode()]


@pytest.mark.parametrize(
    "code", ["", "abc", "abcdefghjkmnpqrstvwx", "abcdefghjkmnpqrstvwx.0123456789ABCDEF", "a b.1"]
)
def test_a_text_that_is_no_code_reaches_no_hub(fresh: TestBox, hub: FakeHub, code: str) -> None:
    with pytest.raises(EnrolmentRefused, match="no enrolment code"):
        enrolment.enrol(fresh.load(), code, clock=Clock())

    assert hub.calls == []


def test_a_wrong_code_is_the_hubs_to_refuse(fresh: TestBox, hub: FakeHub) -> None:
    wrong = f"{'z' * 20}.{hub.code[-16:]}"

    with pytest.raises(HubRefused, match="Ask for a new code"):
        enrolment.enrol(fresh.load(), wrong, clock=Clock())

    assert not pins.path_in(fresh.state_dir).exists()


def test_when_the_answer_was_lost_the_same_key_comes_again(fresh: TestBox, hub: FakeHub) -> None:
    def lost() -> None:
        raise NoAnswer

    hub.after["enrol_device"] = lost
    with pytest.raises(HubUnreachable):
        fresh.enrol()
    first = hub.device_key
    del hub.after["enrol_device"]

    fresh.enrol()

    assert hub.device_key == first


@pytest.mark.parametrize("hosts", [None, "s3.example", [1], [""]])
def test_an_answer_without_storage_hosts_pins_nothing(fresh: TestBox, hub: FakeHub, hosts: Any) -> None:
    answered(hub, hub.key, hosts=hosts)

    with pytest.raises(EnrolmentRefused, match="storage hosts"):
        fresh.enrol()

    assert not pins.path_in(fresh.state_dir).exists()


def test_the_command_says_what_is_trusted_and_no_secret(fresh: TestBox, hub: FakeHub) -> None:
    done = fresh.call("enroll", hub.code)

    assert done.returncode == Exit.OK, done.stderr
    assert f"enrolled as {DEVICE}" in done.stdout
    assert hub.code[-16:] in done.stdout
    assert hub.code[:20] not in done.stdout + done.stderr


def test_a_text_that_is_no_code_touches_nothing(fresh: TestBox) -> None:
    done = fresh.call("enroll", "abc")

    assert done.returncode == Exit.REFUSED
    assert "no enrolment code" in done.stderr
    assert not fresh.state_dir.exists()


def test_an_enrolled_box_is_not_enrolled_again_by_accident(box: TestBox, hub: FakeHub) -> None:
    done = box.call("enroll", hub.code)

    assert done.returncode == Exit.REFUSED
    assert "--again" in done.stderr


def test_enrolling_again_keeps_the_key_and_the_journal(box: TestBox, hub: FakeHub) -> None:
    journal.Journal.open(box.state_dir).change(used=("apr_1",))
    key = hub.device_key

    done = box.call("enroll", hub.code, "--again")

    assert done.returncode == Exit.OK, done.stderr
    assert hub.device_key == key
    assert box.journal().used == ("apr_1",)
