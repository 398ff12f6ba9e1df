"""The systemd unit: `systemd-analyze` takes it, where that program is."""

import pathlib
import shutil
import subprocess

import pytest

UNIT = pathlib.Path(__file__).parents[2] / "packaging/pando.service"


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


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="this machine has no systemd-analyze")
def test_systemd_takes_the_unit(tmp_path):
    program = tmp_path / "pando"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / "pando.service"
    unit.write_text(UNIT.read_text().replace("/usr/bin/pando", str(program)))
    checked = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0 and "Unknown" not in checked.stderr, checked.stderr
