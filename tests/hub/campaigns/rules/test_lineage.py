import pytest

from hub.campaigns.rules.lineage import (
    FailedInSim,
    LineageEnded,
    check_resumable,
    descendants,
    ended_at,
    line,
)

# a ── b ── c
#      └─── d      e alone
PARENTS = {"a": None, "b": "a", "c": "b", "d": "b", "e": None}


def check(checkpoint, *, ended=(), failed=(), fail_ends_lineage=True):
    check_resumable(
        checkpoint, parents=PARENTS, ended=ended, failed=failed, fail_ends_lineage=fail_ends_lineage
    )


@pytest.mark.parametrize(
    ("checkpoint", "found"),
    [("a", {"b", "c", "d"}), ("b", {"c", "d"}), ("c", set()), ("e", set()), ("unknown", set())],
)
def test_descendants_are_all_that_came_of_a_checkpoint(checkpoint, found):
    assert descendants(checkpoint, PARENTS) == found


def test_a_line_goes_up_to_the_first_ancestor():
    assert list(line("d", PARENTS)) == ["d", "b", "a"]


def test_a_loop_in_the_pointers_ends():
    loop = {"a": "b", "b": "a"}

    assert list(line("a", loop)) == ["a", "b"]
    assert descendants("a", loop) == {"b"}


def test_the_nearest_end_of_a_lineage_is_named():
    assert ended_at("d", parents=PARENTS, ended={"a", "b"}) == "b"
    assert ended_at("e", parents=PARENTS, ended={"a", "b"}) is None


@pytest.mark.parametrize("fail_ends_lineage", [True, False])
@pytest.mark.parametrize("checkpoint", ["b", "c", "d"])
def test_a_stop_ends_the_lineage_of_all_that_came_of_it_whatever_the_rule(checkpoint, fail_ends_lineage):
    with pytest.raises(LineageEnded) as refused:
        check(checkpoint, ended={"b"}, fail_ends_lineage=fail_ends_lineage)

    assert (refused.value.checkpoint, refused.value.ended_at) == (checkpoint, "b")
    assert ("ended here" in str(refused.value)) is (checkpoint == "b")


def test_a_stop_leaves_ancestors_and_others_alone():
    check("a", ended={"b"})
    check("e", ended={"b"})


def test_a_fail_in_simulation_ends_the_lineage_under_the_rule():
    with pytest.raises(FailedInSim) as refused:
        check("b", failed={"b"})

    assert refused.value.checkpoint == "b"


def test_without_the_rule_a_fail_may_be_resumed_from():
    check("b", failed={"b"}, fail_ends_lineage=False)


def test_a_later_checkpoint_that_passed_may_be_resumed_from_though_an_earlier_one_failed():
    check("c", failed={"b"})
