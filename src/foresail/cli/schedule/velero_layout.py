"""A Schedule as `velero schedule describe` lays it out, line for line, with tabs where columns end."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from foresail.cli.options.selectors import shown_selector
from foresail.cli.output.times import go_time, shown_duration
from foresail.cli.schedule.snapshot import EvaluatedSchedule

_NONE = "<none>"
_SCOPED = (
    ("Included cluster-scoped", "includedClusterScopedResources", _NONE),
    ("Excluded cluster-scoped", "excludedClusterScopedResources", _NONE),
    ("Included namespace-scoped", "includedNamespaceScopedResources", "*"),
    ("Excluded namespace-scoped", "excludedNamespaceScopedResources", _NONE),
)


def veleros_lines(evaluated_schedule: EvaluatedSchedule) -> Iterator[str]:
    """Yield the lines of `velero schedule describe`."""
    schedule = evaluated_schedule.schedule
    template = evaluated_schedule.spec.get("template") or {}
    yield f"Name:\t{schedule.key.name}"
    yield f"Namespace:\t{schedule.key.namespace}"
    yield from _pairs("Labels", schedule.labels)
    yield from _pairs("Annotations", schedule.annotations)
    yield ""
    yield f"Phase:\t{schedule.phase or 'New'}"
    policy = template.get("resourcePolicy")
    if policy:
        yield from ("", "Resource policies:", f"\tType:\t{policy.get('kind')}", f"\tName:\t{policy.get('name')}")
    files = (template.get("uploaderConfig") or {}).get("parallelFilesUpload") or 0
    if files > 0:
        yield from ("", "Uploader config:", f"\tParallel files upload:\t{files}")
    if schedule.errors:
        first, *others = schedule.errors
        yield from ("", f"Validation errors:\t{first}", *(f"\t{error}" for error in others))
    yield from ("", f"Paused:\t{str(schedule.paused).lower()}")
    yield from ("", f"Schedule:\t{schedule.text}")
    yield from ("", "Backup Template:")
    for line in _template(template):
        yield f"\t{line}"
    yield from ("", f"Last Backup:\t{go_time(schedule.last_backup) if schedule.last_backup else '<never>'}")


def _pairs(name: str, pairs: Mapping[str, str]) -> Iterator[str]:
    lines = [f"{key}={pairs[key]}" for key in sorted(pairs)] or [_NONE]
    yield f"{name}:\t{lines[0]}"
    for line in lines[1:]:
        yield f"\t{line}"


def _template(template: Mapping[str, Any]) -> Iterator[str]:
    yield "Namespaces:"
    yield f"\tIncluded:\t{_listed(template.get('includedNamespaces'), '*')}"
    yield f"\tExcluded:\t{_listed(template.get('excludedNamespaces'), _NONE)}"
    yield from ("", "Resources:")
    cluster = template.get("includeClusterResources")
    if template.get("includedResources") or template.get("excludedResources") or cluster is not None:
        yield f"\tIncluded:\t{_listed(template.get('includedResources'), '*')}"
        yield f"\tExcluded:\t{_listed(template.get('excludedResources'), _NONE)}"
        yield f"\tCluster-scoped:\t{_switch(cluster, 'included', 'excluded')}"
    else:
        for name, field, empty in _SCOPED:
            yield f"\t{name}:\t{_listed(template.get(field), empty)}"
    yield from ("", f"Label selector:\t{shown_selector(template.get('labelSelector'))}")
    others = [shown_selector(item) for item in template.get("orLabelSelectors") or []]
    yield from ("", f"Or label selector:\t{' or '.join(others) or _NONE}")
    yield from ("", f"Storage Location:\t{template.get('storageLocation') or ''}")
    yield from ("", f"Velero-Native Snapshot PVs:\t{_switch(template.get('snapshotVolumes'))}")
    if template.get("defaultVolumesToFsBackup") is not None:
        yield f"File System Backup (Default):\t{_switch(template['defaultVolumesToFsBackup'])}"
    yield f"Snapshot Move Data:\t{_switch(template.get('snapshotMoveData'))}"
    yield f"Data Mover:\t{template.get('datamover') or 'velero'}"
    yield from ("", f"TTL:\t{shown_duration(template.get('ttl'))}")
    yield from ("", f"CSISnapshotTimeout:\t{shown_duration(template.get('csiSnapshotTimeout'))}")
    yield f"ItemOperationTimeout:\t{shown_duration(template.get('itemOperationTimeout'))}"
    yield ""
    yield from _hooks((template.get("hooks") or {}).get("resources") or [])
    ordered = template.get("orderedResources")
    if ordered is not None:
        yield from ("", "OrderedResources:", *(f"\t{kind}: {ordered[kind]}" for kind in sorted(ordered)))


def _hooks(hooks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not hooks:
        yield f"Hooks:\t{_NONE}"
        return
    yield from ("Hooks:", "\tResources:")
    for item in hooks:
        yield f"\t\t{item.get('name')}:"
        yield "\t\t\tNamespaces:"
        yield f"\t\t\t\tIncluded:\t{_listed(item.get('includedNamespaces'), '*')}"
        yield f"\t\t\t\tExcluded:\t{_listed(item.get('excludedNamespaces'), _NONE)}"
        yield from ("", "\t\t\tResources:")
        yield f"\t\t\t\tIncluded:\t{_listed(item.get('includedResources'), '*')}"
        yield f"\t\t\t\tExcluded:\t{_listed(item.get('excludedResources'), _NONE)}"
        yield from ("", f"\t\t\tLabel selector:\t{shown_selector(item.get('labelSelector'))}")
        for when in ("pre", "post"):
            for hook in item.get(when) or []:
                yield from _command(when, hook.get("exec"))


def _command(when: str, run: Mapping[str, Any] | None) -> Iterator[str]:
    if run is None:
        return
    yield from ("", f"\t\t\t{when.capitalize()} Exec Hook:")
    yield f"\t\t\t\tContainer:\t{run.get('container') or ''}"
    yield f"\t\t\t\tCommand:\t{' '.join(run.get('command') or [])}"
    yield f"\t\t\t\tOn Error:\t{run.get('onError') or ''}"
    yield f"\t\t\t\tTimeout:\t{shown_duration(run.get('timeout'))}"


def _listed(names: Sequence[str] | None, empty: str) -> str:
    return ", ".join(names or ()) or empty


def _switch(value: object, yes: str = "true", no: str = "false") -> str:
    return "auto" if value is None else yes if value else no
