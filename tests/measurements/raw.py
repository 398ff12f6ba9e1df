"""The raw results of measurements: one JSON file for each measure, in docs/measurements.

A file names the machine, the commit, the date and the command. Each figure keeps its samples, one for each round.
Samples of one round belong together, so that a ratio is taken within a round. A timeline is a list of points for a
chart. Numbers are rounded to five digits: more is noise.
"""

import datetime
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTED = ROOT / "docs" / "measurements"
# MEASUREMENTS_FOLDER lets a trial run write elsewhere than into the documentation.
FOLDER = pathlib.Path(os.environ.get("MEASUREMENTS_FOLDER") or DOCUMENTED)
# A commit that changes only documentation measures the same code.
CODE = ("crates", "engines", "tools", "Cargo.toml", "Cargo.lock")


def rounded(value):
    return float(f"{value:.5g}")


def summary(samples):
    """Samples with their median and their spread: highest minus lowest, by the median."""
    middle = statistics.median(samples)
    spread = (max(samples) - min(samples)) / middle if middle else 0.0
    return {"samples": [rounded(sample) for sample in samples], "median": rounded(middle), "spread": rounded(spread)}


def git(*arguments):
    ended = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True)
    return ended.stdout.strip()


def commit():
    """The last commit that changed code, with a plus where the code has changes that are not committed.

    COMMIT names another one, for programs that were built elsewhere.
    """
    if os.environ.get("COMMIT"):
        return os.environ["COMMIT"]
    changed = git("status", "--porcelain", "--", *CODE)
    return git("log", "-1", "--format=%h", "--abbrev=7", "--", *CODE) + ("+" if changed else "")


def machine():
    """Processor, cores, memory, kernel and file system of this machine."""
    processor = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
    memory_kb = int(re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())[1])
    found = subprocess.run(["stat", "--file-system", "--format=%T", "."], capture_output=True, text=True)
    return {
        "processor": processor[1].strip() if processor else platform.machine(),
        "cores": os.cpu_count(),
        "memory_gb": round(memory_kb * 1024 / 1e9),
        "kernel": ".".join(platform.release().split("-")[0].split(".")[:2]),
        "file_system": "ext4" if found.stdout.startswith("ext2/ext3") else found.stdout.strip(),
    }


def late_rate(points):
    """The mean rate of the last fifth of a timeline's seconds."""
    last = [rate for _, rate in points[-max(1, len(points) // 5) :]]
    return sum(last) / len(last)


class Record:
    """The result of one measure."""

    def __init__(self, name, command):
        self.name = name
        self.command = command
        self.figures = {}
        self.timelines = {}
        self.setup = {}
        # The versions of libraries that told theirs, by the names that pages give them.
        self.versions = {}

    def add(self, name, value):
        """One more sample of a figure; without a value there is none."""
        if value is not None:
            self.figures.setdefault(name, []).append(float(value))

    def timeline(self, name, points):
        """Points (documents, documents per second) of a load, for a chart."""
        self.timelines[name] = [[round(documents), round(rate)] for documents, rate in points]

    def write(self, folder=None):
        """Writes the file of this measure, and gives its path."""
        content = {
            "measure": self.name,
            "command": self.command,
            "commit": commit(),
            "date": datetime.date.today().isoformat(),
            "machine": machine(),
            "figures": {name: summary(samples) for name, samples in self.figures.items()},
        }
        if self.versions:
            content["versions"] = self.versions
        if self.setup:
            content["setup"] = self.setup
        if self.timelines:
            content["timelines"] = self.timelines
        path = pathlib.Path(folder or FOLDER) / f"{self.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(content))
        return path


def text(content):
    """JSON with lists of numbers on one line each, which keeps differences between two runs readable."""
    plain = json.dumps(content, indent=1, ensure_ascii=False)
    return re.sub(r"\[\s+([-\d.,e+\s]+?)\s+\]", lambda found: "[" + re.sub(r"\s+", " ", found[1]) + "]", plain) + "\n"


def read_all(folder=None):
    """All files of a folder, by the name of their measure."""
    files = sorted(pathlib.Path(folder or FOLDER).glob("*.json"))
    return {path.stem: json.loads(path.read_text()) for path in files}
