"""The comma dialect of ONNX metadata, as mjlab, whole_body_tracking and IsaacLab's exporters write it."""

import re
from collections.abc import Mapping
from typing import Any

from driver.contract.document import ALIASES, BadContract

# Exporters round to three decimals, so that much may lie between the file's number and a sidecar's.
ROUNDING = 0.0005 + 1e-9
OTHER_DIALECTS = {"dof_names": "holosoma", "kinfer_metadata": "K-Scale"}

_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_UNCLIPPED = frozenset({"-inf", "inf", "none", ""})


def said_in(metadata: Mapping[str, str]) -> dict[str, Any]:
    """The part of a contract's document that the metadata says.

    :raises BadContract: where a key is there and cannot be read
    """
    said: dict[str, Any] = {}
    for key, field in _LISTS.items():
        if key in metadata:
            said[field] = _numbers(key, metadata[key])
    if "joint_names" in metadata:
        said["joints"] = _names("joint_names", metadata["joint_names"])
    if "observation_names" in metadata:
        said["observation"] = _observation(metadata)
        said |= _history(metadata)
    if "gait_frequency" in metadata:
        said["phase"] = {"frequency_hz": _numbers("gait_frequency", metadata["gait_frequency"])[0]}
    _refuse_clips(metadata)
    if isinstance(said.get("action_scale"), list) and len(said["action_scale"]) == 1:
        said["action_scale"] = said["action_scale"][0]
    return said


def other_dialect(metadata: Mapping[str, str]) -> str | None:
    """The name of the dialect the file speaks, where it is one that is not read here."""
    return next((name for key, name in OTHER_DIALECTS.items() if key in metadata), None)


_LISTS = {
    "joint_stiffness": "stiffness",
    "joint_damping": "damping",
    "default_joint_pos": "default_joint_pos",
    "action_scale": "action_scale",
}


def _names(key: str, text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise BadContract({key: ["the file's metadata leaves a name empty"]})
    return names


def _numbers(key: str, text: str) -> list[float]:
    parts = [part.strip().strip("[]() ") for part in text.split(",")]
    for part in parts:
        if not _NUMBER.fullmatch(part):
            raise BadContract({key: [f"the file's metadata says {part!r:.40}, which is no number"]})
    return [float(part) for part in parts]


def _observation(metadata: Mapping[str, str]) -> list[dict[str, Any]]:
    names = _names("observation_names", metadata["observation_names"])
    terms: list[dict[str, Any]] = [{"term": ALIASES.get(name, name)} for name in names]
    if "observation_terms_scale" not in metadata:
        return terms
    scales = metadata["observation_terms_scale"].split(",")
    if len(scales) != len(names):
        raise BadContract(
            {"observation_terms_scale": [f"{len(scales)} values for {len(names)} observation_names"]}
        )
    for term, text in zip(terms, scales, strict=True):
        if text.strip().lower() not in {"none", ""}:
            term["scale"] = _numbers("observation_terms_scale", text)[0]
    return terms


def _history(metadata: Mapping[str, str]) -> dict[str, Any]:
    """One length for all terms. 0 and 1 both mean none; a flattened history lies term by term."""
    keys = ("observation_history_lengths", "observation_terms_history_length")
    key = next((key for key in keys if key in metadata), None)
    if key is None:
        return {}
    lengths = {max(1.0, length) for length in _numbers(key, metadata[key])}
    if len(lengths) != 1:
        raise BadContract(
            {key: ["the terms have histories of different lengths; one length for all is needed"]}
        )
    history: dict[str, Any] = {"length": lengths.pop()}
    if "observation_terms_flatten_history_dim" in metadata:
        history["order"] = "term"
    return {"history": history}


def _refuse_clips(metadata: Mapping[str, str]) -> None:
    text = metadata.get("observation_term_clip", metadata.get("observation_terms_clip", ""))
    parts = {part.strip("[]() \t").lower() for part in re.split(r"[,;]", text)}
    if parts - _UNCLIPPED:
        raise BadContract(
            {"observation_term_clip": ["the file clips its observation, which is not done here"]}
        )
