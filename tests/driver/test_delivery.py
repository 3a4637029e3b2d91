"""A signed log on its way to the hub: no answer loses it, none records it twice, none is dropped silently."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from driver.answers import HubUnreachable
from driver.exits import Exit
from driver.loop import Did, Loop
from tests.driver.rig.box import TestBox
from tests.driver.rig.hub import Answer, Approval, FakeHub, NoAnswer, problem


@pytest.fixture
def loop(box: TestBox) -> Loop:
    return box.loop()


def once(hub: FakeHub, operation: str, answer: Exception) -> None:
    def instead() -> None:
        del hub.instead[operation]
        raise answer

    hub.instead[operation] = instead


def always(answer: Exception) -> Callable[[], None]:
    def instead() -> None:
        raise answer

    return instead


def log_of(hub: FakeHub, approval: Approval) -> dict[str, Any]:
    payload: dict[str, Any] = hub.logs[approval.sheet["trial_id"]]["payload"]
    return payload


def test_an_expired_url_is_asked_for_anew(loop: Loop, hub: FakeHub) -> None:
    approval = hub.plan()
    once(hub, "storage_put", Answer(403, "<Error/>", kind="application/xml"))

    loop.step()

    assert log_of(hub, approval)["state"] == "uploaded"
    assert hub.calls.count("create_trial_log_upload") == 2


def test_storage_that_expires_everything_is_tried_again_later(loop: Loop, hub: FakeHub, box: TestBox) -> None:
    approval = hub.plan()
    hub.instead["storage_put"] = always(Answer(403, "<Error/>", kind="application/xml"))
    with pytest.raises(HubUnreachable):
        loop.step()
    assert box.step() == "signed"
    hub.instead.clear()

    loop.step()

    assert log_of(hub, approval)["state"] == "uploaded"


@pytest.mark.parametrize("operation", ["create_trial_log_upload", "storage_put", "upload_trial_log"])
@pytest.mark.parametrize("answer", [NoAnswer(), Answer(503, "busy", kind="text/plain")], ids=["cut", "busy"])
def test_a_fault_on_the_way_delays_and_loses_nothing(
    loop: Loop, hub: FakeHub, operation: str, answer: Exception
) -> None:
    approval = hub.plan()
    once(hub, operation, answer)
    with pytest.raises(HubUnreachable):
        loop.step()

    loop.step()

    assert log_of(hub, approval)["state"] == "uploaded"


def test_the_statement_is_signed_once(loop: Loop, hub: FakeHub, box: TestBox) -> None:
    approval = hub.plan()
    once(hub, "upload_trial_log", NoAnswer())
    with pytest.raises(HubUnreachable):
        loop.step()
    kept = (box.state_dir / "runs" / approval.approval_id / "statement.json").read_bytes()

    box.loop().step()

    assert hub.logs[approval.sheet["trial_id"]]["raw"] == kept


def test_no_room_at_the_hub_keeps_the_files_and_lets_the_next_trial_run(
    loop: Loop, hub: FakeHub, box: TestBox
) -> None:
    first, second = hub.plan(1), hub.plan(2)
    hub.instead["create_trial_log_upload"] = always(problem(413, "storage-quota", "50 GiB are used."))

    assert [loop.step(), loop.step()] == [Did.RAN, Did.RAN]

    assert (first.state, second.state) == ("stopped", "stopped")
    assert len(box.journal().logs) == 2
    assert box.journal().attention is None
    assert hub.calls.count("create_trial_log_upload") == 2


def test_after_a_day_it_is_tried_again(hub: FakeHub, box: TestBox) -> None:
    hub.plan()
    loop = box.loop()
    now = [0.0]
    loop.delivery.monotonic = lambda: now[0]
    once(hub, "create_trial_log_upload", problem(413, "storage-quota"))
    loop.step()
    loop.step()
    assert hub.logs == {}
    now[0] = 25 * 3600

    loop.step()

    assert len(hub.logs) == 1


def test_bytes_that_storage_kept_wrongly_are_sent_once_more(loop: Loop, hub: FakeHub) -> None:
    approval = hub.plan()
    once(hub, "upload_trial_log", problem(422, "log-mismatch"))

    loop.step()

    assert log_of(hub, approval)["state"] == "uploaded"
    assert hub.calls.count("storage_put") == 4


def test_when_they_do_not_fit_twice_a_person_looks(loop: Loop, hub: FakeHub, box: TestBox) -> None:
    hub.plan()
    hub.instead["upload_trial_log"] = always(
        problem(422, "log-mismatch", "01-hang.csv is not what was signed.")
    )

    loop.step()
    loop.step()

    assert "01-hang.csv is not what was signed" in str(box.journal().attention)
    assert hub.calls.count("upload_trial_log") == 2


def test_a_file_that_changed_on_the_box_is_not_passed_off(loop: Loop, hub: FakeHub, box: TestBox) -> None:
    approval = hub.plan()
    file = box.state_dir / "runs" / approval.approval_id / "01-hang.csv"

    def spoil() -> None:
        file.write_text(file.read_text().replace("0.12", "0.13"))
        raise problem(422, "log-mismatch")

    hub.instead["upload_trial_log"] = spoil

    loop.step()

    assert "01-hang.csv is no longer what was signed" in str(box.journal().attention)
    assert hub.logs == {}


def test_another_record_than_ours_stops_the_box_and_keeps_the_files(
    loop: Loop, hub: FakeHub, box: TestBox
) -> None:
    approval = hub.plan(1)
    hub.plan(2)
    hub.instead["upload_trial_log"] = always(problem(409, "log-recorded", "It has one.", same=False))

    loop.step()
    assert loop.step() is Did.NOTHING

    assert "stuck" in str(box.journal().attention)
    assert (box.state_dir / "runs" / approval.approval_id / "02-floor.csv").exists()


def test_when_a_person_has_looked_a_stuck_log_is_tried_again(loop: Loop, hub: FakeHub, box: TestBox) -> None:
    hub.plan()
    once(hub, "upload_trial_log", problem(403, "signature"))
    loop.step()
    loop.step()
    assert hub.logs == {}

    assert box.call("doctor", "--reconciled").returncode == Exit.OK
    box.loop().step()

    assert len(hub.logs) == 1


def test_no_more_files_are_taken_because_the_record_is_there(loop: Loop, hub: FakeHub, box: TestBox) -> None:
    """The record's answer was lost, and so was the note that the files are stored."""
    approval = hub.plan()
    once(hub, "storage_put", NoAnswer())
    with pytest.raises(HubUnreachable):
        loop.step()
    statement = (box.state_dir / "runs" / approval.approval_id / "statement.json").read_bytes()
    hub.logs[approval.sheet["trial_id"]] = {"raw": statement}

    loop.step()

    assert box.step() is None
    assert box.journal().attention is None


def test_a_url_of_an_unpinned_host_sends_nothing_there(
    loop: Loop, hub: FakeHub, box: TestBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.plan()
    elsewhere = {"url": "https://elsewhere.example/", "headers": {}}
    monkeypatch.setattr(hub, "_upload", lambda _, file: {"name": file["name"], **elsewhere})

    loop.step()

    assert "not a pinned storage host" in str(box.journal().attention)


def test_files_go_when_their_record_is_old_and_never_before(
    loop: Loop, hub: FakeHub, box: TestBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded, owed = hub.plan(1), hub.plan(2)
    loop.step()
    hub.instead["upload_trial_log"] = always(problem(413, "storage-quota"))
    loop.step()
    box.settings = {"log": {"keep_days": 1e-9}}

    box.loop().step()

    left = {path.name for path in (box.state_dir / "runs").iterdir()}
    assert left == {owed.approval_id}
    assert recorded.approval_id not in left


def test_logs_are_delivered_oldest_first(loop: Loop, hub: FakeHub, box: TestBox) -> None:
    hub.plan(1)
    hub.plan(2)
    hub.instead["create_trial_log_upload"] = always(problem(413, "storage-quota"))
    loop.step()
    loop.step()
    hub.instead.clear()

    box.loop().step()

    assert [trial[-1] for trial in hub.logs] == ["1", "2"]


def test_an_upload_is_streamed_from_disk(loop: Loop, hub: FakeHub, tmp_path: Path) -> None:
    big = tmp_path / "big.csv"
    big.write_bytes(b"0" * 5_000_000)
    got: list[int] = []
    hub.put = lambda key, data, headers: got.append(len(data))  # type: ignore[method-assign]

    loop.box.storage.put(f"{hub.url}/storage/log/big", {}, big)

    assert got == [5_000_000]
