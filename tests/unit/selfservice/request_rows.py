"""Rows of requests as tests need them."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from foresail.plan import Key
from foresail.selfservice.rows.requests import RequestRow, Status

NOW = datetime(2026, 1, 1, tzinfo=UTC)
_NEW = RequestRow(
    key=Key("red", "shop"),
    uid="7b7c",
    version="1",
    generation=1,
    created=NOW,
    is_terminating=False,
    finalizer_index=-1,
    has_others_finalizers=False,
    is_to_be_deleted=False,
    is_to_be_forced=False,
    source="",
    spec="{}",
    status=Status(),
)


def new_request(**changes: Any) -> RequestRow:  # noqa: ANN401 - any field
    """Return a new request with some fields changed."""
    return msgspec.structs.replace(_NEW, **changes)
