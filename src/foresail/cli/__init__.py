"""The `foresail` command, which is also the kubectl plugin `kubectl foresail`."""
