"""The daemon is killed: one recorded log, no stage run twice, and first of all the robot made safe."""

import itertools
import json
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from driver import durable, journal
from driver.exits import Exit
from driver.journal import Step
from driver.loop import Loop
from tests.driver.rig.box import TestBox, kill, wait_for
from tests.driver.rig.hub import Approval, FakeHub, NoAnswer


class Hold:
    """Stops the hub in the middle of a request, until it is let go without an answer."""

    def __init__(self, when: Callable[[], bool]) -> None:
        self.when = when
        self.reached, self.released = threading.Event(), threading.Event()

    def __call__(self) -> None:
        if self.released.is_set() or not self.when():
            return
        self.reached.set()
        assert self.released.wait(30)
        raise NoAnswer


def log_of(hub: FakeHub, approval: Approval) -> dict[str, Any]:
    payload: dict[str, Any] = hub.logs[approval.sheet["trial_id"]]["payload"]
    return payload


def killed_at(box: TestBox, hold: Hold) -> None:
    """Start the daemon, and kill it when the hub holds its request."""
    with box.daemon() as daemon:
        assert hold.reached.wait(30), box.daemon_log()
        kill(daemon)
    hold.released.set()


def comes_back(box: TestBox) -> None:
    """Start it again, for one trial and no more."""
    with box.daemon("--once") as daemon:
        assert daemon.wait(40) == Exit.OK, box.daemon_log()


def test_before_the_start_event_reaches_the_hub(box: TestBox, hub: FakeHub) -> None:
    approval = hub.plan()
    hub.instead["post_device_event"] = hold = Hold(lambda: box.step() == Step.STARTING)

    killed_at(box, hold)
    assert approval.state == "issued"
    comes_back(box)

    assert box.stages_ran() == ["hang", "floor"]
    assert len(hub.told("run_started")) == 1
    assert log_of(hub, approval)["state"] == "uploaded"


def test_when_the_hub_has_the_start_and_nothing_has_moved(box: TestBox, hub: FakeHub) -> None:
    approval = hub.plan()
    hub.after["post_device_event"] = hold = Hold(lambda: hub.kinds() == ["run_started"])

    killed_at(box, hold)
    comes_back(box)

    assert box.stages_ran() == []
    assert log_of(hub, approval)["state"] == "missing"
    assert log_of(hub, approval)["detail"] == "the daemon was ended before the first stage"
    assert approval.state == "stopped"


def test_in_the_middle_of_a_stage(box: TestBox, hub: FakeHub) -> None:
    box.modes, box.stop_command = {"hang": "until-told"}, ("sh", "-c", "echo safe >> made-safe.txt")
    approval = hub.plan()
    with box.daemon() as daemon:
        wait_for(lambda: "walking" in box.notes())
        pid = int(box.ran.read_text().split()[2])
        kill(daemon)
        wait_for(lambda: not is_alive(pid), within_s=1)

    comes_back(box)

    assert box.stages_ran() == ["hang"]
    assert (box.folder / "made-safe.txt").read_text() == "safe\n"
    said = log_of(hub, approval)
    assert said["state"] == "uploaded"
    assert said["summary"]["stopped_by"] == "driver_stopped"
    assert said["summary"]["reason"] == "the daemon was ended in stage hang"
    assert [stage["status"] for stage in said["summary"]["stages"]] == ["aborted", "not_run"]


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_stage_that_outlives_the_daemon_is_ended_before_anything_else(box: TestBox, hub: FakeHub) -> None:
    box.modes = {"hang": "stubborn"}
    hub.plan()
    with box.daemon() as daemon:
        wait_for(lambda: "walking" in box.notes())
        kill(daemon)
    pid = int(box.ran.read_text().split()[2])
    assert is_alive(pid)

    comes_back(box)

    assert not is_alive(pid)
    assert len(hub.logs) == 1


def test_a_loss_of_power_is_told_from_a_killed_daemon(box: TestBox, hub: FakeHub) -> None:
    box.modes = {"hang": "until-told"}
    approval = hub.plan()
    with box.daemon() as daemon:
        wait_for(lambda: "walking" in box.notes())
        kill(daemon)
    path = journal.path_in(box.state_dir)
    said = json.loads(path.read_bytes())
    said["run"]["boot_id"] = "the boot before"
    path.write_text(json.dumps(said))

    comes_back(box)

    assert log_of(hub, approval)["summary"]["stopped_by"] == "power_loss"


def test_after_the_stop_before_the_hub_knows(box: TestBox, hub: FakeHub) -> None:
    approval = hub.plan()
    hub.instead["post_device_event"] = hold = Hold(lambda: box.step() in (Step.STOPPED, Step.SIGNED))

    killed_at(box, hold)
    comes_back(box)

    assert box.stages_ran() == ["hang", "floor"]
    assert len(hub.told("run_stopped")) == 1
    assert log_of(hub, approval)["summary"]["stopped_by"] == "completed"


def test_in_the_middle_of_a_put(box: TestBox, hub: FakeHub) -> None:
    approval = hub.plan()
    hub.instead["storage_put"] = hold = Hold(lambda: True)

    killed_at(box, hold)
    comes_back(box)

    assert log_of(hub, approval)["state"] == "uploaded"
    assert box.stages_ran() == ["hang", "floor"]


def test_after_the_put_before_the_record(box: TestBox, hub: FakeHub) -> None:
    approval = hub.plan()
    hub.instead["upload_trial_log"] = hold = Hold(lambda: True)

    killed_at(box, hold)
    assert box.step() == Step.STORED
    comes_back(box)

    assert log_of(hub, approval)["state"] == "uploaded"
    assert hub.calls.count("storage_put") == 2


def test_after_the_record_before_its_answer(box: TestBox, hub: FakeHub) -> None:
    approval = hub.plan()
    hub.after["upload_trial_log"] = hold = Hold(lambda: True)

    killed_at(box, hold)
    first = hub.logs[approval.sheet["trial_id"]]["raw"]
    comes_back(box)

    assert hub.logs[approval.sheet["trial_id"]]["raw"] == first
    assert box.step() is None
    assert box.journal().attention is None


def test_the_second_daemon_of_a_folder_leaves(box: TestBox) -> None:
    with box.daemon() as first:
        wait_for(lambda: (box.state_dir / "control.sock").exists())

        second = box.call("run")

        assert first.poll() is None
    assert second.returncode == Exit.FAILED
    assert "already running" in second.stderr


def test_a_killed_daemon_holds_nothing_back(box: TestBox) -> None:
    with box.daemon() as first:
        wait_for(lambda: (box.state_dir / "control.sock").exists())
        kill(first)

    comes_back(box)


class Killed(BaseException):
    """The process ends here."""


class Death:
    """Makes one durable write the last thing that the process did, or the first that it did not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.write, self.names = durable.write, list[str]()
        self.at: int | None = None
        self.is_written = False
        monkeypatch.setattr(durable, "write", self)

    def due(self, number: int, *, is_written: bool) -> None:
        self.names.clear()
        self.at, self.is_written = number, is_written

    def __call__(self, path: Path, data: bytes, **options: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            if self.is_dead:
                raise OSError("the process is dead")
            self.write(path, data, **options)
            return
        self.names.append(path.name)
        if self.is_dead and not (self.is_written and len(self.names) == self.at):
            raise Killed
        self.write(path, data, **options)
        if self.is_dead:
            raise Killed

    @property
    def is_dead(self) -> bool:
        return self.at is not None and len(self.names) >= self.at


def passes(loop: Loop) -> None:
    """As many as it takes until nothing is owed."""
    for _ in range(4):
        loop.step()


@pytest.mark.slow
def test_at_each_durable_write_in_turn(
    box: TestBox, hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and after each write of a whole trial; the next daemon always ends it the same way."""
    death = Death(monkeypatch)
    hub.plan()
    passes(box.loop())
    writes = len(death.names)
    assert writes > 15

    for number, is_written in itertools.product(range(1, writes + 1), (False, True)):
        folder = tmp_path / f"{number}-{is_written}"
        folder.mkdir()
        with closing(TestBox(folder, hub)) as other:
            _die_and_come_back(other, hub, death, number, is_written)


def _die_and_come_back(box: TestBox, hub: FakeHub, death: Death, number: int, is_written: bool) -> None:
    hub.forget()
    box.enrol()
    approval = hub.plan()
    death.due(number, is_written=is_written)
    with pytest.raises(Killed):
        passes(box.loop())
    death.at = None

    passes(box.loop())

    ran = box.stages_ran()
    assert len(ran) == len(set(ran)), (number, is_written)
    assert approval.state == "stopped", (number, is_written)
    assert len(hub.logs) == 1, (number, is_written)
    assert box.step() is None, (number, is_written)
