"""One table of moves for each thing with a lifecycle, and one refusal that names both states."""

from typing import ClassVar

from django.db import models

from hub.core.problems import Conflict


class WrongState(Conflict):
    slug = "wrong-state"
    title = "This cannot be done in its present state."


class Lifecycle(models.Model):
    """
    Base of models whose `state` moves along `NEXT`, the whole lifecycle.

    A state without an entry in `NEXT` is final.
    """

    NEXT: ClassVar[dict[str, set[str]]]
    state: models.CharField  # type: ignore[type-arg]

    class Meta:
        abstract = True

    def move_to(self, state: str) -> None:
        """
        Change the state in memory; the service that called saves and audits it.

        :raises WrongState: for a move that the table does not have
        """
        if state not in self.NEXT.get(str(self.state), set()):
            thing = self._meta.verbose_name
            raise WrongState(
                f"The {thing} is {self.state}; it cannot become {state}.",
                state=str(self.state),
                wanted=str(state),
            )
        self.state = state
