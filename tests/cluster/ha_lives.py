"""Short lives of an operator on a highly available control plane: heard from a sound API server, and compared.

The operator talks through a proxy of its own, which leads it to any API server; everybody else talks to the first one.
A story acts as people do for some seconds; what belongs to it carries its mark, so that lives follow each other in one
cluster. The judge is that of tests/worlds/perturb_judge.py.
"""

import http.client
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from types import TracebackType
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

from testbed import Cluster, Options, TestbedError
from testbed.proxy import Proxy
from testbed.replicas import APISERVER, names
from tests.cluster.operators import Operator, lease_of
from tests.worlds.perturb_judge import Lived, wrong

HOME, *AWAY = names(Options(ha=True), APISERVER)
_VELERO = "velero"
_ANSWER_SECONDS, _AGAIN_SECONDS = 60.0, 0.2
_SETTLED_SECONDS, _QUIET_SECONDS, _VAIN_SECONDS = 90.0, 2.0, 8.0
_MADE_BY_VELERO = ("Backup", "Restore")
_STARTED_SECONDS = 60.0
_CRASHED = re.compile(r"reconciling \S+ failed")


@dataclass(frozen=True, slots=True)
class Event:
    """A change of one object, as a watch has it."""

    kind: str
    type: str
    item: dict[str, Any]

    @property
    def uid(self) -> str:
        """The object's UID."""
        return str(self.item["metadata"]["uid"])

    def annotation(self, name: str) -> str:
        """Return an annotation of the object; empty if it has none of that name."""
        return str(self.item["metadata"].get("annotations", {}).get(name, ""))


class Story:
    """What people do in one life, and what the judge compares of the objects that belong to it."""

    name: ClassVar[str]
    paths: ClassVar[dict[str, str]]  # where the objects of each kind are
    rest: ClassVar[frozenset[str]]  # what there is in the end
    flags: ClassVar[tuple[str, ...]]  # of the operator

    def __init__(self, cluster: Cluster, mark: str) -> None:
        self.cluster, self.mark = cluster, mark
        self.events: list[Event] = []
        self.listeners: list[Callable[[int], None]] = []
        self.is_spoiled = False  # the machine was too slow for this life to tell anything

    def hear(self, event: Event) -> None:
        """Keep an event that belongs to it, and tell how many there are."""
        self.events.append(event)
        for each in self.listeners:
            each(len(self.events))

    def live(self) -> None:
        """Do what people do, in real time."""
        raise NotImplementedError

    def owns(self, event: Event) -> bool:
        """Whether an object belongs to this life."""
        raise NotImplementedError

    def named(self, event: Event) -> str:
        """Return a name of an object that is the same in every life."""
        raise NotImplementedError

    def slot(self, event: Event) -> str:
        """Return of which schedule an object is which run; empty if it is none."""
        raise NotImplementedError

    def meaning(self, event: Event) -> dict[str, Any]:
        """Return what of an object is the same in every life."""
        raise NotImplementedError

    def is_over(self, lived: Lived) -> bool:
        """Whether there is what there must be in the end, and Velero has done all of it."""
        done = all('"Completed"' in text for name, text in lived.state.items() if name.startswith(_MADE_BY_VELERO))
        return done and lived.state.keys() == self.rest

    def lived(self) -> Lived:
        """Return this life as the judge sees it."""
        found = Lived(events=len(self.events), came=True)
        last: dict[str, Event] = {}
        for event in list(self.events):
            name = f"{event.kind} {self.named(event)}"
            if event.uid not in last:
                found.born[name] += 1
                if slot := self.slot(event):
                    found.slots[slot] += 1
            if event.type == "DELETED":
                found.gone[name] += 1
            last[event.uid] = event
        for event in last.values():
            if event.type != "DELETED":
                found.state[f"{event.kind} {self.named(event)}"] = json.dumps(self.meaning(event), sort_keys=True)
        return found


class Ear:
    """Hears every change of some kinds from the common address, whichever API server that leads to."""

    def __init__(self, cluster: Cluster, paths: dict[str, str], heard: Callable[[Event], None]) -> None:
        self._cluster, self._heard = cluster, heard
        self._enough = threading.Event()
        self._wires: dict[str, http.client.HTTPSConnection] = {}
        self._begun: dict[str, Any] = {}  # what there was at first, of each kind
        self._threads = [threading.Thread(target=self._listen, args=each, daemon=True) for each in paths.items()]
        for each in self._threads:
            each.start()

    def close(self) -> None:
        """Hear no more."""
        self._enough.set()
        for each in list(self._wires.values()):
            with suppress(OSError):
                if each.sock is not None:
                    each.sock.shutdown(2)
        for thread in self._threads:
            thread.join(_ANSWER_SECONDS)

    def _listen(self, kind: str, path: str) -> None:
        version, known = "", dict[str, dict[str, Any]]()
        while not self._enough.is_set():
            with suppress(OSError, http.client.HTTPException, ValueError, TestbedError):  # it goes on where it was
                version = version or self._read(kind, path, known)
                for line in self._lines(kind, path, version):
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        version = ""  # an API server that has started again has no past
                        break
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        self._tell(Event(kind, event["type"], event["object"]), known)
            self._enough.wait(_AGAIN_SECONDS)

    def _read(self, kind: str, path: str, known: dict[str, dict[str, Any]]) -> str:
        """Hear what has changed, from all that there is, and return its version; at first there is nothing to hear."""
        page = self._cluster.collection(path)
        if self._begun.setdefault(kind, page) is not page:
            present = {each["metadata"]["uid"]: each for each in page["items"]}
            for uid in known.keys() - present.keys():
                self._tell(Event(kind, "DELETED", known[uid]), known)
            for item in present.values():
                self._tell(Event(kind, "MODIFIED", item), known)
        return str(page["metadata"]["resourceVersion"])

    def _tell(self, event: Event, known: dict[str, dict[str, Any]]) -> None:
        known[event.uid] = event.item
        if event.type == "DELETED":
            del known[event.uid]
        self._heard(event)

    def _lines(self, kind: str, path: str, version: str) -> Iterator[bytes]:
        where = urlsplit(self._cluster.server)
        trust = self._cluster.site.admin_trust
        wire = http.client.HTTPSConnection(where.hostname or "", where.port, context=trust, timeout=_ANSWER_SECONDS)
        with closing(wire):
            wire.request("GET", f"{path}?watch=true&allowWatchBookmarks=true&resourceVersion={version}")
            self._wires[kind] = wire
            with wire.getresponse() as stream:
                if wire.sock is not None:
                    wire.sock.settimeout(None)
                if stream.status == http.client.GONE:
                    yield b'{"type":"ERROR"}'
                if stream.status == http.client.OK:
                    yield from stream


class Lane:
    """One operator whose lives follow each other, and the API server that can be stale for it."""

    def __init__(self, cluster: Cluster, story: type[Story], stale: str, folder: Path, plant: str = "") -> None:
        self.cluster, self.stale, self._story = cluster, stale, story
        folder.mkdir(exist_ok=True)
        program = ("-m", "tests.cluster.planted", plant) if plant else ("-m", "foresail")
        self.operator = Operator(cluster, folder, *story.flags, program=program)
        self.proxy = Proxy(cluster.site)
        cluster.service_account_kubeconfig(_VELERO, lease_of(story.flags), self.proxy.url)  # which the operator reads
        self.proxy.lead_to(HOME)
        self.stories: list[Story] = []
        self._ear = Ear(cluster, story.paths, self._hear)

    @property
    def name(self) -> str:
        """The name of the story."""
        return self._story.name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.operator.kill()
        self._ear.close()
        self.proxy.close()

    def start(self, **variables: str) -> Popen[bytes]:
        """Start the operator anew, and return its process when it leads or has ended."""
        self.operator.kill()
        process = self.operator.begin(**variables)
        deadline = time.monotonic() + _STARTED_SECONDS
        while process.poll() is None and not (self.operator.is_ready() and self.operator.said("became leader")):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not ready:\n{self.operator.log.read_text()[-4000:]}")
            time.sleep(0.05)
        return process

    @property
    def writes(self) -> int:
        """The writes of the running operator."""
        figures = self.operator.figures()
        return int(sum(figures[each] for each in figures if each.startswith("foresail_writes_total")))

    def live(self, disturb: "Disturb | None" = None, whole: Lived | None = None) -> Lived:
        """Live through a story, and return it when it has come to the end of the reference, or never will."""
        story = self._story(self.cluster, f"{self.name[:2]}{len(self.stories)}")
        self.stories.append(story)
        begin = self.operator.log.stat().st_size if self.operator.log.exists() else 0
        with disturb(self, story) if disturb else nullcontext(_calm) as came:
            try:
                story.live()
                self._settle(story, whole, came)
            except AssertionError as error:  # the story could not go on
                return Lived(came=came(), stuck={str(error)})
        return self._judged(story, begin, came)

    def _settle(self, story: Story, whole: Lived | None, came: Callable[[], bool]) -> None:
        seen, since = -1, time.monotonic()
        deadline = since + _SETTLED_SECONDS
        while time.monotonic() < deadline:
            if len(story.events) != seen:
                seen, since = len(story.events), time.monotonic()
            quiet, lived = time.monotonic() - since, story.lived()
            if came() and quiet > _QUIET_SECONDS and (not list(wrong(lived, whole)) if whole else story.is_over(lived)):
                return
            if quiet > _VAIN_SECONDS and story.is_over(lived):  # nothing comes any more
                return
            time.sleep(_AGAIN_SECONDS)

    def _judged(self, story: Story, begin: int, came: Callable[[], bool]) -> Lived:
        said = self.operator.log.read_bytes()[begin:].decode(errors="replace")
        lived = story.lived()
        lived.came = came() and not story.is_spoiled
        lived.crashed = len(_CRASHED.findall(said))
        return lived

    def _hear(self, event: Event) -> None:
        for each in list(self.stories):
            if each.owns(event):
                each.hear(event)


def _calm() -> bool:
    return True


Disturb = Callable[[Lane, Story], AbstractContextManager[Callable[[], bool]]]
"""Does something to a life in its block; what it yields tells whether it has been done."""
