"""What the documents say of the hub against the hub itself."""

import re
from pathlib import Path

from django.core.management import get_commands

ROOT = Path(__file__).resolve().parents[2]
OPERATING = (ROOT / "docs" / "operating.md").read_text()
PLACES = {"XDG_STATE_HOME"}  # of the machine, not of the hub


def test_every_variable_that_the_hub_reads_is_in_the_operating_guide_and_no_other() -> None:
    read = set(re.findall(r'environ(?:\.get\(|\[)"(\w+)"', (ROOT / "hub" / "settings.py").read_text()))
    table = OPERATING.partition("| --- | --- | --- |\n")[2].partition("\n\n")[0]
    named = {name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])}

    assert read - PLACES == named


def test_every_command_of_the_hub_is_in_the_operating_guide_and_no_other() -> None:
    named = set(re.findall(r"manage\.py (\w+)", OPERATING))

    ours = {name for name, app in get_commands().items() if app.startswith(("hub.", "devices", "trials"))}
    assert ours <= named <= set(get_commands())


def test_a_link_between_the_guides_leads_somewhere() -> None:
    documents = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]

    for document in documents:
        for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text()):
            assert (document.parent / link).exists(), f"{document.name} links to {link}"
