"""The systemd unit: `systemd-analyze` takes it, where that program is."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import tomllib
from urllib.parse import quote_plus

import pytest
from pymongo import MongoClient

from server import PANDO, Server

PACKAGING = pathlib.Path(__file__).parents[2] / "packaging"
UNIT = PACKAGING / "pando.service"


def settings():
    """Every setting of the unit; one that is repeated has all its values."""
    found = {}
    for line in UNIT.read_text().splitlines():
        if "=" in line and not line.startswith("#"):
            name, value = line.split("=", 1)
            found.setdefault(name, []).append(value)
    return found


def test_the_unit_gives_the_server_its_folder_and_no_privileges():
    found = settings()
    assert found["User"] != ["root"] and found["NoNewPrivileges"] == ["yes"] and found["CapabilityBoundingSet"] == [""]
    assert found["ProtectSystem"] == ["strict"] and found["StateDirectoryMode"] == ["0700"] and found["UMask"] == ["0077"]
    assert found["LimitCORE"] == ["0"]


def test_the_unit_starts_the_server_with_the_configuration_beside_it():
    """An option on the command line would overrule the file without a word."""
    found = settings()
    [start] = found["ExecStart"]
    assert start.split()[1:] == ["serve", "--config", "/etc/pando/pando.toml"]
    options = tomllib.loads((PACKAGING / "pando.toml").read_text())
    assert options["data"] == "/var/lib/" + found["StateDirectory"][0]
    assert pathlib.PurePath(options["unix-socket"]).parent == pathlib.PurePath("/run", found["RuntimeDirectory"][0])
    assert found["ReadWritePaths"] == ["-/var/backups/pando"]


def test_the_unit_waits_for_the_server_and_does_not_repeat_a_wrong_configuration(tmp_path):
    found = settings()
    assert found["Type"] == ["notify"] and found["NotifyAccess"] == ["main"] and found["TimeoutStartSec"] == ["infinity"]
    (tmp_path / "pando.toml").write_text("cash = 1\n")
    ended = subprocess.run([PANDO, "serve", "--config", str(tmp_path / "pando.toml")], capture_output=True, text=True, timeout=60)
    assert [str(ended.returncode)] == found["RestartPreventExitStatus"], ended


def test_the_server_takes_the_configuration_of_the_package(tmp_path):
    text = (PACKAGING / "pando.toml").read_text().replace("/var/lib/pando", str(tmp_path / "data"))
    # Every line that is commented out is an option, too. There is no certificate here.
    text = re.sub(r"(?m)^# ([a-z-]+ = )", r"\1", text).replace("tls-", "# tls-").replace("127.0.0.1:27017", "127.0.0.1:0")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        (tmp_path / "pando.toml").write_text(text.replace("/run/pando", folder).replace("4GiB", "64MiB"))
        server = Server(tmp_path / "data", "--config", str(tmp_path / "pando.toml")).start()
        with MongoClient(f"mongodb://{quote_plus(folder + '/pando.sock')}", serverSelectionTimeoutMS=20_000) as client:
            assert client.admin.command("ping")["ok"] == 1
        assert server.terminate() == 0


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="this machine has no systemd-analyze")
def test_systemd_takes_the_unit(tmp_path):
    program = tmp_path / "pando"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / "pando.service"
    unit.write_text(UNIT.read_text().replace("/usr/bin/pando", str(program)))
    checked = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0 and "Unknown" not in checked.stderr, checked.stderr
