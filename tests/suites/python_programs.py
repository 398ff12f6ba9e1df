"""The own suites of Python programs that keep their data in MongoDB, against Pando: two object mappers and a store of checkpoints.

Each suite comes with the program's source package, which pip fetches; the installed program is of the same version. A test that fails
for a reason that stands beside its program is explained. Any other failure ends the program with 1. `make test-driver-suites` runs it.
"""

import argparse
import collections
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import venv
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))
from server import Server  # noqa: E402

# The port that clients take where nobody names one, and that the suites name where they name one.
USUAL_PORT = "27017"
BUILDERS = ["hatchling", "hatch-vcs", "poetry-core", "flit-core", "setuptools<81", "wheel"]
TESTERS = ["pytest", "pytest-asyncio", "pytest-timeout"]


@dataclasses.dataclass
class Program:
    """A program with a suite."""

    name: str
    version: str
    # Packages of the program with its extras, and of its suite.
    packages: list
    # Files or folders of the suite.
    tests: list
    # Reason -> what the name or the text of such a failure has.
    reasons: dict = dataclasses.field(default_factory=dict)
    # Arguments for pytest.
    arguments: list = dataclasses.field(default_factory=list)


PROGRAMS = [
    Program("umongo", "4.0.0", ["umongo[motor,mongomock]==4.0.0"], ["tests"]),
    Program("ming", "0.17.3", ["ming==0.17.3", "webtest", "webob", "pytz", "formencode"], ["ming/tests"],
            {"pytest takes the log that the test looks for": r"TestConnectionFailure\.test_connect"}),
    Program("langgraph-checkpoint-mongodb", "0.5.1", ["langgraph-checkpoint-mongodb==0.5.1", "langgraph"], ["tests/unit_tests"]),
]


def prepare(program, folder):
    """The program and its suite in a folder; gives the program of Python and the suite."""
    folder = folder / f"{program.name}-{program.version}"
    python, suite = folder / "python/bin/python", folder / "suite"
    if not python.exists():
        venv.create(folder / "python", with_pip=True)
    pip = [python, "-m", "pip", "-q", "--disable-pip-version-check"]
    if not suite.exists():
        subprocess.run([*pip, "install", *BUILDERS, *TESTERS, *program.packages], check=True)
        subprocess.run([*pip, "download", "--no-deps", "--no-build-isolation", "--no-binary", ":all:", "--dest", folder, f"{program.name}=={program.version}"],
                       check=True)
        with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
            archive.extractall(folder, filter="data")
        next(folder.glob(f"*-{program.version}")).rename(suite)
    return python, suite


def aim_at(server, suite, python):
    """Makes the suite talk to the server: where it names the usual port, and where it leaves the port to the driver."""
    for path in suite.rglob("*.py"):
        original = path.with_suffix(".original")
        if not original.exists() and USUAL_PORT in path.read_text():
            original.write_text(path.read_text())
        if original.exists():
            path.write_text(original.read_text().replace(USUAL_PORT, str(server.port)))
    startup = suite / "startup"
    startup.mkdir(exist_ok=True)
    (startup / "sitecustomize.py").write_text(
        "import pymongo\n"
        f"pymongo.MongoClient.PORT = {server.port}\n"
        f"getattr(pymongo, 'AsyncMongoClient', pymongo.MongoClient).PORT = {server.port}\n")
    return {**os.environ, "PYTHONPATH": str(startup), "MONGODB_URI": f"mongodb://127.0.0.1:{server.port}/?directConnection=true"}


def run(program, python, suite, server):
    results = suite / "results.xml"
    results.unlink(missing_ok=True)
    subprocess.run([python, "-m", "pytest", "-q", "--no-header", "-r", "N", "-o", "addopts=", "-W", "ignore", "--timeout", "120", "-p", "no:cacheprovider",
                    "--tb", "short", f"--junitxml={results}", *program.arguments, *program.tests], cwd=suite, env=aim_at(server, suite, python))
    return xml.etree.ElementTree.parse(results).getroot()


def judge(program, root):
    """Prints what became of the tests; tells whether each failure has a reason."""
    counts, explained, unexplained = collections.Counter(), collections.Counter(), []
    for case in root.iter("testcase"):
        faults = [*case.findall("failure"), *case.findall("error")]
        counts["failed" if faults else "skipped" if case.find("skipped") is not None else "passed"] += 1
        if faults:
            name = f"{case.get('classname')}.{case.get('name')}"
            text = "\n".join(f"{fault.get('message')}\n{fault.text}" for fault in faults)
            reason = next((reason for reason, pattern in program.reasons.items() if re.search(pattern, f"{name}\n{text}")), None)
            if reason:
                explained[reason] += 1
            else:
                unexplained.append((name, faults[0].get("message", "")[:200]))
    print(f"\n{program.name} {program.version}: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    for reason, count in explained.most_common():
        print(f"  {count:4} {reason}")
    for name, message in unexplained:
        print(f"  unexplained: {name}: {message}")
    return bool(counts["passed"]) and not unexplained


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", required=True, type=pathlib.Path, help="where the programs and their suites are kept")
    parser.add_argument("programs", nargs="*", help=f"of {', '.join(program.name for program in PROGRAMS)} [default: all]")
    given = parser.parse_args()
    folder = given.folder.absolute()
    (folder / "store").mkdir(parents=True, exist_ok=True)
    server = Server(folder / "store" / "python-programs")
    server.start()
    try:
        chosen = [program for program in PROGRAMS if not given.programs or program.name in given.programs]
        good = [judge(program, run(program, *prepare(program, folder), server)) for program in chosen]
    finally:
        server.stop()
    return 0 if good and all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
