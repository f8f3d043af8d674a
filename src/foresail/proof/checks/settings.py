"""What an administrator sets for checks with depth Data."""

import msgspec

from foresail.plan import Key


class DataSettings(msgspec.Struct, frozen=True):
    """How pods of a backup may start; without it, depth Data is off."""

    canary_image: str  # Foresail's own image, or one with `foresail canary`
    account: Key  # the operator's ServiceAccount, which gets its rights in each sandbox
    targets: tuple[str, ...] = ()  # what the canary tries beside the API server, DNS and the bucket, as host:port
