"""What an administrator sets for all Schedules."""

import msgspec

NOT_COPIED = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "argocd.argoproj.io/*",
    "foresail.dev/*",
    "kustomize.toolkit.fluxcd.io/*",
    "helm.toolkit.fluxcd.io/*",
    "app.kubernetes.io/instance",
)
"""The labels and annotations of a Schedule by which other tools would claim its Backups."""


class Settings(msgspec.Struct, frozen=True):
    """What an administrator has set for all Schedules."""

    skip_immediately: bool = False
    zone: str = "UTC"  # of Velero's clock or a policy, for expressions that name no zone
    not_copied: tuple[str, ...] = NOT_COPIED
    velero_schedules_off: bool = False  # Velero's schedule controller is off, though no server is recognised
    zone_without_policy: str = ""  # of Velero's clock, if a policy sets another one
    with_hooks: tuple[str, ...] | None = None  # the Schedules whose runs may have hooks; None or "*": all

    def allows_hooks(self, schedule: str) -> bool:
        """Whether the runs of a Schedule may have hooks."""
        return self.with_hooks is None or "*" in self.with_hooks or schedule in self.with_hooks
