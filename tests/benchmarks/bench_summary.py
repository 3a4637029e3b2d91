"""
The summary of a 43 MB log, strict pass included, against pandas' C engine just reading the same file.

`python -m tests.benchmarks.bench_summary` prints both times and their ratio; the aim is 1.3 at most. The two
take turns, so that other work on the machine falls on both.
"""

import io
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from driver.wire import csvlog, robot, summary

ROWS, JOINTS, ROUNDS, AIM = 30_000, 29, 15, 1.3


def joints() -> list[str]:
    sides = [f"{side}_j{number}_joint" for side in ("left", "right") for number in range(JOINTS // 2)]
    return [*sides, "waist_joint"]


def columns() -> list[str]:
    """152 of them, as in a log of the G1: t, gravity, angular velocity and five columns a joint."""
    kinds = ("q", "tgt", "act", "dq", "tau")
    return [
        "t",
        "g_x",
        "g_y",
        "g_z",
        "w_x",
        "w_y",
        "w_z",
        *(f"{kind}:{name}" for kind in kinds for name in joints()),
    ]


def make(path: Path) -> None:
    """Random readings with six decimals, gravity of length 1, ten minutes at 50 Hz."""
    random = np.random.default_rng(0)
    names = columns()
    table = random.normal(scale=0.3, size=(ROWS, len(names)))
    table[:, 0] = np.arange(ROWS) / 50
    table[:, 1:3] *= 0.1
    table[:, 3] = -np.sqrt(1 - table[:, 1] ** 2 - table[:, 2] ** 2)
    stream = io.StringIO()
    np.savetxt(stream, table, fmt="%.6f", delimiter=",", header=",".join(names), comments="")
    path.write_text(stream.getvalue())


def summarize(path: Path) -> dict[str, object]:
    stage = summary.StageLog(name="floor", log=csvlog.read(path))
    judging = summary.Judging(stage="floor", pairs=robot.pairs_of(joints()))
    return summary.summarize([stage], judging=judging, run=summary.RunFacts())


def read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, engine="c")


def seconds(act: Callable[[Path], object], path: Path) -> float:
    begin = time.perf_counter()
    act(path)
    return time.perf_counter() - begin


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "02-floor.csv"
        make(path)
        shape = read(path).shape
        summarize(path)
        turns = [(seconds(summarize, path), seconds(read, path)) for _ in range(ROUNDS)]
        size = path.stat().st_size
    ours, theirs = (min(times) for times in zip(*turns, strict=True))
    middle = statistics.median(mine / other for mine, other in turns)
    print(f"log: {size / 1e6:.1f} MB, {shape[0]} × {shape[1]}")
    print(f"summary, every cell checked: {ours * 1e3:.0f} ms")
    print(f"pandas' C engine, reading:   {theirs * 1e3:.0f} ms")
    print(
        f"ratio of the best: {ours / theirs:.2f}, median of {ROUNDS} turns: {middle:.2f} (aim: at most {AIM})"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
