from pathlib import Path

import pytest

from driver.answers import HubRefused, HubUnreachable
from driver.outbox import Outbox


@pytest.fixture
def outbox(tmp_path: Path) -> Outbox:
    return Outbox(tmp_path)


def nothing(*_: object) -> None:
    """Nobody asks."""


def test_a_message_survives_a_restart_until_the_hub_has_it(outbox: Outbox, tmp_path: Path) -> None:
    outbox.put("0001-log", b"hello")
    got: list[bytes] = []

    assert Outbox(tmp_path).deliver(got.append, nothing) == 1
    assert got == [b"hello"]
    assert Outbox(tmp_path).deliver(got.append, nothing) == 0


def test_out_of_reach_keeps_the_order(outbox: Outbox) -> None:
    outbox.put("0002-event", b"second")
    outbox.put("0001-log", b"first")

    def down(_: bytes) -> None:
        raise HubUnreachable("down")

    with pytest.raises(HubUnreachable):
        outbox.deliver(down, nothing)
    got: list[bytes] = []
    outbox.deliver(got.append, nothing)

    assert got == [b"first", b"second"]


def test_a_refused_message_is_set_aside_not_called_delivered(outbox: Outbox) -> None:
    outbox.put("0001-log", b"bad")
    outbox.put("0002-log", b"good")

    def picky(message: bytes) -> None:
        if message == b"bad":
            raise HubRefused(422, {})

    assert outbox.deliver(picky, nothing) == 1
    assert (outbox.refused / "0001-log.json").read_bytes() == b"bad"
    assert outbox.waiting() == []


def test_the_same_name_twice_changes_nothing(outbox: Outbox) -> None:
    outbox.put("0001-log", b"one")
    outbox.put("0001-log", b"two")
    got: list[bytes] = []

    outbox.deliver(got.append, nothing)

    assert got == [b"one"]


def test_a_refused_message_does_not_come_back(outbox: Outbox) -> None:
    def never(_: bytes) -> None:
        raise HubRefused(422, {})

    outbox.put("0001-log", b"one")
    outbox.deliver(never, nothing)

    outbox.put("0001-log", b"one")

    assert outbox.waiting() == []


def test_a_half_written_message_is_no_message(outbox: Outbox) -> None:
    (outbox.folder / "0001-log.json.part").write_bytes(b"hal")

    assert outbox.waiting() == []
