"""The worst tenant that we know beside a normal one: `make hostile-load`."""
