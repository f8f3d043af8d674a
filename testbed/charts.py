"""Renders the charts, by the real Helm, into what `foresail install` applies: `make manifests`.

The chart of the operator is rendered for each set of capabilities, and the objects of all sets become one manifest.
Each is marked with the capabilities that must be on or off for it. An object that other capabilities change is in the
manifest once for each of its forms. Names of the cluster are blanks: words in capitals, which no name can be.
"""

import re
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from testbed.build import program
from testbed.errors import TestbedError

CHARTS = Path(__file__).parents[1] / "charts"
SWITCHES = {
    "schedules": "schedules.enabled",
    "self-service": "selfService.enabled",
    "primers": "primers.enabled",
    "restore-checks": "proof.restoreChecks",
    "protection": "protection.enabled",
    "rollback": "rollback.enabled",
}
BLANKS = {
    "veleroNamespace": "VELERO-NAMESPACE",
    "veleroServiceAccount": "VELERO-SERVICE-ACCOUNT",
    "image.repository": "FORESAIL-IMAGE",
    "image.tag": "TAG",
    "primers.pauseImage": "PAUSE-IMAGE",
    "schedules.withHooks": "{schedule.with.hooks}",
    "selfService.requesterStamp": "Always",
    "selfService.locations.enabled": "true",
    "rollback.volumes": "true",
    "monitoring.rules": "true",
    "monitoring.serviceMonitor": "true",
}


PARTS = {
    "monitoring.yaml": "monitoring",
    "service-monitor.yaml": "monitoring",
    "schedules-hooks.yaml": "schedules-with-hooks",
    "self-service-locations.yaml": "tenant-locations",
}
"""The templates of what has a switch of its own, beside that of its capability."""

_SOURCE = re.compile(r"^# Source: [^/]+/templates/(.+)$", re.MULTILINE)
_BY_HELM, _BY_US = (f"app.kubernetes.io/managed-by: {tool}\n" for tool in ("Helm", "foresail"))


def files() -> dict[str, str]:
    """Return the manifests by the names of their files."""
    renderings = {chosen: documents(rendered_for(chosen, BLANKS)) for chosen in sets()}
    return {"crds.yaml": rendered("foresail-crds", "default", {}), "foresail.yaml": merged(renderings)}


def sets() -> list[tuple[str, ...]]:
    """Return every set of capabilities that can be installed."""
    return [chosen for count in range(1, len(SWITCHES) + 1) for chosen in combinations(SWITCHES, count)]


def rendered_for(capabilities: Collection[str], values: Mapping[str, str]) -> str:
    """Return the objects of the operator for a set of capabilities, labelled as managed by the command."""
    switches = {value: str(name in capabilities).lower() for name, value in SWITCHES.items()}
    return rendered("foresail", values["veleroNamespace"], {**values, **switches}).replace(_BY_HELM, _BY_US)


def documents(text: str) -> list[str]:
    """Return the documents of a rendering, each with the name of its template above it."""
    return [document for document in f"\n{text}".split("\n---\n") if _SOURCE.search(document)]


def merged(renderings: Mapping[tuple[str, ...], Sequence[str]]) -> str:
    """Return one manifest with every object of every set, in the order of the sets, marked with what it is for."""
    order: list[str] = []
    owners: dict[str, list[frozenset[str]]] = {}
    for chosen in sorted(renderings, key=len, reverse=True):
        place = 0
        for document in renderings[chosen]:
            if document in owners:
                place = order.index(document)
            else:
                order.insert(place, document)
            owners.setdefault(document, []).append(frozenset(chosen))
            place += 1
    return "".join(_marked(document, owners[document], [*map(frozenset, renderings)]) for document in order)


def _marked(document: str, owners: Collection[frozenset[str]], every_set: Collection[frozenset[str]]) -> str:
    """Return an object with what is on in all sets that have it, and what is off in all of them."""
    on, off = frozenset.intersection(*owners), frozenset.union(*every_set) - frozenset.union(*owners)
    if {chosen for chosen in every_set if on <= chosen and not off & chosen} != {*owners}:
        message = (
            f"this object is for no combination of capabilities that are on and capabilities that are off: {document}"
        )
        raise TestbedError(message, "let the chart have an object for each combination")
    source = _SOURCE.search(document)
    part = PARTS.get(source[1]) if source else None
    needed = [*(name for name in SWITCHES if name in on), *([part] if part else [])]
    lines = ["---", f"for: [{', '.join(needed)}]"]
    lines += [f"without: [{', '.join(sorted(off))}]"] if off else []
    indented = [f"  {line}" if line else "" for line in document.strip("\n").split("\n")]
    return "\n".join([*lines, "object:", *indented]) + "\n"


def rendered(chart: str, namespace: str, values: dict[str, str]) -> str:
    """Return what Helm makes of a chart with these values."""
    command = [str(program("helm", "helm")), "template", "foresail", str(CHARTS / chart), f"--namespace={namespace}"]
    settings = [f"--set={name}={value}" for name, value in values.items()]
    return subprocess.run([*command, *settings], capture_output=True, text=True, check=True).stdout


def main(folder: Path) -> None:
    """Write the manifests into a folder, and nothing else may stay there."""
    for old in folder.glob("*.yaml"):
        old.unlink()
    for name, text in files().items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
