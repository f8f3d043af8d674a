"""What a user should know beside the answer: who else manages a Schedule, and who fires it."""

from collections.abc import Iterable, Mapping

from foresail.cli.hints import hint
from foresail.cli.schedule.sight import Sight
from foresail.schedules.observe import ScheduleRow

_MANAGED = "app.kubernetes.io/managed-by"
_RELEASE = "meta.helm.sh/release-name"


def manager_of(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    """Return who else keeps an object as it is, in words; empty if nobody is known to."""
    for name, value in (*annotations.items(), *labels.items()):
        if name in ("argocd.argoproj.io/tracking-id", "argocd.argoproj.io/instance"):
            return f"Argo CD (application {value.partition(':')[0]})"
    for family, what in (("kustomize", "Kustomization"), ("helm", "HelmRelease")):
        source = labels.get(f"{family}.toolkit.fluxcd.io/name")
        if source:
            return f"Flux ({what} {labels.get(f'{family}.toolkit.fluxcd.io/namespace', '')}/{source})"
    if _RELEASE in annotations:
        return f"Helm (release {annotations[_RELEASE]})"
    return labels.get(_MANAGED, "")


def say_who_manages(schedules: Iterable[ScheduleRow]) -> None:
    """Say of each Schedule that is about to be changed who will undo that."""
    for each in schedules:
        manager = manager_of(each.labels, each.annotations)
        if manager:
            hint(
                f"Schedule {each.key} is managed by {manager}, which will undo this change: "
                "make it where the manager reads it"
            )


def say_who_fires(sights: Iterable[Sight]) -> None:
    """Say of each namespace whether anybody fires its Schedules, unless it is Foresail's operator alone."""
    spaces = {each.schedule.key.namespace: each for each in sights}
    for namespace, each in sorted(spaces.items()):
        text = who_fires(namespace, schedules_itself=each.seen.engine.schedules_itself, operator=each.operator)
        if text:
            hint(text)


def who_fires(namespace: str, *, schedules_itself: bool, operator: str) -> str:
    """Return what is odd about who fires Schedules in a namespace; empty if nothing is."""
    if schedules_itself and operator:
        return (
            f"Velero's own schedule controller is on in {namespace}, so Foresail's operator does not fire: "
            "start Velero with --disable-controllers=schedule"
        )
    if schedules_itself:
        return (
            f"Foresail's operator does not run in {namespace} and Velero's own schedule controller is on: "
            "Velero fires these Schedules, up to a minute late and by its own rules"
        )
    if not operator:
        return (
            f"nobody is known to fire Schedules in {namespace}: Foresail's operator does not run, "
            "and no Velero was found there whose own schedule controller is on"
        )
    return ""
