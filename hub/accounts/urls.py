from django.urls import path

from hub.accounts import views

urlpatterns = [
    path("me", views.Me.as_view()),
    path("api-keys", views.ApiKeys.as_view()),
    path("api-keys/<str:key_id>", views.ApiKeyView.as_view()),
    path("activity", views.Activity.as_view()),
]
