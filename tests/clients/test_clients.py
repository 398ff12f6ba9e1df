"""Programs on today's drivers of languages with toolchains of their own. Each program checks itself and prints `done`.

`make test-java-go` builds the programs and names them here: GO_CLIENT is the program on the Go driver, JAVA_CLIENT a folder with the
classes of the program on the Java driver and the driver's jars.
"""

import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))
from server import Server  # noqa: E402

# A driver finds the replica set by each of these.
OPTIONS = ("", "?replicaSet=rs0", "?directConnection=true")


@pytest.fixture(scope="module", params=["betree", "memory"])
def address(request, tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("store") / "data", engine=request.param).start()
    yield f"mongodb://127.0.0.1:{server.port}/"
    assert server.stop() == 0, server.log()
    assert "panic" not in server.whole_log()


def run(*command):
    ended = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0 and ended.stdout.endswith("done\n"), ended.stdout[-2000:] + ended.stderr[-4000:]


@pytest.mark.parametrize("options", OPTIONS)
def test_go(address, options):
    run(os.environ["GO_CLIENT"], address + options)


@pytest.mark.parametrize("options", OPTIONS)
def test_java(address, options):
    folder = pathlib.Path(os.environ["JAVA_CLIENT"])
    run("java", "-cp", f"{folder}:{folder}/*", "Program", address + options)
