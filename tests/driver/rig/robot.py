"""
A robot that is a script: the command of a stage, in tests.

`robot.py RAN MODE`: it notes in RAN that it ran, writes its log where its order says, ends as MODE says.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

RAN, MODE = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "walk"
HEADER = (
    "t,tick,g_x,g_y,g_z,q:left_knee_joint,q:right_knee_joint,tgt:left_knee_joint,tgt:right_knee_joint,fall\n"
)


def main() -> int:
    order = json.load(sys.stdin)
    with Path(RAN).open("a") as ran:
        ran.write(f"{os.environ['TRIAL_ID']} {order['stage']['name']} {os.getpid()}\n")
    if MODE == "no-log":
        return 0
    if MODE == "no-log-failed":
        return 3
    write_log(order["log"], order["stage"]["duration_s"] or 1.0, "crooked" if MODE == "crooked" else "")
    return MODES.get(MODE, walk)(order)


def write_log(path: str, seconds: float, how: str) -> None:
    right = 0.4 if how == "crooked" else 0.1
    with Path(path).open("w") as log:
        log.write(HEADER)
        log.writelines(row(tick, right) for tick in range(int(seconds * 50)))


def row(tick: int, right: float) -> str:
    return f"{tick / 50:.6f},{tick},0.01,0.0,-0.99995,0.1,{right},0.12,{right},0\n"


def say(stopped_by: str, **more: object) -> None:
    said = {
        "stopped_by": stopped_by,
        "motor_temps_c": {"left_knee_joint": 41.5},
        "battery_v": 25.1,
        "tilt_protection": {"armed": True, "threshold_deg": 45.0},
        "clamped_ticks": 0,
        **more,
    }
    print("TRIAL-STOP", json.dumps(said), flush=True)


def walk(order: object) -> int:
    say("completed", reason=None)
    return 0


def silent(order: object) -> int:
    return 0


def until_told(order: object) -> int:
    """Goes on until a signal says stop."""
    asked: list[int] = []
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda number, _: asked.append(number))
    note("walking")
    while not asked:
        time.sleep(0.005)
    note("stopped")
    say("operator", reason=None)
    return 0


def rule_when_told(order: object) -> int:
    """A rule has stopped it by the time the signal comes."""
    asked: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: asked.append(number))
    note("walking")
    while not asked:
        time.sleep(0.005)
    say("abort_rule", reason="tilt_deg > 45", fell=True)
    return 0


def stubborn(order: object) -> int:
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    note("walking")
    while True:
        time.sleep(0.05)


def runaway(order: object) -> int:
    """Leaves a child behind that has left its session and does not hear SIGTERM."""
    left = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    child = subprocess.Popen([sys.executable, "-S", "-c", left], start_new_session=True)
    note(f"left {child.pid}")
    say("completed", reason=None)
    return 0


def abort(order: object) -> int:
    say("abort_rule", reason="tilt_deg > 45", fell=True)
    return 0


def fail(order: object) -> int:
    print("the motor bus is silent", file=sys.stderr)
    return 3


def garbled(order: object) -> int:
    print("TRIAL-STOP {stopped_by: abort_rule")
    return 0


def flood(order: object) -> int:
    for _ in range(200):
        sys.stdout.buffer.write(b"\xff\x1b[31m" * 10000)
    print()
    say("completed", reason=None)
    return 0


def malformed(order: dict) -> int:
    with Path(order["log"]).open("a") as log:
        log.write("9.0,oops,0,0,-1,0,0,0,0,0\n")
    say("completed", reason=None)
    return 0


def note(text: str) -> None:
    with Path(RAN + ".notes").open("a") as notes:
        notes.write(text + "\n")


MODES = {
    "silent": silent,
    "until-told": until_told,
    "rule-when-told": rule_when_told,
    "stubborn": stubborn,
    "runaway": runaway,
    "abort": abort,
    "fail": fail,
    "garbled": garbled,
    "flood": flood,
    "malformed": malformed,
}

if __name__ == "__main__":
    sys.exit(main())
