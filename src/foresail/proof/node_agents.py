"""Whether Velero's node agents run: without one, no run copies files or moves snapshots."""

from collections.abc import Iterable

from foresail.api.apps import DaemonSet, is_node_agent


def agents_problem(sets: Iterable[DaemonSet]) -> str:
    """Return why no node agent works; empty if one does, because another node's may be the one that is needed."""
    agents = [daemon_set for daemon_set in sets if is_node_agent(daemon_set)]
    if not agents:
        return "no DaemonSet runs Velero's node agent"
    if any(agent.status.number_ready for agent in agents):
        return ""
    desired = sum(agent.status.desired_number_scheduled for agent in agents)
    names = ", ".join(agent.metadata.name for agent in agents)
    return f"0 of {desired} pods of Velero's node agent, DaemonSet {names}, are ready"
