"""From the names in a request to checkpoints that the caller can read."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q, QuerySet

from hub.accounts.actors import Actor
from hub.campaigns.models import Campaign, Checkpoint
from hub.core.problems import NotFound, Unprocessable


@dataclass(frozen=True)
class Named:
    """A checkpoint by its id, or by its run, which has a name and an id, and its step."""

    id: str | None = None
    run: str | None = None
    step: int | None = None

    def __str__(self) -> str:
        return self.id or f"{self.run} step {self.step}"


def find(names: Sequence[Named], *, field: str, by: Actor, campaign: Campaign | None) -> list[Checkpoint]:
    """
    The checkpoints of these names, in their order; a run is looked for in the campaign where there is one.

    :raises NotFound: naming the first that the caller cannot read
    :raises Unprocessable: for a run and step of several campaigns
    """
    return [_find(name, field=f"{field}.{at}", by=by, campaign=campaign) for at, name in enumerate(names)]


def _find(name: Named, *, field: str, by: Actor, campaign: Campaign | None) -> Checkpoint:
    found = list(_of(name, by=by, campaign=campaign)[:2])
    if not found:
        raise NotFound(f"There is no checkpoint {name}.")
    if len(found) > 1:
        raise Unprocessable(errors={field: [f"Several campaigns have a {name}: name it by its id."]})
    return found[0]


def _of(name: Named, *, by: Actor, campaign: Campaign | None) -> "QuerySet[Checkpoint]":
    seen = Checkpoint.objects.visible_to(by).select_related("run").order_by("pk")
    if "\0" in str(name):
        return seen.none()
    if name.id is not None:
        return seen.filter(pk=name.id)
    of_run = seen.filter(Q(run__name=name.run) | Q(run=name.run), step=name.step or 0)
    return of_run if campaign is None else of_run.filter(run__campaign=campaign)
