"""What a page says of a robot right now."""

from datetime import UTC, datetime, timedelta

import pytest

from trials.rules.live import Word, notices

NOW = datetime(2026, 11, 30, 14, 31, 0, tzinfo=UTC)
SILENCE = timedelta(seconds=30)


def said(approval, *, ago=None, beat=None, stop_ago=None):
    before = {None: None}
    word = Word(
        approval=approval,
        stop_requested_at=before.get(stop_ago, NOW - timedelta(seconds=stop_ago or 0)),
        heartbeat=beat,
        heartbeat_at=before.get(ago, NOW - timedelta(seconds=ago or 0)),
    )
    return [(notice.tone, notice.words) for notice in notices(word, at=NOW, silence=SILENCE)]


def test_a_stop_that_was_asked_is_not_confirmed_until_the_robot_says_so():
    words = said("running", ago=1, beat={"stage": "floor"}, stop_ago=10)

    assert words[0] == ("warn", "Stop asked at 14:30:50 UTC, not confirmed by the robot.")


@pytest.mark.parametrize(
    ("ago", "expected"),
    [
        (30, ("info", "The robot runs the stage floor; its last word came at 14:30:30 UTC.")),
        (31, ("warn", "No word from the robot since 14:30:29 UTC.")),
        (None, ("warn", "No word from the robot yet.")),
    ],
)
def test_a_robot_silent_for_longer_than_half_a_minute_is_never_said_to_run(ago, expected):
    assert said("running", ago=ago, beat={"stage": "floor"}) == [expected]


@pytest.mark.parametrize("approval", ["issued", "running"])
def test_a_robot_that_waits_for_a_go_is_ready(approval):
    assert said(approval, ago=2, beat={"waiting_for_go": True}) == [
        ("info", "Ready at the robot: it waits for a go from the person beside it.")
    ]


def test_a_permit_that_no_box_waits_with_says_nothing():
    assert said("issued", ago=2, beat={"waiting_for_go": False}) == []
    assert said("issued", ago=300, beat={"waiting_for_go": True}) == []


@pytest.mark.parametrize("approval", [None, "requested", "stopped", "revoked", "expired"])
def test_nothing_is_said_of_what_does_not_run(approval):
    assert said(approval, ago=1, beat={"waiting_for_go": True}, stop_ago=5) == []
