"""The operator is killed again and again while warm-ups are due: nothing is made twice, and nothing left behind."""

import random
import time
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from foresail.kube.clock import now
from testbed import Cluster
from tests.cluster import primers
from tests.cluster.buffer_scene import left_behind
from tests.cluster.operators import PRIMERS_USER, Operator, running
from tests.cluster.schedules import FULL, Eventually, Figure

pytestmark = pytest.mark.full

KILLS = 100 if FULL else 8
EACH = 2  # CronJobs that are new to each life: as many writes as it may live to see
CRON_JOBS = EACH * KILLS
BUFFERS = CRON_JOBS // 2 if FULL else 4  # each is in the way of a kill when it is made, and when it is released
BUFFERS_API = "/apis/autoscaling.x-k8s.io/v1beta1/capacitybuffers"
SUSPEND = '--patch={"spec": {"suspend": true}}'
AIM_SECONDS = 60.0


def killed_at_a_write(operator: Operator, chance: random.Random) -> bool:
    """Let it kill itself around its first or second write; return whether it came to that."""
    process = operator.begin(FORESAIL_TEST_KILL=f"{chance.choice(('before', 'after'))}:{chance.randint(1, 2)}")
    deadline = time.monotonic() + AIM_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    met = process.poll() is not None
    operator.kill()
    return met


def placeholders(cluster: Cluster, names: list[str]) -> list[dict[str, Any]]:
    """Return those of these Primers; other tests may have theirs."""
    there = primers.placeholders(cluster)
    return [pod for pod in there if pod["metadata"]["labels"]["foresail.dev/primer"] in names]


def test_however_often_it_is_killed_no_placeholder_is_made_twice_and_none_is_left_behind(
    cluster: Cluster, tmp_path: Path, eventually: Eventually, figure: Figure
) -> None:
    chance, begun = random.Random(8), now()  # noqa: S311 - chance, not secrecy
    primers.install(cluster)
    fire = primers.next_minute(3600)
    schedule = f"{fire.minute} {fire.hour} {fire.day} {fire.month} *"
    names = [f"killed-{number}" for number in range(CRON_JOBS)]
    flags = (*primers.FLAGS, f"--primer-placeholders-per-namespace={CRON_JOBS}")
    with running(cluster, tmp_path, *flags) as operator:
        operator.kill()
        met = 0
        for first in range(0, CRON_JOBS, EACH):
            new = names[first : first + EACH]
            cron_jobs = [primers.cron_job(name, schedule, "none") for name in new]
            cluster.apply(*cron_jobs, *[primers.primer(name, "2h") for name in new])  # so the warm-ups are due now
            met += killed_at_a_write(operator, chance)
        operator.start()
        eventually(lambda: len(placeholders(cluster, names)) == CRON_JOBS, 300)
        made = placeholders(cluster, names)
        targets = {pod["metadata"]["annotations"]["foresail.dev/cronjob-uid"] for pod in made}
        assert len(targets) == CRON_JOBS
        asked = [each for each in cluster.audit(PRIMERS_USER) if each.resource == "pods" and each.at >= begun]
        codes = [each.code for each in asked if each.verb == "create" and "dryRun" not in each.uri]
        cut_off = codes.count(HTTPStatus.GATEWAY_TIMEOUT)
        assert codes.count(HTTPStatus.CREATED) <= CRON_JOBS <= codes.count(HTTPStatus.CREATED) + cut_off
        figure(f"primers: {met} of {KILLS} kills at a write, {CRON_JOBS} placeholders, each made once")
        operator.kill()
    cluster.kubectl("delete", "primers", *names, "--namespace=default", "--wait=false")
    eventually(lambda: placeholders(cluster, names) == [], 300)
    cluster.kubectl("delete", "cronjobs", *names, "--namespace=default", "--wait=false")


def test_however_often_it_is_killed_no_buffer_is_made_twice_and_none_is_left_behind(
    buffer_cluster: Cluster, tmp_path: Path, eventually: Eventually, figure: Figure
) -> None:
    cluster, chance, begun = buffer_cluster, random.Random(9), now()  # noqa: S311 - chance, not secrecy
    primers.install(cluster)
    fire = primers.next_minute(3600)
    schedule = f"{fire.minute} {fire.hour} {fire.day} {fire.month} *"
    names = [f"killed-{number}" for number in range(BUFFERS)]
    lives = [names[first : first + EACH] for first in range(0, BUFFERS, EACH)]
    met = 0
    with running(cluster, tmp_path, *primers.FLAGS, f"--primer-placeholders-per-namespace={BUFFERS}") as operator:
        operator.kill()
        for new in lives:  # half of the kills while buffers are made
            cron_jobs = [primers.cron_job(name, schedule, "none") for name in new]
            cluster.apply(*cron_jobs, *[primers.primer(name, "2h", method="CapacityBuffer") for name in new])
            met += killed_at_a_write(operator, chance)
        operator.start()
        eventually(lambda: len(cluster.listed(BUFFERS_API)) == BUFFERS, 300)
        operator.kill()
        for old in lives:  # and half while they are released
            cluster.kubectl("patch", "primers", *old, "--namespace=default", "--type=merge", SUSPEND)
            met += killed_at_a_write(operator, chance)
        operator.start()
        eventually(lambda: left_behind(cluster) == [], 300)
        operator.kill()
    asked = [each for each in cluster.audit(PRIMERS_USER) if each.verb == "create" and each.at >= begun]
    codes = [each.code for each in asked if each.resource == "capacitybuffers.autoscaling.x-k8s.io"]
    cut_off = codes.count(HTTPStatus.GATEWAY_TIMEOUT)
    assert codes.count(HTTPStatus.CREATED) <= BUFFERS <= codes.count(HTTPStatus.CREATED) + cut_off
    assert [each for each in asked if each.resource == "pods" and "dryRun" not in each.uri] == []
    figure(f"primers: {met} of {2 * len(lives)} kills at a write, {BUFFERS} buffers, each made once, 0 left behind")
    cluster.kubectl("delete", "primers,cronjobs", *names, "--namespace=default", "--wait=false")
