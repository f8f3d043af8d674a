"""Traces of real reconciles in a world: what a span is made of, and that nothing of it runs when traces are off."""

import subprocess
import sys
from collections import Counter
from datetime import timedelta
from types import FrameType
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from foresail.kube.otel import CONTROLLER, KEY, OUTCOME, OtelTracer
from foresail.kube.tracing import Tracer
from tests.worlds import process, virtual_time
from tests.worlds.schedule_scene import HOME, ScheduleScene

MINUTE = timedelta(minutes=1)
BEGINNING = virtual_time.BEGINNING


async def three_fires() -> None:
    scene = ScheduleScene()
    scene.make("often", "*/10 * * * *")
    scene.start()
    await scene.until(BEGINNING + 35 * MINUTE)
    await scene.stop()


def in_memory() -> tuple[Tracer, InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return OtelTracer(provider), exporter


def below(span: ReadableSpan, spans: tuple[ReadableSpan, ...]) -> list[str]:
    """Return the names of the spans that have this one as their parent, in the order of their beginning."""
    assert span.context is not None
    mine = [each for each in spans if each.parent is not None and each.parent.span_id == span.context.span_id]
    return [each.name for each in sorted(mine, key=lambda each: each.start_time or 0)]


def test_each_reconcile_is_a_span_with_its_steps_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    tracer, exporter = in_memory()
    monkeypatch.setattr(process, "tracer", tracer)
    virtual_time.run(three_fires())
    spans = exporter.get_finished_spans()
    roots = [each for each in spans if each.parent is None]
    assert {each.name for each in roots} == {"reconcile"}
    mine = [each for each in roots if (each.attributes or {})[KEY] == f"{HOME}/often"]
    assert len(mine) >= 3
    for each in mine:
        assert each.attributes is not None
        assert each.attributes[CONTROLLER] == "schedules"
        assert each.attributes[OUTCOME] == "done"
        assert below(each, spans) == ["observe", "decide", "execute"]
    assert Counter(each.name for each in spans)["execute"] >= 3


def test_a_decision_that_fails_is_a_span_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Any:  # noqa: ANN401 - never returns
        raise ZeroDivisionError("broken")

    def breaking(controller: Any) -> None:  # noqa: ANN401 - of any capability
        controller.decide = broken

    tracer, exporter = in_memory()
    monkeypatch.setattr(process, "tracer", tracer)
    monkeypatch.setattr(process, "prepare", breaking)
    virtual_time.run(three_fires())
    spans = exporter.get_finished_spans()
    crashed = [each for each in spans if (each.attributes or {}).get(OUTCOME) == "crashed"]
    assert crashed
    for each in crashed:
        assert not each.status.is_ok
        assert [event.name for event in each.events] == ["exception"]
        assert below(each, spans) == ["observe", "decide"]


def test_off_nothing_of_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()

    def called(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            calls[frame.f_code.co_filename] += 1

    def living() -> int:
        """Return how many calls of tracing code a life takes."""
        calls.clear()
        sys.setprofile(called)
        try:
            virtual_time.run(three_fires())
        finally:
            sys.setprofile(None)
        assert sum(calls.values()) > 1000
        return sum(count for file, count in calls.items() if "opentelemetry" in file or "kube/otel" in file)

    assert living() == 0
    tracer, _ = in_memory()
    monkeypatch.setattr(process, "tracer", tracer)
    assert living() > 100


def test_off_it_is_not_imported() -> None:
    switches = "runs_self_service=True, runs_primers=True, runs_restore_checks=True, runs_protection=True"
    program = (
        "import sys; from foresail.operator.main import controllers; from foresail.operator.settings import Settings;"
        f"controllers(Settings('one', {switches}, runs_rollbacks=True), None);"
        "print([each for each in sys.modules if 'opentelemetry' in each])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
