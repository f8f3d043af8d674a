"""The results file of Velero, well-formed and hostile: only lines about the one namespace come out, and few of them."""

import gzip
import json
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.api.nonadmin import Condition
from foresail.api.velero_files import MOST_BYTES
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests.outcome import kept
from foresail.selfservice.requests.status import FALSE, SUCCEEDED, NewCondition
from foresail.selfservice.results.decide import MOST_MESSAGE_BYTES as MOST_OF_A_MESSAGE
from foresail.selfservice.results.decide import explained, reported_cause, unreadable
from foresail.selfservice.results.file import MOST_LINES, Lines, is_about, lines_about, tidy
from tests.unit.selfservice.request_rows import new_request

REQUEST = new_request(key=Key("shop", "daily"))
SAID = NewCondition(SUCCEEDED, FALSE, Reason.PARTIALLY_FAILED, "Backup partially failed: 2 errors")


def results(errors: object, warnings: object = None) -> bytes:
    return json.dumps({"errors": errors, "warnings": warnings or {}}).encode()


def test_the_lines_about_the_namespace_are_kept_errors_before_warnings() -> None:
    """As a real Velero 1.18.3 writes them."""
    skipped = " resource: /pods name: /web message: /Skip pod volume cache error: /no node agent"
    found = lines_about(
        "shop",
        results(
            {
                "velero": [" message: /Error executing hook error: /lookup node-0: no such host"],
                "cluster": ["error restoring persistentvolumes/pv-1: taken"],
                "namespaces": {"shop": ["error restoring configmaps/shop/a: full"], "bank": ["error restoring b"]},
            },
            {"namespaces": {"shop": [skipped], "bank": ["of bank"]}, "velero": ["anything"]},
        ),
    )
    own = ("error restoring configmaps/shop/a: full", "pods web: Skip pod volume cache: no node agent")
    assert found == Lines(own, more=0, others=3)


def test_what_velero_says_elsewhere_counts_if_it_names_this_namespace_and_no_other() -> None:
    action = "error executing custom action (groupResource=persistentvolumeclaims, namespace={}, name=data): timed out"
    assert is_about("shop", action.format("shop"))
    assert is_about("shop", "the VolumeSnapshot shop/velero-data-x is not ready")
    assert not is_about("shop", action.format("shop-two"))
    assert not is_about("shop", action.format("shop") + action.format("bank"))
    assert not is_about("shop", "the VolumeSnapshot the-shop/velero-data-x is not ready")
    assert not is_about("shop", "/var/shop/data is gone")
    assert not is_about("shop", "namespace=bank, name=shop/x")
    assert not is_about("shop", " name: /shop message: /Error backing up item error: /denied")


def test_of_many_lines_the_first_ten_are_kept() -> None:
    found = lines_about("shop", results({"namespaces": {"shop": [f"line {number}" for number in range(25)]}}))
    assert found is not None
    assert found.own == tuple(f"line {number}" for number in range(MOST_LINES))
    assert found.more == 15


@pytest.mark.parametrize(
    "hostile",
    [
        b"",
        b"null",
        b"[]",
        b"7",
        b'{"errors": 7}',
        b'{"errors": {"namespaces": ["shop"]}}',
        b'{"errors": {"namespaces": {"shop": {"a": "b"}}}}',
        b'{"errors": {"namespaces": {"shop": [1, 2]}}}',
        b'{"errors": {"velero": "shop/a"}}',
        b'{"errors": {"namespaces": {"shop": ["\xff"]}}}',
        b'{"errors": ' + b"[" * 100_000,
        b'{"errors": {"velero": [' + b'"",' * 2_000_000 + b'""]}}',
        gzip.compress(b"{}"),
    ],
    ids=range(13),
)
def test_what_is_not_of_velero_s_shape_is_nothing(hostile: bytes) -> None:
    assert lines_about("shop", hostile) is None


@pytest.mark.parametrize("empty", [b"{}", b'{"errors": null}', b'{"errors": {"velero": null, "namespaces": null}}'])
def test_results_without_errors_are_results(empty: bytes) -> None:
    assert lines_about("shop", empty) == Lines()


@pytest.mark.timed
def test_the_largest_file_takes_seconds_at_most() -> None:
    line = " resource: /pods name: /shop message: /" + "shop/ namespace" * 5 + " error: /x"
    lines = [line] * (MOST_BYTES // (len(line) + 4))
    file = results({"velero": lines, "namespaces": {"shop": ["x" * 1000] * 10}})
    began = time.thread_time()
    assert lines_about("shop", file) is not None
    assert time.thread_time() - began < 20


@given(st.text())
def test_a_line_is_one_line_whatever_is_in_it(text: str) -> None:
    for line in (tidy(text), tidy(f" resource: /pods name: /a message: /{text} error: /{text}")):
        assert line.isprintable()
        assert len(line) <= 1024


# What comes of them in the condition


@given(
    lines=st.lists(st.text(max_size=2000), max_size=10),
    more=st.integers(0, 10**6),
    others=st.integers(0, 10**6),
    base=st.text(max_size=3000),
    name=st.text(min_size=1, max_size=253),
)
def test_a_message_is_at_most_two_kibibytes_and_is_known_again(
    lines: list[str], more: int, others: int, base: str, name: str
) -> None:
    said = NewCondition(SUCCEEDED, FALSE, Reason.FAILED, base)
    request = msgspec.structs.replace(REQUEST, key=Key("n" * 63, name))
    for cause in (
        reported_cause(Lines(tuple(filter(None, map(tidy, lines))), more, others), said, BACKUPS, request),
        unreadable("x", BACKUPS, request),
    ):
        done = explained(said, cause)
        assert len(done.message.encode(errors="replace")) <= MOST_OF_A_MESSAGE
        assert cause
        assert kept(condition_of(done), said) == done


def condition_of(said: NewCondition) -> Condition:
    return Condition(said.type, said.status, said.reason.value, said.message)


def test_the_sentences() -> None:
    def text(lines: Lines) -> str:
        return explained(SAID, reported_cause(lines, SAID, BACKUPS, REQUEST)).message

    begin, command = "Backup partially failed: 2 errors. ", "foresail backup logs daily -n shop"
    assert text(Lines(("pods a: b", "c"))) == f"{begin}Velero reports: pods a: b; c"
    assert text(Lines(("a",), more=3, others=1)) == (
        f"{begin}Velero reports: a; 3 more and 1 error without a namespace. Read all with {command} --results"
    )
    assert text(Lines(others=2)) == f"{begin}2 errors without a namespace. Read all with {command} --results"
    assert text(Lines()) == f"{begin}Velero's results do not mention it. Read the log with {command}"
    assert unreadable("the bucket answers 404", BACKUPS, REQUEST) == (
        f"Velero's results could not be read (the bucket answers 404). Read the log with {command}"
    )


def test_a_cause_stays_while_the_outcome_is_the_same() -> None:
    done = explained(SAID, "Velero reports: a")
    assert kept(condition_of(done), SAID) == done
    other = NewCondition(SUCCEEDED, FALSE, Reason.PARTIALLY_FAILED, "Backup partially failed: 3 errors")
    assert kept(condition_of(done), other) is other
    assert kept(condition_of(SAID), SAID) is SAID
    assert kept(None, SAID) is SAID
