"""Judgement: pure functions on plain values, no database and no clock."""

# A verdict keeps it beside what was judged. Raise it when the same log would be judged otherwise.
RULES_VERSION = 1
