"""`foresail primer explain`: the rules in their order, and the first that blocks a CronJob."""

import argparse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import msgspec

from foresail.api import pods
from foresail.api.batch import CRON_JOB
from foresail.api.marks import WARM_UP, WARM_UP_STATUS
from foresail.api.primer import PLACEHOLDER, PRIMER
from foresail.cli.access.cluster import Cluster, on_namespace
from foresail.cli.access.refused_writes import refused_writes
from foresail.cli.errors import CommandError
from foresail.cli.output.objects import document
from foresail.cli.output.rule_chain import NO, NOT_CHECKED, WAITS, YES, Step, lines
from foresail.cli.output.words import in_words, moment
from foresail.cli.primer.selection import (
    Document,
    check_selection,
    in_primers_form,
    is_annotated,
    queue_key_of,
    selected,
)
from foresail.cli.primer.snapshot import read_snapshot
from foresail.kube.clock import now
from foresail.primers.method_auto import choose_method
from foresail.primers.reasons import Reason
from foresail.primers.rules import Verdict, judge, wanted_shape
from foresail.primers.view import PrimerView, Target

Sizes = Mapping[str, int]
"""By the name of an image, in bytes, compressed or not as the runtime counts."""

_MEGABYTE = 1_000_000


class Image(msgspec.Struct, frozen=True, rename="camel"):
    """An image on a node; a kubelet reports the largest fifty."""

    names: list[str] | None = None
    size_bytes: int = 0


class _Status(msgspec.Struct, frozen=True):
    images: list[Image] | None = None


class _Node(msgspec.Struct, frozen=True):
    status: _Status = _Status()


_node = msgspec.json.Decoder(_Node)


async def image_sizes(cluster: Cluster) -> Sizes:
    """Read the sizes of images; empty if the user may not read nodes."""
    try:
        nodes = map(_node.decode, await cluster.listed(pods.NODE, ""))
    except CommandError:
        return {}
    return sizes_of(image for node in nodes for image in node.status.images or ())


def sizes_of(images: Iterable[Image]) -> Sizes:
    """Return the sizes by every name that an image has."""
    return {name: image.size_bytes for image in images for name in image.names or ()}


def pulled_ahead(images: Iterable[str], sizes: Sizes, *, pulls: bool) -> str:
    """Return in a line which images are pulled ahead, each with its size where a node reports one."""
    if not pulls:
        return "images: not pulled ahead, because not every node has a kubelet of Kubernetes 1.35 or newer"
    known = [f"{image} ({_shown(_size(image, sizes))})" for image in images]
    return f"images: pulled ahead with each placeholder: {', '.join(known)}"


def _size(image: str, sizes: Sizes) -> int | None:
    """Return the size of an image; its name may leave out the registry, and the tag `latest`."""
    name = image if "@" in image or ":" in image.rpartition("/")[2] else f"{image}:latest"
    if name in sizes:
        return sizes[name]
    return next((size for image_name, size in sizes.items() if image_name.endswith(f"/{name}")), None)


def _shown(size: int | None) -> str:
    if size is None:
        return "size not known: no node reports it"
    return f"{max(round(size / _MEGABYTE), 1)} MB"


_QUESTIONS = {
    "no other Primer primes it": (Reason.TAKEN,),
    "its annotations are valid, if it is primed by them": (Reason.INVALID_ANNOTATION,),
    "neither it nor the Primer is suspended": (Reason.SUSPENDED,),
    "the warm-up is within the allowed length": (Reason.TOO_LONG,),
    "its schedule is valid and fires": (Reason.INVALID, Reason.NEVER_FIRES),
    "capacity is held for at most half of the time, or more is allowed": (Reason.STANDING,),
    "its pods run on nodes that can be warmed": (Reason.NOT_WARMABLE,),
    "its pods request something": (Reason.NOTHING_TO_RESERVE,),
    "the method can be used for it": (Reason.NO_HOLD_IMAGE, Reason.INEXACT, Reason.BUFFER_NOT_SERVED),
    "the quotas have room": (Reason.QUOTA_TOO_SMALL,),
}


def explain(args: argparse.Namespace) -> int:
    """Print the chain of rules for each CronJob of the selected Primers."""
    check_selection(args)
    explanations = on_namespace(args, lambda cluster: _explained(cluster, args))
    if args.output != "table":
        print(document([explanation.as_data() for explanation in explanations], args.output))
    elif explanations:
        print("\n\n".join(map(str, explanations)))
    return 0


@dataclass(frozen=True, slots=True)
class Explanation:
    """The rules for one CronJob, and what follows from them; without a CronJob there are no rules."""

    source: str  # the Primer, or the annotation
    cron_job: str
    summary: str
    steps: tuple[Step, ...] = ()
    images: str = ""  # which are pulled ahead

    def __str__(self) -> str:
        of = f", CronJob {self.cron_job}" if self.cron_job else ""
        return "\n".join(
            [
                f"{self.source}{of}: {self.summary}",
                *(lines(self.steps) if self.steps else ()),
                *([f"  {self.images}"] if self.images else ()),
            ]
        )

    def as_data(self) -> dict[str, Any]:
        """Return it for programs."""
        steps = [{"rule": step.rule, "answer": step.answer, "because": step.because} for step in self.steps]
        return {
            "source": self.source,
            "cronJob": self.cron_job,
            "summary": self.summary,
            "steps": steps,
            "images": self.images,
        }


async def _explained(cluster: Cluster, args: argparse.Namespace) -> list[Explanation]:
    found_ones = await selected(cluster, args)
    known = await read_snapshot(cluster, args)
    sizes = await image_sizes(cluster)
    at = now()
    refused = await refused_writes(cluster, PRIMER, args.namespace, at)
    if any(is_annotated(one) for one in found_ones):
        refused |= await refused_writes(cluster, CRON_JOB, args.namespace, at)
    explanations = []
    for whole in found_ones:
        primer = in_primers_form(whole, at)
        key = queue_key_of(whole)
        view = known.observe(key, at)
        if view is None:
            continue
        if not view.targets:
            explanations.append(
                Explanation(f"Primer {key}", "", f"{Reason.NO_CRON_JOB}: it selects no CronJob that exists")
            )
        event = refused.get(primer["metadata"]["uid"])
        for target in view.targets:
            words = refusal_of(primer, target.cron.key.name) or (str(event) if event else "")
            explanation = explanation_of(view, target, at, words or _unrecorded(whole))
            explanations.append(replace(explanation, images=_images(view, target, sizes, at)))
    return explanations


def _images(view: PrimerView, target: Target, sizes: Sizes, at: datetime) -> str:
    shape = wanted_shape(view, target)
    if shape is None or choose_method(view, target, at)[0] != PLACEHOLDER:
        return ""
    return pulled_ahead(shape.images, sizes, pulls=bool(view.settings.image_volumes))


def _unrecorded(item: Document) -> str:
    """Return why an annotation may have no effect that only the operator knows."""
    if not is_annotated(item) or WARM_UP_STATUS in item["metadata"]["annotations"]:
        return ""
    return "the operator has recorded nothing; check that it runs with primers.annotations in this namespace"


def refusal_of(primer: Document, cron_job: str) -> str:
    """Return the API server's refusal for a CronJob, as the Primer's status reports it."""
    status = primer.get("status") or {}
    entries = [item for item in status.get("cronJobs") or () if item.get("name") == cron_job]
    by_operator = (Reason.REFUSED, Reason.NAMESPACE_NOT_ALLOWED)  # which only the operator can know
    return next((str(entry.get("message", "")) for entry in entries if entry.get("reason") in by_operator), "")


def explanation_of(view: PrimerView, target: Target, at: datetime, refused: str = "") -> Explanation:
    """Evaluate the rules for one CronJob, up to the first that blocks it."""
    verdict = judge(view, target, at)
    state = f"blocked: {in_words(Reason.REFUSED)}" if refused and not verdict.because else summary(view, verdict, at)
    whose = f"annotation {WARM_UP}" if view.annotated else f"Primer {view.primer.key}"
    answer = YES
    steps = list[Step]()
    for question, reasons in _QUESTIONS.items():
        because = verdict.because
        if answer == NO:
            answer = NOT_CHECKED
        elif answer == YES and because is not None and because.reason in reasons:
            answer = NO
        text = because.message if because is not None and answer == NO else ""
        steps.append(Step(question, answer, text))
    if verdict.because is None:
        early = verdict.early
        question = "capacity can be held until the run starts"
        steps.append(Step(question, WAITS if early else YES, early.message if early else ""))
        if refused:
            steps.append(Step("the API server accepts its writes", NO, refused))
    return Explanation(whose, target.cron.key.name, state, tuple(steps))


def summary(view: PrimerView, verdict: Verdict, at: datetime) -> str:
    """Return in a sentence what becomes of it."""
    if verdict.because is not None:
        return f"blocked: {in_words(verdict.because.reason)}"
    if verdict.fires is None:
        return "no upcoming fire"
    begins = verdict.fires.upcoming - view.primer.warm_up
    word = "warm-up" if begins > at else "warming since"
    return f"{word} {moment(begins, at)}, fire {moment(verdict.fires.upcoming, at)}"
