import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.wire import csvlog
from tests import cases
from trials.series import (
    MAX_BUCKETS,
    MAX_CHANNELS,
    SeriesRefused,
    StagePart,
    UnknownChannel,
    channels_of,
    series,
)


def log(columns, rows):
    lines = [columns, *(",".join("" if cell is None else repr(cell) for cell in row) for row in rows)]
    return csvlog.read(("\n".join(lines) + "\n").encode())


def part(values, *, name="floor", t0_s=0.0, start=100.0, step=0.02, column="q:knee"):
    """A stage whose clock starts anywhere, with one channel."""
    rows = [(start + number * step, value) for number, value in enumerate(values)]
    return StagePart(name, log(f"t,{column}", rows), t0_s)


def knee(stages, **question):
    return series(stages, channels=["q:knee"], **question)


def extremes(found):
    channel = found["channels"]["q:knee"]
    least = [value for value in channel["min"] if value is not None]
    greatest = [value for value in channel["max"] if value is not None]
    return min(least), max(greatest)


def test_a_log_shorter_than_the_buckets_is_there_row_by_row():
    found = knee([part([0.1, 0.2, None, 0.4], step=0.5)])

    assert found["channels"]["q:knee"] == {
        "agg": "minmax",
        "t": [0.0, 0.5, 1.0, 1.5],
        "min": [0.1, 0.2, None, 0.4],
        "max": [0.1, 0.2, None, 0.4],
    }
    assert (found["decimated"], found["bucket_s"], found["rows"]) == (False, None, 4)


def test_a_long_log_is_cut_into_buckets_of_equal_width():
    found = knee([part([0.0, 4.0, 1.0, 3.0, 2.0, 5.0, 9.0, 7.0, 8.0], step=1.0)], buckets=4)

    assert (found["decimated"], found["bucket_s"], found["rows"]) == (True, 2.0, 9)
    assert found["channels"]["q:knee"] == {
        "agg": "minmax",
        "t": [0.0, 2.0, 4.0, 6.0],
        "min": [0.0, 1.0, 2.0, 7.0],
        "max": [4.0, 3.0, 5.0, 9.0],
    }


def test_buckets_begin_where_the_window_has_its_first_row():
    stage = part([float(number) for number in range(20)], t0_s=30.0, step=1.0)

    found = knee([stage], buckets=3, t0=39.5, t1=46.0)

    assert found["bucket_s"] == 2.0
    assert found["channels"]["q:knee"] == {
        "agg": "minmax",
        "t": [40.0, 42.0, 44.0],
        "min": [10.0, 12.0, 14.0],
        "max": [11.0, 13.0, 16.0],
    }


def test_as_many_rows_as_buckets_are_not_decimated():
    assert knee([part([1.0, 2.0, 3.0])], buckets=3)["decimated"] is False
    assert knee([part([1.0, 2.0, 3.0])], buckets=2)["decimated"] is True


@pytest.mark.parametrize("buckets", [1, 2, 7, 100, 999])
@pytest.mark.parametrize("row", [0, 1, 517, 999])
def test_one_spike_survives_at_every_number_of_buckets(row, buckets):
    values = [0.0] * 1000
    values[row] = 42.0

    found = knee([part(values)], buckets=buckets)

    assert extremes(found) == (0.0, 42.0)
    assert len(found["channels"]["q:knee"]["t"]) <= buckets


readings = st.lists(
    st.none() | st.integers(-1000, 1000).map(lambda number: number / 8), min_size=1, max_size=60
)


@given(st.lists(readings, min_size=1, max_size=3), st.integers(1, 70))
def test_the_extremes_of_the_answer_are_those_of_the_log(stages, buckets):
    parts = [part(values, name=f"s{n}", t0_s=10.0 * n) for n, values in enumerate(stages)]
    measured = [value for values in stages for value in values if value is not None]

    found = knee(parts, buckets=buckets)

    channel = found["channels"]["q:knee"]
    assert len(channel["t"]) == len(channel["min"]) == len(channel["max"]) <= max(buckets, 1)
    assert channel["t"] == sorted(channel["t"])
    if measured:
        assert extremes(found) == (min(measured), max(measured))
    else:
        assert set(channel["max"]) == {None}
    json.dumps(found, allow_nan=False)


@given(readings, st.integers(1, 20))
def test_the_same_question_has_the_same_answer(values, buckets):
    assert knee([part(values)], buckets=buckets) == knee([part(values)], buckets=buckets)


def test_stages_stand_on_the_trials_clock_with_their_boundaries():
    hang = part([1.0, 2.0], name="hang", t0_s=0.0, start=7.0, step=4.0)
    floor = part([3.0, 4.0], name="floor", t0_s=31.5, start=500.0, step=10.0)

    found = knee([hang, floor])

    assert found["channels"]["q:knee"]["t"] == [0.0, 4.0, 31.5, 41.5]
    assert found["stages"] == [
        {"name": "hang", "t0": 0.0, "t1": 4.0, "rows": 2},
        {"name": "floor", "t0": 31.5, "t1": 41.5, "rows": 2},
    ]


def test_a_bucket_that_has_rows_and_no_reading_is_null_and_one_without_rows_is_left_out():
    hang = part([1.0, 1.0, None, None], name="hang", step=1.0)
    floor = part([2.0, 2.0], name="floor", t0_s=9.0, step=1.0)

    channel = knee([hang, floor], buckets=5)["channels"]["q:knee"]

    assert (channel["t"], channel["max"]) == ([0.0, 2.0, 8.0], [1.0, None, 2.0])


def test_a_stage_that_lacks_the_channel_leaves_it_null():
    floor = part([5.0], name="floor", t0_s=1.0, column="q:hip")

    assert knee([part([1.0], name="hang"), floor])["channels"]["q:knee"]["max"] == [1.0, None]


@pytest.mark.parametrize(
    ("window", "values"),
    [
        ({"t0": 2.0}, [2.0, 3.0, 4.0]),
        ({"t1": 2.0}, [0.0, 1.0, 2.0]),
        ({"t0": 1.0, "t1": 3.0}, [1.0, 2.0, 3.0]),
        ({"t0": 2.5, "t1": 2.5}, []),
        ({"t0": -1e12, "t1": 1e12}, [0.0, 1.0, 2.0, 3.0, 4.0]),
    ],
)
def test_a_window_has_both_its_ends(window, values):
    found = knee([part([0.0, 1.0, 2.0, 3.0, 4.0], step=1.0)], **window)

    assert found["channels"]["q:knee"]["max"] == values
    assert found["rows"] == len(values)
    assert found["stages"] == [{"name": "floor", "t0": 0.0, "t1": 4.0, "rows": 5}]


def test_a_small_window_of_a_long_log_is_at_full_resolution():
    found = knee([part([float(number) for number in range(5000)], step=0.01)], buckets=100, t0=10.0, t1=10.5)

    assert (found["decimated"], found["rows"]) == (False, 51)


def test_rows_of_one_time_share_a_bucket():
    stage = StagePart("floor", log("t,q:knee", [(1.0, 3.0), (1.0, 9.0), (1.0, 5.0)]), 0.0)

    assert knee([stage], buckets=2)["channels"]["q:knee"] == {
        "agg": "minmax",
        "t": [0.0],
        "min": [3.0],
        "max": [9.0],
    }


def test_stages_that_a_box_says_overlap_are_still_one_line_of_time():
    first = part([1.0, 2.0, 3.0], name="hang", step=1.0)
    second = part([7.0, 8.0], name="floor", t0_s=0.5, step=1.0)

    channel = knee([first, second])["channels"]["q:knee"]

    assert (channel["t"], channel["max"]) == ([0.0, 0.5, 1.0, 1.5, 2.0], [1.0, 7.0, 2.0, 8.0, 3.0])


def test_a_stage_without_a_beginning_follows_the_one_before_it():
    found = knee(
        [part([1.0, 2.0], name="hang", step=4.0), part([3.0, 4.0], name="floor", t0_s=None, step=1.0)]
    )

    assert found["channels"]["q:knee"]["t"] == [0.0, 4.0, 4.0, 5.0]


def test_a_beginning_far_away_makes_no_more_of_an_answer():
    found = knee([part([1.0] * 50, name="hang"), part([2.0], name="floor", t0_s=1e9)], buckets=10)

    assert found["channels"]["q:knee"]["max"] == [1.0, 2.0]


def test_tilt_is_the_channel_when_none_is_named():
    stage = StagePart("floor", log("t,g_x,g_y,g_z", [(0.0, 0.0, 0.0, -1.0), (1.0, 1.0, 0.0, 0.0)]), 0.0)

    assert series([stage])["channels"]["tilt"]["max"] == pytest.approx([0.0, 90.0])


def test_a_column_that_is_called_tilt_is_not_taken_for_it():
    hang = StagePart("hang", log("t,g_x,g_y,g_z", [(0.0, 0.0, 0.0, -1.0)]), 0.0)
    floor = StagePart("floor", log("t,tilt", [(0.0, 5.0)]), 1.0)

    assert series([hang, floor])["channels"]["tilt"]["max"] == [0.0, None]


def test_what_can_be_asked_for_is_the_tilt_and_each_joints_channels():
    stage = StagePart(
        "floor", log("t,quat_w,quat_x,quat_y,quat_z,q:a,tgt:a,act:a,dq:a,temp:a", [(0.0,) * 10])
    )

    assert channels_of([stage]) == ["tilt", "q:a", "tgt:a", "act:a"]


@pytest.mark.parametrize("channel", ["q:hip", "tilt", "dq:knee", "t", ""])
def test_a_channel_that_is_not_there_is_refused_with_those_that_are(channel):
    stage = StagePart("floor", log("t,q:knee,dq:knee", [(0.0, 1.0, 2.0)]))

    with pytest.raises(UnknownChannel, match="it has q:knee") as refused:
        series([stage], channels=["q:knee", channel])

    assert (refused.value.channel, refused.value.known) == (channel, ("q:knee",))


def test_a_channel_named_twice_is_answered_once():
    assert list(series([part([1.0])], channels=["q:knee", "q:knee"])["channels"]) == ["q:knee"]


@pytest.mark.parametrize(
    ("question", "field"),
    [
        ({"buckets": 0}, "buckets"),
        ({"buckets": MAX_BUCKETS + 1}, "buckets"),
        ({"t0": math.nan}, "t0"),
        ({"t1": math.inf}, "t1"),
        ({"t0": 2.0, "t1": 1.0}, "t1"),
        ({"channels": []}, "channels"),
        ({"channels": ["q:knee"] * (MAX_CHANNELS + 1)}, "channels"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_by_its_part(question, field):
    with pytest.raises(SeriesRefused) as refused:
        series([part([1.0])], **{"channels": ["q:knee"], **question})

    assert refused.value.field == field


def test_the_most_that_may_be_asked_for_is_answered():
    series([part([1.0])], channels=["q:knee"] * MAX_CHANNELS, buckets=MAX_BUCKETS)


@pytest.mark.parametrize("buckets", [1, 50, 5000])
def test_a_real_trials_worst_tilt_is_there_at_every_resolution(buckets):
    folder = cases.path("logs/sim_g1")
    names = ("hang", "floor", "teleop")
    starts = (0.0, 4.0, 14.0)
    stages = [
        StagePart(name, csvlog.read(folder / f"s1_1_control_{name}.csv"), t0)
        for name, t0 in zip(names, starts, strict=True)
    ]

    found = series(stages, buckets=buckets)

    # expected.json has 2.9543 for the whole teleop stage, the worst of the three.
    greatest = [value for value in found["channels"]["tilt"]["max"] if value is not None]
    assert max(greatest) == pytest.approx(2.9543, abs=1e-3)
    assert [(stage["name"], stage["rows"]) for stage in found["stages"]] == [
        ("hang", 200),
        ("floor", 500),
        ("teleop", 1500),
    ]
