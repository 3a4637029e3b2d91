"""The daemon killed outright at each step of a trial, and started again: one record, nothing runs twice."""

import pytest

from tests.driver.rig.box import wait_for
from tests.faults.between import event, request
from tests.faults.box import RobotBox, kill
from tests.faults.deaths import lateness, outlived_s
from tests.faults.site import Site, Trial

GONE_WITHIN_S = 0.1
LONG_S = 30.0


def ends_with(site: Site, box: RobotBox, trial: Trial) -> dict:
    """Start the daemon again, wait until it owes the hub nothing, and give the log that the hub then has."""
    with box.daemon():
        log = site.log_of(trial)
        wait_for(lambda: not box.journal.logs and not box.journal.run)
    assert site.approval(trial)["state"] == "stopped"
    assert (site.starts(trial), site.records(trial)) == (1, 1)
    return log


def statuses(log: dict) -> dict[str, str]:
    return {stage["name"]: stage["status"] for stage in log["summary"]["stages"]}


def test_killed_while_it_waits_for_a_go_it_has_started_nothing_and_waits_again(site: Site) -> None:
    box = site.box(go="local")
    trial = site.consented(box)
    with box.daemon() as daemon:
        wait_for(box.waiting)
        kill(daemon)

    with box.daemon():
        shown = wait_for(box.waiting) or {}

    assert shown["trial_id"] == trial["id"]
    assert box.ran() == []
    assert site.approval(trial)["state"] == "issued"


def test_killed_before_its_start_has_come_to_the_hub_it_runs_when_it_is_back(site: Site) -> None:
    box = site.box()
    trial = site.consented(box)
    with site.hub.holding(event("run_started"), passes_on=False) as start, box.daemon() as daemon:
        start.wait()
        kill(daemon)
    assert (box.step(), box.ran(), site.starts(trial)) == ("starting", [], 0)

    log = ends_with(site, box, trial)

    assert box.stages() == ["hang", "floor"]
    assert log["state"] == "uploaded"
    assert box.stop_commands() == []


def test_killed_before_it_hears_that_it_may_start_it_never_runs(site: Site) -> None:
    box = site.box()
    trial = site.consented(box)
    with site.hub.holding(event("run_started"), passes_on=True) as start, box.daemon() as daemon:
        start.wait()
        kill(daemon)
    assert (box.step(), site.starts(trial)) == ("starting", 1)

    log = ends_with(site, box, trial)

    assert box.ran() == []
    assert (log["state"], log["summary"]["stopped_by"]) == ("missing", "driver_stopped")
    assert "before the first stage" in log["detail"]


def test_killed_in_a_stage_the_stage_dies_too_and_the_robot_is_made_safe_once(site: Site) -> None:
    box = site.box(lasting=True)
    trial = site.consented(box, floor_s=LONG_S)
    with box.daemon() as daemon:
        box.moves_in("floor")
        with lateness() as late:
            outlived = outlived_s(daemon, box.ran()[-1].pid)
    assert outlived <= GONE_WITHIN_S + late.worst_s
    assert box.step() == "stage"

    log = ends_with(site, box, trial)

    assert box.stages() == ["hang", "floor"]
    assert box.stop_commands() == ["floor"]
    assert log["summary"]["stopped_by"] == "driver_stopped"
    assert statuses(log) == {"hang": "done", "floor": "aborted"}
    assert (log["state"], log["hub_check"]["state"]) == ("uploaded", "agrees")


def test_killed_between_two_stages_the_next_one_never_starts(site: Site) -> None:
    box = site.box()
    trial = site.consented(box)
    with site.hub.holding(request("POST", "/confirm"), passes_on=True) as asked, box.daemon() as daemon:
        asked.wait()
        kill(daemon)
    assert box.step() == "stage_ended"

    log = ends_with(site, box, trial)

    assert box.stages() == ["hang"]
    assert box.stop_commands() == ["hang"]
    assert statuses(log) == {"hang": "done", "floor": "not_run"}


def test_killed_after_the_stop_it_signs_the_log_that_it_has(site: Site) -> None:
    box = site.box(lasting=True)
    trial = site.consented(box, floor_s=1.5)
    with box.daemon() as daemon:
        box.moves_in("floor")
        with site.hub.holding(event("heartbeat"), passes_on=False) as heartbeat:
            heartbeat.wait()  # the daemon ends its run with the call that is under way
            wait_for(lambda: box.step() == "stopped", within_s=30)
            kill(daemon)
    assert site.approval(trial)["state"] == "running"

    log = ends_with(site, box, trial)

    assert box.stages() == ["hang", "floor"]
    assert box.stop_commands() == []
    assert log["summary"]["stopped_by"] == "completed"
    assert log["hub_check"]["state"] == "agrees"


def test_killed_before_the_hub_knows_of_the_stop_it_says_so_when_it_is_back(site: Site) -> None:
    box = site.box()
    trial = site.consented(box)
    with site.hub.holding(event("run_stopped"), passes_on=False) as stop, box.daemon() as daemon:
        stop.wait()
        kill(daemon)
    assert [log.step for log in box.journal.logs] == ["signed"]
    assert site.approval(trial)["state"] == "running"

    log = ends_with(site, box, trial)

    assert box.stages() == ["hang", "floor"]
    assert log["summary"]["stopped_by"] == "completed"


@pytest.mark.parametrize("has_come", [False, True], ids=["before the record", "after the record"])
def test_killed_with_its_files_in_storage_it_puts_them_there_once(site: Site, has_come: bool) -> None:
    box = site.box()
    trial = site.consented(box)
    with site.hub.holding(request("POST", "/log"), passes_on=has_come) as record, box.daemon() as daemon:
        record.wait()
        kill(daemon)
    assert [log.step for log in box.journal.logs] == ["stored"]
    assert site.records(trial) == has_come

    log = ends_with(site, box, trial)

    assert box.stages() == ["hang", "floor"]
    assert (log["state"], log["hub_check"]["state"]) == ("uploaded", "agrees")
    assert site.storage.puts_for(trial["id"]) == 2
