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


def schedule_object(args: argparse.Namespace) -> dict[str, Any]:
    """Return the Schedule that the options describe."""
    if len(args.name) > LONGEST_NAME:
        problem = f"Schedule {args.name}: the name has {len(args.name)} characters, and its Backups carry it in a label"
        raise CommandError(problem, f"choose a name with at most {LONGEST_NAME} characters")
    metadata: dict[str, Any] = {"name": args.name, "namespace": args.namespace}
    for field in ("labels", "annotations"):
        pairs = read_pairs(getattr(args, field), f"--{field}")
        if pairs:
            metadata[field] = pairs
    spec: dict[str, Any] = {"schedule": args.schedule, "template": template_of(args)}
    spec["useOwnerReferencesInBackup"] = args.use_owner_references_in_backup
    if args.paused:
        spec["paused"] = True
    if args.skip_immediately is not None:
        spec["skipImmediately"] = args.skip_immediately
    return {
        "apiVersion": velero.SCHEDULE.api_version,
        "kind": velero.SCHEDULE.name,
        "metadata": metadata,
        "spec": spec,
    }


def template_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the template of Backups; fields that Velero's command line always writes are written here too."""
    _refuse_contradictions(args)
    policy = args.resource_policies_configmap
    files = args.parallel_files_upload
    others = (args.or_selector or "").split(" or ")
    given = {
        **{field: read_list(getattr(args, option)) for option, field in LISTS.items()},
        "labelSelector": read_selector(args.selector or ""),
        "orLabelSelectors": [read_selector(each) for each in others if each],
        "orderedResources": read_ordered(args.ordered_resources or ""),
        "resourcePolicy": {"kind": "configmap", "name": policy} if policy else None,
        "uploaderConfig": {"parallelFilesUpload": files} if files > 0 else None,
        "storageLocation": args.storage_location,
        "datamover": args.data_mover,
    }
    switches = {field: getattr(args, option) for option, field in SWITCHES.items()}
    return {
        "hooks": {},
        "metadata": {},
        "includedNamespaces": ["*"],
        **{field: value for field, value in given.items() if value},
        **{field: value for field, value in switches.items() if value is not None},
        **{field: _duration(getattr(args, option), option) for option, field in DURATIONS.items()},
    }


def _refuse_contradictions(args: argparse.Namespace) -> None:
    if args.selector and args.or_selector:
        raise CommandError("--selector and --or-selector cannot be combined", "specify one of them")
    old = [each for each in _OLD if getattr(args, each) is not None]
    new = [each for each in _NEW if getattr(args, each) is not None]
    if old and new:
        first, second = (spelled(each[0]) for each in (old, new))
        hint = "use the four options for cluster-scoped and namespace-scoped resources, or the three others"
        raise CommandError(f"{first} and {second} cannot be combined", hint)
    both = set(read_list(args.include_namespaces)) & set(read_list(args.exclude_namespaces))
    if both:
        raise CommandError(f"namespaces both included and excluded: {', '.join(sorted(both))}", "list each once")


def _duration(text: str, option: str) -> str:
    length = nanoseconds(text)
    if length is None:
        raise CommandError(f"{spelled(option)}: {text!r} is not a duration", "write 72h, 90m or 1h30m")
    return go_duration(length)
