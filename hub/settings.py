"""The only file of the hub that reads the environment. Every value has a working default."""

import os
import secrets
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dj_database_url

KIB, MIB, GIB = 2**10, 2**20, 2**30


def _data_folder() -> Path:
    """HUB_DATA, else the place XDG keeps for a program's state; never the checkout."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(os.environ.get("HUB_DATA") or Path(state) / "trial-hub")


def _kept_secret(path: Path) -> str:
    """Read a secret that only this user may read, or make it once."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text().strip()
    with os.fdopen(handle, "w") as file:
        file.write(made := secrets.token_urlsafe(50))
    return made


def _origins(value: str) -> list[str]:
    return [origin.strip().rstrip("/") for origin in value.split(",") if origin.strip()]


# Where it lives, and what it is called from outside
HUB_DATA = _data_folder()
SECRET_KEY = os.environ.get("SECRET_KEY") or _kept_secret(HUB_DATA / "secret-key")
HUB_KEY_FILE = Path(os.environ.get("HUB_KEY_FILE") or HUB_DATA / "hub.key")
PUBLIC_ORIGIN = os.environ.get("PUBLIC_ORIGIN", "http://127.0.0.1:8000").rstrip("/")
DEVICE_ORIGINS = _origins(os.environ.get("DEVICE_ORIGINS", "")) or [PUBLIC_ORIGIN]
PROBLEM_BASE = "/problems/"
DEBUG = False

_HTTPS = PUBLIC_ORIGIN.startswith("https://")
ALLOWED_HOSTS = sorted({urlsplit(origin).hostname or "" for origin in [PUBLIC_ORIGIN, *DEVICE_ORIGINS]})

# The database, the cache, the queue
DATABASE_URL = os.environ.get("DATABASE_URL", "")
REDIS_URL = os.environ.get("REDIS_URL", "")

_SQLITE: dict[str, Any] = {
    "ENGINE": "django.db.backends.sqlite3",
    "NAME": HUB_DATA / "hub.sqlite3",
    "OPTIONS": {
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL;PRAGMA synchronous=FULL;",
        "timeout": 20,
    },
}
_POSTGRESQL: Any = DATABASE_URL and dj_database_url.parse(
    DATABASE_URL, conn_max_age=600, conn_health_checks=True
)
DATABASES = {"default": _POSTGRESQL or _SQLITE}

_DATABASE_CACHE = {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "hub_cache"}
_REDIS_CACHE = {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}
CACHES = {"default": _REDIS_CACHE if REDIS_URL else _DATABASE_CACHE}

# Object storage: any S3. With no endpoint given, the hub starts one of its own (hub/storage/local.py)
S3_ENDPOINT = os.environ.get("S3_ENDPOINT", "").rstrip("/")
S3_PUBLIC_ENDPOINT = os.environ.get("S3_PUBLIC_ENDPOINT", "").rstrip("/") or S3_ENDPOINT
S3_BUCKET = os.environ.get("S3_BUCKET", "trial-hub")
S3_REGION = os.environ.get("S3_REGION", "us-east-1")
S3_ACCESS_KEY = os.environ.get("S3_ACCESS_KEY", "")
S3_SECRET_KEY = os.environ.get("S3_SECRET_KEY", "")
# Some stores know no conditional PUT. Then a presigned URL works twice; what counts is the hub's own copy.
S3_IF_NONE_MATCH = os.environ.get("S3_IF_NONE_MATCH", "1") == "1"

# Caps: every one has a test one above and one below
BODY_BYTES = 1 * MIB
LOG_BYTES = 256 * MIB
CHECKPOINT_BYTES = 256 * MIB
LOG_FILES = 32
STORAGE_QUOTA_BYTES = int(os.environ.get("STORAGE_QUOTA_BYTES", 50 * GIB))
PRESIGN_FOR = timedelta(hours=1)
RESERVATION_SLACK = timedelta(minutes=15)  # a PUT that began in time may still be under way
APPROVAL_REQUEST_FOR = timedelta(days=float(os.environ.get("APPROVAL_REQUEST_DAYS", "7")))
TOKEN_FOR = timedelta(hours=float(os.environ.get("TOKEN_HOURS", "12")))
RECENT_SIGN_IN = timedelta(hours=float(os.environ.get("RECENT_SIGN_IN_HOURS", "12")))
ORPHAN_AFTER = timedelta(days=1)  # by then no upload is under way any more
ENROLMENT_FOR = timedelta(minutes=15)
ENROLMENT_TRIES = 5
NO_WORD_AFTER = timedelta(seconds=30)
DEVICE_SEEN_NOTED_EVERY = timedelta(seconds=5)
DEVICE_CONTRACTS = 100
OWNER_LINK_FOR = timedelta(hours=24)
KEY_USE_NOTED_EVERY = timedelta(minutes=1)
API_KEYS_PER_ACCOUNT = 50
PAGE_DEFAULT, PAGE_MAX = 50, 100
TEXT_CHARS = 4000
SESSION_CANDIDATES = 50
JOB_LEASE = timedelta(seconds=60)
JOB_ATTEMPTS = 5
JOBS_KEPT_FOR = timedelta(days=7)

# Django
ROOT_URLCONF = "hub.urls"
WSGI_APPLICATION = "hub.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_USER_MODEL = "accounts.User"
APPEND_SLASH = False
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "hub.audit",
    "hub.accounts",
    "hub.jobs",
    "hub.storage",
    "hub.campaigns",
    "devices",
    "trials",
    "hub.web",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "hub.core.middleware.content_security_policy",
    "hub.core.middleware.plain_session_cookie",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
STATIC_URL = "/static/"
WHITENOISE_USE_FINDERS = True  # one machine serves its files from the packages; no collectstatic to forget
LOGIN_URL = "/sign-in"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/sign-in"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}", "OPTIONS": options}
    for name, options in {
        "MinimumLengthValidator": {"min_length": 10},
        "CommonPasswordValidator": {},
        "UserAttributeSimilarityValidator": {"user_attributes": ["email", "name"]},
    }.items()
]
SESSION_COOKIE_NAME = "hub_session"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _HTTPS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
CSRF_TRUSTED_ORIGINS = [PUBLIC_ORIGIN]
CSRF_FAILURE_VIEW = "hub.core.views.csrf_failure"
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if _HTTPS else 0
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
DATA_UPLOAD_MAX_MEMORY_SIZE = BODY_BYTES

# The API
REST_FRAMEWORK = {
    "EXCEPTION_HANDLER": "hub.core.problems.handle",
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["hub.core.parsers.StrictJSON"],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_SCHEMA_CLASS": "hub.accounts.openapi.HubSchema",
    "UNAUTHENTICATED_USER": None,
    "DEFAULT_VERSIONING_CLASS": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Robot Trial Hub",
    "DESCRIPTION": "Plan, consent to, run and judge trials of learned policies on real robots.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "POSTPROCESSING_HOOKS": [],  # choices stand where they are used; no names are made up for them
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": "INFO"},
}
