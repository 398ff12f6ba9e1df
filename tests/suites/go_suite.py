"""The Go driver's own suite of tests against Pando: which of its tests fail, each with the reason for which it may.

The module of the driver brings its tests and the specifications that they run, and Go's module proxy has it. A test that fails for a
reason that stands in REASONS is explained. Any other failure ends the program with 1. `make test-driver-suites` runs it.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))
from server import Server  # noqa: E402

MODULE, VERSION = "go.mongodb.org/mongo-driver", "v1.17.4"
# Folder of the module -> the tests of it that are left out: without change streams or JavaScript, which they need, they do not fail but
# end the whole program; or they need what is no server (key servers, name servers, Atlas).
PACKAGES = {
    "mongo/integration": "TestChangeStream|TestDatabase/create_collection/options/changeStream|TestErrors/network_timeouts|TestCSOT_maxTimeMS/Watch"
                         "|ClientSideEncryption|TestDataLake|TestInitialDNS|TestSearchIndex|TestLoadBalancer",
    "mongo/integration/unified": "TestUnifiedSpec/change-streams|TestUnifiedSpec/client-side-encryption",
}

# Reason -> what the name or the text of such a failure has.
REASONS = {
    "change streams are not there": r"\$changeStream|no change streams|changeStreamPreAndPostImages|[cC]hange_?[sS]tream|watch_succeeds|watch_helper",
    "$where is refused on purpose": r"\$where|pool_not_cleared_on_",
    "the tests expect several nodes": r"secondary_readPreference|readPreference_inherited|overrides_readPreference|server_selection_error"
                                      r"|server-selection/logging/replica-set|logging-replicaset|replSetStepDown|current topology: \{ Type: ReplicaSetNoPrimary",
    "the suite runs in a container, which it does not expect": r"TestHandshakeProse",
    "the program mongocryptd is not there": r"TestSessionsMongocryptdProse",
    "text indexes of version 1 are not there": r"text indexes of version 1",
    "a command for tests of MongoDB": r"testVersion2",
    "a fail point does not hit greetings that the server streams": r"Command_error_on_Monitor_check",
    "it fails with MongoDB as well": r"TestCommandLoggingAndMonitoringProse/3\.",
}


def prepare(folder):
    """The driver's module in a folder, with its tests as programs."""
    source = folder / f"mongo-driver-{VERSION}"
    if not source.exists():
        told = subprocess.run(["go", "mod", "download", "-json", f"{MODULE}@{VERSION}"], check=True, capture_output=True, text=True)
        unfinished = folder / "unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(json.loads(told.stdout)["Dir"], unfinished, copy_function=shutil.copy)
        for path in [unfinished, *unfinished.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        # What it vendors is not enough for its tests.
        shutil.rmtree(unfinished / "vendor")
        unfinished.rename(source)
    for package in PACKAGES:
        program = source / package / "suite.test"
        if not program.exists():
            print(f"building the tests of {package} ({MODULE} {VERSION})", flush=True)
            subprocess.run(["go", "test", "-mod=mod", "-c", "-o", program.name, "."], cwd=program.parent, check=True)
    return source


def run(folder, left_out, uri, pattern):
    """Runs the tests of a package; gives their outcomes (pass, fail, skip) and their texts by name."""
    words = ["./suite.test", "-test.v=test2json", "-test.timeout=45m", f"-test.skip={left_out}", *([f"-test.run={pattern}"] if pattern else [])]
    program = subprocess.Popen(["go", "tool", "test2json", *words], cwd=folder, env={**os.environ, "MONGODB_URI": uri}, stdout=subprocess.PIPE, text=True)
    outcomes, texts, whole = {}, collections.defaultdict(str), None
    for line in program.stdout:
        event = json.loads(line)
        name, action = event.get("Test"), event["Action"]
        if action == "output" and name:
            texts[name] += event["Output"]
        elif action in ("pass", "fail", "skip"):
            if name:
                outcomes[name] = action
            else:
                whole = action
    program.wait()
    if whole is None or any(text.startswith("panic:") for text in texts.values()):
        sys.exit(f"the tests of {folder} ended before their end")
    return outcomes, texts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", required=True, type=pathlib.Path, help="where the driver and its tests are kept")
    parser.add_argument("--run", metavar="PATTERN", help="the tests to run, such as TestUnifiedSpec/crud [default: all but change streams]")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    source = prepare(given.folder.absolute())
    server = Server(given.folder.absolute() / "go-store" / "data", "--test-commands", "on")
    server.folder.parent.mkdir(exist_ok=True)
    server.start()
    counts, explained, unexplained = collections.Counter(), collections.Counter(), []
    try:
        for package, left_out in PACKAGES.items():
            outcomes, texts = run(source / package, left_out, f"mongodb://127.0.0.1:{server.port}/?replicaSet=rs0", given.run)
            # A test with tests of its own fails with them.
            leaves = {name for name in outcomes if not any(other.startswith(name + "/") for other in outcomes)}
            for name in sorted(leaves):
                counts[outcomes[name]] += 1
                if outcomes[name] == "fail":
                    reason = next((why for why, pattern in REASONS.items() if re.search(pattern, f"{name}\n{texts[name]}")), None)
                    if reason:
                        explained[reason] += 1
                    else:
                        unexplained.append((name, " ".join(texts[name].split())[:300]))
    finally:
        server.stop()
    print(f"\nthe Go driver's own suite ({VERSION}): {counts['pass']} passed, {counts['fail']} failed, {counts['skip']} skipped")
    for reason, count in explained.most_common():
        print(f"  {count:4} {reason}")
    for name, text in unexplained:
        print(f"  unexplained: {name}: {text}")
    return 1 if unexplained or not counts["pass"] else 0


if __name__ == "__main__":
    sys.exit(main())
