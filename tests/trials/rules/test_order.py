import pytest
from hypothesis import given
from hypothesis import strategies as st

from trials.rules.order import (
    BothRoles,
    Candidate,
    Duplicate,
    NoCandidate,
    NoControl,
    TooManyControls,
    plan_order,
    why,
)


def sim(passed, upright, *, gates=4, run=16):
    verdict = "PASS" if passed == gates else "FAIL"
    return {
        "verdict": verdict,
        "gates_passed": passed,
        "gates": gates,
        "seeds_upright": upright,
        "seeds_run": run,
    }


def order_of(*candidates, controls=("c",)):
    return [place.checkpoint for place in plan_order(controls=controls, candidates=candidates)]


def test_one_control_runs_first_and_last():
    places = plan_order(controls=["c"], candidates=[Candidate("x", 1, sim(4, 16))])

    assert [(place.position, place.checkpoint, place.role) for place in places] == [
        (1, "c", "control"),
        (2, "x", "candidate"),
        (3, "c", "control"),
    ]


def test_of_two_controls_the_first_given_runs_first():
    assert order_of(Candidate("x", 1), controls=("d", "c")) == ["d", "x", "c"]


@pytest.mark.parametrize(
    ("safer", "riskier"),
    [
        (Candidate("z", 9, sim(4, 10)), Candidate("a", 1, sim(3, 16))),
        (Candidate("z", 9, sim(3, 16)), Candidate("a", 1, sim(3, 15))),
        (Candidate("z", 1, sim(3, 16)), Candidate("a", 9, sim(3, 16))),
        (Candidate("a", 9, sim(3, 16)), Candidate("z", 9, sim(3, 16))),
        (Candidate("z", 9, sim(1, 0)), Candidate("a", 1, None)),
    ],
    ids=["more gates passed", "more seeds upright", "lower step", "id", "measured at all"],
)
def test_the_safer_candidate_runs_first(safer, riskier):
    assert order_of(riskier, safer) == ["c", safer.checkpoint, riskier.checkpoint, "c"]


@pytest.mark.parametrize(
    ("controls", "candidates", "refusal", "offender", "field"),
    [
        ([], ["x"], NoControl, None, "controls"),
        (["c", "d", "e"], ["x"], TooManyControls, "e", "controls"),
        (["c"], [], NoCandidate, None, "candidates"),
        (["c"], ["x", "y", "x"], Duplicate, "x", "candidates"),
        (["c", "c"], ["x"], Duplicate, "c", "controls"),
        (["c", "d"], ["x", "d"], BothRoles, "d", "candidates"),
    ],
)
def test_picks_that_make_no_session_are_refused_by_name(controls, candidates, refusal, offender, field):
    with pytest.raises(refusal) as refused:
        plan_order(controls=controls, candidates=[Candidate(name, 1) for name in candidates])

    assert (refused.value.checkpoint, refused.value.field) == (offender, field)
    assert offender is None or offender in str(refused.value)


candidates = st.lists(
    st.builds(
        Candidate,
        checkpoint=st.text("abcdef", min_size=1, max_size=4),
        step=st.integers(0, 5),
        sim=st.none() | st.builds(sim, st.integers(0, 4), st.integers(0, 16)),
    ),
    min_size=1,
    max_size=12,
    unique_by=lambda candidate: candidate.checkpoint,
)
controls = st.lists(st.sampled_from(["C", "D"]), min_size=1, max_size=2, unique=True)


@given(controls, candidates)
def test_an_order_is_a_permutation_of_the_candidates_between_controls(controls, candidates):
    places = plan_order(controls=controls, candidates=candidates)

    assert [place.position for place in places] == list(range(1, len(candidates) + 3))
    assert [place.role for place in places[1:-1]] == ["candidate"] * len(candidates)
    assert sorted(place.checkpoint for place in places[1:-1]) == sorted(c.checkpoint for c in candidates)
    assert [places[0].checkpoint, places[-1].checkpoint] == [controls[0], controls[-1]]
    assert places[0].role == places[-1].role == "control"


@given(candidates, st.randoms())
def test_the_order_does_not_depend_on_the_order_of_picking(candidates, random):
    shuffled = list(candidates)
    random.shuffle(shuffled)

    assert order_of(*shuffled, controls=["C"]) == order_of(*candidates, controls=["C"])


def test_each_place_has_its_reason_in_words():
    candidates = [
        Candidate("x", 300, sim(2, 16), name="walk-7 step 300"),
        Candidate("y", 100, sim(4, 16), name="walk-7 step 100"),
        Candidate("z", 200, sim(4, 12), name="walk-7 step 200"),
        Candidate("v", 400, sim(2, 16), name="walk-7 step 400"),
        Candidate("w", 500, name="walk-7 step 500"),
    ]
    places = plan_order(controls=["c"], candidates=candidates)

    assert why(places, candidates) == [
        "Control first: what every candidate is compared with.",
        (
            "4 of 4 gates passed, 16 of 16 seeds upright: "
            "the lowest risk in simulation, so it runs before the other candidates."
        ),
        (
            "4 of 4 gates passed, 12 of 16 seeds upright: "
            "fewer seeds upright than walk-7 step 100, so it runs after it."
        ),
        (
            "2 of 4 gates passed, 16 of 16 seeds upright: "
            "fewer gates passed than walk-7 step 200, so it runs after it."
        ),
        (
            "2 of 4 gates passed, 16 of 16 seeds upright: "
            "as good as walk-7 step 300, and a later step, so it runs after it."
        ),
        "Not measured in simulation: fewer gates passed than walk-7 step 400, so it runs after it.",
        "The same control again, last: it shows whether the session stayed the same.",
    ]


def test_the_reason_of_a_second_control_says_that_the_difference_is_no_drift():
    candidates = [Candidate("x", 1)]

    assert "no drift" in why(plan_order(controls=["c", "d"], candidates=candidates), candidates)[-1]


@pytest.mark.parametrize(
    ("candidates", "reason"),
    [
        ([Candidate("x", 1, sim(4, 16))], "4 of 4 gates passed, 16 of 16 seeds upright: the only candidate."),
        ([Candidate("x", 1)], "Not measured in simulation: the only candidate."),
        (
            [Candidate("x", 1), Candidate("y", 2)],
            "Not measured in simulation: no other candidate is known to be of less risk.",
        ),
    ],
)
def test_the_first_candidates_reason_claims_no_more_than_is_known(candidates, reason):
    assert why(plan_order(controls=["c"], candidates=candidates), candidates)[1] == reason


def test_two_candidates_alike_in_all_say_that_their_ids_decide():
    candidates = [Candidate("x", 1), Candidate("y", 1)]

    reason = why(plan_order(controls=["c"], candidates=candidates), candidates)[2]

    assert reason == "Not measured in simulation: as good as x at the same step; their ids decide."
