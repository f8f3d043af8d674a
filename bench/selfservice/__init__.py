"""How fast self-service is beside a bare loop of the same writes, how few requests it needs, and how much it holds."""
