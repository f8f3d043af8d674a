"""What disturbs a life on a highly available control plane: Sieve's perturbations, and the faults of servers.

A cache that stands still makes an API server stale, and a stale one gives no one the past who asks for the present: see
docs/contributing/testbed.md. So it is the gaps and the delays that are tried here, as real servers make them.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from testbed import Cluster
from testbed.replicas import APISERVER, members, replicas
from tests.cluster.ha_lives import HOME, Disturb, Lane, Story
from tests.worlds.perturb import INTERMEDIATE, SKIPPED, STALE, Point
from tests.worlds.perturb_judge import Lived

_STALE_SECONDS, _LONGEST_SECONDS = 2.5, 6.0  # that a cache stands still after a failover, and in all
_SKIP_SECONDS = 4.0  # after which no more events are waited for
_GONE_SECONDS = 1.0  # for which every version of a watch is refused as expired
_FAULT_SECONDS = 3.0


class Once:
    """Does something at most once, whoever asks for it."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act
        self._lock = threading.Lock()
        self.done = False

    def __call__(self) -> None:
        with self._lock:
            if not self.done:
                self.done = True
                self._act()

    def after(self, seconds: float) -> None:
        """Do it after so many seconds."""
        timer = threading.Timer(seconds, self)
        timer.daemon = True
        timer.start()


class _Cache:
    """The cache of a lane's stale API server, which stands still once."""

    def __init__(self, lane: Lane) -> None:
        self.freeze = Once(lambda: self._freeze(lane.cluster))
        self.release = Once(lambda: self._release(lane.cluster))
        self._stale = lane.stale

    def _freeze(self, cluster: Cluster) -> None:
        cluster.fault.freeze_cache(self._stale)
        self.release.after(_LONGEST_SECONDS)

    def _release(self, cluster: Cluster) -> None:
        if self.freeze.done:
            cluster.fault.release_cache(self._stale)


@contextmanager
def heard(story: Story, listen: Callable[[int], None]) -> Iterator[None]:
    """Let somebody hear how many events there were, after each."""
    story.listeners.append(listen)
    try:
        yield
    finally:
        story.listeners.remove(listen)


def perturbation(point: Point, whole: Lived) -> Disturb:
    """Return what brings a point about."""
    if point.which == INTERMEDIATE:
        return _intermediate(point, whole)
    return {STALE: _stale, SKIPPED: _skipped}[point.which](point)


def _stale(point: Point) -> Disturb:
    @contextmanager
    def disturb(lane: Lane, story: Story) -> Iterator[Callable[[], bool]]:
        cache = _Cache(lane)
        fail_over = Once(lambda: lane.proxy.lead_to(lane.stale))

        def listen(events: int) -> None:
            if events > point.number - point.behind:
                cache.freeze()
            if events >= point.number and not fail_over.done:
                fail_over()
                cache.release.after(_STALE_SECONDS)

        with heard(story, listen):
            yield lambda: cache.release.done and fail_over.done
        cache.release()
        lane.proxy.lead_to(HOME)

    return disturb


def _skipped(point: Point) -> Disturb:
    @contextmanager
    def disturb(lane: Lane, story: Story) -> Iterator[Callable[[], bool]]:
        def forget() -> None:
            lane.proxy.refuse("resourceVersion=", code=410)
            lane.proxy.cut("watch=true")
            lane.proxy.resume()
            remember.after(_GONE_SECONDS)

        remember = Once(lambda: lane.proxy.refuse("resourceVersion=", times=0))
        stall, skip = Once(lambda: lane.proxy.stall("watch=true")), Once(forget)

        def listen(events: int) -> None:
            if events >= point.number and not stall.done:
                stall()
                skip.after(_SKIP_SECONDS)
            if events >= point.number + point.behind:
                skip()

        with heard(story, listen):
            yield lambda: remember.done
        lane.proxy.resume()
        lane.proxy.refuse("resourceVersion=", times=0)

    return disturb


def _intermediate(point: Point, whole: Lived) -> Disturb:
    begins = round(whole.events * point.number / max(1, whole.writes)) - point.behind

    @contextmanager
    def disturb(lane: Lane, story: Story) -> Iterator[Callable[[], bool]]:
        cache, over = _Cache(lane), threading.Event()
        process = lane.start(FORESAIL_TEST_KILL=f"after:{point.number}")

        def start_again() -> None:
            lane.proxy.lead_to(lane.stale)
            lane.start()

        restart = Once(start_again)

        def watch() -> None:
            while not over.wait(0.02):
                if process.poll() is not None:
                    cache.freeze()
                    cache.release.after(_STALE_SECONDS)
                    restart()
                    return

        watcher = threading.Thread(target=watch)
        watcher.start()
        with heard(story, lambda events: cache.freeze() if events > begins else None):
            yield lambda: restart.done and cache.release.done
        over.set()
        watcher.join()
        cache.release()
        lane.proxy.lead_to(HOME)
        if not restart.done:
            lane.start()

    return disturb


# Faults of servers, in the middle of a story


def at(number: int, begin: Callable[[Lane], object], end: Callable[[Lane], object]) -> Disturb:
    """Return what does something at an event, and undoes it some seconds later."""

    @contextmanager
    def disturb(lane: Lane, story: Story) -> Iterator[Callable[[], bool]]:
        first, second = Once(lambda: begin(lane)), Once(lambda: end(lane))

        def listen(events: int) -> None:
            if events >= number and not first.done:
                first()
                second.after(_FAULT_SECONDS)

        with heard(story, listen):
            yield lambda: second.done
        second()
        lane.proxy.lead_to(HOME)

    return disturb


def cache_frozen(number: int) -> Disturb:
    """The cache of the operator's API server stands still for a while, and then hears all of it at once."""

    def begin(lane: Lane) -> None:
        lane.proxy.lead_to(lane.stale)
        lane.cluster.fault.freeze_cache(lane.stale)

    return at(number, begin, lambda lane: lane.cluster.fault.release_cache(lane.stale))


def rolled(number: int) -> Disturb:
    """The API servers are restarted one after the other, while everybody is led to any of them."""

    @contextmanager
    def disturb(lane: Lane, story: Story) -> Iterator[Callable[[], bool]]:
        def roll() -> None:
            lane.proxy.lead_to()
            lane.cluster.fault.lead_to()
            lane.cluster.fault.roll(APISERVER)

        rolling = threading.Thread(target=roll)
        begin = Once(rolling.start)
        with heard(story, lambda events: begin() if events >= number else None):
            yield lambda: begin.done and not rolling.is_alive()
        if begin.done:
            rolling.join()
        lane.cluster.fault.lead_to(HOME)
        lane.proxy.lead_to(HOME)

    return disturb


def member_cut_off(number: int) -> Disturb:
    """The etcd member of the operator's API server is cut off, until the operator is led to another one."""

    def end(lane: Lane) -> None:
        lane.proxy.lead_to(HOME)
        lane.cluster.fault.rejoin(member_of(lane.cluster, lane.stale))

    def begin(lane: Lane) -> None:
        lane.proxy.lead_to(lane.stale)
        lane.cluster.fault.cut_off(member_of(lane.cluster, lane.stale))

    return at(number, begin, end)


def leader_moved(number: int) -> Disturb:
    """The leader of etcd moves, and moves again."""
    return at(number, lambda lane: lane.cluster.fault.move_leader(), lambda lane: lane.cluster.fault.move_leader())


def refused(number: int, code: int) -> Disturb:
    """Every stream ends, and no request is answered with anything but that code for a while."""

    def begin(lane: Lane) -> None:
        lane.proxy.refuse("", code=code)
        lane.proxy.cut()

    return at(number, begin, lambda lane: lane.proxy.refuse("", times=0))


def server_killed(number: int) -> Disturb:
    """The operator's API server is killed, and the operator led to another one."""

    def begin(lane: Lane) -> None:
        lane.proxy.lead_to(lane.stale)
        lane.cluster.fault.kill(lane.stale)
        lane.proxy.lead_to(HOME)

    return at(number, begin, lambda lane: lane.cluster.fault.start(lane.stale))


def member_of(cluster: Cluster, server: str) -> str:
    """Return the etcd member of an API server."""
    options = cluster.site.options
    pairs = zip(replicas(options, APISERVER), members(options), strict=True)
    return next(member.name for each, member in pairs if each.name == server)
