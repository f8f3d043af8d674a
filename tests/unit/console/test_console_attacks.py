"""Attacks on the console by kinds, against a canned API server; `make test-console` has the same on a real cluster."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.console.attacks import KINDS, Found, as_deputy
from tests.unit.console.test_console import Browser, browse, everything
from tests.unit.console.test_report import REVIEWS

FORBIDDEN = {"kind": "Status", "reason": "Forbidden", "message": "not for you", "code": 403}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_attack_of_a_kind_succeeds(tmp_path: Path, kind: Callable[[Browser], AsyncIterator[Found]]) -> None:
    async def walk(browser: Browser) -> list[Found]:
        await browser.sign_in()
        found = [each async for each in kind(browser)]
        assert browser.changes == []
        return found

    found = browse(tmp_path, walk)
    assert len(found) > 10
    assert [name for name, is_success in found if is_success] == []


class Guarded(dict[str, Any]):
    """An API server that refuses everything of other namespaces, as RBAC does."""

    def __contains__(self, path: object) -> bool:
        return _is_foreign(str(path)) or super().__contains__(path)

    def get(self, path: str, default: Any = None) -> Any:  # noqa: ANN401
        return FORBIDDEN if _is_foreign(path) else super().get(path, default)


def _is_foreign(path: str) -> bool:
    others = ("/namespaces/bank", "/namespaces/velero", "/protectionclasses")
    return any(other in path for other in others) or path.endswith("/restorechecks")


def test_no_form_reaches_another_namespace(tmp_path: Path) -> None:
    def review(_: str, sent: dict[str, Any]) -> dict[str, Any]:
        return {"status": {"allowed": sent["spec"]["resourceAttributes"]["namespace"] == "shop"}}

    async def walk(browser: Browser) -> list[Found]:
        await browser.sign_in()
        own = [is_success async for _, is_success in as_deputy(browser, ("shop",))]
        assert any(own), "where the viewer may, the same forms work"
        return [each async for each in as_deputy(browser, ("bank",))]

    found = browse(tmp_path, walk, Guarded({**everything(), REVIEWS: review}))
    assert len(found) > 15
    assert [name for name, is_success in found if is_success] == []
