"""What is in a world and how it came to be: one revision for each change, and as much of the past as is kept."""

from collections.abc import Callable
from dataclasses import dataclass

from foresail.plan import Key, Kind
from tests.worlds.documents import Document, with_metadata

# A real cluster has a past before any test begins: a watch from revision 1 is refused there, and so it is here.
_FIRST = 100


@dataclass(frozen=True, slots=True)
class Happening:
    """One change of one object."""

    revision: int
    kind: Kind
    key: Key
    before: Document | None
    after: Document | None

    @property
    def gone(self) -> Document:
        """The object as it is shown when it goes: as it last was, at the revision of its going."""
        assert self.before is not None
        return with_metadata(self.before, resourceVersion=str(self.revision))


Listener = Callable[[Happening], None]


class History:
    """The present, and the happenings since the last compaction; every listener hears each of them, in order."""

    def __init__(self) -> None:
        self.revision = _FIRST
        self.compacted = _FIRST
        self.happenings: list[Happening] = []
        self.listeners: list[Listener] = []
        self._present: dict[Kind, dict[Key, Document]] = {}

    def present(self, kind: Kind) -> dict[Key, Document]:
        """Return the objects of a kind as they are."""
        return self._present.setdefault(kind, {})

    def at(self, kind: Kind, revision: int) -> dict[Key, Document]:
        """Return the objects of a kind as they were at a revision that is not compacted away."""
        state = dict(self.present(kind))
        for one in reversed(self.happenings):
            if one.revision <= revision:
                break
            if one.kind != kind:
                continue
            if one.before is None:
                state.pop(one.key, None)
            else:
                state[one.key] = one.before
        return state

    def since(self, kind: Kind, revision: int) -> list[Happening]:
        """Return what happened to a kind after a revision that is not compacted away."""
        return [one for one in self.happenings if one.revision > revision and one.kind == kind]

    def put(self, kind: Kind, key: Key, document: Document) -> Document:
        """Let an object be so from the next revision on; return it with that revision on it."""
        self.revision += 1
        after = with_metadata(document, resourceVersion=str(self.revision))
        before = self.present(kind).get(key)
        self.present(kind)[key] = after
        self._tell(Happening(self.revision, kind, key, before, after))
        return after

    def remove(self, kind: Kind, key: Key) -> Document:
        """Let an object go; return it as it last was."""
        self.revision += 1
        happening = Happening(self.revision, kind, key, self.present(kind).pop(key), None)
        self._tell(happening)
        return happening.gone

    def compact(self) -> None:
        """Forget the past: whoever has not heard of it yet must read everything anew."""
        self.compacted = self.revision
        self.happenings.clear()

    def _tell(self, happening: Happening) -> None:
        self.happenings.append(happening)
        for listener in list(self.listeners):
            listener(happening)
