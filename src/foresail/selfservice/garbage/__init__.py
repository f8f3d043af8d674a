"""Objects of ours in Velero's namespace whose owner or whose namespace is gone."""
