"""What an administrator sets for all Primers, as flags of `foresail operator run`."""

import argparse
from datetime import timedelta
from typing import Any

from foresail.api.pods import PAUSE_IMAGE
from foresail.cli.errors import CommandError
from foresail.cli.options.parser import add_switch, true_or_false
from foresail.cron import CronError
from foresail.cron.duration import nanoseconds
from foresail.cron.zone_names import validate_zone_name


def add_primer_settings(run: argparse.ArgumentParser) -> None:
    """Add the flags."""
    group = run.add_argument_group("primers")
    for flag, default, metavar, meaning in (
        ("--primer-pause-image", PAUSE_IMAGE, "IMAGE", "image of placeholders (default: %(default)s)"),
        ("--primer-hold-image", None, "IMAGE", "image of Jobs of primer CronJobs; without it method CronJob is off"),
        ("--primer-priority-class", "foresail-placeholder", "NAME", "priority class of both (default: %(default)s)"),
        ("--primer-longest-warm-up", "6h", "DURATION", "maximum spec.warmUp (default: %(default)s)"),
        ("--primer-time-zone", "UTC", "ZONE", "time zone of kube-controller-manager (default: %(default)s)"),
    ):
        group.add_argument(flag, default=default, metavar=metavar, help=meaning)
    group.add_argument(
        "--primer-hold-command",
        action="append",
        metavar="WORD",
        help="command in the hold image, with seconds as its last argument, such as sleep; may be repeated"
        " (default: foresail hold)",
    )
    for flag, most, meaning in (
        ("--primer-placeholders-per-namespace", 50, "placeholders in one namespace at a time"),
        ("--primer-placeholders", 2_000, "placeholders in all at a time"),
    ):
        group.add_argument(
            flag, type=int, default=most, metavar="N", help=f"maximum number of {meaning} (default: {most})"
        )
    group.add_argument(
        "--primer-image-volumes",
        type=_true_false_or_auto,
        nargs="?",
        const=True,
        default=None,
        metavar="auto|true|false",
        help="whether placeholders also pull the images of the run, by image volumes; auto: if every kubelet is of"
        " Kubernetes 1.35 or newer (default: auto)",
    )
    group.add_argument(
        "--primer-namespace",
        action="append",
        default=[],
        metavar="NAMESPACE",
        help="hold capacity only in this namespace; may be repeated (default: all namespaces)",
    )
    annotated = "prime CronJobs with the annotation foresail.dev/warm-up, without a Primer"
    add_switch(group, "--primer-annotations", annotated, default=False)
    for flag, meaning in (("--primer-label", "label"), ("--primer-annotation", "annotation")):
        group.add_argument(
            flag, action="append", default=[], metavar="NAME=VALUE", help=f"additional {meaning} for created objects"
        )


def primer_settings(args: argparse.Namespace) -> Any:  # noqa: ANN401 - imported late, as the operator is
    """Return the settings by the flags."""
    from foresail.primers.view import Settings  # noqa: PLC0415

    longest = nanoseconds(args.primer_longest_warm_up)
    if longest is None or longest <= 0:
        problem = f"--primer-longest-warm-up: {args.primer_longest_warm_up!r} is not a duration"
        raise CommandError(problem, hint="write 2h or 90m")
    try:
        zone = validate_zone_name(args.primer_time_zone)
    except CronError as error:
        raise CommandError(f"--primer-time-zone: {error}") from error
    return Settings(
        zone=zone,
        max_warm_up=timedelta(microseconds=longest // 1000),
        max_per_namespace=args.primer_placeholders_per_namespace,
        max_in_cluster=args.primer_placeholders,
        pause_image=args.primer_pause_image,
        hold_image=args.primer_hold_image or "",
        hold_command=tuple(args.primer_hold_command or ("foresail", "hold")),
        priority_class=args.primer_priority_class,
        namespaces=frozenset(args.primer_namespace),
        annotated_cron_jobs=args.primer_annotations,
        image_volumes=args.primer_image_volumes,
        labels=_pairs("--primer-label", args.primer_label),
        annotations=_pairs("--primer-annotation", args.primer_annotation),
    )


def _true_false_or_auto(text: str) -> bool | None:
    return None if text.lower() == "auto" else true_or_false(text)


def _pairs(flag: str, texts: list[str]) -> tuple[tuple[str, str], ...]:
    pairs = [text.partition("=") for text in texts]
    for name, sign, _ in pairs:
        if not (name and sign):
            raise CommandError(f"{flag}: {name!r} has no value", hint="write NAME=VALUE")
    return tuple((name, value) for name, _, value in pairs)
