"""The cases about single objects: what each verb does, and what it refuses."""

from foresail.kube.execute import Executor, Outcome
from foresail.kube.failures import Cause, Failure
from foresail.plan import Delete, DeleteLabelled, Key, Kind, Plan
from tests.cluster.things import THING, WHOLE
from tests.worlds.conformance import CONFIG, CONFLICT, Cases, Seen, Stage, cause, seen

NOT_FOUND = Cause.NOT_FOUND, 404
INVALID = Cause.INVALID, 422
case = Cases()


@case
async def what_is_created_can_be_read(stage: Stage) -> None:
    made = await stage.made("a", spec={"size": 1}, metadata={"labels": {"x": "y"}})
    assert (made.spec, made.metadata.labels, made.metadata.generation) == ({"size": 1}, {"x": "y"}, 1)
    assert made.metadata.uid
    assert seen(await stage.server.get(THING, stage.key("a"), Seen)) == made


@case
async def the_server_gives_uid_and_version_itself(stage: Stage) -> None:
    made = await stage.made("a", metadata={"uid": "mine", "generation": 7})
    assert (made.metadata.uid != "mine", made.metadata.generation) == (True, 1)
    versioned = stage.body("b", metadata={"resourceVersion": "1"})
    assert cause(await stage.server.create(THING, stage.key("b"), versioned, Seen)) == (Cause.SERVER, 500)


@case
async def a_name_is_taken_once(stage: Stage) -> None:
    made = await stage.made("a", spec={"size": 1})
    again = await stage.server.create(THING, stage.key("a"), stage.body("a", spec={"size": 2}), Seen)
    assert cause(again) == (Cause.ALREADY_EXISTS, 409)
    assert seen(await stage.server.get(THING, stage.key("a"), Seen)) == made


@case
async def what_is_not_there_is_not_found(stage: Stage) -> None:
    key = stage.key("nobody")
    assert cause(await stage.server.get(THING, key, Seen)) == NOT_FOUND
    assert cause(await stage.server.merge(THING, key, {"spec": {"size": 1}}, Seen)) == NOT_FOUND
    assert cause(await stage.server.merge(THING, key, {"status": {"x": 1}}, Seen, "status")) == NOT_FOUND
    assert await stage.server.delete(THING, key, "any") is None


@case
async def a_namespace_must_exist(stage: Stage) -> None:
    nowhere = Key("no-such-namespace", "a")
    body = {"apiVersion": THING.api_version, "kind": THING.name, "metadata": {"name": "a"}}
    assert cause(await stage.server.create(THING, nowhere, body, Seen)) == NOT_FOUND


@case
async def a_namespace_in_the_body_must_be_that_of_the_request(stage: Stage) -> None:
    body = stage.body("a", metadata={"namespace": "default"})
    assert cause(await stage.server.create(THING, stage.key("a"), body, Seen)) == (Cause.INVALID, 400)


@case
async def a_wrong_name_is_invalid(stage: Stage) -> None:
    for name in ("Not A Name", "-a", "a_b", "a" * 254):
        assert cause(await stage.server.create(THING, stage.key("a"), stage.body(name), Seen)) == INVALID


@case
async def merging_sets_changes_and_takes_away(stage: Stage) -> None:
    await stage.made("a", spec={"keep": 1, "change": {"x": 1, "y": 2}, "drop": 3, "list": [1, 2]})
    patch = {"spec": {"change": {"y": 5}, "drop": None, "list": [3], "new": {"n": None, "m": 1}}}
    merged = seen(await stage.server.merge(THING, stage.key("a"), patch, Seen))
    assert merged.spec == {"keep": 1, "change": {"x": 1, "y": 5}, "list": [3], "new": {"m": 1}}


@case
async def a_stale_version_is_a_conflict_and_changes_nothing(stage: Stage) -> None:
    made = await stage.made("a", spec={"size": 1})
    changed = seen(await stage.server.merge(THING, stage.key("a"), {"spec": {"size": 2}}, Seen))
    assert int(changed.metadata.version) > int(made.metadata.version)
    for subresource, part in (("", "spec"), ("status", "status")):
        stale = {"metadata": {"resourceVersion": made.metadata.version}, part: {"size": 3}}
        assert cause(await stage.server.merge(THING, stage.key("a"), stale, Seen, subresource)) == CONFLICT
    assert seen(await stage.server.get(THING, stage.key("a"), Seen)) == changed
    fresh = {"metadata": {"resourceVersion": changed.metadata.version}, "spec": {"size": 3}}
    assert seen(await stage.server.merge(THING, stage.key("a"), fresh, Seen)).spec == {"size": 3}


@case
async def a_write_that_changes_nothing_makes_no_version(stage: Stage) -> None:
    made = await stage.made("a", spec={"size": 1})
    assert seen(await stage.server.merge(THING, stage.key("a"), {"spec": {"size": 1}}, Seen)) == made


@case
async def status_and_the_rest_are_written_apart(stage: Stage) -> None:
    made = await stage.made("a", spec={"size": 1}, status={"phase": "Invented"})
    assert made.status == {}
    both = {"spec": {"size": 2}, "status": {"phase": "Ready"}, "metadata": {"labels": {"x": "y"}}}
    by_status = seen(await stage.server.merge(THING, stage.key("a"), both, Seen, "status"))
    assert (by_status.spec, by_status.status) == ({"size": 1}, {"phase": "Ready"})
    assert by_status.metadata.labels == {}
    by_main = seen(await stage.server.merge(THING, stage.key("a"), {**both, "status": {"phase": "No"}}, Seen))
    assert (by_main.spec, by_main.status, by_main.metadata.labels) == ({"size": 2}, {"phase": "Ready"}, {"x": "y"})


@case
async def the_generation_counts_changes_of_what_is_wanted(stage: Stage) -> None:
    await stage.made("a", spec={"size": 1})
    generations = []
    for patch, subresource in (
        ({"spec": {"size": 2}}, ""),
        ({"metadata": {"labels": {"x": "y"}}}, ""),
        ({"status": {"phase": "Ready"}}, "status"),
        ({"spec": {"size": 3}}, ""),
    ):
        merged = seen(await stage.server.merge(THING, stage.key("a"), patch, Seen, subresource))
        generations.append(merged.metadata.generation)
    assert generations == [2, 2, 2, 3]


@case
async def without_a_status_of_its_own_a_kind_is_written_in_one_piece(stage: Stage) -> None:
    made = await stage.made("a", WHOLE, spec={"size": 1}, status={"phase": "Given"})
    assert (made.status, made.metadata.generation) == ({"phase": "Given"}, 1)
    key = stage.key("a")
    assert cause(await stage.server.merge(WHOLE, key, {"status": {"phase": "No"}}, Seen, "status")) == NOT_FOUND
    both = {"spec": {"size": None, "depth": 2}, "status": {"phase": "Ready", "at": "noon"}}
    merged = seen(await stage.server.merge(WHOLE, key, both, Seen))
    assert (merged.spec, merged.status) == ({"depth": 2}, {"phase": "Ready", "at": "noon"})


@case
async def without_a_status_of_its_own_the_generation_counts_changes_of_it_too(stage: Stage) -> None:
    await stage.made("a", WHOLE, spec={"size": 1})
    generations = []
    for patch in (
        {"status": {"phase": "Ready"}},
        {"metadata": {"annotations": {"x": "y"}}},
        {"status": {"phase": "Ready"}},
        {"spec": {"size": 2}, "status": {"phase": "Done"}},
        {"status": {"phase": None}},
    ):
        merged = seen(await stage.server.merge(WHOLE, stage.key("a"), patch, Seen))
        generations.append(merged.metadata.generation)
    assert generations == [2, 2, 2, 3, 4]


@case
async def without_a_status_of_its_own_what_is_applied_may_have_one(stage: Stage) -> None:
    key = stage.key("a")
    body = stage.body("a", WHOLE, spec={"size": 1}, status={"phase": "Given"})
    assert seen(await stage.server.apply(WHOLE, key, body, Seen)).status == {"phase": "Given"}
    without = seen(await stage.server.apply(WHOLE, key, stage.body("a", WHOLE, spec={"size": 1}), Seen))
    assert (without.spec, without.status) == ({"size": 1}, {})


@case
async def a_built_in_kind_without_generation_has_none(stage: Stage) -> None:
    made = await stage.made("a", CONFIG, data={"x": "1"})
    assert (made.metadata.generation, made.data) == (0, {"x": "1"})
    changed = seen(await stage.server.merge(CONFIG, stage.key("a"), {"data": {"x": "2"}}, Seen))
    assert (changed.metadata.generation, changed.data) == (0, {"x": "2"})


@case
async def a_delete_is_for_one_uid(stage: Stage) -> None:
    made = await stage.made("a")
    wrong = await stage.server.delete(THING, stage.key("a"), "00000000-0000-0000-0000-000000000000")
    assert cause(wrong) == CONFLICT
    another = Delete(THING, stage.key("a"), "00000000-0000-0000-0000-000000000000")
    done = await Executor(stage.server).execute(Plan((another,)))
    assert done.outcome is Outcome.DONE, "the executor knows that conflict by its words"
    assert seen(await stage.server.get(THING, stage.key("a"), Seen)) == made
    assert await stage.server.delete(THING, stage.key("a"), made.metadata.uid) is None
    assert cause(await stage.server.get(THING, stage.key("a"), Seen)) == NOT_FOUND
    again = await stage.made("a")
    assert again.metadata.uid != made.metadata.uid


@case
async def what_has_a_label_is_deleted_unread_and_nothing_else(stage: Stage) -> None:
    mine = {"labels": {"conformance/made-by": stage.key("a").name}}
    await stage.made("a", metadata=mine)
    await stage.made("b", metadata={"labels": {"conformance/made-by": "another"}})
    held = await stage.made("c", metadata={**mine, "finalizers": ["foresail.dev/hold"]})
    where = Key(stage.key("a").namespace, "")
    action = DeleteLabelled(THING, where, "conformance/made-by", stage.key("a").name)
    for _ in range(2):
        done = await Executor(stage.server).execute(Plan((action,)))
        assert done.outcome is Outcome.DONE, "none is as good as some"
    assert cause(await stage.server.get(THING, stage.key("a"), Seen)) == NOT_FOUND
    assert not isinstance(await stage.server.get(THING, stage.key("b"), Seen), Failure)
    assert seen(await stage.server.get(THING, stage.key("c"), Seen)).metadata.going
    free = {"metadata": {"finalizers": None}}
    assert not isinstance(await stage.server.merge(THING, stage.key("c"), free, Seen), Failure)
    assert held.metadata.uid


@case
async def a_patch_cannot_change_the_uid(stage: Stage) -> None:
    await stage.made("a")
    other = {"metadata": {"uid": "00000000-0000-0000-0000-000000000000"}, "spec": {"size": 2}}
    assert cause(await stage.server.merge(THING, stage.key("a"), other, Seen)) == INVALID


@case
async def a_finalizer_holds_an_object_until_it_is_taken_away(stage: Stage) -> None:
    made = await stage.made("a", metadata={"finalizers": ["foresail.dev/hold"]})
    for _ in range(2):
        assert await stage.server.delete(THING, stage.key("a"), made.metadata.uid) is None
    going = seen(await stage.server.get(THING, stage.key("a"), Seen))
    assert (bool(going.metadata.going), going.metadata.generation) == (True, 2)
    more = {"metadata": {"finalizers": ["foresail.dev/hold", "foresail.dev/late"]}}
    assert cause(await stage.server.merge(THING, stage.key("a"), more, Seen)) == INVALID
    revived = seen(await stage.server.merge(THING, stage.key("a"), {"metadata": {"deletionTimestamp": None}}, Seen))
    assert revived == going
    again = await stage.server.create(THING, stage.key("a"), stage.body("a"), Seen)
    assert cause(again) == (Cause.ALREADY_EXISTS, 409)
    free = {"metadata": {"finalizers": None}}
    assert not isinstance(await stage.server.merge(THING, stage.key("a"), free, Seen), Failure)
    assert cause(await stage.server.get(THING, stage.key("a"), Seen)) == NOT_FOUND


@case
async def a_json_patch_adds_and_removes_single_finalizers(stage: Stage) -> None:
    key = stage.key("a")
    made = await stage.made("a")
    version = {"op": "replace", "path": "/metadata/resourceVersion", "value": made.metadata.version}
    first = {"op": "add", "path": "/metadata/finalizers", "value": ["foresail.dev/one"]}
    one = seen(await stage.server.json_patch(THING, key, [version, first], Seen))
    assert one.metadata.finalizers == ["foresail.dev/one"]
    second = {"op": "add", "path": "/metadata/finalizers/-", "value": "foresail.dev/two"}
    assert cause(await stage.server.json_patch(THING, key, [version, second], Seen)) == CONFLICT
    assert seen(await stage.server.get(THING, key, Seen)) == one
    version["value"] = one.metadata.version
    assert seen(await stage.server.json_patch(THING, key, [version], Seen)) == one, "it changes nothing"
    two = seen(await stage.server.json_patch(THING, key, [version, second], Seen))
    assert two.metadata.finalizers == ["foresail.dev/one", "foresail.dev/two"]
    left = seen(await stage.server.json_patch(THING, key, [{"op": "remove", "path": "/metadata/finalizers/0"}], Seen))
    assert left.metadata.finalizers == ["foresail.dev/two"]
    absent = {"op": "remove", "path": "/metadata/finalizers/7"}
    assert cause(await stage.server.json_patch(THING, key, [absent], Seen)) == INVALID
    none = seen(await stage.server.json_patch(THING, key, [{"op": "remove", "path": "/metadata/finalizers/0"}], Seen))
    assert none.metadata.finalizers == []
    assert cause(await stage.server.json_patch(THING, stage.key("nobody"), [second], Seen)) == NOT_FOUND


@case
async def removing_the_last_finalizer_by_json_patch_ends_an_object_that_is_being_deleted(stage: Stage) -> None:
    made = await stage.made("a", metadata={"finalizers": ["foresail.dev/hold"]})
    assert await stage.server.delete(THING, stage.key("a"), made.metadata.uid) is None
    free = {"op": "remove", "path": "/metadata/finalizers/0"}
    assert not isinstance(await stage.server.json_patch(THING, stage.key("a"), [free], Seen), Failure)
    assert cause(await stage.server.get(THING, stage.key("a"), Seen)) == NOT_FOUND


def _owned_by(owner: Seen, kind: Kind = THING) -> dict[str, object]:
    reference = {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
    }
    return {"ownerReferences": [reference]}


@case
async def children_go_with_their_owner_and_nothing_else_does(stage: Stage) -> None:
    owner = await stage.made("owner", CONFIG)
    bystander = await stage.made("bystander", CONFIG)
    await stage.made("child", CONFIG, metadata=_owned_by(owner, CONFIG))
    spared = await stage.made("spared", CONFIG, metadata=_owned_by(bystander, CONFIG))
    assert await stage.server.delete(CONFIG, stage.key("owner"), owner.metadata.uid) is None
    await stage.gone("child", CONFIG)
    assert seen(await stage.server.get(CONFIG, stage.key("spared"), Seen)) == spared


@case
async def a_child_of_an_owner_that_is_gone_already_goes_too(stage: Stage) -> None:
    owner = await stage.made("owner", CONFIG)
    assert await stage.server.delete(CONFIG, stage.key("owner"), owner.metadata.uid) is None
    await stage.made("owner", CONFIG)  # the name is there again, as another object
    await stage.made("child", CONFIG, metadata=_owned_by(owner, CONFIG))
    await stage.gone("child", CONFIG)


@case
async def applying_creates_then_sets_and_takes_away_its_own_fields_only(stage: Stage) -> None:
    key = stage.key("a")
    first = seen(await stage.server.apply(THING, key, stage.body("a", spec={"x": 1, "y": {"z": 2}}), Seen))
    assert (first.spec, first.metadata.generation) == ({"x": 1, "y": {"z": 2}}, 1)
    seen(await stage.server.merge(THING, key, {"spec": {"theirs": 3}}, Seen))
    second = seen(await stage.server.apply(THING, key, stage.body("a", spec={"y": {"z": 4}}), Seen))
    assert second.spec == {"y": {"z": 4}, "theirs": 3}
    assert seen(await stage.server.apply(THING, key, stage.body("a", spec={"y": {"z": 4}}), Seen)) == second


@case
async def applying_over_a_field_of_someone_else_is_a_conflict(stage: Stage) -> None:
    key = stage.key("a")
    made = await stage.made("a", spec={"size": 1})
    wanted = stage.body("a", spec={"size": 2, "mine": True})
    assert cause(await stage.server.apply(THING, key, wanted, Seen)) == CONFLICT
    assert seen(await stage.server.get(THING, key, Seen)) == made
    agreed = seen(await stage.server.apply(THING, key, stage.body("a", spec={"size": 1, "mine": True}), Seen))
    assert agreed.spec == {"size": 1, "mine": True}
    left = seen(await stage.server.apply(THING, key, stage.body("a", spec={"mine": True}), Seen))
    assert left.spec == {"size": 1, "mine": True}, "a field that someone else has too stays"


@case
async def whoever_changes_a_field_last_owns_it(stage: Stage) -> None:
    key = stage.key("a")
    seen(await stage.server.apply(THING, key, stage.body("a", spec={"size": 1}), Seen))
    seen(await stage.server.merge(THING, key, {"spec": {"size": 2}}, Seen))
    assert cause(await stage.server.apply(THING, key, stage.body("a", spec={"size": 1}), Seen)) == CONFLICT
    without = seen(await stage.server.apply(THING, key, stage.body("a", spec={}), Seen))
    assert without.spec == {"size": 2}


@case
async def applying_to_the_status_leaves_the_rest(stage: Stage) -> None:
    key = stage.key("a")
    await stage.made("a", spec={"size": 1})
    body = stage.body("a", spec={"size": 2}, status={"phase": "Ready"})
    applied = seen(await stage.server.apply(THING, key, body, Seen, "status"))
    assert (applied.spec, applied.status, applied.metadata.generation) == ({"size": 1}, {"phase": "Ready"}, 1)


@case
async def what_is_applied_must_say_what_it_is(stage: Stage) -> None:
    key = stage.key("a")
    for missing in ("apiVersion", "kind"):
        body = stage.body("a", spec={"size": 1})
        del body[missing]
        assert cause(await stage.server.apply(THING, key, body, Seen)) == (Cause.INVALID, 400)
