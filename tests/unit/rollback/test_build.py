"""The objects of a Rollback, and in which order it and its namespace are marked for admission."""

from datetime import UTC, datetime, timedelta
from typing import Any

from foresail.api.core import NAMESPACE
from foresail.api.marks import ROLLBACK_FINALIZER, ROLLBACK_IN_PROGRESS
from foresail.api.rollback import ROLLBACK, RollbackSpec, RollbackStatus
from foresail.plan import Key, Patch
from foresail.rollback.build import held, restore, undo
from foresail.rollback.view import RollbackRow, RollbackView
from foresail.tenancy.namespaces import NamespaceRow

NOON = datetime(2026, 11, 19, 12, tzinfo=UTC)
NEW = RollbackRow(Key("shop", "back"), "u", "1", 1, NOON, RollbackSpec(to="daily"), RollbackStatus(), written=NOON)
MARKED = RollbackRow(
    Key("shop", "back"), "u", "2", 1, NOON, RollbackSpec(to="daily"), RollbackStatus(),
    finalizers=(ROLLBACK_FINALIZER,), is_labelled=True, written=NOON + timedelta(seconds=1),
)  # fmt: skip


def view(row: RollbackRow, **labels: str) -> RollbackView:
    return RollbackView(row, NamespaceRow("n", labels, is_terminating=False), policy=None)


def test_an_undo_gives_services_their_node_ports_back() -> None:
    bodies: list[Any] = [undo(MARKED, 1, ()).body, restore(MARKED, ()).body]
    assert [body["spec"]["restoreSpec"].get("preserveNodePorts") for body in bodies] == [True, None]


def test_the_namespace_is_labelled_once_admission_can_have_seen_the_rollback() -> None:
    first = held(view(NEW), NOON + timedelta(seconds=1))
    assert first is not None
    (marks,) = first.actions
    assert isinstance(marks, Patch)
    assert marks.kind == ROLLBACK
    early = held(view(MARKED), NOON + timedelta(seconds=2))
    assert early is not None
    assert (early.actions, early.wake_at) == ((), NOON + timedelta(seconds=3))
    then = held(view(MARKED), NOON + timedelta(seconds=3))
    assert then is not None
    (label,) = then.actions
    assert isinstance(label, Patch)
    assert label.kind == NAMESPACE
    assert held(view(MARKED, **{ROLLBACK_IN_PROGRESS: "true"}), NOON + timedelta(seconds=3)) is None
