"""Which policy applies to a namespace, and how much it lets the namespace have."""
