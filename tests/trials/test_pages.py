"""Read-only pages: a person sees what the API says, and a stranger sees nothing."""

from typing import Any

import pytest
from django.test import Client

from hub.accounts.models import User
from tests.factories import client
from tests.hub.campaigns import factories as campaigns
from tests.trials import factories as made
from tests.trials.factories import Bench
from trials.models import TrialSession

pytestmark = pytest.mark.usefixtures("object_store")

SAME: dict[str, Any] = {"tilt": 1.0}


@pytest.fixture
def session(bench: Bench) -> TrialSession:
    return made.whole_session(bench, SAME, {"fell": True}, {"tilt": 4.0}, candidates=[bench.good])


def page(user: User | None, path: str) -> str:
    answer = client(user).get(path)
    assert answer.status_code == 200, path
    return answer.content.decode()


def test_the_first_page_lists_sessions_with_what_their_bracket_says(session: TrialSession, ana: User) -> None:
    shown = page(ana, "/")

    assert f"/trial-sessions/{session.pk}" in shown
    assert "does not hold" in shown


def test_a_sessions_page_shows_the_order_and_that_it_decides_nothing(
    session: TrialSession, ana: User
) -> None:
    shown = page(ana, f"/trial-sessions/{session.pk}")

    assert "so order and risk are one variable here" in shown
    assert shown.index("1. control") < shown.index("2. candidate") < shown.index("3. control")
    assert "decides nothing" in shown


def test_a_trials_page_shows_criteria_tilt_and_files_of_a_run(session: TrialSession, ana: User) -> None:
    shown = page(ana, f"/trials/{made.trials_of(session)[1].pk}")

    assert "✕ FAIL" in shown
    assert '<polygon class="band" points="' in shown
    assert "01-hang.csv" in shown
    assert "The bracket does not hold" in shown


def test_a_trial_that_has_not_run_shows_dashes_and_no_zero(bench: Bench, ana: User) -> None:
    session = bench.session(candidates=[bench.good])

    shown = page(ana, f"/trials/{made.trials_of(session)[1].pk}")

    assert "… pending" in shown
    assert "0.00°" not in shown


def test_an_order_behind_which_no_simulation_stands_says_so(bench: Bench, ana: User) -> None:
    unmeasured = campaigns.checkpoint(bench.campaign, run="walk-9", step=1)
    session = bench.session(
        controls=[unmeasured], candidates=[campaigns.checkpoint(bench.campaign, run="walk-9", step=2)]
    )

    assert "so they run by step" in page(ana, f"/trial-sessions/{session.pk}")


@pytest.mark.parametrize("path", ["/trial-sessions/{session}", "/trials/{trial}"])
def test_a_running_robot_that_has_not_spoken_is_never_said_to_run(bench: Bench, ana: User, path: str) -> None:
    session = bench.session(candidates=[bench.good])
    first = made.trials_of(session)[0]
    bench.consent(first)
    bench.start(first)

    assert "No word from the robot yet" in page(ana, path.format(session=session.pk, trial=first.pk))


@pytest.mark.parametrize("thing", ["session", "trial"])
def test_a_stranger_finds_no_page(session: TrialSession, eve: User, thing: str) -> None:
    paths = {"session": f"/trial-sessions/{session.pk}", "trial": f"/trials/{made.trials_of(session)[0].pk}"}

    assert client(eve).get(paths[thing]).status_code == 404


def test_a_stranger_sees_no_session_of_others(session: TrialSession, eve: User) -> None:
    assert session.pk not in page(eve, "/")


def test_whoever_is_not_signed_in_is_sent_to_sign_in(session: TrialSession) -> None:
    answer = Client().get(f"/trial-sessions/{session.pk}")

    assert answer.headers["Location"] == f"/sign-in?next=/trial-sessions/{session.pk}"


def test_the_list_of_sessions_takes_the_same_queries_for_one_and_for_three(
    bench: Bench, ana: User, django_assert_num_queries: Any
) -> None:
    bench.session(candidates=[bench.good])
    signed_in = client(ana)
    signed_in.get("/")
    with django_assert_num_queries(4):
        signed_in.get("/")
    for _ in range(2):
        bench.session(candidates=[bench.good])
    with django_assert_num_queries(4):
        signed_in.get("/")
