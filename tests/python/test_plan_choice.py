"""The choice between several plans: by the numbers of entries, and explain shows the plans that lost."""


def explained(db, **find):
    return db.command({"explain": {"find": "c", **find}, "verbosity": "executionStats"})


def scan_of(plan):
    return plan if plan["stage"] == "IXSCAN" else scan_of(plan["inputStage"])


def test_the_index_with_fewer_entries_within_its_bounds_is_taken(db):
    db.c.insert_many([{"_id": at, "a": at % 10, "s": f"x{at % 5}"} for at in range(200)])
    db.c.create_index([("a", 1), ("b", 1)], name="ab")
    db.c.create_index("s", name="s", sparse=True)
    told = explained(db, filter={"a": 1, "s": "x1"})
    assert told["executionStats"]["totalKeysExamined"] == 20
    assert scan_of(told["queryPlanner"]["winningPlan"])["indexName"] == "ab"
    [lost] = told["queryPlanner"]["rejectedPlans"]
    assert lost["stage"] == "FETCH" and lost["filter"] == {"a": {"$eq": 1}}
    assert scan_of(lost)["indexName"] == "s" and scan_of(lost)["indexBounds"] == {"s": ['["x1", "x1"]']}
    # With other numbers the same query has another plan.
    db.c.insert_many([{"_id": at, "a": 1} for at in range(200, 260)])
    told = explained(db, filter={"a": 1, "s": "x1"})
    assert told["executionStats"]["totalKeysExamined"] == 40
    assert [scan_of(plan)["indexName"] for plan in told["queryPlanner"]["rejectedPlans"]] == ["ab"]


def test_updates_deletes_counts_and_pipelines_choose_alike(db):
    db.c.insert_many([{"_id": at, "a": at % 2, "b": at % 50, "q": 0} for at in range(400)])
    db.c.create_index("a")
    db.c.create_index("b")
    wanted = {"a": 1, "b": 7}
    for command in [
        {"count": "c", "query": wanted},
        {"update": "c", "updates": [{"q": wanted, "u": {"$set": {"q": 1}}, "multi": True}]},
        {"delete": "c", "deletes": [{"q": wanted, "limit": 0}]},
        {"aggregate": "c", "pipeline": [{"$match": wanted}], "cursor": {}},
    ]:
        planner = db.command({"explain": command, "verbosity": "queryPlanner"})["queryPlanner"]
        assert scan_of(planner["winningPlan"])["indexName"] == "b_1", command
        assert [scan_of(plan)["indexName"] for plan in planner["rejectedPlans"]] == ["a_1"], command
    assert db.c.update_many(wanted, {"$set": {"q": 1}}).modified_count == 8


def test_one_candidate_leaves_nothing_to_reject(db):
    db.c.insert_many([{"_id": at, "a": at} for at in range(20)])
    db.c.create_index("a")
    db.c.create_index("b")
    for filter in [{"a": 3}, {"_id": 3}, {"z": 3}, {}]:
        assert explained(db, filter=filter)["queryPlanner"]["rejectedPlans"] == []


def stage_names(plan):
    yield plan["stage"]
    for below in [plan["inputStage"]] if "inputStage" in plan else plan.get("inputStages", []):
        yield from stage_names(below)


def test_a_page_of_an_in_with_a_sort_examines_few_keys(db):
    db.c.insert_many([{"_id": at, "a": at % 4, "b": at % 7, "c": at, "s": f"x{at % 3}"} for at in range(200)])
    db.c.create_index([("a", 1), ("b", 1)])
    db.c.create_index([("c", 1), ("b", 1)])
    three = {"a": {"$in": [1, 2, 3]}}
    for find, keys, documents in [
        # The figures are those of MongoDB 6.0.
        ({"filter": three, "sort": {"b": 1}, "limit": 5}, 7, 5),
        ({"filter": three, "sort": {"b": -1}, "limit": 5}, 7, 5),
        ({"filter": three, "sort": {"b": 1}, "limit": 5, "projection": {"_id": 0, "a": 1, "b": 1}}, 7, 0),
        ({"filter": {"$or": [{"a": 1}, {"c": {"$in": [5, 9]}}]}, "sort": {"b": 1}, "limit": 5}, 7, 5),
    ]:
        told = explained(db, **find)
        assert "SORT_MERGE" in stage_names(told["queryPlanner"]["winningPlan"]), find
        statistics = told["executionStats"]
        assert (statistics["totalKeysExamined"], statistics["totalDocsExamined"]) == (keys, documents), find
    merge = explained(db, filter=three, sort={"b": 1}, limit=5)["queryPlanner"]["winningPlan"]["inputStage"]["inputStage"]
    assert merge["stage"] == "SORT_MERGE" and merge["sortPattern"] == {"b": 1}
    assert [scan["indexBounds"]["a"] for scan in merge["inputStages"]] == [["[1, 1]"], ["[2, 2]"], ["[3, 3]"]]
    # More than 200 scans are not merged.
    many = explained(db, filter={"c": {"$in": list(range(201))}}, sort={"b": 1}, limit=5)
    assert "SORT_MERGE" not in stage_names(many["queryPlanner"]["winningPlan"])


def test_a_merge_gives_the_documents_of_a_sort_in_batches_and_in_changes(db):
    db.c.insert_many([{"_id": at, "a": [at % 5, at % 3] if at % 2 else at % 5, "b": at * 7919 % 101} for at in range(500)])
    db.c.create_index([("a", 1), ("b", -1), ("_id", 1)])
    wanted = {"a": {"$in": [0, 2, 4]}}
    for sort in [{"b": -1, "_id": 1}, {"b": 1, "_id": -1}]:
        cursor = db.c.find(wanted).sort(list(sort.items())).batch_size(7)
        assert "SORT_MERGE" in stage_names(cursor.clone().explain()["queryPlanner"]["winningPlan"])
        assert list(cursor) == list(db.c.find(wanted).sort(list(sort.items())).hint([("$natural", 1)]))
    first = db.c.find_one(wanted, sort=[("b", -1), ("_id", 1)])
    changed = db.c.find_one_and_update(wanted, {"$set": {"b": -1}}, sort=[("b", -1), ("_id", 1)])
    assert changed == first
    assert db.c.find_one_and_delete(wanted, sort=[("b", -1), ("_id", 1)])["_id"] != first["_id"]


def test_branches_that_overlap_give_each_document_once(db):
    db.c.create_index([("a", 1), ("b", 1)])
    db.c.insert_many([{"_id": at, "a": at % 4, "b": at} for at in range(40)])
    for branches in (
        [{"a": 1, "b": {"$gt": 5}}, {"a": 1, "b": {"$lt": 25}}], [{"a": {"$in": [1, 2]}}, {"a": {"$in": [1, 3]}}],
        [{"a": 1}, {"a": 1, "b": {"$gt": 3}}], [{"a": {"$in": [0, 1]}, "b": 4}, {"a": {"$in": [0, 2]}, "b": {"$gte": 4}}],
    ):
        for direction in (1, -1):
            plain = sorted((row["_id"] for row in db.c.find({"$or": branches}).hint([("$natural", 1)])), reverse=direction < 0)
            assert [row["_id"] for row in db.c.find({"$or": branches}).sort("b", direction)] == plain, branches
            assert [row["_id"] for row in db.c.find({"$or": branches}).sort("b", direction).skip(3).limit(5)] == plain[3:8], branches


def test_an_or_of_very_many_branches_with_a_sort_is_bounded(db):
    db.c.create_index([("a", 1), ("b", 1), ("c", 1)])
    db.c.create_index("b")
    db.c.insert_many([{"_id": at, "a": at, "b": at, "c": -at} for at in range(50)])
    branches = [{"a": {"$in": list(range(at, at + 14))}, "b": {"$in": list(range(14))}} for at in range(3000)]
    assert [row["_id"] for row in db.c.find({"$or": branches}).sort("c", 1)] == list(range(13, -1, -1))
    assert [row["_id"] for row in db.c.find({"$or": [{"a": at, "b": at} for at in range(20_000)]}).sort("c", 1).limit(3)] == [49, 48, 47]


def test_the_returned_key_of_a_merge_is_the_one_that_was_found(db):
    db.c.create_index([("a", 1), ("b", 1)])
    db.c.insert_many([{"a": [0, 2], "b": 5}, {"a": 1, "b": 6}])
    found = db.command({"find": "c", "filter": {"a": {"$in": [1, 2]}}, "sort": {"b": 1}, "returnKey": True})
    assert found["cursor"]["firstBatch"] == [{"a": 2, "b": 5}, {"a": 1, "b": 6}]
