"""Starts foresail.pyz beside the installed wheel, in turns: `python -m bench.pyz FILE WHEEL`. The last line is JSON."""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
COMMAND = ("cron", "next", "0 3 * * *")
RUNS = 10


def run(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Return the milliseconds that a command took, and those of CPU."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return took * 1000, cpu * 1000


def main() -> None:
    """Measure, and print one JSON object."""
    file, wheel = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        clean = Path(folder) / "clean"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(clean)], check=True)
        python = clean / "bin" / "python"
        uv = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--quiet", "--python", str(python)]
        pinned = ["--no-deps", "--require-hashes", "--requirement", "requirements/run.txt"]
        subprocess.run([*uv, *pinned], cwd=ROOT, check=True)
        subprocess.run([*uv, "--no-deps", wheel], check=True)
        environment = {"PATH": os.environ["PATH"], "HOME": folder, "XDG_CACHE_HOME": f"{folder}/cache"}
        commands = {"pyz": [str(python), file, *COMMAND], "wheel": [str(clean / "bin" / "foresail"), *COMMAND]}
        firsts = {name: run(command, environment) for name, command in commands.items()}
        all_runs = [{name: run(command, environment) for name, command in commands.items()} for _ in range(RUNS)]
    figures: dict[str, object] = {"mb": round(Path(file).stat().st_size / 1e6, 1), "runs": RUNS}
    for name, first in firsts.items():
        figures |= {
            f"{name}_ms": round(median(each[name][0] for each in all_runs)),
            f"{name}_cpu_ms": round(median(each[name][1] for each in all_runs)),
            f"{name}_first_cpu_ms": round(first[1]),
        }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
