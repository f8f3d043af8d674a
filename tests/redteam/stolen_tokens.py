"""Attacks by a thief with a token of ours: each generated body of `make stolen-token` is one.

An attack succeeds if the API server admits what the docs do not list.
"""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from testbed import Cluster
from tests.redteam.attack import ATTACKS, Attack
from tests.redteam.score import Score
from tests.redteam.world import Caller, World
from tests.stolen_token.__main__ import TOKENS, Found, attempt, documented, listed_in, rights, steal, untried
from tests.stolen_token.bodies import Write
from tests.stolen_token.controls import controls
from tests.stolen_token.mutations import mutations
from tests.stolen_token.world import robbed


@dataclass(frozen=True)
class Robbed:
    """The cluster, and a thief with each token."""

    cluster: Cluster
    thieves: dict[str, Caller]


@contextmanager
def stolen(_folder: Path) -> Iterator[Robbed]:
    """Build the cluster in which tokens are stolen, and take it down when the block ends."""
    with robbed(f"redteam-tokens-{os.getpid()}") as cluster:
        yield Robbed(cluster, steal(cluster))


def _sent(world: Robbed, write: Write) -> Found:
    found = Found()
    attempt(found, world.thieves[write.token], write, verbose=False)
    if found.broken:
        raise RuntimeError(found.broken[0])
    return found


def _attacks() -> Iterator[Attack]:
    listed, titles = listed_in(documented()), Counter[str]()

    def attack_with(write: Write, name: str) -> Attack:
        def act(world: World) -> list[str]:
            admitted = _sent(cast("Robbed", world), write).admitted
            return [f"admitted, and not documented: {title}" for title in admitted if title not in listed]

        return Attack(name, f"Send with a stolen token {write.title}.", act)

    for write in (write for control in controls() for write in mutations(control)):
        titles[write.title] += 1
        number = titles[write.title]
        yield attack_with(write, f"{write.title} ({number})" if number > 1 else write.title)


ATTACKS.extend(_attacks())


def run_tokens(world: Robbed, wanted: list[Attack], score: Score) -> None:
    """Send every body, then what the operator writes, which must be admitted; compare the rights with the docs."""
    for one in wanted:
        try:
            score.add(one.name, one.act(cast("World", world)))
        except Exception:  # noqa: BLE001 - whatever it is, the others are tried
            score.fail(one.name)
    for control in controls():
        try:
            score.controls += bool(_sent(world, control).admitted)
        except Exception:  # noqa: BLE001 - as above
            score.fail(f"control: {control.title}")
    known = documented().get("rights", {})
    for token in TOKENS:
        allowed = rights(world.thieves[token])
        score.broken += [f"no body tries {line}" for line in untried(token, allowed, controls())]
        score.broken += [f"{token} has other rights than documented"] if known.get(token) != allowed else []
