"""The benchmark lab from end to end against a real MongoDB: standalone, and as a replica set of one for transactions."""

import json
import os
import pathlib
import subprocess

import pytest

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


@pytest.mark.parametrize("arguments", [LINKBENCH, BUSY])
def test_links_and_counts_change_together_in_transactions_of_a_session(replica_set, tmp_path, arguments):
    printed, files = bench(replica_set, tmp_path, f"{arguments} --txn session")
    assert " 0 wrong" in printed and not files[-1]["flagged"], printed


@pytest.mark.parametrize(("level", "part"), [("session", "replica set"), ("tokumx", "beginTransaction")])
def test_a_level_of_transactions_that_a_standalone_server_has_not_is_refused(oracle_server, tmp_path, level, part):
    printed, _ = bench(oracle_server, tmp_path, f"linkbench --nodes 10 --txn {level}", expected=2)
    assert "--txn" in printed and part in printed
