"""
The hub's settings, as the tests run it: on services of their own, which start when a test needs them.

DATABASE_URL, REDIS_URL and S3_ENDPOINT, where they are given, are used instead.
"""

import os

from tests import services

os.environ.setdefault("DATABASE_URL", services.postgres_url())
os.environ["HUB_DATA"] = str(services.data_folder())
GIVEN_REDIS_URL = os.environ.pop("REDIS_URL", "") or os.environ.get("HUB_TEST_REDIS_URL", "")
os.environ["HUB_TEST_REDIS_URL"] = GIVEN_REDIS_URL  # a worker of a parallel run finds it here

from hub.settings import *  # noqa: E402, F403
from hub.settings import REST_FRAMEWORK  # noqa: E402

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
REST_FRAMEWORK = {**REST_FRAMEWORK, "TEST_REQUEST_DEFAULT_FORMAT": "json"}
