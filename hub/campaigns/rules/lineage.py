"""Which checkpoints come from which, and which of them a round may still resume from."""

from collections.abc import Collection, Iterator, Mapping

Parents = Mapping[str, str | None]  # checkpoint id -> the one it was trained on from


class NotResumable(ValueError):
    """No round may resume from this checkpoint."""

    def __init__(self, checkpoint: str, because: str) -> None:
        super().__init__(because)
        self.checkpoint = checkpoint


class LineageEnded(NotResumable):
    """`ended_at` is the checkpoint where the lineage ended: this one or one that it comes from."""

    def __init__(self, checkpoint: str, ended_at: str) -> None:
        where = "here" if ended_at == checkpoint else f"at {ended_at}, which it comes from"
        super().__init__(checkpoint, f"The lineage of {checkpoint} ended {where}: no round resumes from it.")
        self.ended_at = ended_at


class FailedInSim(NotResumable):
    def __init__(self, checkpoint: str) -> None:
        super().__init__(
            checkpoint,
            f"{checkpoint} is FAIL in simulation, and this campaign's rule is that a FAIL ends the lineage: "
            "no round resumes from it.",
        )


def line(checkpoint: str, parents: Parents) -> Iterator[str]:
    """The checkpoint and those it comes from, nearest first. A loop in the pointers is gone round once."""
    seen: set[str] = set()
    step: str | None = checkpoint
    while step is not None and step not in seen:
        yield step
        seen.add(step)
        step = parents.get(step)


def descendants(checkpoint: str, parents: Parents) -> frozenset[str]:
    """Every checkpoint that comes from this one, however far down; not itself."""
    children: dict[str, list[str]] = {}
    for child, parent in parents.items():
        if parent is not None:
            children.setdefault(parent, []).append(child)
    found: set[str] = set()
    todo = [checkpoint]
    while todo:
        new = [child for child in children.get(todo.pop(), ()) if child not in found]
        found.update(new)
        todo.extend(new)
    return frozenset(found - {checkpoint})


def ended_at(checkpoint: str, *, parents: Parents, ended: Collection[str]) -> str | None:
    """The nearest checkpoint of its line at which the lineage was ended, or None while it goes on."""
    return next((step for step in line(checkpoint, parents) if step in ended), None)


def check_resumable(
    checkpoint: str,
    *,
    parents: Parents,
    ended: Collection[str],
    failed: Collection[str],
    fail_ends_lineage: bool,
) -> None:
    """
    Refuse a parent whose lineage was ended by a stop, or which failed in simulation where that ends one.

    `ended` holds the checkpoints whose verdict was stop, `failed` those whose sim verdict is FAIL. A stop
    reaches every descendant; a FAIL only the checkpoint itself, because training passes through bad steps to
    good ones.

    :raises LineageEnded: whatever the campaign's rule
    :raises FailedInSim: under `fail_ends_lineage`
    """
    end = ended_at(checkpoint, parents=parents, ended=ended)
    if end is not None:
        raise LineageEnded(checkpoint, end)
    if fail_ends_lineage and checkpoint in failed:
        raise FailedInSim(checkpoint)
