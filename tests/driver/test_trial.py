"""One trial from its consent to its record, on the real loop, with a robot that is a script."""

from driver.loop import Did
from tests.driver.rig.box import TestBox
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
