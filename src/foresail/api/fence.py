"""Fences: admission policies that hold the writes of one ServiceAccount to the shapes that the operator writes.

RBAC says which kinds a token may write. A fence says which objects, by rules over CEL expressions. A write that no
rule is for is refused. Values of the chart are in the expressions as Helm writes them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from foresail.plan import Kind

CREATE, UPDATE, DELETE = "CREATE", "UPDATE", "DELETE"
METADATA = ("name", "namespace", "uid", "creationTimestamp", "generation", "managedFields", "labels", "annotations")
"""The fields of metadata that a new object may have: the API server's own, labels and annotations."""

NAMESPACE = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
TENANTS_LOCATION = "-[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$"
"""The end of the name of a storage location that self-service made for a tenant."""

UID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


@dataclass(frozen=True, slots=True)
class Condition:
    """What must hold, and the message if it does not."""

    expression: str
    message: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A write that the operator makes; `when` tells it from others of the same kind and operation."""

    kind: Kind
    operation: str
    conditions: tuple[Condition, ...] = ()
    subresource: str = ""
    when: str = ""

    @property
    def resource(self) -> str:
        """The resource, with its subresource."""
        return f"{self.kind.plural}/{self.subresource}" if self.subresource else self.kind.plural


@dataclass(frozen=True, slots=True)
class Fence:
    """The writes of one ServiceAccount, which has the name of its Deployment."""

    name: str
    switch: str  # the value of the chart that the ServiceAccount comes with
    comment: str
    rules: tuple[Rule, ...]
    variables: Mapping[str, str]


# Expressions


def words(texts: Iterable[str]) -> str:
    """Return a list of strings."""
    return f"[{', '.join(quoted(text) for text in texts)}]"


def quoted(text: str) -> str:
    """Return a string."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def matches(text: str, pattern: str) -> str:
    """Return whether the whole text matches a pattern."""
    return f"{text}.matches({quoted(f'^{pattern}$')})"


def only(of: str, keys: Iterable[str]) -> str:
    """Return whether a map has no other keys."""
    return f"{of}.all(key, key in {words(keys)})"


def value(of: str, key: str, otherwise: str = '""') -> str:
    """Return the value of a key, or another one if it is absent."""
    return f"{of}[?{quoted(key)}].orValue({otherwise})"


def has_all(of: str, keys: Iterable[str]) -> str:
    """Return whether a map of strings has a text for each key."""
    return f'{words(keys)}.all(key, {of}[?key].orValue("") != "")'


def same(new: str, old: str, but: Iterable[str] = ()) -> str:
    """Return whether two maps are equal, except for some keys."""
    keys = list(but)
    if not keys:
        return f"{new} == {old}"
    either = f"key in {words(keys)} || {new}[?key] == {old}[?key]"
    return f"{new}.all(key, {either}) && {old}.all(key, {either})"


def any_of(*expressions: str) -> str:
    """Return whether one of them holds."""
    return " || ".join(f"({expression})" for expression in expressions)


def all_of(*expressions: str) -> str:
    """Return whether all of them hold."""
    return " && ".join(f"({expression})" if "||" in expression else expression for expression in expressions)


# Conditions that several accounts share

COMMON = {
    "kind": 'has(request.subResource) && request.subResource != ""'
    ' ? request.resource.resource + "/" + request.subResource : request.resource.resource',
    "metadata": "object == null ? {} : object.metadata",
    "labels": "object == null ? {} : object.metadata.?labels.orValue({})",
    "annotations": "object == null ? {} : object.metadata.?annotations.orValue({})",
    "spec": "object == null ? {} : object.?spec.orValue({})",
    "status": "object == null ? {} : object.?status.orValue({})",
    "finalizers": "object == null ? [] : object.metadata.?finalizers.orValue([])",
    "owners": "object == null ? [] : object.metadata.?ownerReferences.orValue([])",
    "oldLabels": "oldObject == null ? {} : oldObject.metadata.?labels.orValue({})",
    "oldAnnotations": "oldObject == null ? {} : oldObject.metadata.?annotations.orValue({})",
    "oldSpec": "oldObject == null ? {} : oldObject.?spec.orValue({})",
    "oldStatus": "oldObject == null ? {} : oldObject.?status.orValue({})",
    "oldFinalizers": "oldObject == null ? [] : oldObject.metadata.?finalizers.orValue([])",
    "oldOwners": "oldObject == null ? [] : oldObject.metadata.?ownerReferences.orValue([])",
}
"""The variables of every fence."""

LABELS, ANNOTATIONS, SPEC, STATUS = (f"variables.{each}" for each in ("labels", "annotations", "spec", "status"))
OLD_LABELS, OLD_ANNOTATIONS, OLD_SPEC, OLD_STATUS = (
    f"variables.{each}" for each in ("oldLabels", "oldAnnotations", "oldSpec", "oldStatus")
)
NAME = "object.metadata.name"
UNCHANGED_SPEC = Condition(same(SPEC, OLD_SPEC), "it changes no spec")


def plain(*fields: str, metadata: Sequence[str] = ()) -> Condition:
    """Return that a new object has these fields, and of metadata only what every object of ours has, and these."""
    keys = all_of(
        only("object", ("apiVersion", "kind", "metadata", *fields)), only("variables.metadata", (*METADATA, *metadata))
    )
    return Condition(keys, "it writes no other fields")


def unchanged(
    labels: Iterable[str] = (), annotations: Iterable[str] = (), finalizers: Iterable[str] = ()
) -> tuple[Condition, ...]:
    """Return that an update leaves metadata as it is, except for these keys and finalizers."""
    own = list(finalizers)
    kept = (
        "variables.finalizers == variables.oldFinalizers"
        if not own
        else all_of(
            f"variables.finalizers.all(each, each in {words(own)} || each in variables.oldFinalizers)",
            f"variables.oldFinalizers.all(each, each in {words(own)} || each in variables.finalizers)",
        )
    )
    return (
        Condition(same(LABELS, OLD_LABELS, labels), "it changes no labels but its own"),
        Condition(same(ANNOTATIONS, OLD_ANNOTATIONS, annotations), "it changes no annotations but its own"),
        Condition(all_of(kept, "variables.owners == variables.oldOwners"), "it changes no finalizers but its own"),
    )


def events(kind: Kind) -> Rule:
    """Return the rule for Events: those that report themselves as ours."""
    return Rule(
        kind,
        CREATE,
        (
            Condition(
                all_of(
                    'object.reportingController == "foresail"',
                    only("variables.metadata", METADATA),
                    "variables.labels == {}",
                    "variables.annotations == {}",
                ),
                "it reports Events in its own name only",
            ),
        ),
    )


def lease(kind: Kind, name: str, annotations: Sequence[str] = ()) -> Rule:
    """Return the rule for the Lease; RBAC says which one may be changed."""
    own = only(ANNOTATIONS, annotations) if annotations else f"{ANNOTATIONS} == {{}}"
    plainly = (only("variables.metadata", METADATA), f"{LABELS} == {{}}", own)
    is_own = all_of(f"{NAME} == {quoted(name)}", *plainly)
    return Rule(kind, CREATE, (Condition(is_own, f"it creates no Lease but {name}"),))


# Rendering


def rendered(fence: Fence) -> str:
    """Return the template of the chart."""
    lines = [f"{{{{- if .Values.{fence.switch} }}}}"]
    lines += [f"# {line}" if line else "#" for line in fence.comment.splitlines()]
    name = f"{fence.name}-fence"
    lines += [
        "apiVersion: admissionregistration.k8s.io/v1",
        "kind: ValidatingAdmissionPolicy",
        "metadata:",
        f"  name: {name}",
        "spec:",
        "  failurePolicy: Fail",
        "  matchConstraints:",
        "    resourceRules:",
        *_resource_rules(fence.rules),
        "  matchConditions:",
        "    - name: is-its-token",
        "      expression: >-",
        '        request.userInfo.username == "{{ include "foresail.userOf" (dict "root" . "name" "'
        + fence.name
        + '") }}"',
        "  variables:",
    ]
    for variable, expression in {**COMMON, **fence.variables}.items():
        lines += [f"    - name: {variable}", "      expression: >-", *_folded(expression, 8)]
    lines.append("  validations:")
    writes = sorted({f"{rule.resource}/{rule.operation}" for rule in fence.rules})
    known = f'(variables.kind + "/" + request.operation) in {words(writes)}'
    lines += _validation(known, f"{fence.name} makes no such write")
    for rule in fence.rules:
        for condition in rule.conditions:
            applies = f'variables.kind != "{rule.resource}" || request.operation != "{rule.operation}"'
            applies += f" || !({rule.when})" if rule.when else ""
            message = f"{fence.name} and {rule.resource}: {condition.message}"
            lines += _validation(f"{applies} || ({condition.expression})", message)
    lines += [
        "---",
        "apiVersion: admissionregistration.k8s.io/v1",
        "kind: ValidatingAdmissionPolicyBinding",
        "metadata:",
        f"  name: {name}",
        "spec:",
        f"  policyName: {name}",
        "  validationActions: [Deny]",
        "{{- end }}",
    ]
    return "\n".join(lines) + "\n"


_ALL: tuple[str, ...] = (CREATE, UPDATE, DELETE)
_BUSY = ("events", "leases")  # everybody writes them all the time: only what RBAC allows is looked at


def _resource_rules(rules: Iterable[Rule]) -> Iterable[str]:
    groups: dict[tuple[str, tuple[str, ...]], set[str]] = {}
    for rule in rules:
        operations = _ALL if rule.kind.plural not in _BUSY and not rule.subresource else (rule.operation,)
        groups.setdefault((rule.kind.group, operations), set()).add(rule.resource)
    for (group, operations), resources in sorted(groups.items()):
        yield f'      - apiGroups: ["{group}"]'
        yield '        apiVersions: ["*"]'
        yield f"        operations: [{', '.join(operations)}]"
        yield f"        resources: [{', '.join(sorted(resources))}]"


def _validation(expression: str, message: str) -> list[str]:
    return [
        "    - expression: >-",
        *_folded(expression, 8),
        "      reason: Forbidden",
        f"      message: {quoted(message)}",
    ]


def _folded(expression: str, indent: int) -> list[str]:
    """Return an expression on lines of at most 120 characters, broken only where a blank is no part of a string."""
    pieces = []
    current = ""
    is_string = False
    depth = 0
    for index, character in enumerate(expression):
        is_string ^= character == '"' and expression[index - 1] != "\\"
        depth += expression.startswith("{{", index) - expression.startswith("}}", index)
        if character == " " and not is_string and not depth:
            pieces.append(current)
            current = ""
        else:
            current += character
    lines = [""]
    for piece in (*pieces, current):
        if len(lines[-1]) + len(piece) + 1 > 120 - indent:
            lines.append("")
        lines[-1] = f"{lines[-1]} {piece}".strip()
    return [" " * indent + line for line in lines]
