"""The contents of backups that were read, bounded by their number and by their size."""

from collections import OrderedDict

from foresail.selfservice.access.contents import Contents

MOST_BACKUPS = 1024
MOST_CHARACTERS = 32 << 20
"""How long the names in all cached contents may be together: whoever writes to a bucket chooses them."""


class ContentsCache:
    """The contents of backups by UID; those that were not used for longest are dropped first."""

    def __init__(self, most_backups: int = MOST_BACKUPS, most_characters: int = MOST_CHARACTERS) -> None:
        self._contents: OrderedDict[str, Contents] = OrderedDict()
        self._most_backups, self._most_characters = most_backups, most_characters
        self._characters = 0

    def __contains__(self, backup_uid: str) -> bool:
        return backup_uid in self._contents

    def get(self, backup_uid: str) -> Contents | None:
        """Return the contents of a backup, which count as just used; None if they are not cached."""
        contents = self._contents.get(backup_uid)
        if contents is not None:
            self._contents.move_to_end(backup_uid)
        return contents

    def add(self, backup_uid: str, contents: Contents) -> None:
        """Cache the contents of a backup; the last ones are cached whatever their size."""
        self.discard(backup_uid)
        self._contents[backup_uid] = contents
        self._characters += contents.characters
        while len(self._contents) > 1 and (
            len(self._contents) > self._most_backups or self._characters > self._most_characters
        ):
            self.discard(next(iter(self._contents)))

    def discard(self, backup_uid: str) -> None:
        """Forget the contents of one backup."""
        contents = self._contents.pop(backup_uid, None)
        self._characters -= contents.characters if contents is not None else 0

    def clear(self) -> None:
        """Forget the contents of every backup."""
        self._contents.clear()
        self._characters = 0
