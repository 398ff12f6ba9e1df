"""A workload: what its clients do, and what must hold afterwards. One module of `workloads/` for each."""

import dataclasses
import threading

from anomaly import Anomaly


@dataclasses.dataclass
class Settings:
    seed: int
    clients: int = 8
    seconds: float = 1.0
    kills: int = 0
    breaks: bool = False
    builds: bool = False
    level: str = "snapshot"
    order: str = "realtime"
    read_concerns: tuple = ("snapshot",)
    strict_statements: bool = True


class Workload:
    # Whether connections break at random on the way to the server.
    breaks_connections = False

    def __init__(self, settings):
        self.settings = settings
        self.database = f"histories_{settings.seed}"
        self.seen = []
        # The broken connections of the run, in words.
        self.trouble = ""
        self.lock = threading.Lock()
        self.is_over = threading.Event()

    def prepare(self, db):
        """Makes collections, indexes and the first documents."""

    def step(self, client):
        """Does one thing, which a client repeats until the time is over."""
        raise NotImplementedError

    def finish(self, db):
        """Looks at the end state, after all clients have ended."""

    def report(self, name, *facts):
        with self.lock:
            self.seen.append(Anomaly(name, [], list(facts)))

    def anomalies(self):
        return self.seen

    def summary(self):
        """A few words about how much was done."""
        return ""
