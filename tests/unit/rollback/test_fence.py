"""The fence of the token of rollbacks: a switch that is turned off keeps nobody from the way back."""

from foresail.api.fence import CREATE, UPDATE
from foresail.rollback.fence import FENCE


def test_only_what_begins_with_volumes_asks_for_their_switch() -> None:
    asking = {
        (rule.kind.plural, rule.operation)
        for rule in FENCE.rules
        for condition in rule.conditions
        if "allowsVolumes" in condition.expression
    }
    assert asking == {("nonadminbackups", CREATE), ("nonadminrestores", CREATE), ("persistentvolumes", UPDATE)}
