"""From the stores to the view of one Primer; it reads, and changes nothing."""

from collections.abc import Container, Sequence

import msgspec

from foresail.api.primer import AUTO, BY_BUFFER
from foresail.plan import Key
from foresail.primers.annotated import annotated_primer
from foresail.primers.bookkeeping import Bookkeeping
from foresail.primers.reads import DryRunResult
from foresail.primers.rows import CronJobRow, NodeRow, PlaceholderRow, PrimerRow, annotated_cron_job
from foresail.primers.shape import AUTOPILOT, STANDARD
from foresail.primers.state import BufferSet, PrimerState, pools_to_explain
from foresail.primers.view import PrimerView, Target


class _Owned(msgspec.Struct, frozen=True):
    """What was created for a Primer, in its own namespace."""

    placeholders: Sequence[PlaceholderRow]
    primer_cron_jobs: Sequence[CronJobRow]
    buffers: BufferSet

    def strays(self, uids: Container[str]) -> "_Owned":
        """Return what is for none of these CronJobs."""
        return _Owned(
            [row for row in self.placeholders if row.target_uid not in uids],
            [row for row in self.primer_cron_jobs if row.target_uid not in uids],
            self.buffers.strays(uids),
        )

    def __bool__(self) -> bool:
        return bool(self.placeholders or self.primer_cron_jobs or any(self.buffers))


class Observer:
    """Collects what a decision about a Primer depends on."""

    def __init__(self, state: PrimerState, books: Bookkeeping) -> None:
        self._state = state
        self._books = books
        settings = state.settings
        self._settings = {is_on: msgspec.structs.replace(settings, image_volumes=is_on) for is_on in (False, True)}

    def observe(self, key: Key) -> PrimerView | None:
        """Return the view of a Primer, or of an annotated CronJob; None if there is nothing to decide."""
        state = self._state
        books = self._books
        namespace = key.namespace
        annotated = self._annotated(key)
        primer = annotated_primer(annotated, state.settings) if annotated is not None else state.primers.get(key)
        if primer is None:
            return None
        owned = self._owned(primer)
        is_off_unreported = annotated is not None and self._is_off_unreported(annotated)
        if primer.is_withdrawn and not (owned or is_off_unreported or self._is_recorded(annotated)):
            return None
        targets = tuple(self._target(primer, row, owned) for row in state.selected_cron_jobs(primer))
        uids = {target.cron.uid for target in targets}
        strays = owned.strays(uids)
        quotas = tuple(state.quotas.by("namespace", namespace))
        return PrimerView(
            primer=primer,
            targets=targets,
            stray_placeholders=tuple(strays.placeholders),
            stray_primer_cron_jobs=tuple(strays.primer_cron_jobs),
            stray_buffers=strays.buffers.buffers,
            stray_templates=strays.buffers.templates,
            buffers=state.buffers.support(primer),
            quotas=quotas,
            priorities=tuple(state.priorities.rows()),
            nodes=self._nodes(primer, targets, owned),
            is_autopilot=self._is_autopilot(),
            held_in_namespace=state.held.in_namespace(namespace) + books.expected_by_others(key, namespace),
            held_in_cluster=state.held.in_cluster + books.expected_by_others(key),
            namespace_placeholders=tuple(state.placeholders.by("namespace", namespace)) if quotas else (),
            namespace_buffers=state.buffers.in_namespace(key) if quotas else (),
            losses={uid: books.losses[uid] for uid in uids if uid in books.losses},
            refused=books.refusals.of(key),
            annotated=annotated,
            images_refused=books.image_volumes.unreported_refusal(namespace),
            is_off_unreported=is_off_unreported,
            settings=self._settings[self._pulls_images(namespace)],
        )

    def _annotated(self, key: Key) -> CronJobRow | None:
        """Return the annotated CronJob that a key stands for; None if it is that of a Primer."""
        cron_job = annotated_cron_job(key)
        return self._state.cron_jobs.get(cron_job) if cron_job is not None else None

    def _is_autopilot(self) -> bool:
        nodes = self._state.nodes
        return bool(nodes.count("mode", AUTOPILOT)) and not nodes.count("mode", STANDARD)

    def _owned(self, primer: PrimerRow) -> _Owned:
        """Return what was created for a Primer: marks in other namespaces are forged."""
        state = self._state
        namespace = primer.key.namespace
        return _Owned(
            [row for row in state.placeholders.by("primer", primer.uid) if row.key.namespace == namespace],
            [row for row in state.cron_jobs.by("primer", primer.uid) if row.key.namespace == namespace],
            state.buffers.of_primer(primer),
        )

    def _target(self, primer: PrimerRow, cron: CronJobRow, owned: _Owned) -> Target:
        state = self._state
        books = self._books
        own = tuple(row for row in owned.primer_cron_jobs if row.target_uid == cron.uid)
        buffers = owned.buffers.of_cron_job(cron.uid)
        runs = state.runs(cron)
        resources = primer.requests if primer.method in (AUTO, BY_BUFFER) else ()
        dry_run = self._dry_run(cron, resources)
        primer_jobs = [job for row in own for job in state.jobs_of(row)]
        return Target(
            cron=cron,
            jobs=runs.jobs,
            pods=runs.pods,
            placeholders=tuple(row for row in owned.placeholders if row.target_uid == cron.uid),
            primer_cron_jobs=own,
            primer_jobs=tuple(primer_jobs),
            primer_pods=tuple(pod for job in primer_jobs for pod in state.pods.by("job", job.uid)),
            buffers=buffers.buffers,
            templates=buffers.templates,
            taken_by=self._taken_by(primer, cron),
            admitted=dry_run.admitted if dry_run else None,
            is_dry_run_done=dry_run is not None and dry_run.is_final,
            dry_run_at=dry_run.at if dry_run else None,
            resources=resources,
            refused=dry_run.refused if dry_run else "",
            volume_locations=books.volume_locations.get(cron.uid),
        )

    def _dry_run(self, cron: CronJobRow, resources: tuple[tuple[str, str], ...]) -> DryRunResult | None:
        """Return the last admission dry run, if it was about what the CronJob is now."""
        dry_run = self._books.dry_runs.get(cron.uid)
        return dry_run if dry_run is not None and dry_run.is_about(cron, resources) else None

    def _taken_by(self, primer: PrimerRow, cron: CronJobRow) -> str:
        """Return the Primer that primes a CronJob before this one; empty if none does."""
        first = next(iter(self._state.primers_for(cron)), None)
        return first.key.name if first is not None and first.uid != primer.uid else ""

    def _nodes(self, primer: PrimerRow, targets: Sequence[Target], owned: _Owned) -> dict[str, NodeRow]:
        """Return the nodes of placeholders and runs, and those of a pool if a cold start is to be explained."""
        rows = self._state.nodes
        names = {row.node for row in owned.placeholders} | {pod.node for target in targets for pod in target.pods}
        nodes = {name: row for name in names if (row := rows.get(Key("", name))) is not None}
        pools = pools_to_explain(primer, targets, nodes)
        return nodes | {row.name: row for pool in pools for row in rows.by("pool", pool)}

    def _pulls_images(self, namespace: str) -> bool:
        """Whether placeholders of a namespace pull images: as the settings have it, or else if every node can."""
        nodes = self._state.nodes
        wanted = self._state.settings.image_volumes
        if wanted is None:
            wanted = bool(nodes.count("pulls", True)) and not nodes.count("pulls", False)
        return wanted and self._books.image_volumes.are_accepted(namespace)

    def _is_off_unreported(self, row: CronJobRow) -> bool:
        """Whether an annotation of a CronJob is not allowed, and no Event has reported it since the start."""
        is_annotated = row.annotated is not None and row.annotated.warm_up is not None
        is_off = is_annotated and not self._state.settings.allows_annotations(row.key.namespace)
        return is_off and row.uid not in self._books.reported_off

    def _is_recorded(self, row: CronJobRow | None) -> bool:
        """Whether a record is to be removed from a CronJob; where annotations are not allowed, it may not be."""
        if row is None or row.annotated is None or not row.annotated.record:
            return False
        return self._state.settings.allows_annotations(row.key.namespace)
