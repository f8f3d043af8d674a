"""Every module with attacks: importing one registers them."""

from tests.redteam import (
    annotations,
    checks,
    data_path,
    direct,
    exhaustion,
    fence,
    identity,
    locations,
    namespaces,
    records,
    replays,
    schedules,
)

MODULES = (
    annotations,
    checks,
    data_path,
    direct,
    exhaustion,
    fence,
    identity,
    locations,
    namespaces,
    records,
    replays,
    schedules,
)
