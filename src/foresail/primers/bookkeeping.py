"""What the primers controller keeps beside its stores: counts, losses, refusals, read results and expectations.

Kubelets pull the image of every image volume, mounted or not, from the release on in which they are on by default. An
API server, or a policy of a namespace, may still refuse them: then placeholders are created without them.
"""

from collections.abc import Container, Iterable
from datetime import datetime
from typing import Any, NamedTuple

from foresail.api import pods
from foresail.api.marks import TARGET_UID
from foresail.kube.execute import Outcome, Result
from foresail.kube.failures import Cause, Failure
from foresail.kube.reflector import Change
from foresail.plan import Create, Key, Plan
from foresail.primers.annotated import has_request_changed, recorded_status
from foresail.primers.decide import Expects
from foresail.primers.metrics import PrimerMetrics
from foresail.primers.reads import DryRunResult, Volumes, dry_run_result
from foresail.primers.reasons import Loss
from foresail.primers.rows import CronJobRow, PlaceholderRow, PrimerRow, QuotaRow, annotation_key
from foresail.primers.shape import Shape
from foresail.primers.state import PrimerState, is_spec_changed
from foresail.primers.view import DryRunRequest, PrimerView, VolumeLocations, VolumeLookup
from foresail.reporting import LONGEST_MESSAGE


class _Refusal(NamedTuple):
    name: str
    message: str


_Group = tuple[str, str]  # the UID of a CronJob, and the kind of the object


class Refusals:
    """The last refusal for each CronJob of a Primer and each kind of object: names change with every fire."""

    def __init__(self) -> None:
        self._found: dict[Key, dict[_Group, _Refusal]] = {}

    def of(self, primer: Key) -> dict[str, str]:
        """Return the messages by the names of the objects that were refused for a Primer."""
        return {refusal.name: refusal.message for refusal in self._found.get(primer, {}).values()}

    def add(self, primer: Key, action: Create, message: str, cron_jobs: Container[str]) -> None:
        """Keep a refusal, and of the ones before only those for these CronJobs, which the Primer is for now."""
        group = action.mark.get(TARGET_UID, ""), action.kind.name
        known = {each: value for each, value in self._found.get(primer, {}).items() if each[0] in cron_jobs}
        self._found[primer] = {
            **known,
            group: _Refusal(action.key.name, message[:LONGEST_MESSAGE]),
        }

    def forget(self, primer: Key) -> None:
        """Forget what was refused for a Primer."""
        self._found.pop(primer, None)

    def forget_namespace(self, namespace: str) -> list[Key]:
        """Forget what was refused in a namespace, and return for which Primers."""
        freed = [object_key for object_key in self._found if object_key.namespace == namespace]
        for key in freed:
            del self._found[key]
        return freed


_ABOUT_VOLUMES = "volume"  # in every refusal that is about one, whoever refuses


class ImageVolumes:
    """In which namespaces image volumes have been refused since the operator started."""

    def __init__(self) -> None:
        self._refused: dict[str, str] = {}  # by namespace, the message
        self._certain = set[str]()  # where a placeholder without them was accepted

    def are_accepted(self, namespace: str) -> bool:
        """Whether a placeholder may have them."""
        return namespace not in self._refused

    def unreported_refusal(self, namespace: str) -> str:
        """Return the message of the refusal, until a placeholder without them is accepted; else an empty string."""
        return "" if namespace in self._certain else self._refused.get(namespace, "")

    def learn_refusal(self, action: Create, words: str) -> bool:
        """Take in that a creation was refused; return whether to try it without image volumes."""
        namespace = action.key.namespace
        if _has_images(action):
            if _ABOUT_VOLUMES in words.lower():
                self._refused.setdefault(namespace, words)
            return _ABOUT_VOLUMES in words.lower()
        if action.kind == pods.POD and namespace not in self._certain:
            self._refused.pop(namespace, None)  # so it was not for the volumes
        return False

    def learn_creations(self, namespace: str, creates: tuple[Create, ...]) -> None:
        """Take in that everything was accepted."""
        makes = [create for create in creates if create.kind == pods.POD]
        if namespace in self._refused and makes and not any(map(_has_images, makes)):
            self._certain.add(namespace)


def _has_images(action: Create) -> bool:
    spec: Any = action.body.get("spec") or {}
    return action.kind == pods.POD and bool(spec.get("volumes"))


_PREEMPTION = "PreemptionByScheduler"


class Bookkeeping:
    """Learns from changes, from background reads and from the results of Plans."""

    def __init__(self, state: PrimerState, metrics: PrimerMetrics) -> None:
        self._state = state
        self._metrics = metrics
        self.image_volumes = ImageVolumes()
        self.refusals = Refusals()
        self.losses: dict[str, str] = {}  # by the UID of a CronJob
        self.volume_locations: dict[str, VolumeLocations] = {}  # by the UID of a CronJob
        self.dry_runs: dict[str, DryRunResult] = {}  # by the UID of a CronJob
        self.reported_off = set[str]()  # UIDs of CronJobs for which an Event has reported annotations that are off
        self._expected: dict[Key, set[Key]] = {}  # by Primer: placeholders to create that the store does not show yet

    # From changes

    def learn_primer(self, change: Change[PrimerRow]) -> Iterable[Key]:
        """Take in the change of a Primer: with another spec, what was refused is tried again."""
        self._metrics.learn_primer(change)
        self._learn_owner(change)
        if change.new is not None:
            self._state.buffers.learn_primer(change.new)
        if is_spec_changed(change):
            self.refusals.forget(change.key)
            if change.old is not None and change.new is not None:
                self._forget_refused_pods(self._state.selected_cron_jobs(change.new))
        return ()

    def learn_cron_job(self, change: Change[CronJobRow]) -> Iterable[Key]:
        """Take in the change of a CronJob, and of its annotations."""
        self._learn_owner(change)
        if change.old is not None and change.new is None:
            for known in (self.losses, self.dry_runs, self.volume_locations):
                known.pop(change.old.uid, None)
            self.reported_off.discard(change.old.uid)
        if has_request_changed(change.old, change.new):
            self.refusals.forget(annotation_key(change.key))
            self._forget_refused_pods([change.new] if change.new is not None else ())
        old, new = (self._state.annotated_primer(row) for row in (change.old, change.new))
        if old is not None or new is not None:
            self._metrics.learn_state(Change(annotation_key(change.key), old, new, change.initial))
        return ()

    def _learn_owner(self, change: Change[PrimerRow] | Change[CronJobRow]) -> None:
        """Count what is held for a Primer or a CronJob also if it was observed before the owner."""
        self._state.held.learn_owner(change.key.namespace, change.old, change.new)
        if change.old is None and change.new is not None:
            for row in self._state.placeholders.by("primer", change.new.uid):
                again = Change(row.key, row, row, initial=change.initial)
                self._metrics.learn_placeholder(again, is_owned=self._state.held.is_owned(row))
            self._state.buffers.learn_owner(change.new.uid, initial=change.initial)

    def learn_placeholder(self, change: Change[PlaceholderRow]) -> Iterable[Key]:
        """Take in the change of a placeholder: whether it counts, and why it was lost."""
        old = change.old
        new = change.new
        self._state.held.learn(old, new)
        row = new or old
        if row is None:
            return ()
        self._metrics.learn_placeholder(change, is_owned=self._state.held.is_owned(row))
        is_released = old is not None and (new is None or new.is_terminating)
        if is_released and self._state.cron_jobs.by("uid", row.target_uid):
            self.losses[row.target_uid] = _loss(row).value
        for key in self._state.keys_by_uid(row.primer_uid):
            self._expected.get(key, set()).discard(change.key)
        return ()

    def learn_quota(self, change: Change[QuotaRow]) -> Iterable[Key]:
        """Forget what was refused when a quota changes, and return the Primers that try again."""
        if change.old is not None and change.new is not None and change.old.hard == change.new.hard:
            return ()
        freed = self.refusals.forget_namespace(change.key.namespace)
        rows = self._forget_refused_pods(self._state.cron_jobs.by("namespace", change.key.namespace))
        return [*freed, *(key for row in rows for key in self._state.keys_for_cron_job(row))]

    def _forget_refused_pods(self, rows: Iterable[CronJobRow]) -> list[CronJobRow]:
        """Forget the refused dry runs of these CronJobs, and return the CronJobs: a new dry run is due."""
        refused = [row for row in rows if row.uid in self.dry_runs and self.dry_runs[row.uid].refused]
        for row in refused:
            del self.dry_runs[row.uid]
        return refused

    # From background reads

    def learn_dry_run(self, request: DryRunRequest, found: Shape | Failure, at: datetime) -> None:
        """Keep the result of a dry run, unless its CronJob was deleted meanwhile."""
        if self._state.cron_jobs.by("uid", request.uid):
            self.dry_runs[request.uid] = dry_run_result(request, found, at)

    def learn_volumes(self, lookup: VolumeLookup, volumes: Volumes | None) -> Volumes:
        """Keep where volumes are, unless the CronJob was deleted meanwhile; without an answer, where they were."""
        before = self.volume_locations.get(lookup.uid)
        if volumes is None:
            volumes = before.volumes if before is not None and before.claims == lookup.claims else ()
        if self._state.cron_jobs.by("uid", lookup.uid):
            self.volume_locations[lookup.uid] = VolumeLocations(lookup.claims, lookup.fire, volumes)
        return volumes

    # From Plans

    def expect(self, key: Key, plan: Plan) -> None:
        """Count what a Plan creates before the store shows it, instead of what the Plan before it would create."""
        expects = plan.claim(Expects)
        creates = expects.creates if expects is not None else ()
        keys = {
            create.key for create in creates if create.kind == pods.POD and create.key not in self._state.placeholders
        }
        self._state.buffers.expect(key, creates)
        keys |= {pod for create in creates for pod in self._state.buffers.expected_keys(create)}
        if keys:
            self._expected[key] = keys
        else:
            self._expected.pop(key, None)

    def expected_by_others(self, primer: Key, namespace: str | None = None) -> int:
        """Return how many pods other Primers are to hold capacity for, in one namespace or in all."""
        others = ((key, expected) for key, expected in self._expected.items() if key != primer)
        return sum(len(expected) for key, expected in others if namespace in (None, key.namespace))

    def forget(self, key: Key) -> None:
        """Forget a Primer that is deleted."""
        self.refusals.forget(key)
        self._forget_expected(key)

    def learn_result(self, key: Key, view: PrimerView, plan: Plan, result: Result) -> bool:
        """Take in what became of a Plan; return whether to reconcile again because of a refusal."""
        action = result.action
        failure = result.failure
        if result.outcome is Outcome.DONE:
            self._learn_done(key, view, plan)
        if failure is None or not (action is None or isinstance(action, Create)):
            return False
        self._forget_expected(key)
        if action is None or failure.cause not in (Cause.FORBIDDEN, Cause.INVALID):
            return False
        if not self.image_volumes.learn_refusal(action, failure.message):
            self._metrics.count_refusal(key, failure.cause)
            self.refusals.add(key, action, failure.message, {target.cron.uid for target in view.targets})
        return True

    def _learn_done(self, key: Key, view: PrimerView, plan: Plan) -> None:
        expects = plan.claim(Expects)
        self.image_volumes.learn_creations(key.namespace, expects.creates if expects is not None else ())
        if view.annotated is None:
            return
        if view.is_off_unreported:
            self.reported_off.add(view.primer.uid)
        if plan.status is not None:  # as decided: the CronJob's owner can change what is in the cluster
            self._metrics.learn_status(view.primer.status, recorded_status(plan.status, view.primer.uid))

    def _forget_expected(self, key: Key) -> None:
        self._expected.pop(key, None)
        self._state.buffers.expect(key, ())


def _loss(row: PlaceholderRow) -> Loss:
    if row.disrupted == _PREEMPTION:
        return Loss.PREEMPTED
    return Loss.DISRUPTED if row.node else Loss.NEVER_SCHEDULED
