from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from driver.wire import base64url
from hub.accounts.models import ApiKey
from hub.core import paging
from hub.core.problems import Unprocessable
from tests import factories


def walk(client, limit):
    seen, cursor = [], ""
    while cursor is not None:
        page = client.get(f"/api/v1/api-keys?limit={limit}&cursor={cursor}").json()
        seen.append([item["id"] for item in page["items"]])
        cursor = page["next"]
    return seen


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 100])
def test_pages_show_everything_once_newest_first(ana, limit):
    keys = [factories.api_key(ana).key.pk for _ in range(4)]

    pages = walk(factories.client(ana), limit)

    assert [pk for page in pages for pk in page] == keys[::-1]
    assert all(len(page) == limit for page in pages[:-1])


def test_what_comes_meanwhile_neither_repeats_nor_hides_anything(ana):
    keys = [factories.api_key(ana).key.pk for _ in range(3)]
    client = factories.client(ana)
    first = client.get("/api/v1/api-keys?limit=2").json()
    factories.api_key(ana)

    second = client.get(f"/api/v1/api-keys?limit=2&cursor={first['next']}").json()

    assert [item["id"] for item in first["items"] + second["items"]] == keys[::-1]


def test_a_page_takes_one_query(ana, django_assert_num_queries):
    for _ in range(3):
        factories.api_key(ana)
    visible = ApiKey.objects.visible_to(factories.actor(ana))

    with django_assert_num_queries(1):
        items, _ = paging.page(visible, Request(APIRequestFactory().get("/")))

    assert len(items) == 3


@given(st.one_of(st.text(max_size=60), st.binary(max_size=40).map(base64url.encode)))
def test_any_cursor_is_read_or_refused_and_never_a_fault(cursor):
    request = Request(APIRequestFactory().get("/", {"cursor": cursor}))
    with suppress(Unprocessable):
        paging.page(ApiKey.objects.none(), request)
