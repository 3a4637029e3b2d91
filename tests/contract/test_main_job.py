"""The main job through real processes: hub on PostgreSQL and SeaweedFS, driver, simulated robot."""

from dataclasses import dataclass

import pytest

from hub.web.demo.cast import CANDIDATES, CONTROL
from tests.contract.live import POLLUTED, live_hub

TIED, EARLY, NOLAG = CANDIDATES

pytestmark = pytest.mark.xdist_group("main-job")  # told once, not once a worker


@dataclass(frozen=True)
class Told:
    """What a hub says after two sessions on one device: a clean one, then one whose last run was polluted."""

    clean: dict
    polluted: dict
    trials: dict[str, list[dict]]
    pages: dict[str, str]


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> Told:
    folder = tmp_path_factory.mktemp("live")
    with live_hub(folder) as story:
        clean = story.tell()
        polluted = tell_again_with_a_polluted_end(story)
        sessions = {name: story.founder.get(f"/trial-sessions/{name}") for name in (clean, polluted)}
        trials = {
            name: [story.founder.get(f"/trials/{trial['id']}") for trial in session["trials"]]
            for name, session in sessions.items()
        }
        pages = {name: story.founder.page(f"/trial-sessions/{name}") for name in sessions}
        fallen = story.trial_of(sessions[clean], NOLAG)
        pages["fallen"] = story.founder.page(f"/trials/{fallen['id']}")
        return Told(sessions[clean], sessions[polluted], trials, pages)


def tell_again_with_a_polluted_end(story) -> str:
    """The same device; before the last run the battery sags and the floor gets slippery."""
    planned = story.founder.post(
        "/trial-sessions",
        {
            "campaign": story.campaign,
            "candidates": [{"run": TIED.run, "step": TIED.step}],
            "controls": [{"run": CONTROL.run, "step": CONTROL.step}],
            "reason": "Does it hold on another day?",
        },
    )
    *before, last = planned["trials"]
    story.run(before, config=story.config)
    story.run([last], config=story.box(POLLUTED))
    return str(planned["id"])


def test_the_driver_carries_a_whole_bracket_through(told):
    roles = [trial["role"] for trial in told.clean["trials"]]
    logs = [trial["log"]["state"] for trial in told.trials[told.clean["id"]]]

    assert roles == ["control", "candidate", "candidate", "candidate", "control"]
    assert logs == ["uploaded"] * 5
    assert told.clean["bracket"]["holds"] is True


def test_the_hub_finds_the_boxs_numbers_in_the_same_bytes(told):
    for trials in told.trials.values():
        assert [trial["log"]["hub_check"]["state"] for trial in trials] == ["agrees"] * len(trials)


def test_what_passed_every_gate_without_latency_falls_on_the_robot_and_the_abort_rule_stops_it(told):
    fallen = next(trial for trial in told.trials[told.clean["id"]] if trial["checkpoint"]["run"] == NOLAG.run)
    status = {stage["name"]: stage["status"] for stage in fallen["stages"]}
    falls = [judged["result"] for judged in fallen["criteria"] if judged["metric"] == "falls"]

    assert fallen["sim"]["verdict"] == "PASS"
    assert status == {"hang": "done", "floor": "aborted", "teleop": "not_run"}
    assert fallen["log"]["summary"]["stopped_by"] == "abort_rule"
    assert "FAIL" in falls
    assert "differs_from_sim" in falls
    assert "differs from sim" in told.pages["fallen"]


def test_a_promoting_verdict_puts_the_candidate_on_the_robot_and_into_the_next_baseline(told):
    verdicts = {trial["checkpoint"]["run"]: trial["verdict"] for trial in told.trials[told.clean["id"]]}

    assert verdicts[TIED.run]["option"] == "promote"
    assert told.polluted["baseline"]["checkpoint"] == next(
        trial["checkpoint"]["id"]
        for trial in told.trials[told.clean["id"]]
        if trial["checkpoint"]["run"] == TIED.run
    )


def test_a_polluted_second_control_voids_the_bracket_and_every_comparison_says_so(told):
    candidate = told.trials[told.polluted["id"]][1]

    assert told.polluted["bracket"]["holds"] is False
    assert candidate["comparisons"]
    assert all(row["decides"] is False for row in candidate["comparisons"])
    assert all(row["decides"] is False for row in told.polluted["comparisons"])
    assert "does not hold" in told.pages[told.polluted["id"]]


def test_the_simulated_robots_log_says_that_it_is_simulated(told):
    summaries = [trial["log"]["summary"] for trial in told.trials[told.clean["id"]]]

    assert all(summary["simulated"] and summary["loop_hz"] is None for summary in summaries)
