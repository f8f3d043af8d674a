"""All capabilities in one cluster at once, at the size that is promised: `make bench-whole`."""
