"""The journal: on disk before anything is done, and never quietly begun anew."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from driver import journal
from driver.journal import Journal, Owed, OwedLog, Run, StageRun, Step

RUN = Run(
    approval_id="apr_1",
    trial_id="trl_1",
    step=Step.STAGE,
    boot_id="boot",
    start="{}",
    stages=(StageRun(name="hang", n=1, log="/x.csv", status="done", said={"clamped_ticks": 0}),),
)


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    written = Journal.create(tmp_path).change(
        seq=7,
        run=RUN,
        logs=(OwedLog(approval_id="apr_0", trial_id="trl_0", step=Step.STORED),),
        owed=(Owed(name="1", message="{}"),),
        refused={"apr_9": "why"},
    )

    assert Journal.open(tmp_path).state == written


def test_a_step_changes_only_what_it_says(tmp_path: Path) -> None:
    kept = Journal.create(tmp_path)
    kept.change(run=RUN, seq=3)

    kept.change(run=replace(RUN, step=Step.STAGE_ENDED))

    assert journal.read(journal.path_in(tmp_path)).seq == 3
    assert journal.read(journal.path_in(tmp_path)).run == replace(RUN, step=Step.STAGE_ENDED)


def test_creating_leaves_a_journal_that_is_there(tmp_path: Path) -> None:
    Journal.create(tmp_path).change(seq=5)

    assert Journal.create(tmp_path).state.seq == 5


def broken(sound: bytes) -> dict[str, bytes]:
    newer = json.dumps({**json.loads(sound), "version": 2}).encode()
    other = json.dumps({**json.loads(sound), "surprise": 1}).encode()
    lacking = json.dumps({key: value for key, value in json.loads(sound).items() if key != "used"}).encode()
    return {
        "empty": b"",
        "half": sound[: len(sound) // 2],
        "zeroed": b"\0" * len(sound),
        "newer": newer,
        "other": other,
        "lacking": lacking,
        "list": b"[]",
    }


@pytest.mark.parametrize("how", list(broken(b'{"used": 1}')))
def test_an_unreadable_journal_is_set_aside_and_a_person_must_look(tmp_path: Path, how: str) -> None:
    Journal.create(tmp_path).change(run=RUN)
    path = journal.path_in(tmp_path)
    held = broken(path.read_bytes())[how]
    path.write_bytes(held)

    found = Journal.open(tmp_path)

    assert found.state.attention is not None
    assert found.state.is_lost
    assert found.state.run is None
    (aside,) = tmp_path.glob("journal-*.unreadable")
    assert aside.read_bytes() == held


def test_a_journal_that_vanished_is_lost_and_not_new(tmp_path: Path) -> None:
    Journal.create(tmp_path)
    journal.path_in(tmp_path).unlink()

    assert Journal.open(tmp_path).state.is_lost


def test_looking_at_a_broken_journal_changes_nothing(tmp_path: Path) -> None:
    journal.path_in(tmp_path).write_bytes(b"")

    with pytest.raises(journal.JournalUnreadable):
        journal.read(journal.path_in(tmp_path))

    assert [path.name for path in tmp_path.iterdir()] == ["journal.json"]


def test_the_first_reason_to_look_is_kept(tmp_path: Path) -> None:
    kept = Journal.create(tmp_path)

    kept.attend("the stop command failed")
    kept.attend("something later")

    assert kept.state.attention == "the stop command failed"


def test_a_write_that_fails_leaves_the_old_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Journal.create(tmp_path)
    kept.change(seq=1)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        kept.change(seq=2)

    assert kept.state.seq == 1
    assert journal.read(journal.path_in(tmp_path)).seq == 1
