"""The controller of RestoreChecks: what it watches, how events map to keys, and which `decide` it calls."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from foresail.api import core, mirrored, nonadmin, velero
from foresail.api.apps import DEPLOYMENT, Deployment
from foresail.api.marks import CHECK_LABEL
from foresail.api.restore_check import RESTORE_CHECK
from foresail.kube.background_reads import BackgroundReads
from foresail.kube.controller import Informer
from foresail.kube.execute import Result
from foresail.kube.reflector import Change, WatchSpec
from foresail.kube.store import Store
from foresail.plan import Key, Plan
from foresail.proof.checks import observe, rules
from foresail.proof.checks.decide import decide
from foresail.proof.checks.metrics import CheckMetrics
from foresail.proof.checks.observe import (
    BackupRow,
    CheckRow,
    CheckView,
    Circumstances,
    DownloadRow,
    Files,
    FilesFound,
    LocationRow,
    NamedRow,
    Piece,
    RestoreRow,
    ServerRow,
)
from foresail.proof.checks.reader import ReadFiles


def _by_check(row: Piece) -> list[str]:
    return [row.check] if row.check else []


class RestoreChecks:
    """Restores backups into fenced sandboxes and compares."""

    name = "restore-checks"

    def __init__(self, velero_namespace: str, read_files: ReadFiles) -> None:
        self.velero_namespace = velero_namespace
        self.checks = Store[CheckRow]()
        self.backups = Store[BackupRow]({"phase": lambda row: [row.phase], "uid": lambda row: [row.uid]})
        self.locations = Store[LocationRow]({"role": lambda row: ["default"] if row.is_default else []})
        self.classes = Store[NamedRow]()
        self.servers = Store[ServerRow]()
        self.sandboxes = Store[Piece]({"check": _by_check})
        self.restores = Store[RestoreRow]({"check": _by_check})
        self.config_maps = Store[Piece]({"check": _by_check})
        self.downloads = Store[DownloadRow]({"check": _by_check})
        self.background_reads = BackgroundReads[Files, FilesFound](read_files)
        self.pass_due: dict[Key, datetime | None] = {}
        self.metrics = CheckMetrics(self.checks, self.sandboxes, self.pass_due)

    @property
    def informers(self) -> tuple[Informer, ...]:
        """RestoreChecks, Backups, locations, storage classes, Velero, and everything made for a check."""
        here, ours = self.velero_namespace, CHECK_LABEL
        checks = WatchSpec(RESTORE_CHECK, observe.CheckWire, observe.check_row, here)
        backups = WatchSpec(velero.BACKUP, observe.BackupWire, observe.backup_row, here)
        locations = WatchSpec(velero.LOCATION, mirrored.Location, _location_row, here)
        classes = WatchSpec(core.STORAGE_CLASS, observe.NamedWire, observe.named_row)
        servers = WatchSpec(DEPLOYMENT, Deployment, observe.server_row, here)
        sandboxes = WatchSpec(core.NAMESPACE, observe.PieceWire, observe.piece_row, labels=ours)
        restores = WatchSpec(velero.RESTORE, observe.RestoreWire, observe.restore_row, here, labels=ours)
        maps = WatchSpec(core.CONFIG_MAP, observe.PieceWire, observe.piece_row, here, labels=ours)
        downloads = WatchSpec(velero.DOWNLOAD_REQUEST, observe.DownloadWire, observe.download_row, here, labels=ours)
        return (
            Informer(checks, self.checks, lambda change: (change.key,)),
            Informer(backups, self.backups, self._for_backup),
            Informer(locations, self.locations, self._for_location),
            Informer(classes, self.classes, lambda _: ()),
            Informer(servers, self.servers, lambda _: ()),
            Informer(sandboxes, self.sandboxes, self._for_piece),
            Informer(restores, self.restores, self._for_piece),
            Informer(maps, self.config_maps, self._for_piece),
            Informer(downloads, self.downloads, self._for_piece),
        )

    def _for_backup(self, change: Change[BackupRow]) -> Iterator[Key]:
        """Return the checks that select a Backup that was completed or is deleted."""
        rows = [each for each in (change.old, change.new) if each is not None and each.phase == velero.COMPLETED]
        if not rows or change.old == change.new:
            return
        for check in self.checks.rows():
            if any(self._selects(check, each) for each in rows):
                yield check.key

    def _for_location(self, change: Change[LocationRow]) -> Iterator[Key]:
        """Return every check if a location came, went or changed; Velero writes to each of them every minute."""
        if change.old != change.new:
            yield from (each.key for each in self.checks.rows())

    def _for_piece(self, change: Change[Piece]) -> Iterator[Key]:
        row = change.new or change.old
        if row is not None and row.check:
            yield Key(self.velero_namespace, row.check)

    def observe(self, key: Key, _now: datetime) -> CheckView | None:
        """Collect what is known about a check; None if it cannot be read, because its sandbox may be in use."""
        if key in self.checks.unread:
            return None
        check = self.checks.get(key)
        name = key.name
        view = CheckView(
            key=key,
            check=check,
            sandboxes=tuple(self.sandboxes.by("check", name)),
            restores=tuple(self.restores.by("check", name)),
            config_maps=tuple(self.config_maps.by("check", name)),
            downloads=tuple(self.downloads.by("check", name)),
        )
        if check is None:
            return view if view.sandboxes or view.restores or view.config_maps or view.downloads else None
        run = check.status.run
        backup = next(iter(self.backups.by("uid", run.backup_uid)), None) if run is not None else None
        location = self._location(backup) if backup is not None else None
        completed = self.backups.by("phase", velero.COMPLETED)
        backups = tuple(each for each in completed if self._selects(check, each))
        return CheckView(
            key=key,
            check=check,
            backups=backups,
            sandboxes=view.sandboxes,
            restores=view.restores,
            config_maps=view.config_maps,
            downloads=view.downloads,
            authority=location.authority if location is not None else "",
            circumstances=self._circumstances(backup, location),
            classes=tuple(sorted(each.name for each in self.classes)),
            read_result=self.background_reads.result(key),
        )

    def decide(self, view: CheckView, now: datetime) -> Plan:
        """Return the Plan."""
        return decide(view, now)

    def settled(self, key: Key, view: CheckView | None, _plan: Plan, _result: Result, _now: datetime) -> Iterable[Key]:
        """Note when the check must pass again, and forget what was read for a run that is over."""
        if view is None or view.check is None:
            self.pass_due.pop(key, None)
        else:
            self.pass_due[key] = rules.pass_due(view.check, view.backups)
        if view is None or view.check is None or view.check.status.run is None:
            self.background_reads.forget(key)
        return ()

    def _circumstances(self, backup: BackupRow | None, location: LocationRow | None) -> Circumstances:
        """Return what the evidence says about Velero and the bucket; credentials are not read."""
        return Circumstances(
            velero_image=next((each.image for each in self.servers.rows() if each.image), ""),
            backup_kubernetes=backup.kubernetes if backup is not None else "",
            location=location.key.name if location is not None else "",
            bucket=location.bucket if location is not None else "",
            prefix=location.prefix if location is not None else "",
        )

    def _selects(self, check: CheckRow, backup: BackupRow) -> bool:
        return rules.is_selected(check, backup) and rules.is_of_administrator(self._location(backup))

    def _location(self, backup: BackupRow) -> LocationRow | None:
        defaults = (each.key.name for each in self.locations.by("role", "default"))
        name = velero.resolve_location(backup.location, defaults)
        return self.locations.get(Key(self.velero_namespace, name))


def _location_row(wire: mirrored.Location) -> LocationRow:
    storage = wire.spec.object_storage
    authority = storage.ca_cert if storage is not None else None
    return LocationRow(
        key=Key(wire.metadata.namespace, wire.metadata.name),
        authority=authority.decode(errors="replace") if authority else "",
        is_default=bool(wire.spec.default),
        is_tenants=nonadmin.LOCATION_ORIGIN in (wire.metadata.annotations or {}),
        bucket=storage.bucket if storage is not None else "",
        prefix=storage.prefix if storage is not None else "",
    )
