"""One attack for each field of our kinds that a tenant can write, generated from the schemas of the CRDs.

`HOSTILE_VALUES` has the values for each path. The rest of an object is made from the schema, so that it fails for its
hostile value only. A field without values here fails `tests/unit/selfservice/specs/test_redteam_fields.py`.
"""

import http.client
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from foresail.api import marks
from foresail.api.crds import DEFINITIONS, definition
from foresail.api.requests import DownloadTarget
from tests.redteam.world import (
    FIELDS,
    NAB,
    NADR,
    NAR,
    NIGHTLY,
    TREASURE,
    VICTIM,
    Json,
    World,
    given,
    path,
    reason,
    until,
)
from tests.selfservice_invariant import breaches_of_backup, breaches_of_restore
from tests.spec_paths import paths

Values = tuple[Any, ...]
Table = Mapping[str, Values]

REQUESTS = (NAB, NAR, NADR)
SERVED = {
    f"{of}{what}"
    for of in ("Backup", "Restore")
    for what in ("Log", "Results", "ResourceList", "ItemOperations", "VolumeInfo" if of == "Restore" else "VolumeInfos")
}
"""What a tenant may have about an own backup or restore: how it went, and names; never the objects themselves."""

_DECISION_SECONDS = 150.0
_LARGEST = 50_000
_WAITS_FOR_OWN_BACKUP = {"BackupNotReady", "BackupNotFound"}
"""A restore that names a backup which is not there waits for a NonAdminBackup of its own namespace."""


_SPACES: Values = (VICTIM, "*", "", f"{FIELDS},{VICTIM}", "fiel?s", "velero", f"{FIELDS}\u0000", "f\u0456elds")
_KINDS: Values = (
    "[",
    "!pods",
    "po*",
    "clusterroles",
    "namespaces",
    "nonadminbackups.oadp.openshift.io",
    "pods\n",
    "p\u043eds",
    "x" * 5_000,
)
_LONG: Values = ("9999h", "-1h", "1e9h", "infinity", "9223372036854775807ns")
_OTHERS_NAMES: Values = ("admins", "../admins", "*", "")
_LABEL_KEYS: Values = ("velero.io/schedule-name", "a b", "*")
_LABELS: Values = ({"velero.io/restore-name": NIGHTLY}, {"a" * 400: "x"}, {"a": "\u0000"})
_MANY: Values = (["x"] * 5_000,)
_ROOT = {"name": "root", "image": "root", "securityContext": {"privileged": True}}
_ELSEWHERE = {"name": "x", "includedNamespaces": [VICTIM]}
_ENDLESS = {"command": ["sleep", "infinity"], "timeout": "9999h"}


def _lists(at: str, items: Values) -> Table:
    return {at: ([items[0]], list(items[:2]), *_MANY), f"{at}[]": items}


def _selector(at: str) -> Table:
    """Give a selector values that select more than was meant, or that Velero cannot read."""
    wrong = {"key": "a", "operator": "Gt", "values": ["1"]}
    return {
        at: ({"matchNames": ["x"]}, {"matchExpressions": [wrong]}),
        f"{at}.matchLabels": _LABELS,
        f"{at}.matchLabels{{}}": ("a b", "x" * 400),
        f"{at}.matchExpressions": ([wrong] * 3, [wrong] * 2_000),
        f"{at}.matchExpressions[]": (wrong, {"key": "a", "operator": "In"}),
        f"{at}.matchExpressions[].key": ("a b", "x" * 400),
        f"{at}.matchExpressions[].operator": ("Gt", "", "*"),
        f"{at}.matchExpressions[].values": ([], *_MANY),
        f"{at}.matchExpressions[].values[]": ("a b", "x" * 400),
    }


def _rules(at: str) -> Table:
    """Give the rules of hooks values that reach pods of others."""
    return {
        at: ({"resources": [_ELSEWHERE]},),
        f"{at}.resources": ([_ELSEWHERE], [{"name": "x"}] * 2_000),
        f"{at}.resources[]": (_ELSEWHERE, {"name": "x", "excludedNamespaces": [FIELDS]}),
        f"{at}.resources[].name": ("x" * 100_000,),
        **_lists(f"{at}.resources[].includedNamespaces", _SPACES),
        **_lists(f"{at}.resources[].excludedNamespaces", _SPACES),
        **_lists(f"{at}.resources[].includedResources", _KINDS),
        **_lists(f"{at}.resources[].excludedResources", _KINDS),
        **_selector(f"{at}.resources[].labelSelector"),
    }


def _command(at: str, *timeouts: str) -> Table:
    """Give a hook values with which it never ends, or runs as somebody else."""
    return {
        at: (_ENDLESS,),
        f"{at}.command": ([], ["x" * 1_000] * 1_000),
        f"{at}.command[]": ("x" * 100_000,),
        f"{at}.container": ("x" * 100_000, "../victim"),
        f"{at}.onError": ("Ignore", "*"),
        **{f"{at}.{timeout}": _LONG for timeout in timeouts},
    }


def _reference(at: str) -> Table:
    """Give a reference values that name a ConfigMap of Velero's namespace, or something that is none."""
    admins = {"kind": "configmap", "name": "admins"}
    return {
        at: (admins, {"kind": "Secret", "name": "cloud-credentials"}),
        f"{at}.kind": ("Secret", "configmap", "*"),
        f"{at}.name": _OTHERS_NAMES,
        f"{at}.apiGroup": ("velero.io", "*"),
    }


_BACKUP: Table = {
    "": ({"includedNamespaces": [VICTIM]}, {"aFieldOfTomorrow": True}),
    ".metadata": ({"labels": {"velero.io/schedule-name": NIGHTLY}}, {"name": NIGHTLY, "namespace": VICTIM}),
    ".metadata.labels": ({"velero.io/schedule-name": NIGHTLY}, {"foresail.dev/request-uid": "x"}, *_LABELS),
    ".metadata.labels{}": ("a b", "x" * 400),
    **_lists(".includedNamespaces", _SPACES),
    **_lists(".excludedNamespaces", _SPACES),
    **_lists(".includedResources", _KINDS),
    **_lists(".excludedResources", _KINDS),
    **_lists(".includedClusterScopedResources", (*_KINDS, "persistentvolumes", "*")),
    **_lists(".excludedClusterScopedResources", _KINDS),
    **_lists(".includedNamespaceScopedResources", _KINDS),
    **_lists(".excludedNamespaceScopedResources", _KINDS),
    ".includeClusterResources": (True, "true"),
    **_selector(".labelSelector"),
    ".orLabelSelectors": ([{}, {"matchNames": []}], [{}] * 2_000),
    **_selector(".orLabelSelectors[]"),
    ".orderedResources": ({"pods": f"{VICTIM}/a"}, {"persistentvolumes": "pv"}, {"[": f"{FIELDS}/a"}),
    ".orderedResources{}": (f"{VICTIM}/a", f"{FIELDS}/a,{VICTIM}/b", "a", f"{FIELDS}/../{VICTIM}/a", "x" * 100_000),
    **_rules(".hooks"),
    ".hooks.resources[].pre": ([{"exec": _ENDLESS}],),
    ".hooks.resources[].pre[]": ({"exec": _ENDLESS}, {"init": {"initContainers": [_ROOT]}}),
    **_command(".hooks.resources[].pre[].exec", "timeout"),
    ".hooks.resources[].post": ([{"exec": _ENDLESS}],),
    ".hooks.resources[].post[]": ({"exec": _ENDLESS}, {"init": {"initContainers": [_ROOT]}}),
    **_command(".hooks.resources[].post[].exec", "timeout"),
    ".storageLocation": ("vault", "default", "../default", "*"),
    **_lists(".volumeSnapshotLocations", ("vault", "default", "*")),
    ".ttl": _LONG,
    ".snapshotVolumes": ("yes", 1),
    ".snapshotMoveData": ("yes", 1),
    ".defaultVolumesToFsBackup": ("yes", 1, True),
    ".defaultVolumesToRestic": (True, "yes"),
    ".volumeGroupSnapshotLabelKey": _LABEL_KEYS,
    ".datamover": ("nobody", "../velero", "*"),
    **_reference(".resourcePolicy"),
    ".csiSnapshotTimeout": _LONG,
    ".itemOperationTimeout": _LONG,
    ".uploaderConfig": ({"parallelFilesUpload": 5_000}, {"nobody": 1}),
    ".uploaderConfig.parallelFilesUpload": (5_000, -1, 2**63, "1"),
}

_RESTORE: Table = {
    "": ({"backupName": "own", "namespaceMapping": {FIELDS: VICTIM}}, {"backupName": "own", "aFieldOfTomorrow": True}),
    ".backupName": (TREASURE, NIGHTLY, f"{VICTIM}/{TREASURE}", f"../{VICTIM}/{TREASURE}", "*", "", "own\u0000"),
    ".scheduleName": (NIGHTLY, "*"),
    **_lists(".includedNamespaces", _SPACES),
    **_lists(".excludedNamespaces", _SPACES),
    **_lists(".includedResources", (*_KINDS, "rolebindings.rbac.authorization.k8s.io", "backups.velero.io")),
    **_lists(".excludedResources", _KINDS),
    ".namespaceMapping": ({FIELDS: VICTIM}, {"*": VICTIM}, {VICTIM: FIELDS}),
    ".namespaceMapping{}": (VICTIM, "velero", "*"),
    **_selector(".labelSelector"),
    ".orLabelSelectors": ([{}, {"matchNames": []}], [{}] * 2_000),
    **_selector(".orLabelSelectors[]"),
    ".restorePVs": ("yes", 1),
    ".restoreStatus": ({"includedResources": ["*"]}, {}),
    **_lists(".restoreStatus.includedResources", ("*", "services", "[")),
    **_lists(".restoreStatus.excludedResources", ("*", "services", "[")),
    ".preserveNodePorts": ("yes", 1),
    ".includeClusterResources": (True, "true"),
    **_rules(".hooks"),
    ".hooks.resources[].postHooks": ([{"init": {"initContainers": [_ROOT]}}],),
    ".hooks.resources[].postHooks[]": ({"init": {"initContainers": [_ROOT]}}, {"exec": _ENDLESS}),
    **_command(".hooks.resources[].postHooks[].exec", "execTimeout", "waitTimeout"),
    ".hooks.resources[].postHooks[].exec.waitForReady": ("yes", 1),
    ".hooks.resources[].postHooks[].init": ({"initContainers": [_ROOT]}, {}),
    ".hooks.resources[].postHooks[].init.initContainers": ([_ROOT], [_ROOT] * 500),
    ".hooks.resources[].postHooks[].init.initContainers[]": (_ROOT,),
    ".hooks.resources[].postHooks[].init.timeout": _LONG,
    ".existingResourcePolicy": ("update", "recreate", "*"),
    ".itemOperationTimeout": _LONG,
    **_reference(".resourceModifier"),
    **_reference(".resourcePolicy"),
    ".uploaderConfig": ({"parallelFilesDownload": 5_000}, {"nobody": 1}),
    ".uploaderConfig.parallelFilesDownload": (5_000, -1, 2**63, "1"),
    ".uploaderConfig.writeSparseFiles": ("yes", 1),
}

_CONTENTS = tuple(each for each in get_args(DownloadTarget) if each not in SERVED)
HOSTILE_VALUES: Mapping[str, Table] = {
    NAB: {
        **{f"backupSpec{at}": values for at, values in _BACKUP.items()},
        "deleteBackup": (True, "yes"),
        "forceDeleteBackup": (True, "yes"),
    },
    NAR: {
        **{f"restoreSpec{at}": values for at, values in _RESTORE.items()},
        "fromProtection": ({"backup": NIGHTLY}, {"backup": TREASURE}, {"backup": "*"}, {}),
        "fromProtection.backup": (NIGHTLY, TREASURE, "own", f"../{VICTIM}/{TREASURE}", "*", "", "own\u0000"),
        "retriedAt": ("2999-01-01T00:00:00Z", "soon", 1),
    },
    NADR: {
        "target": ({"kind": "BackupContents", "name": "own"}, {"kind": "BackupLog", "name": TREASURE}, {}),
        "target.kind": (*_CONTENTS, "*", ""),
        "target.name": (TREASURE, NIGHTLY, f"../{VICTIM}/{TREASURE}", "*", "", "own\u0000", "x" * 100_000),
    },
}
_BASES: Mapping[str, Json] = {
    NAB: {"backupSpec": {}},
    NAR: {"restoreSpec": {"backupName": "own"}},
    NADR: {"target": {"kind": "BackupLog", "name": "own"}},
}


# What is generated


def schema_of(plural: str) -> Json:
    """Return the schema of the spec of one of our kinds."""
    found = next(each for each in DEFINITIONS if each.kind.plural == plural)
    spec: Json = definition(found)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return spec


def fields_of(plural: str) -> set[str]:
    """Return the path of every field that a tenant can write."""
    return set(paths(schema_of(plural)))


def spec_with(plural: str, at: str, value: object) -> Json:
    """Return a spec that is as small as the schema allows, with one value at one path."""
    words = re.findall(r"[^.\[\]{}]+|\[\]|\{\}", at)
    built: Json = _built(schema_of(plural), words, value)
    for key, inner in _BASES[plural].items():
        below = built.setdefault(key, {})
        if len(words) > 1:
            below.update({name: each for name, each in inner.items() if name != words[1]})
    return built


def _built(schema: Json, words: list[str], value: object) -> Any:  # noqa: ANN401 - JSON
    if not words:
        return value
    first, rest = words[0], words[1:]
    if first == "[]":
        return [_built(schema["items"], rest, value)]
    if first == "{}":
        return {"x": _built(schema["additionalProperties"], rest, value)}
    return {**_least(schema), first: _built(schema["properties"][first], rest, value)}


def _least(schema: Json) -> Any:  # noqa: ANN401 - JSON
    """Return the smallest value that a schema takes."""
    if "enum" in schema:
        return schema["enum"][0]
    match schema["type"]:
        case "object":
            return {name: _least(schema["properties"][name]) for name in schema.get("required", ())}
        case "array":
            return [_least(schema["items"])] * schema.get("minItems", 0)
        case "string":
            return "30s" if "pattern" in schema else "x"
        case "integer":
            return schema.get("minimum", 1)
        case _:
            return False


# The attacks


@dataclass
class Attempt:
    """One hostile value in one field, and what came of it."""

    plural: str
    at: str
    value: object
    name: str
    uid: str = ""


def attempts() -> list[Attempt]:
    """Return one attempt for each value of each field."""
    found: list[Attempt] = []
    for plural, table in HOSTILE_VALUES.items():
        for at, values in table.items():
            for value in values:
                name = TREASURE if at == "deleteBackup" and value is True else f"f{len(found)}"
                found.append(Attempt(plural, at, value, name))
    return found


def attack_fields(world: World) -> dict[str, list[str]]:
    """Submit every hostile value as the tenant, and return for each field what it achieved."""
    found: dict[str, list[str]] = {f"{plural}.spec.{at}": [] for plural in REQUESTS for at in HOSTILE_VALUES[plural]}
    tried = attempts()
    with world.velero_stopped():  # Backups are looked at and taken away again before Velero begins
        made = _handed_over(world, [each for each in tried if each.plural != NAR])
    made |= _handed_over(world, [each for each in tried if each.plural == NAR])
    unprintable = _unprintable(world)
    for each in tried:
        for problem in (*outcome(each, made, world), *unprintable.get(each.uid, ())):
            found[f"{each.plural}.spec.{each.at}"].append(f"{each.value!r:.60}: {problem}")
    return found


def _unprintable(world: World) -> dict[str, list[str]]:
    """Return by UID the messages in which a tenant's text reaches a terminal as it is."""
    found: dict[str, list[str]] = {}
    for each in (each for plural in REQUESTS for each in world.admin.items(path(plural, FIELDS))):
        messages = [one.get("message", "") for one in each.get("status", {}).get("conditions", [])]
        found[each["metadata"]["uid"]] = [f"says {one!r:.60}" for one in messages if not one.isprintable()]
    return found


def _submit(world: World, attempt: Attempt) -> None:
    answer = world.ask(attempt.plural, attempt.name, spec_with(attempt.plural, attempt.at, attempt.value), FIELDS)
    if answer.code >= http.client.INTERNAL_SERVER_ERROR:
        raise RuntimeError(f"the API server fails at {attempt.at}: {answer.code} {answer.text:.200}")
    if answer.code == http.client.CREATED:
        attempt.uid = answer.json()["metadata"]["uid"]


def _handed_over(world: World, tried: list[Attempt]) -> dict[str, Json]:
    """Submit requests until each is refused or handed to Velero; return Velero's objects by the requests' UIDs.

    A request that only waits proves nothing. A Backup that was seen is forced away, to make room for the next.
    """
    for each in tried:
        _submit(world, each)
    left = {each.uid: each for each in tried if each.uid}
    made: dict[str, Json] = {}

    def all_decided() -> bool:
        found = {each["metadata"]["uid"]: each for at in REQUESTS for each in world.admin.items(path(at, FIELDS))}
        made.update(_made(world))
        for uid in list(left):
            if uid not in found:  # a request to delete that is done
                del left[uid]
                continue
            status = found[uid].get("status", {})
            if uid in made and left[uid].plural == NAB:
                world.hostile.patch(path(NAB, FIELDS, left[uid].name), {"spec": {"forceDeleteBackup": True}})
            refused = status.get("phase") == "BackingOff" or reason(found[uid]) in _WAITS_FOR_OWN_BACKUP
            if uid in made or refused or (left[uid].plural == NADR and status.get("conditions")):
                del left[uid]
        return not left

    try:
        until(all_decided, _DECISION_SECONDS, "the operator decides about every hostile value")
    except TimeoutError as late:
        raise TimeoutError(f"{late}: {sorted({each.at for each in left.values()})}") from None
    return made


def _made(world: World) -> dict[str, Json]:
    """Return Velero's objects by the UID of the request that they were made for."""
    made: dict[str, Json] = {}
    for plural in ("backups", "restores", "downloadrequests"):
        for each in world.velero(plural):
            uid = each["metadata"].get("annotations", {}).get(marks.REQUEST_UID, "")
            # The operator asks for the results of a restore, too: that is not the object which the restore became.
            made.setdefault(uid or each["metadata"]["name"].removeprefix("nadr-"), each)
    return made


def outcome(attempt: Attempt, made: Mapping[str, Json], world: World) -> list[str]:
    """Return what is wrong with the Velero object that came of an attempt; nothing if there is none."""
    found = made.get(attempt.uid) if attempt.uid else None
    if found is None:
        return []
    own = {each["metadata"]["name"] for each in world.made_for("backups", FIELDS)}
    spec, policy = given(found), world.policy(FIELDS)
    if attempt.plural == NAB:
        wrong = breaches_of_backup(spec, FIELDS, policy)
    elif attempt.plural == NAR:
        wrong = breaches_of_restore(spec, FIELDS, spec.get("backupName", ""), policy)
        wrong += [] if spec.get("backupName") in own else [f"restores {spec.get('backupName')}"]
    else:
        wrong = [] if spec["target"]["kind"] in SERVED else [f"hands out {spec['target']['kind']}"]
        wrong += [] if spec["target"]["name"] in own else [f"hands out {spec['target']['name']}"]
    reserved = [key for key in found["metadata"].get("labels", {}) if key == "velero.io/schedule-name"]
    wrong += [f"carries the label {key}" for key in reserved]
    wrong += ["is larger than anything Velero should read"] if len(str(spec)) > _LARGEST else []
    return wrong
