"""Volumes on demand: local-path-provisioner makes a folder of the node for each claim."""

import json
from typing import Any

from testbed.build import program
from testbed.kubectl import apply, kubectl
from testbed.node.images import BUSYBOX
from testbed.node.programs import LOCAL_PATH, folder
from testbed.processes import Program
from testbed.site import Site

NAMESPACE, _CLASS = "local-path-storage", "local-path"
_PROVISIONER = "testbed.foresail.dev/local-path"


def prepare_storage(site: Site) -> None:
    """Create the default StorageClass and what the provisioner reads."""
    config = {"nodePathMap": [{"node": "DEFAULT_PATH_FOR_NON_LISTED_NODES", "paths": [str(folder(site) / "volumes")]}]}
    (folder(site) / "local-path.json").write_text(json.dumps(config))
    apply(site, [_namespace(), _account(), _storage_class(), _config_map(config)])


def provisioner(site: Site) -> Program:
    """Return the provisioner; it runs beside the cluster and lets short pods on the node make and remove folders."""
    return Program(
        LOCAL_PATH,
        [
            str(program("local-path", "local-path-provisioner")), "start",
            f"--kubeconfig={site.admin_kubeconfig}",
            f"--config={folder(site) / 'local-path.json'}",
            f"--namespace={NAMESPACE}",
            f"--provisioner-name={_PROVISIONER}",
            f"--service-account-name={LOCAL_PATH}",
            "--configmap-name=local-path-config",
            f"--helper-image={BUSYBOX}",
        ],
        {"POD_NAMESPACE": NAMESPACE},
        lambda: bool(kubectl(site, "get", "storageclass", _CLASS, "--ignore-not-found", "--output=name")),
    )  # fmt: skip


def _namespace() -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}


def _account() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": LOCAL_PATH, "namespace": NAMESPACE},
    }


def _storage_class() -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": _CLASS,
            "annotations": {
                "storageclass.kubernetes.io/is-default-class": "true",
                "defaultVolumeType": "local",  # Velero does not back up volumes of the type hostPath
            },
        },
        "provisioner": _PROVISIONER,
        "volumeBindingMode": "WaitForFirstConsumer",
        "reclaimPolicy": "Delete",
    }


def _config_map(config: dict[str, Any]) -> dict[str, Any]:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "helper-pod"},
        "spec": {
            "priorityClassName": "system-node-critical",
            "containers": [{"name": "helper-pod", "image": BUSYBOX, "imagePullPolicy": "IfNotPresent"}],
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "local-path-config", "namespace": NAMESPACE},
        "data": {
            "config.json": json.dumps(config),
            "setup": '#!/bin/sh\nset -eu\nmkdir -m 0777 -p "$VOL_DIR"\n',
            "teardown": '#!/bin/sh\nset -eu\nrm -rf "$VOL_DIR"\n',
            "helperPod.yaml": json.dumps(pod),
        },
    }
