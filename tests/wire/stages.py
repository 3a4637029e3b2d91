"""Small stages and what their summary says."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

from driver.wire import csvlog, summary
from driver.wire.csvlog import Log
from driver.wire.robot import Pair
from driver.wire.summary import Judging, Protection, RunFacts, StageLog

KNEE = Pair(name="knee", left="l", right="r", mirror=-1)
FLOOR = Judging(stage="floor", pairs=[KNEE])
STANDING = {"free_standing": True, "protection": Protection(armed=True, threshold_deg=45.0)}


def log(columns: Mapping[str, Sequence[float | None]]) -> Log:
    stream = io.BytesIO()
    csvlog.write(stream, list(columns), list(zip(*columns.values(), strict=True)))
    return csvlog.read(stream.getvalue())


def floor(columns: Mapping[str, Sequence[float | None]], **facts: Any) -> StageLog:
    return StageLog(name="floor", log=log(columns), **facts)


def numbers(*stages: StageLog, run: RunFacts | None = None, judging: Judging = FLOOR) -> dict[str, Any]:
    return summary.summarize(stages, judging=judging, run=run or RunFacts())


LEVEL = {"t": [0, 1, 2, 3], "g_x": [0] * 4, "g_y": [0] * 4, "g_z": [-1] * 4}
