"""`foresail install`: the definitions, the permissions, the operator, then Velero without its schedule controller.

In this order the two never run the Schedules both, and the gap between them is only Velero's rollout.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import msgspec

from foresail import RUNBOOKS
from foresail.api.apps import DEPLOYMENT, Deployment, DeploymentMetadata
from foresail.api.marks import REQUESTER
from foresail.api.metadata import Metadata
from foresail.api.monitoring import PROMETHEUS_RULE, SERVICE_MONITOR
from foresail.api.nonadmin import NON_ADMIN_BACKUP
from foresail.api.pods import PAUSE_IMAGE
from foresail.api.velero import SCHEDULE
from foresail.cli.access.cluster import Cluster, on_cluster
from foresail.cli.doctor.evidence import REVIEW, Evidence, gather, is_other
from foresail.cli.doctor.schedules import runnable
from foresail.cli.errors import CommandError, UsageError
from foresail.cli.install.hand_over import Server, hand_over, velero_server
from foresail.cli.install.installed import Installed, find_installed
from foresail.cli.install.manifests import (
    CAPABILITIES,
    STAMP,
    STAMP_BINDING,
    TENANT_LOCATIONS,
    InstallOptions,
    Piece,
    checked,
    definitions,
    operators,
)
from foresail.cli.install.objects import STOPPED, Patience, all_free, applied, is_established, report
from foresail.cli.install.releases import refuse_amid_rollbacks, remove
from foresail.cli.install.start import start
from foresail.cli.options.parser import CLIENT
from foresail.cli.options.values import deadline
from foresail.cli.output.messages import confirm_deletion, interruptible
from foresail.cli.output.objects import document
from foresail.cli.recovery_key.keys import ensure_key
from foresail.kube.clock import now
from foresail.reporting import some
from foresail.schedules.build import has_hooks
from foresail.schedules.expression import diff_dialects
from foresail.schedules.observe import ScheduleView, Unread, location_of, location_row
from foresail.schedules.reasons import Reason
from foresail.schedules.rules import cannot_run, judge
from foresail.schedules.settings import Settings
from foresail.schedules.velero_server import identify_server

_UNREADABLE = "cannot be read", "cannot be read"
_LOCATION = "names a missing location", "name a missing location"
_DEFAULT = "has no location", "have no location"
_READ_ONLY = "names a read-only location", "name a read-only location"
_MEANING = "changes meaning", "change meaning"
_REFUSALS: dict[str, tuple[str, str]] = {
    Reason.INVALID: ("invalid", "invalid"),
    Reason.NEVER_FIRES: ("never fires", "never fire"),
    Reason.NAME_TOO_LONG: ("has too long a name", "have too long a name"),
}
_KINDS = (_UNREADABLE, *_REFUSALS.values(), _LOCATION, _DEFAULT, _READ_ONLY, _MEANING)


async def preview_schedules(cluster: Cluster, namespace: str, zone: str) -> list[str]:
    """Return how many Schedules can never run, or may run at other times, by the operator's own rules."""
    return schedule_lines(await gather(cluster, namespace, None), zone)


def schedule_lines(seen: Evidence, zone: str = "UTC") -> list[str]:
    """Return one line that counts, and one for each reason; expressions are read in that time zone."""
    kinds = dict(_classified(seen, zone))
    counts = Counter(kinds.values())
    parts = [f"{counts[kind]} {kind[counts[kind] > 1]}" for kind in _KINDS if counts[kind]]
    total = len(seen.schedules)
    if total and not parts:
        parts = ["each can run, and none changes meaning"]
    lines = [f"{total} Schedule{'' if total == 1 else 's'}{': ' if parts else ''}{', '.join(parts)}"]
    lines += [f"  {finding.says}; {finding.fix}" for finding in runnable(seen)]
    changed = [name for name, kind in kinds.items() if kind == _MEANING]
    if changed:
        tag = seen.servers[0].tag if seen.servers else ""
        lines.append(
            f"  {some(changed)}: Velero up to 1.18.2 and from 1.18.3 on read this differently, and its image tag"
            f" ({tag or 'none'}) is not a version; foresail cron diff-dialects shows the fires"
        )
    return lines


def _classified(seen: Evidence, zone: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the name of each Schedule that needs attention, with why."""
    known = identify_server(seen.servers, "", None)
    now = seen.server_time or seen.instant
    places = [location_row(location) for location in seen.locations]
    for name, row in sorted(seen.schedules.items()):
        if isinstance(row, Unread):
            yield name, _UNREADABLE
            continue
        view = ScheduleView(row, (), location_of(row.location, places), known, Settings(zone=zone))
        because = cannot_run(view, judge(view, now))
        if because is not None:
            yield name, _REFUSALS.get(because.reason) or _location_problem(view)
        elif known.dialect is None and diff_dialects(row.text, zone, now) is not None:
            yield name, _MEANING


def _location_problem(view: ScheduleView) -> tuple[str, str]:
    if view.location is not None:
        return _READ_ONLY
    return _LOCATION if view.schedule.location else _DEFAULT


class _Verdict(msgspec.Struct, frozen=True):
    allowed: bool = False


class _Review(msgspec.Struct, frozen=True):
    status: _Verdict = _Verdict()


async def find_rival(cluster: Cluster) -> DeploymentMetadata | None:
    """Return a Deployment that looks like the other controller and may work on every NonAdminBackup.

    Any tenant can create a Deployment of that name or image. Only an administrator can give it the permission.
    """
    for raw in await cluster.listed(DEPLOYMENT, ""):
        deployment = msgspec.json.decode(raw, type=Deployment)
        if is_other(deployment) and await _may_list_backups(cluster, deployment):
            return deployment.metadata
    return None


async def _may_list_backups(cluster: Cluster, deployment: Deployment) -> bool:
    account = deployment.spec.template.spec.service_account_name or "default"
    asked = {"group": NON_ADMIN_BACKUP.group, "resource": NON_ADMIN_BACKUP.plural, "verb": "list"}
    user = f"system:serviceaccount:{deployment.metadata.namespace}:{account}"
    body = {"apiVersion": REVIEW.api_version, "kind": REVIEW.name, "spec": {"user": user, "resourceAttributes": asked}}
    answer = await cluster.reviewed(REVIEW, body)
    return answer is None or msgspec.json.decode(answer, type=_Review).status.allowed  # in doubt it may


_SELF_SERVICE = "self-service"


class _Template(msgspec.Struct, frozen=True):
    template: msgspec.Raw = msgspec.Raw(b"{}")


class _Hooked(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: _Template = _Template()


_ANYTHING = Installed(CAPABILITIES, "foresail")  # with it the options can be checked before the cluster is asked


def run_install(args: argparse.Namespace) -> int:
    """Run the command."""
    if args.dry_run == CLIENT:
        print(_rendered(checked(install_options(args, None))))
        return 0
    checked(install_options(args, _ANYTHING))
    patience = Patience(deadline(args.timeout) or now())
    return interruptible(lambda: on_cluster(args, lambda cluster: install(cluster, args, patience)), STOPPED)


def _rendered(options: InstallOptions) -> str:
    """Return every manifest as YAML, for tools that apply it themselves."""
    pieces = [*definitions(), *operators(options)]
    return "\n---\n".join(document(piece.body, "yaml") for piece in pieces)


async def install(cluster: Cluster, args: argparse.Namespace, patience: Patience) -> int:
    """Install, on a cluster."""
    server = await _server_beside(cluster, args.namespace)
    before = await find_installed(cluster, args.namespace)
    options = replace(install_options(args, before), velero_account=server.account, velero_time_zone=server.time_zone)
    hooked = await _schedules_with_hooks(cluster, args.namespace)
    options = checked(await _without_rival(cluster, replace(options, schedules_with_hooks=hooked), before))
    off = capabilities_switched_off(before, options, is_confirmed=bool(args.confirm or args.dry_run))
    released = to_release(args, before, off)
    if "rollback" in released:
        await refuse_amid_rollbacks(cluster)
    ours = definitions()
    wanted = await without_stamp(cluster, operators(options))
    await _all_known(cluster, wanted)
    await all_free(cluster, wanted)
    dry_run = bool(args.dry_run)
    await _define(cluster, ours, patience, dry_run=dry_run)
    if "schedules" not in options.capabilities:
        await _leave_to_velero(cluster, server, patience, is_ours="schedules" in released, dry_run=dry_run)
    for piece in (piece for piece in wanted if not piece.is_operator):
        if dry_run and await _lacks_its_kind(cluster, piece, ours):
            report("created", piece, "not validated: its kind does not exist yet", dry_run=True)
        else:
            await applied(cluster, piece, dry_run=dry_run)
    if _SELF_SERVICE in options.capabilities:
        await ensure_key(cluster, options.namespace, dry_run=args.dry_run)
    await start(cluster, server, options, [piece for piece in wanted if piece.is_operator], patience, dry_run=dry_run)
    await remove(cluster, options, wanted, released, patience, dry_run=dry_run)
    if dry_run:
        if "schedules" in options.capabilities:
            await _preview(cluster, server)
        print("Nothing was written: this was a dry run.", file=sys.stderr)
        return 0
    print(f"{what_is_off(options)}\nCheck the installation with foresail doctor.", file=sys.stderr)
    return 0


async def _leave_to_velero(
    cluster: Cluster, server: Server, patience: Patience, *, is_ours: bool, dry_run: bool
) -> None:
    """Let Velero run the Schedules before the operator stops; if we never ran them, only warn."""
    if is_ours:
        await hand_over(cluster, server, patience, off=False, dry_run=dry_run)
    elif server.is_off:
        print(
            f"warning: Velero's schedule controller is off in Deployment {server.key}, and schedules is not switched"
            " on: does anybody run the Schedules? foresail doctor tells",
            file=sys.stderr,
        )


async def _schedules_with_hooks(cluster: Cluster, namespace: str) -> tuple[str, ...]:
    """Return the Schedules that have hooks now: the runs of no others may have any."""
    schedules = [msgspec.json.decode(raw, type=_Hooked) for raw in await cluster.listed_if_known(SCHEDULE, namespace)]
    return tuple(sorted(schedule.metadata.name for schedule in schedules if has_hooks(bytes(schedule.spec.template))))


async def _server_beside(cluster: Cluster, namespace: str) -> Server:
    server = await velero_server(cluster, namespace)
    if server is None:
        problem = f"no Deployment in namespace {namespace} runs a Velero server"
        raise CommandError(problem, "install Velero first, or name its namespace with --velero-namespace")
    return server


async def _preview(cluster: Cluster, server: Server) -> None:
    if not server.is_off:  # else the operator runs them already
        print("\n".join(await preview_schedules(cluster, server.key.namespace, server.time_zone)), file=sys.stderr)


def what_is_off(options: InstallOptions) -> str:
    """Return which capabilities and extras an installation has not, and the options that add them."""
    off = [f"{name} (--{name})" for name in CAPABILITIES if name not in options.capabilities]
    if _SELF_SERVICE in options.capabilities:
        off += [] if options.tenant_locations else ["buckets of teams (--tenant-locations)"]
        off += [] if options.hooks else ["hooks of teams (--self-service-hooks)"]
        elsewhere = "restores into other namespaces (--self-service-other-namespaces)"
        off += [] if options.other_namespaces else [elsewhere]
        of_classes = "restores from backups of classes (--self-service-from-protection)"
        off += [] if options.from_protection or "protection" not in options.capabilities else [of_classes]
        off += [] if options.download_contents else ["downloads of contents (--download-contents)"]
    if "rollback" in options.capabilities and not options.rollback_volumes:
        off.append("volumes of rollbacks (--rollback-volumes)")
    off += [] if options.monitoring else ["alerts and metrics for Prometheus (--monitoring)"]
    if not off:
        return "Everything is on."
    return f"Off: {', '.join(off)}. To switch one on, run the same command again with its option added."


def install_options(args: argparse.Namespace, before: Installed | None) -> InstallOptions:
    """Return what is to be installed: what the options say, else what is there, else the defaults."""
    current = before or Installed(("schedules",), "")
    pause = current.pause_image or PAUSE_IMAGE
    image = current.image if args.image is None else args.image
    if args.image is None and not image:
        raise UsageError(
            "--image is missing",
            "no image is published yet: build one with make image, push it, and pass it with --image",
        )
    on = tuple(name for name, is_on in _switches(args).items() if _given(is_on, name in current.capabilities))
    if args.rollback is None:
        on = _without_orphans(on)
    kept = current if _SELF_SERVICE in on else Installed(on, "")  # its extras go with self-service
    return InstallOptions(
        capabilities=on,
        namespace=args.namespace,
        velero_account="velero",
        image=image,
        pause_image=pause if args.primer_pause_image is None else args.primer_pause_image,
        skip_immediately=_given(args.schedule_skip_immediately, current.skip_immediately),
        monitoring=_given(args.monitoring, current.monitoring),
        monitoring_labels=_labels(args.monitoring_label) or current.monitoring_labels,
        runbook_url=(current.runbook_url or RUNBOOKS) if args.runbook_url is None else args.runbook_url,
        tenant_locations=_given(args.tenant_locations, kept.tenant_locations),
        download_contents=_given(args.download_contents, kept.download_contents),
        hooks=_given(args.self_service_hooks, kept.hooks),
        other_namespaces=_given(args.self_service_other_namespaces, kept.other_namespaces),
        from_protection=_given(args.self_service_from_protection, kept.from_protection),
        rollback_volumes=_given(args.rollback_volumes, current.rollback_volumes and "rollback" in on),
    )


def _without_orphans(capabilities: Iterable[str]) -> tuple[str, ...]:
    """Return the capabilities without rollback where there is no self-service, which carries it out."""
    on = tuple(capabilities)
    return on if _SELF_SERVICE in on else tuple(capability for capability in on if capability != "rollback")


def _switches(args: argparse.Namespace) -> dict[str, bool | None]:
    """Return whether the options switch each capability on or off; None if they leave it as it is."""
    return {
        "schedules": args.schedules,
        _SELF_SERVICE: args.self_service,
        "primers": args.primers,
        "restore-checks": args.restore_checks,
        "protection": args.protection,
        "rollback": args.rollback,
    }


def _given(option: bool | None, current: bool) -> bool:  # noqa: FBT001 - an option and what it takes the place of
    return current if option is None else option


def capabilities_switched_off(before: Installed | None, options: InstallOptions, *, is_confirmed: bool) -> list[str]:
    """Return the capabilities that are there and no longer wanted; ask, unless that is confirmed."""
    off = [
        capability for capability in (before.capabilities if before else ()) if capability not in options.capabilities
    ]
    if before is not None and before.tenant_locations and not options.tenant_locations and _SELF_SERVICE not in off:
        off.append(TENANT_LOCATIONS)
    if off and not is_confirmed:
        confirm_deletion([f"capability {capability} with its permissions and what it holds" for capability in off])
    return off


def to_release(args: argparse.Namespace, before: Installed | None, off: Sequence[str]) -> list[str]:
    """Return the capabilities to release: those switched off now, and by the same command before, if it was ended."""
    switches = {**_switches(args), TENANT_LOCATIONS: args.tenant_locations}
    again = [name for name, is_on in switches.items() if before is not None and is_on is False]
    return [switch for switch in switches if switch in off or switch in again]


def _labels(given: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    wrong = next((text for text, (name, _, value) in zip(given, pairs, strict=True) if not name or not value), None)
    if wrong is not None:
        raise UsageError(f"--monitoring-label: {wrong!r} is no label", "give it as NAME=VALUE")
    return {name: value for name, _, value in pairs}


async def _all_known(cluster: Cluster, wanted: Sequence[Piece]) -> None:
    """See, before anything is written, that the cluster has the kinds which neither it nor Foresail brings along."""
    kinds = [kind for kind in (PROMETHEUS_RULE, SERVICE_MONITOR) if any(piece.kind == kind for piece in wanted)]
    missing = [f"{kind.plural}.{kind.group}" for kind in kinds if not await cluster.knows(kind)]
    if missing:
        problem = f"--monitoring: the cluster does not serve {' and '.join(missing)}; nothing was written"
        raise CommandError(problem, "install the Prometheus operator, or leave out --monitoring")


async def without_stamp(cluster: Cluster, wanted: list[Piece]) -> list[Piece]:
    """Leave out the policy that sets the requester, if the API server has no such policies."""
    if not any(piece.kind is STAMP for piece in wanted) or await cluster.knows(STAMP):
        return wanted
    print(
        "the API server has no MutatingAdmissionPolicies, which Kubernetes has from 1.36 on, so it does not set the"
        f" requester; `foresail backup create` does, and kubectl needs the annotation {REQUESTER}",
        file=sys.stderr,
    )
    return [piece for piece in wanted if piece.kind not in (STAMP, STAMP_BINDING)]


async def _without_rival(cluster: Cluster, options: InstallOptions, before: Installed | None) -> InstallOptions:
    """Return the options, without a first self-service if another controller serves the same kinds."""
    if _SELF_SERVICE not in options.capabilities:
        return options
    rival = await find_rival(cluster)
    if rival is None:
        return options
    seems = f"Deployment {rival.namespace}/{rival.name} seems to work on the same NonAdminBackups"
    remedy = f"kubectl delete deployment {rival.name} -n {rival.namespace}"
    if before is not None and _SELF_SERVICE in before.capabilities:  # whoever may create a Deployment could end it
        print(f"warning: {seems}; self-service stays on. If that is so, stop it: {remedy}", file=sys.stderr)
        return options
    print(f"self-service stays off: {seems}. Delete it, then run the same command again: {remedy}", file=sys.stderr)
    others = _without_orphans(capability for capability in options.capabilities if capability != _SELF_SERVICE)
    return replace(
        options,
        capabilities=others,
        tenant_locations=False,
        download_contents=False,
        hooks=False,
        other_namespaces=False,
        from_protection=False,
        rollback_volumes=False,
    )


async def _define(cluster: Cluster, ours: Sequence[Piece], patience: Patience, *, dry_run: bool) -> None:
    for piece in ours:
        await applied(cluster, piece, dry_run=dry_run)
    if dry_run:
        return
    for piece in ours:
        problem = f"{piece} is not established: the API server does not serve its kind yet"
        await patience.wait(
            f"the API server serves {piece.key}",
            partial(is_established, cluster, piece),
            CommandError(problem, f"kubectl describe crd {piece.key}; then try again"),
        )


async def _lacks_its_kind(cluster: Cluster, piece: Piece, ours: Sequence[Piece]) -> bool:
    """Return whether an object is of a kind that would only come with this installation."""
    name = f"{piece.kind.plural}.{piece.kind.group}"
    pieces = [item for item in ours if item.key.name == name]
    return bool(pieces) and not await is_established(cluster, pieces[0])
