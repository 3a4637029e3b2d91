"""Nobody but the box starts a run, and only in its turn: over HTTP, whoever tries and however."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from devices.models import Approval
from tests.contract.callers import KINDS, Caller, outcome
from tests.contract.operations import ROOT
from tests.contract.samples import Sample
from tests.contract.world import World, approvals_running
from tests.trials import factories as made

State = Approval.State


@pytest.fixture
def box(callers_of: dict[str, Caller]) -> Caller:
    return callers_of["device"]


@pytest.fixture
def browser(callers_of: dict[str, Caller]) -> Caller:
    return callers_of["owner"]


def post(caller: Caller, path: str, body: Any) -> Any:
    return caller.call("POST", path, Sample(body=body).raw)


def start(hub: World, trial: Any) -> dict[str, Any]:
    return hub.box.started(made.approval_of(trial))


def state_of(trial: Any) -> str:
    return str(made.approval_of(trial).state)


def test_the_box_starts_what_a_person_consented_to(hub: World, box: Caller) -> None:
    said = post(box, f"{hub.box.path}/events", start(hub, hub.ready))

    assert said.status_code == 200, said.content
    assert said.json()["payload"]["go_on"] is True
    assert state_of(hub.ready) == State.RUNNING


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "device"])
def test_the_boxs_own_word_starts_nothing_when_another_brings_it(
    hub: World, callers_of: dict[str, Caller], kind: str
) -> None:
    said = post(callers_of[kind], f"{hub.box.path}/events", start(hub, hub.ready))

    assert said.status_code in (401, 403, 404)
    assert state_of(hub.ready) == State.ISSUED
    assert approvals_running() == set()


@pytest.mark.parametrize("key_of", ["other_box", "revoked_box"])
def test_another_boxs_key_starts_nothing_through_the_right_box(hub: World, box: Caller, key_of: str) -> None:
    hers = getattr(hub, key_of)
    envelope = made.signatures.sign(start(hub, hub.ready)["payload"], hers.key)

    said = post(box, f"{hub.box.path}/events", envelope)

    assert outcome(said) == (403, "statement-signature")
    assert state_of(hub.ready) == State.ISSUED


def test_another_box_starts_nothing_at_its_own_address(hub: World, callers_of: dict[str, Caller]) -> None:
    approval = made.approval_of(hub.ready)

    said = post(callers_of["other device"], f"{hub.other_box.path}/events", hub.other_box.started(approval))

    assert outcome(said) == (422, "statement-binding")
    assert state_of(hub.ready) == State.ISSUED


def test_a_request_without_the_boxs_request_signature_starts_nothing(
    hub: World, callers_of: dict[str, Caller]
) -> None:
    said = post(callers_of["anonymous"], f"{hub.box.path}/events", start(hub, hub.ready))

    assert said.status_code == 401
    assert state_of(hub.ready) == State.ISSUED


def test_no_event_but_the_start_makes_a_run(hub: World, box: Caller) -> None:
    approval, path = made.approval_of(hub.ready), f"{hub.box.path}/events"
    stage = {"stage": "hang", "at_s": 0.0}

    told = [
        post(box, path, hub.box.event("stage_started", stage, approval=approval)),
        post(box, path, hub.box.event("stage_finished", {**stage, "status": "done"}, approval=approval)),
        post(box, path, hub.box.stopped(approval)),
        post(box, path, hub.box.event("refused", {"reason": "the limits"}, approval=approval)),
        post(box, path, hub.box.heartbeat(state="running")),
        post(box, f"{ROOT}/approvals/{approval.pk}/confirm", None),
    ]

    assert [said.status_code for said in told] == [409, 409, 409, 200, 200, 200]
    assert told[-1].json()["payload"]["go_on"] is False
    assert state_of(hub.ready) == State.ISSUED


def test_a_start_is_answered_once_and_the_same_bytes_alike(hub: World, box: Caller) -> None:
    path, envelope = f"{hub.box.path}/events", start(hub, hub.ready)

    first, again = post(box, path, envelope), post(box, path, envelope)
    another = post(box, path, start(hub, hub.ready))

    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json() == first.json()
    assert outcome(another) == (409, "wrong-state")


def test_a_run_out_of_its_turn_is_409_and_names_the_trial_that_comes_first(hub: World, box: Caller) -> None:
    hub.bench.consent(hub.idle_trials[1], at=timezone.now())

    said = post(box, f"{hub.box.path}/events", start(hub, hub.idle_trials[1]))

    assert outcome(said) == (409, "out-of-order")
    assert said.json()["trial"] == hub.asked.pk
    assert state_of(hub.idle_trials[1]) == State.ISSUED


@pytest.mark.parametrize("end", ["decline", "withdraw"])
def test_an_earlier_trial_that_is_closed_is_in_nobodys_way(
    hub: World, box: Caller, browser: Caller, end: str
) -> None:
    hub.bench.consent(hub.idle_trials[1], at=timezone.now())
    closed = post(browser, f"{ROOT}/approvals/{hub.asked.approval_id}/{end}", {})

    said = post(box, f"{hub.box.path}/events", start(hub, hub.idle_trials[1]))

    assert (closed.status_code, said.status_code) == (200, 200), said.content


def test_a_second_run_of_a_box_is_409_while_the_first_has_not_stopped(hub: World, box: Caller) -> None:
    path = f"{hub.box.path}/events"
    hub.bench.consent(hub.asked, at=timezone.now())
    assert post(box, path, start(hub, hub.ready)).status_code == 200

    early = post(box, path, start(hub, hub.asked))
    assert post(box, path, hub.box.stopped(made.approval_of(hub.ready))).status_code == 200
    in_time = post(box, path, start(hub, hub.asked))

    assert outcome(early) == (409, "device-busy")
    assert early.json()["trial"] == hub.ready.pk
    assert in_time.status_code == 200


def expire(hub: World, browser: Caller) -> None:
    Approval.objects.filter(pk=hub.ready.approval_id).update(expires_at=hub.at - timedelta(seconds=1))


def revoke(hub: World, browser: Caller) -> None:
    assert post(browser, f"{ROOT}/approvals/{hub.ready.approval_id}/revoke", {}).status_code == 200


@pytest.mark.parametrize(("end", "state"), [(expire, "expired"), (revoke, "revoked")])
def test_consent_that_is_over_starts_nothing(
    hub: World, box: Caller, browser: Caller, end: Callable[[World, Caller], None], state: str
) -> None:
    end(hub, browser)

    said = post(box, f"{hub.box.path}/events", start(hub, hub.ready))

    assert outcome(said) == (409, "wrong-state")
    assert (said.json()["state"], said.json()["wanted"]) == (state, "running")
    assert approvals_running() == set()


@pytest.mark.parametrize(("trial", "state"), [("asked", "requested"), ("judged", "stopped")])
def test_what_nobody_consented_to_and_what_has_run_do_not_start(
    hub: World, box: Caller, trial: str, state: str
) -> None:
    said = post(box, f"{hub.box.path}/events", start(hub, getattr(hub, trial)))

    assert outcome(said) == (409, "wrong-state")
    assert said.json()["state"] == state


def test_a_revoked_run_is_running_until_the_box_says_that_it_has_stopped(
    hub: World, box: Caller, browser: Caller
) -> None:
    path, approval = f"{hub.box.path}/events", made.approval_of(hub.ready)
    post(box, path, start(hub, hub.ready))

    revoked = post(browser, f"{ROOT}/approvals/{approval.pk}/revoke", {"reason": "it shakes"})
    beat = post(box, path, hub.box.heartbeat(state="running"))
    asked = post(box, f"{ROOT}/approvals/{approval.pk}/confirm", None)

    assert (revoked.status_code, revoked.json()["state"]) == (200, "running")
    assert beat.json()["stop_requested"] == [approval.pk]
    assert asked.json()["payload"]["go_on"] is False
    post(box, path, hub.box.stopped(approval))
    assert state_of(hub.ready) == State.STOPPED


def test_planning_and_asking_again_give_no_consent(
    hub: World, browser: Caller, callers_of: dict[str, Caller]
) -> None:
    for caller in (browser, callers_of["key:write"]):
        path = f"{ROOT}/trial-sessions/{hub.idle.pk}/device"
        assert post(caller, path, {"device_id": hub.box.device.pk}).status_code == 200

    assert {state_of(trial) for trial in hub.idle_trials} == {State.REQUESTED}
