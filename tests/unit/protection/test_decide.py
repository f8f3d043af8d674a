"""Who is in which Schedule: never without one, never twice in one class, and nothing is written twice."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.api.protection import ProtectionClassStatus
from foresail.plan import Create, Delete, Patch
from foresail.protection.decide import decide_assignment, decide_class
from foresail.protection.rows import BackupRow
from foresail.protection.view import AssignmentView, ClassView
from tests.unit.protection.model import Model
from tests.unit.protection.rows import DAY, NOON, backup, classes, namespace, protection_class, schedule

GONE = {"asked": "none", "reason": "it is gone soon", "until": "2027-01-01"}


def model(*names: str, asked: str = "gold") -> Model:
    found = Model({name: namespace(name, asked) for name in names})
    for of in ("gold", "silver"):
        found.classes[of] = protection_class(of, namespacesPerBackup=2)
    found.settle()
    return found


def ask(found: Model, name: str, asked: str) -> None:
    found.namespaces[name] = msgspec.structs.replace(found.namespaces[name], asked=asked)


def test_namespaces_of_a_class_are_in_its_schedules_and_then_nothing_is_written() -> None:
    found = model("a", "b", "c")
    assert {row.name: row.members for row in found.schedules.values()} == {"gold-1": ("a", "b"), "gold-2": ("c",)}
    assert found.settle() == 0


def test_a_namespace_that_comes_or_goes_is_one_write() -> None:
    found = model("a", "b", "c")
    found.namespaces["d"] = namespace("d")
    assert found.settle() == 1
    found.delete_namespace("a")
    assert found.settle() == 1
    assert found.faults == []


def test_a_namespace_that_changes_its_class_stays_in_the_old_schedule_until_the_new_one_has_a_good_backup() -> None:
    found = model("a", "b")
    ask(found, "a", "silver")
    found.settle()
    assert found.place("a") == {"gold-1", "silver-1"}
    for phase in ("Failed", "PartiallyFailed", "InProgress"):
        found.run("silver-1", phase)
        assert found.settle() == 0
    found.run("silver-1", "Completed")
    assert found.settle() == 1
    assert found.place("a") == {"silver-1"}
    assert found.place("b") == {"gold-1"}


def test_who_comes_back_before_the_other_class_has_a_backup_was_never_away() -> None:
    found = model("a")
    found.run("gold-1", "Completed")
    ask(found, "a", "silver")
    found.settle()
    ask(found, "a", "gold")
    found.settle()
    assert found.place("a") == {"gold-1"}
    assert found.faults == []


@pytest.mark.parametrize("asked", ["", "glod", "none"])
def test_a_label_that_is_gone_or_wrong_takes_no_namespace_out_of_its_schedule(asked: str) -> None:
    found = model("a")
    ask(found, "a", asked)
    assert found.settle() == 0
    assert found.place("a") == {"gold-1"}


def test_a_class_that_is_deleted_leaves_its_schedules() -> None:
    found = model("a", "b")
    del found.classes["gold"]
    assert found.settle() == 0
    ask(found, "a", "silver")
    found.settle()
    found.run("silver-1", "Completed")
    found.settle()
    assert found.place("a") == {"silver-1"}
    assert found.place("b") == {"gold-1"}


def test_an_exempt_namespace_leaves_at_once_and_comes_back_when_its_exemption_ends() -> None:
    found = model("a")
    found.namespaces["a"] = namespace("a", **GONE)
    assert found.settle() == 1
    assert found.schedules == {}
    found.classes["gold"] = protection_class(default=True)
    assert decide_assignment(found.view(), found.now).wake_at == NOON.replace(2027, 1, 1, 23, 59, 59)
    found.now = NOON.replace(year=2028)
    found.settle()
    assert found.place("a") == {"gold-1"}


def test_a_class_that_cannot_be_used_keeps_its_schedules_as_they_are() -> None:
    found = model("a")
    found.classes["gold"] = protection_class(schedule="no expression")
    found.namespaces["b"] = namespace("b")
    found.settle()
    assert found.schedules["gold-1"].text == "0 1 * * *"
    assert found.place("b") == {"gold-1"}
    found.namespaces.update({name: namespace(name) for name in map(str, range(30))})
    found.settle()
    assert list(found.schedules) == ["gold-1"]


def test_an_edit_of_a_class_reaches_its_schedules_and_a_pause_stays() -> None:
    found = model("a")
    found.schedules["gold-1"] = msgspec.structs.replace(found.schedules["gold-1"], paused=True)
    found.classes["gold"] = protection_class(schedule="0 2 * * *", template={"ttl": "24h"}, schedulePolicy="nights")
    assert found.settle() == 1
    row = found.schedules["gold-1"]
    assert row.text == "0 2 * * *"
    assert msgspec.json.decode(row.template) == {"ttl": "24h", "includedNamespaces": ["a"]}
    assert row.labels["foresail.dev/schedule-policy"] == "nights"
    found.classes["gold"] = protection_class()
    found.settle()
    assert msgspec.json.decode(found.schedules["gold-1"].template) == {"includedNamespaces": ["a"]}
    assert "foresail.dev/schedule-policy" not in found.schedules["gold-1"].labels


@pytest.mark.parametrize(
    "template",
    [
        b'{"includedNamespaces":["*"]}',
        b"{}",
        b'{"includedNamespaces":["a","stranger"]}',
        b'{"includedNamespaces":["a"],"excludedNamespaces":["a"],"hooks":{}}',
    ],
)
def test_what_somebody_else_writes_into_a_schedule_is_put_back(template: bytes) -> None:
    found = model("a")
    members = tuple(msgspec.json.decode(template).get("includedNamespaces", ()))
    row = msgspec.structs.replace(found.schedules["gold-1"], template=template, members=members)
    found.schedules["gold-1"] = row
    found.settle()
    rows = [msgspec.json.decode(each.template) for each in found.schedules.values()]
    assert rows == [{"includedNamespaces": ["a"]}]


def test_schedules_of_others_are_left_alone_and_keep_their_names() -> None:
    found = Model({"a": namespace("a")}, {"gold": protection_class()})
    found.schedules["gold-1"] = schedule("gold-1", of="", members=(), labels={})
    (action,) = decide_assignment(found.view(), NOON).actions
    assert isinstance(action, Create)
    assert action.key.name == "gold-2"


def test_nothing_is_decided_for_a_class_that_waits_or_of_which_something_cannot_be_read() -> None:
    found = Model({"a": namespace("a")}, {"gold": protection_class()})
    view = found.view()
    later = NOON + DAY
    held = decide_assignment(msgspec.structs.replace(view, held={"gold": later}), NOON)
    assert held.actions == ()
    assert held.wake_at == later
    assert decide_assignment(msgspec.structs.replace(view, unread=frozenset({"gold"})), NOON).actions == ()
    assert decide_assignment(msgspec.structs.replace(view, classes=classes(unread={"gold": "x"})), NOON).actions == ()


def test_a_namespace_that_cannot_be_read_is_not_taken_for_a_deleted_one() -> None:
    found = model("a", "b")
    del found.namespaces["a"]
    view = msgspec.structs.replace(found.view(), unread_namespaces=frozenset({"a"}))
    assert decide_assignment(view, NOON).actions == ()


def test_a_terminating_namespace_comes_into_no_schedule_and_stays_in_the_one_that_it_is_in() -> None:
    found = model("a")
    for name in ("a", "b"):
        found.namespaces[name] = namespace(name, is_terminating=True)
    assert found.settle() == 0
    assert found.place("a") == {"gold-1"}


def test_the_status_of_a_class_is_written_once() -> None:
    row = protection_class()
    view = ClassView(row, classes(row), 3, (schedule("gold-1", "a"),))
    patch = decide_class(view, NOON).status
    assert isinstance(patch, Patch)
    status = msgspec.convert(patch.body["status"], ProtectionClassStatus)
    assert (status.namespaces, status.schedules, status.conditions[0].status) == (3, 1, "True")
    known = msgspec.structs.replace(view, row=msgspec.structs.replace(row, status=status))
    assert decide_class(known, NOON + DAY).status is None


NAMES = st.sampled_from("abcde")
ASKED = st.sampled_from(("gold", "silver", "", "glod", "none"))
CHANGES = st.one_of(
    st.tuples(st.just("ask"), NAMES, ASKED),
    st.tuples(st.just("exempt"), NAMES, st.just("")),
    st.tuples(st.just("delete"), NAMES, st.just("")),
    st.tuples(st.just("class"), st.sampled_from(("gold", "silver")), st.sampled_from(("1", "2", "20", "default", ""))),
    st.tuples(st.just("run"), st.integers(0, 5), st.sampled_from(("Completed", "Failed", "PartiallyFailed"))),
)


def change(found: Model, what: str, name: object, word: str, number: int) -> None:
    match what:
        case "ask":
            known = found.namespaces.get(str(name)) or namespace(str(name), uid=f"uid-{number}")
            found.namespaces[str(name)] = msgspec.structs.replace(known, asked=word, reason="", until="")
        case "exempt" if str(name) in found.namespaces:
            known = found.namespaces[str(name)]
            found.namespaces[str(name)] = msgspec.structs.replace(known, **GONE)
        case "delete":
            found.delete_namespace(str(name))
        case "class" if word:
            spec = {"default": True} if word == "default" else {"namespacesPerBackup": int(word)}
            found.classes[str(name)] = protection_class(str(name), **spec)
        case "class":
            found.classes.pop(str(name), None)
        case "run" if found.schedules:
            rows = sorted(found.schedules)
            found.run(rows[int(str(name)) % len(rows)], word)
        case _:
            pass


@pytest.mark.repeats
@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(CHANGES, st.integers(0, 4)), min_size=1, max_size=25))
def test_no_history_leaves_a_namespace_without_a_schedule_or_twice_in_a_class(
    changes: list[tuple[tuple[str, object, str], int]],
) -> None:
    """The operator dies after any number of writes, and sees the next changes with the rest undone."""
    found = Model()
    for number, ((what, name, word), writes) in enumerate(changes):
        change(found, what, name, word, number)
        found.settle(most=writes)
        assert found.faults == []
    found.settle()
    assert found.faults == []
    wanted = {name: row.asked for name, row in found.namespaces.items() if row.asked in found.classes}
    assert all(any(place.startswith(f"{of}-") for place in found.place(name)) for name, of in wanted.items())
    assert found.settle() == 0


def test_deletions_name_the_very_schedule() -> None:
    found = model("a")
    found.delete_namespace("a")
    (action,) = decide_assignment(found.view(), NOON).actions
    assert isinstance(action, Delete)
    assert action.uid == found.schedules["gold-1"].uid
    assert action.resource_version


def test_a_view_has_no_backups_but_of_those_who_move() -> None:
    view = AssignmentView("velero", {}, classes(), (), dict[str, tuple[BackupRow, ...]]())
    assert decide_assignment(view, NOON).actions == ()


def test_no_schedule_of_a_class_deletes_its_backups_when_it_goes() -> None:
    found = model("a")
    found.schedules["gold-1"] = msgspec.structs.replace(found.schedules["gold-1"], owns_backups=True)
    (action,) = decide_assignment(found.view(), NOON).actions
    assert isinstance(action, Patch)
    assert action.body == {"spec": {"useOwnerReferencesInBackup": None}}


def test_a_schedule_that_is_being_deleted_has_taken_nobody_over() -> None:
    found = Model({"a": namespace("a", "zinc")})
    found.classes = {name: protection_class(name) for name in ("gold", "zinc")}
    found.schedules = {
        "gold-1": schedule("gold-1", "a"),
        "zinc-1": schedule("zinc-1", "a", of="zinc", is_terminating=True),
    }
    found.backups = [backup("zinc-1", NOON, "a")]
    (action,) = decide_assignment(found.view(), NOON + DAY).actions
    assert isinstance(action, Create)
    assert action.key.name == "zinc-2"
