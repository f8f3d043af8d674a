"""What is said in a namespace that no policy applies to."""

from foresail.selfservice.reasons import Reason, Refused


def no_policy(namespace: str) -> Refused:
    """Return the refusal in a namespace without a policy."""
    text = f"Self-service is not enabled in namespace {namespace}; ask a cluster administrator to enable it"
    return Refused(Reason.NO_POLICY, text)
