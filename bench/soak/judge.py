"""What is to be made of what was seen: pure functions, each of which answers one promise."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

from bench.soak.memory import GROWTH, LEADING, PEAK, slopes, taken_by_leading
from bench.soak.program import MOST_BACKUPS, WARM_UP, fires, slots
from bench.soak.seen import Asked, Final, Held, Made, Seen, Thing
from foresail.api.instants import stamp
from foresail.api.marks import REQUEST_UID
from foresail.api.velero import AVAILABLE, TERMINAL
from foresail.schedules.reasons import BLOCKING, Reason

SETTLED = 300.0
"""Seconds in which everything is in order again after the last fault."""

_MISSED = re.compile(r"missed since (\S+): .* One late run for (\S+)\.$")
_PUNCTUAL = timedelta(seconds=30)
_RECOVERY = timedelta(seconds=45)  # a follower leads, or a killed API server is read again, at the latest
_LET_GO = timedelta(minutes=5)  # after its fire, a placeholder is let go at the latest
_SHOWN = 5


class Verdict(NamedTuple):
    """Whether a promise was kept, and the figures."""

    about: str
    kept: bool
    says: str
    figures: dict[str, Any]


def verdicts(seen: Seen) -> list[Verdict]:
    """Judge everything."""
    judges: tuple[Callable[[Seen], Verdict], ...] = (
        one_for_each_slot,
        one_for_each_request,
        true_mirror,
        nothing_left,
        primed_once,
        few_enough,
        nothing_unnamed,
        every_fault_seen,
        every_replica_lived,
        memory_flat,
        settled_in_time,
    )
    return [judge(seen) for judge in judges]


# Schedules


def one_for_each_slot(seen: Seen) -> Verdict:
    """Each slot has one Backup, or it is said why not."""
    by_slot = Counter((each.schedule, each.slot) for each in _made(seen) if each.schedule)
    double = [f"{schedule} {slot}" for (schedule, slot), count in by_slot.items() if count > 1]
    due = said = observed = 0
    unexplained, strange, late = list[str](), list[str](), list[float]()
    created = {(each.schedule, each.slot): each.created for each in _made(seen)}
    for number, (name, uid) in enumerate(sorted(seen.schedules.items())):
        mine = slots(number, seen.numbers, seen.begins, seen.ends)
        due += len(mine)
        known = {stamp(each) for each in slots(number, seen.numbers, seen.begins - _day, seen.ends + _day)}
        strange += [f"{name} {slot}" for schedule, slot in by_slot if schedule == uid and slot not in known]
        for slot in mine:
            if (uid, stamp(slot)) in by_slot:
                late.append((created[uid, stamp(slot)] - slot).total_seconds())
            elif is_said(seen, name, slot):
                said += 1
            elif is_seen_held(seen, uid, slot):
                observed += 1
            else:
                unexplained.append(f"{name} {stamp(slot)}")
    late.sort()
    figures = {
        "slots": due,
        "slots_made": len(late),
        "slots_twice": len(double),
        "slots_missed_and_said": said,
        "slots_missed_and_seen": observed,
        "slots_unexplained": len(unexplained),
        "lateness_p50_s": late[len(late) // 2] if late else 0.0,
        "lateness_max_s": late[-1] if late else 0.0,
    }
    says = f"{due} slots: {len(late)} with one Backup, {said + observed} held and passed over with a reason" + _list(
        twice=double, unexplained=unexplained, strange=strange
    )
    return Verdict("one Backup per slot", not (double or unexplained or strange), says, figures)


_day = timedelta(days=1)


def is_said(seen: Seen, name: str, slot: datetime) -> bool:
    """Whether an Event says that a slot was passed over, or what holds it still."""
    for each in seen.said:
        if each.kind != "Schedule" or each.name != name:
            continue
        found = _MISSED.search(each.note) if each.reason == Reason.MISSED else None
        if found and datetime.fromisoformat(found[1]) < slot < datetime.fromisoformat(found[2]):
            return True
        if each.reason in BLOCKING and each.at >= slot and not _later(seen, name, slot):
            return True
    return False


def _later(seen: Seen, name: str, slot: datetime) -> bool:
    uid = seen.schedules[name]
    return any(each.schedule == uid and each.slot > stamp(slot) for each in _made(seen))


def is_seen_held(seen: Seen, uid: str, slot: datetime) -> bool:
    """Whether something was seen to hold a slot until the next one: a leader that dies takes what it would have said.

    What holds: an earlier Backup that has not ended, a location that is away, and nobody who could write.
    """
    until = slot + timedelta(minutes=seen.numbers.every)
    stretches = [(each.created, _ended(each)) for each in _made(seen) if each.schedule == uid and each.created < until]
    stretches += _away(seen)
    stretches += [(each.at, (each.back or seen.ends) + _RECOVERY) for each in seen.faults]
    at = slot + _PUNCTUAL
    while at < until:
        reach = [end for begin, end in stretches if begin <= at < end]
        if not reach:
            return False
        at = max(reach)
    return True


def _ended(made: Made) -> datetime:
    ends = [at for at, phase in made.phases if phase in TERMINAL]
    if made.gone is not None:
        ends.append(made.gone)
    return min(ends) if ends else datetime.max.replace(tzinfo=made.created.tzinfo)


def _away(seen: Seen) -> list[tuple[datetime, datetime]]:
    moves = [*seen.locations, (seen.ends + _day, AVAILABLE)]
    return [(at, until) for (at, phase), (until, _) in pairwise(moves) if phase != AVAILABLE]


# Self-service


def one_for_each_request(seen: Seen) -> Verdict:
    """Each NonAdminBackup had one Velero Backup, and there was none that is nobody's."""
    made = Counter(each.request for each in _made(seen) if each.request)
    asked = {each.uid: each for each in seen.asked}
    names = {uid: f"{each.namespace}/{each.name}" for uid, each in asked.items()}
    double = [names.get(uid, uid) for uid, count in made.items() if count > 1]
    without = [names[uid] for uid, each in asked.items() if not made[uid] and not each.wanted]
    nobodys = [uid for uid in made if uid not in asked]
    says = f"{len(asked)} NonAdminBackups, {sum(made.values())} Velero Backups" + _list(
        twice=double, without=without, nobodys=nobodys
    )
    figures = {
        "requests": len(asked),
        "requests_in_the_hour": sum(each.live for each in seen.asked),
        "requests_twice": len(double),
        "requests_without": len(without) + len(nobodys),
    }
    return Verdict("one Velero Backup per NonAdminBackup", not (double or without or nobodys), says, figures)


def true_mirror(seen: Seen) -> Verdict:
    """Each tenant is shown what Velero says, of backups and of restores."""
    final = _final(seen)
    there = {each.uid for each in final.requests}
    lost = [f"{each.namespace}/{each.name}" for each in seen.asked if not each.wanted and each.uid not in there]
    wrong = _differing(final.requests, final.backups, "veleroBackup")
    wrong += _differing(final.restore_requests, final.restores, "veleroRestore")
    restored = Counter(each.annotations.get(REQUEST_UID, "") for each in final.restores)
    double = [each.name for each in final.restore_requests if restored[each.uid] != 1]
    how = Counter(each.status.get("phase", "") for each in final.restores)
    ended = Counter(_shown(each, "veleroBackup").get("phase", "") for each in final.requests)
    figures = {
        "mirrors": len(final.requests) + len(final.restore_requests),
        "mirrors_wrong": len(wrong),
        "requests_lost": len(lost),
        "requests_by_phase": dict(ended),
        "restores_by_phase": dict(how),
    }
    says = f"{figures['mirrors']} shown ({_counts(ended)}; restores: {_counts(how)})" + _list(
        wrong=wrong, lost=lost, restores_not_once=double
    )
    return Verdict("true mirror", not (wrong or lost or double), says, figures)


def _differing(requests: Iterable[Thing], objects: Iterable[Thing], field: str) -> list[str]:
    known = {each.name: each for each in objects}
    wrong = []
    for each in requests:
        behind = known.get(each.status.get(field, {}).get("name", ""))
        is_own = behind is not None and behind.annotations.get(REQUEST_UID) == each.uid
        if behind is None or not is_own or _shown(each, field) != _without_position(behind.status):
            wrong.append(f"{each.namespace}/{each.name}")
    return wrong


def _shown(request: Thing, field: str) -> dict[str, Any]:
    found: dict[str, Any] = request.status.get(field, {}).get("status", {})
    return found


def _without_position(status: dict[str, Any]) -> dict[str, Any]:
    """Return Velero's status without its own number in its queue: tenants are shown another one in its place."""
    return {name: value for name, value in status.items() if name != "queuePosition"}


def nothing_left(seen: Seen) -> Verdict:
    """Of what tenants deleted nothing is left, but for the bucket's copy where they forced it."""
    final = _final(seen)
    gone = [each for each in seen.asked if each.wanted]
    requests = {each.uid: each for each in final.requests}
    deletions = {each.annotations.get(REQUEST_UID, "") for each in final.deletions}
    names = {each.request: each.name for each in _made(seen) if each.request}
    synced = {each.name for each in seen.made.values() if each.is_synced and each.created >= seen.begins}
    there = {each.annotations.get(REQUEST_UID, ""): each.name for each in final.backups}
    left = [
        f"{each.namespace}/{each.name}"
        for each in gone
        if (each.uid in requests and not _counts_until_velero_has_lost_it(each, requests[each.uid]))
        or each.uid in deletions
        or (each.uid in there and not _came_back(each, there[each.uid], synced))
        or (each.wanted == "delete" and names.get(each.uid) in final.bucket)
    ]
    back = sum(each.uid in there for each in gone if each.wanted == "force")
    deleted = sum(each.wanted == "delete" for each in gone)
    says = f"{deleted} deleted, {len(gone) - deleted} by force, of which Velero's sync has brought back {back}"
    figures = {"deleted": deleted, "forced": len(gone) - deleted, "synced_back": back, "left": len(left)}
    return Verdict("deleted ones leave nothing", not left, says + _list(left=left), figures)


def _counts_until_velero_has_lost_it(asked: Asked, request: Thing) -> bool:
    """Whether a forced request stays because its data is still in the bucket, and says so."""
    conditions = request.status.get("conditions", [])
    return asked.wanted == "force" and any(each.get("reason") == "ForceDeleted" for each in conditions)


def _came_back(asked: Asked, name: str, synced: set[str]) -> bool:
    return asked.wanted == "force" and name in synced


# Primers


def primed_once(seen: Seen) -> Verdict:
    """Each fire was primed once at its warm-up, or it is said why not; and nothing stays."""
    final = _final(seen)
    by_fire: dict[tuple[str, str], list[Held]] = {}
    for each in seen.held.values():
        by_fire.setdefault((each.target, each.fire), []).append(each)
    delays = _start_delays(final)
    lost = {(each.namespace, each.name) for each in seen.said if each.kind == "Primer" and each.reason == "Lost"}
    lost_names = {name for _, name in lost}
    due = primed = excused = 0
    twice, unexplained, out_of_time, late = list[str](), list[str](), list[str](), list[float]()
    for number, (name, uid) in enumerate(sorted(seen.cron_jobs.items())):
        for fire in fires(number, seen.numbers, seen.begins, seen.ends):
            due += 1
            found = by_fire.get((uid, stamp(fire)), [])
            if not found:
                is_recorded = stamp(fire) in delays.get(uid, ())
                excused += is_recorded
                unexplained += [] if is_recorded else [f"{name} {stamp(fire)}"]
                continue
            primed += 1
            if len(found) > 1 and (name not in lost_names or len({each.name for each in found}) < len(found)):
                twice.append(f"{name} {stamp(fire)}")
            lag = (min(each.created for each in found) - (fire - WARM_UP)).total_seconds()
            late.append(lag)
            if lag < -1 or (lag > _PUNCTUAL.total_seconds() and not _is_disturbed(seen, fire - WARM_UP)):
                out_of_time.append(f"{name} {stamp(fire)}: {lag:.0f} s")
    kept = [each.name for each in seen.held.values() if _stayed(seen, each)]
    late.sort()
    figures = {
        "fires": due,
        "fires_primed": primed,
        "fires_unprimed_and_said": excused,
        "placeholders_twice": len(twice),
        "placeholders_left": len(kept) + final.placeholders,
        "warm_up_late_p50_s": late[len(late) // 2] if late else 0.0,
        "warm_up_late_max_s": late[-1] if late else 0.0,
    }
    says = f"{due} fires, {primed} primed, {excused} not and said so, {final.placeholders} placeholders left" + _list(
        twice=twice, unexplained=unexplained, out_of_time=out_of_time, stayed=kept
    )
    bad = twice or unexplained or out_of_time or kept or final.placeholders
    return Verdict("each fire primed once", not bad, says, figures)


def _start_delays(final: Final) -> dict[str, set[str]]:
    """Return the fires of which the status of a Primer says how late the run was, by the UID of the CronJob."""
    return {
        each["uid"]: {delay["fire"] for delay in each.get("startDelays", ())}
        for primer in final.primers
        for each in primer.status.get("cronJobs", ())
    }


def _stayed(seen: Seen, held: Held) -> bool:
    latest = datetime.fromisoformat(held.fire) + _LET_GO + _PUNCTUAL
    gone = held.gone or _final(seen).at
    return gone > latest and not _is_disturbed(seen, latest)


def _is_disturbed(seen: Seen, at: datetime) -> bool:
    """Whether something was away at that instant, or had only just come back."""
    return any(each.at <= at <= (each.back or seen.ends) + _RECOVERY for each in seen.faults)


# All together


def few_enough(seen: Seen) -> Verdict:
    """No more Backups reach Velero than were agreed."""
    count = sum(seen.begins <= each.created <= seen.ends for each in _made(seen))
    ended = Counter(each.phases[-1][1] for each in _made(seen) if each.created >= seen.begins and not each.gone)
    says = f"{count} in {seen.numbers.minutes} min ({_counts(ended)})"
    figures = {"backups": count, "backups_by_phase": dict(ended)}
    return Verdict(f"at most {MOST_BACKUPS:,} Backups reach Velero", count <= MOST_BACKUPS, says, figures)


def nothing_unnamed(seen: Seen) -> Verdict:
    """Each Backup that Velero does not finish is named by the doctor."""
    unfinished = unfinished_backups(seen)
    words = " ".join(each.says for each in seen.stuck)
    is_queue = "Velero's queue is stuck" in words
    unnamed = [each for each in unfinished if each not in words and not is_queue]
    mended = sum(each.mended for each in seen.stuck)
    says = f"{len(seen.stuck)} named by the doctor, {mended} mended by its fix, {len(unfinished)} unfinished in the end"
    figures = {"stuck": len(seen.stuck), "stuck_and_mended": mended, "unfinished": len(unfinished)}
    return Verdict("Backups stuck by Velero are named", not unnamed, says + _list(unnamed=unnamed), figures)


def unfinished_backups(seen: Seen) -> list[str]:
    """Return the names of Backups of this time that have not ended."""
    ours = {each.name for each in _made(seen) if not each.slot or each.slot <= stamp(seen.ends)}
    return [
        each.name for each in _final(seen).backups if each.name in ours and each.status.get("phase") not in TERMINAL
    ]


def every_fault_seen(seen: Seen) -> Verdict:
    """Each fault is to be seen in Events or metrics."""
    unseen = [f"{each.kind} at {stamp(each.at)}" for each in seen.faults if not each.seen]
    kinds = Counter(each.kind for each in seen.faults)
    says = f"{len(seen.faults)} faults ({_counts(kinds)})" + _list(unseen=unseen)
    figures = {"faults": dict(kinds), "faults_unseen": len(unseen)}
    return Verdict("every fault is visible", bool(seen.faults) and not unseen, says, figures)


def every_replica_lived(seen: Seen) -> Verdict:
    """Each process of the operator runs until it is killed."""
    died = [f"{each.name} {each.end}" for each in seen.lives if each.end.startswith("ended")]
    killed = sum(each.end == "killed" for each in seen.lives)
    says = f"{len(seen.lives)} processes, {killed} killed" + _list(died=died)
    return Verdict(
        "no replica ends by itself", not died, says, {"replicas": len(seen.lives), "replicas_died": len(died)}
    )


def memory_flat(seen: Seen) -> Verdict:
    """Each process holds as much memory as it did once it was warm, and takes little more once it leads."""
    peak = max((each.peak for each in seen.lives), default=0.0)
    grows = {
        f"{life.name} {role}": round(found, 2) for life in seen.lives for role, found in slopes(life.samples, life.led)
    }
    steps = {life.name: taken_by_leading(life.samples, life.led) for life in seen.lives}
    taken = {name: round(step, 2) for name, step in steps.items() if step is not None}
    grown = [f"{name} by {each} MiB/h" for name, each in grows.items() if each > GROWTH]
    large = [f"{name} {each} MiB" for name, each in taken.items() if each > LEADING]
    lives = ", ".join(f"{name} {each:+g}" for name, each in grows.items()) or "no life was long enough to tell"
    leading = ", ".join(f"{name} {each:+g}" for name, each in taken.items()) or "none"
    says = f"peak {peak:.0f} MiB of {PEAK}; MiB/h when warm: {lives}; MiB taken by leading: {leading}"
    figures = {"rss_peak_mib": round(peak, 1), "rss_slopes_mib_per_h": grows, "rss_taken_by_leading_mib": taken}
    is_kept = peak <= PEAK and not grown and not large
    return Verdict("memory is flat", is_kept, says + _list(grown=grown, large_steps=large), figures)


def settled_in_time(seen: Seen) -> Verdict:
    """Everything is in order soon after the last fault."""
    took = seen.settled
    says = f"{took:.0f} s" if took is not None else "never"
    return Verdict(
        f"settled within {SETTLED:g} s", took is not None and took <= SETTLED, says, {"settled_s": took and round(took)}
    )


def _made(seen: Seen) -> Iterator[Made]:
    """Return the Backups that Foresail made; those from before the begin were not synced, whatever their times say."""
    return (each for each in seen.made.values() if each.created < seen.begins or not each.is_synced)


def _final(seen: Seen) -> Final:
    return seen.final or Final(seen.ends)


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{count} {name or 'New'}" for name, count in sorted(counter.items())) or "none"


def _list(**named: Sequence[str]) -> str:
    """Return what is wrong, the first few of each."""
    parts = [
        f"; {word.replace('_', ' ')} {len(those)}: {', '.join(sorted(those)[:_SHOWN])}"
        for word, those in named.items()
        if those
    ]
    return "".join(parts)
