import io
import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from driver.wire import canonical, csvlog, formulas, shape
from driver.wire.robot import Pair
from driver.wire.summary import Judging, RunFacts, StageLog
from driver.wire.summary_shape import SUMMARY
from tests.wire.stages import STANDING, floor, numbers

sane = st.none() | st.floats(-4, 4)
wild = sane | st.sampled_from([1e300, -1e300, 1e16])
NAMES = ["g_x", "g_y", "g_z", "q:l", "q:r", "tgt:l", "tgt:r", "tick", "fall", "temp:l", "bat_v"]


@st.composite
def logged(draw: st.DrawFn, cell: st.SearchStrategy[float | None] = wild) -> dict[str, list[float | None]]:
    names = draw(st.lists(st.sampled_from(NAMES), unique=True))
    rows = draw(st.integers(1, 8))
    columns = {name: draw(st.lists(cell, min_size=rows, max_size=rows)) for name in names}
    return {"t": sorted(draw(st.lists(st.floats(0, 10), min_size=rows, max_size=rows))), **columns}


@given(logged(), st.randoms())
def test_the_order_of_columns_changes_nothing(
    columns: dict[str, list[float | None]], order: random.Random
) -> None:
    names = list(columns)
    order.shuffle(names)

    mixed = numbers(floor({name: columns[name] for name in names}, **STANDING))

    assert canonical.dumps(mixed) == canonical.dumps(numbers(floor(columns, **STANDING)))


@given(logged())
def test_a_summary_of_any_log_has_its_shape_and_is_canonical(columns: dict[str, list[float | None]]) -> None:
    found = numbers(floor(columns, **STANDING), run=RunFacts(stopped_by="operator"))

    assert not shape.errors_in(found, SUMMARY)
    assert canonical.parse(canonical.dumps(found)) == found


@given(logged(sane))
def test_a_number_is_null_exactly_where_the_log_cannot_give_it(
    columns: dict[str, list[float | None]],
) -> None:
    found = numbers(floor(columns))
    steady = formulas.window_rows(np.array([round(t, 6) for t in columns["t"] if t is not None]))

    def has(*names: str) -> bool:
        rows = zip(*(columns.get(name, [None] * len(steady)) for name in names), strict=True)
        return steady.sum() >= 2 and any(
            inside and None not in row for row, inside in zip(rows, steady, strict=True)
        )

    assert (found["asym_max_deg"] is not None) == has("q:l", "q:r")
    assert (found["tracking_error_rad"].get("l") is not None) == has("q:l", "tgt:l")
    assert found["tilt_mean_deg"] is None or has("g_x", "g_y", "g_z")
    assert found["falls"] is None


@given(logged())
def test_swapping_the_sides_keeps_the_asymmetry(columns: dict[str, list[float | None]]) -> None:
    swapped = Judging(stage="floor", pairs=[Pair(name="knee", left="r", right="l", mirror=-1)])

    found, turned = numbers(floor(columns)), numbers(floor(columns), judging=swapped)

    assert found["asym_deg"]["knee"] == turned["asym_deg"]["knee"]


@given(logged())
def test_turning_one_sides_readings_turns_the_sign(columns: dict[str, list[float | None]]) -> None:
    turned = {
        name: [-value if value is not None and name == "q:r" else value for value in values]
        for name, values in columns.items()
    }
    mirrored = Judging(stage="floor", pairs=[Pair(name="knee", left="l", right="r", mirror=1)])

    assert numbers(floor(columns))["asym_deg"] == numbers(floor(turned), judging=mirrored)["asym_deg"]


@given(logged())
def test_a_torn_line_changes_no_number(columns: dict[str, list[float | None]]) -> None:
    stream = io.BytesIO()
    csvlog.write(stream, list(columns), list(zip(*columns.values(), strict=True)))
    whole = numbers(StageLog(name="floor", log=csvlog.read(stream.getvalue())))

    torn = numbers(StageLog(name="floor", log=csvlog.read(stream.getvalue() + b"9.99,1.0")))

    assert {**torn, "dropped": None} == {**whole, "dropped": None}
    assert torn["dropped"]["torn_tail"] == 1
