import pytest

from trials.rules.verdicts import (
    Asked,
    BracketNotAcknowledged,
    ControlTakesNone,
    Facts,
    HasVerdict,
    LineageEnded,
    NoCampaign,
    NotStarted,
    VerdictRefused,
    WrongReplacement,
    check_verdict,
    consequence,
)


def check(option, *, acknowledge_bracket=False, replaces=None, **facts):
    whole = {
        "role": "candidate",
        "has_started": True,
        "has_verdict": False,
        "has_campaign": True,
        "bracket_holds": True,
    }
    asked = Asked(option=option, acknowledge_bracket=acknowledge_bracket, replaces=replaces)
    check_verdict(Facts(**{**whole, **facts}), asked)


@pytest.mark.parametrize("option", ["promote", "iterate", "stop"])
def test_a_started_candidate_takes_each_verdict(option):
    check(option)


@pytest.mark.parametrize("option", ["promote", "iterate", "stop"])
@pytest.mark.parametrize(
    ("facts", "refusal"),
    [
        ({"role": "control"}, ControlTakesNone),
        ({"has_started": False}, NotStarted),
        ({"has_verdict": True}, HasVerdict),
        ({"role": "control", "has_started": False, "has_verdict": True}, ControlTakesNone),
        ({"has_started": False, "has_campaign": False, "lineage_ended": True}, NotStarted),
    ],
)
def test_no_verdict_on_a_control_before_the_run_or_twice(option, facts, refusal):
    with pytest.raises(refusal):
        check(option, **facts)


def test_without_a_campaign_nothing_can_be_promoted():
    with pytest.raises(NoCampaign):
        check("promote", has_campaign=False)
    check("iterate", has_campaign=False)
    check("stop", has_campaign=False)


def test_promoting_while_the_bracket_does_not_hold_needs_an_acknowledgement():
    with pytest.raises(BracketNotAcknowledged):
        check("promote", bracket_holds=False)
    check("promote", bracket_holds=False, acknowledge_bracket=True)
    check("promote", bracket_holds=None)


@pytest.mark.parametrize("option", ["iterate", "stop"])
def test_the_other_verdicts_need_no_acknowledgement(option):
    check(option, bracket_holds=False)


@pytest.mark.parametrize(
    ("planned", "now", "replaces", "is_taken"),
    [
        (None, None, None, True),
        ("a", "a", None, True),
        ("a", "a", "a", True),
        ("a", "b", "b", True),
        (None, "b", "b", True),
        ("a", "b", None, False),
        ("a", "b", "a", False),
        (None, "b", None, False),
        ("a", "a", "b", False),
        (None, None, "a", False),
        ("a", None, "a", False),
    ],
)
def test_a_policy_promoted_meanwhile_is_replaced_by_name_alone(planned, now, replaces, is_taken):
    facts = {"policy_at_planning": planned, "policy_now": now, "replaces": replaces}
    if is_taken:
        check("promote", **facts)
        return

    with pytest.raises(WrongReplacement) as refused:
        check("promote", **facts)
    assert refused.value.current == now
    assert str(refused.value).startswith(f"{now or 'No policy'} is on the robot now")


def test_iterating_on_an_ended_lineage_is_refused():
    with pytest.raises(LineageEnded):
        check("iterate", lineage_ended=True)
    check("stop", lineage_ended=True)


def test_a_checkpoint_that_was_stopped_does_not_go_on_the_robot():
    with pytest.raises(LineageEnded):
        check("promote", lineage_ended=True)


def test_every_refusal_has_a_slug_of_its_own():
    slugs = [refusal.slug for refusal in VerdictRefused.__subclasses__()]

    assert len(slugs) == len(set(slugs)) == 7


@pytest.mark.parametrize(
    ("option", "facts", "said"),
    [
        (
            "promote",
            {"replaces": "w7 step 700"},
            (
                "w7 step 800 becomes the campaign's policy on the robot in place of w7 step 700, and its "
                "numbers the baseline of the next sessions. Sessions that are planned already keep theirs."
            ),
        ),
        (
            "iterate",
            {"agents": 1},
            (
                "w7 step 800 stays a valid parent for the next round. 1 attached agent will be woken with "
                "the verdict, the notes and the summary; a person still approves what comes of it."
            ),
        ),
        (
            "iterate",
            {},
            "w7 step 800 stays a valid parent for the next round. No agent is attached, so none is woken.",
        ),
        (
            "stop",
            {"descendants": 3},
            (
                "The lineage of w7 step 800 ends: no round can resume from it "
                "or from 3 checkpoints that came of it."
            ),
        ),
        ("stop", {}, "The lineage of w7 step 800 ends: no round can resume from it."),
    ],
)
def test_what_follows_is_said_before_it_is_done(option, facts, said):
    assert consequence(option, checkpoint="w7 step 800", **facts) == said
