"""The interface for traces: a tracer wraps the steps of a reconcile once, when the loop is built.

Without a tracer the steps stay unwrapped, so disabled traces cost nothing: no call, no branch, no import.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

from foresail.kube.expectations import Written
from foresail.plan import Key

if TYPE_CHECKING:
    import aiohttp  # the command line does without it

P = ParamSpec("P")
R = TypeVar("R")
Reconcile = Callable[[Key], Awaitable[tuple[str, tuple[Written, ...]]]]
"""Reconciles one key; returns the outcome and what was written."""


class Tracer(Protocol):
    """Makes a span of each reconcile, of its steps, and of the requests inside."""

    def reconcile(self, controller: str, run: Reconcile) -> Reconcile:
        """Return a reconcile with a span around it."""

    def step(self, name: str, run: Callable[P, R]) -> Callable[P, R]:
        """Return a step with a span around it."""

    def async_step(self, name: str, run: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
        """Return a step that waits with a span around it."""

    def tracing(self) -> "aiohttp.TraceConfig":
        """Return what a session needs to make a span of each request inside a reconcile."""


class Untraced:
    """Wraps nothing."""

    def reconcile(self, _: str, run: Reconcile) -> Reconcile:
        """Return the reconcile itself."""
        return run

    def step(self, _: str, run: Callable[P, R]) -> Callable[P, R]:
        """Return the step itself."""
        return run

    async_step = step
