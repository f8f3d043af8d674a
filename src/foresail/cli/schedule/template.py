"""The Schedule that `foresail schedule create` makes: field for field what Velero's own command line makes."""

import argparse
from typing import Any

from foresail.api import velero
from foresail.cli.errors import CommandError
from foresail.cli.options.selectors import read_selector
from foresail.cli.options.values import read_list, read_ordered, read_pairs, spelled
from foresail.cli.output.times import go_duration
from foresail.cli.schedule.template_arguments import DURATIONS, LISTS, SWITCHES
from foresail.cron.duration import nanoseconds
from foresail.schedules.rules import LONGEST_NAME

_OLD = ("include_resources", "exclude_resources", "include_cluster_resources")
_NEW = (
    "include_cluster_scoped_resources",
    "exclude_cluster_scoped_resources",
    "include_namespace_scoped_resources",
    "exclude_namespace_scoped_resources",
)


def schedule_object(chosen: argparse.Namespace) -> dict[str, Any]:
    """Return the Schedule that the options describe."""
    if len(chosen.name) > LONGEST_NAME:
        problem = (
            f"Schedule {chosen.name}: the name has {len(chosen.name)} characters, and its Backups carry it in a label"
        )
        raise CommandError(problem, f"choose a name with at most {LONGEST_NAME} characters")
    metadata: dict[str, Any] = {"name": chosen.name, "namespace": chosen.namespace}
    for field in ("labels", "annotations"):
        pairs = read_pairs(getattr(chosen, field), f"--{field}")
        if pairs:
            metadata[field] = pairs
    spec: dict[str, Any] = {"schedule": chosen.schedule, "template": template_of(chosen)}
    spec["useOwnerReferencesInBackup"] = chosen.use_owner_references_in_backup
    if chosen.paused:
        spec["paused"] = True
    if chosen.skip_immediately is not None:
        spec["skipImmediately"] = chosen.skip_immediately
    return {
        "apiVersion": velero.SCHEDULE.api_version,
        "kind": velero.SCHEDULE.name,
        "metadata": metadata,
        "spec": spec,
    }


def template_of(chosen: argparse.Namespace) -> dict[str, Any]:
    """Return the template of Backups; fields that Velero's command line always writes are written here too."""
    _refuse_contradictions(chosen)
    policy = chosen.resource_policies_configmap
    files = chosen.parallel_files_upload
    others = (chosen.or_selector or "").split(" or ")
    given = {
        **{field: read_list(getattr(chosen, option)) for option, field in LISTS.items()},
        "labelSelector": read_selector(chosen.selector or ""),
        "orLabelSelectors": [read_selector(each) for each in others if each],
        "orderedResources": read_ordered(chosen.ordered_resources or ""),
        "resourcePolicy": {"kind": "configmap", "name": policy} if policy else None,
        "uploaderConfig": {"parallelFilesUpload": files} if files > 0 else None,
        "storageLocation": chosen.storage_location,
        "datamover": chosen.data_mover,
    }
    switches = {field: getattr(chosen, option) for option, field in SWITCHES.items()}
    return {
        "hooks": {},
        "metadata": {},
        "includedNamespaces": ["*"],
        **{field: value for field, value in given.items() if value},
        **{field: value for field, value in switches.items() if value is not None},
        **{field: _duration(getattr(chosen, option), option) for option, field in DURATIONS.items()},
    }


def _refuse_contradictions(chosen: argparse.Namespace) -> None:
    if chosen.selector and chosen.or_selector:
        raise CommandError("--selector and --or-selector cannot be combined", "specify one of them")
    old = [each for each in _OLD if getattr(chosen, each) is not None]
    new = [each for each in _NEW if getattr(chosen, each) is not None]
    if old and new:
        first, second = (spelled(each[0]) for each in (old, new))
        hint = "use the four options for cluster-scoped and namespace-scoped resources, or the three others"
        raise CommandError(f"{first} and {second} cannot be combined", hint)
    both = set(read_list(chosen.include_namespaces)) & set(read_list(chosen.exclude_namespaces))
    if both:
        raise CommandError(f"namespaces both included and excluded: {', '.join(sorted(both))}", "list each once")


def _duration(text: str, option: str) -> str:
    length = nanoseconds(text)
    if length is None:
        raise CommandError(f"{spelled(option)}: {text!r} is not a duration", "write 72h, 90m or 1h30m")
    return go_duration(length)
