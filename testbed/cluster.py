"""One real cluster: brought up in order, used by tests, taken down to the last process."""

import http.client
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from testbed import audit, control_plane, credentials, flux, kubectl, nodes, pki, processes, replicas, site, velero
from testbed.api import request
from testbed.audit import Request
from testbed.build import Say, build, cached_folder, component_named, program
from testbed.errors import TestbedError
from testbed.faults import Faults
from testbed.links import LINKS
from testbed.node import csi, images, needs, network, programs, registry_push, up
from testbed.objects import Objects
from testbed.places import clusters_folder
from testbed.processes import Program
from testbed.proxy import Proxy
from testbed.site import ADMIN, Options, Site

_PROGRAMS: dict[str, Callable[[Site], Program]] = {
    nodes.KWOK: nodes.kwok,
    nodes.KARPENTER: nodes.karpenter,
    velero.S3: velero.s3,
    velero.VELERO: velero.velero,
    **flux.PROGRAMS,
    **up.PROGRAMS,
    **csi.PROGRAMS,
}
_NOT_SERVED_YET = (http.client.NOT_FOUND, http.client.TOO_MANY_REQUESTS, http.client.SERVICE_UNAVAILABLE)
_NEW_KIND_SECONDS = 30.0


def _silent(_line: str) -> None:
    pass


class Cluster:
    """A cluster of this user on this machine, new or opened by its name."""

    def __init__(self, where: Site) -> None:
        self.site = where
        self.fault = Faults(where, self._program_named)
        self._objects = Objects(where)

    @classmethod
    def create(cls, name: str, options: Options, *, say: Say = _silent, owned: bool = False) -> Self:
        """Bring up a new cluster; if that fails or is interrupted, nothing of it stays.

        An owned cluster is an orphan once this process is gone, and `down --orphaned` takes it away.
        """
        _must_be_possible(options)
        build(components_of(options), say)
        if options.node:
            images.build_images(say)
        owner = site.process_mark(os.getpid()) if owned else None
        cluster = cls(Site.claim(name, options, owner))
        try:
            cluster._up(say)
        except TestbedError as error:
            kept = cluster._keep_logs()
            cluster.down()
            raise TestbedError(error.problem, error.hint.replace(str(cluster.folder), str(kept))) from None
        except BaseException:
            cluster.down()
            raise
        return cluster

    @classmethod
    def open(cls, name: str) -> Self:
        """Return the cluster of that name, which must exist."""
        return cls(Site.open(name))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.down()

    # Up and down

    def _up(self, say: Say) -> None:
        began = time.monotonic()
        where, options = self.site, self.site.options

        def start(*names: str) -> None:
            programs = [self._program_named(one) for name in names for one in replicas.names(options, name)]
            for one in programs:
                processes.start(where.folder, one)
            for one in programs:
                processes.wait_ready(where.folder, one)
                say(f"{one.name} is ready after {time.monotonic() - began:.1f} s")

        _link_programs(where)
        pki.make_authority(where.pki, network.server_addresses(where))
        credentials.user_kubeconfig(where, where.admin_kubeconfig, ADMIN, ["system:masters"])
        if options.node:
            pki.client_certificate(where.pki, control_plane.APISERVER, [])  # with which it asks the kubelet for logs
        where.audit_logs.mkdir()
        if options.ha:
            start(LINKS)
        start(control_plane.ETCD)
        start(control_plane.APISERVER)
        if options.velero:
            velero.prepare_s3(where)
            start(control_plane.CONTROLLER_MANAGER, velero.S3)
        else:
            start(control_plane.CONTROLLER_MANAGER)
        if options.velero and not options.node:
            velero.prepare_velero(where)
            start(velero.VELERO)
        self._start_nodes(start)
        if options.flux:
            flux.prepare_flux(where)
            start(*flux.PROGRAMS)
        if options.velero and options.node:
            velero.prepare_velero(where)
            velero.wait_for_pods(where)
            say(f"velero and its node agent are ready after {time.monotonic() - began:.1f} s")
        say(f"cluster {where.name!r} is up after {time.monotonic() - began:.1f} s")

    def _start_nodes(self, start: Callable[..., None]) -> None:
        where, options = self.site, self.site.options
        if options.pods_run:
            start(control_plane.SCHEDULER, *([nodes.KWOK] if options.has_kwok else []))
        if options.node:
            up.start_node(where, start)
        if options.nodes:
            nodes.create_nodes(where)
        if options.karpenter:
            nodes.prepare_karpenter(where)
            start(nodes.KARPENTER)

    def _keep_logs(self) -> Path:
        """Put the logs of a cluster that did not come up where they outlive it, until the next that does not."""
        kept = clusters_folder() / ".failed"
        shutil.rmtree(kept, ignore_errors=True)
        if (self.folder / "logs").exists():  # not if it ended before the first component
            shutil.copytree(self.folder / "logs", kept / "logs")
        return kept

    def down(self) -> None:
        """Kill every process of the cluster and remove its folder; nothing in it is worth a grace period."""
        remove(self.site.name)

    def status(self) -> dict[str, list[int]]:
        """Return the process ids of each component that the cluster should have; none means that it has ended."""
        found: dict[str, list[int]] = {name: [] for name in self.components}
        for process in processes.running(self.site.folder):
            found.setdefault(process.component, []).append(process.pid)
        return found

    @property
    def components(self) -> list[str]:
        """The names of the components that run in this cluster, in the order of their start."""
        options = self.site.options
        names = list(control_plane.programs(options))
        names += [velero.S3] if options.velero else []
        names += [velero.VELERO] if options.velero and not options.node else []
        names += [nodes.KWOK] if options.has_kwok else []
        names += list(up.PROGRAMS) if options.node else []
        names += list(csi.PROGRAMS) if options.csi else []
        names += list(flux.PROGRAMS) if options.flux else []
        return names + ([nodes.KARPENTER] if options.karpenter else [])

    def _program_named(self, name: str) -> Program:
        self._must_have(name)
        return (_PROGRAMS | control_plane.programs(self.site.options))[name](self.site)

    def _must_have(self, name: str) -> None:
        if name not in self.components:
            raise TestbedError(
                f"cluster {self.site.name!r} has no component {name!r}",
                f"it has: {', '.join(self.components)}",
            )

    def log(self, component: str) -> Path:
        """Return the file with everything that a component printed."""
        self._must_have(component)
        return processes.log_file(self.site.folder, component)

    # For tests

    @property
    def folder(self) -> Path:
        """The cluster's folder; a test may put files there, which go with the cluster."""
        return self.site.folder

    @property
    def server(self) -> str:
        """The API server's address."""
        return self.site.server

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.site.admin_kubeconfig

    def kubectl(self, *arguments: str, text: str | None = None) -> str:
        """Run kubectl as the administrator and return what it printed."""
        return kubectl.kubectl(self.site, *arguments, text=text)

    def wait_for_kinds(self) -> None:
        """Wait until the API server serves every kind that was defined."""
        kubectl.wait_for_kinds(self.site)

    def velero(self, *arguments: str) -> str:
        """Run Velero's command line as the administrator and return what it printed."""
        return kubectl.command_output(self.site, [str(self.site.programs / "velero"), *arguments])

    def restart_velero(self, *off: str) -> None:
        """Start Velero again with these of its controllers off, as its Deployment then says too."""
        velero.switch_off(self.site, off)
        if self.site.options.node:
            velero.wait_for_pods(self.site)
        else:
            self.fault.restart(velero.VELERO)

    @contextmanager
    def velero_behind(self, proxy: Proxy) -> Iterator[None]:
        """Let Velero talk to the API server through a proxy until the block ends; it is started again for each."""
        velero.lead(self.site, proxy.url)
        self.fault.restart(velero.VELERO)
        try:
            yield
        finally:
            velero.lead(self.site)
            self.fault.restart(velero.VELERO)

    def build_image(self, checkout: Path, name: str, say: Say = _silent) -> None:
        """Build the project's image from its Containerfile and push it to the node's registry under that name."""
        images.build_project(checkout, name, say)
        images.push_project(name, self._registry)

    def add_postgres(self, say: Say = _silent) -> None:
        """Put the image with PostgreSQL, made of Debian's packages, into the node's registry."""
        shutil.copytree(images.build_postgres(say), programs.registry_data(self.site), dirs_exist_ok=True)

    def push_image(self, image: images.Image) -> None:
        """Make an image of these files and push it to the node's registry."""
        registry_push.push_image(image, self._registry)

    def tag_image(self, image: str, name: str) -> None:
        """Give an image of the node's registry another name."""
        images.tag(self._registry, image, name)

    @property
    def _registry(self) -> str:
        return f"{network.node_address(self.site)}:{network.REGISTRY_PORT}"

    def bucket_objects(self) -> list[str]:
        """Return the keys of the objects in Velero's bucket."""
        return sorted(str(file.relative_to(self.site.bucket)) for file in self.site.bucket.rglob("*") if file.is_file())

    def get(self, *arguments: str) -> Any:  # noqa: ANN401 - JSON is any
        """Return what `kubectl get --output=json` prints, decoded, without a process of kubectl."""
        return self._objects.get(arguments)

    def collection(self, path: str) -> Any:  # noqa: ANN401 - JSON is any
        """Return all objects under a path, straight from the API server: kubectl would cost a process for each look.

        While the API server reads the objects of a kind that is new to it, it wants to be asked again.
        """
        deadline = time.monotonic() + _NEW_KIND_SECONDS
        while (answer := request("GET", self.server + path, self.site.admin_trust)).code != http.client.OK:
            if answer.code not in _NOT_SERVED_YET or time.monotonic() > deadline:
                raise TestbedError(f"GET {path}: code {answer.code}: {answer.text}", "is the kind installed?")
            time.sleep(0.2)
        return answer.json()

    def listed(self, path: str) -> list[dict[str, Any]]:
        """Return the same as a list."""
        items: list[dict[str, Any]] = self.collection(path)["items"]
        return items

    def apply(self, *objects: dict[str, Any]) -> None:
        """Create these objects, or change them to what is said here, as the administrator."""
        for body in objects:
            self._objects.apply(body)

    def user_kubeconfig(self, user: str, groups: Sequence[str] = ()) -> Path:
        """Return a kubeconfig with which one is that user, in those groups, by certificate."""
        return credentials.user_kubeconfig(self.site, self._credential_file(user), user, groups)

    def service_account_kubeconfig(self, namespace: str, name: str, server: str | None = None) -> Path:
        """Return a kubeconfig with which one is that ServiceAccount, at the API server or at a proxy before it."""
        file = self._credential_file(f"{namespace}-{name}")
        return credentials.service_account_kubeconfig(self.site, file, namespace, name, server)

    def service_account_token(self, namespace: str, name: str, seconds: int = 24 * 3600) -> str:
        """Return a token of that ServiceAccount."""
        return credentials.service_account_token(self.site, namespace, name, seconds)

    def expiring_token(self, namespace: str, name: str, seconds: float) -> str:
        """Return a token of that ServiceAccount that is refused after so many seconds, and ten more."""
        return credentials.expiring_token(self.site, namespace, name, seconds)

    def proxy(self) -> Proxy:
        """Return a proxy before the API server: a test can cut, stall and tear its streams, and delay its answers."""
        return Proxy(self.site)

    def audit(self, user: str) -> list[Request]:
        """Return what that user asked of the API server so far."""
        return audit.requests_of(self.site, user)

    def audit_from(self, address: str) -> list[Request]:
        """Return what was asked of the API server from that address so far, by whomever."""
        return audit.requests_from(self.site, address)

    def audit_where(self, matches: Callable[[Request], bool]) -> list[Request]:
        """Return what was asked of the API server so far and matches, by whomever."""
        return audit.requests_where(self.site, matches)

    def _credential_file(self, name: str) -> Path:
        folder = self.site.folder / "credentials"
        folder.mkdir(exist_ok=True)
        return folder / f"{name.replace('/', '_')}.kubeconfig"


def remove(name: str) -> None:
    """End the cluster of that name, or whatever is left of it after its testbed was killed."""
    folder = clusters_folder() / name
    processes.kill(folder)
    with suppress(TestbedError):  # without its file nobody knows its ports, and so its link
        where = Site.open(name)
        if where.options.node:
            up.remove_node(where)
    up.remove_groups(folder)
    site.remove(folder)


def _must_be_possible(options: Options) -> None:
    if options.flux and not options.velero:
        raise TestbedError("Flux reads buckets of the S3 server, which comes with Velero", "use --velero with --flux")
    if options.ha and options.node:
        raise TestbedError("a real node has one API server", "use --ha without --node")
    if not (options.node or options.csi):
        return
    if not options.node:
        raise TestbedError("volumes with snapshots need a real node", "use --csi with --node")
    needs.require()
    if options.velero not in (None, velero.VELERO):
        raise TestbedError(f"a real node has no image of {options.velero}", "use --velero 1.18 with --node")
    if options.kubernetes != Options().kubernetes:
        raise TestbedError(f"a real node has no kubelet of {options.kubernetes}", "leave out --kubernetes with --node")


def components_of(options: Options) -> list[str]:
    """Return the components that must have been built for a cluster with these options."""
    names = ["etcd", options.kubernetes]
    names += ["s3", options.velero, "velero-aws"] if options.velero else []
    names += ["kwok"] if options.has_kwok else []
    names += [*up.COMPONENTS, *up.COMPONENTS_OF_IMAGES] if options.node else []
    names += csi.COMPONENTS if options.csi else []
    names += flux.COMPONENTS.values() if options.flux else []
    return list(dict.fromkeys(names + ([options.karpenter] if options.karpenter else [])))


def _link_programs(where: Site) -> None:
    where.programs.mkdir()
    wanted = [(where.options.kubernetes, "kubectl")]
    wanted += [(where.options.velero, "velero")] if where.options.velero else []
    if cached_folder(component_named("helm")).exists():  # no cluster needs it, but whoever has built it installs charts
        wanted.append(("helm", "helm"))
    for component, name in wanted:
        (where.programs / name).symlink_to(program(component, name))
