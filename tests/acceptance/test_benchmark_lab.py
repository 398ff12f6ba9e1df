"""The benchmark lab from end to end against a real MongoDB: standalone, and as a replica set of one for transactions."""

import json
import os
import pathlib
import subprocess
import urllib.parse

import pytest
from pymongo import MongoClient

from oracle import Oracle

BENCH = pathlib.Path(os.environ["PANDO_BENCH"])
SMALL = "--warmup 0 --no-ceiling"
LINKBENCH = (
    "linkbench -l -r --max-degree 40 -D maxid1=301 -D requesters=8 -D requests=150 -D loaders=2 -D loader_chunk_size=100 "
    f"-D range_limit=20 -D getlinklist_history=20 {SMALL}"
)
# All clients write the same ten nodes: counts go wrong at once if a write of a link is not what it should be.
BUSY = (
    "linkbench -l -r --max-degree 10 -D maxid1=11 -D requesters=16 -D requests=100 -D loaders=2 -D addlink=40 "
    f"-D deletelink=40 -D updatelink=20 {SMALL}"
)


def bench(oracle, folder, arguments, expected=0):
    command = [BENCH, *arguments.split(), "--uri", f"mongodb://127.0.0.1:{oracle.port}", "--out", folder]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ended.returncode == expected, ended.stdout + ended.stderr
    files = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    return ended.stdout + ended.stderr, files


def run_of(files, workload):
    """The file of the only run of a workload; its load has one, too."""
    [run] = [file for file in files if file["workload"] == workload]
    return run


@pytest.fixture(autouse=True)
def nothing_is_left(oracle_server):
    """Other tests list the databases of this server, and compare."""
    yield
    with oracle_server.client() as client:
        for name in client.list_database_names():
            if name not in ("admin", "config", "local"):
                client.drop_database(name)


@pytest.fixture(scope="module")
def replica_set():
    oracle = Oracle().start_replica_set()
    yield oracle
    oracle.stop()


@pytest.mark.parametrize("workload", ["linkbench --nodes 10", "sysbench --collections 1 --docs 10"])
def test_transactions_of_tokumx_are_refused_where_the_server_has_none(oracle_server, workload):
    arguments = f"{workload} --txn tokumx --uri mongodb://127.0.0.1:{oracle_server.port}".split(" ")
    ended = subprocess.run([BENCH, *arguments], capture_output=True, text=True)
    assert ended.returncode == 2 and "--txn" in ended.stderr and "beginTransaction" in ended.stderr, ended


@pytest.mark.parametrize(
    ("arguments", "verified"),
    [
        (f"point --collections 2 --docs 500 --clients 4 --duration 1 {SMALL}", None),
        (f"sysbench --collections 2 --docs 500 --clients 4 --duration 2 {SMALL}", "1000 checked, 0 wrong"),
        (f"kv --rows 1000 --reads 400 --rounds 3 --clients 7 --shuffle-load {SMALL}", None),
        (
            f"iibench --docs 20030 --batch 100 --clients 3 --queries 40 --query-interval 1 --query-begin 500 --guided-queries {SMALL}",
            "index price_dateandtime_customerid: 20030 checked, 0 wrong",
        ),
        (f"{LINKBENCH} --txn none", " 0 wrong"),
        (f"{LINKBENCH} --txn two-phase", " 0 wrong"),
        (f"{BUSY} --txn none", " 0 wrong"),
        (f"{BUSY} --txn two-phase", " 0 wrong"),
    ],
)
def test_each_workload_is_a_measurement_of_a_standalone_server(oracle_server, tmp_path, arguments, verified):
    printed, files = bench(oracle_server, tmp_path, arguments)
    run = files[-1]
    assert not run["flagged"] and run["figures"]["operations"] > 0, printed
    assert verified is None or verified in printed, printed


def test_the_statements_of_a_transaction_are_one_in_a_session(replica_set, tmp_path):
    # Few documents: clients meet, and their transactions are done again.
    mix = "--points 2 --simple-ranges 1 --sum-ranges 1 --order-ranges 1 --distinct-ranges 1 --range-size 5"
    arguments = f"sysbench --collections 1 --docs 60 --clients 6 --duration 3 {mix} {SMALL} --txn session"
    printed, files = bench(replica_set, tmp_path, arguments)
    run = run_of(files, "sysbench")
    figures = run["figures"]
    assert "60 checked, 0 wrong" in printed and not run["flagged"], printed
    assert figures["operations"] > 0 and figures["retried"] > 0 and figures["failed"] == 0, printed
    # Nobody sees a transaction that is half done: every document is there.
    assert figures["missed"] == 0, printed


@pytest.mark.parametrize("arguments", [LINKBENCH, BUSY])
def test_links_and_counts_change_together_in_transactions_of_a_session(replica_set, tmp_path, arguments):
    printed, files = bench(replica_set, tmp_path, f"{arguments} --txn session")
    assert " 0 wrong" in printed and not files[-1]["flagged"], printed


def test_a_checkpoint_is_forced_where_that_is_asked_for(oracle_server, tmp_path):
    arguments = "load --collections 1 --docs 20000 --load-connections 1"
    bench(oracle_server, tmp_path, arguments)
    arguments = "point --collections 1 --docs 20000 --clients 1 --duration 1 --warmup 0 --no-ceiling --load no --force-checkpoint"
    printed, files = bench(oracle_server, tmp_path, arguments)
    why = run_of(files, "point")["why"]
    assert why["sizes_written"]["data"] > 0 and "a checkpoint was forced before the run" in printed, printed
    assert "size after a forced checkpoint: " in printed


def test_a_graph_of_another_size_than_nodes_is_refused(oracle_server, tmp_path):
    graph = f"linkbench --max-degree 20 --clients 2 -D requests=50 {SMALL}"
    bench(oracle_server, tmp_path, f"{graph} --nodes 300 --load only")
    for nodes in (100, 1000):
        printed, _ = bench(oracle_server, tmp_path, f"{graph} --nodes {nodes} --load no", expected=2)
        assert "holds a graph of about 300 nodes" in printed and "--nodes" in printed, printed
    printed, _ = bench(oracle_server, tmp_path, f"{graph} --nodes 300 --load no")
    assert " 0 wrong" in printed, printed


def test_the_servers_own_checkpoints_stand_beside_the_timeline(oracle_server, tmp_path):
    # The oracle of the tests writes one every five seconds.
    arguments = "sysbench --collections 1 --docs 2000 --clients 2 --duration 12 --warmup 0 --interval 4 --no-ceiling"
    printed, files = bench(oracle_server, tmp_path, arguments)
    figures = run_of(files, "sysbench")["figures"]
    checkpoints = figures["checkpoints"]
    assert checkpoints and all(one["from_s"] <= one["to_s"] for one in checkpoints), printed
    marked = [place for place, second in enumerate(figures["timeline"]) if second["checkpoint"]]
    assert marked and all(second["behind_bytes"] is not None for second in figures["timeline"]), printed
    assert all(any(one["from_s"] < place + 1 and one["to_s"] >= place for one in checkpoints) for place in marked)
    lines = [line.split("\t") for line in next(tmp_path.glob("sysbench-[0-9]*.tps.tsv")).read_text().splitlines()]
    ckpt = lines[0].index("ckpt")
    assert sum(int(line[ckpt]) for line in lines[1:]) == len(marked)
    assert "under way, says the server" in printed
    subprocess.run([BENCH, "report", tmp_path], check=True, capture_output=True)
    assert 'class="checkpoint"' in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(("level", "part"), [("session", "replica set"), ("tokumx", "beginTransaction")])
def test_a_level_of_transactions_that_a_standalone_server_has_not_is_refused(oracle_server, tmp_path, level, part):
    for workload in ("linkbench --nodes 10", "sysbench --collections 1 --docs 10"):
        printed, _ = bench(oracle_server, tmp_path, f"{workload} --txn {level}", expected=2)
        assert "--txn" in printed and part in printed


# Characters that a URI has to encode, and characters that SASLprep changes.
PASSWORD = "p@ss:w/rd%\u2168"
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-1")


@pytest.fixture(scope="module")
def guarded():
    """A server that lets only users in: one for each mechanism, one for both, one whom another database knows."""
    oracle = Oracle().start_guarded()
    with oracle.client() as client:
        client.admin.command("createUser", "root", pwd="root", roles=["root"])
    with MongoClient("127.0.0.1", oracle.port, username="root", password="root") as client:
        for mechanism in MECHANISMS:
            client.admin.command("createUser", mechanism, pwd=PASSWORD, roles=["root"], mechanisms=[mechanism])
        client.admin.command("createUser", "a user,=", pwd=PASSWORD, roles=["root"])
        client.users.command("createUser", "other", pwd=PASSWORD, roles=[{"role": "root", "db": "admin"}])
    yield oracle
    oracle.stop()


def uri_of(oracle, user, password, behind=""):
    user, password = (urllib.parse.quote(part, safe="") for part in (user, password))
    return f"mongodb://{user}:{password}@127.0.0.1:{oracle.port}{behind}"


def login(uri, folder, arguments="point --collections 1 --docs 200 --clients 3 --duration 1 --warmup 0 --no-ceiling", variable=False):
    command = [BENCH, *arguments.split(), "--out", folder] + ([] if variable else ["--uri", uri])
    environment = dict(os.environ, **({"PANDO_BENCH_URI": uri} if variable else {}))
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)


def nothing_of(password, ended, folder):
    """No password stands in what was printed or written, encoded or not."""
    texts = [ended.stdout, ended.stderr, *(path.read_text() for path in folder.rglob("*") if path.is_file())]
    return not any(form in text for text in texts for form in (password, urllib.parse.quote(password, safe="")))


@pytest.mark.parametrize(
    ("user", "behind", "variable"),
    [
        ("SCRAM-SHA-256", "", False),
        ("SCRAM-SHA-1", "/", False),
        ("a user,=", "/?authMechanism=SCRAM-SHA-1", False),
        ("a user,=", "/admin?authMechanism=SCRAM-SHA-256", True),
        ("other", "/?authSource=users", False),
        ("other", "/users", True),
    ],
)
def test_users_log_in_and_leave_no_password_behind(guarded, tmp_path, user, behind, variable):
    ended = login(uri_of(guarded, user, PASSWORD, behind), tmp_path, variable=variable)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert any(tmp_path.glob("point-*.json")) and nothing_of(PASSWORD, ended, tmp_path)


@pytest.mark.parametrize(
    ("user", "password", "behind", "part"),
    [
        ("SCRAM-SHA-256", "wr0ng-secret", "", "Authentication failed"),
        ("SCRAM-SHA-1", "wr0ng-secret", "", "Authentication failed"),
        ("nobody", "wr0ng-secret", "", "Authentication failed"),
        ("other", "wr0ng-secret", "", "in the database `admin`"),
        ("SCRAM-SHA-1", "wr0ng-secret", "/?authMechanism=SCRAM-SHA-256", "SCRAM-SHA-256"),
    ],
)
def test_a_wrong_login_is_told_at_once(guarded, tmp_path, user, password, behind, part):
    ended = login(uri_of(guarded, user, password, behind), tmp_path)
    assert ended.returncode == 2 and "refused the login" in ended.stderr and part in ended.stderr, ended.stderr
    assert "authSource" in ended.stderr and nothing_of(password, ended, tmp_path)


def test_no_login_where_one_is_needed_is_told(guarded, tmp_path):
    ended = login(f"mongodb://127.0.0.1:{guarded.port}", tmp_path)
    assert ended.returncode == 2 and "requires authentication" in ended.stderr, ended.stderr

