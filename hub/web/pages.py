"""Signing in and out, and the one-time link through which the first owner arrives."""

from django import forms
from django.contrib.auth import login
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from hub.accounts import services
from hub.accounts.models import User, normal_email
from hub.core.problems import Problem


class SignInForm(AuthenticationForm):
    error_messages = {
        "invalid_login": "That e-mail and password do not belong together.",
        "inactive": "This account is closed.",
    }

    def clean_username(self) -> str:
        return normal_email(self.cleaned_data["username"])


class SignIn(LoginView):
    template_name = "web/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = False  # signing in again makes the sign-in recent


class SignOut(LogoutView):
    http_method_names = ["post", "options"]


class PasswordForm(forms.Form):
    password = forms.CharField(strip=False)
    again = forms.CharField(strip=False)

    def clean_again(self) -> str:
        if self.cleaned_data["again"] != self.cleaned_data.get("password"):
            raise forms.ValidationError("The two passwords differ.")
        return str(self.cleaned_data["again"])


class FirstOwnerForm(PasswordForm):
    name = forms.CharField(max_length=100)
    email = forms.EmailField()


@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def welcome(request: HttpRequest, secret: str) -> HttpResponse:
    """A one-time link: choose a password, the first owner also a name, and be signed in."""
    try:
        link = services.find_owner_link(secret, at=timezone.now())
    except services.LinkSpent as refusal:
        return render(request, "web/refused.html", {"problem": refusal}, status=refusal.status)
    form = (PasswordForm if link.user else FirstOwnerForm)(request.POST or None)
    if form.is_valid() and (arrived := _arrive(form, secret)):
        login(request, arrived)
        return redirect("/")
    return render(
        request, "web/welcome.html", {"form": form, "link": link}, status=422 if form.is_bound else 200
    )


def _arrive(form: PasswordForm, secret: str) -> User | None:
    said = form.cleaned_data
    try:
        return services.use_owner_link(
            secret=secret,
            email=said["email"],
            name=said["name"],
            password=said["password"],
            at=timezone.now(),
        )
    except Problem as refusal:
        errors = refusal.members.get("errors")
        for field, sentences in errors.items() if isinstance(errors, dict) else [(None, [str(refusal)])]:
            form.add_error(field, sentences)
        return None
