"""Commands of the box: lists of words, started without a shell."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


def filled(words: Sequence[str], places: Mapping[str, str]) -> list[str]:
    """Put values in for {state_dir}, {approval_id}, {n} and {stage}; any other brace stays as it is."""
    return [fill(word, places) for word in words]


def fill(text: str, places: Mapping[str, str]) -> str:
    for name, value in places.items():
        text = text.replace("{" + name + "}", value)
    return text


def search_path() -> str:
    """PATH with this driver's own folder first, so that `trial-driver` is the one that runs now."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


def problem(words: Sequence[str], folder: Path) -> str | None:
    """Say why the command could not even start, or nothing. Relative programs are the config folder's."""
    program = words[0]
    if os.sep in program:
        program = str(folder / program)
    if shutil.which(program, path=search_path()) is None:
        return f"{words[0]} is not there or not executable"
    return None
