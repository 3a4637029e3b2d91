"""What nobody sends by mistake: bytes that are no strict JSON, values of wrong types, ids that are none."""

import json
from collections.abc import Iterator
from itertools import cycle
from typing import Any

# As JSON text in the place of one value of a sound body.
UNREADABLE = {
    "NUL": '"a\\u0000b"',
    "half a surrogate pair": '"\\ud800"',
    "the other half": '"\\udfff\\ud800"',
    "a 400-digit integer": "9" * 400,
    "a 5000-digit integer": "-" + "1" * 5000,
    "2^53": str(2**53),
    "a float beyond 2^53": "1e17",
    "overflow": "1e400",
    "NaN": "NaN",
    "Infinity": "-Infinity",
    "a key twice": '{"a": 1, "a": 2}',
    "33 deep": "[" * 33 + "]" * 33,
    "5000 deep": '{"a":' * 5000 + "1" + "}" * 5000,
    "hex": "0x10",
    "a trailing comma": "[1,]",
    "a control character": '"\x01"',
    "nothing": "",
}
# As the whole body.
NOT_JSON = {
    "half an object": b'{"name": "a"',
    "two values": b"{} {}",
    "a byte order mark": b"\xef\xbb\xbf{}",
    "a raw NUL": b'{"name": "a\x00b"}',
    "not UTF-8": b'{"name": "\xff\xfe"}',
    "a surrogate in UTF-8": b'{"name": "\xed\xa0\x80"}',
    "UTF-16": '{"name": "a"}'.encode("utf-16"),
    "blanks": b"  \n",
    "unclosed depth": b"[" * 100_000,
    "an unclosed string": b'"' + b"a" * 100_000,
    "a form": b"name=ana&reason=x",
}
WRONG_VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1.5,
    2**53 - 1,
    -(2**53) + 1,
    1e-300,
    "",
    " ",
    "x" * 5000,
    "\u202e",
    "🤖",
    "a\nb\x1b[31m",
    "../../etc/passwd",
    "'; drop table trials; --",
    "2026-11-30T14:31:07.123Z",
    "9999-12-31T23:59:59.999Z",
    "nan",
    [],
    {},
    [[]],
    [None],
    {"": None},
    {"id": {"id": {"id": []}}},
    ["x"] * 200,
]
OF_TYPE: dict[str, Any] = {
    "string": "x",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "array": [],
    "object": {},
    "null": None,
}
IDS = (
    "%00",
    "trl_%00",
    "a%00b%00",
    ".",
    "..",
    "%2e%2e",
    "%2F..%2F",
    "x" * 5000,
    "trl_" + "0" * 22,
    "%ff%fe",
    "%ed%a0%80",
    "%f0%9f%a4%96",
    "%0d%0aSet-Cookie:%20a=b",
    "%0a",
    "%20",
    "%",
    "%zz",
    "%25%30%30",
    "'%20or%201=1--",
    "%22",
    "%5c",
    "-1",
    "null",
    "9" * 400,
    "%d9%a3",
    ";a=b",
)
TEXTS = (
    "",
    "%00",
    "a%00b",
    "%ff%fe",
    "%ed%a0%80",
    "%f0%9f%a4%96",
    "%0d%0aSet-Cookie:%20a=b",
    "%",
    "%zz",
    "'%20or%201=1--",
    "%d9%a3",
    "x" * 5000,
    "9" * 400,
    "-1",
    "0",
    "1e400",
    "nan",
    "1.5",
    "000000001" + "0" * 5000,
    "1_0",
    "a,b,,c",
    "tilt,tilt",
    "requested,%00",
    "AAAA",
    "_%5b%5d",
)


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value inside a body."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inner:
        yield (*path, key)
        yield from paths_of(below, (*path, key))


def put(value: Any, path: tuple[Any, ...], wrong: Any) -> Any:
    """The body with another value in one place."""
    if not path:
        return wrong
    key, *rest = path
    if isinstance(value, list):
        return [put(each, tuple(rest), wrong) if at == key else each for at, each in enumerate(value)]
    return {**value, key: put(value.get(key), tuple(rest), wrong)}


def objects_of(value: Any) -> Iterator[tuple[Any, ...]]:
    """The way to every object inside a body, itself first."""
    found: Any
    for path in ((), *paths_of(value)):
        found = value
        for key in path:
            found = found[key]
        if isinstance(found, dict):
            yield path


def wrongly_typed(body: Any, *, most: int) -> Iterator[tuple[str, Any]]:
    """
    The body with a wrong value, or with one key too many, in every place; evenly thinned out to about `most`
    of each. The step is odd, so that it meets each kind of value somewhere.
    """
    places = [(path, wrong) for path in paths_of(body) for wrong in WRONG_VALUES]
    for path, wrong in places[:: max(1, len(places) // most) | 1]:
        yield f"{path} = {wrong!r:.40}", put(body, path, wrong)
    objects = list(objects_of(body))
    for path in objects[:: max(1, len(objects) // most) | 1]:
        yield f"{path} has one key more", put(body, (*path, "no such key"), None)
    for wrong in WRONG_VALUES:
        yield f"all of it = {wrong!r:.40}", wrong


def unreadable(body: Any) -> Iterator[tuple[str, bytes]]:
    """The body with what no strict reader takes, in the places of its values in turn."""
    for (name, text), key in zip(UNREADABLE.items(), cycle(body), strict=False):
        marked = json.dumps({**body, key: "MARK"})
        yield f"{key} is {name}", marked.replace('"MARK"', text, 1).encode()
    twice = json.dumps(body)[:-1] + f', "{next(iter(body))}": null}}'
    yield "the first key is there twice", twice.encode()
    yield from NOT_JSON.items()
