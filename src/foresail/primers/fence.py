"""What the ServiceAccount of primers writes, as its fence holds it to: pods that hold room and do nothing else."""

from foresail.api.batch import CRON_JOB
from foresail.api.capacity_buffers import POD_TEMPLATE, capacity_buffer
from foresail.api.fence import (
    ANNOTATIONS,
    CREATE,
    DELETE,
    LABELS,
    NAME,
    OLD_ANNOTATIONS,
    OLD_LABELS,
    OLD_SPEC,
    SPEC,
    UNCHANGED_SPEC,
    UPDATE,
    Condition,
    Fence,
    Rule,
    all_of,
    events,
    has_all,
    lease,
    only,
    plain,
    quoted,
    same,
    unchanged,
    value,
    words,
)
from foresail.api.marks import (
    FIRE,
    JOB_VARIABLE,
    NOT_BACKED_UP,
    PRIMER_LABEL,
    PRIMER_UID,
    PRIMERS_LEASE,
    RELEASED,
    TARGET_UID,
    WARM_UP_STATUS,
)
from foresail.api.pods import POD
from foresail.api.primer import PRIMER
from foresail.kube.events import EVENT
from foresail.kube.lease import LEASE
from foresail.primers.reads import DRY_RUN_NAME

_BUFFER = capacity_buffer()
_DEFAULTS = (
    *("dnsPolicy", "serviceAccountName", "serviceAccount", "priority", "preemptionPolicy", "overhead"),
    *("restartPolicy", "terminationGracePeriodSeconds", "activeDeadlineSeconds"),
)
_PLACEMENT = (
    *("nodeSelector", "affinity", "topologySpreadConstraints", "tolerations", "schedulerName", "runtimeClassName"),
    *("imagePullSecrets", "readinessGates", "priorityClassName", "automountServiceAccountToken", "enableServiceLinks"),
    *("securityContext", "containers", "volumes"),
)
_CONTAINER = (
    *("name", "image", "resources", "securityContext", "imagePullPolicy"),
    *("terminationMessagePath", "terminationMessagePolicy"),
)
_USER = ("runAsUser", "runAsGroup", "runAsNonRoot", "seLinuxOptions", "seccompProfile", "appArmorProfile")
_OF_POD = (*_USER, "fsGroup", "fsGroupChangePolicy", "supplementalGroups", "supplementalGroupsPolicy")
_OF_CONTAINER = (*_USER, "allowPrivilegeEscalation", "capabilities", "readOnlyRootFilesystem")


_EACH = "dyn(each)"  # CEL would infer one type for all values of a container


def _pod(spec: str, image: str, *, runs: bool = False) -> tuple[Condition, ...]:
    """Return that a pod only holds room: one image of ours, no token, no rights, no volumes but images."""
    context = value(_EACH, "securityContext", "{}")
    harmless = all_of(
        only("each", (*_CONTAINER, *(("command", "env") if runs else ()))),
        f"each.image == {image}",
        only(context, _OF_CONTAINER),
        f"{value(context, 'allowPrivilegeEscalation', 'true')} == false",
        f'{value(context, "capabilities", "{}")} == {{"drop": ["ALL"]}}',
    )
    command = all_of(
        'dyn(each)[?"command"].orValue([]).size() == variables.holdCommand.size() + 1',
        'variables.holdCommand.all(word, word in dyn(each)[?"command"].orValue([]))',
        'dyn(each)[?"command"].orValue([]).exists_one(word, word.matches("^[0-9]+$"))',
        'dyn(each)[?"command"].orValue([]).all(word, word in variables.holdCommand || word.matches("^[0-9]+$"))',
        f"{value('each', 'env', '[]')}.all(variable, variable.name == {quoted(JOB_VARIABLE)} && "
        f"{only('variable', ('name', 'valueFrom'))})",
    )
    service_account = value(spec, "serviceAccountName", '"default"')
    return (
        Condition(only(spec, (*_PLACEMENT, *_DEFAULTS)), "a placeholder has no other fields"),
        Condition(
            all_of(
                f"{value(spec, 'automountServiceAccountToken', 'true')} == false",
                f'{service_account} == "default"',
                only(value(spec, "securityContext", "{}"), _OF_POD),
                f"{value(value(spec, 'securityContext', '{}'), 'runAsNonRoot', 'false')}",
            ),
            "a placeholder has no token, no ServiceAccount and no rights",
        ),
        Condition(
            f"{value(spec, 'volumes', '[]')}.all(each, {only('each', ('name', 'image'))})",
            "a placeholder has no volumes but images that are pulled",
        ),
        Condition(
            f"{value(spec, 'containers', '[]')}.all(each, {harmless})",
            "a placeholder runs the image that the chart names and nothing else, without privileges",
        ),
        *(
            (Condition(f"{value(spec, 'containers', '[]')}.all(each, {command})", "a placeholder runs no command"),)
            if runs
            else ()
        ),
    )


_CLASS = Condition(
    f"{value(SPEC, 'priorityClassName')} == variables.priorityClass", "a placeholder has the lowest priority"
)
_MARKS = (PRIMER_UID, TARGET_UID, FIRE)
_NOT_RESERVED = '(!key.startsWith("foresail.dev/") && !key.startsWith("openshift.io/oadp-"))'
_OWNED = (
    Condition(only("variables.metadata", ("name", "namespace", "uid", "creationTimestamp", "generation",
        "managedFields", "labels", "annotations", "ownerReferences")), "it writes no other metadata"),
    Condition(
        all_of(
            "variables.owners.size() == 1",
            f'variables.owners.all(each, each.kind in ["{PRIMER.name}", "{CRON_JOB.name}"])',
            f"{quoted(PRIMER_LABEL)} in {LABELS}",
            f'{value(LABELS, NOT_BACKED_UP)} == "true"',
            has_all(ANNOTATIONS, (PRIMER_UID, TARGET_UID)),
            f'{LABELS}.all(key, key == {quoted(NOT_BACKED_UP)} || !key.contains("velero.io/"))',
            f'{ANNOTATIONS}.all(key, !key.contains("velero.io/") && !key.contains("apparmor"))',
            f"{ANNOTATIONS}.all(key, key in {words(_MARKS)} || {_NOT_RESERVED})",
        ),
        "it creates only what is recorded as held for a Primer",
    ),
)  # fmt: skip
_OWN = Condition(
    all_of(f"{quoted(PRIMER_UID)} in {OLD_ANNOTATIONS}", f"{quoted(PRIMER_LABEL)} in {OLD_LABELS}"),
    "it changes and deletes only what it made for a Primer",
)
_JOB = f'{SPEC}[?"jobTemplate"][?"spec"][?"template"][?"spec"].orValue({{}})'
_TEMPLATE = 'object.?template[?"spec"].orValue({})'

FENCE = Fence(
    PRIMERS_LEASE,
    "primers.enabled",
    "The token of primers, fenced: it may create pods and CronJobs, so here is which. A dry run of any pod is\n"
    "allowed, for nothing comes of it. Written by `make fences` from src/foresail/primers/fence.py: change that.",
    (
        Rule(
            POD,
            CREATE,
            (
                *_OWNED,
                _CLASS,
                Condition(
                    f"{NAME}.matches({quoted('-warm-[0-9a-f]{8}-[0-9]+-[0-9]+-[0-9]$')})",
                    "a placeholder is named after its CronJob and fire",
                ),
                *_pod(SPEC, "variables.pauseImage"),
            ),
            when=f"!(has(request.dryRun) && request.dryRun && {NAME} == {quoted(DRY_RUN_NAME)})",
        ),
        Rule(POD, DELETE, (_OWN,)),
        Rule(
            CRON_JOB,
            CREATE,
            (
                *_OWNED,
                Condition(
                    f"{NAME}.matches({quoted('-primer-[0-9a-f]{8}$')})", "a primer CronJob is named after its content"
                ),
                Condition(
                    f"{value(_JOB, 'priorityClassName')} == variables.priorityClass",
                    "a placeholder has the lowest priority",
                ),
                *_pod(_JOB, "variables.holdImage", runs=True),
            ),
        ),
        Rule(CRON_JOB, DELETE, (_OWN,)),
        Rule(CRON_JOB, UPDATE, (*unchanged(annotations=(WARM_UP_STATUS,)), UNCHANGED_SPEC)),
        Rule(
            POD_TEMPLATE,
            CREATE,
            (
                *_OWNED,
                Condition(f'!("priorityClassName" in {_TEMPLATE})', "a PodTemplate has no priority"),
                *_pod(_TEMPLATE, "variables.pauseImage"),
            ),
        ),
        Rule(POD_TEMPLATE, DELETE, (_OWN,)),
        Rule(
            _BUFFER,
            CREATE,
            (
                *_OWNED,
                plain("spec", metadata=("ownerReferences",)),
                Condition(
                    all_of(
                        only(SPEC, ("podTemplateRef", "replicas", "provisioningStrategy")),
                        f'{SPEC}[?"podTemplateRef"].orValue({{}}) == {{"name": {NAME}}}',
                    ),
                    "a buffer is for the PodTemplate of the same name",
                ),
            ),
        ),
        Rule(
            _BUFFER,
            UPDATE,
            (
                _OWN,
                *unchanged(annotations=(RELEASED,)),
                Condition(same(SPEC, OLD_SPEC, ("replicas",)), "it changes only how many pods a buffer is for"),
            ),
        ),
        Rule(_BUFFER, DELETE, (_OWN,)),
        Rule(PRIMER, UPDATE, subresource="status"),
        events(EVENT),
        lease(LEASE, PRIMERS_LEASE),
    ),
    {
        "pauseImage": '"{{ include "foresail.primerFlag" (dict "root" . "flag" "pause-image" '
        '"otherwise" .Values.primers.pauseImage) }}"',
        "holdImage": '"{{ include "foresail.primerFlag" (dict "root" . "flag" "hold-image" '
        '"otherwise" (include "foresail.image" .)) }}"',
        "priorityClass": '"{{ include "foresail.primerFlag" (dict "root" . "flag" "priority-class" '
        '"otherwise" "foresail-placeholder") }}"',
        "holdCommand": '{{ include "foresail.holdCommand" . }}',
    },
)
