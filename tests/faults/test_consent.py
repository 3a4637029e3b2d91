"""What a person permits and takes back while a box runs, and in which order."""

from tests.driver.rig.box import wait_for
from tests.faults.between import event
from tests.faults.site import Site

LONG_S = 30.0
NOT_CONFIRMED = "not confirmed by the robot"


def test_a_run_that_was_revoked_is_asked_to_stop_until_the_robot_says_that_it_has(site: Site) -> None:
    box = site.box(lasting=True)
    trial = site.consented(box, floor_s=LONG_S)
    with box.daemon():
        box.moves_in("floor")
        with site.hub.holding(event("run_stopped"), passes_on=False) as stop:
            site.revoke(trial)
            stop.wait()  # nothing moves any more, and the hub cannot know
            asked, seen, page = site.approval(trial), site.trial(trial), site.page(trial)
        log = site.log_of(trial)

    assert (asked["state"], asked["stopped_at"]) == ("running", None)
    assert asked["stop_requested_at"] is not None
    assert (seen["status"], seen["approval"]["stop_requested_at"]) == ("running", asked["stop_requested_at"])
    assert "Stop asked" in page
    assert NOT_CONFIRMED in page
    stopped = site.approval(trial)
    assert (stopped["state"], stopped["stopped_by"]) == ("stopped", "revoked")
    assert NOT_CONFIRMED not in site.page(trial)
    assert (log["state"], log["summary"]["stopped_by"]) == ("uploaded", "revoked")
    assert [stage["status"] for stage in log["summary"]["stages"]] == ["done", "aborted"]


def test_a_trial_whose_turn_has_not_come_waits_and_runs_after_the_one_before_it(site: Site) -> None:
    box = site.box()
    first, second, _ = site.planned(box)
    site.consent(second)
    with box.daemon():
        wait_for(lambda: "comes first" in box.said(), within_s=30)
        assert (box.ran(), site.approval(second)["state"]) == ([], "issued")

        site.consent(first)
        for trial in (first, second):
            assert site.log_of(trial)["state"] == "uploaded"

    assert [(ran.trial, ran.stage) for ran in box.ran()] == [
        (trial["id"], stage) for trial in (first, second) for stage in ("hang", "floor")
    ]
    assert (site.starts(first), site.starts(second)) == (1, 1)
