"""A box that lost its memory says so, runs nothing until a person has looked, then ends what it began."""

from typing import Any

import pytest

from driver import journal
from driver.exits import Exit
from driver.loop import Did
from tests.driver.rig.box import TestBox
from tests.driver.rig.hub import FakeHub


def lose_journal(box: TestBox) -> None:
    journal.path_in(box.state_dir).write_bytes(b"\0" * 100)


def test_a_lost_journal_is_told_and_nothing_runs(box: TestBox, hub: FakeHub) -> None:
    hub.plan()
    lose_journal(box)

    assert box.loop().step() is Did.NOTHING

    assert hub.kinds() == ["journal_lost"]
    assert box.stages_ran() == []
    assert hub.heartbeats[-1]["data"]["state"] == "needs_attention"


def test_it_is_told_once(box: TestBox, hub: FakeHub) -> None:
    lose_journal(box)

    box.loop().step()
    box.loop().step()

    assert hub.kinds() == ["journal_lost"]


def test_when_a_person_has_looked_runs_start_again(box: TestBox, hub: FakeHub) -> None:
    hub.plan()
    lose_journal(box)
    box.loop().step()

    assert box.call("doctor", "--reconciled").returncode == Exit.OK

    assert box.loop().step() is Did.RAN


def test_a_running_daemon_takes_the_persons_word_too(box: TestBox, hub: FakeHub) -> None:
    lose_journal(box)
    loop = box.loop()
    loop.step()

    said = loop.box.console.answer({"ask": "reconciled"}, by="local ana")

    assert "cleared: the journal was lost" in said["said"]
    assert box.journal().attention is None


def test_a_run_that_only_the_hub_remembers_is_ended_at_the_persons_word(box: TestBox, hub: FakeHub) -> None:
    approval = hub.plan()
    loop = box.loop()
    loop.step()
    approval.state = "running"
    hub.logs.clear()
    (box.state_dir / "runs" / approval.approval_id / "statement.json").unlink()
    lose_journal(box)
    hub.last_seq = 900
    box.loop().step()
    assert approval.state == "running"
    box.call("doctor", "--reconciled")

    box.loop().step()
    box.loop().step()

    assert approval.state == "stopped"
    said: dict[str, Any] = hub.logs[approval.sheet["trial_id"]]["payload"]
    assert said["summary"]["reason"] == "the box lost its journal of this run"
    assert said["state"] == "uploaded"
    assert box.stages_ran() == ["hang", "floor"]


def test_a_run_that_another_box_with_this_key_began_is_left_alone(box: TestBox, hub: FakeHub) -> None:
    approval = hub.plan(1)
    hub.plan(2)
    approval.state = "running"

    assert box.loop().step() is Did.NOTHING

    assert approval.state == "running"
    assert "second box with the same key" in str(box.journal().attention)
    assert box.stages_ran() == []


@pytest.mark.parametrize("step", ["stage", "stage_ended", "started"])
def test_a_daemon_that_comes_back_offline_still_makes_the_robot_safe(
    box: TestBox, hub: FakeHub, step: str
) -> None:
    box.stop_command = ("sh", "-c", "echo safe >> made-safe.txt")
    approval = hub.plan()
    loop = box.loop()
    loop.step()
    run = _run_of(box, approval.approval_id, step)
    loop.box.journal.change(run=run)
    hub.instead["*"] = lambda: (_ for _ in ()).throw(AssertionError("asked the network"))

    box.loop()

    assert (box.folder / "made-safe.txt").exists() is (step != "started")
    assert box.step() == "stopped"


def _run_of(box: TestBox, approval_id: str, step: str) -> journal.Run:
    log = str(box.state_dir / "runs" / approval_id / "01-hang.csv")
    status = "not_run" if step == "started" else "aborted"
    stages = (
        journal.StageRun(name="hang", n=1, log=log, status=status, t0_s=0.0),
        journal.StageRun(name="floor", n=2, log=log.replace("01-hang", "02-floor")),
    )
    return journal.Run(
        approval_id=approval_id,
        trial_id=f"trl_{1:022d}",
        step=journal.Step(step),
        boot_id="boot",
        start="{}",
        stages=stages,
    )


def test_a_log_that_was_signed_before_the_loss_is_not_signed_anew(box: TestBox, hub: FakeHub) -> None:
    approval = hub.plan()
    box.loop().step()
    approval.state = "running"
    lose_journal(box)
    hub.last_seq = 900
    box.loop().step()
    box.call("doctor", "--reconciled")

    box.loop().step()

    assert box.step() is None
    assert box.journal().attention is None
