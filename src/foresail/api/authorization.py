"""Wire types of access reviews and API discovery."""

import msgspec

from foresail.plan import Kind

SUBJECT_ACCESS_REVIEW = Kind(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)

OWN_ACCESS_REVIEW = Kind(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)


class ReviewStatus(msgspec.Struct, frozen=True):
    """The answer."""

    allowed: bool = False


class Review(msgspec.Struct, frozen=True):
    """A SubjectAccessReview, or a SelfSubjectAccessReview."""

    status: ReviewStatus = ReviewStatus()


class ResponseKind(msgspec.Struct, frozen=True):
    """The kind of the objects of a resource."""

    kind: str = ""


class DiscoveredResource(msgspec.Struct, frozen=True, rename="camel"):
    """A resource of one version of a group."""

    resource: str
    response_kind: ResponseKind | None = None
    scope: str = ""
    singular_resource: str = ""
    verbs: tuple[str, ...] | None = None
    short_names: tuple[str, ...] | None = None


class DiscoveredVersion(msgspec.Struct, frozen=True):
    """A version of a group."""

    version: str = ""
    resources: tuple[DiscoveredResource, ...] | None = None
    freshness: str = ""


class DiscoveredMetadata(msgspec.Struct, frozen=True):
    """The name of a group."""

    name: str = ""


class DiscoveredGroup(msgspec.Struct, frozen=True):
    """A group of resources."""

    metadata: DiscoveredMetadata = DiscoveredMetadata()
    versions: tuple[DiscoveredVersion, ...] | None = None


class Discovery(msgspec.Struct, frozen=True):
    """All resources that the API server serves outside the core group."""

    kind: str = ""
    items: tuple[DiscoveredGroup, ...] | None = None
