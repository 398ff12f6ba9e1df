"""PyMongo's own suite of tests against Pando: which of its tests fail, each with the reason for which it may.

The suite comes with PyMongo's source package, which pip fetches; the driver is of the same version. A test that fails for a reason that
stands in REASONS is explained. Any other failure ends the program with 1. `make test-driver-suites` runs it.
"""

import argparse
import collections
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

VERSION = "4.10.1"
PACKAGES = [f"pymongo=={VERSION}", "pytest", "pytest-asyncio", "pytest-timeout", "simplejson"]

# Reason -> what the text of such a failure has.
REASONS = {
    "change streams are not there": r"\$changeStream|no change streams|changeStreamPreAndPostImages|change_stream|ChangeStream|_watch_|watch helper",
    "$where is refused on purpose": r"\$where|test_to_list_csot_applied|test_where",
    "the server has one node, and no oplog": r"No replica set members match selector|no replica set members match|local\.oplog|test_to_list_tailable",
    "the name is of a machine of the driver's authors": r"DNS query name does not exist|srv_|SRV",
    "the suite runs in a container, which it does not expect": r"'runtime': 'docker'",
    "a fail point does not hit greetings that the server streams": r"Network_timeout_on_Monitor_check|after_monitor_timeout|test_monitor_waits_after_server_check_error",
    "an option of time series that is not there": r"bucketRoundingSeconds",
    "the tests wait by $where": r"test_connection_timeout_message|test_max_pool_size",
    "the databases of the system are there when somebody has written to them": r"test_list_databases",
    "the tests expect the topology of several servers": r"[34] \{'topologyDescriptionChangedEvent'",
    "a fail point for the inside of MongoDB": r"the fail points are failCommand",
    "a command for tests of MongoDB": r"testVersion2|testversion2",
}


def prepare(folder):
    """The driver and its suite in a folder; gives the program of Python and the suite."""
    python, suite = folder / "python/bin/python", folder / f"pymongo-{VERSION}"
    if not python.exists():
        venv.create(folder / "python", with_pip=True)
    if not (suite / "test").exists():
        pip = [python, "-m", "pip", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "hatchling", "hatch-requirements-txt", *PACKAGES], check=True)
        subprocess.run([*pip, "download", "--no-deps", "--no-build-isolation", "--no-binary", ":all:", "--dest", folder, f"pymongo=={VERSION}"], check=True)
        with tarfile.open(folder / f"pymongo-{VERSION}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    # Warnings of newer helpers of pytest are no failures of the server.
    settings = suite / "pyproject.toml"
    settings.write_text(settings.read_text().replace('    "error",\n', ""))
    return python, suite


def run(python, suite, server, words):
    results = suite / "results.xml"
    results.unlink(missing_ok=True)
    tests = words or ["test", "--ignore", "test/asynchronous", "--ignore", "test/test_change_stream.py"]
    host, port = "127.0.0.1", str(server.port)
    subprocess.run([python, "-m", "pytest", "-q", "--no-header", "-r", "N", "--timeout", "120", "-p", "no:cacheprovider", "-m", "default", "--tb", "short",
                    f"--junitxml={results}", *tests], cwd=suite, env={**os.environ, "DB_IP": host, "DB_PORT": port})
    return xml.etree.ElementTree.parse(results).getroot()


def reason_of(name, text):
    found = (reason for reason, pattern in REASONS.items() if re.search(pattern, f"{name}\n{text}"))
    return next(found, None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", required=True, type=pathlib.Path, help="where the driver and its suite are kept")
    parser.add_argument("tests", nargs="*", help="files of the suite, such as test/test_cursor.py [default: all but change streams]")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    python, suite = prepare(given.folder.absolute())
    server = Server(given.folder.absolute() / "store" / "data", "--test-commands", "on")
    server.folder.parent.mkdir(exist_ok=True)
    server.start()
    try:
        root = run(python, suite, server, given.tests)
    finally:
        server.stop()
    counts, explained, unexplained = collections.Counter(), collections.Counter(), []
    for case in root.iter("testcase"):
        faults = [*case.findall("failure"), *case.findall("error")]
        counts["failed" if faults else "skipped" if case.find("skipped") is not None else "passed"] += 1
        if faults:
            name = f"{case.get('classname')}.{case.get('name')}"
            text = "\n".join(f"{fault.get('message')}\n{fault.text}" for fault in faults)
            reason = reason_of(name, text)
            if reason:
                explained[reason] += 1
            else:
                unexplained.append((name, faults[0].get("message", "")[:200]))
    print(f"\nPyMongo {VERSION}'s own suite: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    for reason, count in explained.most_common():
        print(f"  {count:4} {reason}")
    for name, message in unexplained:
        print(f"  unexplained: {name}: {message}")
    return 1 if unexplained or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
