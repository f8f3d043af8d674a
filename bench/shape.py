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

PACKAGES = ("primers", "selfservice", "cli")


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
    """Return how many imports there are inside of packages that people get lost in; 0 if a tree has none of them."""
    if not all((tree / name).is_dir() for name in PACKAGES):
        return {f"imports inside {name}": 0 for name in PACKAGES}
    sys.path.insert(0, str(tree.resolve().parent))
    try:
        graph = grimp.build_graph(tree.name, cache_dir=None)
    finally:
        sys.path.pop(0)
    arrows = Counter[str]()
    for module in graph.modules:
        room = module.split(".")[1] if "." in module else ""
        inside = f"{tree.name}.{room}"
        arrows[room] += sum(other.startswith(inside) for other in graph.find_modules_directly_imported_by(module))
    return {f"imports inside {name}": arrows[name] for name in PACKAGES}


if __name__ == "__main__":
    sys.exit(main())
