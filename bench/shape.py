"""The shape of source trees side by side: `python -m bench.shape src/foresail OTHER...`; the last line is JSON."""

import argparse
import ast
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import grimp  # comes with import-linter

from tests.unit.test_complexity import complexities

PACKAGES = ("api", "cli", "console", "cron", "kube", "primers", "proof", "schedules", "selfservice")


def main() -> int:
    """Print a table with one column for each tree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", nargs="+", type=Path, help="folder of a package, ours or that of a library")
    figures = {str(tree): shape(tree) for tree in parser.parse_args().trees}
    for name in next(iter(figures.values())):
        print(f"{name:32}", *(f"{column[name]:>12}" for column in figures.values()))
    print(json.dumps(figures))
    return 0


def shape(tree: Path) -> dict[str, float]:
    """Return counts of a tree; those of words and idioms are per 1,000 lines."""
    sources = [path.read_text() for path in sorted(tree.rglob("*.py"))]
    lines = sum(source.count("\n") for source in sources)
    counts = Counter[str]()
    for source in sources:
        counts.update(_idioms(ast.parse(source)))
    above = sum(count > 15 for source in sources for _, count in complexities(source))
    per_thousand = {name: round(1000 * counts[name] / lines, 1) for name in IDIOMS}
    return {"files": len(sources), "lines": lines, "functions above 15": above, **per_thousand, **_arrows(tree)}


COUNTS = ("files", "imports", "floors", "circles")
IDIOMS = ("variable each", "variable found", "ternary", "nested ternary", "packed assignment")


def _idioms(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in ("each", "found"):
            yield f"variable {node.id}"
        elif isinstance(node, ast.IfExp):
            yield "ternary"
            if isinstance(node.body, ast.IfExp) or isinstance(node.orelse, ast.IfExp):
                yield "nested ternary"
        elif (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Tuple)
            and isinstance(node.targets[0], ast.Tuple)
        ):
            yield "packed assignment"


def _arrows(tree: Path) -> dict[str, float]:
    """Return the shape of the imports inside of our packages, the parts that people get lost in; 0 if one is absent."""
    figures = {f"{count} in {package}": 0.0 for package in PACKAGES for count in COUNTS}
    present = [package for package in PACKAGES if (tree / package).is_dir()]
    if not present:
        return figures
    sys.path.insert(0, str(tree.resolve().parent))
    try:
        graph = grimp.build_graph(tree.name, cache_dir=None)
    finally:
        sys.path.pop(0)
    for package in present:
        inside = graph.find_descendants(f"{tree.name}.{package}")
        imports = {module: graph.find_modules_directly_imported_by(module) & inside for module in inside}
        figures[f"files in {package}"] = len(list((tree / package).rglob("*.py")))
        figures[f"imports in {package}"] = sum(map(len, imports.values()))
        circles = _circles(imports)
        figures[f"floors in {package}"] = _floors(imports, circles)
        figures[f"circles in {package}"] = sum(len(circle) > 1 for circle in set(circles.values()))
    return figures


def _circles(imports: dict[str, set[str]]) -> dict[str, frozenset[str]]:
    """Return the modules of the circle that each module is in; most are alone in theirs."""
    reached = {module: set(others) for module, others in imports.items()}
    for between in imports:
        for others in reached.values():
            if between in others:
                others.update(reached[between])
    return {
        module: frozenset({module, *(other for other in others if module in reached[other])})
        for module, others in reached.items()
    }


def _floors(imports: dict[str, set[str]], circles: dict[str, frozenset[str]]) -> int:
    """Return the length of the longest chain of imports; the modules of a circle share a floor."""
    floors = dict.fromkeys(circles.values(), 1)
    for _ in floors:
        for module, others in imports.items():
            below = [floors[circles[other]] + 1 for other in others if circles[other] != circles[module]]
            floors[circles[module]] = max([floors[circles[module]], *below])
    return max(floors.values(), default=0)


if __name__ == "__main__":
    sys.exit(main())
