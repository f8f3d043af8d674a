"""Flux's own controllers, as processes: they read a bucket of the cluster's S3 server, and apply what is in it."""

from collections.abc import Callable

from testbed.api import is_ok
from testbed.build import cached_folder, component_named, program
from testbed.kubectl import apply, kubectl, wait_for_kinds
from testbed.ports import Port
from testbed.processes import Program
from testbed.site import Site

SOURCE, KUSTOMIZE, HELM = "source-controller", "kustomize-controller", "helm-controller"
COMPONENTS = {SOURCE: "flux-source", KUSTOMIZE: "flux-kustomize", HELM: "flux-helm"}
NAMESPACE = "flux-system"
_HEALTH = {SOURCE: Port.FLUX_SOURCE_HEALTH, KUSTOMIZE: Port.FLUX_KUSTOMIZE_HEALTH, HELM: Port.FLUX_HELM_HEALTH}


def prepare_flux(site: Site) -> None:
    """Create Flux's kinds, from the modules that its controllers were built from, and its namespace."""
    for component in COMPONENTS.values():
        for file in sorted(cached_folder(component_named(component)).glob("*.yaml")):
            kubectl(site, "apply", "--server-side", f"--filename={file}")
    wait_for_kinds(site)
    apply(site, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])


def _source(site: Site) -> Program:
    files = f"127.0.0.1:{site.port(Port.FLUX_FILES)}"
    folder = site.folder / "flux"
    folder.mkdir(exist_ok=True)
    return _controller(
        site, SOURCE, f"--storage-path={folder}", f"--storage-addr={files}", f"--storage-adv-addr={files}"
    )


def _kustomize(site: Site) -> Program:
    return _controller(site, KUSTOMIZE, "--requeue-dependency=5s")


def _helm(site: Site) -> Program:
    return _controller(site, HELM, "--requeue-dependency=5s")


def _controller(site: Site, name: str, *flags: str) -> Program:
    health = _HEALTH[name]
    return Program(
        name,
        [
            str(program(COMPONENTS[name], name)),
            "--watch-all-namespaces",
            "--metrics-addr=0",
            f"--health-addr=127.0.0.1:{site.port(health)}",
            *flags,
        ],
        {
            "KUBECONFIG": str(site.admin_kubeconfig),
            "RUNTIME_NAMESPACE": NAMESPACE,
            "HOME": str(site.folder),
        },
        lambda: is_ok(f"{site.url(health, 'http')}/readyz"),
    )


PROGRAMS: dict[str, Callable[[Site], Program]] = {SOURCE: _source, KUSTOMIZE: _kustomize, HELM: _helm}
