"""Converging new Parents: the runtime beside a bare loop with the same writes, and beside kopf."""

import asyncio
from statistics import median

from bench.runtime.processes import Measured
from bench.runtime.reading import check_converged
from bench.runtime.world import create_first, multiply, stored_children, world

_ROUNDS = 3


def throughput(count: int) -> dict[str, object]:
    """Let bare loop and runtime take turns, then the runtime with Events and kopf once each; every time anew."""
    bare, ours = [], []
    for _ in range(_ROUNDS):
        bare.append(_bare(count))
        ours.append(_converged(count, "ours"))
    with_events = _converged(count, "ours", "events")
    kopf = _converged(count, "kopf_rival")
    ratios = [one["per_s"] / other["per_s"] for one, other in zip(ours, bare, strict=True)]
    return {
        "throughput_ratio": round(median(ratios), 3),
        "throughput_ratios": [round(ratio, 3) for ratio in ratios],
        "bare_parents_per_s": [round(each["per_s"], 1) for each in bare],
        "ours_parents_per_s": [round(each["per_s"], 1) for each in ours],
        "with_events_parents_per_s": round(with_events["per_s"], 1),
        "kopf_parents_per_s": round(kopf["per_s"], 1),
        "bare_cpu_ms_per_parent": round(median(each["cpu_ms"] for each in bare), 3),
        "cpu_ms_per_parent": round(median(each["cpu_ms"] for each in ours), 3),
        "with_events_cpu_ms_per_parent": round(with_events["cpu_ms"], 3),
        "kopf_cpu_ms_per_parent": round(kopf["cpu_ms"], 3),
        "cpu_to_kopf": round(median(each["cpu_ms"] for each in ours) / kopf["cpu_ms"], 3),
        "kopf_rss_peak_mib": round(kopf["rss_peak_mib"], 1),
        "writes_per_parent": [round(each["writes"] / count, 4) for each in ours],
    }


def _bare(count: int) -> dict[str, float]:
    with world() as cluster:
        create_first(cluster)
        multiply(cluster, count)
        with Measured(cluster, "bare") as process:
            facts = process.wait_end()
        asyncio.run(check_converged(cluster, count))
    print(f"bare: {facts}", flush=True)
    return facts | {"per_s": count / facts["seconds"], "cpu_ms": facts["cpu_s"] * 1000 / count}


def _converged(count: int, module: str, *arguments: str) -> dict[str, float]:
    """Return what one process did; its processor time is all that it used, from its start until it was idle."""
    with world() as cluster:
        create_first(cluster)
        multiply(cluster, count)
        before = stored_children(cluster)
        with Measured(cluster, module, *arguments) as process:
            process.wait_for(lambda: stored_children(cluster) >= before + count)
            used = process.wait_idle()
            peak = process.memory_mib("VmHWM")
            facts = process.end()
        asyncio.run(check_converged(cluster, count))
    print(f"{module} {' '.join(arguments)}: {facts}, {used:.2f} s of CPU, {peak:.0f} MiB at most", flush=True)
    return facts | {"per_s": count / facts["seconds"], "cpu_ms": used * 1000 / count, "rss_peak_mib": peak}
