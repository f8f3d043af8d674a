"""The operator as its own process sends traces to a collector over OTLP/HTTP."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from testbed import Cluster
from tests.cluster.operators import Operator
from tests.cluster.schedules import Eventually, clear, schedule


class Collector(ThreadingHTTPServer):
    """Keeps every span that is sent to it, and who sent it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Taking)
        self.spans: list[Span] = []
        self.services: set[str] = set()

    def below(self, span: Span) -> list[Span]:
        """Return the spans inside a span, in the order of their beginning."""
        mine = [each for each in self.spans if each.parent_span_id == span.span_id]
        return sorted(mine, key=lambda each: each.start_time_unix_nano)


class _Taking(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        assert self.path == "/v1/traces"
        sent = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["Content-Length"])))
        for resource in sent.resource_spans:
            about = {each.key: each.value.string_value for each in resource.resource.attributes}
            self.server.services.add(f"{about['service.name']} {about['service.instance.id']}")
            self.server.spans += [span for scope in resource.scope_spans for span in scope.spans]
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def collecting() -> Iterator[Collector]:
    with Collector() as collector:
        serving = Thread(target=collector.serve_forever)
        serving.start()
        try:
            yield collector
        finally:
            collector.shutdown()
            serving.join()


def attributes(span: Span) -> dict[str, str]:
    return {each.key: each.value.string_value or str(each.value.int_value) for each in span.attributes}


def test_a_fire_is_one_trace_from_the_reconcile_to_its_requests(
    schedule_cluster: Cluster, tmp_path: Path, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    clear(schedule_cluster)
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.server_port}")
        operator = Operator(schedule_cluster, tmp_path, "--traces")
        try:
            operator.start()
            schedule_cluster.apply(schedule("traced", "@every 1s"))
            eventually(lambda: schedule_cluster.listed("/apis/velero.io/v1/namespaces/velero/backups"), 60)
            operator.stop()  # what still waits is sent at the end
        finally:
            operator.kill()
            clear(schedule_cluster)
    assert collector.services == {"foresail operator"}
    roots = [each for each in collector.spans if not each.parent_span_id]
    assert {each.name for each in roots} == {"reconcile"}
    paths = set()
    for root in roots:
        about = attributes(root)
        if about["foresail.key"] != "velero/traced" or about["foresail.outcome"] == "absent":
            continue
        assert about["foresail.controller"] == "schedules"
        observe, decide, execute = collector.below(root)
        assert [observe.name, decide.name, execute.name] == ["observe", "decide", "execute"]
        paths |= {(each.name, attributes(each)["url.path"]) for each in collector.below(execute)}
        assert not collector.below(observe)
        assert not collector.below(decide)
    assert ("POST", "/apis/velero.io/v1/namespaces/velero/backups") in paths
    requests = [each for each in collector.spans if each.kind == Span.SPAN_KIND_CLIENT]
    assert not [each for each in requests if "/leases/" in attributes(each)["url.path"]]
