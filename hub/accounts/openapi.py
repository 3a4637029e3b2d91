"""The OpenAPI document, from the same declarations that the views run by."""

import re
from functools import cache
from typing import Any, Literal

from django.conf import settings
from drf_spectacular.extensions import OpenApiSerializerExtension, OpenApiSerializerFieldExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent

from hub.accounts import auth, permissions
from hub.accounts.api import HubView, Operation
from hub.core import problems
from hub.core.problems import Problem

SECURITY = {
    permissions.PERSON: ("session", {"type": "apiKey", "in": "cookie", "name": "hub_session"}),
    permissions.READ: ("key", {"type": "http", "scheme": "bearer"}),
    permissions.WRITE: ("key", {"type": "http", "scheme": "bearer"}),
    permissions.DEVICE: ("device", {"type": "apiKey", "in": "header", "name": "Signature"}),
}
PAGE_PARAMETERS: list[dict[str, Any]] = [
    {"name": "cursor", "in": "query", "schema": {"type": "string"}},
    {
        "name": "limit",
        "in": "query",
        "schema": {"type": "integer", "minimum": 1, "maximum": settings.PAGE_MAX},
    },
]
BOUNDS = ("minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems")
Direction = Literal["request", "response"]
PROBLEM = ResolvedComponent(
    name="Problem",
    type=ResolvedComponent.SCHEMA,
    object="Problem",
    schema={
        "type": "object",
        "description": "A refusal (RFC 9457); facts stand beside the fields named here.",
        "required": ["type", "title", "status"],
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "errors": {
                "type": "object",
                "additionalProperties": {"type": "array", "items": {"type": "string"}},
            },
        },
    },
)


@cache
def document() -> dict[str, Any]:
    """The whole document. It changes with the code alone, so one process makes it once."""
    made: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return made


class HubSchema(AutoSchema):
    """Reads a view's operations; the framework's guesses are used for nothing but the fields."""

    view: HubView  # type: ignore[override]

    @property
    def operation(self) -> Operation:
        declared: Operation = getattr(self.view, self.method.lower()).operation
        return declared

    def get_operation_id(self) -> str:
        return self.operation.id

    def get_summary(self) -> str:
        return self.operation.summary

    def get_description(self) -> str:  # type: ignore[override]
        return ""

    def get_tags(self) -> list[str]:
        return [self.path.split("/")[3]]

    def get_request_serializer(self) -> Any:
        return self.operation.body

    def get_response_serializers(self) -> Any:
        return self.operation.answer

    def get_auth(self) -> list[dict[str, list[str]]]:
        schemes: list[dict[str, list[str]]] = []
        for letter in self.operation.who:
            if letter in SECURITY:
                name, definition = SECURITY[letter]
                self.registry.register_on_missing(_scheme(name, definition))
                if {name: []} not in schemes:
                    schemes.append({name: []})
        return schemes

    def get_extensions(self) -> dict[str, Any]:
        return {"x-who": " ".join(self.operation.who)}

    def _get_parameters(self) -> list[dict[str, Any]]:
        path = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in re.findall(r"\{(\w+)\}", self.path)
        ]
        query = [
            {"name": name, "in": "query", "required": field.required, "schema": self._schema_of(field)}
            for name, field in self.operation.query().fields.items()
        ]
        return path + query + (PAGE_PARAMETERS if self.operation.listed else [])

    def _schema_of(self, field: Any) -> Any:
        return self._map_serializer_field(field, "request")

    def _map_serializer(self, serializer: Any, direction: Direction, *args: Any, **kwargs: Any) -> Any:
        """Bounds are for what comes in; an answer keeps no promise about its length."""
        schema = super()._map_serializer(serializer, direction, *args, **kwargs)
        return _without_bounds(schema) if direction == "response" else schema

    def _get_response_bodies(self, direction: Direction = "response") -> dict[str, Any]:
        """Every answer of the operation: the good one, and the problems by status."""
        good = {str(self.operation.status): self._good(direction)}
        self.registry.register_on_missing(PROBLEM)
        return good | {str(status): _problem(kinds) for status, kinds in self._problems().items()}

    def _good(self, direction: Direction) -> dict[str, Any]:
        if self.operation.answer is None:
            return {"description": "Done."}
        component = self.resolve_serializer(self.operation.answer, direction)
        schema = _page_of(component.ref) if self.operation.listed else component.ref
        return {"description": "", "content": {"application/json": {"schema": schema}}}

    def _problems(self) -> dict[int, list[type[Problem]]]:
        found: dict[int, list[type[Problem]]] = {}
        for kind in [*self._usual_problems(), *self.operation.problems]:
            found.setdefault(kind.status, []).append(kind)
        return dict(sorted(found.items()))

    def _usual_problems(self) -> list[type[Problem]]:
        usual: list[type[Problem]] = [problems.BadRequest, problems.Unprocessable, problems.TooLarge]
        usual += [problems.Unsupported]
        if permissions.ANYONE not in self.operation.who:
            usual += [problems.NotSignedIn]
        usual += auth.REFUSALS
        usual += permissions.refusals(who=self.operation.who, is_change=self.method != "GET")
        if "{" in self.path or self.operation.body is not None:
            usual += [problems.NotFound]
        return usual


class AnyObject(OpenApiSerializerFieldExtension):
    """A document is an object, whatever a rule of its own says of the inside."""

    target_class = "hub.core.fields.Document"
    match_subclasses = True

    def map_serializer_field(self, auto_schema: AutoSchema, direction: str) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": {}}


class ExactBody(OpenApiSerializerExtension):
    """What the hub reads has no keys but those that are written down."""

    target_class = "hub.core.fields.Body"
    match_subclasses = True

    def map_serializer(self, auto_schema: AutoSchema, direction: str) -> dict[str, Any]:
        own_words = self.target.__doc__ if "__doc__" in vars(type(self.target)) else None
        schema: dict[str, Any] = auto_schema._map_serializer(  # noqa: SLF001 - the documented way
            self.target, direction, bypass_extensions=True
        )
        if not own_words:
            schema.pop("description", None)  # a base class's docstring is not about this body
        return {**schema, "additionalProperties": False}


def _scheme(name: str, definition: dict[str, str]) -> ResolvedComponent:
    return ResolvedComponent(
        name=name, type=ResolvedComponent.SECURITY_SCHEMA, schema=definition, object=name
    )


def _without_bounds(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_bounds(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {name: _without_bounds(value) for name, value in schema.items() if name not in BOUNDS}


def _page_of(item: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["items", "next"],
        "properties": {"items": {"type": "array", "items": item}, "next": {"type": ["string", "null"]}},
    }


def _problem(kinds: list[type[Problem]]) -> dict[str, Any]:
    return {
        "description": " · ".join(kind.title for kind in kinds),
        "content": {problems.CONTENT_TYPE: {"schema": PROBLEM.ref}},
        "x-problems": [kind.slug for kind in kinds],
    }
