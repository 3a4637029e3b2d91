from django.urls import URLPattern, URLResolver, include, path

from hub.accounts.views import api_docs, openapi_json
from hub.core import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", views.healthz),
    path("api/v1/openapi.json", openapi_json),
    path("api/docs", api_docs, name="api-docs"),
    path("", include("hub.web.urls")),
    path("api/v1/", include("hub.accounts.urls")),
    path("api/v1/", include("hub.storage.urls")),
    path("api/v1/", include("hub.campaigns.urls")),
    path("", include("devices.urls")),
    path("", include("trials.urls")),
]

handler400 = "hub.core.views.bad_request"
handler403 = "hub.core.views.permission_denied"
handler404 = "hub.core.views.page_not_found"
handler500 = "hub.core.views.server_error"
