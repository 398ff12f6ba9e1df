"""What object mappers and other programs send, and read in the answers, that no other file has."""

import pytest

LARGE = 1 << 24


@pytest.mark.parametrize("bypass", [True, False, 1, None, "x"], ids=repr)
def test_a_bulk_write_of_a_driver_names_the_bypass_with_each_command(both, bypass):
    both.same({"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]})
    both.same({"delete": "c", "deletes": [{"q": {"_id": 1}, "limit": 0}], "bypassDocumentValidation": bypass})
    both.rows({"find": "c"})


@pytest.mark.parametrize("option", [
    {"changeStreamPreAndPostImages": {"enabled": False}}, {"changeStreamPreAndPostImages": None}, {"recordPreImages": False}, {"recordPreImages": "x"},
    {"changeStreamPreAndPostImages": 1}], ids=repr)
def test_images_of_documents_are_switched_off(both, option):
    both.same({"create": "c"})
    both.same({"collMod": "c", **option})
    both.same({"create": "d", **option})


@pytest.mark.parametrize("command", [
    {"find": "c", "readOnce": True}, {"find": "c", "readOnce": 1}, {"find": "c", "allowSpeculativeMajorityRead": False}, {"find": "c", "term": "x"},
    {"findAndModify": "c", "remove": True, "batchSize": 1}, {"findAndModify": "c", "remove": True, "batchSize": "x"},
    {"findAndModify": "c", "remove": True, "singleBatch": True}, {"findAndModify": "c", "remove": True, "singleBatch": "x"}], ids=repr)
def test_fields_without_effect(both, command):
    both.same({"insert": "c", "documents": [{"_id": 1}]})
    both.same(command)


@pytest.mark.parametrize("more", [1 << 20, (1 << 20) + 5_000, (1 << 20) + 16_384, (1 << 20) + 20_000, 2 << 20])
def test_documents_that_grow_too_large(both, more):
    both.same({"insert": "c", "documents": [{"_id": 1, "b": "x" * (LARGE - (1 << 20) - 100), "a": []}]})
    text = "y" * more
    for change in ({"$set": {"c": text}}, {"$push": {"a": text}}, [{"$set": {"c": text}}]):
        both.same({"update": "c", "updates": [{"q": {"_id": 1}, "u": change}]})
        both.same({"findAndModify": "c", "query": {"_id": 1}, "update": change})


@pytest.mark.parametrize("stage", ["$search", "$searchMeta", "$vectorSearch", "$listSearchIndexes"])
def test_stages_of_atlas_are_refused(both, stage):
    both.same({"insert": "c", "documents": [{"_id": 1}]})
    both.same({"aggregate": "c", "pipeline": [{stage: {}}], "cursor": {}})


@pytest.mark.parametrize("pipeline", [
    [], [{"$match": {"a": 1}}, {"$project": {"a": 1}}], [{"$project": {"a": 1, "_id": 0}}], [{"$match": {"a": 1}}, {"$project": {"a": 1, "_id": 0}}],
    [{"$project": {"b.c": 1}}], [{"$project": {"b": {"c": 1}}}], [{"$project": {"x": "$a"}}], [{"$project": {"x": "$a", "_id": 0}}], [{"$project": {"a": 0}}],
    [{"$project": {"_id": 0}}], [{"$match": {"a": 1}}, {"$project": {"a": 1}}, {"$group": {"_id": "$a"}}], [{"$project": {"a": 1}}, {"$match": {"a": 2}}],
    [{"$project": {"a": 1}}, {"$limit": 3}], [{"$sort": {"a": 1}}, {"$project": {"a": 1}}], [{"$sort": {"b": 1}}, {"$limit": 3}, {"$project": {"a": 1}}],
    [{"$addFields": {"z": "$a"}}], [{"$project": {"a": 1}}, {"$project": {"_id": 1}}], [{"$limit": 2}, {"$project": {"a": 1}}],
    [{"$project": {"a": 1}}, {"$sort": {"a": 1}}], [{"$project": {"a": 1, "z": "$$ROOT"}}], [{"$project": {"a": 1, "b": {"c": 1, "d": "$a"}}}]], ids=repr)
def test_a_projection_at_the_front_is_part_of_the_plan(both, pipeline):
    both.same({"insert": "c", "documents": [{"_id": at, "a": at % 3, "b": {"c": at}} for at in range(20)]})
    both.same({"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}]})
    for verbosity in ("queryPlanner", "executionStats"):
        told = [client[both.name].command("explain", {"aggregate": "c", "pipeline": pipeline, "cursor": {}}, verbosity=verbosity)
                for client in (both.oracle, both.pando)]
        oracle, pando = (shape(one) for one in told)
        assert oracle == pando
        assert ("executionStats" in told[0]) == ("executionStats" in told[1])
        assert told[0]["command"] == told[1]["command"] and {"host", "port", "version", "gitVersion"} <= set(told[1]["serverInfo"])


def shape(explained):
    """The stages of the plan with their projections, and the names of the stages behind it."""
    at_the_top = "queryPlanner" in explained
    planner = explained["queryPlanner"] if at_the_top else explained["stages"][0]["$cursor"]["queryPlanner"]
    plan, stages = planner["winningPlan"], []
    while plan:
        # Where the server itself has found the fields, each writes them in its way.
        projection = {name: bool(value) if isinstance(value, int) else value for name, value in plan.get("transformBy", {}).items()}
        stages.append((plan["stage"], projection))
        plan = plan.get("inputStage")
    behind = [] if at_the_top else [next(iter(stage)) for stage in explained["stages"]]
    return stages, behind, planner.get("optimizedPipeline", False)
