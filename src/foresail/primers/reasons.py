"""Why nothing is held for a CronJob: reasons in conditions, Events and `foresail primer explain`."""

from enum import StrEnum


class Reason(StrEnum):
    """The reasons; programs depend on them, so they do not change."""

    READY = "Ready"
    """Every CronJob that it selects is primed."""

    WARMING = "Warming"
    """Capacity is held, or being created."""

    WAITING = "Waiting"
    """No warm-up has begun."""

    INSTANTS = "Instants"
    """Method Placeholder acts on instants, which are always exact."""

    EXACT = "Exact"
    """The primer CronJobs fire at each fire minus the warm-up, and at no other time."""

    SUSPENDED = "Suspended"
    """The Primer or the CronJob is suspended: `foresail primer resume`, or unsuspend the CronJob."""

    NO_CRON_JOB = "NoCronJob"
    """No CronJob has that name or those labels: create it, or correct the Primer."""

    TOO_MANY = "TooManyCronJobs"
    """It selects more CronJobs than one Primer may have: create several, with narrower selectors."""

    INVALID = "InvalidSchedule"
    """The CronJob's schedule cannot be read: correct it."""

    NEVER_FIRES = "NeverFires"
    """The CronJob's schedule is valid and has no fire, or `startingDeadlineSeconds` is shorter than the period of
    `@every`: correct it.
    """

    TAKEN = "PrimedByAnother"
    """An older Primer is for the same CronJob, or a Primer beside its annotation: delete one of the two."""

    NAMESPACE_NOT_ALLOWED = "NamespaceNotAllowed"
    """The operator may not create pods in this namespace: ask an administrator to add it to `primers.namespaces`."""

    INVALID_ANNOTATION = "InvalidAnnotation"
    """An annotation of the CronJob cannot be read: correct `foresail.dev/warm-up` or `foresail.dev/warm-up-method`."""

    ANNOTATIONS_OFF = "AnnotationsOff"
    """The CronJob has `foresail.dev/warm-up`, and the administrator allows only Primers: create one, or ask for
    `primers.annotations`.
    """

    TOO_LONG = "WarmUpTooLong"
    """The administrator allows less: shorten `spec.warmUp`, or the annotation."""

    STANDING = "NeedsAllowStanding"
    """Capacity would be held for more than half of the time: shorten `spec.warmUp`, set `spec.allowStanding`, or keep a
    node.
    """

    NOTHING_TO_RESERVE = "NothingToReserve"
    """The pods request nothing: set `resources.requests` in the CronJob, or `spec.template` in the Primer."""

    UNREADABLE = "Unreadable"
    """A value of the CronJob or the Primer cannot be read, so what was held is released: correct what the message
    names.
    """

    NOT_WARMABLE = "NotWarmable"
    """Windows, Fargate or a virtual kubelet: there is no node to warm, so no Primer is of use."""

    QUOTA_TOO_SMALL = "QuotaTooSmall"
    """A ResourceQuota has no room for what would be held: raise it."""

    CANNOT_PREEMPT = "CannotPreempt"
    """In `early`: the run cannot preempt a placeholder, so it is released before the fire. Give the run's pods a
    priority above -5 and the default preemption policy.
    """

    TOO_MANY_PLACEHOLDERS = "TooManyPlaceholders"
    """The administrator's limit is reached: wait, or ask for a higher one."""

    INEXACT = "Inexact"
    """Method CronJob cannot express this schedule minus the warm-up: use method Placeholder."""

    REFUSED = "Refused"
    """The API server rejected it or a pod of the run; the message has the API server's words. The operator retries for
    the next fire, or when the CronJob's pod template, the Primer or a quota changes.
    """

    IMAGES_NOT_PULLED = "ImagesNotPulled"
    """The API server or a policy refuses image volumes here, so placeholders pull no image ahead: allow them, or switch
    them off with `primers.imageVolumes: Never`.
    """

    NO_HOLD_IMAGE = "NoHoldImage"
    """Method CronJob needs `--primer-hold-image` of the operator: set it, or use method Placeholder."""

    BUFFER_NOT_SERVED = "BufferNotServed"
    """Method CapacityBuffer needs a cluster that serves CapacityBuffer: install it with the autoscaler, or use method
    Auto.
    """

    BUFFER_NOT_READY = "BufferNotReady"
    """No autoscaler has answered a CapacityBuffer, or none can use it: switch the feature on (Karpenter:
    `CapacityBuffer=true` in its feature gates), or use method Auto.
    """

    LOST = "Lost"
    """What was held was lost before its fire: Preempted, Disrupted, NeverScheduled or Taken."""

    NO_FIRE = "NoFire"
    """The CronJob did not run at its fire, and what was held for it was released."""


class Loss(StrEnum):
    """Why what was held was lost before its fire."""

    PREEMPTED = "Preempted"
    DISRUPTED = "Disrupted"
    NEVER_SCHEDULED = "NeverScheduled"
    TAKEN = "Taken"
