"""The world's clock, for bodies that live in it."""

import time


class RealClock:
    def now(self) -> float:
        return time.monotonic()

    def sleep_until(self, moment: float) -> None:
        time.sleep(max(0.0, moment - time.monotonic()))
