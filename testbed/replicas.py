"""Which replicas a control plane has and where they listen: one of each, or those of a highly available one.

A highly available control plane has one etcd member for each API server. Between the two, between the members, and
before the API servers there are links (testbed/links.py), which can be held. With one replica there are none: what
would be the port of a link is that of the server itself.
"""

from dataclasses import dataclass

from testbed.ports import Port
from testbed.site import Options

ETCD, APISERVER = "etcd", "kube-apiserver"
CONTROLLER_MANAGER, SCHEDULER = "kube-controller-manager", "kube-scheduler"


@dataclass(frozen=True, slots=True)
class Replica:
    """One server of the control plane."""

    name: str
    port: Port


@dataclass(frozen=True, slots=True)
class Member:
    """A member of etcd: where it listens, and where clients and other members find it."""

    name: str
    client: Port
    peer: Port
    client_link: Port
    peer_link: Port


def members(options: Options) -> list[Member]:
    """Return the members of etcd."""
    if not options.ha:
        return [Member(ETCD, Port.ETCD, Port.ETCD_PEER, Port.ETCD, Port.ETCD_PEER)]
    clients = (Port.ETCD, Port.ETCD_2, Port.ETCD_3)
    peers = (Port.ETCD_PEER, Port.ETCD_PEER_2, Port.ETCD_PEER_3)
    links = (Port.ETCD_LINK_1, Port.ETCD_LINK_2, Port.ETCD_LINK_3)
    peer_links = (Port.PEER_LINK_1, Port.PEER_LINK_2, Port.PEER_LINK_3)
    ports = zip(clients, peers, links, peer_links, strict=True)
    return [Member(f"{ETCD}-{number}", *each) for number, each in enumerate(ports, 1)]


def replicas(options: Options, component: str) -> list[Replica]:
    """Return the replicas of a component of the control plane: numbered from 1, unless there is one."""
    ports = _PORTS[component]
    if not options.ha:
        return [Replica(component, _ONLY.get(component, ports[0]))]
    return [Replica(f"{component}-{number}", port) for number, port in enumerate(ports, 1)]


def names(options: Options, component: str) -> list[str]:
    """Return the names of a component's replicas; those of any other component are its own name."""
    return [each.name for each in replicas(options, component)] if component in _PORTS else [component]


_PORTS = {
    ETCD: (Port.ETCD, Port.ETCD_2, Port.ETCD_3),
    APISERVER: (Port.APISERVER_1, Port.APISERVER_2, Port.APISERVER_3),
    CONTROLLER_MANAGER: (Port.CONTROLLER_MANAGER, Port.CONTROLLER_MANAGER_2),
    SCHEDULER: (Port.SCHEDULER, Port.SCHEDULER_2),
}
_ONLY = {APISERVER: Port.APISERVER}  # where otherwise the link before all of them listens
