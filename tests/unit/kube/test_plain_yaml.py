"""Plain YAML is read exactly as a YAML library reads it, or not at all."""

from random import Random
from typing import Any

import pytest
import yaml

from foresail.kube.kubeconfig import NotPlainError, load_plain

KUBECTL = """apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: LS0tLS1CRUdJTg==
    server: https://127.0.0.1:6443
  name: kind-a
- cluster:
    insecure-skip-tls-verify: true
    server: https://10.0.0.1
  name: "other"
contexts:
- context:
    cluster: kind-a
    namespace: shop
    user: ann
  name: arn:aws:eks:eu-1:12:cluster/prod
current-context: kind-a
kind: Config
preferences: {}
users:
- name: ann
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      args:
      - --region
      - eu-west-1
      - eks
      command: aws
      env:
        - name: AWS_PROFILE
          value: 'a b'
      interactiveMode: IfAvailable
# the end
"""


def test_a_kubeconfig_as_kubectl_writes_it_is_plain() -> None:
    assert load_plain(KUBECTL) == yaml.safe_load(KUBECTL)


@pytest.mark.parametrize(
    "text",
    [
        "", "# nothing", "a", "- ", "a:\n    b: c\n  d: e", "a: b\na: c", "a: 1", "a: 1.5", "a: ~", "a: null", "a: Yes",
        "a: &x b", "a: *x", "a: !!str b", "a: |\n  b", "a: >\n  b", "a: b # c", "a: 'it''s'", 'a: "\\n"', "a: b\n  c",
        "a:\tb", "\ta: b", "a: b\r", "---\na: b", "a: {b: c}", "a: [b]", "? a\n: b", "on: b", "a: b:", "a:  b", "-  a",
        "- - a", "a: 2026-01-01", "a: 0x1f", "a: .inf", "a: -1", "a: \u00e9", "a: b\x85c", "{}", "a: @b", "a: `b`",
    ],
)  # fmt: skip
def test_the_rest_of_yaml_is_left_to_a_library(text: str) -> None:
    with pytest.raises(NotPlainError):
        load_plain(text)


PIECES = (
    "a",
    "b.c",
    "true",
    "on",
    "-",
    "- ",
    "  ",
    ":",
    ": ",
    "\n",
    "\n",
    "\n  ",
    "\n- ",
    "'x'",
    '"y z"',
    "#",
    "{}",
    "1",
    "--x",
    "/p",
    "=",
)


def test_random_texts_are_read_as_the_library_reads_them_or_not_at_all() -> None:
    random, read = Random(32), 0  # noqa: S311 - reproducible, not secret
    for _ in range(30_000):
        text = "".join(random.choices(PIECES, k=random.randint(1, 14)))
        try:
            value = load_plain(text)
        except NotPlainError:
            continue
        read += 1
        assert value == yaml.load(text, yaml.CSafeLoader), text
    assert read > 200


def document(random: Random, depth: int) -> Any:  # noqa: ANN401
    rare = random.choice(("no", "true", "7")) if random.random() < 0.05 else "user"
    names = [random.choice(("name", "server", "a-b", "x.y", "e1", rare)) for _ in range(3)]
    if depth == 0 or random.random() < 0.3:
        odd = (None, 7, "-x", "", "it's", "2026-01-01", "=", "~")
        return random.choice((*names, *names, *names, "https://h:1/p", "LS0t==", True, random.choice(odd)))
    if random.random() < 0.4:
        return [document(random, depth - 1) for _ in range(random.randint(0, 3))]
    return {name: document(random, depth - 1) for name in names}


def test_random_documents_are_read_as_the_library_writes_them_or_not_at_all() -> None:
    random, read = Random(33), 0  # noqa: S311 - reproducible, not secret
    for _ in range(600):
        content = document(random, 3)
        text = yaml.safe_dump(content, indent=random.choice((2, 4)))
        try:
            value = load_plain(text)
        except NotPlainError:
            continue
        read += 1
        assert value == content, text
    assert read > 50
