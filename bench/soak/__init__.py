"""The three capabilities together for an hour, amid faults: `make soak`."""
