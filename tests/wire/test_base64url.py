import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.wire import base64url
from driver.wire.base64url import BadEncoding


@given(st.binary(max_size=80))
def test_what_is_written_reads_back_with_and_without_padding(data: bytes) -> None:
    text = base64url.encode(data)

    assert base64url.decode(text) == data
    assert base64url.decode(text + "=" * (-len(text) % 4)) == data


@given(st.text("AZaz09-_=+/ \n", max_size=12))
def test_a_text_that_reads_is_the_one_spelling_of_its_bytes(text: str) -> None:
    try:
        data = base64url.decode(text)
    except BadEncoding:
        return

    assert base64url.encode(data) == text.rstrip("=")


@pytest.mark.parametrize(
    "text",
    [
        "AB+/",
        "A",
        "AAAAA",
        "AB",
        "AAB",
        "AA=",
        "AA===",
        "AAA==",
        "====",
        "AA\n",
        " AA",
        "A A",
        "ＡA",
        "AA==A",
    ],
)
def test_another_spelling_is_refused(text: str) -> None:
    with pytest.raises(BadEncoding):
        base64url.decode(text)


def test_only_one_of_sixteen_last_letters_spells_a_signature() -> None:
    text = base64url.encode(bytes(range(64)))
    others = [
        text[:-1] + letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    ]

    read = []
    for other in others:
        try:
            read.append(base64url.decode(other))
        except BadEncoding:
            continue

    assert len(read) == len(set(read)) == 4
