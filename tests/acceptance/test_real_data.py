"""Real data, imported as a user would, indexed and asked: both servers give the same answers.

1. `cities` (171,075 documents, with two generated fields) goes into Pando by `pando import` into the running server,
   `countries` as it is; MongoDB gets the same by PyMongo.
2. Indexes are built on both, then every question of questions.py is asked without a hint and with each hint.
3. The import command itself: its formats, its count, its complaints.
"""

import csv
import gzip
import json
import subprocess

import pytest

import questions
from both import Both, Order
from oracle import SHARED
from server import PANDO, Server

CITIES = SHARED / "data/cities.jsonl.gz"
COUNTRIES = SHARED / "data/countries.jsonl.gz"


def run_import(*arguments):
    return subprocess.run([PANDO, "import", *map(str, arguments)], capture_output=True, text=True, check=False, timeout=280)


def documents_of(path):
    with gzip.open(path, "rt") as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def world(servers, pando_server, tmp_path_factory):
    both = servers.on("world")
    cities = documents_of(CITIES)
    for city in cities:
        city["key"] = f"{city['country']}-{city['_id']:06}"
        if city["_id"] % 7 == 0:
            city["rank"] = city["_id"] * 7919 % 171_091
    path = tmp_path_factory.mktemp("import") / "cities.jsonl.gz"
    with gzip.open(path, "wt", compresslevel=1) as lines:
        lines.writelines(json.dumps(city, ensure_ascii=False) + "\n" for city in cities)
    for file, collection, count in [(path, "cities", 171_075), (COUNTRIES, "countries", 250)]:
        done = run_import(file, "--db", "world", "--collection", collection, "--uri", pando_server.uri)
        assert done.returncode == 0, done.stderr
        assert f"{count} documents imported, 0 lines unreadable, 0 documents refused" in done.stdout
    database = both.oracle["world"]
    database.cities.insert_many(cities)
    database.countries.insert_many(documents_of(COUNTRIES))
    both.same({"createIndexes": "cities", "indexes": questions.CITY_INDEXES})
    both.same({"createIndexes": "countries", "indexes": questions.COUNTRY_INDEXES})
    yield both
    for client in (both.oracle, both.pando):
        client.drop_database("world")


def ask(both: Both, question, order):
    request = question.request
    if "find" in request or "aggregate" in request:
        both.rows(request, order=order)
    else:
        both.same(request)


def order_of(question):
    # Cities are inserted in the order of their _id, countries are not; without a sort the choice of the plan decides.
    return Order.DEFINED if question.is_ordered or "aggregate" in question.request else Order.FREE


@pytest.mark.parametrize("question", questions.CITIES + questions.COUNTRIES, ids=str)
def test_answers_are_the_same_whatever_index_is_used(world, question):
    ask(world, question, order_of(question))
    for hint in question.hints:
        hinted = questions.Question({**question.request, "hint": hint})
        # An index gives equal keys in the order of insertion in MongoDB, of the primary key in Pando.
        same_order = question.is_ordered or "find" in question.request and question.request["find"] == "cities"
        ask(world, hinted, Order.DEFINED if same_order else Order.FREE)


@pytest.mark.parametrize("collection", ["cities", "countries"])
def test_all_documents_are_the_same_to_the_byte(world, collection):
    assert world.rows({"find": collection, "sort": {"_id": 1}}) is not None


def test_the_unique_index_refuses_what_is_there_already(world):
    world.fails({"insert": "cities", "documents": [{"_id": -1, "key": "AD-000001"}]}, 11000)
    world.fails({"update": "cities", "updates": [{"q": {"_id": 1}, "u": {"$set": {"key": "AD-000002"}}}]}, 11000)


# ---- pando import


def test_import_reports_bad_lines_by_number_and_imports_the_rest(servers, pando_server, tmp_path):
    file = tmp_path / "bad.jsonl"
    file.write_text('{"_id": 1}\nnot json\n\n{"_id": 2, "d": {"$date": "2020-01-01T00:00:00Z"}}\n[1]\n{"_id": 1}\n{"_id": 3}\n{"_id"')
    done = run_import(file, "--db", "imported", "--collection", "bad", "--uri", pando_server.uri)
    assert done.returncode == 1
    assert "3 documents imported, 3 lines unreadable, 1 document refused" in done.stdout, done.stdout
    for number in (2, 5, 6, 8):
        assert f"bad.jsonl:{number}: " in done.stderr, done.stderr
    database = servers.pando["imported"]
    assert [found["_id"] for found in database.bad.find().sort("_id")] == [1, 2, 3]
    assert database.bad.find_one({"_id": 2})["d"].year == 2020
    servers.pando.drop_database("imported")


def test_import_reads_an_array_of_documents_and_csv(servers, pando_server, tmp_path):
    countries = documents_of(COUNTRIES)[:50]
    array = tmp_path / "countries.json"
    array.write_text(json.dumps(countries, indent=1))
    table = tmp_path / "countries.csv"
    with open(table, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["_id", "name", "quoted"])
        rows.writerows([at, country["name"]["common"], f'a "quote", a comma\nand a line {at}'] for at, country in enumerate(countries))
    for file, collection in [(array, "fromarray"), (table, "fromcsv")]:
        done = run_import(file, "--db", "imported", "--collection", collection, "--uri", pando_server.uri)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "50 documents imported" in done.stdout
    database = servers.pando["imported"]
    assert list(database.fromarray.find().sort("_id")) == sorted(countries, key=lambda country: country["_id"])
    row = database.fromcsv.find_one({"name": countries[7]["name"]["common"]})
    assert row["quoted"] == 'a "quote", a comma\nand a line 7'
    servers.pando.drop_database("imported")


def test_import_into_a_folder_is_there_when_a_server_opens_it(tmp_path):
    folder = tmp_path / "data"
    done = run_import(COUNTRIES, "--db", "world", "--collection", "countries", "--data", folder)
    assert done.returncode == 0 and "250 documents imported" in done.stdout, done.stdout + done.stderr
    server = Server(folder).start()
    try:
        with server.client() as client:
            assert list(client.world.countries.find().sort("_id")) == sorted(
                documents_of(COUNTRIES), key=lambda country: country["_id"])
    finally:
        assert server.stop() == 0, server.log()


def test_import_says_what_is_wrong_when_nothing_can_be_imported(pando_server, tmp_path):
    missing = run_import(tmp_path / "missing.jsonl", "--db", "a", "--collection", "b", "--uri", pando_server.uri)
    assert missing.returncode != 0 and "missing.jsonl" in missing.stderr
    nobody = run_import(COUNTRIES, "--db", "a", "--collection", "b", "--uri", "mongodb://127.0.0.1:1")
    assert nobody.returncode != 0 and nobody.stderr.strip()
    truncated = tmp_path / "cut.jsonl.gz"
    truncated.write_bytes(COUNTRIES.read_bytes()[:60_000])
    cut = run_import(truncated, "--db", "imported", "--collection", "cut", "--uri", pando_server.uri)
    assert cut.returncode != 0 and "cut.jsonl.gz" in cut.stderr
