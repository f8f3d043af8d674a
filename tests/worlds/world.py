"""A simulated API server: what each verb does to the objects in it, without network and without waiting."""

import base64
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from foresail.kube.failures import Failure, failure
from foresail.plan import Key, Kind
from tests.worlds import garbage, ownership
from tests.worlds.documents import Document, is_name, merged, metadata_of, patched, selection, with_metadata
from tests.worlds.garbage import NAMESPACE
from tests.worlds.history import History
from tests.worlds.ownership import Manager, Owners, Taken

_SERVERS_OWN = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
Answer = Document | Failure


@dataclass(frozen=True, slots=True)
class Definition:
    """A kind that a world serves; custom resources have a generation, and most a status that is written apart."""

    kind: Kind
    status: bool = True
    generation: bool = True


class World:
    """Objects under the rules of Kubernetes; every change has a revision, and every refusal the server's reason."""

    def __init__(self, clock: Callable[[], datetime], *definitions: Definition) -> None:
        self.clock = clock
        self.history = History()
        self._definitions = {one.kind: one for one in (*definitions, Definition(NAMESPACE, generation=False))}
        self._owners: dict[tuple[Kind, Key], Owners] = {}
        self._uids = 0
        garbage.collect(self)
        for name in ("default", "kube-system"):
            self.create(NAMESPACE, {"metadata": {"name": name}}, "kube-apiserver")

    @property
    def kinds(self) -> Sequence[Kind]:
        """The kinds that this world serves."""
        return tuple(self._definitions)

    def get(self, kind: Kind, key: Key) -> Answer:
        """Read one object."""
        found = self.history.present(kind).get(key) if kind in self._definitions else None
        return _not_found(kind, key.name) if found is None else found

    def page(
        self,
        kind: Kind,
        namespace: str,
        parameters: Mapping[str, str],
        *,
        metadata_only: bool = False,
        as_of: int | None = None,
    ) -> Answer:
        """Read one page of a list; all pages of a list show the same revision."""
        if kind not in self._definitions:
            return _not_found(kind, "")
        revision, after = self.history.revision if as_of is None else as_of, ""
        if token := parameters.get("continue"):
            revision, after = _place(token)
            if revision < self.history.compacted:
                return failure(410, "Expired", "The provided continue parameter is too old")
        chosen = selection(parameters.get("labelSelector", ""), parameters.get("fieldSelector", ""))
        left = [
            (str(key), document)
            for key, document in sorted(self.history.at(kind, revision).items())
            if str(key) > after and namespace in ("", key.namespace) and chosen(document)
        ]
        limit = int(parameters.get("limit", "0")) or len(left)
        metadata: Document = {"resourceVersion": str(revision)}
        if len(left) > limit:
            metadata |= {"continue": _token(revision, left[limit - 1][0]), "remainingItemCount": len(left) - limit}
        items = [metadata_of(document) if metadata_only else document for _, document in left[:limit]]
        return {"apiVersion": kind.api_version, "kind": f"{kind.name}List", "metadata": metadata, "items": items}

    def create(self, kind: Kind, body: Document, by: str, namespace: str = "") -> Answer:
        """Create an object."""
        return self._create(kind, body, namespace, lambda new: {Manager(by, "Update"): frozenset(_paths(new))})

    def merge(self, kind: Kind, key: Key, patch: Document, by: str, subresource: str = "") -> Answer:
        """Merge into an object or into its status."""
        old = self._target(kind, key, patch, subresource)
        if isinstance(old, Failure):
            return old
        new = self._limited(kind, old, merged(old, patch), subresource)
        manager = Manager(by, "Update", subresource)
        return self._change(kind, key, new, ownership.updated(self._owned(kind, key), manager, old, new))

    def json_patch(self, kind: Kind, key: Key, operations: Sequence[Document], by: str) -> Answer:
        """Apply the operations of a JSON patch, all or none."""
        old = self.get(kind, key)
        if isinstance(old, Failure):
            return old
        try:
            new = patched(old, operations)
        except (LookupError, ValueError) as problem:
            return failure(422, "Invalid", f"the server rejected our request due to an error in our request: {problem}")
        refusal = self._target(kind, key, new, "")
        if isinstance(refusal, Failure):
            return refusal
        new = self._limited(kind, old, new, "")
        if not new["metadata"].get("finalizers"):
            new = with_metadata(new, finalizers=None)  # the API server leaves an empty list out
        owners = ownership.updated(self._owned(kind, key), Manager(by, "Update"), old, new)
        return self._change(kind, key, new, owners)

    def apply(self, kind: Kind, key: Key, declared: Document, by: str, subresource: str = "") -> Answer:
        """Set the declared fields; those that someone else has otherwise are a conflict."""
        manager = Manager(by, "Apply", subresource)
        if (declared.get("apiVersion"), declared.get("kind")) != (kind.api_version, kind.name):
            return failure(400, "BadRequest", "apiVersion and kind must be set, and be those of the request")
        old = self._target(kind, key, declared, subresource)
        if isinstance(old, Failure):
            if old.code != 404 or subresource or kind not in self._definitions:
                return old
            body = merged(declared, {"metadata": {"name": key.name}})
            return self._create(kind, body, key.namespace, lambda new: {manager: frozenset(_paths(new))})
        declared = self._limited(kind, {"metadata": {}}, declared, subresource)
        result = ownership.applied(self._owned(kind, key), manager, old, declared)
        if isinstance(result, Taken):
            return failure(409, "Conflict", f"Apply failed with conflicts: {', '.join(result.fields)}")
        new, owners = result
        return self._change(kind, key, self._limited(kind, old, new, subresource), owners)

    def delete(self, kind: Kind, key: Key, uid: str = "", resource_version: str = "") -> Answer:
        """Delete an object, or mark it as going while finalizers hold it."""
        old = self.get(kind, key)
        if isinstance(old, Failure):
            return old
        if uid and uid != old["metadata"]["uid"]:
            message = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old['metadata']['uid']}"
            return failure(409, "Conflict", message)
        if resource_version and resource_version != old["metadata"]["resourceVersion"]:
            now = old["metadata"]["resourceVersion"]
            message = f"Precondition failed: ResourceVersion in precondition: {resource_version}, in object meta: {now}"
            return failure(409, "Conflict", message)
        if not old["metadata"].get("finalizers") and kind != NAMESPACE:
            return self._remove(kind, key)
        if old["metadata"].get("deletionTimestamp"):
            return old
        going = with_metadata(old, deletionTimestamp=_instant(self.clock()), deletionGracePeriodSeconds=0)
        if self._definitions[kind].generation:
            going = with_metadata(going, generation=going["metadata"]["generation"] + 1)
        return self.history.put(kind, key, going)

    def delete_labelled(self, kind: Kind, namespace: str, selector: str) -> Answer:
        """Delete the objects of a namespace that a label selector means, and return their list."""
        listed = self.page(kind, namespace, {"labelSelector": selector})
        for document in listed.get("items", ()) if not isinstance(listed, Failure) else ():
            metadata = document["metadata"]
            self.delete(kind, Key(metadata["namespace"], metadata["name"]), metadata["uid"])
        return listed

    def finish(self, namespace: Key) -> None:
        """Let an empty namespace go."""
        self._remove(NAMESPACE, namespace)

    # What the verbs have in common

    def _create(self, kind: Kind, body: Document, namespace: str, owners: Callable[[Document], Owners]) -> Answer:
        if kind not in self._definitions:
            return _not_found(kind, "")
        metadata = body.get("metadata", {})
        refusal = self._refusal(kind, metadata, namespace)
        if refusal is not None:
            return refusal
        key = Key(namespace, metadata["name"])
        if key in self.history.present(kind):
            return failure(409, "AlreadyExists", f'{kind.plural} "{key.name}" already exists')
        definition = self._definitions[kind]
        self._uids += 1
        fresh = {
            **{name: value for name, value in metadata.items() if name not in (*_SERVERS_OWN, "generation")},
            "name": key.name,
            "uid": str(uuid.UUID(int=self._uids)),
            "creationTimestamp": _instant(self.clock()),
        }
        if namespace:
            fresh["namespace"] = namespace
        if definition.generation:
            fresh["generation"] = 1
        kept = {name: value for name, value in body.items() if name != "status" or not definition.status}
        new = {"apiVersion": kind.api_version, "kind": kind.name, **kept, "metadata": fresh}
        self._owners[kind, key] = owners(new)
        return self.history.put(kind, key, new)

    def _refusal(self, kind: Kind, metadata: Document, namespace: str) -> Failure | None:
        if kind.namespaced:
            place = self.history.present(NAMESPACE).get(Key("", namespace))
            if place is None:
                return _not_found(NAMESPACE, namespace)
            if "deletionTimestamp" in place["metadata"]:
                return failure(403, "Forbidden", f"namespace {namespace} is being terminated")
        if metadata.get("namespace", namespace) != namespace:
            return failure(400, "BadRequest", "the namespace of the object does not match the request")
        if not is_name(metadata.get("name")):
            return failure(422, "Invalid", f"{kind.name} {metadata.get('name')!r} is invalid: metadata.name")
        if metadata.get("resourceVersion"):
            return failure(500, "", "resourceVersion should not be set on objects to be created")
        return None

    def _target(self, kind: Kind, key: Key, body: Document, subresource: str) -> Answer:
        """Return the object that a patch is for, if the patch is for the object as it is."""
        old = self.get(kind, key)
        if isinstance(old, Failure):
            return old
        if subresource and not (subresource == "status" and self._definitions[kind].status):
            return _not_found(kind, f"{key.name}/{subresource}")
        metadata = body.get("metadata") or {}
        version = metadata.get("resourceVersion")
        if version and version != old["metadata"]["resourceVersion"]:
            message = f'Operation cannot be fulfilled on {kind.plural} "{key.name}": the object has been modified'
            return failure(409, "Conflict", message)
        uid = metadata.get("uid")
        if uid and uid != old["metadata"]["uid"]:
            return failure(422, "Invalid", f"{kind.name} {key.name!r} is invalid: metadata.uid: field is immutable")
        if metadata.get("name", key.name) != key.name:
            return failure(400, "BadRequest", "the name of the object does not match the name on the URL")
        return old

    def _limited(self, kind: Kind, old: Document, new: Document, subresource: str) -> Document:
        """Return the new object with only that part changed which the request may change."""
        if subresource:
            return _with_status_of(new, old)
        kept = {name: old["metadata"].get(name) for name in (*_SERVERS_OWN, "generation", "resourceVersion")}
        limited = with_metadata(new, **kept)
        return _with_status_of(old, limited) if self._definitions[kind].status else limited

    def _change(self, kind: Kind, key: Key, new: Document, owners: Owners) -> Answer:
        old = self.history.present(kind)[key]
        if old == new and owners == self._owned(kind, key):
            return old
        metadata = new["metadata"]
        if metadata.get("deletionTimestamp"):
            if set(metadata.get("finalizers", ())) - set(old["metadata"].get("finalizers", ())):
                return failure(422, "Invalid", "no new finalizers can be added if the object is being deleted")
            if not metadata.get("finalizers") and kind != NAMESPACE:
                return self._remove(kind, key)
        definition = self._definitions[kind]
        apart = ("metadata", "status") if definition.status else ("metadata",)
        if definition.generation and _without(old, apart) != _without(new, apart):
            new = with_metadata(new, generation=metadata["generation"] + 1)
        self._owners[kind, key] = owners
        return self.history.put(kind, key, new)

    def _remove(self, kind: Kind, key: Key) -> Document:
        self._owners.pop((kind, key), None)
        return self.history.remove(kind, key)

    def _owned(self, kind: Kind, key: Key) -> Owners:
        return self._owners.get((kind, key), {})


def done(answer: Answer) -> Document:
    """Return the object that a verb answered with; a refusal is the test's mistake."""
    assert not isinstance(answer, Failure), answer
    return answer


def _with_status_of(one: Document, other: Document) -> Document:
    """Return the other document with the status of the one."""
    rest = {name: value for name, value in other.items() if name != "status"}
    return {**rest, "status": one["status"]} if "status" in one else rest


def _paths(document: Document) -> list[ownership.Path]:
    return list(ownership.fields(document))


def _token(revision: int, after: str) -> str:
    return base64.urlsafe_b64encode(json.dumps({"rv": revision, "start": after}).encode()).decode().rstrip("=")


def _place(token: str) -> tuple[int, str]:
    place = json.loads(base64.urlsafe_b64decode(token + "=="))
    return place["rv"], place["start"]


def _without(document: Document, parts: Sequence[str]) -> Document:
    return {name: value for name, value in document.items() if name not in parts}


def _not_found(kind: Kind, name: str) -> Failure:
    return failure(404, "NotFound", f'{kind.plural} "{name}" not found')


def _instant(now: datetime) -> str:
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")
