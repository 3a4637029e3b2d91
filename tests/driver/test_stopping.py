"""What stops a run: a person at the box, a revocation, a lost link, the daemon's own end."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import psutil
import pytest

from driver import console
from driver.box import Box
from driver.exits import Exit
from driver.loop import Did
from driver.stages import Waits
from tests.driver.rig import papers
from tests.driver.rig.box import TestBox, wait_for
from tests.driver.rig.hub import Approval, FakeHub, NoAnswer, problem

OPEN_ENDED = [papers.stage("floor"), papers.stage("teleop", duration_s=None, values={"command": [0, 0, 0]})]
NO_RULES: dict[str, Any] = {"abort_rules": []}


@pytest.fixture
def walking(box: TestBox) -> TestBox:
    """A box whose stages go on until they are told to stop."""
    box.modes = {"default": "until-told"}
    return box


def stage_is_on(box: TestBox, count: int = 1) -> None:
    wait_for(lambda: box.notes().count("walking") >= count)


def log_of(hub: FakeHub, approval: Approval) -> dict[str, Any]:
    payload: dict[str, Any] = wait_for(lambda: hub.logs.get(approval.sheet["trial_id"]))["payload"]
    return payload


def outcome(hub: FakeHub, approval: Approval) -> tuple[str, list[str]]:
    summary = log_of(hub, approval)["summary"]
    return summary["stopped_by"], [stage["status"] for stage in summary["stages"]]


def test_a_stop_at_the_box_ends_the_stage_and_the_run(walking: TestBox, hub: FakeHub) -> None:
    approval = hub.plan()
    with walking.daemon():
        stage_is_on(walking)
        done = walking.call("stop")

        assert done.returncode == Exit.OK, done.stderr
        assert outcome(hub, approval) == ("operator", ["aborted", "not_run"])
    assert walking.notes() == ["walking", "stopped"]


def test_an_open_ended_stage_ends_as_planned_at_the_operators_stop(walking: TestBox, hub: FakeHub) -> None:
    approval = hub.plan(
        stages=[papers.stage("teleop", duration_s=None, judged=True)], judging=judging("teleop"), **NO_RULES
    )
    with walking.daemon():
        stage_is_on(walking)
        walking.call("stop")

        assert outcome(hub, approval) == ("operator", ["done"])


def test_where_another_stage_follows_the_run_goes_on(walking: TestBox, hub: FakeHub) -> None:
    stages = [papers.stage("warmup", duration_s=None, judged=False), papers.stage("floor")]
    approval = hub.plan(stages=stages)
    walking.modes = {"default": "until-told", "floor": "walk"}
    with walking.daemon():
        stage_is_on(walking)
        walking.call("stop")

        assert outcome(hub, approval) == ("completed", ["done", "done"])


def open_ended_then_floor(hub: FakeHub) -> Approval:
    return hub.plan(stages=[papers.stage("warmup", duration_s=None, judged=False), papers.stage("floor")])


@pytest.mark.parametrize("stop_command", [(), ("false",)])
def test_an_open_ended_stage_that_had_to_be_killed_failed_and_ends_the_run(
    box: TestBox, hub: FakeHub, stop_command: tuple[str, ...]
) -> None:
    approval = open_ended_then_floor(hub)
    box.modes, box.stop_command = {"warmup": "stubborn"}, stop_command
    loop = box.loop()

    with operator_stops(loop.box, once=lambda: "walking" in box.notes()):
        loop.step()

    assert outcome(hub, approval) == ("command_failed", ["failed", "not_run"])
    assert box.stages_ran() == ["warmup"]


@contextmanager
def meanwhile(act: Callable[[], object], *, once: Callable[[], object]) -> Iterator[None]:
    """What somebody does as soon as they see something."""

    def watch() -> None:
        wait_for(once)
        act()

    somebody = threading.Thread(target=watch)
    somebody.start()
    yield
    somebody.join()


def operator_stops(box: Box, *, once: Callable[[], object]) -> AbstractContextManager[None]:
    return meanwhile(lambda: box.console.answer({"ask": "stop"}, by="local ana"), once=once)


def has_ended(box: TestBox) -> bool:
    """The first stage's command is gone; what follows is its log, which takes until `log.settle_s`."""
    return bool(box.stages_ran()) and not psutil.pid_exists(int(box.ran.read_text().split()[2]))


def test_a_rule_that_the_command_reports_at_the_operators_stop_stays_the_reason(
    box: TestBox, hub: FakeHub
) -> None:
    approval = open_ended_then_floor(hub)
    box.modes = {"warmup": "rule-when-told"}
    loop = box.loop()
    loop.box.waits = Waits()

    with operator_stops(loop.box, once=lambda: "walking" in box.notes()):
        loop.step()

    assert outcome(hub, approval) == ("abort_rule", ["aborted", "not_run"])
    assert log_of(hub, approval)["summary"]["reason"] == "tilt_deg > 45"


def test_while_a_person_must_look_no_later_stage_starts(box: TestBox, hub: FakeHub) -> None:
    approval = hub.plan()
    box.modes = {"hang": "no-log"}
    loop = box.loop()

    with meanwhile(lambda: loop.box.journal.attend("the arm is bent"), once=lambda: has_ended(box)):
        loop.step()

    assert outcome(hub, approval) == ("driver_stopped", ["done", "not_run"])
    assert box.stages_ran() == ["hang"]


@pytest.mark.parametrize("duration_s", [None, 1.0])
def test_a_stop_while_the_log_settles_ends_the_run(
    box: TestBox, hub: FakeHub, duration_s: float | None
) -> None:
    warmup = papers.stage("warmup", duration_s=duration_s, judged=False)
    approval = hub.plan(stages=[warmup, papers.stage("floor")])
    box.modes = {"warmup": "no-log"}
    loop = box.loop()

    with operator_stops(loop.box, once=lambda: has_ended(box)):
        loop.step()

    assert outcome(hub, approval) == ("operator", ["done", "not_run"])
    assert box.stages_ran() == ["warmup"]


def judging(stage: str) -> dict[str, Any]:
    return {"formulas": 1, "stage": stage, "pairs": []}


def test_ctrl_c_is_the_operators_stop_and_the_daemon_leaves_after_the_record(
    walking: TestBox, hub: FakeHub
) -> None:
    approval = hub.plan()
    with walking.daemon() as daemon:
        stage_is_on(walking)
        daemon.send_signal(signal.SIGINT)

        assert daemon.wait(20) == Exit.OK
    assert outcome(hub, approval) == ("operator", ["aborted", "not_run"])


def test_the_service_managers_stop_is_the_drivers_and_a_second_one_skips_nothing(
    walking: TestBox, hub: FakeHub
) -> None:
    approval = hub.plan()
    with walking.daemon() as daemon:
        stage_is_on(walking)
        daemon.send_signal(signal.SIGTERM)
        daemon.send_signal(signal.SIGTERM)

        assert daemon.wait(20) == Exit.OK
    assert outcome(hub, approval) == ("driver_stopped", ["aborted", "not_run"])
    assert walking.notes() == ["walking", "stopped"]


def test_a_revocation_stops_the_stage_within_a_heartbeat(walking: TestBox, hub: FakeHub) -> None:
    approval = hub.plan()
    with walking.daemon():
        stage_is_on(walking)
        hub.revoke(approval)

        assert outcome(hub, approval) == ("revoked", ["aborted", "not_run"])
    assert approval.state == "stopped"


def test_a_box_that_was_revoked_itself_stops_the_stage(walking: TestBox, hub: FakeHub) -> None:
    def refuse() -> None:
        raise problem(401, "device-revoked", "This device was revoked.")

    with walking.daemon():
        hub.plan()
        stage_is_on(walking)
        hub.instead["*"] = refuse

        wait_for(lambda: walking.notes() == ["walking", "stopped"])


def test_a_revocation_between_two_stages_stops_the_next(box: TestBox, hub: FakeHub) -> None:
    approval = hub.plan()
    hub.instead["confirm_approval"] = lambda: hub.revoke(approval)

    box.loop().step()

    assert outcome(hub, approval) == ("revoked", ["done", "not_run"])


def test_the_stop_input_of_the_box_stops_the_stage(walking: TestBox, hub: FakeHub) -> None:
    approval = hub.plan()
    walking.settings = {"device": {"stop_input": ["test", "-e", "pressed"]}}
    with walking.daemon():
        stage_is_on(walking)
        (walking.folder / "pressed").touch()

        assert outcome(hub, approval) == ("operator", ["aborted", "not_run"])


def test_with_a_stop_input_that_cannot_be_asked_nothing_starts(walking: TestBox, hub: FakeHub) -> None:
    hub.plan()
    walking.settings = {"device": {"stop_input": ["no-such-button"]}}

    walking.loop().step()

    assert (hub.kinds(), walking.stages_ran()) == ([], [])


@contextmanager
def cut_off(hub: FakeHub) -> Iterator[None]:
    def cut() -> None:
        raise NoAnswer

    hub.instead["*"] = cut
    yield
    hub.instead.clear()


def test_with_the_link_lost_a_stage_goes_on_to_its_end_and_the_next_does_not_start(
    box: TestBox, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("driver.permission.GO_LASTS_S", 0.5)
    monkeypatch.setattr("driver.permission.AGAIN_S", 0.1)
    approval = hub.plan()
    loop = box.loop()

    def cut_after_start() -> None:
        if hub.told("stage_started"):
            raise NoAnswer

    hub.instead["*"] = cut_after_start
    loop.box.mail.deliver()
    with pytest.raises(Exception, match=r"127\.0\.0\.1"):
        loop.step()
    hub.instead.clear()
    loop.step()

    assert outcome(hub, approval) == ("link_lost", ["done", "not_run"])
    assert box.stages_ran() == ["hang"]


def test_an_open_ended_stage_does_not_outlast_the_link_for_long(walking: TestBox, hub: FakeHub) -> None:
    approval = hub.plan(
        stages=[papers.stage("teleop", duration_s=None, judged=True)], judging=judging("teleop"), **NO_RULES
    )
    walking.settings = {"limits": {"max_offline_s": 0.5}}
    with walking.daemon():
        stage_is_on(walking)
        with cut_off(hub):
            wait_for(lambda: "stopped" in walking.notes())

        assert outcome(hub, approval) == ("link_lost", ["aborted"])


def test_a_command_that_outlasts_its_time_is_ended_by_the_daemon(
    walking: TestBox, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("driver.running.GRACE_S", 0.1)
    monkeypatch.setattr("driver.running.SLOW_SIMULATION", 1.0)
    walking.settings = {"limits": {"ramp_s": 0.1}}
    approval = hub.plan(stages=[papers.stage("floor", duration_s=0.2)])

    walking.loop().step()

    assert outcome(hub, approval) == ("completed", ["done"])
    assert (
        log_of(hub, approval)["summary"]["stages"][0]["reason"]
        == "stopped by the daemon at the end of its time"
    )


def test_a_command_that_has_to_be_killed_at_its_end_failed(
    box: TestBox, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("driver.running.GRACE_S", 0.1)
    monkeypatch.setattr("driver.running.SLOW_SIMULATION", 1.0)
    box.modes, box.settings = {"floor": "stubborn"}, {"limits": {"ramp_s": 0.1}}
    approval = hub.plan(stages=[papers.stage("floor", duration_s=0.2)])

    box.loop().step()

    assert outcome(hub, approval) == ("command_failed", ["failed"])


def test_with_nothing_running_a_stop_says_so(box: TestBox) -> None:
    with box.daemon():
        wait_for(lambda: (box.state_dir / console.NAME).exists())

        done = box.call("stop")

    assert (done.returncode, done.stderr) == (Exit.FAILED, "nothing is running\n")


def test_without_a_daemon_a_stop_says_so(box: TestBox) -> None:
    done = box.call("stop")

    assert done.returncode == Exit.FAILED
    assert "no daemon answers" in done.stderr


def test_a_simulated_body_may_take_far_longer_than_its_own_clock_says(box: TestBox, hub: FakeHub) -> None:
    box.settings = {"limits": {"ramp_s": 0.1, "max_stage_s": 0.2}}
    hub.plan(stages=[papers.stage("floor", duration_s=0.1)])

    assert box.loop().step() is Did.RAN


def test_a_stop_gets_through_whatever_is_wrong_with_the_config(walking: TestBox, hub: FakeHub) -> None:
    approval = hub.plan()
    with walking.daemon():
        stage_is_on(walking)
        with walking.config_file.open("a") as file:
            file.write("[limitz]\n")
        done = walking.run_words(walking.command("stop"))

        assert done.returncode == Exit.OK, done.stderr
        assert outcome(hub, approval)[0] == "operator"
