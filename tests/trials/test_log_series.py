"""The log as channels for a plot: over HTTP, from the recorded bytes."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from tests.trials import factories as made
from tests.trials.factories import Bench
from trials.models import Trial

pytestmark = pytest.mark.usefixtures("object_store")


@pytest.fixture
def trial(bench: Bench) -> Trial:
    """A first control that has run."""
    return bench.run(made.trials_of(bench.decide())[0])


def ask(browser: APIClient, trial: Trial, query: str = "", **headers: str) -> Any:
    return browser.get(f"/api/v1/trials/{trial.pk}/log/series{query}", headers=headers)


def test_the_tilt_of_all_stages_lies_on_the_trials_own_clock(
    bench: Bench, browser: APIClient, trial: Trial
) -> None:
    bench.log(trial, tilt=1.5)

    said = ask(browser, trial).json()

    assert [(stage["name"], stage["t0"], stage["rows"]) for stage in said["stages"]] == [
        ("hang", 0.0, 101),
        ("floor", 3.0, 101),
    ]
    assert said["rows"] == 202
    assert said["channels"]["tilt"]["agg"] == "minmax"
    assert max(said["channels"]["tilt"]["max"]) == pytest.approx(1.5, abs=1e-3)  # gravity has six decimals
    assert "q:left_knee" in said["known"]


def test_a_one_frame_spike_survives_decimation(bench: Bench, browser: APIClient, trial: Trial) -> None:
    bench.log(trial, spike_at=50)

    said = ask(browser, trial, "?buckets=5").json()

    assert said["decimated"] is True
    assert max(said["channels"]["tilt"]["max"]) == pytest.approx(30.0, abs=1e-3)


def test_the_same_question_about_the_same_bytes_is_not_answered_twice(
    bench: Bench, browser: APIClient, trial: Trial
) -> None:
    bench.log(trial)
    first = ask(browser, trial, "?channels=q:left_knee,tilt&buckets=10")

    again = ask(browser, trial, "?buckets=10&channels=q:left_knee,tilt", **{"If-None-Match": first["ETag"]})
    other = ask(browser, trial, "?buckets=11&channels=q:left_knee,tilt", **{"If-None-Match": first["ETag"]})

    assert (again.status_code, again.content) == (304, b"")
    assert other.status_code == 200
    assert other["ETag"] != first["ETag"]


def test_while_no_log_is_recorded_there_is_nothing_to_draw(browser: APIClient, trial: Trial) -> None:
    said = ask(browser, trial)

    assert (said.status_code, said.json()["type"]) == (409, "/problems/no-log-yet")


def test_a_lost_log_shows_nothing_and_says_why(bench: Bench, browser: APIClient, trial: Trial) -> None:
    bench.lose_log(trial)

    said = ask(browser, trial)

    assert (said.status_code, said.json()["type"]) == (409, "/problems/log-not-readable")
    assert "the command wrote no log" in said.json()["detail"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("?channels=q:tail", "channels"),
        ("?buckets=0", "buckets"),
        ("?buckets=99999999", "buckets"),
        ("?t0=2&t1=1", "t1"),
        ("?t0=soon", "t0"),
        ("?bucket=5", "bucket"),
    ],
)
def test_a_question_that_cannot_be_answered_names_what_is_wrong(
    bench: Bench, browser: APIClient, trial: Trial, query: str, field: str
) -> None:
    bench.log(trial)

    said = ask(browser, trial, query)

    assert said.status_code == 422
    assert list(said.json()["errors"]) == [field]
