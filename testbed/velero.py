"""Velero as `velero install` sets it up, with a real S3 server on a folder of this machine behind it."""

import json
import secrets
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from testbed.api import is_ok, request
from testbed.build import program
from testbed.components import COMPONENTS, VELERO_VERSION
from testbed.credentials import service_account_kubeconfig
from testbed.kubectl import apply, command_output, kubectl, wait_for_kinds
from testbed.node import network
from testbed.ports import Port
from testbed.processes import Program
from testbed.site import NODE_NAME, Site

S3, VELERO = "s3", "velero"
NAMESPACE = "velero"
_PLUGIN_TAG = "v1.14.3"
_REGION = "us-east-1"
_OFF = "--disable-controllers="
_IN_PODS = (
    "--use-node-agent",
    "--velero-pod-cpu-request=50m",
    "--velero-pod-mem-request=64Mi",
    "--node-agent-pod-cpu-request=50m",
    "--node-agent-pod-mem-request=64Mi",
)
_POD_SECONDS = 180
_CHANGES_SECONDS = 60
_UNCHANGED_FOR = 12.0  # seconds


def s3(site: Site) -> Program:
    """Return the S3 server; a folder below its data folder is a bucket."""
    folder = site.bucket.parent
    return Program(
        S3,
        [
            str(program("s3", "versitygw")),
            f"--port=127.0.0.1:{site.port(Port.S3)}",
            "--health=/health",
            "posix",
            f"--sidecar={folder.parent / 'meta'}",
            str(folder),
        ],
        _s3_keys(site),
        lambda: is_ok(f"{site.url(Port.S3, 'http')}/health"),
    )


def prepare_s3(site: Site) -> None:
    """Make the bucket and the keys."""
    site.bucket.mkdir(parents=True)
    (site.bucket.parent.parent / "meta").mkdir()
    access, secret = secrets.token_hex(10), secrets.token_hex(20)
    keys = f"[default]\naws_access_key_id={access}\naws_secret_access_key={secret}\n"
    _credentials_file(site).touch(mode=0o600)
    _credentials_file(site).write_text(keys)


def prepare_velero(site: Site) -> None:
    """Create what `velero install` creates; without a real node with no replica, for the server runs beside it."""
    objects = _installation(site)
    _installed_file(site).write_text(json.dumps(objects))
    apply(site, [item for item in objects if item["kind"] == "CustomResourceDefinition"])
    wait_for_kinds(site)
    apply(site, [item for item in objects if item["kind"] != "CustomResourceDefinition"])
    lead(site)


def wait_for_pods(site: Site) -> None:
    """Wait until Velero and its node agent run on the real node and the bucket is available."""
    for workload in (f"deployment/{VELERO}", "daemonset/node-agent"):
        kubectl(site, "rollout", "status", workload, f"--namespace={NAMESPACE}", f"--timeout={_POD_SECONDS}s")
    available = "--for=jsonpath={.status.phase}=Available"
    kubectl(
        site, "wait", available, "backupstoragelocations/default",
        f"--namespace={NAMESPACE}", f"--timeout={_POD_SECONDS}s",
    )  # fmt: skip


def lead(site: Site, server: str | None = None) -> None:
    """Let the server talk, from its next start on, to the API server or to a proxy before it."""
    service_account_kubeconfig(site, _kubeconfig(site), NAMESPACE, "velero", server)


def velero(site: Site) -> Program:
    """Return the server, with the arguments that its Deployment has now and as its ServiceAccount."""
    return Program(
        VELERO,
        [
            str(_velero_command(site)),
            *_arguments_now(site),
            f"--kubeconfig={_kubeconfig(site)}",
            f"--namespace={NAMESPACE}",
            f"--plugin-dir={program('velero-aws', 'velero-plugin-for-aws').parent}",
            f"--metrics-address=127.0.0.1:{site.port(Port.VELERO_METRICS)}",
            f"--profiler-address=127.0.0.1:{site.port(Port.VELERO_PROFILER)}",
        ],
        {
            "AWS_SHARED_CREDENTIALS_FILE": str(_credentials_file(site)),
            "VELERO_NAMESPACE": NAMESPACE,
            "VELERO_SCRATCH_DIR": str(site.folder),
        },
        lambda: is_ok(f"{site.url(Port.VELERO_METRICS, 'http')}/metrics") and _location_is_available(site),
    )


def switch_off(site: Site, controllers: tuple[str, ...]) -> None:
    """Let the server be started from now on with these of its controllers off, and its Deployment say so."""
    objects: list[dict[str, Any]] = json.loads(_installed_file(site).read_text())
    arguments = _server_arguments(objects)
    arguments[:] = [each for each in arguments if not each.startswith(_OFF)]
    if controllers:
        arguments.append(_OFF + ",".join(controllers))
    _installed_file(site).write_text(json.dumps(objects))
    apply(site, [item for item in objects if item["kind"] == "Deployment"])
    revalidate(site)


def revalidate(site: Site) -> None:
    """Let the server validate its location at once, as evidence that it runs: without a kubelet it has no pods.

    It validates once a minute, and until then a Deployment that has changed seems to be down. For some seconds after a
    change, a validation could be by a pod that was scaled away, and is no evidence.
    """
    _wait_after_changes(site)
    unchecked = '{"status":{"lastValidationTime":null}}'
    kubectl(site, "patch", "bsl", "default", f"--namespace={NAMESPACE}", "--type=merge", f"--patch={unchecked}")


def _wait_after_changes(site: Site) -> None:
    """Wait until Velero's Deployment, if there is one, has not changed for some seconds."""
    deployment = ("deployment", VELERO, f"--namespace={NAMESPACE}", "--ignore-not-found")
    times = "--output=jsonpath={.metadata.managedFields[*].time}"
    until = time.monotonic() + _CHANGES_SECONDS
    while time.monotonic() < until:
        written = kubectl(site, "get", *deployment, "--show-managed-fields", times).split()
        clock = time.time()  # noqa: TID251 - the API server writes the time of day
        ages = (clock - datetime.fromisoformat(text).timestamp() for text in written)
        if min(ages, default=_UNCHANGED_FOR) >= _UNCHANGED_FOR:
            return
        time.sleep(1)


def _installation(site: Site) -> list[dict[str, Any]]:
    version = dict(COMPONENTS[site.options.velero or VELERO].stamps)[VELERO_VERSION]
    output = command_output(
        site,
        [
            str(_velero_command(site)), "install", "--dry-run", "--output=json",
            f"--namespace={NAMESPACE}",
            f"--image=velero/velero:{version}",
            "--provider=aws",
            f"--plugins=velero/velero-plugin-for-aws:{_PLUGIN_TAG}",
            "--bucket=velero",
            f"--backup-location-config=region={_REGION},s3ForcePathStyle=true,s3Url={_s3_url(site)}",
            "--use-volume-snapshots=false",
            f"--secret-file={_credentials_file(site)}",
            *(_IN_PODS if site.options.node else []),
            *(["--features=EnableCSI"] if site.options.csi else []),
        ],
    )  # fmt: skip
    objects: list[dict[str, Any]] = json.loads(output)["items"]
    if site.options.node:
        _deployment(objects)["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": NODE_NAME}
    else:
        _deployment(objects)["replicas"] = 0
    _server_arguments(objects).append(f"{_OFF}schedule")
    return objects


def _s3_url(site: Site) -> str:
    if not site.options.node:
        return site.url(Port.S3, "http")
    return f"http://{network.machine_address(site)}:{site.port(Port.S3)}"


def _kubeconfig(site: Site) -> Path:
    return site.folder / "velero.kubeconfig"


def _installed_file(site: Site) -> Path:
    return site.folder / "velero.json"


def _deployment(objects: list[dict[str, Any]]) -> dict[str, Any]:
    spec: dict[str, Any] = next(item["spec"] for item in objects if item["kind"] == "Deployment")
    return spec


def _server_arguments(objects: list[dict[str, Any]]) -> list[str]:
    arguments: list[str] = _deployment(objects)["template"]["spec"]["containers"][0]["args"]
    return arguments


def _arguments_now(site: Site) -> list[str]:
    """Return what whoever changed the Deployment wants; without an API server to ask, what was installed."""
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{VELERO}"
    try:
        answer = request("GET", site.server + path, site.admin_trust)
    except OSError:
        return _server_arguments(json.loads(_installed_file(site).read_text()))
    return _server_arguments([answer.json()])


def _velero_command(site: Site) -> str:
    return str(program(site.options.velero or VELERO, "velero"))


def _credentials_file(site: Site) -> Path:
    return site.folder / "s3" / "credentials"


def _s3_keys(site: Site) -> dict[str, str]:
    pairs = dict(line.split("=", 1) for line in _credentials_file(site).read_text().splitlines()[1:])
    return {"ROOT_ACCESS_KEY": pairs["aws_access_key_id"], "ROOT_SECRET_KEY": pairs["aws_secret_access_key"]}


def _location_is_available(site: Site) -> bool:
    path = f"/apis/velero.io/v1/namespaces/{NAMESPACE}/backupstoragelocations/default"
    try:
        answer = request("GET", site.server + path, site.admin_trust)
    except OSError:
        return False
    phase: str = answer.json().get("status", {}).get("phase", "")
    return phase == "Available"
