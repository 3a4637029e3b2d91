"""What the device says: signed once, in order, under numbers that only rise, and never lost."""

import pytest

from driver.answers import HubUnreachable
from driver.journal import Journal
from driver.mail import Mail
from driver.outbox import Outbox
from tests.driver.rig.box import TestBox
from tests.driver.rig.hub import Answer, FakeHub, NoAnswer, problem

BEAT = {
    "version": "1",
    "state": "idle",
    "waiting_for_go": False,
    "free_bytes": 1,
    "unsent": 0,
    "skew_s": 0.0,
}


@pytest.fixture
def mail(box: TestBox) -> Mail:
    return box.box().mail


def reborn(mail: Mail, box: TestBox) -> Mail:
    """The mail of a daemon that starts on the same folder."""
    journal, outbox = Journal.open(box.state_dir), Outbox(mail.outbox.folder)
    return Mail(hub=mail.hub, journal=journal, outbox=outbox, key=mail.key, clock=mail.clock)


def test_an_event_is_told_once(mail: Mail, hub: FakeHub) -> None:
    mail.tell("refused", {"reason": "a"})

    mail.deliver()
    mail.deliver()

    assert [event["data"] for event in hub.events] == [{"reason": "a"}]


def test_events_wait_in_order_while_the_hub_is_down(mail: Mail, hub: FakeHub, box: TestBox) -> None:
    hub.instead["post_device_event"] = lambda: (_ for _ in ()).throw(NoAnswer())
    mail.tell("refused", {"reason": "a"})
    mail.tell("refused", {"reason": "b"})
    with pytest.raises(HubUnreachable):
        mail.deliver()
    hub.instead.clear()

    reborn(mail, box).deliver()

    assert [event["data"]["reason"] for event in hub.events] == ["a", "b"]


def test_an_event_is_kept_while_the_hub_does_not_know_who_asks(mail: Mail, hub: FakeHub) -> None:
    def unknown() -> None:
        hub.instead.clear()
        raise problem(401, "not-signed-in", "Who is this?")

    hub.instead["post_device_event"] = unknown
    mail.tell("refused", {"reason": "a"})
    with pytest.raises(HubUnreachable, match="Who is this"):
        mail.deliver()

    mail.deliver()

    assert [event["data"]["reason"] for event in hub.events] == ["a"]


def test_when_only_the_answer_was_lost_the_same_bytes_go_again(mail: Mail, hub: FakeHub) -> None:
    def lost() -> None:
        hub.after.clear()
        raise NoAnswer

    hub.after["post_device_event"] = lost
    mail.tell("refused", {"reason": "a"})
    with pytest.raises(HubUnreachable):
        mail.deliver()

    mail.deliver()

    assert len(hub.events) == 1


def test_an_event_that_only_reached_the_journal_is_told_after_a_restart(
    mail: Mail, hub: FakeHub, box: TestBox
) -> None:
    mail.tell("refused", {"reason": "a"})
    for path in mail.outbox.waiting():
        path.unlink()  # the power went between the two writes

    reborn(mail, box).deliver()

    assert [event["data"]["reason"] for event in hub.events] == ["a"]


def test_numbers_rise_over_restarts_and_heartbeats(mail: Mail, hub: FakeHub, box: TestBox) -> None:
    mail.beat(BEAT)
    mail.tell("refused", {"reason": "a"})
    mail.beat(BEAT)
    after = reborn(mail, box)
    after.beat(BEAT)
    after.tell("refused", {"reason": "b"})
    after.deliver()

    seqs = [event["seq"] for event in (*hub.heartbeats, *hub.events)]
    assert len(set(seqs)) == 5
    assert hub.events[1]["seq"] == max(seqs)


def test_a_heartbeat_never_overtakes_an_event(mail: Mail, hub: FakeHub) -> None:
    mail.tell("refused", {"reason": "a"})

    mail.beat(BEAT)

    assert hub.events[0]["seq"] < hub.heartbeats[0]["seq"]


def test_a_box_behind_its_own_numbers_says_so_and_goes_on(mail: Mail, hub: FakeHub) -> None:
    hub.last_seq = 500

    mail.tell("refused", {"reason": "a"})
    mail.deliver()
    mail.deliver()

    assert hub.kinds() == ["journal_lost", "refused"]
    assert [event["seq"] for event in hub.events] == [501, 502]
    assert len(list(mail.outbox.refused.glob("*"))) == 1


def test_a_heartbeat_that_is_behind_learns_the_number_too(mail: Mail, hub: FakeHub) -> None:
    hub.last_seq = 500

    mail.beat(BEAT)
    mail.beat(BEAT)

    assert hub.kinds() == ["journal_lost"]
    assert hub.heartbeats[-1]["seq"] > 501


def test_an_event_that_the_hub_will_never_take_does_not_hold_up_the_next(mail: Mail, hub: FakeHub) -> None:
    def once() -> None:
        hub.instead.clear()
        raise Answer(422, {"detail": "no"})

    hub.instead["post_device_event"] = once
    mail.tell("refused", {"reason": "a"})
    mail.tell("refused", {"reason": "b"})

    mail.deliver()

    assert [event["data"]["reason"] for event in hub.events] == ["b"]
    assert mail.outbox.waiting() == []


def test_an_event_that_comes_up_meanwhile_goes_before_the_heartbeat(
    mail: Mail, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver = mail.deliver

    def deliver_and_tell() -> int:
        told = deliver()
        if not hub.events:
            mail.tell("refused", {"reason": "just now"})
        return told

    monkeypatch.setattr(mail, "deliver", deliver_and_tell)
    mail.beat(BEAT)
    mail.beat(BEAT)

    assert hub.kinds() == ["refused"]
    assert hub.events[0]["seq"] < hub.heartbeats[0]["seq"]


def test_an_event_that_a_heartbeat_overtook_is_told_under_a_new_number(mail: Mail, hub: FakeHub) -> None:
    mail.tell("refused", {"reason": "a"})
    first = mail.journal.state.seq
    mail.journal.change(seq=first + 100)
    hub.last_seq = first

    reborn = Mail(hub=mail.hub, journal=mail.journal, outbox=mail.outbox, key=mail.key, clock=mail.clock)
    reborn.deliver()
    reborn.deliver()

    assert [(event["kind"], event["data"]["reason"]) for event in hub.events] == [("refused", "a")]
