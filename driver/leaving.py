"""The daemon's own end, asked for by a signal."""

import time

LOOK_S = 0.05


class Leaving:
    """
    Set from a signal's handler, so it takes no lock: the handler may run while the main thread holds one.

    `by` is what the record says stopped a run that was going on.
    """

    def __init__(self) -> None:
        self.by: str | None = None

    def ask(self, by: str) -> None:
        """The first word counts; a second signal hurries nothing, for the robot comes first."""
        self.by = self.by or by

    def is_asked(self) -> bool:
        return self.by is not None

    def wait(self, seconds: float) -> bool:
        """Sleep, but not longer than until the daemon is asked to leave."""
        until = time.monotonic() + seconds
        while self.by is None and (left := until - time.monotonic()) > 0:
            time.sleep(min(LOOK_S, left))
        return self.by is not None
