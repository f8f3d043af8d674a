"""The pages of the in-cluster console for viewers without a token, and without a namespace."""

from foresail.console.web.markup import Html, document, element

_PROXIES = {
    "Authorization": "oauth2-proxy: --pass-authorization-header, with an issuer whose tokens the API server accepts",
    "X-Forwarded-Access-Token": "OpenShift's oauth-proxy or oauth2-proxy: --pass-access-token",
}


def no_token(header: str) -> Html:
    """Return how to set the console up: the only page without a token."""
    form = "Bearer TOKEN" if header == "Authorization" else "TOKEN"
    steps = (
        "Put an authenticating proxy in front of this console, and let nobody reach the console except through it.",
        f"Let it pass the token of the user in one header: {header}: {form}",
        f"Such as {_PROXIES[header]}.",
        "The API server must accept this token: kubectl --token=TOKEN auth whoami shows as whom.",
    )
    return _page(
        "This console needs your token",
        element("p", "Your request has no bearer token. The console has no rights of its own, so it can show nothing."),
        element("ol", *(element("li", step) for step in steps)),
        element("p", "The steps are in docs/how-to/console.md."),
    )


def choose_namespace(path: str, refused: str = "") -> Html:
    """Return a form that asks for the namespace of a viewer who may not read the whole cluster."""
    note = f"You may not list the backups and schedules of namespace {refused}." if refused else ""
    return _page(
        "Choose your namespace",
        element("p", note) if note else None,
        element(
            "form",
            element("label", "Namespace ", for_="namespace"),
            element("input", id="namespace", name="namespace", required=True, maxlength=63),
            " ",
            element("button", "Open", type="submit"),
            method="get",
            action=path,
        ),
    )


def _page(title: str, *children: Html | None) -> Html:
    return document(f"{title} · Foresail", (), (element("main", element("h1", title), *children),))
