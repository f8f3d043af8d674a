"""What the Prometheus operator reads: kinds that a cluster may lack, and the one alert that outlives us."""

from foresail.plan import Kind

PROMETHEUS_RULE = Kind("monitoring.coreos.com", "v1", "prometheusrules", "PrometheusRule")
SERVICE_MONITOR = Kind("monitoring.coreos.com", "v1", "servicemonitors", "ServiceMonitor")

UNATTENDED = "foresail-unattended"
"""The rule with the alert that nobody runs the Schedules; a chart that is removed leaves it behind on purpose."""
