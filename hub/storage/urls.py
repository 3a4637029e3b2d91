from django.urls import path

from hub.storage import views

urlpatterns = [path("storage", views.Storage.as_view())]
