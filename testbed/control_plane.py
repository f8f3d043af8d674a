"""etcd and the Kubernetes control plane: real programs, loopback only, with RBAC."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from testbed.api import is_ok, request
from testbed.build import program
from testbed.links import LINKS, links
from testbed.places import MANIFESTS
from testbed.ports import Port
from testbed.processes import Program
from testbed.replicas import APISERVER, CONTROLLER_MANAGER, ETCD, SCHEDULER, Member, Replica, members, replicas
from testbed.site import Options, Site

__all__ = ["APISERVER", "CONTROLLER_MANAGER", "ETCD", "SCHEDULER"]
SERVICES, FIRST_SERVICE = "10.0.0.0/20", "10.0.0.1"  # the first is the API server's own
_ETCD_BYTES = 8 << 30
_GO_DEFAULT = {"GOGC": "100"}  # a heap grows to twice what is live; what the testbed sets lets it grow to five times


def programs(options: Options) -> dict[str, Callable[[Site], Program]]:
    """Return the programs of a control plane by their names, in the order of their start."""
    servers = zip(replicas(options, APISERVER), members(options), strict=True)
    return {
        **({LINKS: links} if options.ha else {}),
        **{each.name: partial(_etcd, member=each) for each in members(options)},
        **{each.name: partial(_apiserver, server=each, member=member) for each, member in servers},
        **{each.name: partial(_controller_manager, own=each) for each in replicas(options, CONTROLLER_MANAGER)},
        **{each.name: partial(_scheduler, own=each) for each in replicas(options, SCHEDULER) if options.pods_run},
    }


def etcd_data(site: Site, member: Member) -> Path:
    """Return the folder of what a member of etcd has stored."""
    return site.folder / member.name


def _etcd(site: Site, member: Member) -> Program:
    # It does not wait for the disk, for what these clusters hold may go with the machine.
    client, peer = site.url(member.client, "http"), site.url(member.peer_link, "http")
    every = ",".join(f"{each.name}={site.url(each.peer_link, 'http')}" for each in members(site.options))
    return Program(
        member.name,
        [
            str(program("etcd", "etcd")),
            f"--name={member.name}",
            f"--data-dir={etcd_data(site, member)}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={site.url(member.peer, 'http')}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster={every}",
            f"--quota-backend-bytes={_ETCD_BYTES}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ],
        _environment(site),
        lambda: is_ok(f"{client}/health"),
    )


def _apiserver(site: Site, server: Replica, member: Member) -> Program:
    pki = site.pki
    audit = [
        f"--audit-policy-file={MANIFESTS / 'audit-policy.yaml'}",
        f"--audit-log-path={site.audit_logs / f'{server.name}.log'}",
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
        server.name,
        [
            str(program(site.options.kubernetes, APISERVER)),
            f"--etcd-servers={site.url(member.client_link, 'http')}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={site.port(server.port)}",
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
        _environment(site),
        lambda: is_ok(f"{site.url(server.port)}/readyz", site.admin_trust),
    )


def _controller_manager(site: Site, own: Replica) -> Program:
    # Jobs, CronJobs, garbage collection and the end of namespaces need it.
    return Program(
        own.name,
        [
            str(program(site.options.kubernetes, CONTROLLER_MANAGER)),
            *_common(site, own.port),
            f"--service-account-private-key-file={site.pki / 'service-accounts.key'}",
            f"--root-ca-file={site.pki / 'ca.crt'}",
            "--use-service-account-credentials=true",  # as elsewhere: admission can tell controllers from people
        ],
        {},
        lambda: is_ok(f"{site.url(own.port)}/healthz", site.admin_trust) and _controllers_work(site),
    )


def _controllers_work(site: Site) -> bool:
    # It says that it is healthy seconds before its controllers start. Two of them leave a trace in every cluster.
    try:
        role = request("GET", f"{site.server}/apis/rbac.authorization.k8s.io/v1/clusterroles/view", site.admin_trust)
    except OSError:
        return False
    published = f"{site.server}/api/v1/namespaces/default/configmaps/kube-root-ca.crt"
    return bool(role.json().get("rules")) and is_ok(published, site.admin_trust)


def _scheduler(site: Site, own: Replica) -> Program:
    return Program(
        own.name,
        [str(program(site.options.kubernetes, SCHEDULER)), *_common(site, own.port)],
        {},
        lambda: is_ok(f"{site.url(own.port)}/healthz", site.admin_trust),
    )


def _common(site: Site, port: Port) -> list[str]:
    # The server certificate is shown here too: made by themselves, theirs would go to a folder of the system's.
    return [
        f"--kubeconfig={site.admin_kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={site.port(port)}",
        f"--tls-cert-file={site.pki / 'server.crt'}",
        f"--tls-private-key-file={site.pki / 'server.key'}",
        f"--leader-elect={'true' if site.options.ha else 'false'}",
        *_emulation(site),
    ]


def _environment(site: Site) -> dict[str, str]:
    return _GO_DEFAULT if site.options.saves_memory else {}


def _emulation(site: Site) -> list[str]:
    return [f"--emulated-version={site.options.emulate}"] if site.options.emulate else []
