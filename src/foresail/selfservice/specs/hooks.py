"""Hooks: commands that Velero runs in a tenant's pods, with rights and for a time that the policy bounds."""

import msgspec

from foresail.api.policy import Hooks
from foresail.api.specs import (
    BackupHookRule,
    BackupHooks,
    BackupResourceHook,
    ExecHook,
    ExecRestoreHook,
    Names,
    RestoreHookRule,
    RestoreHooks,
    RestoreResourceHook,
)
from foresail.selfservice.specs.kinds import names
from foresail.selfservice.specs.values import Violation, duration, few_enough, selector

LONGEST = "10m"
"""The longest timeout of a hook if the policy has no maximum; Velero does nothing else meanwhile."""

VELEROS_OWN = "30s"
"""What Velero takes for the timeout of a command that names none."""


def backup_hooks(hooks: BackupHooks | None, namespace: str, rules: Hooks, policy: str) -> BackupHooks | None:
    """Return the hooks of a backup, in the tenant's namespace only and each with a timeout."""
    path = "spec.backupSpec.hooks"
    if hooks is None or not hooks.resources:
        return None
    _allowed(path, rules, policy)
    few_enough(path, hooks.resources)
    backup_hook_rules = [
        BackupHookRule(
            name=resource.name,
            included_namespaces=_only(f"{path}.includedNamespaces", resource, namespace),
            included_resources=names(f"{path}.includedResources", resource.included_resources) or None,
            excluded_resources=names(f"{path}.excludedResources", resource.excluded_resources) or None,
            label_selector=selector(f"{path}.labelSelector", resource.label_selector),
            pre=_around(f"{path}.pre", resource.pre, rules),
            post=_around(f"{path}.post", resource.post, rules),
        )
        for resource in hooks.resources
    ]
    return BackupHooks(resources=tuple(backup_hook_rules))


def restore_hooks(hooks: RestoreHooks | None, namespace: str, rules: Hooks, policy: str) -> RestoreHooks | None:
    """Return the hooks of a restore: commands only, for an init container would be one of any rights."""
    path = "spec.restoreSpec.hooks"
    if hooks is None or not hooks.resources:
        return None
    _allowed(path, rules, policy)
    few_enough(path, hooks.resources)
    restore_hook_rules = [
        RestoreHookRule(
            name=resource.name,
            included_namespaces=_only(f"{path}.includedNamespaces", resource, namespace),
            included_resources=names(f"{path}.includedResources", resource.included_resources) or None,
            excluded_resources=names(f"{path}.excludedResources", resource.excluded_resources) or None,
            label_selector=selector(f"{path}.labelSelector", resource.label_selector),
            post_hooks=_after(f"{path}.postHooks", resource.post_hooks, rules),
        )
        for resource in hooks.resources
    ]
    return RestoreHooks(resources=tuple(restore_hook_rules))


def _allowed(path: str, rules: Hooks, policy: str) -> None:
    if not rules.allowed:
        raise Violation(f"{path} are not allowed by SelfServicePolicy {policy}; remove them")


def _only(path: str, rule: BackupHookRule | RestoreHookRule, namespace: str) -> Names:
    if rule.excluded_namespaces or any(included != namespace for included in rule.included_namespaces or ()):
        raise Violation(f"{path} is restricted, can not contain namespaces other than: {namespace}")
    return (namespace,)


def _around(
    path: str, hooks: tuple[BackupResourceHook, ...] | None, rules: Hooks
) -> tuple[BackupResourceHook, ...] | None:
    few_enough(path, hooks)
    return tuple(BackupResourceHook(exec=_command(path, hook.exec, rules)) for hook in hooks or ()) or None


def _command(path: str, command: ExecHook, rules: Hooks) -> ExecHook:
    few_enough(f"{path}.exec.command", command.command)
    timeout = _timeout(f"{path}.exec.timeout", command.timeout, rules, VELEROS_OWN)
    return msgspec.structs.replace(command, timeout=timeout)


def _after(
    path: str, hooks: tuple[RestoreResourceHook, ...] | None, rules: Hooks
) -> tuple[RestoreResourceHook, ...] | None:
    few_enough(path, hooks)
    restore_resource_hooks: list[RestoreResourceHook] = []
    for hook in hooks or ():
        if hook.init is not None:
            raise Violation(f"{path}.init is restricted: init containers are never allowed; remove it")
        if hook.exec is not None:
            restore_resource_hooks.append(RestoreResourceHook(exec=_later_command(path, hook.exec, rules)))
    return tuple(restore_resource_hooks) or None


def _later_command(path: str, command: ExecRestoreHook, rules: Hooks) -> ExecRestoreHook:
    few_enough(f"{path}.exec.command", command.command)
    return msgspec.structs.replace(
        command,
        exec_timeout=_timeout(f"{path}.exec.execTimeout", command.exec_timeout, rules, VELEROS_OWN),
        # Without one, Velero waits for the container without limit.
        wait_timeout=_timeout(f"{path}.exec.waitTimeout", command.wait_timeout, rules, LONGEST),
    )


def _timeout(path: str, wrote: str | None, rules: Hooks, otherwise: str) -> str:
    default = rules.timeout.maximum or otherwise
    text = duration(path, wrote, rules.timeout, required=None, default=default, ceiling=LONGEST)
    return text or default
