"""Programs on drivers of TokuMX's time against a server of today. Each program checks itself and prints `done`.

`make test-legacy-clients` builds the programs and names them here: PYMONGO3 is a Python with PyMongo 3.13, JAVA_CLASSES a folder
with one folder of classes for each driver and the driver's jar beside it, MGO the program on mgo.v2."""

import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))
from server import Server  # noqa: E402

HERE = pathlib.Path(__file__).parent
JAVA_DRIVERS = ("2.11.4", "2.14.3", "3.12.14")


@pytest.fixture(scope="module", params=["betree", "memory"])
def port(request, tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("store") / "data", engine=request.param).start()
    yield server.port
    assert server.stop() == 0, server.log()
    assert "panic" not in server.whole_log()


def run(*command):
    ended = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0 and ended.stdout.endswith("done\n"), ended.stdout[-2000:] + ended.stderr[-4000:]


def test_pymongo_3(port):
    run(os.environ["PYMONGO3"], HERE / "pymongo_program.py", port)


@pytest.mark.parametrize("version", JAVA_DRIVERS)
def test_java(port, version):
    classes = pathlib.Path(os.environ["JAVA_CLASSES"])
    jar = classes / f"mongo-java-driver-{version}.jar"
    run("java", "-cp", f"{classes / version}:{jar}", "Program", port)


def test_mgo(port):
    run(os.environ["MGO"], port)
