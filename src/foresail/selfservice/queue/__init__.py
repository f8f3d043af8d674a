"""The queue before Velero: order, window and positions."""
