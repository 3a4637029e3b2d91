"""The box's own buttons: a command that exits 0 when its button is pressed, asked again and again."""

import logging
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from driver import argv

log = logging.getLogger("driver")

AGAIN_S = 0.1
LOOK_S = 2.0  # a command that still runs after this long waits for a press: none was there
POLL_S = 0.02


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
        self.needs_release = False  # a press counts only after the button was seen not pressed
        self._process: subprocess.Popen[bytes] | None = None
        self._next = self._asked = 0.0

    def is_pressed(self) -> bool:
        if not self.words or self.is_broken:
            return False
        code = self._process.poll() if self._process else 1
        if code == 0:
            self._process = None
            return not self.needs_release
        if self._process and (code is not None or self.monotonic() - self._asked > LOOK_S):
            self.needs_release = False
        if code is not None and self.monotonic() >= self._next:
            self._ask()
        return False

    def _ask(self) -> None:
        self._asked = self.monotonic()
        self._next = self._asked + AGAIN_S
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


@contextmanager
def asking(words: Sequence[str], folder: Path, asked: threading.Event) -> Iterator[Button]:
    """Set `asked` at each press, from a thread of its own: no wait for a person or the hub may miss one."""
    done = threading.Event()

    def look() -> None:
        if button.is_pressed() or button.is_broken:
            button.needs_release = True
            asked.set()

    def watch() -> None:
        while not done.wait(POLL_S):
            look()

    with watched(words, folder) as button:
        look()
        thread = threading.Thread(target=watch, name="stop input", daemon=True)
        thread.start()
        try:
            yield button
        finally:
            done.set()
            thread.join()
