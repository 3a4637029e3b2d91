"""Child processes that never outlive the hub, and the folder that one hub has to itself."""

import ctypes
import fcntl
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


class FolderInUse(Exception):
    """Another process has the folder; the message is for a person."""


def dying_with_parent(number: signal.Signals) -> Callable[[], None]:
    """For `preexec_fn`: the kernel sends the child this signal when the thread that started it ends."""

    def ask_kernel() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, number)

    return ask_kernel


@contextmanager
def child(
    command: Sequence[str], *, env: Mapping[str, str], stop_within: float = 20
) -> Iterator[subprocess.Popen[bytes]]:
    """
    Run a program beside us, in a session of its own so that we choose when it stops.

    At the end it is asked with SIGTERM and killed after `stop_within` seconds.
    """
    process = subprocess.Popen(
        command,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=dying_with_parent(signal.SIGTERM),  # noqa: PLW1509 - one system call, no lock is taken
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(stop_within)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """
    Hold a folder for as long as the process lives. The kernel lets go of it, whatever happens.

    :raises FolderInUse: when another process holds it
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / "in-use").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FolderInUse(
                f"Another hub runs on {folder}. Stop that one first, or give this one a folder of its own: "
                "HUB_DATA=/another/folder"
            ) from None
        yield
