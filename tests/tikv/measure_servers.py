"""The processor time that the servers of a store take for an operation, with one server and with two: the arithmetic of what two serve.

Two servers on machines of their own serve twice what one of them serves of its processor, as long as the nodes do. Here they share the
machine with the nodes and the clients, so that their processor time is counted and no rate. Each server has as many clients in both cases,
and the time that a server takes at rest is taken off an operation and off its processor.

    PANDO_TIKV_PD=127.0.0.1:32379 PANDO=target/debug/pando python tests/tikv/measure_servers.py
"""

import os
import pathlib
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from test_requests import Alone, prepare  # noqa: E402
from test_servers import Pair, end  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")
CLIENTS, ROUNDS, SECONDS = 2, 5, 4


def processor_seconds(servers):
    """The processor time of servers so far."""
    total = 0
    for server in servers:
        fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def at_rest(servers, seconds=10):
    """The processor time that each of the servers takes of a second without clients."""
    before = processor_seconds(servers)
    time.sleep(seconds)
    return (processor_seconds(servers) - before) / seconds / len(servers)


def load(servers, operation, rest, options):
    """Clients at all servers for a time. Gives the processor time of an operation, without that of servers at rest."""
    over, done = time.monotonic() + SECONDS, []

    def run(server, at):
        with server.client(**options) as client:
            number = 0
            while time.monotonic() < over:
                operation(client, at, number)
                number += 1
            done.append(number)

    before, began = processor_seconds(servers), time.monotonic()
    threads = [threading.Thread(target=run, args=(servers[at % len(servers)], at)) for at in range(CLIENTS * len(servers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    used = processor_seconds(servers) - before
    return (used - rest * len(servers) * (time.monotonic() - began)) / sum(done)


def read(client, at, number):
    assert client.shop.c.find_one({"_id": (at * 25 + number) % 100})


def insert(client, at, number):
    client.shop.c.insert_one({"_id": f"{at}-{time.monotonic_ns()}", "a": number, "b": at, "c": f"x{number}"})


def compared(alone, pair, rounds=ROUNDS):
    """By operation: the seconds of processor time with one server and with two, and what two serve by what one serves, for each round."""
    for stores in (alone, pair):
        with stores.servers[0].client() as client:
            prepare(client, "c")
    time.sleep(2)
    rests = [at_rest(stores.servers) for stores in (alone, pair)]
    print(f"at rest, each server: {rests[0]:.3f} of a processor with one, {rests[1]:.3f} with two")
    found = {}
    for name, operation, options in (
        ("read", read, {}),
        # Of several servers only such reads take no timestamp.
        ("nearest_read", read, {"readPreference": "nearest"}),
        ("driver_insert", insert, {}),
        ("insert", insert, {"retryWrites": False}),
    ):
        for _ in range(rounds):
            one, two = (load(stores.servers, operation, rest, options) for stores, rest in zip((alone, pair), rests))
            ratio = 2 * ((1 - rests[1]) / two) / ((1 - rests[0]) / one)
            found.setdefault(name, []).append((1e3 * one, 1e3 * two, ratio))
    return found


def main():
    with tempfile.TemporaryDirectory() as folder:
        alone, pair = Alone(pathlib.Path(folder)), Pair(pathlib.Path(folder))
        for name, samples in compared(alone, pair).items():
            one, two, ratio = (statistics.median(values) for values in zip(*samples))
            print(f"| {name} | {one:.2f} ms | {two:.2f} ms | {ratio:.2f} |", flush=True)
        end(alone)
        end(pair)


if __name__ == "__main__":
    main()
