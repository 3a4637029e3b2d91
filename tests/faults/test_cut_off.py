"""Answers that never come, and a hub that is away: one start, one log, and no stage without a fresh word."""

from tests.driver.rig.box import wait_for
from tests.faults.between import Asked, LosesFirstAnswers, anything, down
from tests.faults.site import Site

LONGER_THAN_A_GO_S = 40


def tells(asked: Asked) -> bool:
    """Something that changes what the other side has; no mere look, and no heartbeat."""
    return asked.method != "GET" and asked.event != "heartbeat"


def test_when_the_first_answer_to_each_word_is_lost_there_is_one_start_and_one_log(site: Site) -> None:
    box = site.box()
    trial = site.consented(box)
    at_the_hub, at_the_storage = LosesFirstAnswers(), LosesFirstAnswers()

    with (
        site.hub.meeting(tells, at_the_hub),
        site.storage.meeting(tells, at_the_storage),
        box.daemon(),
    ):
        log = site.log_of(trial)
        wait_for(lambda: not box.journal.logs)

    lost = {"run_started", "run_stopped", "stage_finished", "POST confirm", "POST uploads", "POST log"}
    assert lost <= at_the_hub.lost
    assert at_the_storage.lost >= {"PUT 01-hang.csv", "PUT 02-floor.csv"}
    assert box.stages() == ["hang", "floor"]
    assert (site.starts(trial), site.records(trial)) == (1, 1)
    assert (log["state"], log["summary"]["stopped_by"]) == ("uploaded", "completed")
    assert log["hub_check"]["state"] == "agrees"


def test_while_the_hub_is_away_the_stage_ends_the_next_does_not_start_and_the_log_comes_later(
    site: Site,
) -> None:
    box = site.box(lasting=True)
    trial = site.consented(box, floor_s=1.5, teleop_s=1.0)
    with box.daemon():
        wait_for(lambda: box.stages() == ["hang", "floor"], within_s=30)
        with site.hub.meeting(anything, down):
            wait_for(lambda: box.journal.logs, within_s=LONGER_THAN_A_GO_S)
        log = site.log_of(trial)

    said = log["summary"]
    assert box.stages() == ["hang", "floor"]
    assert {stage["name"]: stage["status"] for stage in said["stages"]} == {
        "hang": "done",
        "floor": "done",
        "teleop": "not_run",
    }
    assert said["stopped_by"] == "link_lost"
    assert said["tilt_mean_deg"] is not None
    assert (site.starts(trial), site.records(trial)) == (1, 1)
