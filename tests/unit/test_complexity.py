"""No function has more than fifteen paths, counted as radon does: ternaries, `and`, `or` and comprehensions count."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "foresail"
MOST = 15

Scope = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
DECISIONS: dict[type[ast.AST], Callable[[Any], int]] = {
    ast.If: lambda _: 1,
    ast.IfExp: lambda _: 1,
    ast.Assert: lambda _: 1,
    ast.For: lambda node: 1 + bool(node.orelse),
    ast.AsyncFor: lambda node: 1 + bool(node.orelse),
    ast.While: lambda node: 1 + bool(node.orelse),
    ast.comprehension: lambda node: 1 + len(node.ifs),
    ast.BoolOp: lambda node: len(node.values) - 1,
    ast.Try: lambda node: len(node.handlers) + bool(node.orelse),
    ast.Match: lambda node: len(node.cases) - any(map(is_else, node.cases)),
}


def is_else(case: ast.match_case) -> bool:
    return isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None


def complexities(source: str) -> Iterator[tuple[str, int]]:
    """Yield each function with one more than its decisions; functions inside it count for themselves."""
    nodes: list[Scope] = [ast.parse(source)]
    while nodes:
        outer = nodes.pop()
        count = 1
        own: list[ast.AST] = list(outer.body)
        while own:
            node = own.pop()
            if isinstance(node, Scope):
                nodes.append(node)
                continue
            if type(node) in DECISIONS:
                count += DECISIONS[type(node)](node)
            own += ast.iter_child_nodes(node)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
            yield outer.name, count


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("pass", 1),
        ("return 1 if a else 2 if b else 3", 3),
        ("return a and b and not (c or d)", 4),
        ("return [x for x in a if x if x > 1]", 4),
        ("return {x: y for x in a for y in x}", 3),
        ("for x in a: pass\nelse: pass", 3),
        ("while a: b()", 2),
        ("try: a()\nexcept A: pass\nexcept B: pass\nelse: pass\nfinally: pass", 4),
        ("if a: pass\nelif b: pass\nelse: pass", 3),
        ("match a:\n case 1: pass\n case 2: pass\n case _: pass", 3),
        ("with a: pass", 1),
        ("assert a", 2),
        ("return lambda: a or b", 2),
        ("def inner(): return a or b", 1),
    ],
)
def test_decisions_are_counted_as_radon_counts_them(body: str, expected: int) -> None:
    source = "def f():\n" + "\n".join(f"    {line}" for line in body.split("\n"))
    assert dict(complexities(source))["f"] == expected


def test_no_function_is_above_the_bound() -> None:
    above = {
        f"{path.relative_to(SOURCE)}: {name}": count
        for path in SOURCE.rglob("*.py")
        for name, count in complexities(path.read_text())
        if count > MOST
    }
    assert not above, f"split these into steps, so that each has at most {MOST}"
