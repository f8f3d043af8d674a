"""A real HTTP server beside a test, for answers that no API server and no bucket could be made to give."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Server(ThreadingHTTPServer):
    request_queue_size = 128  # with the default, 5, one of many connections at once waits for seconds

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a client that hangs up: Python 3.11 may break a parse in the main thread as it prints the trace."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # as it came


@contextmanager
def served(handler: type[BaseHTTPRequestHandler]) -> Iterator[ThreadingHTTPServer]:
    """Answer on a free port until the block ends."""
    with _Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
