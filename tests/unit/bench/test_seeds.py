"""Oracles live through a part of their worlds, from a seed on."""

import pytest

from bench.seeds import read_seeds, seed_parser


def test_size_is_a_part_of_all_worlds_and_first_the_seed_to_begin_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SIZE", raising=False)
    assert read_seeds(100, seed_parser(""), []).seeds == range(100)
    assert read_seeds(100, seed_parser(""), ["--size", "0.1", "--first", "20"]).seeds == range(20, 30)
    assert read_seeds(100, seed_parser(""), ["--size", "0.001"]).seeds == range(1), "one at least"
    monkeypatch.setenv("SIZE", "0.5")
    assert read_seeds(100, seed_parser(""), []).seeds == range(50)
    parser = seed_parser("")
    parser.add_argument("--velero")
    assert read_seeds(1, parser, ["--velero", "1.17"]).args.velero == "1.17"
