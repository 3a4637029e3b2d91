"""Which verdict a person may give on a trial, and what follows from each, in words."""

from dataclasses import dataclass
from typing import Literal

from trials.rules.runs import Role

Option = Literal["promote", "iterate", "stop"]


@dataclass(frozen=True, kw_only=True)
class Facts:
    """
    What stands when the verdict is given. Checkpoints are ids; `policy_at_planning` and `policy_now` say what
    was on the robot when the session was planned and what is on it at this moment.
    """

    role: Role
    has_started: bool
    has_verdict: bool
    has_campaign: bool
    bracket_holds: bool | None
    policy_at_planning: str | None = None
    policy_now: str | None = None
    lineage_ended: bool = False


@dataclass(frozen=True, kw_only=True)
class Asked:
    option: Option
    acknowledge_bracket: bool = False
    replaces: str | None = None


class VerdictRefused(ValueError):
    """`slug` names the reason for programs; the text says it to a person."""

    slug: str
    said: str

    def __init__(self) -> None:
        super().__init__(self.said)


class ControlTakesNone(VerdictRefused):
    slug = "control"
    said = "A control is measured, not judged: it takes no verdict."


class NotStarted(VerdictRefused):
    slug = "not-started"
    said = "Its run has not started, so there is nothing to decide."


class HasVerdict(VerdictRefused):
    slug = "second-verdict"
    said = "It has a verdict already, and there is only one."


class NoCampaign(VerdictRefused):
    slug = "no-campaign"
    said = (
        "Its session belongs to no campaign, so there is no policy on the robot to replace: iterate or stop."
    )


class BracketNotAcknowledged(VerdictRefused):
    slug = "bracket-does-not-hold"
    said = (
        "The bracket does not hold, so this session decides nothing. "
        "To promote all the same, acknowledge that; the record keeps it."
    )


class WrongReplacement(VerdictRefused):
    """Another policy is on the robot than the person has in mind; `current` is the one there now."""

    slug = "policy-changed"

    def __init__(self, current: str | None) -> None:
        there = f"{current} is on the robot now" if current else "No policy is on the robot now"
        self.said = (
            f"{there}, which was not so when this session was planned: name what this promotion replaces."
        )
        super().__init__()
        self.current = current


class LineageEnded(VerdictRefused):
    slug = "lineage-ended"
    said = "Its lineage has ended: nothing can be trained on from it, and it does not go on the robot."


def check_verdict(facts: Facts, asked: Asked) -> None:
    """
    Refuse a verdict that may not be given; the first reason in the order of the classes above is the one
    named.

    :raises VerdictRefused: one subclass for each reason
    """
    if facts.role == "control":
        raise ControlTakesNone
    if not facts.has_started:
        raise NotStarted
    if facts.has_verdict:
        raise HasVerdict
    if asked.option == "promote":
        _check_promotion(facts, asked)
    if asked.option in ("promote", "iterate") and facts.lineage_ended:
        raise LineageEnded


def consequence(
    option: Option, *, checkpoint: str, replaces: str | None = None, descendants: int = 0, agents: int = 0
) -> str:
    """What the verdict does, said before it is given. Checkpoints are names such as `walk-7 step 800`."""
    if option == "promote":
        instead = f" in place of {replaces}" if replaces else ""
        return (
            f"{checkpoint} becomes the campaign's policy on the robot{instead}, and its numbers "
            "the baseline of the next sessions. Sessions that are planned already keep theirs."
        )
    if option == "iterate":
        return f"{checkpoint} stays a valid parent for the next round. {_waking(agents)}"
    also = f" or from {_counted(descendants, 'checkpoint')} that came of it" if descendants else ""
    return f"The lineage of {checkpoint} ends: no round can resume from it{also}."


def _waking(agents: int) -> str:
    if not agents:
        return "No agent is attached, so none is woken."
    return (
        f"{_counted(agents, 'attached agent')} will be woken with the verdict, the notes and the summary; "
        "a person still approves what comes of it."
    )


def _check_promotion(facts: Facts, asked: Asked) -> None:
    if not facts.has_campaign:
        raise NoCampaign
    if facts.bracket_holds is False and not asked.acknowledge_bracket:
        raise BracketNotAcknowledged
    is_changed = facts.policy_now != facts.policy_at_planning
    if asked.replaces != facts.policy_now and (is_changed or asked.replaces is not None):
        raise WrongReplacement(facts.policy_now)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
