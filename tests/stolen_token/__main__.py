"""Try everything that our tokens could do in a thief's hands, on a real cluster: `make stolen-token`.

Every write that RBAC allows is sent as a dry run, in the shape that the operator gives it and in hundreds of others.
What the API server admits is compared with `docs/stolen-tokens.json`, from which the page of the docs is written.
The last line is one JSON object.
"""

import argparse
import http.client
import json
import os
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foresail.rollback.rows import RESTORED_BY
from testbed import Cluster
from tests.redteam.world import Caller, account
from tests.stolen_token import rollbacks
from tests.stolen_token.bodies import (
    CHECKS,
    CONSOLE,
    OTHER,
    PRIMERS,
    PROTECTION,
    ROLLBACK,
    RUN,
    SCHEDULES,
    SELF_SERVICE,
    SHOP,
    VELERO,
    Json,
    Write,
    protection,
    role_binding,
    sandbox,
)
from tests.stolen_token.controls import controls
from tests.stolen_token.mutations import mutations
from tests.stolen_token.world import robbed

DOCUMENTED = Path(__file__).parents[2] / "docs" / "stolen-tokens.json"
TOKENS = (SCHEDULES, SELF_SERVICE, PRIMERS, CHECKS, PROTECTION, ROLLBACK, CONSOLE)
_SORTS = {"patch": "application/merge-patch+json"}
_METHODS = {"create": "POST", "patch": "PATCH", "delete": "DELETE", "deletecollection": "DELETE"}
_DELETIONS = ("delete", "deletecollection")
_READS = ("get", "list", "watch")
_OF_EVERYBODY = ("selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews")


def path(write: Write) -> str:
    """Return the URL of a write, as a dry run; the name in a deletion of many is that of their restore."""
    root = f"/apis/{write.version}" if "/" in write.version else f"/api/{write.version}"
    plural, _, subresource = write.resource.partition("/")
    parts = [root, *((f"namespaces/{write.namespace}",) if write.namespace else ()), plural]
    parts += [write.name] if write.verb in ("patch", "delete") else []
    parts += [subresource] if subresource else []
    chosen = f"&labelSelector={RESTORED_BY}%3D{write.name}" if write.verb == "deletecollection" and write.name else ""
    return f"{'/'.join(parts)}?dryRun=All{chosen}"


@dataclass
class Found:
    """What the API server admitted, and what it says that a token may do."""

    bodies: int = 0
    admitted: set[str] = field(default_factory=set)
    refused: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)  # controls that were refused, and answers that prove nothing
    rights: dict[str, dict[str, list[str]]] = field(default_factory=dict)  # by token: where, and which verbs on what
    untried: list[str] = field(default_factory=list)


def attempt(found: Found, thief: Caller, write: Write, *, verbose: bool) -> None:
    """Send one write and note what came of it."""
    found.bodies += 1
    body = None if write.verb in _DELETIONS else write.body
    answer = thief.send(_METHODS[write.verb], path(write), body, _SORTS.get(write.verb, "application/json"))
    if answer.code < http.client.BAD_REQUEST:
        if not write.shape or _differs(write, answer.json()):
            found.admitted.add(write.title)
        return
    found.refused[str(answer.code)] += 1
    is_refusal = answer.code in (http.client.FORBIDDEN, http.client.UNPROCESSABLE_ENTITY, http.client.BAD_REQUEST)
    if not write.shape or not is_refusal:
        found.broken.append(f"{write.title}: {answer.code} {answer.text[:400]}")
    elif verbose:
        print(f"{write.title}: {answer.code} {answer.text[:300]}")


def _differs(write: Write, answer: Json) -> bool:
    """Whether the change reached the object: the API server drops fields that a kind does not have."""
    return write.verb in _DELETIONS or _is_within(write.body, answer)


def _is_within(sent: Any, stored: Any) -> bool:  # noqa: ANN401 - JSON is any
    if isinstance(sent, dict):
        kept = stored if isinstance(stored, dict) else {}
        return all(value in (None, {}, []) or _is_within(value, kept.get(key)) for key, value in sent.items())
    return bool(sent == stored) if not isinstance(sent, list) else isinstance(stored, list)


def rights(thief: Caller) -> dict[str, list[str]]:
    """Return what the API server says that a token may do in a tenant's namespace, and in Velero's."""
    found: dict[str, list[str]] = {}
    for namespace in (SHOP, VELERO):
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectRulesReview",
            "spec": {"namespace": namespace},
        }
        answer = thief.create("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", review).json()
        lines = {
            f"{verb} {resource}{f' named {name}' if name else ''}"
            for rule in answer["status"]["resourceRules"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
            for name in rule.get("resourceNames") or [""]
            if resource not in _OF_EVERYBODY
        }
        found["every namespace" if namespace == SHOP else "Velero's namespace"] = sorted(lines)
    everywhere = set(found["every namespace"])
    return {
        "every namespace": sorted(everywhere),
        "Velero's namespace": sorted(set(found["Velero's namespace"]) - everywhere),
    }


_NO_ADMISSION = ("create subjectaccessreviews", "bind clusterroles named foresail-checks-sandbox")


def untried(token: str, allowed: dict[str, list[str]], writes: list[Write]) -> list[str]:
    """Return the writes that RBAC allows and no body tries."""
    tried = {f"{each.verb} {each.resource}" for each in writes if each.token == token}
    named = {line for lines in allowed.values() for line in lines if line.split()[0] not in _READS}
    return sorted(
        f"{token}: {line}"
        for line in named
        if line not in _NO_ADMISSION and line.partition(" named ")[0] not in tried and "leases named" not in line
    )


def steal(cluster: Cluster) -> dict[str, Caller]:
    """Return a thief with each of our tokens; that of the checks has a sandbox, that of rollbacks has some begun."""
    thieves = {token: account(cluster, VELERO, token) for token in TOKENS}
    made = thieves[CHECKS].create("/api/v1/namespaces", sandbox(f"foresail-check-{RUN}-ffffff"))
    assert made.code == http.client.CREATED, made.text
    rights_there = role_binding()
    rights_there["metadata"]["name"] = "own"
    where = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{made.json()['metadata']['name']}/rolebindings"
    bound = thieves[CHECKS].create(where, rights_there)
    assert bound.code == http.client.CREATED, bound.text
    told = f"/apis/foresail.dev/v1alpha1/namespaces/{OTHER}/protections"
    written = thieves[PROTECTION].create(told, protection())
    assert written.code == http.client.CREATED, written.text
    return thieves | {ROLLBACK: rollbacks.begin(cluster, thieves[ROLLBACK])}


def documented() -> dict[str, Any]:
    """Return what the docs say that a stolen token can do."""
    known: dict[str, Any] = json.loads(DOCUMENTED.read_text()) if DOCUMENTED.exists() else {}
    return known


def listed_in(known: dict[str, Any]) -> dict[str, str]:
    """Return the documented writes of all tokens, each with its reason."""
    return {line: why for token in known.get("admitted", {}).values() for line, why in token.items()}


def run(cluster: Cluster, *, verbose: bool) -> Found:
    """Try everything with every token."""
    found, thieves = Found(), steal(cluster)
    wanted = controls()
    for token, thief in thieves.items():
        found.rights[token] = rights(thief)
        found.untried += untried(token, found.rights[token], wanted)
    for control in wanted:
        for write in (control, *mutations(control)):
            attempt(found, thieves[write.token], write, verbose=verbose)
    return found


def main() -> int:
    """Run the command; with --write, the documented list becomes what was admitted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write what was admitted into the documented list")
    parser.add_argument("--verbose", action="store_true", help="print every refusal")
    args = parser.parse_args()
    began = time.monotonic()
    with robbed(f"stolen-{os.getpid()}") as cluster:
        found = run(cluster, verbose=args.verbose)
    known = documented()
    listed = listed_in(known)
    undocumented = sorted(found.admitted - listed.keys())
    stale = sorted(listed.keys() - found.admitted)
    other_rights = [token for token in TOKENS if known.get("rights", {}).get(token) != found.rights[token]]
    if args.write:
        by_token = {
            token: {line: listed.get(line, "") for line in sorted(found.admitted) if line.startswith(f"{token} ")}
            for token in TOKENS
        }
        found_now = {"means": known.get("means", {}), "rights": found.rights, "admitted": by_token}
        DOCUMENTED.write_text(json.dumps(found_now, indent=2) + "\n")
    for title, lines in (
        ("undocumented", undocumented),
        ("stale", stale),
        ("untried", found.untried),
        ("broken", found.broken),
        ("other rights than documented", other_rights),
    ):
        for line in lines:
            print(f"{title}: {line}")
    result = {
        "bodies": found.bodies,
        "admitted": len(found.admitted),
        "refused": dict(found.refused),
        "undocumented": len(undocumented),
        "stale": len(stale),
        "untried": len(found.untried),
        "broken": len(found.broken),
        "rights_changed": len(other_rights),
        "seconds": round(time.monotonic() - began),
    }
    print(json.dumps(result))
    return 1 if undocumented or stale or found.untried or found.broken or other_rights else 0


if __name__ == "__main__":
    sys.exit(main())
