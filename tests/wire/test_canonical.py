import base64
import json
import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.wire import canonical
from driver.wire.canonical import NotStrict
from tests import cases

VECTORS = "vectors/json-canonicalization"

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
numbers = st.integers(-canonical.MAX_NUMBER, canonical.MAX_NUMBER) | st.floats(
    -canonical.MAX_NUMBER, canonical.MAX_NUMBER, allow_nan=False
)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_what_is_written_reads_back_equal(value: Any) -> None:
    assert canonical.parse(canonical.dumps(value)) == value


@given(values)
def test_what_is_read_has_one_canonical_form(value: Any) -> None:
    once = canonical.dumps(canonical.parse(json.dumps(value).encode()))

    assert canonical.dumps(canonical.parse(once)) == once


@given(st.binary(max_size=60) | texts.map(str.encode))
def test_any_bytes_are_read_or_refused_in_one_way(raw: bytes) -> None:
    try:
        value = canonical.parse(raw)
    except NotStrict:
        return

    assert canonical.parse(canonical.dumps(value)) == value


@pytest.mark.parametrize("name", ["arrays", "french", "structures", "unicode", "weird"])
def test_rfc_8785_files_come_out_byte_for_byte(name: str) -> None:
    folder = cases.path(f"{VECTORS}/testdata")

    written = canonical.dumps(canonical.parse((folder / f"input/{name}.json").read_bytes()))

    assert written == (folder / f"output/{name}.json").read_bytes()
    assert written.hex() == "".join((folder / f"outhex/{name}.txt").read_text().split())


def test_the_rfc_8785_file_with_a_number_beyond_2_53_is_refused() -> None:
    raw = (cases.path(f"{VECTORS}/testdata") / "input/values.json").read_bytes()

    with pytest.raises(NotStrict, match="2\\^53"):
        canonical.parse(raw)


def test_every_es6_number_is_written_as_es6_does_or_refused_for_its_size() -> None:
    lines = cases.path(f"{VECTORS}/es6_numbers_10000.txt").read_text("ascii").splitlines()
    checked = 0
    for line in lines:
        bits, expected = line.split(",")
        (value,) = struct.unpack(">d", bytes.fromhex(bits.zfill(16)))
        if abs(value) > canonical.MAX_NUMBER:
            with pytest.raises(NotStrict):
                canonical.dumps(value)
        else:
            assert canonical.dumps(value).decode() == expected
            checked += 1

    assert len(lines) == 10_000
    assert checked > 4_000


# wire.md refuses every spelling of a number beyond 2^53-1; these two vectors are older than that.
BEYOND = {"1e21", "below-1e21"}
# Sound JSON that only the shape of a statement refuses; see the test below.
SHAPE = {"bool-as-number", "string-as-number", "float-as-int"}


def own_cases() -> list[dict[str, Any]]:
    path = cases.path("vectors/own/strict_canonical_json_cases.json")
    found: list[dict[str, Any]] = json.loads(path.read_text())["cases"]
    return found


def test_own_strict_json_vectors_are_answered_as_the_wire_says() -> None:
    for case in own_cases():
        raw = base64.b64decode(case["raw_b64"])
        if case["expect"] == "accept" and case["name"] not in BEYOND:
            assert canonical.dumps(canonical.object_of(raw)).decode() == case["canonical_utf8"], case["name"]
        elif case["name"] not in SHAPE:
            assert is_refused(raw), case["name"]


def is_refused(raw: bytes) -> bool:
    try:
        canonical.object_of(raw)
    except NotStrict:
        return True
    return False


def test_numbers_of_the_wrong_type_are_refused_by_a_statements_shape() -> None:
    from driver.wire import statements
    from tests.wire import samples

    for case in own_cases():
        if case["name"] in SHAPE:
            rows = canonical.object_of(base64.b64decode(case["raw_b64"]))["rows"]
            payload = samples.trial_log()
            payload["files"][0]["rows"] = rows
            with pytest.raises(statements.BadStatement) as refused:
                statements.check_trial_log(payload)
            assert refused.value.errors == {"files.0.rows": ["must be a whole number"]}


@pytest.mark.parametrize(
    "raw",
    [
        b"1e17",
        b"100000000000000000.0",
        b"9007199254740992.0",
        b"-9007199254740992",
        b'{"a":[1,9e15,9.1e15]}',
        b'"\xed\xa0\x80"',
        b"\xff\xfe1\x00",
        b"\x00",
        b"",
        b" ",
        b"[" * 33 + b"]" * 33,
        b'{"a":' * 33 + b"1" + b"}" * 33,
        b"[" * 100_000,
        b'"' + b'\\"' * 100_000,
        b"1" * 1_000_000,
        b"-Infinity",
    ],
)
def test_what_has_no_single_spelling_is_refused(raw: bytes) -> None:
    with pytest.raises(NotStrict):
        canonical.parse(raw)


def test_depth_32_is_read_and_depth_33_is_not() -> None:
    assert canonical.parse(b"[" * 32 + b"]" * 32)

    with pytest.raises(NotStrict, match="deeper than 32"):
        canonical.parse(b"[" * 33 + b"]" * 33)


def test_brackets_inside_text_have_no_depth() -> None:
    assert canonical.parse(b'"' + b"[" * 100 + b'"') == "[" * 100


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        1e17,
        2.0**53,
        2**53,
        "\ud800",
        {"\udead": 1},
        {1: 2},
        {"a": b"bytes"},
        {"a": object()},
        "a\0b",
    ],
)
def test_a_value_that_would_not_read_back_is_not_written(value: Any) -> None:
    with pytest.raises(NotStrict):
        canonical.dumps(value)


def test_a_value_nested_too_deep_is_not_written() -> None:
    value: Any = 1
    for _ in range(2_000):
        value = [value]

    with pytest.raises(NotStrict, match="deeper than 32"):
        canonical.dumps(value)


def test_a_byte_order_mark_is_named() -> None:
    with pytest.raises(NotStrict, match="byte order mark"):
        canonical.parse(b"\xef\xbb\xbf{}")


def test_a_repeated_key_is_named() -> None:
    with pytest.raises(NotStrict, match="'kd_scale' is there twice"):
        canonical.parse(b'{"kd_scale":1,"kd_scale":2}')
