"""Kinds of the Prometheus operator, which a cluster may lack, and the alert that outlives Foresail."""

from foresail.plan import Kind

PROMETHEUS_RULE = Kind("monitoring.coreos.com", "v1", "prometheusrules", "PrometheusRule")
SERVICE_MONITOR = Kind("monitoring.coreos.com", "v1", "servicemonitors", "ServiceMonitor")

UNATTENDED = "foresail-unattended"
"""The rule with the alert that no controller runs the Schedules; it stays when the chart is removed."""
