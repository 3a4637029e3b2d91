"""Consent permits, and a person beside the robot starts: stage by stage, and only what they were shown."""

import json
import os
import subprocess
from typing import Any

import pytest

from driver import console
from driver.console import Console, Waiting
from driver.exits import Exit
from tests.driver.rig.box import TestBox, wait_for
from tests.driver.rig.hub import FakeHub

SHOWN: dict[str, Any] = {
    "trial_id": "trl_1",
    "approval_id": "apr_1",
    "role": "control",
    "checkpoint": "walk-7 step 700",
    "stage": "floor",
    "place": "2 of 2",
    "seconds": 10.0,
    "free_standing": True,
    "limits": "tilt 60°",
    "digest": "01234567",
}


@pytest.fixture
def person(box: TestBox) -> TestBox:
    """A box at which a person has to say go."""
    box.settings = {"device": {"go": "local"}}
    return box


def waits_for(box: TestBox, stage: str) -> dict[str, Any]:
    def waiting() -> Any:
        try:
            shown = console.ask(box.state_dir, ask="waiting")["waiting"]
        except console.NoDaemon:
            return None
        return shown if shown and shown["stage"] == stage else None

    found: dict[str, Any] = wait_for(waiting)
    return found


def answered_at_a_terminal(box: TestBox, answer: str) -> subprocess.CompletedProcess[str]:
    ours, theirs = os.openpty()
    try:
        os.write(ours, answer.encode())
        return box.run_words(box.command("go"), stdin=theirs)
    finally:
        os.close(ours)
        os.close(theirs)


def test_nothing_moves_and_nothing_is_started_without_a_go(person: TestBox, hub: FakeHub) -> None:
    approval = hub.plan()
    with person.daemon():
        waits_for(person, "hang")
        wait_for(lambda: any(beat["data"]["waiting_for_go"] for beat in hub.heartbeats))

    assert approval.state == "issued"
    assert person.stages_ran() == []
    assert hub.kinds() == []


def test_each_stage_waits_for_its_own_go(person: TestBox, hub: FakeHub) -> None:
    approval = hub.plan()
    with person.daemon():
        waits_for(person, "hang")
        first = person.call("go", "--yes")
        waits_for(person, "floor")
        assert person.stages_ran() == ["hang"]
        second = person.call("go", "--yes")
        wait_for(lambda: hub.logs)

    assert (first.returncode, second.returncode) == (Exit.OK, Exit.OK)
    assert person.stages_ran() == ["hang", "floor"]
    assert str(hub.told("run_started")[0]["data"]["go_by"]).startswith("local ")
    assert approval.state == "stopped"


def test_a_go_shows_trial_stage_limits_and_digest(person: TestBox, hub: FakeHub) -> None:
    approval = hub.plan()
    with person.daemon():
        waits_for(person, "hang")
        done = person.call("go", "--yes")

    assert approval.sheet["trial_id"] in done.stdout
    assert "(control, walk-7 step 700)" in done.stdout
    assert "hang (1 of 2), 1 s" in done.stdout
    assert "tilt 60°" in done.stdout
    assert approval.token["payload"]["run_sheet_sha256"][:8] in done.stdout


def test_without_a_terminal_and_without_yes_nothing_starts(person: TestBox, hub: FakeHub) -> None:
    hub.plan()
    with person.daemon():
        waits_for(person, "hang")
        done = person.call("go")

        assert done.returncode == Exit.FAILED
        assert "--yes" in done.stderr
        assert waits_for(person, "hang")
    assert person.stages_ran() == []


@pytest.mark.parametrize("answer", ["n\n", "\n", "\x04"])
def test_anything_but_yes_starts_nothing_and_says_so(person: TestBox, hub: FakeHub, answer: str) -> None:
    hub.plan()
    with person.daemon():
        waits_for(person, "hang")
        done = answered_at_a_terminal(person, answer)

        assert done.returncode == Exit.FAILED
        assert done.stderr.splitlines()[-1].endswith("not started")
        assert waits_for(person, "hang")
    assert person.stages_ran() == []


def test_a_yes_at_the_terminal_starts_the_stage(person: TestBox, hub: FakeHub) -> None:
    hub.plan()
    with person.daemon():
        waits_for(person, "hang")
        done = answered_at_a_terminal(person, "y\n")
        waits_for(person, "floor")

    assert done.returncode == Exit.OK
    assert person.stages_ran() == ["hang"]


def looks(box: TestBox) -> int:
    """How often the go button was seen not pressed."""
    path = box.folder / "looks"
    return len(path.read_text()) if path.exists() else 0


def test_a_go_input_that_is_held_starts_nothing(
    person: TestBox, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("driver.permission.GO_WAIT_S", 0.5)
    person.settings["device"]["go_input"] = ["true"]
    hub.plan()

    person.loop().step()

    assert person.stages_ran() == []


def test_the_stop_input_ends_a_wait_for_a_go(person: TestBox, hub: FakeHub) -> None:
    person.settings["device"]["stop_input"] = ["true"]
    hub.plan()

    person.loop().step()

    assert (hub.kinds(), person.stages_ran(), person.step()) == ([], [], None)


def test_the_go_input_of_the_box_is_a_go(person: TestBox, hub: FakeHub) -> None:
    person.settings["device"]["go_input"] = ["sh", "-c", "test -e pressed || { echo >> looks; exit 1; }"]
    hub.plan()
    with person.daemon():
        for stage in ("hang", "floor"):
            waits_for(person, stage)
            (person.folder / "pressed").unlink(missing_ok=True)
            seen = looks(person)
            wait_for(lambda seen=seen: looks(person) > seen + 2)
            (person.folder / "pressed").touch()
            wait_for(lambda stage=stage: stage in person.stages_ran())
        wait_for(lambda: hub.logs)

    assert hub.told("run_started")[0]["data"]["go_by"] == "the box's go input"


def test_no_go_in_ten_minutes_records_nothing(
    person: TestBox, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("driver.permission.GO_WAIT_S", 0.3)
    approval = hub.plan()
    loop = person.loop()

    loop.step()
    loop.step()

    assert approval.state == "issued"
    assert hub.kinds() == []
    assert person.step() is None


def test_with_nothing_waiting_a_go_starts_nothing(box: TestBox) -> None:
    with box.daemon():
        wait_for(lambda: (box.state_dir / console.NAME).exists())

        done = box.call("go")

    assert (done.returncode, done.stderr) == (Exit.FAILED, "nothing waits for a go\n")


def test_a_revocation_takes_away_what_waits(person: TestBox, hub: FakeHub) -> None:
    approval = hub.plan()
    with person.daemon():
        waits_for(person, "hang")
        approval.state = "revoked"
        wait_for(lambda: console.ask(person.state_dir, ask="waiting")["waiting"] is None)

        assert person.call("go", "--yes").returncode == Exit.FAILED
    assert hub.kinds() == []


@pytest.fixture
def desk() -> Console:
    return Console(reconcile=str)


def test_a_go_counts_only_for_what_was_shown(desk: Console) -> None:
    shown, now = Waiting(**SHOWN), Waiting(**SHOWN)

    with desk.waiting(shown):
        pass
    with desk.waiting(now):
        answer = desk.answer({"ask": "go", "ticket": shown.ticket}, by="local ana")

        assert answer == {"ok": False, "said": "what you saw no longer waits; look again"}
        assert desk.go_by() is None


def test_a_go_before_anything_waits_is_not_kept(desk: Console) -> None:
    waiting = Waiting(**SHOWN)

    desk.answer({"ask": "go", "ticket": waiting.ticket}, by="local ana")

    with desk.waiting(waiting):
        assert desk.go_by() is None


def test_a_stop_that_came_too_early_is_not_kept(desk: Console) -> None:
    assert desk.answer({"ask": "stop"}, by="local ana")["ok"] is False

    with desk.stoppable("trl_1"):
        assert not desk.stop_asked.is_set()


def test_only_the_owner_may_open_the_socket(box: TestBox) -> None:
    with console.listening(Console(reconcile=str), box.state_dir):
        assert (box.state_dir / console.NAME).stat().st_mode & 0o777 == 0o600


def test_the_socket_answers_in_a_folder_of_any_depth(box: TestBox) -> None:
    deep = box.state_dir.joinpath(*["a-folder-with-a-long-name"] * 8)
    deep.mkdir(parents=True)

    with console.listening(Console(reconcile=str), deep):
        assert console.ask(deep, ask="waiting") == {"waiting": None}


def test_a_socket_that_a_dead_daemon_left_is_taken_over(box: TestBox) -> None:
    (box.state_dir / console.NAME).touch()

    with console.listening(Console(reconcile=str), box.state_dir):
        assert console.ask(box.state_dir, ask="what")["ok"] is False


def test_the_words_of_what_waits_survive_the_wire() -> None:
    waiting = Waiting(**SHOWN)

    assert Waiting(**json.loads(json.dumps(vars(waiting)))) == waiting
