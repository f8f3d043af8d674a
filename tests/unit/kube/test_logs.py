"""The log: one JSON object per line, with the object that it is about."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator

import pytest

from foresail.kube.logs import about, log_as_json
from foresail.plan import Key


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    for handler in before:
        root.removeHandler(handler)  # or they would be closed
    written = io.StringIO()
    log_as_json(stream=written)
    yield written
    root.handlers[:] = before
    root.setLevel(level)


def lines(stream: io.StringIO) -> list[dict[str, str]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_one_json_object_whatever_is_in_it(stream: io.StringIO) -> None:
    logging.getLogger("some.where").warning('a "quoted"\nword')
    (line,) = lines(stream)
    assert line.pop("time").endswith("+00:00")
    assert line == {"level": "warning", "message": 'a "quoted"\nword', "logger": "some.where"}


def test_every_line_that_is_written_while_an_object_is_worked_on_names_it_and_no_other_does(
    stream: io.StringIO,
) -> None:
    log = logging.getLogger("x")

    async def work(name: str) -> None:
        with about("demo", Key("ns", name)):
            await asyncio.sleep(0)
            log.info("at work")
        log.info("idle")

    async def both() -> None:
        await asyncio.gather(work("a"), work("b"))

    asyncio.run(both())
    found = [(line["message"], line.get("controller"), line.get("key")) for line in lines(stream)]
    assert sorted(found, key=str) == [
        ("at work", "demo", "ns/a"),
        ("at work", "demo", "ns/b"),
        ("idle", None, None),
        ("idle", None, None),
    ]


def test_a_line_has_the_fields_that_its_writer_adds(stream: io.StringIO) -> None:
    logging.getLogger("x").info("held", extra={"fields": {"decision": "Busy", "object": "Schedule velero/daily"}})
    (line,) = lines(stream)
    assert (line["decision"], line["object"]) == ("Busy", "Schedule velero/daily")


def test_a_failure_brings_its_traceback(stream: io.StringIO) -> None:
    try:
        int("x")
    except ValueError:
        logging.getLogger("x").exception("it failed")
    (line,) = lines(stream)
    assert "ValueError" in line["traceback"]
