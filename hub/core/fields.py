"""DRF's fields coerce: true is 1.0 to it, and 5 is "5". These look at the JSON type first."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from driver.wire import moments

MAX_INTEGER = 2**31 - 1  # what a plain database column holds; a field for more says so
MAX_NUMBER = 2**53 - 1


class Strict:
    """Mixed into a DRF field: refuses every JSON type but its own."""

    takes: ClassVar[tuple[type, ...]]
    says: ClassVar[str]

    def to_internal_value(self, data: Any) -> Any:
        if type(data) not in self.takes:
            raise ValidationError(f"This must be {self.says}.")
        return super().to_internal_value(data)  # type: ignore[misc]


class Text(Strict, serializers.CharField):
    takes, says = (str,), "text"

    def __init__(self, *, max_length: int = 200, **kwargs: Any) -> None:
        super().__init__(max_length=max_length, **kwargs)


class Pattern(Strict, serializers.RegexField):
    """Text of one form, matched as a whole and not trimmed."""

    takes, says = (str,), "text"

    def __init__(self, pattern: str, *, max_length: int = 200, **kwargs: Any) -> None:
        super().__init__(
            re.compile(f"^(?:{pattern})\\Z", re.ASCII), max_length=max_length, trim_whitespace=False, **kwargs
        )


class Sha256(Pattern):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__("[0-9a-f]{64}", max_length=64, **kwargs)


class Email(Strict, serializers.EmailField):
    takes, says = (str,), "an e-mail address"


class Integer(Strict, serializers.IntegerField):
    takes, says = (int,), "a whole number"

    def __init__(self, *, min_value: int = -MAX_INTEGER, max_value: int = MAX_INTEGER, **kwargs: Any) -> None:
        super().__init__(min_value=min_value, max_value=max_value, **kwargs)


class Number(Strict, serializers.FloatField):
    takes, says = (int, float), "a number"

    def __init__(
        self, *, min_value: float = -MAX_NUMBER, max_value: float = MAX_NUMBER, **kwargs: Any
    ) -> None:
        super().__init__(min_value=min_value, max_value=max_value, **kwargs)


class Flag(Strict, serializers.BooleanField):
    takes, says = (bool,), "true or false"


class Choice(Strict, serializers.ChoiceField):
    takes, says = (str,), "text"


class Moment(Strict, serializers.DateTimeField):
    """A moment in UTC, spelled as the wire spells it."""

    takes, says = (str,), "a moment like 2026-11-30T14:31:07.123Z"

    def to_internal_value(self, value: Any) -> datetime:
        if type(value) is not str:
            raise ValidationError(f"This must be {self.says}.")
        try:
            return moments.read(value)
        except moments.BadMoment:
            raise ValidationError(f"This must be {self.says}.") from None

    def to_representation(self, value: Any) -> str:
        return moments.write(value)


class ListOf(Strict, serializers.ListField):
    takes, says = (list,), "a list"

    def __init__(
        self, child: serializers.Field[Any, Any, Any, Any], *, max_length: int, **kwargs: Any
    ) -> None:
        super().__init__(child=child, max_length=max_length, **kwargs)


class MapOf(Strict, serializers.DictField):
    takes, says = (dict,), "an object"

    def __init__(self, child: serializers.Field[Any, Any, Any, Any], **kwargs: Any) -> None:
        super().__init__(child=child, **kwargs)


class Document(Strict, serializers.JSONField):
    """A JSON object whose inside a rule of its own checks."""

    takes, says = (dict,), "an object"


class Body(serializers.Serializer[Any]):
    """A JSON object that says nothing the hub does not know: a misspelt key is no key."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping) and (unknown := sorted(set(data) - set(self.fields))):
            raise ValidationError({name: ["This key is not known here."] for name in unknown})
        return super().to_internal_value(data)


class QueryInteger(serializers.IntegerField):
    """A whole number in a query string, in plain digits."""

    def to_internal_value(self, data: Any) -> int:
        if not re.fullmatch("-?[0-9]{1,9}", str(data), re.ASCII):
            raise ValidationError("This must be a whole number.")
        return super().to_internal_value(data)


class QueryNumber(serializers.FloatField):
    """A number in a query string, in plain digits."""

    def to_internal_value(self, data: Any) -> float:
        if not re.fullmatch(r"-?[0-9]{1,12}(\.[0-9]{1,12})?", str(data), re.ASCII):
            raise ValidationError("This must be a number.")
        return super().to_internal_value(data)
