from dataclasses import replace

import pytest

from driver.policy.ending import failed, refused

LOST = "the log cannot be written: 2 rows were dropped"


@pytest.mark.parametrize(
    ("stopped_by", "reason", "said"),
    [
        ("completed", None, f"{LOST} (before that: completed)"),
        ("abort_rule", "tilt_deg > 45", f"{LOST} (before that: abort_rule: tilt_deg > 45)"),
        ("command_failed", "the policy failed", f"{LOST} (before that: the policy failed)"),
        ("command_failed", LOST, LOST),
    ],
)
def test_an_ending_that_failed_afterwards_still_says_how_it_came_there(
    stopped_by: str, reason: str | None, said: str
):
    ending = failed(replace(refused(""), stopped_by=stopped_by, reason=reason), LOST)

    assert (ending.stopped_by, ending.reason) == ("command_failed", said)
    assert not ending.as_planned
