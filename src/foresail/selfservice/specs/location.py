"""The spec of the Velero BackupStorageLocation that a tenant's own location comes to, or why there is none.

Velero reads and writes there with its own process, so the spec is made anew: each value is one that a line below
checks, and no key of `config` reaches the plugin that is not in the table.
"""

import binascii
import re
from base64 import b64decode
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from foresail.api.policy import Bounds, LocationPolicy
from foresail.api.specs import BackupStorageLocationSpec, CredentialSelector, ObjectStorageLocation
from foresail.api.velero import LOCATION
from foresail.plan import Key, Patch
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.rows.locations import LocationRow
from foresail.selfservice.specs.values import Refusal, Violation, as_json, duration, few_enough, listed, read, shown
from foresail.tenancy.policies import PolicyRow

# Which hosts a location may lead to: Velero, and the operator, connect from inside the cluster. The text of an endpoint
# is compared as it is, never repaired: two parsers that read one text differently are an attack.

_URL = re.compile(r"(https?)://([a-z0-9.-]{1,253})(?::([0-9]{1,5}))?/?", re.ASCII)
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)  # the last label of an address, in any of its spellings
_DEFAULT_PORTS = {"https": "443", "http": "80"}
_LAST_PORT = 65535


def endpoint(text: str) -> str | None:
    """Return an endpoint in the one form that is compared, without a default port; None if it is none.

    Addresses in numbers, users, paths, queries, capitals, international names and trailing dots are none.
    """
    match = _URL.fullmatch(text)
    if match is None:
        return None
    scheme, host, port = match.groups()
    labels = host.split(".")
    if _NUMERIC.fullmatch(labels[-1]) or not all(_LABEL.fullmatch(label) for label in labels):
        return None
    if any(label.startswith("xn--") for label in labels):
        return None
    if port is not None and (port.startswith("0") or int(port) > _LAST_PORT):
        return None
    is_default = port is None or port == _DEFAULT_PORTS[scheme]
    return f"{scheme}://{host}" if is_default else f"{scheme}://{host}:{port}"


def is_allowed(text: str, allowed: Iterable[str]) -> bool:
    """Whether an endpoint is in a policy's list; an entry without a scheme means https."""
    wanted = endpoint(text)
    return wanted is not None and wanted in {endpoint(_with_scheme(entry)) for entry in allowed}


def _with_scheme(entry: str) -> str:
    return entry if "://" in entry else f"https://{entry}"


CREDENTIALS_KEY = "cloud"
"""The key of the Secret in Velero's namespace; the tenant's own key is free to have any name."""

READ_ONLY, READ_WRITE = "ReadOnly", "ReadWrite"
_SPEC = "spec.backupStorageLocationSpec"
_SHORTEST_VALIDATION = "1m"
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", re.ASCII)
_SEGMENT = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_MOST_SEGMENTS = 8
_CONFIG = {
    "region": re.compile(r"[a-z0-9-]{1,32}", re.ASCII),
    "s3ForcePathStyle": re.compile("true|false"),
    "s3Url": re.compile(r".{1,512}"),
    "checksumAlgorithm": re.compile(r"|CRC32|CRC32C|SHA1|SHA256|CRC64NVME"),
    "serverSideEncryption": re.compile(r"AES256|aws:kms|aws:kms:dsse"),
    "kmsKeyId": re.compile(r"[A-Za-z0-9:/_-]{1,256}", re.ASCII),
    "signatureVersion": re.compile("1|4"),
    "tagging": re.compile(r"[A-Za-z0-9=&_.-]{1,512}", re.ASCII),
}
"""The keys of `config` that a policy can allow; the others name files, profiles or identities of Velero's own."""

CONFIG_KEYS = tuple(_CONFIG)
PROVIDERS = ("aws", "velero.io/aws")
REGISTRY = "openshift.io/oadp-registry"
"""The label by which OADP makes no image registry for a location."""


def location_spec(tenant: Mapping[str, Any], namespace: str, policy: PolicyRow) -> BackupStorageLocationSpec | Refused:
    """Return the spec of the Velero location, whose Secret is not named yet, or why there is none."""
    try:
        spec = read(BackupStorageLocationSpec, tenant, _SPEC)
        made = _location(spec, namespace, policy.spec.locations, policy.name)
        _within_chart((made.config or {}).get("s3Url", ""), policy)
    except Violation as violation:
        return Refused(Reason.POLICY_VIOLATION, str(violation))
    except Refusal as refusal:
        return Refused(Reason.BSL_SPEC_VALIDATION, str(refusal))
    return made


def _within_chart(url: str, policy: PolicyRow) -> None:
    if policy.chart.endpoints and url not in policy.chart.endpoints:
        text = f"{_SPEC}.config.s3Url {shown(url)} is not among selfService.locations.endpoints of the chart"
        raise Violation(f"{text}; choose another one, or ask a cluster administrator")


def velero_location(spec: BackupStorageLocationSpec, secret: str, access_mode: str) -> dict[str, Any]:
    """Return the spec as Velero gets it, with the name of the Secret in Velero's namespace."""
    document: dict[str, Any] = as_json(spec)
    return {**document, "credential": {"name": secret, "key": CREDENTIALS_KEY}, "accessMode": access_mode}


def access_patch(row: LocationRow, namespace: str, marks: dict[str, str | None], access_mode: str) -> Patch:
    """Return the write of annotations and of the access mode to the Velero location of a tenant."""
    body = {"metadata": {"uid": row.uid, "annotations": marks}, "spec": {"accessMode": access_mode}}
    return Patch(LOCATION, Key(namespace, row.name), body)


def not_allowed(policy: PolicyRow) -> Refused:
    """Return the refusal of every location."""
    text = f"SelfServicePolicy {policy.name} does not allow storage locations of tenants"
    return Refused(Reason.POLICY_VIOLATION, f"{text}; ask a cluster administrator to set locations.allowed")


def _location(
    spec: BackupStorageLocationSpec, namespace: str, rules: LocationPolicy, policy: str
) -> BackupStorageLocationSpec:
    if spec.default:
        raise Refusal(f"{_SPEC}.default is restricted, can only be set to false")
    listed(f"{_SPEC}.provider", rules.providers, policy)(spec.provider)
    if spec.provider not in PROVIDERS:
        raise Refusal(f"{_SPEC}.provider {shown(spec.provider)} is not supported by self-service; use aws")
    stored = spec.object_storage
    return BackupStorageLocationSpec(
        provider=spec.provider,
        object_storage=ObjectStorageLocation(
            bucket=_bucket(stored.bucket, rules, policy),
            prefix=_prefix(stored.prefix or "", namespace),
            ca_cert=_authority(stored.ca_cert),
        ),
        config=_config(spec.config or {}, rules, policy),
        credential=_credential(spec.credential),
        access_mode=spec.access_mode,
        backup_sync_period="0s",  # whoever owns the bucket would else create Backups in Velero's namespace
        validation_frequency=_validation_frequency(spec.validation_frequency, rules),
    )


def _bucket(bucket: str, rules: LocationPolicy, policy: str) -> str:
    path = f"{_SPEC}.objectStorage.bucket"
    if not _BUCKET.fullmatch(bucket) or ".." in bucket:
        raise Refusal(f"{path} {shown(bucket)} is not the name of a bucket; correct it")
    if rules.buckets is not None and not any(fnmatchcase(bucket, pattern) for pattern in rules.buckets):
        choice = f"choose one of {shown(', '.join(rules.buckets))}" if rules.buckets else "ask a cluster administrator"
        raise Violation(f"{path} {shown(bucket)} is not allowed by SelfServicePolicy {policy}; {choice}")
    return bucket


def _prefix(prefix: str, namespace: str) -> str:
    """Return the folder of the namespace, or one below it: no text leads out of it."""
    segments = prefix.removesuffix("/").split("/") if prefix else []
    are_plain = all(_SEGMENT.fullmatch(segment) and segment not in (".", "..") for segment in segments)
    if not are_plain or len(segments) > _MOST_SEGMENTS:
        text = f"{_SPEC}.objectStorage.prefix {shown(prefix)} is not a folder"
        raise Refusal(f"{text}; write names of letters, digits, dots and dashes with / between them")
    return "/".join((namespace, *segments))


def _authority(certificate: str | None) -> str | None:
    if not certificate:
        return None
    try:
        text = b64decode(certificate, validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        text = ""
    if "-----BEGIN CERTIFICATE-----" not in text or "PRIVATE KEY" in text:
        raise Refusal(f"{_SPEC}.objectStorage.caCert is not a certificate; write PEM in base64")
    return certificate


def _config(config: Mapping[str, str], rules: LocationPolicy, policy: str) -> dict[str, str]:
    few_enough(f"{_SPEC}.config", config)
    for key, value in config.items():
        path = f"{_SPEC}.config.{shown(key)}"
        if key not in _CONFIG:
            raise Refusal(f"{path} is not supported by self-service; remove it")
        listed(f"{_SPEC}.config key", rules.config_keys, policy)(key)
        if not _CONFIG[key].fullmatch(value):
            raise Refusal(f"{path} {shown(value)} is not valid; correct it")
    url = config.get("s3Url")
    if url is not None:
        _endpoint(url, rules, policy)
    return {"checksumAlgorithm": "", **config}  # many S3 servers know no checksums


def _endpoint(url: str, rules: LocationPolicy, policy: str) -> None:
    path = f"{_SPEC}.config.s3Url {shown(url)}"
    if endpoint(url) is None:
        raise Refusal(f"{path} is not an endpoint; write https://HOST or https://HOST:PORT with a name in lower case")
    if not is_allowed(url, rules.endpoints):
        choice = f"choose one of {shown(', '.join(rules.endpoints))}" if rules.endpoints else "remove it"
        raise Violation(f"{path} is not allowed by SelfServicePolicy {policy}; {choice}")


def _credential(credential: CredentialSelector | None) -> CredentialSelector:
    """Return which key of which Secret; without one Velero would use its own identity."""
    if credential is None or not credential.name:
        raise Refusal(f"{_SPEC}.credential is not set; name a Secret of this namespace and its key")
    return CredentialSelector(key=credential.key, name=credential.name)


def _validation_frequency(wrote: str | None, rules: LocationPolicy) -> str | None:
    bounds = rules.validation_frequency
    bounds = Bounds(minimum=bounds.minimum or _SHORTEST_VALIDATION, maximum=bounds.maximum)
    path = f"{_SPEC}.validationFrequency"
    return duration(path, wrote, bounds, required=None, default=None, ceiling="24h")
