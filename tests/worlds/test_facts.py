"""What the operator publishes for teams follows the cluster, with the rights of self-service alone."""

import asyncio
from datetime import timedelta

from foresail.api import velero
from foresail.api.apps import DAEMON_SET, DEPLOYMENT
from foresail.api.marks import FACTS
from foresail.plan import Key
from foresail.proof.facts import Facts, decode
from foresail.proof.facts_watch import PublishedFacts
from tests.worlds import virtual_time
from tests.worlds.process import Process
from tests.worlds.roles import Role
from tests.worlds.tenancy import VELERO, Tenancy
from tests.worlds.visitor import Visitor
from tests.worlds.world import Definition, done

SERVER = {
    "metadata": {"name": "velero"},
    "spec": {
        "replicas": 1,
        "template": {"spec": {"containers": [{"image": "velero/velero:v1.18.3", "args": ["server"]}]}},
    },
}


def test_the_facts_follow_the_cluster() -> None:
    async def live() -> list[Facts]:
        snapshots = Definition(velero.VOLUME_SNAPSHOT_LOCATION, status=False)
        tenancy = Tenancy(also=(Definition(DEPLOYMENT), Definition(DAEMON_SET), snapshots))
        visitor = Visitor(tenancy.world, weather=tenancy.weather, role=Role("self-service"))
        published = PublishedFacts(VELERO, timedelta)
        process = Process(visitor, published)
        told: list[Facts] = []

        async def tell() -> None:
            await asyncio.sleep(10)
            found = decode(published.annotations(tenancy.clock(), ())[FACTS])
            assert found is not None
            told.append(found)

        done(tenancy.world.create(DEPLOYMENT, SERVER, "admin", VELERO))
        await tell()
        server = Key(VELERO, "velero")
        done(tenancy.world.merge(DEPLOYMENT, server, {"status": {"readyReplicas": 1}}, "kube", "status"))
        tenancy.make_location("default", default=True)
        provider = {"metadata": {"name": "default"}, "spec": {"provider": "aws"}}
        done(tenancy.world.create(velero.VOLUME_SNAPSHOT_LOCATION, provider, "admin", VELERO))
        await tell()
        done(tenancy.world.merge(DEPLOYMENT, server, {"status": {"readyReplicas": "one"}}, "kube", "status"))
        await tell()
        agent = {"metadata": {"name": "a"}, "spec": {"template": {"spec": {"containers": [{"args": ["node-agent"]}]}}}}
        done(tenancy.world.create(DAEMON_SET, agent, "admin", VELERO))
        done(tenancy.world.merge(DEPLOYMENT, server, {"status": {"readyReplicas": 1}}, "kube", "status"))
        await tell()
        assert not tenancy.world.history.present(velero.BACKUP)
        await process.kill()
        return told

    down, up, unread, with_agents = virtual_time.run(live())
    assert down.velero_problem == "0 of 1 pods of Velero's Deployment velero are ready"
    assert down.locations == ()
    assert not up.velero_problem
    assert up.is_recognised
    assert [(fact.name, fact.is_default) for fact in up.locations] == [("default", True)]
    assert up.snapshot_providers == ("aws",)
    assert up.agents_problem == "no DaemonSet runs Velero's node agent"
    assert with_agents.agents_problem.startswith("0 of 0 pods of Velero's node agent")
    assert unread.stale.startswith("velero/velero cannot be read")
