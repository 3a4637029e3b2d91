"""The names under which acts are audited. Each app adds its own at start, so the reference can list them."""

from collections.abc import Mapping

_ACTIONS: dict[str, str] = {}


def register(meanings: Mapping[str, str]) -> None:
    """Add an app's actions, each with what it means: `{"trial.verdict": "a person decided on a trial"}`."""
    _ACTIONS.update(meanings)


def known() -> dict[str, str]:
    return dict(_ACTIONS)
