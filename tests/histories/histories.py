#!/usr/bin/env python3
"""Runs workloads from many clients against a server, and checks what they saw. See README.md.

    histories.py --runs 50 --workload list-append --clients 8 --kill
    histories.py --workload bank --seed 4711        repeats one run: the same choices of each client, in new schedules

Ends with 1 where a run has an anomaly, with 2 where the server has no transactions.
"""

import argparse
import pathlib
import random
import sys
import time

for folder in ("acceptance", "python"):
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / folder))

import edn  # noqa: E402
from agreement import disagreements  # noqa: E402
from anomaly import Anomaly  # noqa: E402
from clients import Client, IndexBuilder, persist  # noqa: E402
from cycles import LEVELS, ORDERS  # noqa: E402
from mutations import undetected  # noqa: E402
from proxy import Proxy  # noqa: E402
from servers import MongoDB, NoTransactions, Pando, client_of, require_transactions  # noqa: E402
from workload import Settings  # noqa: E402
from workloads.bank import Bank  # noqa: E402
from workloads.batches import Batches  # noqa: E402
from workloads.causal import Causal  # noqa: E402
from workloads.linearizable import Linearizable  # noqa: E402
from workloads.list_append import ListAppend  # noqa: E402
from workloads.new_collections import NewCollections  # noqa: E402
from workloads.register import Register  # noqa: E402
from workloads.retryable import Retryable  # noqa: E402
from workloads.skew import Skew  # noqa: E402
from workloads.snapshot_sessions import SnapshotSessions  # noqa: E402

WORKLOADS = {
    workload.name: workload
    for workload in (
        ListAppend,
        Register,
        NewCollections,
        Retryable,
        Bank,
        Batches,
        Skew,
        Causal,
        Linearizable,
        SnapshotSessions,
    )
}
KILLS = 2
JOIN_SECONDS = 90


def play(workload, server, sabotage=None, proxy_class=Proxy):
    """Plays a workload on a running server; gives the anomalies. Sabotage falsifies the end state, to test the test."""
    settings = workload.settings
    proxy = proxy_class(server.port, settings.seed) if settings.breaks or workload.breaks_connections else None
    port, options = (proxy.port, "directConnection=true") if proxy else (server.port, server.uri_options)
    with client_of(server.port, server.uri_options) as quiet:
        workload.prepare(quiet[workload.database])
    # A client of PyMongo closes all its connections when one of them breaks, so each of ours has its own.
    clients = [Client(workload, client_of(port, options), number, settings.seed) for number in range(settings.clients)]
    builders = (
        [IndexBuilder(workload, client_of(server.port, server.uri_options), settings.seed)] if settings.builds else []
    )
    stuck = work([*clients, *builders], server, proxy, settings)
    if stuck:
        return stuck
    # Connections from before a kill are of no use.
    with client_of(server.port, server.uri_options) as quiet:
        # The abort of a transaction may have been lost on the way, and `validate` would wait for its end.
        quiet.admin.command("killSessions", [id for client in clients for id in client.session_ids])
        db = quiet[workload.database]
        if sabotage:
            sabotage(db)
        workload.finish(db)
        anomalies = workload.anomalies() + persist(lambda: disagreements(db))
        quiet.drop_database(workload.database)
    for client in [*clients, *builders]:
        client.mongo.close()
    if proxy:
        proxy.stop()
        workload.trouble = f", {proxy.broken} connections broken, {proxy.held} replies kept back over a kill"
    return [*surprises([*clients, *builders]), *anomalies]


def work(threads, server, proxy, settings):
    """Lets all threads work, and kills the server in the middle; gives the threads that did not end.

    Only the time counts in which the server is there.
    """
    chance = random.Random(f"kills {settings.seed}")
    for thread in threads:
        thread.start()
    for _ in range(settings.kills):
        time.sleep(chance.uniform(0.3, 1.7) * settings.seconds / (settings.kills + 1))
        if proxy:
            proxy.kill(server)
        else:
            server.kill()
            server.start()
    time.sleep(settings.seconds / (settings.kills + 1))
    threads[0].workload.is_over.set()
    for thread in threads:
        thread.join(JOIN_SECONDS)
    return [Anomaly("stuck client", [], [f"{thread.name} has not ended"]) for thread in threads if thread.is_alive()]


def surprises(threads):
    for thread in threads:
        if thread.surprise is not None:
            yield Anomaly("surprise", [], [f"{thread.name}: {thread.surprise!r}"])
    if not any(thread.steps for thread in threads):
        yield Anomaly("no work", [], ["no client came to do anything"])


def happens(how_often, turn):
    return how_often == "always" or how_often == "sometimes" and turn % 2 == 1


def trouble_of(settings):
    words = {"--kill": settings.kills, "--break": settings.breaks, "--build": settings.builds}
    return "".join(f" {word}" for word, given in words.items() if given)


class Runner:
    """Runs seed after seed. The server lives as long as it is whole, for all runs."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.server = None
        self.failed = 0
        self.corrupted = set()
        self.names = list(WORKLOADS) if arguments.workload == "all" else [arguments.workload]

    def run_all(self):
        began = time.monotonic()
        self.start_server()
        try:
            with client_of(self.server.port) as client:
                require_transactions(client)
            for number in range(self.arguments.runs):
                self.run_one(self.names[number % len(self.names)], self.arguments.seed + number, number)
        finally:
            self.stop_server()
        print(f"{self.arguments.runs} runs in {time.monotonic() - began:.0f} s, {self.failed} failed")
        return 1 if self.failed else 0

    def start_server(self):
        if self.arguments.peer == "oracle":
            self.server = MongoDB().start()
        else:
            self.server = Pando(self.arguments.engine, self.arguments.server_arguments.split()).start()

    def stop_server(self):
        for fault in self.server.stop():
            self.failed += 1
            print(f"FAILED at the end: {fault}")

    def settings(self, seed, number):
        arguments = self.arguments
        turn = number // len(self.names)
        kills = KILLS if happens(arguments.kill, turn) else 0
        breaks, builds = happens(arguments.breaks, turn // 2), happens(arguments.builds, turn // 4)
        return Settings(
            seed=seed,
            clients=arguments.clients,
            seconds=arguments.seconds,
            kills=kills,
            breaks=breaks,
            builds=builds,
            level=arguments.level,
            order=arguments.order,
            read_concerns=self.server.read_concerns[arguments.level],
            strict_statements=self.server.strict_statements,
        )

    def run_one(self, name, seed, number):
        settings = self.settings(seed, number)
        workload = WORKLOADS[name](settings)
        began = time.monotonic()
        anomalies = play(workload, self.server)
        if not anomalies:
            anomalies = self.missed_corruptions(workload)
        done = f"{workload.summary()}{workload.trouble}, {time.monotonic() - began:.1f} s"
        print(f"{name} seed {seed}{trouble_of(settings)}: {done}", flush=True)
        if anomalies:
            self.failed += 1
            self.tell(workload, anomalies)

    def missed_corruptions(self, workload):
        """Corrupts the first good history of each model in every way, all of which the checker must find."""
        model = getattr(workload, "model", None)
        if model is None or model in self.corrupted:
            return []
        self.corrupted.add(model)
        missed, _ = undetected(workload.history, model, workload.settings.seed, self.arguments.level)
        return [Anomaly("the checker is blind", [], [fact]) for fact in missed]

    def tell(self, workload, anomalies):
        settings, arguments = workload.settings, self.arguments
        print(
            f"FAILED: {len(anomalies)} anomalies. Again: histories.py --workload {workload.name} --seed {settings.seed}"
            f" --clients {settings.clients} --seconds {settings.seconds}"
            f" --level {settings.level} --order {settings.order}{trouble_of(settings)}"
        )
        for anomaly in anomalies[: arguments.show]:
            print(anomaly)
        if hasattr(workload, "history"):
            arguments.out.mkdir(parents=True, exist_ok=True)
            path = arguments.out / f"{workload.name}-{settings.seed}.edn"
            edn.write(workload.history, path)
            print(f"    history: {path}", flush=True)


def add_frequency(parser, option, name, meaning):
    """An option for a disturbance: in each run (also without a value), in some, or in none."""
    frequencies = ["always", "sometimes", "never"]
    parser.add_argument(option, dest=name, nargs="?", const="always", default="never", choices=frequencies, help=meaning)


def parsed_arguments():
    parser = argparse.ArgumentParser(description="Histories of many clients, checked.")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--workload", choices=["all", *WORKLOADS], default="all")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=1.0, help="how long the clients of a run work")
    parser.add_argument("--seed", type=int, default=None, help="of the first run; each further run has the next one")
    add_frequency(parser, "--kill", "kill", "kill -9 in the middle of each run, or in every second round of the workloads")
    add_frequency(
        parser,
        "--break",
        "breaks",
        "break connections before requests and before replies; the workload retryable does so anyway",
    )
    add_frequency(parser, "--build", "builds", "build and drop indexes beside the transactions")
    parser.add_argument("--level", choices=LEVELS, default="snapshot")
    parser.add_argument("--order", choices=ORDERS, default="realtime")
    parser.add_argument(
        "--peer",
        choices=["pando", "oracle"],
        default="pando",
        help="the server; a real MongoDB checks the tests themselves",
    )
    parser.add_argument("--engine", default="betree")
    parser.add_argument("--server-arguments", default="", help="further arguments of pando serve")
    parser.add_argument(
        "--out", type=pathlib.Path, default=pathlib.Path("target/histories"), help="where histories of failed runs go"
    )
    parser.add_argument("--show", type=int, default=5, help="how many anomalies of a run are printed")
    arguments = parser.parse_args()
    if arguments.engine == "memory" and arguments.kill != "never":
        parser.error("the engine memory keeps nothing over a kill")
    if arguments.seed is None:
        arguments.seed = random.randrange(10**9)
    return arguments


def main():
    try:
        return Runner(parsed_arguments()).run_all()
    except NoTransactions as error:
        print(f"FAILED: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
