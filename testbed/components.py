"""What the testbed builds: one entry for each Go module, with the versions stamped into it."""

from dataclasses import dataclass, field
from pathlib import Path

from testbed.places import HERE, MODULES

_KUBERNETES = "1.36.3"
_OTHER_KUBERNETES = ("1.34.4", "1.35.4", "1.37.0")
_CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
_VELERO_CMD = "github.com/vmware-tanzu/velero/cmd"
_SNAPSHOT_KINDS = "github.com/kubernetes-csi/external-snapshotter/client/v8"
VELERO_VERSION = "github.com/vmware-tanzu/velero/pkg/buildinfo.Version"

# Velero's controller-runtime metrics server listens on a fixed port that no flag changes, so two Velero servers
# on one machine would clash. The default is a variable: stamped like a version, each server takes a free port.
_ANY_PORT = (("sigs.k8s.io/controller-runtime/pkg/metrics/server.DefaultBindAddress", "127.0.0.1:0"),)


def _kubernetes_stamps(version: str = _KUBERNETES) -> tuple[tuple[str, str], ...]:
    major, minor, _ = version.split(".")
    return tuple(
        (f"{package}.{variable}", value)
        for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
        for variable, value in (
            ("gitVersion", f"v{version}"),
            ("gitMajor", major),
            ("gitMinor", minor),
        )
    )


@dataclass(frozen=True, slots=True)
class Component:
    """A Go module: one without code, whose `tool` block names the programs to build, or one of our own."""

    name: str
    programs: tuple[str, ...]
    minutes: float  # measured on two cores with nothing cached: what a progress line promises
    renamed: dict[str, str] = field(default_factory=dict)  # the name that Go gives a program: the name it has here
    stamps: tuple[tuple[str, str], ...] = ()
    files: dict[str, tuple[str, ...]] = field(default_factory=dict)  # module: globs of files kept with the programs

    own: bool = False  # the module has Go code of ours, in a folder of its own
    module: str = ""  # the component whose module this one shares, to build other packages of it
    packages: tuple[str, ...] = ()  # what to build of the module, if not what its `tool` block names
    tags: tuple[str, ...] = ()
    toolchain: str = "local"  # the Go that builds it; another than the one that is here comes from the module proxy
    only_node: bool = False  # only a cluster with a real node needs it
    only_asked: bool = False  # only if it is named: for a cluster of an older version, or as an oracle

    @property
    def is_usual(self) -> bool:
        """Whether `testbed build` builds it unasked."""
        return not (self.only_node or self.only_asked)

    @property
    def folder(self) -> Path:
        """Where the module is."""
        return HERE / self.name if self.own else MODULES / (self.module or self.name)

    @property
    def sources(self) -> list[Path]:
        """The files that decide what is built."""
        return [self.folder / "go.mod", self.folder / "go.sum", *sorted(self.folder.glob("*.go"))]

    @property
    def targets(self) -> tuple[str, ...]:
        """What `go build` is asked to build."""
        return self.packages or (("." if self.own else "tool"),)

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags of `go build` for this component."""
        linker = " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in self.stamps)])
        tags = ("-tags", ",".join(self.tags)) if self.tags else ()
        return ("-trimpath", "-buildvcs=false", "-mod=readonly", *tags, "-ldflags", linker)


def _control_plane(version: str) -> Component:
    minor, _, _ = version.rpartition(".")
    return Component(f"kube-{minor}", _CONTROL_PLANE, 9, stamps=_kubernetes_stamps(version), only_asked=True)


def _karpenter(name: str, toolchain: str = "local", *, only_asked: bool = False) -> Component:
    return Component(
        name,
        ("karpenter",),
        3,
        renamed={"kwok": "karpenter"},
        files={"sigs.k8s.io/karpenter": ("kwok/charts/crds/*.yaml", "kwok/apis/crds/*.yaml")},
        toolchain=toolchain,
        only_asked=only_asked,
    )


COMPONENTS = {
    component.name: component
    for component in (
        Component("etcd", ("etcd",), 1, renamed={"server": "etcd"}),
        Component("kube", _CONTROL_PLANE, 9, stamps=_kubernetes_stamps()),
        *(_control_plane(version) for version in _OTHER_KUBERNETES),
        Component("s3", ("versitygw",), 1.5),
        Component("velero", ("velero",), 7.5, stamps=((VELERO_VERSION, "v1.18.3"), *_ANY_PORT)),
        Component("velero-1.17", ("velero",), 4, stamps=((VELERO_VERSION, "v1.17.2"), *_ANY_PORT)),
        Component("velero-aws", ("velero-plugin-for-aws",), 4.5),
        Component("kwok", ("kwok",), 3),
        _karpenter("karpenter"),
        _karpenter("karpenter-1.15", toolchain="go1.26.9", only_asked=True),
        *(
            Component(
                f"flux-{name}",
                (f"{name}-controller",),
                3,
                files={f"github.com/fluxcd/{name}-controller": ("config/crd/bases/*.yaml",)},
                only_asked=True,
            )
            for name in ("source", "kustomize", "helm")
        ),
        Component("helm", ("helm",), 2.5, stamps=(("helm.sh/helm/v4/internal/version.version", "v4.3.1"),)),
        Component("oracle", ("oracle",), 0.2, own=True),
        Component("restic", ("restic",), 1, only_asked=True),
        Component("kube-node", ("kubelet", "kube-proxy"), 2, stamps=_kubernetes_stamps(), only_node=True),
        Component(
            "containerd",
            ("containerd", "containerd-shim-runc-v2", "ctr"),
            3.5,
            stamps=(("github.com/containerd/containerd/v2/version.Version", "v2.4.2"),),
            tags=("no_btrfs", "no_devmapper", "no_zfs", "netgo", "osusergo", "static_build"),
            only_node=True,
        ),
        Component(
            "velero-helpers",
            ("velero-helper", "velero-restore-helper"),
            0.2,
            module="velero",
            packages=(f"{_VELERO_CMD}/velero-helper", f"{_VELERO_CMD}/velero-restore-helper"),
            only_node=True,
        ),
        Component(
            "velero-aws-helpers",
            ("cp-plugin",),
            0.2,
            module="velero-aws",
            packages=("github.com/vmware-tanzu/velero-plugin-for-aws/hack/cp-plugin",),
            only_node=True,
        ),
        Component("local-path", ("local-path-provisioner",), 1.5, only_node=True),
        Component("pause", ("pause",), 0.1, own=True, only_node=True),
        # Its sidecars end at once with a driver that does not know its version.
        Component("csi-hostpath", ("hostpathplugin",), 0.5, stamps=(("main.version", "v1.7.2"),), only_node=True),
        Component("csi-registrar", ("csi-registrar",), 0.1, own=True, only_node=True),
        Component("csi-provisioner", ("csi-provisioner",), 2, only_node=True),
        Component(
            "csi-snapshotter",
            ("csi-snapshotter", "snapshot-controller"),
            4,
            files={_SNAPSHOT_KINDS: ("config/crd/snapshot.storage.k8s.io_*.yaml",)},
            only_node=True,
        ),
    )
}
