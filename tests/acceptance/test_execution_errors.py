"""The texts of errors that come up while a command runs: the words before them tell which command it was."""

import bson
import pytest

from both import Texts

FAILING = {"$add": ["$a", "$text"]}
LATE = {"$add": ["$a", 1]}


@pytest.fixture
def rows(both):
    both.same({"insert": "rows", "documents": [{"_id": number, "a": "text" if number == 200 else number, "text": "x"} for number in range(300)]})
    both.same({"create": "view", "viewOn": "rows", "pipeline": [{"$match": {}}]})
    return both


def pipeline(*stages):
    return {"aggregate": "rows", "pipeline": [*stages], "cursor": {}}


@pytest.mark.parametrize(
    "request_of",
    [
        pipeline({"$project": {"x": FAILING}}),
        pipeline({"$match": {"$expr": FAILING}}),
        pipeline({"$group": {"_id": None, "x": {"$sum": FAILING}}}),
        pipeline({"$group": {"_id": FAILING}}),
        pipeline({"$facet": {"f": [{"$project": {"x": FAILING}}]}}),
        pipeline({"$lookup": {"from": "rows", "pipeline": [{"$project": {"x": FAILING}}], "as": "x"}}),
        pipeline({"$bucket": {"groupBy": "$text", "boundaries": [1, 2]}}),
        pipeline({"$project": {"x": FAILING}}, {"$out": "others"}),
        pipeline({"$project": {"x": FAILING}}, {"$merge": "others"}),
        pipeline({"$project": {"x": {"$range": [1, {"$add": ["$_id", 0.5]}]}}}),
        pipeline({"$project": {"x": {"$range": [1.5, 3]}}}),
        pipeline({"$project": {"x": {"$range": [1, 3, "$a"]}}}, {"$match": {"x": 1}}),
        {"find": "rows", "filter": {"$expr": FAILING}},
        {"find": "rows", "projection": {"x": FAILING}},
        {"find": "rows", "filter": {"_id": 1}, "projection": {"x": FAILING}},
        {"distinct": "rows", "key": "a", "query": {"$expr": FAILING}},
        {"count": "rows", "query": {"$expr": FAILING}},
        {"find": "view", "filter": {"$expr": FAILING}},
        {"find": "view", "projection": {"x": FAILING}},
        {"count": "view", "query": {"$expr": FAILING}},
        {"distinct": "view", "key": "a", "query": {"$expr": FAILING}},
        {"findAndModify": "rows", "query": {"_id": 1}, "update": [{"$set": {"z": FAILING}}]},
        {"update": "rows", "updates": [{"q": {"$expr": FAILING}, "u": {"$set": {"z": 1}}}]},
        {"delete": "rows", "deletes": [{"q": {"$expr": FAILING}, "limit": 1}]},
    ],
    ids=str,
)
def test_words_before_an_error_name_the_command(rows, request_of):
    rows.same(request_of, texts=Texts.COMPARED)


def test_an_evaluation_that_takes_too_long_names_its_command(rows):
    long = {"$reduce": {"input": {"$range": [0, 1_000_000]}, "initialValue": 0, "in": {"$add": ["$$value", 1]}}}
    for request in ({"find": "rows", "filter": {"$expr": long}}, pipeline({"$project": {"x": long}}), {"count": "rows", "query": {"$expr": long}}):
        rows.same({**request, "maxTimeMS": 20}, texts=Texts.COMPARED)


@pytest.mark.parametrize("begin", [pipeline({"$project": {"x": LATE}}), {"find": "rows", "projection": {"x": LATE}}, {"find": "rows", "filter": {"$expr": LATE}}], ids=str)
def test_words_of_a_later_batch_name_get_more(rows, begin):
    texts = []
    for client in (rows.oracle, rows.pando):
        opened = client[rows.name].command(begin)
        reply = client[rows.name].command({"getMore": opened["cursor"]["id"], "collection": "rows", "batchSize": 1000}, check=False)
        texts.append((reply["code"], reply["errmsg"]))
    assert texts[0] == texts[1] and texts[1][1].startswith("Executor error during getMore :: caused by :: "), texts


@pytest.mark.parametrize("verbosity", ["executionStats", "allPlansExecution"])
@pytest.mark.parametrize(
    "request_of",
    [
        {"find": "rows", "filter": {"$expr": FAILING}},
        {"find": "rows", "filter": {"$expr": LATE}},
        {"count": "rows", "query": {"$expr": FAILING}},
        {"distinct": "rows", "key": "a", "query": {"$expr": FAILING}},
        {"update": "rows", "updates": [{"q": {"$expr": FAILING}, "u": {"$set": {"z": 1}}}]},
        {"delete": "rows", "deletes": [{"q": {"$expr": FAILING}, "limit": 0}]},
        pipeline({"$match": {"$expr": FAILING}}),
    ],
    ids=str,
)
def test_an_explanation_tells_how_a_search_failed(rows, request_of, verbosity):
    explain = {"explain": request_of, "verbosity": verbosity}
    oracle, pando = (bson.decode(ask(explain))["executionStats"] for ask in (rows.ask_oracle, rows.ask_pando))
    assert oracle["executionSuccess"] is False
    names = ("executionSuccess", "errorMessage", "errorCode", "failed", "nReturned", "totalDocsExamined")
    assert {name: pando.get(name) for name in names} == {name: oracle.get(name) for name in names}


def test_an_explanation_of_stages_fails_without_words_before(rows):
    for stage in ({"$group": {"_id": FAILING}}, {"$facet": {"f": [{"$project": {"x": FAILING}}]}}):
        rows.same({"explain": pipeline(stage), "verbosity": "executionStats"}, texts=Texts.COMPARED)
