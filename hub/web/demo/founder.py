"""The demo's founder: a person in a web session, speaking to the hub as a browser would."""

from pathlib import Path
from typing import Any, Self

import httpx

API = "/api/v1"


class DemoError(Exception):
    """A step did not hold; the message is for a person."""


class Founder:
    """Signs in through a one-time link and calls the API with cookie and CSRF token."""

    def __init__(self, origin: str) -> None:
        self._http = httpx.Client(base_url=origin, timeout=60, headers={"Origin": origin})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def arrive(self, link: str, *, name: str, email: str, password: str) -> None:
        """Take the first owner's one-time link: say who one is, choose a password."""
        self._send_form(link, {"name": name, "email": email, "password": password, "again": password})

    def sign_in(self, *, email: str, password: str) -> None:
        self._send_form("/sign-in", {"username": email, "password": password})

    def get(self, path: str, **query: str) -> dict[str, Any]:
        return self._said(self._http.get(API + path, params=query))

    def post(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        headers = {"X-CSRFToken": self._http.cookies["csrftoken"]}
        return self._said(self._http.post(API + path, json={} if body is None else body, headers=headers))

    def page(self, path: str) -> str:
        """A page as a browser gets it."""
        answer = self._http.get(path)
        if answer.is_error:
            raise DemoError(f"GET {path} answered {answer.status_code}.")
        return answer.text

    def put_file(self, upload: dict[str, Any], file: Path) -> None:
        """Send a file to object storage, by the URL and with the headers that the hub signed."""
        answer = httpx.put(upload["url"], headers=upload["headers"], content=file.read_bytes(), timeout=60)
        if answer.is_error:
            raise DemoError(
                f"Object storage answered {answer.status_code} to {file.name}: {answer.text[:300]}"
            )

    def _send_form(self, path: str, form: dict[str, str]) -> None:
        self._http.get(path).raise_for_status()
        token = self._http.cookies["csrftoken"]
        page = self._http.post(path, data={**form, "csrfmiddlewaretoken": token})
        if page.status_code != 302:
            raise DemoError(f"The form at {path} was answered with {page.status_code}.")

    @staticmethod
    def _said(answer: httpx.Response) -> dict[str, Any]:
        if answer.is_error:
            raise DemoError(f"{answer.request.method} {answer.request.url.path}: {answer.text[:1000]}")
        said: dict[str, Any] = answer.json()
        return said
