"""What the controller knows and remembers: stores, quota ledger, queue, and which keys an event concerns."""
