"""
Runs one command so that it hears when the daemon dies: `python launch.py PARENT PROGRAM ARGUMENT…`.

The kernel sends SIGTERM when the parent ends, whatever ended it; the mark outlives the exec. Asking for it in
the child itself spares the daemon, which has threads, from running Python between fork and exec.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, words: list[str]) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(143)  # it ended before it could be watched
    try:
        os.execvp(words[0], words)  # noqa: S606  # no shell is what we want
    except OSError as error:
        print(f"{words[0]}: {error.strerror}", file=sys.stderr)
        sys.exit(127)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
