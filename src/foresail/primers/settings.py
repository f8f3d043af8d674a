"""What an administrator has set for all Primers."""

from datetime import timedelta

import msgspec


class Settings(msgspec.Struct, frozen=True):
    """What an administrator has set for all Primers."""

    zone: str = "UTC"  # of kube-controller-manager, for CronJobs that name no zone
    max_warm_up: timedelta = timedelta(hours=6)
    max_per_namespace: int = 50
    max_in_cluster: int = 2_000
    pause_image: str = "pause"
    hold_image: str = ""  # of the Jobs of primer CronJobs; without one there are none
    hold_command: tuple[str, ...] = ("foresail", "hold")  # gets the seconds as its last argument
    priority_class: str = "foresail-placeholder"
    namespaces: frozenset[str] = frozenset()  # in which capacity may be held; in every one if empty
    annotated_cron_jobs: bool = False  # prime CronJobs with the annotation foresail.dev/warm-up
    image_volumes: bool | None = None  # pull the target's images too; None: where every node can
    labels: tuple[tuple[str, str], ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()

    def allows(self, namespace: str) -> bool:
        """Whether capacity may be held in a namespace."""
        return not self.namespaces or namespace in self.namespaces

    def allows_annotations(self, namespace: str) -> bool:
        """Whether CronJobs of a namespace may be primed by annotations."""
        return self.annotated_cron_jobs and self.allows(namespace)
