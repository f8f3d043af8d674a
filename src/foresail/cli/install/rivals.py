"""Another controller of the non-admin kinds, beside which self-service must not start."""

import msgspec

from foresail.api.apps import DEPLOYMENT, Deployment, DeploymentMetadata
from foresail.api.requests import NON_ADMIN_BACKUP
from foresail.cli.access.cluster import Cluster
from foresail.cli.doctor.evidence import REVIEW, is_other


class _Verdict(msgspec.Struct, frozen=True):
    allowed: bool = False


class _Review(msgspec.Struct, frozen=True):
    status: _Verdict = _Verdict()


async def find_rival(cluster: Cluster) -> DeploymentMetadata | None:
    """Return a Deployment that looks like the other controller and may work on every NonAdminBackup.

    Any tenant can create a Deployment of that name or image. Only an administrator can give it the permission.
    """
    for raw in await cluster.listed(DEPLOYMENT, ""):
        deployment = msgspec.json.decode(raw, type=Deployment)
        if is_other(deployment) and await _may_list_backups(cluster, deployment):
            return deployment.metadata
    return None


async def _may_list_backups(cluster: Cluster, deployment: Deployment) -> bool:
    account = deployment.spec.template.spec.service_account_name or "default"
    asked = {"group": NON_ADMIN_BACKUP.group, "resource": NON_ADMIN_BACKUP.plural, "verb": "list"}
    user = f"system:serviceaccount:{deployment.metadata.namespace}:{account}"
    body = {"apiVersion": REVIEW.api_version, "kind": REVIEW.name, "spec": {"user": user, "resourceAttributes": asked}}
    answer = await cluster.reviewed(REVIEW, body)
    return answer is None or msgspec.json.decode(answer, type=_Review).status.allowed  # in doubt it may
