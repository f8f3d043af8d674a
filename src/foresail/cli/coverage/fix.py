"""The commands that close gaps: listed below the table of `foresail coverage`, and run by `--fix` once confirmed."""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from shlex import join, split

from foresail.api import nonadmin, velero
from foresail.cli.access.cluster import Cluster, on_cluster
from foresail.cli.coverage.closing_commands import closing_command, daily_name
from foresail.cli.errors import CommandError, UsageError
from foresail.cli.output.messages import confirmed
from foresail.cli.output.words import counted
from foresail.plan import Key
from foresail.proof.coverage import NamespaceCoverage
from foresail.proof.reasons import STOPS_BACKUPS, Gap, Reason

MOST_SHOWN = 20
"""Commands below the table; the report has all of them."""

_CHANGES = (("schedule", "create"), ("schedule", "unpause"), ("schedule", "run"), ("backup", "create"))
_CHANGES_OF_TENANTS = (("backup", "schedule", "create"), ("backup", "schedule", "unpause"))
_KINDS = {"schedules.velero.io": velero.SCHEDULE, "nonadminschedules": nonadmin.NON_ADMIN_SCHEDULE}


@dataclass(frozen=True, slots=True)
class Fix:
    """A command for the gaps of some namespaces."""

    command: str
    namespaces: tuple[str, ...]
    is_outage: bool = False
    """Whether it shows why no backup can be made now, which comes before everything else."""

    @property
    def words(self) -> list[str]:
        """The command as a shell reads it."""
        return split(self.command)

    @property
    def is_advice(self) -> bool:
        """Whether it is a comment: no command closes the gap."""
        return self.command.startswith("#")

    @property
    def changes(self) -> bool:
        """Whether it closes a gap; others only show the cause."""
        if self.is_advice:
            return False
        program, *words = self.words
        if program == "kubectl":
            return words[0] == "patch"
        is_ours = tuple(words[:2]) in _CHANGES or tuple(words[:3]) in _CHANGES_OF_TENANTS
        return program == "foresail" and is_ours

    @property
    def backs_up(self) -> bool:
        """Whether it makes a backup, which is worth more once the schedules are right."""
        return not self.is_advice and tuple(self.words[1:3]) in (("backup", "create"), ("schedule", "run"))


@dataclass(frozen=True, slots=True)
class Outage:
    """What lets a backup that is made now fail, or wait."""

    velero_down: str = ""
    default_location: str = ""

    def stops(self, namespace: NamespaceCoverage) -> bool:
        """Whether a backup of the namespace cannot be made now; without a schedule it goes to the default location."""
        is_bare = bool(self.default_location) and not namespace.schedules
        return bool(self.velero_down) or is_bare or any(gap.reason in STOPS_BACKUPS for gap in namespace.gaps)


NO_OUTAGE = Outage()


def fixes(
    coverages: Iterable[NamespaceCoverage],
    velero_namespace: str,
    now: datetime,
    *,
    is_tenant: bool,
    outage: Outage = NO_OUTAGE,
) -> list[Fix]:
    """Return each command once, with the namespaces whose gaps it is for; then those that change something come first.

    What shows an outage comes before them, and no backup is offered that it would let fail.
    """
    namespaces: dict[str, dict[str, None]] = {}
    outages = set[str]()
    for namespace in coverages:
        is_stopped = outage.stops(namespace)
        for gap in _to_close(namespace):
            command = closing_command(namespace.name, gap, velero_namespace, now, is_tenant=is_tenant)
            if is_stopped and Fix(command, ()).backs_up:
                continue
            namespaces.setdefault(command, {})[namespace.name] = None
            outages |= {command} if gap.reason in STOPS_BACKUPS else set()
    known = [Fix(command, tuple(names), command in outages) for command, names in namespaces.items()]
    return sorted(known, key=lambda fix: (not fix.is_outage, not fix.changes))


def _to_close(namespace: NamespaceCoverage) -> Iterator[Gap]:
    """Yield the gaps; of a claim that is left out only that, because one more run would leave it out too."""
    yield from namespace.gaps
    for claim in namespace.claims:
        yield from [gap for gap in claim.gaps if gap.reason is Reason.VOLUME_LEFT_OUT] or claim.gaps


def _is_absent(namespace: NamespaceCoverage) -> bool:
    return any(gap.reason is Reason.NAMESPACE_ABSENT for gap in namespace.gaps)


def first_backups(
    coverages: Iterable[NamespaceCoverage],
    velero_namespace: str,
    now: datetime,
    *,
    is_tenant: bool,
    outage: Outage = NO_OUTAGE,
) -> list[Fix]:
    """Return the commands that back up now what has no good backup yet, once the gaps are closed."""
    commands: dict[str, dict[str, None]] = {}
    for namespace in coverages:
        is_wanted = not namespace.is_excluded and namespace.newest_good is None
        if not is_wanted or outage.stops(namespace) or _is_absent(namespace):
            continue
        schedule = next((title for title in namespace.schedules if "/" not in title), "")
        if is_tenant or (namespace.schedules and not schedule):
            words = ["foresail", "backup", "create", f"first-{now:%Y%m%d-%H%M}", "-n", namespace.name]
        else:
            name = schedule or daily_name(namespace.name)
            words = ["foresail", "schedule", "run", name, "-n", velero_namespace]
        commands.setdefault(join(words), {})[namespace.name] = None
    return [Fix(command, tuple(names)) for command, names in commands.items()]


def text_of(listed: Sequence[Fix]) -> str:
    """Return the commands below the table; empty if there are none."""
    if not listed:
        return ""
    lines = [f"  {fix.command}" for fix in listed[:MOST_SHOWN]]
    if len(listed) > MOST_SHOWN:
        lines.append(f"  and {len(listed) - MOST_SHOWN} more: foresail report --html FILE lists all of them")
    can_run = any(fix.changes for fix in listed)
    how = " (--fix runs those that change something)" if can_run else ""
    return "\n".join([f"What closes the gaps, or shows their cause{how}:", *lines])


def run_fixes(args: argparse.Namespace, listed: Sequence[Fix], first: Sequence[Fix], outage: Outage = NO_OUTAGE) -> int:
    """Show what closes the gaps and, confirmed, run it; then offer a first backup of what has none."""
    closing = [fix for fix in listed if fix.changes and not fix.backs_up]
    problems = _run_all(args, "close the gaps", closing) if closing else 0
    if not closing:
        print("No gap can be closed by a command.", file=sys.stderr)
    _print_advice(listed, outage)
    missed = [fix for fix in listed if fix.backs_up]
    backed_up = {name for fix in missed for name in fix.namespaces}
    backups = [*missed, *(fix for fix in first if not backed_up.issuperset(fix.namespaces))]
    if backups and not problems:
        problems = _run_all(args, "make a backup now", backups)
    return 1 if problems else 0


def _print_advice(listed: Iterable[Fix], outage: Outage) -> None:
    """Say what no command can close, whom to ask, and why no backup is made now."""
    cause = outage.velero_down or outage.default_location
    if cause:
        print(f"No backup is offered now: {cause}.", file=sys.stderr)
    for fix in listed:
        if fix.is_advice:
            print(fix.command, file=sys.stderr)
        elif fix.is_outage:
            print(f"First see: {fix.command}", file=sys.stderr)


def _run_all(args: argparse.Namespace, purpose: str, listed: Sequence[Fix]) -> int:
    """Run commands that were confirmed; return how many failed."""
    namespaces = {name for fix in listed for name in fix.namespaces}
    number = counted(len(listed), "command")
    print(f"To {purpose} of {counted(len(namespaces), 'namespace')}:", file=sys.stderr)
    print("\n".join(f"  {fix.command}" for fix in listed), file=sys.stderr)
    if not args.confirm and not sys.stdin.isatty():
        raise UsageError("refusing to change the cluster without confirmation (no terminal)", "add --confirm")
    if not args.confirm and not confirmed(f"Run {number}? [y/N] ", "nothing was run"):
        print("Nothing was run.", file=sys.stderr)
        return 0
    return sum(not _run(args, fix) for fix in listed)


def _run(args: argparse.Namespace, fix: Fix) -> bool:
    """Run one command with the connection of this one; report a problem and go on."""
    from foresail.cli.main import main  # noqa: PLC0415 - it imports every command

    where = [f"--kubeconfig={args.kubeconfig}"] if args.kubeconfig else []
    where += [f"--context={args.context}"] if args.context else []
    program, *words = fix.words
    print(f"$ {fix.command}", file=sys.stderr)
    if program == "foresail":
        return main([*words, *where]) == 0
    try:
        on_cluster(args, lambda cluster: _patch(cluster, words))
    except CommandError as error:
        print(error, file=sys.stderr)
        return False
    return True


async def _patch(cluster: Cluster, words: Sequence[str]) -> None:
    """Send what `kubectl patch KIND NAME --type merge -p BODY -n NAMESPACE` sends."""
    options = argparse.ArgumentParser()
    options.add_argument("verb")
    options.add_argument("kind")
    options.add_argument("name")
    for option in ("--type", "-p", "-n"):
        options.add_argument(option)
    patch = options.parse_args(list(words))
    await cluster.merge(_KINDS[patch.kind], Key(patch.n, patch.name), json.loads(patch.p))
    print(f"{_KINDS[patch.kind].name} {patch.n}/{patch.name} patched.", file=sys.stderr)
