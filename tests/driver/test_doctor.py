"""`doctor` says what is wrong in the order in which one thing needs the other; `status` says what goes on."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from driver import journal, pins
from driver.checks import CHECKS, Patient, examine
from driver.exits import Exit
from driver.hub import client
from driver.journal import Journal
from tests.driver.rig import papers
from tests.driver.rig.box import TestBox, wait_for
from tests.driver.rig.hub import FakeHub, problem


def findings(box: TestBox) -> dict[str, Any]:
    with client() as http:
        return {each.name: each for each in examine(Patient(box.load(), {"http": http}))}


def results(box: TestBox) -> dict[str, str]:
    return {name: finding.result for name, finding in findings(box).items()}


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def test_a_sound_box_is_ok_from_top_to_bottom(box: TestBox) -> None:
    assert set(results(box).values()) == {"ok"}
    assert list(results(box)) == list(CHECKS)


def test_the_command_prints_a_line_for_each_check_and_changes_nothing(box: TestBox) -> None:
    box.write_config()
    before = snapshot(box.state_dir)

    done = box.call("doctor")

    assert done.returncode == Exit.OK, done.stdout
    assert len(done.stdout.splitlines()) == len(CHECKS) + 1
    assert snapshot(box.state_dir) == before


def test_what_stands_on_a_failed_check_is_skipped(box: TestBox) -> None:
    pins.path_in(box.state_dir).unlink()

    found = results(box)

    assert (found["enrolment"], found["journal"], found["known at hub"]) == ("FAIL", "skipped", "skipped")
    assert found["hub answers"] == "ok"


def loose_key(box: TestBox, hub: FakeHub) -> None:
    (box.state_dir / "device.key").chmod(0o644)


def missing_program(box: TestBox, hub: FakeHub) -> None:
    box.settings = {"stages.floor": {"command": ["no-such-program"]}}


def missing_button(box: TestBox, hub: FakeHub) -> None:
    box.settings = {"device": {"stop_input": ["no-such-button"]}}


def lost_journal(box: TestBox, hub: FakeHub) -> None:
    journal.path_in(box.state_dir).write_bytes(b"")


def needs_a_person(box: TestBox, hub: FakeHub) -> None:
    Journal.open(box.state_dir).attend("the stop command failed")


def clock_far_off(box: TestBox, hub: FakeHub) -> None:
    hub.ahead = timedelta(seconds=60)


def unknown_device(box: TestBox, hub: FakeHub) -> None:
    hub.instead["list_device_approvals"] = lambda: (_ for _ in ()).throw(problem(401, "request-signature"))


def bad_robot(box: TestBox, hub: FakeHub) -> None:
    box.settings = {"device": {"robot": "no-robot.toml"}}


def no_log_folder(box: TestBox, hub: FakeHub) -> None:
    box.settings = {"stages.floor": {"command": ["true"], "log": "/nowhere/{stage}.csv"}}


def open_state_dir(box: TestBox, hub: FakeHub) -> None:
    box.state_dir.chmod(0o777)


@pytest.mark.parametrize(
    ("spoil", "name", "said"),
    [
        (loose_key, "key file", "others may read"),
        (missing_program, "stage commands", "stages.floor: no-such-program is not there"),
        (missing_button, "stage commands", "device.stop_input: no-such-button"),
        (lost_journal, "journal", "not JSON"),
        (needs_a_person, "journal", "the stop command failed"),
        (clock_far_off, "clock", "s from the hub's"),
        (unknown_device, "known at hub", "the hub refused (401)"),
        (bad_robot, "robot file", "no-robot.toml"),
        (no_log_folder, "log paths", "/nowhere cannot be written"),
        (open_state_dir, "state folder", "others may write"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_each_fault_has_its_remedy(box: TestBox, hub: FakeHub, spoil: Any, name: str, said: str) -> None:
    spoil(box, hub)

    finding = findings(box)[name]

    assert finding.result == "FAIL"
    assert said in finding.said
    assert finding.fix


def test_a_hub_that_does_not_answer_is_said_before_what_needs_it(box: TestBox) -> None:
    box.hub.url = "http://127.0.0.1:1"

    found = findings(box)

    assert found["hub answers"].result == "FAIL"
    assert found["clock"].result == "skipped"
    assert found["enrolment"].fix.startswith("set hub.url")


def test_a_clock_a_little_off_is_only_a_warning(box: TestBox, hub: FakeHub) -> None:
    hub.ahead = timedelta(seconds=10)

    assert findings(box)["clock"].result == "warn"


def test_a_real_box_without_stop_commands_is_warned(box: TestBox) -> None:
    box.settings = {"device": {"simulated": False, "go": "local"}}

    assert "no stop_command" in findings(box)["stop commands"].said


def test_what_is_owed_is_a_warning(box: TestBox, hub: FakeHub) -> None:
    box.box().mail.tell("refused", {"reason": "a"})

    assert findings(box)["owed"].result == "warn"


def test_a_broken_config_is_the_first_and_only_finding(box: TestBox) -> None:
    box.write_config()
    with box.config_file.open("a") as file:
        file.write("\n[limits]\ntilt_degs = 3\n")
    words = box.command("doctor", "--json")

    done = box.run_words(words)

    said = json.loads(done.stdout)
    assert done.returncode == Exit.FAILED
    assert [check["name"] for check in said["checks"]] == ["config"]
    assert "did you mean 'tilt_deg'" in said["checks"][0]["said"]


def test_as_json_it_is_one_object(box: TestBox) -> None:
    done = box.call("doctor", "--json")

    said = json.loads(done.stdout)
    assert said["ok"] is True
    assert set(said["checks"][0]) == {"name", "result", "said", "fix"}


def test_no_secret_is_printed(box: TestBox) -> None:
    key = (box.state_dir / "device.key").read_text().strip()

    for words in (["doctor"], ["doctor", "--json"], ["status"], ["status", "--json"]):
        done = box.call(*words)
        assert key not in done.stdout + done.stderr


def test_status_without_a_daemon_tells_what_is_on_disk(box: TestBox, hub: FakeHub) -> None:
    hub.plan()
    box.loop().step()

    done = box.call("status")

    assert done.returncode == Exit.OK
    assert "daemon     not running" in done.stdout
    assert "run        none" in done.stdout


def test_status_shows_what_runs_and_what_waits(box: TestBox, hub: FakeHub) -> None:
    box.settings = {"device": {"go": "local"}}
    hub.plan()
    with box.daemon():

        def waits() -> Any:
            done = box.call("status", "--json")
            said = json.loads(done.stdout) if done.returncode == Exit.OK else {}
            return said if said.get("daemon") and said["daemon"].get("waiting") else None

        said = wait_for(waits)

    assert said["daemon"]["waiting"]["stage"] == "hang"
    assert said["daemon"]["hub_heard_s_ago"] < 30
    assert said["run"] is None


def test_status_says_that_a_stage_runs_while_it_does(box: TestBox, hub: FakeHub) -> None:
    box.modes = {"default": "until-told"}
    hub.plan(stages=[papers.stage("warmup", duration_s=None, judged=False), papers.stage("floor")])
    with box.daemon():
        wait_for(lambda: "walking" in box.notes())

        done = box.call("status")

    assert "(warmup running, floor not_run)" in done.stdout


def test_status_says_what_needs_a_person(box: TestBox) -> None:
    Journal.open(box.state_dir).attend("the stop command failed")

    assert "ATTENTION  the stop command failed" in box.call("status").stdout


def test_a_box_that_is_not_enrolled_says_how(tmp_path: Path, hub: FakeHub) -> None:
    fresh = TestBox(tmp_path, hub)

    done = fresh.call("status")

    assert done.returncode == Exit.CONFIG
    assert "trial-driver enroll" in done.stderr
