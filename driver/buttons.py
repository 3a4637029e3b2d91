"""The box's own buttons: a command that exits 0 when its button is pressed, asked again and again."""

import logging
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from driver import argv

log = logging.getLogger("driver")

AGAIN_S = 0.1


class Button:
    """
    One button, while it is watched.

    The command may wait for the press or look once; what ends with anything but 0 is asked again.
    """

    def __init__(
        self, words: Sequence[str], *, folder: Path, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.words, self.folder, self.monotonic = list(words), folder, monotonic
        self.is_broken = False
        self._process: subprocess.Popen[bytes] | None = None
        self._next = 0.0

    def is_pressed(self) -> bool:
        if not self.words or self.is_broken:
            return False
        code = self._process.poll() if self._process else 1
        if code == 0:
            self._process = None
            return True
        if code is not None and self.monotonic() >= self._next:
            self._ask()
        return False

    def _ask(self) -> None:
        self._next = self.monotonic() + AGAIN_S
        try:
            self._process = subprocess.Popen(
                self.words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=self.folder,
                env={**os.environ, "PATH": argv.search_path()},
            )
        except OSError as error:
            log.error("the button's command %s cannot start: %s", self.words[0], error.strerror)
            self.is_broken = True

    def release(self) -> None:
        if self._process and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._process = None


@contextmanager
def watched(words: Sequence[str], folder: Path) -> Iterator[Button]:
    button = Button(words, folder=folder)
    try:
        yield button
    finally:
        button.release()
