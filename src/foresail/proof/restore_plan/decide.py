"""From what exists and what dry runs answered to the outcome of each item."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from foresail.proof.restore_plan.compare import (
    Change,
    account_patch,
    changes,
    is_same,
    plain,
    plain_patch,
    stripped,
    update_patch,
)
from foresail.proof.restore_plan.items import Document, ItemKey, Served, at, mapping, metadata
from foresail.proof.restore_plan.prepare import Preparation, Step
from foresail.proof.restore_plan.quota import QuotaLedger
from foresail.proof.restore_plan.refusals import (
    Answer,
    By,
    is_unanswered,
    missing_account,
    missing_priority_class,
    refused_by,
    webhook_without_dry_run,
)

ACCOUNTS = "serviceaccounts"
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
CLASSES = "storageclasses.storage.k8s.io"
PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
SLICES = "endpointslices.discovery.k8s.io"
SCALERS = "horizontalpodautoscalers.autoscaling"
_SERVICE_NAME = "kubernetes.io/service-name"
_WITH_SLICES = ("services", "endpoints")  # their labels are copied to EndpointSlices
_CLUSTER_MADE = {
    ("configmaps", "kube-root-ca.crt"): "Kubernetes creates it in every new namespace",
    ("serviceaccounts", "default"): "Kubernetes creates it in every new namespace",
}
_NEEDED = {
    ACCOUNTS: ("ServiceAccount", By.ADMISSION),
    PRIORITY_CLASSES: ("PriorityClass", By.MISSING_CLASS),
}


SAME_FIELDS = "the fields are the same; Velero also compares who wrote them, for example a status since the backup"
"""Why an object counts as different although nothing of it would change."""


class Outcome(Enum):
    """What a restore does to an item."""

    CREATE = "create"
    UNCHANGED = "unchanged"
    UPDATE = "differs"  # the restore changes the existing object
    EXISTS = "exists"  # it differs too, and is skipped
    REFUSED = "refused"
    UNPREDICTABLE = "not predictable"
    NOT_RESTORED = "not restored"


@dataclass(frozen=True, slots=True)
class Question:
    """A dry run: to create an object, or to patch the existing one."""

    body: Document = field(hash=False)
    is_patch: bool = False
    assumed: frozenset[ItemKey] = frozenset()
    """The items that must be restored before it: the fields that name them are left out."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What the cluster has of an item, and what it answered to the dry run; None if nothing was asked."""

    live: Document | None = field(default=None, hash=False)
    answer: Answer | None = None
    assumed: frozenset[ItemKey] = frozenset()
    """The items of the restore without which the answer would be another."""


@dataclass(frozen=True, slots=True)
class World:
    """What a plan must know of the cluster beside the items themselves."""

    served: Served
    namespaces: frozenset[str]
    quotas: Sequence[Document] = ()
    storage_classes: frozenset[str] | None = None
    """The names of the StorageClasses; None if the caller may not list them."""
    terminating: frozenset[str] = frozenset()
    """Those of the namespaces that are being deleted."""
    unlisted_quotas: frozenset[str] = frozenset()
    """Those of the namespaces whose ResourceQuotas cannot be listed."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one item, with the reason, who refused it, and the fields that differ."""

    target: ItemKey
    outcome: Outcome
    reason: str = ""
    by: By | None = None
    changes: tuple[Change, ...] = ()
    warning: str = ""
    is_unanswered: bool = False
    """Whether the API server did not answer the dry run, so that the item may be refused."""


def question(step: Step, live: Document | None, policy: str) -> Question | None:
    """Return the dry run that decides about a step; None if it is decided without one."""
    if step.not_restored or step.problem or step.unpredictable:
        return None
    if live is None:
        return Question(step.body)
    if _is_same(step, live):
        return None
    if step.target.resource == ACCOUNTS:
        patch = account_patch(step.body, live)
        return Question(patch, is_patch=True) if patch else None
    return Question(update_patch(step.body, live), is_patch=True) if policy == "update" else None


def written_as(step: Step, live: Document | None, policy: str) -> Question | None:
    """Return what to send to do the step without Velero; None if nothing is to be done.

    It has no mark of a restore, creates only the name that was asked for, and changes only the version that was seen.
    """
    asked = question(step, live, policy)
    if asked is None:
        return None
    if live is None:
        body = plain(asked.body)
        return Question({**body, "metadata": {**metadata(body), "name": step.target.name}})
    patch = asked.body if step.target.resource == ACCOUNTS else plain_patch(step.body, live)
    if not patch:
        return None
    version = {"resourceVersion": metadata(live).get("resourceVersion")}
    return Question({**patch, "metadata": {**mapping(patch.get("metadata")), **version}}, is_patch=True)


def question_again(step: Step, asked: Question, answer: Answer, planned: Collection[ItemKey]) -> Question | None:
    """Return the dry run of a pod without what it was refused for, if the restore creates that first; else None."""
    account = missing_account(answer)
    priority = missing_priority_class(answer)
    if account:
        missing = ItemKey(ACCOUNTS, step.target.namespace, account)
        fields = ("serviceAccount", "serviceAccountName")
    else:
        missing = ItemKey(PRIORITY_CLASSES, "", priority)
        fields = ("priorityClassName", "preemptionPolicy")
    if missing not in planned:
        return None
    before = mapping(asked.body.get("spec"))
    spec = {name: value for name, value in before.items() if name not in fields}
    if spec == before:
        return None
    return Question({**asked.body, "spec": spec}, assumed=asked.assumed | {missing})


def decide(
    preparation: Preparation, observed: Mapping[ItemKey, Observed], world: World, policy: str
) -> tuple[Verdict, ...]:
    """Return the verdict of each item, in the order of the restore; its namespaces come first."""
    listed = [name for name in preparation.namespaces if _is_listed(name, preparation, world)]
    spaces = {name: _namespace(name, observed, world) for name in listed}
    sent = Counter(step.target for step in preparation.steps if _is_sent(step))
    judge = _Judge(spaces, {target for target, count in sent.items() if count > 1}, world, policy)
    items = [judge.verdict(step, observed.get(step.target, Observed())) for step in preparation.steps]
    return (*spaces.values(), *items)


def _is_sent(step: Step) -> bool:
    return not (step.not_restored or step.problem)


def _is_listed(namespace: str, preparation: Preparation, world: World) -> bool:
    return namespace in preparation.backed_up or namespace not in world.namespaces or namespace in world.terminating


def _namespace(name: str, observed: Mapping[ItemKey, Observed], world: World) -> Verdict:
    target = ItemKey("namespaces", "", name)
    if name in world.terminating:
        return _terminating(target, name)
    if name in world.namespaces:
        return Verdict(target, Outcome.NOT_RESTORED, "it exists, and Velero does not change an existing namespace")
    answer = observed.get(target, Observed()).answer or Answer()
    return Verdict(target, Outcome.CREATE) if answer.is_accepted else _refused(target, answer, ())


def _terminating(target: ItemKey, namespace: str) -> Verdict:
    reason = f"the namespace {namespace} is being deleted: Velero waits until it is deleted, then creates it again"
    return Verdict(target, Outcome.UNPREDICTABLE, reason)


def _without_namespace(target: ItemKey, spaces: Mapping[str, Verdict], world: World) -> Verdict | None:
    if target.namespace in world.terminating:
        return _terminating(target, target.namespace)
    if target.namespace in spaces and spaces[target.namespace].outcome is Outcome.REFUSED:
        return Verdict(target, Outcome.REFUSED, f"the namespace {target.namespace} cannot be created", By.NAMESPACE)
    return None


class _Judge:
    """Judges the steps in their order: what an item needs comes earlier in Velero's order."""

    def __init__(self, spaces: Mapping[str, Verdict], shared: Collection[ItemKey], world: World, policy: str) -> None:
        self._spaces = spaces
        self._shared = shared
        self._world = world
        self._policy = policy
        self._ledger = QuotaLedger(world.quotas)
        self._outcomes: dict[ItemKey, Outcome] = {}
        self._new_quotas: set[str] = set()
        self._updated_services: set[tuple[str, str]] = set()
        self._created: set[tuple[str, str, str]] = set()

    def verdict(self, step: Step, observed: Observed) -> Verdict:
        verdict = _without_namespace(step.target, self._spaces, self._world) or self._verdict(step, observed)
        self._outcomes[step.target] = verdict.outcome
        return verdict

    def _verdict(self, step: Step, observed: Observed) -> Verdict:
        target = step.target
        if step.not_restored:
            return Verdict(target, Outcome.NOT_RESTORED, step.not_restored)
        if step.problem:
            return Verdict(target, Outcome.REFUSED, step.problem, step.problem_by)
        if target in self._shared:
            reason = "resource modifiers give more than one item this name: the later ones find the object of the first"
            return Verdict(target, Outcome.UNPREDICTABLE, reason)
        if step.unpredictable:
            return self._unpredictable(step, observed.live)
        made = self._cluster_made(target)
        if made:
            return Verdict(target, Outcome.UNPREDICTABLE, made)
        return self._without_new_class(step) or self._sent(step, observed)

    def _cluster_made(self, target: ItemKey) -> str:
        is_new = bool(target.namespace) and target.namespace not in self._world.namespaces
        return _CLUSTER_MADE.get((target.resource, target.name), "") if is_new else ""

    def _is_restored(self, resource: str, name: str) -> bool:
        """Whether an earlier item of the restore has this name and is not refused."""
        return self._outcomes.get(ItemKey(resource, "", name), Outcome.REFUSED) is not Outcome.REFUSED

    def _sent(self, step: Step, observed: Observed) -> Verdict:
        if observed.live is not None:
            verdict = self._existing(step, observed.live, observed.answer)
        else:
            verdict = self._new(step, observed.answer or Answer(), observed.assumed)
        if step.warning and verdict.outcome is Outcome.UNCHANGED:
            return Verdict(step.target, Outcome.REFUSED, step.warning, By.MODIFIER)
        return replace(verdict, warning=step.warning or verdict.warning)

    def _unpredictable(self, step: Step, live: Document | None) -> Verdict:
        if live is not None and step.is_rewritten and self._policy != "update":
            return Verdict(step.target, Outcome.EXISTS, f"it exists; {_unseen(step)}", warning=step.warning)
        return Verdict(step.target, Outcome.UNPREDICTABLE, step.unpredictable)

    def _without_new_class(self, step: Step) -> Verdict | None:
        """Return the verdict of an item that Velero fails because its new storage class does not exist."""
        missing = [
            storage_class for storage_class in step.new_storage_classes if not self._is_restored(CLASSES, storage_class)
        ]
        known = self._world.storage_classes
        if missing and known is None:
            reason = f"StorageClass {missing[0]}, its new one, was not checked: you may not list StorageClasses"
            return Verdict(step.target, Outcome.UNPREDICTABLE, reason)
        absent = [storage_class for storage_class in missing if storage_class not in (known or ())]
        if not absent:
            return None
        reason = f"StorageClass {absent[0]}, which velero.io/change-storage-class gives it, does not exist"
        return Verdict(step.target, Outcome.REFUSED, reason, By.MISSING_CLASS)

    def _existing(self, step: Step, live: Document, answer: Answer | None) -> Verdict:
        target = step.target
        if _is_same(step, live):
            return self._same(step)
        is_account = target.resource == ACCOUNTS
        if is_account and not account_patch(step.body, live):
            return Verdict(target, Outcome.UNCHANGED, "nothing to add to the ServiceAccount")
        differing = changes(step.body, live)
        if not is_account and self._policy != "update":
            reason = "it exists and is not changed" if differing else f"it exists; {_unseen(step)}"
            return Verdict(target, Outcome.EXISTS, reason, changes=differing)
        if answer is not None and not answer.is_accepted:
            return _refused(target, answer, differing)
        if target.resource in _WITH_SLICES:
            self._updated_services.add((target.namespace, target.name))
        shown = differing
        if answer is not None and answer.result is not None:
            shown = changes(stripped(dict(answer.result)), live)  # the API server keeps what it has given
        return Verdict(target, Outcome.UPDATE, "" if shown else _unseen(step), changes=shown)

    def _same(self, step: Step) -> Verdict:
        """Return the verdict of an item that is the same now, before the items that come earlier are restored."""
        target = step.target
        service = at(step.body, "metadata", "labels", _SERVICE_NAME)
        scaled = mapping(at(step.body, "spec", "scaleTargetRef"))
        kind = str(scaled.get("kind", ""))
        name = str(scaled.get("name", ""))
        if target.resource == SCALERS and (kind, target.namespace, name) in self._created:
            reason = f"Kubernetes writes its status within 15 s after the restore creates {kind} {name}"
            return Verdict(target, Outcome.UNPREDICTABLE, reason)
        if target.resource == SLICES and (target.namespace, service) in self._updated_services:
            reason = f"Kubernetes changes it too after the restore updates Service {service}"
            return Verdict(target, Outcome.UNPREDICTABLE, reason)
        return Verdict(target, Outcome.UNCHANGED)

    def _new(self, step: Step, answer: Answer, assumed: Collection[ItemKey]) -> Verdict:
        target = step.target
        verdict = self._unserved(step) or self._without(target, assumed, Outcome.REFUSED)
        if verdict is not None:
            return verdict
        if not answer.is_accepted:
            return _refused(target, answer, ())
        verdict = self._without(target, assumed, Outcome.UNPREDICTABLE)
        if verdict is not None:
            return verdict
        lacking = self._ledger.take(target, step.body)
        if lacking:
            return Verdict(target, Outcome.REFUSED, lacking, By.QUOTA)
        if target.namespace in self._new_quotas:
            reason = "would be created, unless a ResourceQuota restored before it refuses it"
            return Verdict(target, Outcome.UNPREDICTABLE, reason)
        if target.resource == "resourcequotas":
            self._new_quotas.add(target.namespace)
        self._created.add((str(step.body.get("kind", "")), target.namespace, target.name))
        return Verdict(target, Outcome.CREATE, warning=self._missing_class(step))

    def _without(self, target: ItemKey, assumed: Collection[ItemKey], outcome: Outcome) -> Verdict | None:
        """Return the verdict of a pod if one of the items that it needs has this outcome."""
        keys = [key for key in sorted(assumed) if self._outcomes.get(key) is outcome]
        missing = next((item_key for item_key in keys if not self._cluster_made(item_key)), None)
        if missing is None:
            return None
        kind, by = _NEEDED[missing.resource]
        reason = f"{kind} {missing.name}, which the pod needs, is {outcome.value}"
        return Verdict(target, outcome, reason, by if outcome is Outcome.REFUSED else None)

    def _unserved(self, step: Step) -> Verdict | None:
        target = step.target
        kind = self._world.served.kind(target.resource)
        version = str(step.body.get("apiVersion", "")).rpartition("/")[2]
        if kind is not None and version in kind.versions:
            return None
        if kind is None and self._is_restored(DEFINITIONS, target.resource):
            reason = "the restore creates its CustomResourceDefinition first, so no dry run can check it"
            return Verdict(target, Outcome.UNPREDICTABLE, reason)
        reason = f"the cluster does not serve {target.resource} in version {version or '(none)'}"
        return Verdict(target, Outcome.REFUSED, reason, By.MISSING_KIND)

    def _missing_class(self, step: Step) -> str:
        name = at(step.body, "spec", "storageClassName")
        known = self._world.storage_classes
        if step.target.resource != "persistentvolumeclaims" or not name or at(step.body, "spec", "volumeName"):
            return ""
        if self._is_restored(CLASSES, str(name)) or (known is not None and name in known):
            return ""
        if known is None:
            return f"StorageClass {name} was not checked: you may not list StorageClasses"
        return f"StorageClass {name} does not exist: the claim stays pending"


def _is_same(step: Step, live: Document) -> bool:
    return not step.is_rewritten and is_same(step.body, live)


def _unseen(step: Step) -> str:
    """Return why Velero takes an item for different though every field that is shown is the same."""
    if step.is_rewritten:
        return "Velero rewrites it before it compares, so it reports a difference"
    return SAME_FIELDS


def _refused(target: ItemKey, answer: Answer, differing: tuple[Change, ...]) -> Verdict:
    webhook = webhook_without_dry_run(answer)
    if webhook:
        return Verdict(target, Outcome.UNPREDICTABLE, f"the webhook {webhook} takes no dry runs")
    if is_unanswered(answer):
        reason = f"the API server did not answer the dry run: {answer.message}"
        return Verdict(target, Outcome.UNPREDICTABLE, reason, is_unanswered=True)
    if answer.reason == "AlreadyExists":
        return Verdict(target, Outcome.EXISTS, "it exists, and you may not read it to compare")
    return Verdict(target, Outcome.REFUSED, answer.message or answer.reason, refused_by(answer), differing)
