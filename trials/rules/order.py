"""
The order of a session (C4-03, C4-04): control first, candidates by rising risk in simulation, control last.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hub.campaigns.rules.gates import Sim
from trials.rules.runs import Role


@dataclass(frozen=True)
class Candidate:
    """
    A checkpoint to be tried; `sim` is None where no round measured it. `name` is for the reason's words.
    """

    checkpoint: str
    step: int
    sim: Sim | None = None
    name: str = ""

    @property
    def called(self) -> str:
        return self.name or self.checkpoint


@dataclass(frozen=True)
class Place:
    position: int
    checkpoint: str
    role: Role


class BadPlan(ValueError):
    """What was picked makes no session; `checkpoint` is the offender where there is one."""

    def __init__(
        self, said: str, *, field: Literal["controls", "candidates"], checkpoint: str | None = None
    ) -> None:
        super().__init__(said)
        self.field = field
        self.checkpoint = checkpoint


class NoControl(BadPlan):
    def __init__(self) -> None:
        super().__init__(
            "Without a control there is nothing to compare with: name one or two.", field="controls"
        )


class TooManyControls(BadPlan):
    def __init__(self, checkpoint: str) -> None:
        said = f"{checkpoint} is one control too many: a session has one, run first and last, or two."
        super().__init__(said, field="controls", checkpoint=checkpoint)


class NoCandidate(BadPlan):
    def __init__(self) -> None:
        super().__init__("Without a candidate there is nothing to try: name one.", field="candidates")


class Duplicate(BadPlan):
    def __init__(self, checkpoint: str, *, field: Literal["controls", "candidates"]) -> None:
        super().__init__(f"{checkpoint} is there twice.", field=field, checkpoint=checkpoint)


class BothRoles(BadPlan):
    def __init__(self, checkpoint: str) -> None:
        said = f"{checkpoint} cannot be control and candidate at once."
        super().__init__(said, field="candidates", checkpoint=checkpoint)


def plan_order(*, controls: Sequence[str], candidates: Sequence[Candidate]) -> list[Place]:
    """
    Put a session in order. Positions count from 1; one control runs first and last, of two the first given
    runs first.

    Candidates go by more locked gates passed, then more seeds upright, then lower step, then id. One that no
    round measured counts as having passed nothing, and so runs after those that are known.

    :raises BadPlan: naming the checkpoint that is in the way
    """
    _check(controls, [candidate.checkpoint for candidate in candidates])
    inner = [candidate.checkpoint for candidate in sorted(candidates, key=_risk)]
    line = [controls[0], *inner, controls[-1]]
    ends = (1, len(line))
    return [
        Place(position, checkpoint, "control" if position in ends else "candidate")
        for position, checkpoint in enumerate(line, 1)
    ]


def why(places: Sequence[Place], candidates: Sequence[Candidate]) -> list[str]:
    """The reason of each place, in the order of the places, in words for a page."""
    known = {candidate.checkpoint: candidate for candidate in candidates}
    said = []
    for place, before in zip(places, [None, *places], strict=False):
        if place.role == "control":
            said.append(_why_control(place, places))
        else:
            ahead = known.get(before.checkpoint) if before and before.role == "candidate" else None
            said.append(_why_candidate(known[place.checkpoint], ahead, is_only=len(places) == 3))
    return said


def _check(controls: Sequence[str], candidates: Sequence[str]) -> None:
    if not controls:
        raise NoControl
    if len(controls) > 2:
        raise TooManyControls(controls[2])
    if not candidates:
        raise NoCandidate
    _check_once(controls, field="controls")
    _check_once(candidates, field="candidates")
    for checkpoint in candidates:
        if checkpoint in controls:
            raise BothRoles(checkpoint)


def _check_once(picks: Sequence[str], *, field: Literal["controls", "candidates"]) -> None:
    for number, checkpoint in enumerate(picks):
        if checkpoint in picks[:number]:
            raise Duplicate(checkpoint, field=field)


def _risk(candidate: Candidate) -> tuple[int, int, int, str]:
    passed, upright = _record(candidate)
    return -passed, -upright, candidate.step, candidate.checkpoint


def _record(candidate: Candidate) -> tuple[int, int]:
    sim = candidate.sim
    return (sim["gates_passed"], sim["seeds_upright"]) if sim else (0, 0)


def _why_control(place: Place, places: Sequence[Place]) -> str:
    first, last = places[0], places[-1]
    if place.position == first.position:
        return "Control first: what every candidate is compared with."
    if first.checkpoint == last.checkpoint:
        return "The same control again, last: it shows whether the session stayed the same."
    return (
        "The second control, last. It is another checkpoint than the first, so their difference is no drift."
    )


def _why_candidate(candidate: Candidate, ahead: Candidate | None, *, is_only: bool) -> str:
    said = f"{_sim_words(candidate)}: "
    if is_only:
        return said + "the only candidate."
    if ahead is None and candidate.sim is None:
        return said + "no other candidate is known to be of less risk."
    if ahead is None:
        return said + "the lowest risk in simulation, so it runs before the other candidates."
    if _record(candidate) != _record(ahead):
        which = "gates passed" if _record(candidate)[0] != _record(ahead)[0] else "seeds upright"
        return said + f"fewer {which} than {ahead.called}, so it runs after it."
    if candidate.step != ahead.step:
        return said + f"as good as {ahead.called}, and a later step, so it runs after it."
    return said + f"as good as {ahead.called} at the same step; their ids decide."


def _sim_words(candidate: Candidate) -> str:
    sim = candidate.sim
    if sim is None:
        return "Not measured in simulation"
    gates = f"{sim['gates_passed']} of {sim['gates']} gates passed"
    return f"{gates}, {sim['seeds_upright']} of {sim['seeds_run']} seeds upright"
