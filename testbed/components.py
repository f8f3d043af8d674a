"""What the testbed builds: one entry for each Go module, with the versions stamped into it."""

from dataclasses import dataclass, field
from pathlib import Path

from testbed.places import HERE, MODULES

_KUBERNETES = "1.36.3"
_VELERO = "github.com/vmware-tanzu/velero/pkg/buildinfo.Version"

# Velero's controller-runtime metrics server listens on a fixed port that no flag changes, so two Velero servers
# on one machine would clash. The default is a variable: stamped like a version, each server takes a free port.
_ANY_PORT = (("sigs.k8s.io/controller-runtime/pkg/metrics/server.DefaultBindAddress", "127.0.0.1:0"),)


def _kubernetes_stamps() -> tuple[tuple[str, str], ...]:
    major, minor, _ = _KUBERNETES.split(".")
    return tuple(
        (f"{package}.{variable}", value)
        for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
        for variable, value in (
            ("gitVersion", f"v{_KUBERNETES}"),
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

    @property
    def folder(self) -> Path:
        """Where the module is."""
        return HERE / self.name if self.own else MODULES / self.name

    @property
    def sources(self) -> list[Path]:
        """The files that decide what is built."""
        return [self.folder / "go.mod", self.folder / "go.sum", *sorted(self.folder.glob("*.go"))]

    @property
    def target(self) -> str:
        """What `go build` is asked to build."""
        return "." if self.own else "tool"

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags of `go build` for this component."""
        linker = " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in self.stamps)])
        return ("-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", linker)


COMPONENTS = {
    component.name: component
    for component in (
        Component("etcd", ("etcd",), 1, renamed={"server": "etcd"}),
        Component(
            "kube",
            ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"),
            9,
            stamps=_kubernetes_stamps(),
        ),
        Component("s3", ("versitygw",), 1.5),
        Component("velero", ("velero",), 7.5, stamps=((_VELERO, "v1.18.3"), *_ANY_PORT)),
        Component("velero-1.17", ("velero",), 4, stamps=((_VELERO, "v1.17.2"), *_ANY_PORT)),
        Component("velero-aws", ("velero-plugin-for-aws",), 4.5),
        Component("kwok", ("kwok",), 3),
        Component(
            "karpenter",
            ("karpenter",),
            3,
            renamed={"kwok": "karpenter"},
            files={"sigs.k8s.io/karpenter": ("kwok/charts/crds/*.yaml", "kwok/apis/crds/*.yaml")},
        ),
        Component("helm", ("helm",), 2.5, stamps=(("helm.sh/helm/v4/internal/version.version", "v4.3.1"),)),
        Component("oracle", ("oracle",), 0.2, own=True),
    )
}
