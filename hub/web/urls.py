from django.urls import path

from hub.web import pages

urlpatterns = [
    path("sign-in", pages.SignIn.as_view(), name="sign-in"),
    path("sign-out", pages.SignOut.as_view(), name="sign-out"),
    path("welcome/<str:secret>", pages.welcome, name="welcome"),
]
