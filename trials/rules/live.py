"""What a page may say of a robot right now: only what the robot itself said, and when it last spoke."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

Tone = Literal["info", "warn"]


@dataclass(frozen=True)
class Notice:
    tone: Tone
    words: str


@dataclass(frozen=True, kw_only=True)
class Word:
    """A permitted or running trial, and the last heartbeat of its box."""

    approval: str | None
    stop_requested_at: datetime | None
    heartbeat: Mapping[str, Any] | None
    heartbeat_at: datetime | None


def notices(word: Word, *, at: datetime, silence: timedelta) -> list[Notice]:
    """
    Say what goes on at the robot. A box that has been silent for longer is never said to run fine.

    :param silence: how old its last word may be
    """
    if word.approval not in ("issued", "running"):
        return []
    is_fresh = word.heartbeat_at is not None and at - word.heartbeat_at <= silence
    said = [_stop_asked(word)] if word.stop_requested_at else []
    if word.approval == "running":
        said.append(_running(word) if is_fresh else _silent(word))
    elif is_fresh and (word.heartbeat or {}).get("waiting_for_go"):
        said.append(_waiting())
    return said


def _stop_asked(word: Word) -> Notice:
    assert word.stop_requested_at is not None
    return Notice("warn", f"Stop asked at {word.stop_requested_at:%H:%M:%S} UTC, not confirmed by the robot.")


def _running(word: Word) -> Notice:
    beat = word.heartbeat or {}
    if beat.get("waiting_for_go"):
        return _waiting()
    stage = f" the stage {beat['stage']}" if beat.get("stage") else ""
    return Notice("info", f"The robot runs{stage}; its last word came at {word.heartbeat_at:%H:%M:%S} UTC.")


def _silent(word: Word) -> Notice:
    if word.heartbeat_at is None:
        return Notice("warn", "No word from the robot yet.")
    return Notice("warn", f"No word from the robot since {word.heartbeat_at:%H:%M:%S} UTC.")


def _waiting() -> Notice:
    return Notice("info", "Ready at the robot: it waits for a go from the person beside it.")
