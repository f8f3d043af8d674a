"""Ask every answer about each state of the table, and count what is false: `make truth`; the last line is JSON."""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.figures import verdict
from bench.truth import answers
from bench.truth.answers import Answers, Console
from bench.truth.pictures import Album
from bench.truth.states import (
    EXCLUDED,
    FAULTS,
    NOT_DOWN,
    NOT_SAFE,
    SAFE,
    STATES,
    TEAMS,
    UP,
    Fault,
    State,
    TeamState,
)
from bench.truth.world import World
from testbed import Cluster, Options

ADMINISTRATOR, TEAM = "administrator", "team"
GREEN, UNKNOWN = "Safe", "Unknown"


def name_of(state: str) -> str:
    """Return the namespace that a state is about."""
    return state.rpartition(": ")[2]


_PUBLISHED = 6
"""Seconds until a team can know of a fault: the operator judges every three, and renews its Lease each second."""


class Score:
    """What was answered, and what of it is false."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def judge(self, state: str, truth: str, who: str, surface: str, word: str) -> None:
        """Judge one verdict; a team without a schedule of its own may not know, which is neither green nor red."""
        self.counts["answers"] += 1
        is_green, is_excluded = word == GREEN, word == "Excluded"
        is_right = {SAFE: is_green or word == UNKNOWN, NOT_SAFE: not is_green and bool(word), EXCLUDED: is_excluded}[
            truth
        ]
        if who == TEAM and truth == EXCLUDED:
            is_right = not is_green and bool(word)
        if truth == SAFE and (who == ADMINISTRATOR or name_of(state).startswith("t-")) and word == UNKNOWN:
            is_right = False
        if not is_right:
            kind = "false_green" if is_green else "false_red"
            self._count(kind, f"{state}, {who}, {surface}: {word or 'no answer'}, but it is {truth}")

    def judge_fact(self, state: str, who: str, surface: str, *, is_fine: bool, is_shown_fine: bool) -> None:
        """Judge an answer that is either fine or not."""
        self.counts["answers"] += 1
        if is_fine != is_shown_fine:
            self._count("false_green" if is_shown_fine else "false_red", f"{state}, {who}, {surface}")

    def judge_header(self, about: str, truth: str, word: str) -> None:
        """Judge whether something is up or down; unknown is neither, and a lie only where it is plain to see."""
        self.counts["answers"] += 1
        is_right = word in (UP, "unknown") if truth == NOT_DOWN else word == truth
        if not is_right:
            self._count("false_green" if word == UP else "false_red", f"{about}: {word or 'no answer'}, not {truth}")

    def compare(self, state: str, who: str, words: dict[str, str]) -> None:
        """Compare what the surfaces say of one namespace."""
        if len(set(words.values())) > 1:
            self._count("disagreements", f"{state}, {who}: {words}")

    def _count(self, kind: str, text: str) -> None:
        self.counts[kind] += 1
        print(f"{kind}: {text}", file=sys.stderr, flush=True)


def ask_all(world: World, names: list[str], found: Answers, own: Console) -> None:
    """Ask as administrator about all namespaces, and about each of them."""
    admin = world.cluster.kubeconfig
    found.add(ADMINISTRATOR, "coverage -o json", answers.coverage(admin, "-A"))
    found.add(ADMINISTRATOR, "coverage", answers.coverage_table(admin, "-A"))
    found.add(ADMINISTRATOR, "coverage -o metrics", answers.metrics(admin))
    found.add(ADMINISTRATOR, "report", answers.report(admin))
    found.add(ADMINISTRATOR, "console", {name: own.verdict(name) for name in names})


def ask_team(world: World, names: list[str], found: Answers, own: Console) -> None:
    """Ask as a team about each namespace."""
    for name in names:
        found.add(TEAM, "coverage -o json", answers.coverage(world.team, "-n", name))
        found.add(TEAM, "report", answers.report(world.team, "-n", name))
        found.add(TEAM, "console", {name: own.verdict(name)})


def judge_all(score: Score, found: Answers, truths: dict[str, str], prefix: str = "") -> None:
    """Judge every verdict, and compare those of one who asked."""
    for name, truth in truths.items():
        for who in (ADMINISTRATOR, TEAM):
            said = {surface: word for (asker, surface, of), word in found.said.items() if (asker, of) == (who, name)}
            for surface, word in said.items():
                score.judge(f"{prefix}{name}", truth, who, surface, word)
            score.compare(f"{prefix}{name}", who, said)


def judge_next_run(score: Score, world: World, name: str, own: Console, *, is_fine: bool, prefix: str = "") -> None:
    """Judge who promises an administrator a next run, of a namespace whose Schedule has its name."""
    admin = world.cluster.kubeconfig
    promises = {
        "schedule explain": answers.explained(admin, name),
        "report, next run": answers.reported_run(admin, name),
        "console, next run": own.promises(name),
    }
    for surface, is_promised in promises.items():
        facts = {"is_fine": is_fine, "is_shown_fine": is_promised}
        score.judge_fact(f"{prefix}{name}", ADMINISTRATOR, surface, **facts)


def judge_own_next_run(score: Score, world: World, name: str, own: Console, *, is_fine: bool, prefix: str = "") -> None:
    """Judge who promises a team the next run of its schedule."""
    promises = {
        "backup schedule get": answers.own_schedules(world.team, name).get("mine") == "",
        "backup schedule explain": answers.own_explained(world.team, name),
        "report, next run": answers.reported_run(world.team, name),
        "console, next run": own.promises(name),
    }
    for surface, is_promised in promises.items():
        facts = {"is_fine": is_fine, "is_shown_fine": is_promised}
        score.judge_fact(f"{prefix}{name}", TEAM, surface, **facts)


_HEALTH_KEPT = 10
"""Seconds for which the console keeps what its header says."""


def judge_header(score: Score, fault: Fault, consoles: tuple[Console, Console]) -> None:
    """Judge what the header says of Velero and of the operators."""
    wanted = {
        ADMINISTRATOR: ("a-calm", consoles[0], {"Velero": fault.velero, "Operator": fault.operators}),
        TEAM: ("t-calm", consoles[1], {"Velero": fault.velero, "Operator": fault.own_operator}),
    }
    time.sleep(_HEALTH_KEPT)
    for who, (name, own, truths) in wanted.items():
        shown = own.header(name)
        for about, truth in truths.items():
            score.judge_header(f"{fault.name}, {who}, the console's header: {about}", truth, shown.get(about, ""))


def judge_lists(
    score: Score,
    world: World,
    states: Sequence[State],
    teams: Sequence[TeamState],
    consoles: tuple[Console, Console],
) -> None:
    """Judge `schedule get`, `backup get`, who promises a next run, and the exit codes."""
    own, own_team = consoles
    admin = world.cluster.kubeconfig
    waiting = answers.schedules(admin)
    for state in states:
        if state.is_schedule_fine is not None:
            is_fine = waiting.get(state.name) == ""
            facts = {"is_fine": state.is_schedule_fine, "is_shown_fine": is_fine}
            score.judge_fact(state.name, ADMINISTRATOR, "schedule get", **facts)
            judge_next_run(score, world, state.name, own, is_fine=state.is_schedule_fine)
    for name, truth in _truths(states, teams).items():
        facts = {"is_fine": truth != NOT_SAFE, "is_shown_fine": answers.exit_code(admin, name) == 0}
        score.judge_fact(name, ADMINISTRATOR, "--fail-on not-safe", **facts)
    for team in teams:
        if team.schedule is not None:
            judge_own_next_run(score, world, team.name, own_team, is_fine=team.is_schedule_fine)
        if team.backup is not None:
            word = answers.own_backups(world.team, team.name).get("copy", "")
            facts = {"is_fine": team.shown == "Completed", "is_shown_fine": word == "Completed"}
            score.judge_fact(team.name, TEAM, "backup get", **facts)


def _truths(states: Sequence[State], teams: Sequence[TeamState]) -> dict[str, str]:
    return {**{each.name: each.truth for each in states}, **{each.name: each.truth for each in teams}}


def judge_fault(score: Score, world: World, fault: Fault, consoles: tuple[Console, Console]) -> None:
    """Ask about the calm namespaces while something is wrong with the whole cluster."""
    names, admin = ["a-calm", "a-volume", "a-files", "t-calm"], world.cluster.kubeconfig
    time.sleep(_PUBLISHED)
    found = Answers()
    ask_all(world, names, found, consoles[0])
    ask_team(world, ["a-calm", "t-calm"], found, consoles[1])
    truths = {
        "a-calm": fault.truth,
        "a-volume": fault.volume or fault.truth,
        "a-files": fault.files or fault.truth,
        "t-calm": fault.team or fault.truth,
    }
    judge_all(score, found, truths, f"{fault.name}: ")
    if fault.is_schedule_fine is not None:
        is_fine = answers.schedules(admin).get("a-calm") == ""
        facts = {"is_fine": fault.is_schedule_fine, "is_shown_fine": is_fine}
        score.judge_fact(fault.name, ADMINISTRATOR, "schedule get", **facts)
        judge_next_run(score, world, "a-calm", consoles[0], is_fine=fault.is_schedule_fine, prefix=f"{fault.name}: ")
    if fault.is_own_schedule_fine is not None:
        is_fine = fault.is_own_schedule_fine
        judge_own_next_run(score, world, "t-calm", consoles[1], is_fine=is_fine, prefix=f"{fault.name}: ")
    judge_header(score, fault, consoles)
    about = fault.doctor or "velero"
    grades = [each["grade"] for each in answers.doctor(admin) if each["about"] == about]
    is_good = bool(grades) and all(each.lower() == "good" for each in grades)
    if fault.doctor or fault.truth == SAFE:
        score.judge_fact(fault.name, ADMINISTRATOR, "doctor", is_fine=not fault.doctor, is_shown_fine=is_good)


def _chosen(names: str | None) -> Iterator[Fault]:
    for each in FAULTS:
        if names is None or each.name in names.split(","):
            yield each


def main() -> int:
    """Make the cluster, ask and judge."""
    options = argparse.ArgumentParser()
    options.add_argument("--faults", help="only these faults of the whole cluster, separated by commas")
    options.add_argument("--pictures", type=Path, help="a folder for pictures of the console in each state")
    options.add_argument("--every", type=int, default=1, help="only every so many-th namespace")
    args = options.parse_args()
    states = [
        each for number, each in enumerate(STATES) if number % args.every == 0 or each.name in ("a-volume", "a-files")
    ]
    teams = TEAMS[:: args.every]
    began, score, faults = time.monotonic(), Score(), list(_chosen(args.faults))
    with (
        tempfile.TemporaryDirectory() as folder,
        Cluster.create("truth", Options(velero="velero", nodes=1), owned=True) as cluster,
    ):
        world = World(cluster, Path(folder))
        try:
            world.build(states, teams)
            print(f"{len(states) + len(teams)} namespaces after {time.monotonic() - began:.0f} s", file=sys.stderr)
            with answers.console(cluster.kubeconfig, "a-calm") as admin, answers.console(world.team, "t-calm") as team:
                truths = _truths(states, teams)
                found = Answers()
                ask_all(world, list(truths), found, admin)
                ask_team(world, list(truths), found, team)
                judge_all(score, found, truths)
                judge_lists(score, world, states, teams, (admin, team))
                album = Album(args.pictures) if args.pictures else None
                if album:
                    album.take(admin, ADMINISTRATOR, truths)
                for fault in faults:
                    with world.failing(fault.name):
                        judge_fault(score, world, fault, (admin, team))
                        if album:
                            truth_of_team = fault.team or fault.truth
                            album.take(admin, ADMINISTRATOR, {"a-calm": fault.truth}, fault.name)
                            album.take(team, TEAM, {"t-calm": truth_of_team}, fault.name)
                    print(f"{fault.name} after {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        finally:
            world.close()
    figures = {
        "states": len(states) + len(teams) + len(faults),
        "answers": score.counts["answers"],
        "false_green": score.counts["false_green"],
        "false_red": score.counts["false_red"],
        "disagreements": score.counts["disagreements"],
        "seconds": round(time.monotonic() - began),
    }
    bounds = {
        "false_green = 0": lambda them: not them["false_green"],
        "false_red = 0": lambda them: not them["false_red"],
        "disagreements = 0": lambda them: not them["disagreements"],
    }
    return verdict(figures, bounds)


if __name__ == "__main__":
    sys.exit(main())
