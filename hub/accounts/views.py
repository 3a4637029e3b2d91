from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from rest_framework.request import Request
from rest_framework.response import Response

from hub.accounts import openapi, services
from hub.accounts.api import HubView, operation
from hub.accounts.models import Account, ApiKey
from hub.accounts.serializers import (
    ActivityAnswer,
    ActivityQuery,
    ApiKeyAnswer,
    CreateApiKey,
    MeAnswer,
    NewKeyAnswer,
    me,
)
from hub.audit.models import Event
from hub.core.problems import Unprocessable


class Me(HubView):
    @operation("getMe", who="SR", answer=MeAnswer)
    def get(self, request: Request) -> Response:
        """Who I am, and the accounts I speak for."""
        return self.answer(me(self.by))


class ApiKeys(HubView):
    @operation("listApiKeys", who="S", answer=ApiKeyAnswer, listed=True)
    def get(self, request: Request) -> Response:
        """The API keys of my accounts."""
        self.query()
        return self.page(ApiKey.objects.visible_to(self.by))

    @operation(
        "createApiKey",
        who="S",
        body=CreateApiKey,
        answer=NewKeyAnswer,
        status=201,
        problems=[services.TooManyKeys],
    )
    def post(self, request: Request) -> Response:
        """Make an API key. Its secret is shown this once."""
        body = self.body()
        account = self._account(body.pop("account", None))
        new = services.create_api_key(
            account=account,
            name=body["name"],
            scopes=body["scopes"],
            expires_at=body.get("expires_at"),
            by=self.by,
            at=self.at,
        )
        return self.answer(new)

    def _account(self, pk: str | None) -> Account:
        if pk is not None:
            return self.find(self.by.accounts(), pk)
        if self.by.user is None:
            raise Unprocessable(errors={"account": ["Name the account."]})
        return self.by.user.account


class ApiKeyView(HubView):
    @operation("revokeApiKey", who="S", status=204)
    def delete(self, request: Request, key_id: str) -> Response:
        """End an API key, at once and for good."""
        key = self.find(ApiKey.objects.visible_to(self.by), key_id)
        services.revoke_api_key(key=key, by=self.by, at=self.at)
        return self.answer()


class Activity(HubView):
    @operation("listActivity", who="SR", answer=ActivityAnswer, query=ActivityQuery, listed=True)
    def get(self, request: Request) -> Response:
        """What was done for the accounts I speak for, in sentences."""
        events = Event.objects.filter(account_id__in=self.by.accounts().values("pk"))
        return self.page(events.filter(**self.query()))


def openapi_json(request: HttpRequest) -> JsonResponse:
    """The document that clients are generated from."""
    return JsonResponse(openapi.document())


def api_docs(request: HttpRequest) -> HttpResponse:
    """The operations of the API on one plain page."""
    operations = [
        {
            "id": operation["operationId"],
            "method": method.upper(),
            "path": path,
            "who": operation["x-who"],
            "summary": operation.get("summary", ""),
        }
        for path, methods in openapi.document()["paths"].items()
        for method, operation in methods.items()
    ]
    return render(request, "accounts/api_docs.html", {"operations": operations})
