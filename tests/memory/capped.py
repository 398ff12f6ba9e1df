"""A server in a control group with a limit of memory, version 2 or 1, as far as this user may make one.

Where no group can be made, the peak of the process is compared with the limit all the same.
"""

import contextlib
import os
import pathlib
import time

ROOT = pathlib.Path("/sys/fs/cgroup")


class Group:
    """A control group of this test run. `folder` is None where none can be made."""

    def __init__(self, limit_bytes):
        self.folder = None
        name = f"pando-memory-test-{os.getpid()}"
        for parent, limit in ((ROOT, "memory.max"), (ROOT / "memory", "memory.limit_in_bytes")):
            folder = parent / name
            with contextlib.suppress(OSError):
                folder.mkdir()
                try:
                    (folder / limit).write_text(str(limit_bytes))
                    self.folder = folder
                    return
                except OSError:
                    folder.rmdir()

    def enter(self, process_id):
        if self.folder:
            (self.folder / "cgroup.procs").write_text(str(process_id))

    def killed(self):
        """How often the kernel has killed a process of the group for lack of memory."""
        for name in ("memory.events", "memory.oom_control"):
            path = self.folder / name if self.folder else None
            if path and path.exists():
                counts = dict(line.split() for line in path.read_text().splitlines())
                return int(counts.get("oom_kill", 0))
        return 0

    def remove(self):
        deadline = time.monotonic() + 10
        while self.folder and self.folder.exists() and time.monotonic() < deadline:
            try:
                self.folder.rmdir()
            except OSError:
                time.sleep(0.1)


def peak_bytes(process_id):
    """The most memory that a process had, pages of files that it maps included."""
    status = pathlib.Path(f"/proc/{process_id}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024
