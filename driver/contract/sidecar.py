"""A sidecar says what the ONNX file leaves open, in the words of the contract's document."""

import tomllib
from collections.abc import Mapping
from typing import Any

from driver.contract.document import ALIASES, OPTIONAL, REQUIRED, BadContract
from driver.contract.metadata import ROUNDING
from driver.wire import canonical

Table = Mapping[str, Any]


def parse_sidecar(raw: bytes, *, name: str) -> dict[str, Any]:
    """Read TOML or JSON, by the name's ending.

    :raises BadContract: for text that is neither
    """
    try:
        if name.endswith(".json"):
            return dict(canonical.object_of(raw))
        return tomllib.loads(raw.decode("utf-8"))
    except (ValueError, canonical.NotStrict) as error:
        raise BadContract({"sidecar": [f"{name} cannot be read: {error}"]}) from None


def contract_table(sidecar: Table) -> dict[str, Any]:
    """The contract's own table, with or without the `[contract]` around it."""
    table = sidecar.get("contract", sidecar)
    if not isinstance(table, Mapping):
        raise BadContract({"contract": ["a table is needed"]})
    known = {*REQUIRED, *OPTIONAL}
    outside = [key for key in sidecar if key != "contract"] if "contract" in sidecar else []
    unknown = [key for key in table if key not in known] + outside
    if unknown:
        raise BadContract({key: ["is not known in a sidecar"] for key in unknown})
    return dict(table)


def completed(*, file: Table, sidecar: Table) -> dict[str, Any]:
    """Both together: the file speaks first, the sidecar may say it more exactly, and they never disagree.

    :raises BadContract: naming each field where they do
    """
    errors: dict[str, list[str]] = {}
    merged = _merge(file, sidecar, "", errors)
    if errors:
        raise BadContract(errors)
    return merged


def _merge(file: Table, sidecar: Table, path: str, errors: dict[str, list[str]]) -> dict[str, Any]:
    merged = {**file, **sidecar}
    for key in file.keys() & sidecar.keys():
        said, given, where = file[key], sidecar[key], f"{path}{key}"
        if isinstance(said, Mapping) and isinstance(given, Mapping):
            merged[key] = _merge(said, given, f"{where}.", errors)
        elif _are_terms(said) and _are_terms(given) and len(said) == len(given):
            merged[key] = [
                _merge(one, other, f"{where}.{at}.", errors)
                for at, (one, other) in enumerate(zip(said, given, strict=True))
            ]
        elif not _agree(said, given):
            errors[where] = [f"the file says {_short(said)}, the sidecar {_short(given)}"]
    return merged


def _are_terms(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _agree(said: object, given: object) -> bool:
    """Equal up to the three decimals that the file rounds to; one number stands for a whole list."""
    if isinstance(said, list) and isinstance(given, list):
        pairs = zip(said, given, strict=False)
        return len(said) == len(given) and all(_agree(*pair) for pair in pairs)
    if isinstance(said, list) or isinstance(given, list):
        many, one = (said, given) if isinstance(said, list) else (given, said)
        return isinstance(many, list) and all(_agree(item, one) for item in many)
    if isinstance(said, float | int) and isinstance(given, float | int):
        return abs(said - given) <= ROUNDING
    if isinstance(said, str) and isinstance(given, str):
        return ALIASES.get(said, said) == ALIASES.get(given, given)
    return said == given


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
