"""A stolen token succeeds with what the API server admits and the docs do not list."""

import json
from typing import Any, cast

import pytest

from testbed.api import Answer
from tests.redteam.attack import Attack
from tests.redteam.modules import PARTS, STOLEN_TOKENS
from tests.redteam.stolen_tokens import Robbed
from tests.stolen_token.__main__ import TOKENS, documented, listed_in


class Thief:
    """Whom the API server answers each write alike."""

    def __init__(self, code: int) -> None:
        self._code = code

    def send(self, _method: str, _target: str, body: object, _sort: str) -> Answer:
        return Answer(self._code, json.dumps(body))


def robbed(code: int) -> Any:  # noqa: ANN401 - it stands for a world
    return Robbed(cast("Any", None), dict.fromkeys(TOKENS, cast("Any", Thief(code))))


def attacks() -> list[Attack]:
    (part,) = [part for part in PARTS if part.name == STOLEN_TOKENS]
    return part.attacks()


def test_what_is_admitted_and_not_documented_succeeds() -> None:
    listed = listed_in(documented())
    assert listed
    known = {one.name for one in attacks() if not one.act(robbed(201))}
    assert known <= {f"{line}{number}" for line in listed for number in ("", " (2)", " (3)")}
    assert len(known) < len(attacks()) / 2


def test_what_is_refused_fails_and_an_answer_that_proves_nothing_is_an_error() -> None:
    first = attacks()[0]
    assert first.act(robbed(403)) == []
    with pytest.raises(RuntimeError, match="503"):
        first.act(robbed(503))
