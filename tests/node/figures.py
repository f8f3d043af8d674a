"""The figures that the tests on a real node measure, by the names of the JSON object in which they end."""

FOUND: dict[str, float | bool | None] = dict.fromkeys(
    ("node_ready_s", "install_ready_s", "layers_mib", "replica_mib", "data_identical", "leftovers")
)
"""What this run has measured so far."""
