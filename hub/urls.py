from django.urls import URLPattern, URLResolver, path

from hub.core import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", views.healthz),
]

handler400 = "hub.core.views.bad_request"
handler403 = "hub.core.views.permission_denied"
handler404 = "hub.core.views.page_not_found"
handler500 = "hub.core.views.server_error"
