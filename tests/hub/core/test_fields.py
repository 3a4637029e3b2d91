from datetime import UTC, datetime

import pytest
from rest_framework import serializers

from hub.core import fields
from hub.core.patch import Patch, apply

NOW = datetime(2026, 11, 30, 14, 31, 7, 123000, tzinfo=UTC)

COERCED = [
    (fields.Text(), 5),
    (fields.Text(), True),
    (fields.Text(), ["a"]),
    (fields.Pattern("[a-z]+"), "a\n"),
    (fields.Pattern("[a-z]+"), " a"),
    (fields.Sha256(), "A" * 64),
    (fields.Integer(), 7.0),
    (fields.Integer(), "7"),
    (fields.Integer(), True),
    (fields.Integer(), 2**31),
    (fields.Number(), "1.5"),
    (fields.Number(), True),
    (fields.Flag(), 1),
    (fields.Flag(), "yes"),
    (fields.Flag(), "null"),
    (fields.Choice([("1", "one")]), 1),
    (fields.Moment(), "2026-11-30"),
    (fields.Moment(), "2026-11-30T14:31:07"),
    (fields.Moment(), "2026-11-30T14:31:07+01:00"),
    (fields.Moment(), 1764513067),
    (fields.ListOf(fields.Text(), max_length=3), "abc"),
    (fields.ListOf(fields.Text(), max_length=3), {"a": 1}),
    (fields.MapOf(fields.Number()), [1]),
    (fields.Document(), "{}"),
]


@pytest.mark.parametrize(("field", "value"), COERCED)
def test_a_value_of_another_type_is_refused_not_coerced(field, value):
    with pytest.raises(serializers.ValidationError):
        field.run_validation(value)


@pytest.mark.parametrize(
    ("field", "value", "read"),
    [
        (fields.Text(), "a", "a"),
        (fields.Integer(), 7, 7),
        (fields.Integer(), 2**31 - 1, 2**31 - 1),
        (fields.Number(), 7, 7.0),
        (fields.Flag(), False, False),
        (fields.Choice([("1", "one")]), "1", "1"),
        (fields.Moment(), "2026-11-30T14:31:07.123Z", NOW),
        (fields.ListOf(fields.Text(), max_length=2), ["a", "b"], ["a", "b"]),
        (fields.Document(), {"a": [1]}, {"a": [1]}),
    ],
)
def test_a_value_of_its_own_type_is_taken(field, value, read):
    assert field.run_validation(value) == read


def test_a_list_takes_its_cap_and_not_one_more():
    field = fields.ListOf(fields.Integer(), max_length=3)

    assert field.run_validation([1, 2, 3]) == [1, 2, 3]
    with pytest.raises(serializers.ValidationError):
        field.run_validation([1, 2, 3, 4])


def test_a_moment_is_written_in_utc_to_the_millisecond():
    assert fields.Moment().to_representation(NOW) == "2026-11-30T14:31:07.123Z"


class Sheet(fields.Body):
    name = fields.Text()
    inner = Patch(required=False)


def test_a_key_that_nobody_knows_is_refused_by_name():
    body = Sheet(data={"name": "a", "nmae": "b"})

    assert not body.is_valid()
    assert list(body.errors) == ["nmae"]


def test_a_body_that_is_no_object_is_refused():
    assert not Sheet(data=["name"]).is_valid()


class Change(Patch):
    name = fields.Text()
    note = fields.Text(allow_null=True)


def test_an_absent_key_is_unchanged_and_null_clears_only_what_is_optional():
    changes = Change(data={"note": None})
    assert changes.is_valid()
    assert changes.validated_data == {"note": None}
    assert not Change(data={"name": None}).is_valid()


class Row:
    name, note = "a", "b"


def test_only_what_really_changed_is_to_be_saved():
    row = Row()

    assert apply(row, {"name": "a", "note": None}) == ["note"]
    assert row.note is None


@pytest.mark.parametrize("text", ["1.0", "٣", "", "1e3", "+1", "0x1", "9" * 10])
def test_a_whole_number_in_a_query_is_plain_digits(text):
    with pytest.raises(serializers.ValidationError):
        fields.QueryInteger().run_validation(text)


@pytest.mark.parametrize("text", ["nan", "inf", "1e999", "٣", "", ".5", "1_0"])
def test_a_number_in_a_query_is_plain_digits(text):
    with pytest.raises(serializers.ValidationError):
        fields.QueryNumber().run_validation(text)
    assert fields.QueryNumber().run_validation("-1.25") == -1.25
