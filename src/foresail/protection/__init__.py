"""Protection by label: namespaces name a class, and the operator keeps the Schedules that protect them."""
