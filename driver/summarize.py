"""The numbers of a trial's logs, without a hub: what `trial-driver summarize` does."""

import argparse
import json
import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

from driver.wire import csvlog, robot, summary

_NUMBERED = re.compile(r"[0-9]+-(?P<stage>.+)")
_STAGE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")


class UsageError(Exception):
    """What the caller has to say differently."""


def main(args: argparse.Namespace) -> int:
    """Print the summary, or what is wrong, and give the exit code."""
    try:
        judging = summary.Judging(stage=args.judged, pairs=_robot(args.robot).pairs)
        named = [_named(text) for text in args.files]
        _check_names([stage for stage, _ in named])
        stages = _stages(named)
    except UsageError as error:
        print(f"trial-driver summarize: {error}", file=sys.stderr)
        return 2
    except _MalformedFile as found:
        _say(json.dumps(found.problem()))
        return 1
    numbers = summary.summarize(stages, judging=judging, run=_facts(stages, args.judged))
    _say(json.dumps(numbers, indent=1, allow_nan=False) if args.json else _lines(numbers))
    return 0


def _say(text: str) -> None:
    try:
        print(text, flush=True)
    except BrokenPipeError:  # whoever read it had enough, as `head` has; the exit must not complain again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _MalformedFile(Exception):
    def __init__(self, file: Path, stage: str, error: csvlog.Malformed) -> None:
        super().__init__(str(error))
        self.file, self.stage, self.error = file, stage, error

    def problem(self) -> dict[str, Any]:
        said = {"file": str(self.file), "stage": self.stage, "line": self.error.line}
        return {"type": "malformed-log", **said, "column": self.error.column, "reason": self.error.reason}


def _robot(path: Path) -> robot.Robot:
    try:
        return robot.robot_from_document(tomllib.loads(path.read_text("utf-8")))
    except OSError as error:
        raise UsageError(f"cannot read the robot file {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, robot.BadRobot) as error:
        raise UsageError(f"the robot file {path} is not usable: {error}") from None


def _named(text: str) -> tuple[str, Path]:
    stage, equals, path = text.partition("=")
    if equals and _STAGE.fullmatch(stage):
        return stage, Path(path)
    stem = Path(text).stem
    numbered = _NUMBERED.fullmatch(stem)
    return (numbered["stage"] if numbered else stem), Path(text)


def _check_names(stages: list[str]) -> None:
    for stage in stages:
        if not _STAGE.fullmatch(stage):
            raise UsageError(f"{stage!r} is no stage's name; write STAGE=FILE")
    if len(set(stages)) < len(stages):
        raise UsageError(f"two files are of one stage: {', '.join(stages)}")


def _facts(stages: list[summary.StageLog], judged: str) -> summary.RunFacts:
    if any(stage.name == judged for stage in stages):
        return summary.RunFacts()
    return summary.RunFacts(
        warnings=[f"no file is of the judged stage {judged}: see --judged, or STAGE=FILE"]
    )


def _stages(named: list[tuple[str, Path]]) -> list[summary.StageLog]:
    """The stages one right after the other: when each really started, only the box knows."""
    stages: list[summary.StageLog] = []
    begin = 0.0
    for name, path in named:
        log = _log(name, path)
        stages.append(summary.StageLog(name=name, log=log, t0_s=begin))
        t = log.array("t")
        begin += float(t[-1] - t[0])
    return stages


def _log(name: str, path: Path) -> csvlog.Log:
    try:
        return csvlog.read(path)
    except csvlog.Malformed as error:
        raise _MalformedFile(path, name, error) from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None


def _lines(numbers: dict[str, Any]) -> str:
    shown = [
        "judged_stage",
        "tilt_mean_deg",
        "tilt_max_deg",
        "asym_max_deg",
        "log_hz",
        "loop_hz",
        "temp_max_c",
    ]
    lines = [f"{key:14} {_shown(numbers[key])}" for key in shown]
    lines += [f"asym {name:20} {_shown(value)}" for name, value in numbers["asym_deg"].items()]
    lines += [f"tracking {name:30} {_shown(value)}" for name, value in numbers["tracking_error_rad"].items()]
    return "\n".join([*lines, *(f"warning: {sentence}" for sentence in numbers["warnings"])])


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else f"{value:.4f}"
