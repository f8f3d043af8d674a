"""What `kubectl get` prints and `kubectl apply --server-side` does, without kubectl.

Tests look ten times a second while they wait. A process for each look costs 0.1 s of CPU or more, and one that applies
0.3 s, most of it to read the schema of every kind.
"""

import argparse
import http.client
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn
from urllib.parse import urlencode

from testbed.api import request
from testbed.command import spelled
from testbed.errors import TestbedError
from testbed.site import Site

_STATUS = f"to see what runs: {spelled('status')}"
_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_APPLY = {"fieldManager": "kubectl", "force": "true", "fieldValidation": "Strict"}
_NO_QUERY: Mapping[str, str] = {}
_BUSY = (http.client.TOO_MANY_REQUESTS, http.client.SERVICE_UNAVAILABLE)
_BUSY_SECONDS = 30.0  # for which the API server reads the objects of a new kind


@dataclass(frozen=True, slots=True)
class _Resource:
    """A kind that the API server serves, with the words for it."""

    api: str
    kind: str
    plural: str
    words: frozenset[str]
    namespaced: bool

    def path(self, namespace: str, name: str = "", query: Mapping[str, str] = _NO_QUERY) -> str:
        """Return where its objects are, or one of them; without a namespace, those of all."""
        root = f"/apis/{self.api}" if "/" in self.api else f"/api/{self.api}"
        inside = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        given = urlencode({key: value for key, value in query.items() if value})
        return f"{root}{inside}/{self.plural}" + (f"/{name}" if name else "") + (f"?{given}" if given else "")


class _Arguments(argparse.ArgumentParser):
    """Refuses arguments that it does not know by an error, not by an exit."""

    def error(self, message: str) -> NoReturn:
        raise TestbedError(f"get: {message}", "use kubectl() for anything else that kubectl knows")


def _arguments() -> _Arguments:
    parser = _Arguments(add_help=False, allow_abbrev=False)
    parser.add_argument("words", nargs="+")
    parser.add_argument("-n", "--namespace", default="default")
    parser.add_argument("-A", "--all-namespaces", action="store_true")
    parser.add_argument("-l", "--selector", default="")
    parser.add_argument("--field-selector", default="")
    return parser


class Objects:
    """Reads and applies objects as the administrator, of kinds that it discovers again when it meets an unknown one."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._resources: tuple[_Resource, ...] = ()

    def get(self, arguments: Sequence[str]) -> dict[str, Any]:
        """Return one object, or a List of those of one kind or several, as `kubectl get --output=json` prints them."""
        asked = _arguments().parse_intermixed_args(list(arguments))
        kinds, *names = asked.words
        found = [self._resource(word) for word in kinds.split(",")]
        namespace = "" if asked.all_namespaces else asked.namespace
        if len(found) == len(names) == 1:
            return _shown(self._answer("GET", found[0].path(namespace, names[0])))
        if names:
            raise TestbedError(f"get {' '.join(arguments)}: several names", "ask for one object, or for all of a kind")
        selectors = {"labelSelector": asked.selector, "fieldSelector": asked.field_selector}
        items = [
            _shown({"apiVersion": each.api, "kind": each.kind, **item})
            for each in found
            for item in self._answer("GET", each.path(namespace, query=selectors))["items"]
        ]
        return {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}

    def apply(self, body: dict[str, Any]) -> None:
        """Create an object, or change it to what is said here, as `kubectl apply --server-side` does."""
        metadata = body["metadata"]
        kind = self._kind(lambda kind: (kind.api, kind.kind) == (body["apiVersion"], body["kind"]), body["kind"])
        where = kind.path(metadata.get("namespace", "default"), metadata["name"], _APPLY)
        self._answer("PATCH", where, body=body, content="application/apply-patch+yaml")

    def _resource(self, word: str) -> _Resource:
        return self._kind(lambda kind: word.lower() in kind.words, word)

    def _kind(self, is_wanted: Callable[[_Resource], bool], word: str) -> _Resource:
        for _ in range(2):
            for kind in self._resources:
                if is_wanted(kind):
                    return kind
            self._resources = tuple(self._discovered())
        raise TestbedError(f'the server doesn\'t have a resource type "{word}"', "is the kind installed?")

    def _discovered(self) -> Iterator[_Resource]:
        """Return the kinds in kubectl's order: of two with one name, that of the core or of the first group."""
        for root in ("/api", "/apis"):
            for group in self._answer("GET", root, accept=_DISCOVERY)["items"]:
                yield from _resources_of(group)

    def _answer(self, method: str, path: str, **told: Any) -> dict[str, Any]:  # noqa: ANN401 - as request() takes it
        deadline = time.monotonic() + _BUSY_SECONDS
        try:
            while (answer := request(method, self._site.server + path, self._site.admin_trust, **told)).code in _BUSY:
                if time.monotonic() > deadline:
                    break
                time.sleep(0.2)
        except OSError as error:
            raise TestbedError(f"{method} {path}: {error}", _STATUS) from error
        if answer.code not in (http.client.OK, http.client.CREATED):
            raise TestbedError(f"{method} {path}: code {answer.code}: {answer.text}", _STATUS)
        body: dict[str, Any] = answer.json()
        return body


def _resources_of(group: dict[str, Any]) -> Iterator[_Resource]:
    """Return the kinds of a group that can be listed, each with the version that the API server prefers."""
    name = group.get("metadata", {}).get("name", "")
    for version in group["versions"]:
        for each in version.get("resources", []):
            if "list" not in each["verbs"]:
                continue
            kind, plural = each["responseKind"]["kind"], each["resource"]
            words = {plural, kind.lower(), each["singularResource"], *each.get("shortNames", [])}
            yield _Resource(
                api=f"{name}/{version['version']}" if name else version["version"],
                kind=kind,
                plural=plural,
                words=frozenset(words | {f"{word}.{name}" for word in words}),
                namespaced=each["scope"] == "Namespaced",
            )


def _shown(item: dict[str, Any]) -> dict[str, Any]:
    """Return an object without what kubectl leaves out unless it is asked for it."""
    return {**item, "metadata": {key: value for key, value in item["metadata"].items() if key != "managedFields"}}
