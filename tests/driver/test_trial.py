"""One trial from its consent to its record, on the real loop, with a robot that is a script."""

import sys
from typing import Any

import psutil
import pytest

from driver.loop import Did
from driver.policy.order import read_order
from tests.driver.rig import papers
from tests.driver.rig.box import ROBOT, TestBox
from tests.driver.rig.hub import FakeHub


def test_a_consented_trial_runs_stage_by_stage_and_its_log_is_recorded(box: TestBox, hub: FakeHub) -> None:
    approval = hub.plan()

    did = box.loop().step()

    assert did is Did.RAN
    assert box.stages_ran() == ["hang", "floor"]
    assert hub.kinds() == [
        "run_started",
        "stage_started",
        "stage_finished",
        "stage_started",
        "stage_finished",
        "run_stopped",
    ]
    assert approval.state == "stopped"
    said = hub.logs[approval.sheet["trial_id"]]["payload"]
    assert said["state"] == "uploaded"
    assert said["summary"]["stopped_by"] == "completed"
    assert [file["name"] for file in said["files"]] == ["01-hang.csv", "02-floor.csv"]
    assert box.step() is None


def test_a_whole_session_runs_in_its_order(box: TestBox, hub: FakeHub) -> None:
    for n in (3, 1, 2):
        hub.plan(n)
    loop = box.loop()

    assert [loop.step() for _ in range(4)] == [Did.RAN, Did.RAN, Did.RAN, Did.NOTHING]

    assert [event["trial_id"][-1] for event in hub.told("run_started")] == ["1", "2", "3"]
    assert len(hub.logs) == 3


def test_the_summary_is_what_the_logs_say(box: TestBox, hub: FakeHub) -> None:
    said = recorded(box, hub)

    assert said["summary"]["judged_stage"] == "floor"
    assert said["summary"]["tilt_mean_deg"] == pytest.approx(0.573, abs=0.001)
    assert said["summary"]["motor_temps_c"] == {"left_knee_joint": 41.5}
    assert said["summary"]["battery"] == {"start_v": None, "end_v": 25.1}
    assert said["summary"]["falls"] == 0
    assert said["summary"]["simulated"] is True
    assert said["summary"]["loop_hz"] is None
    assert [stage["t0_s"] for stage in said["summary"]["stages"]][1] >= 0.98


def recorded(box: TestBox, hub: FakeHub, **sheet: Any) -> dict[str, Any]:
    """What the hub has on record after one trial."""
    approval = hub.plan(**sheet)
    assert box.loop().step() is Did.RAN
    payload: dict[str, Any] = hub.logs[approval.sheet["trial_id"]]["payload"]
    return payload


def stopped_by(said: dict[str, Any]) -> tuple[str, list[str]]:
    summary = said["summary"]
    return summary["stopped_by"], [stage["status"] for stage in summary["stages"]]


def test_a_rule_that_stopped_a_stage_ends_the_run(box: TestBox, hub: FakeHub) -> None:
    box.modes = {"hang": "abort"}

    said = recorded(box, hub)

    assert stopped_by(said) == ("abort_rule", ["aborted", "not_run"])
    assert said["summary"]["reason"] == "tilt_deg > 45"
    assert box.stages_ran() == ["hang"]


def test_a_failed_gate_ends_the_run_after_its_stage(box: TestBox, hub: FakeHub) -> None:
    box.modes = {"hang": "crooked"}
    gate = [{"metric": "asym_max_deg", "op": "<=", "threshold": 10.0}]

    said = recorded(box, hub, stages=[papers.stage("hang", gate=gate), papers.stage("floor")])

    assert stopped_by(said) == ("gate", ["done", "not_run"])
    assert said["summary"]["reason"] == "hang: gate: asym_max_deg is 17.19, wanted <= 10"
    assert said["state"] == "uploaded"


def test_a_gate_that_passes_lets_the_next_stage_run(box: TestBox, hub: FakeHub) -> None:
    gate = [{"metric": "asym_max_deg", "op": "<=", "threshold": 10.0}]

    recorded(box, hub, stages=[papers.stage("hang", gate=gate), papers.stage("floor")])

    assert box.stages_ran() == ["hang", "floor"]


def test_a_gate_without_a_number_does_not_pass(box: TestBox, hub: FakeHub) -> None:
    gate = [{"metric": "temp_max_c", "op": "<=", "threshold": 60.0}]

    said = recorded(box, hub, stages=[papers.stage("hang", gate=gate), papers.stage("floor")])

    assert said["summary"]["reason"] == "hang: gate: temp_max_c was not measured, wanted <= 60"


@pytest.mark.parametrize(
    ("mode", "reason"),
    [("fail", "hang: it ended with 3"), ("garbled", "its TRIAL-STOP line cannot be read")],
)
def test_a_command_that_failed_ends_the_run_and_its_log_goes_up(
    box: TestBox, hub: FakeHub, mode: str, reason: str
) -> None:
    box.modes = {"hang": mode}

    said = recorded(box, hub)

    assert said["summary"]["stopped_by"] == "command_failed"
    assert reason in said["summary"]["reason"]
    assert said["state"] == "uploaded"
    assert box.stages_ran() == ["hang"]


def test_after_an_unclean_end_the_stop_command_runs_once(box: TestBox, hub: FakeHub) -> None:
    box.modes, box.stop_command = {"hang": "fail"}, ("touch", "made-safe-{stage}")

    recorded(box, hub)

    assert (box.folder / "made-safe-hang").exists()
    assert not (box.folder / "made-safe-floor").exists()


def test_after_a_clean_end_it_does_not(box: TestBox, hub: FakeHub) -> None:
    box.stop_command = ("touch", "made-safe-{stage}")

    recorded(box, hub)

    assert list(box.folder.glob("made-safe-*")) == []


def test_when_the_stop_command_fails_nothing_more_runs(box: TestBox, hub: FakeHub) -> None:
    box.modes, box.stop_command = {"hang": "fail"}, ("false",)
    hub.plan(1)
    hub.plan(2)
    loop = box.loop()

    loop.step()
    loop.step()

    assert box.stages_ran() == ["hang"]
    assert "the stop command of stage hang failed" in str(box.journal().attention)
    assert len(hub.logs) == 1
    assert hub.heartbeats[-1]["data"]["state"] == "needs_attention"


def test_what_a_stage_left_running_is_ended_and_the_run_with_it(box: TestBox, hub: FakeHub) -> None:
    box.modes = {"hang": "runaway"}

    said = recorded(box, hub)

    left = int(box.notes()[0].split()[1])
    assert said["summary"]["stopped_by"] == "command_failed"
    assert not psutil.pid_exists(left)


@pytest.mark.parametrize(
    ("mode", "state", "why"),
    [
        ("no-log", "missing", "the command wrote no log at"),
        ("malformed", "malformed", "02-floor.csv: line 52, column 'tick': a cell that is no number"),
    ],
)
def test_a_log_that_is_not_there_or_not_sound_is_a_stated_failure(
    box: TestBox, hub: FakeHub, mode: str, state: str, why: str
) -> None:
    box.modes, box.settings = {"floor": mode}, {"log": {"settle_s": 0.3}}

    said = recorded(box, hub)

    assert said["state"] == state
    assert why in said["detail"]
    assert said["files"] == []
    assert said["summary"]["stopped_by"] == "completed"


def test_what_another_stage_lacks_is_said_and_takes_nothing_away(box: TestBox, hub: FakeHub) -> None:
    box.modes, box.settings = {"hang": "no-log"}, {"log": {"settle_s": 0.3}}

    said = recorded(box, hub)

    assert said["state"] == "uploaded"
    assert [file["name"] for file in said["files"]] == ["02-floor.csv"]
    assert "the command wrote no log" in said["detail"]
    assert "the command wrote no log" in said["summary"]["stages"][0]["reason"]


def test_a_log_from_an_older_run_is_not_this_runs(box: TestBox, hub: FakeHub) -> None:
    box.modes = {"floor": "no-log"}
    box.settings = {"log": {"settle_s": 0.3}, "stages.floor": {"log": str(box.folder / "robot.csv")}}
    (box.folder / "robot.csv").write_text("t,g_x,g_y,g_z\n0,0,0,-1\n1,0,0,-1\n")

    said = recorded(box, hub)

    assert said["state"] == "missing"
    assert "is older than the stage" in said["detail"]


def test_a_log_outside_the_state_folder_is_kept_for_the_upload(box: TestBox, hub: FakeHub) -> None:
    box.modes, box.settings = {"floor": "walk"}, {"stages.floor": {"log": str(box.folder / "robot.csv")}}

    said = recorded(box, hub)

    assert [file["name"] for file in said["files"]] == ["01-hang.csv", "02-floor.csv"]


@pytest.mark.parametrize("trick", ["link", "pipe", "folder"])
def test_what_is_no_regular_file_is_no_log(box: TestBox, hub: FakeHub, trick: str) -> None:
    log = box.folder / "robot.csv"
    make = {"link": f"ln -s /etc/hostname {log}", "pipe": f"mkfifo {log}", "folder": f"mkdir {log}"}[trick]
    box.settings = {
        "log": {"settle_s": 0.5},
        "stages.floor": {"command": ["sh", "-c", make], "log": str(log)},
    }

    said = recorded(box, hub)

    assert said["state"] == "malformed"


def test_a_flood_of_output_changes_nothing(box: TestBox, hub: FakeHub) -> None:
    box.modes = {"floor": "flood"}

    assert recorded(box, hub)["summary"]["stopped_by"] == "completed"


def test_temperatures_may_come_from_plain_output(box: TestBox, hub: FakeHub) -> None:
    script = f"{sys.executable} -S {ROBOT} {box.ran} silent; echo 'left_knee: 47.5 C'; echo 'bat 24.75V'"
    stdout = {"temps": r"(\w+): ([\d.]+) C", "battery": r"bat ([\d.]+)V"}
    box.settings = {"stages.floor": {"command": ["sh", "-c", script], "stdout": stdout}}

    said = recorded(box, hub)

    assert said["summary"]["motor_temps_c"] == {"left_knee": 47.5}
    assert said["summary"]["battery"]["end_v"] == 24.75


def test_the_command_gets_its_order_on_stdin_and_as_variables(box: TestBox, hub: FakeHub) -> None:
    show = "cat > order.json; env | grep ^TRIAL_ | sort > variables.txt"
    box.settings = {"stages.floor": {"command": ["sh", "-c", show]}, "log": {"settle_s": 0.2}}

    recorded(box, hub)

    order = read_order((box.folder / "order.json").read_bytes())
    variables = (box.folder / "variables.txt").read_text()
    assert order.stage.name == "floor"
    assert order.onnx_sha256 == papers.sha256(order.onnx.read_bytes())
    assert "TRIAL_STAGE=floor" in variables
    assert 'TRIAL_VALUES={"command":[0,0,0]}' in variables
    assert "TRIAL_DURATION_S=1\n" in variables
    assert "TRIAL_DRIVER" not in variables


def test_of_two_abort_rules_for_one_metric_both_act(box: TestBox, hub: FakeHub) -> None:
    show = "cat > order.json"
    box.settings = {"stages.floor": {"command": ["sh", "-c", show]}, "log": {"settle_s": 0.2}}

    recorded(box, hub, abort_rules=[rule("tilt_deg", 70.0), rule("temp_c", 80.0)])

    rules = read_order((box.folder / "order.json").read_bytes()).abort_rules
    assert [str(each) for each in rules] == [
        "tilt_deg > 70",
        "temp_c > 80",
        "joint_vel_rad_s > 20",
        "tilt_deg > 60",
    ]


def rule(metric: str, value: float) -> dict[str, Any]:
    return {"metric": metric, "op": ">", "value": value, "for_s": 0.0, "stages": ["floor"]}


def test_a_robot_that_hangs_may_be_tilted(box: TestBox, hub: FakeHub) -> None:
    box.settings = {"stages.hang": {"command": ["sh", "-c", "cat > order.json"]}, "log": {"settle_s": 0.2}}

    recorded(box, hub)

    rules = read_order((box.folder / "order.json").read_bytes()).abort_rules
    assert [str(each) for each in rules] == ["temp_c > 85", "joint_vel_rad_s > 20"]
