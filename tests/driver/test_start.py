"""The start: told to the hub and permitted by its fresh, signed word, or nothing moves."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from nacl.signing import SigningKey

from driver.loop import Did
from driver.wire import signatures, statements
from tests.driver.rig.box import TestBox
from tests.driver.rig.hub import Answer, Approval, FakeHub, NoAnswer, problem

Word = Callable[[FakeHub, Approval], dict[str, Any]]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A go lapses soon, so that no test waits ten seconds."""
    monkeypatch.setattr("driver.permission.GO_LASTS_S", 1.0)
    monkeypatch.setattr("driver.permission.AGAIN_S", 0.1)


def on_start(hub: FakeHub, act: Callable[[], None], *, once: bool = False) -> None:
    """Do it when the start has been taken, in place of the hub's answer."""

    def after() -> None:
        if "run_started" in hub.kinds() and not hub.told("run_stopped"):
            if once:
                hub.after.clear()
            act()

    hub.after["post_device_event"] = after


def lost() -> None:
    raise NoAnswer


def other_key(hub: FakeHub, approval: Approval) -> dict[str, Any]:
    word = hub.word(approval)
    return signatures.sign(word["payload"], SigningKey.generate())


def changed_byte(hub: FakeHub, approval: Approval) -> dict[str, Any]:
    word = hub.word(approval, go_on=False, reason="x")
    return {**word, "payload": {**word["payload"], "go_on": True}}


def other_approval(hub: FakeHub, approval: Approval) -> dict[str, Any]:
    return hub.word(approval, approval_id=f"apr_{9:022d}")


def old(hub: FakeHub, approval: Approval) -> dict[str, Any]:
    return hub.word(approval, at=hub.now() - timedelta(seconds=15))


def from_the_future(hub: FakeHub, approval: Approval) -> dict[str, Any]:
    return hub.word(approval, at=hub.now() + timedelta(seconds=15))


def unsigned(hub: FakeHub, approval: Approval) -> dict[str, Any]:
    return {"seq": 1}


def more_than_a_word(hub: FakeHub, approval: Approval) -> dict[str, Any]:
    word = {"approval_id": approval.approval_id, "go_on": True, "reason": None}
    payload = statements.go_on_payload(**word, at=hub.now())
    return signatures.sign({**payload, "until": "forever"}, hub.key)


BAD = [other_key, changed_byte, other_approval, old, from_the_future, unsigned, more_than_a_word]


@pytest.mark.parametrize("word", BAD, ids=lambda word: word.__name__)
def test_a_start_answer_that_is_not_the_hubs_fresh_word_starts_nothing(
    box: TestBox, hub: FakeHub, word: Word
) -> None:
    approval = hub.plan()

    def bad() -> None:
        raise Answer(200, word(hub, approval), kind="application/json")

    on_start(hub, bad)
    loop = box.loop()
    loop.step()
    hub.after.clear()
    loop.step()

    assert box.stages_ran() == []
    assert "the answer to the start was refused" in hub.told("refused")[0]["data"]["reason"]
    said = hub.logs[approval.sheet["trial_id"]]["payload"]
    assert said["state"] == "missing"
    assert "the answer to the start was refused" in said["detail"]
    assert approval.state == "stopped"


@pytest.mark.parametrize("word", BAD, ids=lambda word: word.__name__)
def test_a_later_stage_needs_as_good_a_word(box: TestBox, hub: FakeHub, word: Word) -> None:
    approval = hub.plan()

    def bad() -> None:
        raise Answer(200, word(hub, approval), kind="application/json")

    hub.instead["confirm_approval"] = bad
    box.loop().step()

    assert box.stages_ran() == ["hang"]
    summary = hub.logs[approval.sheet["trial_id"]]["payload"]["summary"]
    assert [stage["status"] for stage in summary["stages"]] == ["done", "not_run"]


def test_the_word_of_the_start_does_not_do_for_a_later_stage(
    box: TestBox, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A middleman who also sets the box's clock back still cannot play an old word again."""
    monkeypatch.setattr("driver.permission.ANSWER_LASTS", timedelta(seconds=0.4))
    approval = hub.plan()
    kept: list[dict[str, Any]] = []
    on_start(hub, lambda: kept.append(hub.word(approval)), once=True)
    loop = box.loop()

    def replay() -> None:
        loop.box.clock.wall = lambda: hub.now() - timedelta(seconds=1)
        raise Answer(200, kept[0], kind="application/json")

    box.modes = {}
    hub.instead["confirm_approval"] = replay
    monkeypatch.setattr("driver.running.POLL_S", 0.6)  # the stage takes longer than a word lasts
    loop.step()

    assert box.stages_ran() == ["hang"]


def test_a_lost_answer_to_the_start_is_asked_for_again(box: TestBox, hub: FakeHub) -> None:
    hub.plan()
    on_start(hub, lost, once=True)

    assert box.loop().step() is Did.RAN
    assert len(hub.told("run_started")) == 1
    assert box.stages_ran() == ["hang", "floor"]


def test_a_go_lapses_when_the_hub_does_not_answer_and_nothing_starts(box: TestBox, hub: FakeHub) -> None:
    approval = hub.plan()
    loop = box.loop()

    def silent() -> None:
        if box.step() == "starting":
            raise NoAnswer

    hub.instead["post_device_event"] = silent

    assert loop.step() is Did.WAITED
    assert box.stages_ran() == []
    assert approval.state == "issued"


def test_a_start_that_never_reached_the_hub_is_offered_again(box: TestBox, hub: FakeHub) -> None:
    hub.plan()
    loop = box.loop()

    def silent() -> None:
        if box.step() == "starting":
            raise NoAnswer

    hub.instead["post_device_event"] = silent
    loop.step()
    hub.instead.clear()

    assert loop.step() is Did.RAN
    assert box.stages_ran() == ["hang", "floor"]
    assert len(hub.told("run_started")) == 1


def test_a_start_answered_too_late_needs_a_new_go_and_a_fresh_word(box: TestBox, hub: FakeHub) -> None:
    hub.plan()
    on_start(hub, lost)
    loop = box.loop()
    assert loop.step() is Did.WAITED
    hub.after.clear()

    assert loop.step() is Did.RAN

    assert hub.calls.count("confirm_approval") == 2
    assert len(hub.told("run_started")) == 1
    assert box.stages_ran() == ["hang", "floor"]


def test_when_its_turn_has_not_come_the_box_asks_again_later(box: TestBox, hub: FakeHub) -> None:
    approval = hub.plan()

    def not_yet() -> None:
        if box.step() == "starting":
            raise problem(409, "out-of-order", "trl_0 comes first.")

    hub.instead["post_device_event"] = not_yet
    loop = box.loop()

    assert loop.step() is Did.WAITED
    assert loop.step() is Did.NOTHING
    assert box.stages_ran() == []
    assert approval.state == "issued"
    assert hub.kinds() == []


def test_once_another_has_run_what_had_to_wait_is_asked_at_once(box: TestBox, hub: FakeHub) -> None:
    hub.plan(2)

    def not_yet() -> None:
        if box.step() == "starting":
            raise problem(409, "out-of-order", "The first one comes first.")

    hub.instead["post_device_event"] = not_yet
    loop = box.loop()
    assert loop.step() is Did.WAITED
    hub.instead.clear()
    hub.plan(1)

    assert [loop.step(), loop.step()] == [Did.RAN, Did.RAN]
    assert [event["trial_id"][-1] for event in hub.told("run_started")] == ["1", "2"]


def test_a_hub_that_says_no_starts_nothing(box: TestBox, hub: FakeHub) -> None:
    approval = hub.plan()

    def no() -> None:
        approval.state = "issued"
        raise Answer(200, hub.word(approval), kind="application/json")

    on_start(hub, no)

    assert box.loop().step() is Did.WAITED
    assert box.stages_ran() == []


def test_a_consent_that_expires_while_it_waits_starts_nothing(box: TestBox, hub: FakeHub) -> None:
    hub.plan(token={"expires_at": hub.now() + timedelta(seconds=60)})
    loop = box.loop()
    accept = loop.inspector.accept

    class Later:
        def accept(self, *args: Any, **kwargs: Any) -> Any:
            accepted = accept(*args, **kwargs)
            hub.ahead = timedelta(seconds=120)
            loop.box.hub.list_device_approvals("issued")
            return accepted

    loop.inspector = Later()  # type: ignore[assignment]

    assert loop.step() is Did.WAITED
    assert hub.kinds() == []


def test_the_start_event_carries_the_fingerprint_of_the_box(box: TestBox, hub: FakeHub) -> None:
    hub.plan(1)
    hub.plan(2)
    loop = box.loop()

    loop.step()
    loop.step()

    first, second = (event["data"] for event in hub.told("run_started"))
    assert first["minutes_since_last_run"] is None
    assert 0 <= second["minutes_since_last_run"] < 2
    assert first["boot_id"] == second["boot_id"]
    assert hub.told("run_stopped")[0]["data"]["battery_v"] == 25.1
    json.dumps(first)
