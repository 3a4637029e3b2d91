from itertools import product
from typing import get_args

import pytest

from trials.rules.status import (
    Standing,
    Status,
    blocking,
    is_closed,
    is_closed_for_good,
    needs_request,
    status,
)

ENDED = ("declined", "withdrawn", "expired", "revoked")
APPROVALS = (None, "requested", "issued", "running", "stopped", *ENDED)
LOGS = (None, "awaiting", "uploaded", "missing", "malformed")


def standing(position=1, *, role="candidate", **facts):
    return Standing(trial=f"trl_{position}", position=position, role=role, **facts)


def expected(role, approval, log, has_verdict, went_on):
    """The table of domain.md, line by line."""
    if approval in ENDED or (approval is None and went_on):
        return "closed"
    if approval != "stopped":
        return {None: "planned", "requested": "awaiting_approval", "issued": "ready", "running": "running"}[
            approval
        ]
    if has_verdict:
        return "decided"
    if log in (None, "awaiting"):
        return "awaiting_log"
    return {"control": "measured", "candidate": "needs_verdict"}[role]


@pytest.mark.parametrize("role", ["control", "candidate"])
@pytest.mark.parametrize("approval", APPROVALS)
@pytest.mark.parametrize("log", LOGS)
def test_the_whole_table(role, approval, log):
    for has_verdict, overtaken, cancelled in product((False, True), repeat=3):
        trial = standing(
            role=role,
            approval=approval,
            log=log,
            has_verdict=has_verdict,
            is_overtaken=overtaken,
            is_cancelled=cancelled,
        )

        assert status(trial) == expected(role, approval, log, has_verdict, overtaken or cancelled)


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ({}, "planned"),
        ({"approval": "requested"}, "awaiting_approval"),
        ({"approval": "issued"}, "ready"),
        ({"approval": "running"}, "running"),
        ({"approval": "running", "log": "uploaded"}, "running"),
        ({"approval": "running", "has_verdict": True}, "running"),
        ({"approval": "stopped"}, "awaiting_log"),
        ({"approval": "stopped", "log": "uploaded"}, "needs_verdict"),
        ({"approval": "stopped", "log": "missing"}, "needs_verdict"),
        ({"approval": "stopped", "log": "malformed"}, "needs_verdict"),
        ({"approval": "stopped", "log": "uploaded", "role": "control"}, "measured"),
        ({"approval": "stopped", "log": "missing", "role": "control"}, "measured"),
        ({"approval": "stopped", "log": "uploaded", "has_verdict": True}, "decided"),
        ({"approval": "stopped", "has_verdict": True}, "decided"),
        ({"approval": "declined"}, "closed"),
        ({"approval": "revoked"}, "closed"),
        ({"is_cancelled": True}, "closed"),
    ],
)
def test_by_hand(facts, found):
    assert status(standing(**facts)) == found


def test_every_status_can_be_reached():
    reached = {
        status(standing(role=role, approval=approval, log=log, has_verdict=verdict))
        for role, approval, log, verdict in product(("control", "candidate"), APPROVALS, LOGS, (False, True))
    }

    assert reached == set(get_args(Status))


@pytest.mark.parametrize("approval", ENDED)
def test_a_trial_that_ended_without_a_start_may_be_asked_for_again_until_the_session_goes_on(approval):
    assert needs_request(standing(approval=approval))
    assert not needs_request(standing(approval=approval, is_overtaken=True))
    assert not needs_request(standing(approval=approval, is_cancelled=True))
    assert not is_closed_for_good(standing(approval=approval))
    assert is_closed_for_good(standing(approval=approval, is_overtaken=True))


@pytest.mark.parametrize("approval", ["requested", "issued", "running", "stopped"])
def test_a_trial_with_a_live_request_or_a_run_gets_no_second_one(approval):
    assert not needs_request(standing(approval=approval))
    assert not is_closed(standing(approval=approval, is_overtaken=True, is_cancelled=True))


def test_a_trial_without_a_request_gets_one():
    assert needs_request(standing())


@pytest.mark.parametrize("approval", APPROVALS)
def test_a_run_has_started_once_its_approval_runs(approval):
    assert standing(approval=approval).has_started is (approval in ("running", "stopped"))


@pytest.mark.parametrize("approval", APPROVALS)
def test_only_a_stopped_or_closed_trial_lets_the_next_one_start(approval):
    trials = [standing(1, approval=approval), standing(2, approval="issued")]

    found = blocking(trials, 2)

    assert (found is None) == (approval in ("stopped", *ENDED))
    assert found is None or found.trial == "trl_1"


def test_the_first_trial_in_the_way_is_named_and_later_ones_are_not_asked():
    trials = [
        standing(4),
        standing(3, approval="issued"),
        standing(2, approval="requested"),
        standing(1, approval="stopped"),
    ]

    assert blocking(trials, 4).trial == "trl_2"
    assert blocking(trials, 2) is None
    assert blocking(trials, 1) is None
