"""Kills the example controller again and again on a real cluster, and counts what it did twice or not at all.

One replica, always under the same name. Half the kills are aimed (`FORESAIL_TEST_KILL`): the process kills itself
before or after its n-th write. The others come from outside, at a random instant of the first moments of its work.
Each life finds new parents, and what earlier lives left. Run it: `make runtime-kills KILLS=200`
"""

import argparse
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from pathlib import Path

from foresail.kube.crash_injection import VARIABLE
from testbed import Cluster, Options
from tests.cluster.parents import finished, owners, parents, uids
from tests.cluster.replicas import ACCOUNT, USER, Replica, permit

NEW_PARENTS = 20
MOMENTS = 0.25  # seconds after it leads, within which the kill comes: its work takes about as long
KILLS_PER_NAMESPACE = 20  # so that looking at what is there stays cheap
IDENTITY = "killed"


@dataclass(slots=True)
class Report:
    """What was done to it, and what was found."""

    aimed: int = 0
    at_random: int = 0
    aimed_between: int = 0  # kills that left a child without its parent's status
    random_between: int = 0
    seconds_to_lead: list[float] = field(default_factory=list)  # from its first line of log
    parents: int = 0
    children: int = 0  # all that carry the mark of a parent, whatever their name; nobody may delete one
    answers: Counter[int] = field(default_factory=Counter)  # to the requests for a child, as the audit log has them
    finished: int = 0
    well_owned: bool = True  # each child belongs to the parent of its name, and each parent has one

    @property
    def share_between(self) -> float:
        """How many of all kills fell between the two writes of a plan."""
        return (self.aimed_between + self.random_between) / (self.aimed + self.at_random)

    @property
    def is_right(self) -> bool:
        """Whether no child was made twice and no parent was lost."""
        at_most_once = self.answers[HTTPStatus.CREATED] <= self.parents
        return self.well_owned and at_most_once and self.children == self.finished == self.parents

    def __str__(self) -> str:
        kills = self.aimed + self.at_random
        between = self.aimed_between + self.random_between
        return (
            f"{kills} kills, {self.aimed} aimed and {self.at_random} at random instants; "
            f"{between} of them ({self.share_between:.0%}) between two writes of one plan, "
            f"{self.aimed_between} and {self.random_between}; {self.parents} parents, {self.finished} finished, "
            f"{self.children} children; answers to creations {dict(sorted(self.answers.items()))}; "
            f"leading again {max(self.seconds_to_lead):.1f} s after its start at most"
        )


class Series:
    """One series of kills on one cluster."""

    def __init__(self, cluster: Cluster, folder: Path, seed: int = 5) -> None:
        self.report = Report()
        self._cluster = cluster
        self._log = folder / f"{IDENTITY}.log"
        self._chance = random.Random(seed)  # noqa: S311 - chance, not secrecy
        self._kubeconfig = cluster.service_account_kubeconfig("default", ACCOUNT)
        self._namespaces: list[str] = []
        self._half: set[str] = set()

    def run(self, kills: int, say: Callable[[str], None]) -> Report:
        """Kill so often, let it finish, and return what was found."""
        for number in range(kills):
            if number % KILLS_PER_NAMESPACE == 0:
                self._namespaces.append(f"kills-{number}")
                self._cluster.kubectl("create", "namespace", self._namespaces[-1])
            self._kill_once(number)
            if number % KILLS_PER_NAMESPACE == KILLS_PER_NAMESPACE - 1:
                say(f"{number + 1} of {kills} kills")
        self._finish()
        return self.report

    def _kill_once(self, number: int) -> None:
        where = self._namespaces[-1]
        is_aimed = number % 2 == 0
        moment = f"{self._chance.choice(('before', 'after'))}:{self._chance.randint(1, 2 * NEW_PARENTS)}"
        replica = Replica(self._kubeconfig, self._log, environment={VARIABLE: moment} if is_aimed else {})
        try:
            names = [f"p-{number:03}-{each:02}" for each in range(NEW_PARENTS)]
            self._cluster.apply(*parents(where, names))
            _wait(lambda: replica.said("became leader") or replica.process.poll() is not None, 30)
            if is_aimed:
                code = replica.process.wait(30)
                if code != -signal.SIGKILL:
                    raise AssertionError(f"it ended with {code} and not by its own hand at {moment}")
            else:
                time.sleep(self._chance.uniform(0.0, MOMENTS))
        finally:
            replica.kill()
        # What an earlier kill left half done and this life did not come to is no plan of this life.
        half_before, self._half = self._half, self._half_done()
        self._note(replica, is_aimed=is_aimed, between=bool(self._half - half_before))

    def _note(self, replica: Replica, *, is_aimed: bool, between: bool) -> None:
        report = self.report
        report.parents += NEW_PARENTS
        if is_aimed:
            report.aimed += 1
            report.aimed_between += between
        else:
            report.at_random += 1
            report.random_between += between
        first, leads = replica.lines[0]["time"], replica.said("became leader")[0]["time"]
        took = datetime.fromisoformat(leads) - datetime.fromisoformat(first)
        report.seconds_to_lead.append(took.total_seconds())

    def _half_done(self) -> set[str]:
        where = self._namespaces[-1]
        children = set(owners(self._cluster, where))
        return children - finished(self._cluster, where)

    def _finish(self) -> None:
        """Let it live until everything is finished, or nothing is any more for half a minute."""
        replica = Replica(self._kubeconfig, self._log)
        try:
            most, since = -1, time.monotonic()
            while most < self.report.parents and time.monotonic() - since < 30:
                now = sum(len(finished(self._cluster, where)) for where in self._namespaces)
                if now > most:
                    most, since = now, time.monotonic()
            time.sleep(2)
        finally:
            replica.kill()
        report = self.report
        report.finished = sum(len(finished(self._cluster, where)) for where in self._namespaces)
        report.well_owned = all(owners(self._cluster, ns) == uids(self._cluster, ns) for ns in self._namespaces)
        report.children = sum(len(owners(self._cluster, where)) for where in self._namespaces)
        # A creation whose client died before the answer may be done all the same, and its code says something else.
        report.answers.update(
            request.code
            for request in self._cluster.audit(USER)
            if (request.resource, request.verb) == ("configmaps", "create") and request.namespace in self._namespaces
        )


def _wait(holds: Callable[[], object], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"it did not lead within {seconds:g} s")
        time.sleep(0.005)


def main(kills: int) -> int:
    """Bring up a cluster, kill so often on it, and print the report; 0 if all is right."""
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        Cluster.create("runtime-kills", Options(audit=True), say=print, owned=True) as cluster,
    ):
        permit(cluster)
        report = Series(cluster, Path(folder)).run(kills, print)
    print(f"{report}; {time.monotonic() - began:.0f} s")
    print("right" if report.is_right else "WRONG")
    return 0 if report.is_right and report.share_between >= 1 / 3 else 1


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--kills", type=int, default=200, help="how often the controller is killed (%(default)s)")
    sys.exit(main(options.parse_args().kills))
