"""etcd and the Kubernetes control plane: real programs, loopback only, with RBAC."""

from testbed.api import is_ok, request
from testbed.build import program
from testbed.places import MANIFESTS
from testbed.ports import Port
from testbed.processes import Program
from testbed.site import Site

ETCD, APISERVER = "etcd", "kube-apiserver"
CONTROLLER_MANAGER, SCHEDULER = "kube-controller-manager", "kube-scheduler"
SERVICES, FIRST_SERVICE = "10.0.0.0/20", "10.0.0.1"  # the first is the API server's own
_ETCD_BYTES = 8 << 30


def etcd(site: Site) -> Program:
    """Return etcd; it does not wait for the disk, for what these clusters hold may go with the machine."""
    client, peer = site.url(Port.ETCD, "http"), site.url(Port.ETCD_PEER, "http")
    return Program(
        ETCD,
        [
            str(program("etcd", "etcd")),
            f"--data-dir={site.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            f"--quota-backend-bytes={_ETCD_BYTES}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ],
        {},
        lambda: is_ok(f"{client}/health"),
    )


def apiserver(site: Site) -> Program:
    """Return the API server, with an audit log if the cluster was asked for one."""
    pki = site.pki
    audit = [
        f"--audit-policy-file={MANIFESTS / 'audit-policy.yaml'}",
        f"--audit-log-path={site.audit_log}",
        "--audit-log-maxsize=1024",
    ]
    node = [
        "--allow-privileged=true",
        "--enable-admission-plugins=NodeRestriction",
        f"--kubelet-client-certificate={pki / f'user-{APISERVER}.crt'}",
        f"--kubelet-client-key={pki / f'user-{APISERVER}.key'}",
        "--kubelet-preferred-address-types=InternalIP",
    ]
    return Program(
        APISERVER,
        [
            str(program(site.options.kubernetes, APISERVER)),
            f"--etcd-servers={site.url(Port.ETCD, 'http')}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={site.port(Port.APISERVER)}",
            f"--service-cluster-ip-range={SERVICES}",
            "--endpoint-reconciler-type=none",  # only the pods of a real node use its Service; see testbed.node
            f"--authorization-mode={'Node,RBAC' if site.options.node else 'RBAC'}",
            f"--client-ca-file={pki / 'ca.crt'}",
            f"--tls-cert-file={pki / 'server.crt'}",
            f"--tls-private-key-file={pki / 'server.key'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={pki / 'service-accounts.pub'}",
            f"--service-account-signing-key-file={pki / 'service-accounts.key'}",
            *_emulation(site),
            *(audit if site.options.audit else []),
            *(node if site.options.node else []),
        ],
        {},
        lambda: is_ok(f"{site.server}/readyz", site.admin_trust),
    )


def controller_manager(site: Site) -> Program:
    """Return the controller manager: Jobs, CronJobs, garbage collection and the end of namespaces need it."""
    return Program(
        CONTROLLER_MANAGER,
        [
            str(program(site.options.kubernetes, CONTROLLER_MANAGER)),
            *_common(site, Port.CONTROLLER_MANAGER),
            f"--service-account-private-key-file={site.pki / 'service-accounts.key'}",
            f"--root-ca-file={site.pki / 'ca.crt'}",
            "--use-service-account-credentials=true",  # as elsewhere: admission can tell controllers from people
        ],
        {},
        lambda: is_ok(f"{site.url(Port.CONTROLLER_MANAGER)}/healthz", site.admin_trust) and _controllers_work(site),
    )


def _controllers_work(site: Site) -> bool:
    # It says that it is healthy seconds before its controllers start. Two of them leave a trace in every cluster.
    try:
        role = request("GET", f"{site.server}/apis/rbac.authorization.k8s.io/v1/clusterroles/view", site.admin_trust)
    except OSError:
        return False
    published = f"{site.server}/api/v1/namespaces/default/configmaps/kube-root-ca.crt"
    return bool(role.json().get("rules")) and is_ok(published, site.admin_trust)


def scheduler(site: Site) -> Program:
    """Return the scheduler, which only a cluster with nodes needs."""
    return Program(
        SCHEDULER,
        [str(program(site.options.kubernetes, SCHEDULER)), *_common(site, Port.SCHEDULER)],
        {},
        lambda: is_ok(f"{site.url(Port.SCHEDULER)}/healthz", site.admin_trust),
    )


def _common(site: Site, port: Port) -> list[str]:
    # The server certificate is shown here too: made by themselves, theirs would go to a folder of the system's.
    return [
        f"--kubeconfig={site.admin_kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={site.port(port)}",
        f"--tls-cert-file={site.pki / 'server.crt'}",
        f"--tls-private-key-file={site.pki / 'server.key'}",
        "--leader-elect=false",
        *_emulation(site),
    ]


def _emulation(site: Site) -> list[str]:
    return [f"--emulated-version={site.options.emulate}"] if site.options.emulate else []
