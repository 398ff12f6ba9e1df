"""The rows of docs/measurements.md about TiKV: a server over a cluster beside the bare client, and two servers beside one.

    make measure-tikv          starts the cluster, builds the programs, and runs this; PARTS="processor load" chooses

The bare client (engines/tikv/examples/bare_client.rs) is the crate `tikv-client` alone with the same settings, keys, gets and puts.
Both share two cores with the cluster and with the driver, so that their processor time is compared, and rates only where no driver limits.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "measurements"))
sys.path.insert(0, str(HERE.parent / "python"))
sys.path.insert(0, str(HERE))
import measure_servers  # noqa: E402
import page  # noqa: E402
import raw  # noqa: E402
import test_requests  # noqa: E402
from pymongo.errors import PyMongoError  # noqa: E402
from test_failures import cluster  # noqa: E402
from test_servers import Pair, end, side_by_side  # noqa: E402

BARE = os.environ.get("BARE_CLIENT", "target/release/examples/bare_client")
DRIVER = os.environ["PANDO_TIKV_PD"]
ROUNDS = int(os.environ.get("ROUNDS", "5"))
SECONDS = 4
CLIENTS = 2
# A failover: clients work for so long, and the node that leads their keys is killed after a while.
FAILOVERS, FAILOVER_SECONDS, KILLED_AFTER, RESTARTED_AFTER = 3, 20, 4, 14
FAILOVER_CLIENTS = 4
COUNTING_CLIENTS = 8


def begin_bare(work, clients, seconds):
    words = [BARE, "--pd", DRIVER, "--work", work, "--clients", str(clients), "--seconds", str(seconds)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def bare(work, clients=CLIENTS, seconds=SECONDS):
    """What the bare client has printed."""
    with begin_bare(work, clients, seconds) as process:
        printed = process.communicate()[0]
    assert process.returncode == 0, process.returncode
    return json.loads(printed)


def processor_ms(found):
    return 1e3 * found["processor_seconds"] / found["operations"]


def measure_requests(record):
    """The requests of an operation with one server."""
    with tempfile.TemporaryDirectory() as folder:
        alone = test_requests.Alone(pathlib.Path(folder))
        found = test_requests.measured(alone)
        end(alone)
    names = {"read": "point read by `_id`", "insert": "insert with three indexes", "transaction": "transaction of four updates"}
    for name, operation in names.items():
        requests = found[operation]
        # Rounded: the requests of a server at rest, which were taken off, differ from second to second.
        record.add(f"requests.{name}.timestamps", round(requests["get_timestamp"]))
        record.add(f"requests.{name}.gets", round(requests["kv_get"] + requests["kv_batch_get"] + requests["kv_scan"]))
        # The second commit, of the other keys, is sent after the answer.
        record.add(f"requests.{name}.writes", round(requests["kv_prewrite"] + min(1.0, requests["kv_commit"])))


def measure_processor(record):
    """The processor time of an operation, of the server and of the bare client by turns."""
    bare("fill")
    works = (
        ("read", "read", measure_servers.read, {}),
        ("insert", "insert", measure_servers.insert, {"retryWrites": False}),
        ("driver_insert", "insert", measure_servers.insert, {}),
    )
    with tempfile.TemporaryDirectory() as folder:
        alone = test_requests.Alone(pathlib.Path(folder))
        with alone.servers[0].client() as client:
            test_requests.prepare(client, "c")
        time.sleep(2)
        rest = measure_servers.at_rest(alone.servers)
        record.add("processor.rest_percent", 100 * rest)
        for name, work, operation, options in works:
            for _ in range(ROUNDS):
                record.add(f"processor.bare.{name}_ms", processor_ms(bare(work)))
                record.add(f"processor.pando.{name}_ms", 1e3 * measure_servers.load(alone.servers, operation, rest, options))
        end(alone)


def load_pando(server, clients):
    """Documents a second of clients that insert a thousand at once, into a new collection with three indexes."""
    name = f"load{time.monotonic_ns()}"
    with server.client() as client:
        for field in ("a", "b", "c"):
            client.shop[name].create_index(field)
    over, done, ready = time.monotonic() + SECONDS, [], []

    def run(at):
        with server.client() as client:
            step = 0
            while time.monotonic() < over:
                rows = [{"_id": f"{at}-{1000 * step + row:016}", "a": 1000 * step + row, "b": at, "c": f"x{row}"} for row in range(1000)]
                client.shop[name].insert_many(rows)
                step += 1
                ready.append(time.monotonic())
            done.append(1000 * step)

    began = time.monotonic()
    threads = [threading.Thread(target=run, args=(at,)) for at in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (max(ready) - began)


def measure_load(record):
    """Documents a second in batches of a thousand, by one client and by two."""
    with tempfile.TemporaryDirectory() as folder:
        alone = test_requests.Alone(pathlib.Path(folder))
        for _ in range(ROUNDS):
            for clients in (1, 2):
                found = bare("load", clients)
                record.add(f"load.bare.c{clients}_rate", found["operations"] / found["seconds"])
                record.add(f"load.pando.c{clients}_rate", load_pando(alone.servers[0], clients))
        end(alone)


def leading_node():
    """The number of the storage node that leads the region of the stores' keys."""
    ask = lambda path: json.load(urllib.request.urlopen(f"http://{DRIVER}/pd/api/v1/{path}"))  # noqa: E731
    # The placement driver has keys in groups of eight bytes with a mark behind each.
    key = (b"pando/ba\xff").hex().upper()
    regions = [region for region in ask("regions")["regions"] if region["start_key"] <= key and (not region["end_key"] or key < region["end_key"])]
    stores = {store["store"]["id"]: store["store"]["address"] for store in ask("stores")["stores"]}
    address = stores[regions[0]["leader"]["store_id"]]
    return int(address.rpartition(":")[2]) - int(os.environ.get("STORE_PORT", "32160"))


class Updates:
    """Clients of a server that update a document each, again and again, and the longest time between two successes of one."""

    def __init__(self, server):
        self.longest, self.failures, self.done = 0.0, 0, 0
        self.over = time.monotonic() + FAILOVER_SECONDS
        self.threads = [threading.Thread(target=self.run, args=(server, at)) for at in range(FAILOVER_CLIENTS)]
        for thread in self.threads:
            thread.start()

    def run(self, server, at):
        with server.client() as client:
            client.shop.c.find_one()
            last, step = time.monotonic(), 0
            while last < self.over:
                try:
                    client.shop.c.update_one({"_id": (at * 25 + step) % 100}, {"$inc": {"n": 1}})
                except PyMongoError:
                    self.failures += 1
                    time.sleep(0.01)
                    continue
                now = time.monotonic()
                self.longest, last = max(self.longest, now - last), now
                self.done += 1
                step += 1

    def join(self):
        for thread in self.threads:
            thread.join()


def measure_failover(record):
    """The longest time without a success of a client, when the node dies that leads its keys, of both at the same time."""
    bare("fill")
    with tempfile.TemporaryDirectory() as folder:
        alone = test_requests.Alone(pathlib.Path(folder))
        with alone.servers[0].client() as client:
            test_requests.prepare(client, "c")
        for _ in range(FAILOVERS):
            node = leading_node()
            peer, updates = begin_bare("update", FAILOVER_CLIENTS, FAILOVER_SECONDS), Updates(alone.servers[0])
            time.sleep(KILLED_AFTER)
            cluster("kill", node)
            time.sleep(RESTARTED_AFTER - KILLED_AFTER)
            cluster("restart", node)
            updates.join()
            found = json.loads(peer.communicate()[0])
            record.add("failover.bare.longest_ms", found["longest_ms"])
            record.add("failover.pando.longest_ms", 1e3 * updates.longest)
            record.add("failover.bare.failures", found["failures"])
            record.add("failover.pando.failures", updates.failures)
            print(f"node {node}: bare {found}, pando {updates.longest:.2f} s, {updates.failures} failures of {updates.done}", flush=True)
            time.sleep(10)
        end(alone)


def measure_two_servers(record):
    """What two servers serve by what one serves, by their processor time."""
    with tempfile.TemporaryDirectory() as folder:
        alone, pair = test_requests.Alone(pathlib.Path(folder)), Pair(pathlib.Path(folder))
        for name, samples in measure_servers.compared(alone, pair, ROUNDS).items():
            for one, two, ratio in samples:
                record.add(f"servers.{name}.one_ms", one)
                record.add(f"servers.{name}.two_ms", two)
                record.add(f"servers.{name}.ratio", ratio)
        end(alone)
        end(pair)


def count_pando(servers):
    """Updates a second of one counter by clients that are spread over servers, and how often a commit was refused for each."""
    over, done = time.monotonic() + SECONDS, []
    with servers[0].client() as client:
        client.shop.counter.replace_one({"_id": 0}, {"n": 0}, upsert=True)

    def conflicts():
        total = 0
        for server in servers:
            with server.client() as client:
                total += client.admin.command("serverStatus")["tikv"]["tikv"]["conflicts"]
        return total

    def run(server):
        with server.client() as client:
            count = 0
            while time.monotonic() < over:
                client.shop.counter.update_one({"_id": 0}, {"$inc": {"n": 1}})
                count += 1
            done.append(count)

    before, began = conflicts(), time.monotonic()
    side_by_side([lambda server=servers[at % len(servers)]: run(server) for at in range(COUNTING_CLIENTS)])
    rate = sum(done) / (time.monotonic() - began)
    with servers[0].client() as client:
        assert client.shop.counter.find_one()["n"] == sum(done)
    return rate, (conflicts() - before) / sum(done)


def measure_counter(record):
    """One document that all clients update: by one server, by two, and by the bare client with optimistic and pessimistic transactions."""
    bare("fill")
    with tempfile.TemporaryDirectory() as folder:
        alone, pair = test_requests.Alone(pathlib.Path(folder)), Pair(pathlib.Path(folder))
        for _ in range(ROUNDS):
            for name, stores in (("one", alone), ("two", pair)):
                rate, refused = count_pando(stores.servers)
                record.add(f"counter.{name}.rate", rate)
                record.add(f"counter.{name}.refused", refused)
            for name, work in (("optimistic", "counter"), ("pessimistic", "counter-locked")):
                found = bare(work, COUNTING_CLIENTS)
                record.add(f"counter.{name}.rate", found["operations"] / found["seconds"])
                record.add(f"counter.{name}.refused", found["failures"] / found["operations"])
        end(alone)
        end(pair)


PARTS = {
    "requests": measure_requests,
    "processor": measure_processor,
    "servers": measure_two_servers,
    "counter": measure_counter,
    # Before the load, which may split the region of the keys.
    "failover": measure_failover,
    "load": measure_load,
}


def main(chosen):
    record = raw.Record("tikv", "make measure-tikv")
    for part in chosen or PARTS:
        PARTS[part](record)
        for name, samples in record.figures.items():
            if name.startswith(part):
                print(name, raw.summary(samples), flush=True)
    # Parts alone are a trial.
    if not chosen:
        print(f"-> {record.write()}")
        page.write()


if __name__ == "__main__":
    main(sys.argv[1:])
