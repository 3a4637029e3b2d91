"""What the exit code of a subcommand means."""

from enum import IntEnum


class Exit(IntEnum):
    OK = 0
    FAILED = 1
    USAGE = 2
    CONFIG = 3
    UNREACHABLE = 4
    REFUSED = 5
    STOPPED = 6  # by the operator or an abort rule


class DriverError(Exception):
    """Something anticipated: its sentence is for the person at the box and says what to do."""

    exit = Exit.FAILED
