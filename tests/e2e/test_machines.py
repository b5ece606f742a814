"""Level vm: a real kernel in a real machine. The words on its line are in test_walls.py."""
import glob
import gzip
import os
import shutil
import subprocess
import unittest

from test_walls import needs
from test_worker import Case, sh

# What docs/isolation.md asks of an image: it says that it is ready, hears what to run, and says how that ended.
INIT = b"""#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
exec </dev/ttyS0 >/dev/ttyS0 2>/dev/ttyS1
stty raw -echo
echo "stint ready"
while IFS= read -r line; do
	case $line in
	"end "*) word=${line#end } ;;
	"env "*) export "${line#env }" ;;
	"arg "*) set -- "$@" "${line#arg }" ;;
	"input "*) head -c "${line#input }" >/tmp/input; break ;;
	esac
done
export PATH=/bin HOME=/root
"$@" </tmp/input
status=$?
echo
if [ $status -gt 128 ]; then echo "$word signal $((status - 128))"; else echo "$word exit $status"; fi
poweroff -f
"""


def cpio(entries):
    """An archive as the kernel wants its first file system: (name, mode, bytes)."""
    archive = b""
    for name, mode, data in [*entries, ("TRAILER!!!", 0, b"")]:
        name = name.encode() + b"\0"
        numbers = (0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0)
        for part in (b"070701" + b"".join(b"%08X" % number for number in numbers) + name, data):
            archive += part + b"\0" * (-len(archive + part) % 4)
    return archive


def kernel():
    """One for guests: what ./dev check unpacks, or $STINT_GUEST_KERNEL."""
    found = os.environ.get("STINT_GUEST_KERNEL") or "".join(sorted(glob.glob(
        os.path.join(os.path.dirname(__file__), "../../build/guest/boot/vmlinuz-*")))[-1:])
    return os.path.abspath(found) if found else None


@needs("vm")
@unittest.skipUnless(kernel(), "there is no kernel for guests in build/guest: ./dev guest fetches one")
class Machines(Case):
    def machine(self, script, **more):
        initrd = self.path("initrd.gz")
        busybox = shutil.which("busybox")
        if not busybox or subprocess.run(["ldd", busybox], capture_output=True).returncode == 0:
            self.skipTest("there is no static busybox (Debian: busybox-static)")
        with open(busybox, "rb") as program, open(initrd, "wb") as file:
            file.write(gzip.compress(cpio([
                *((name, 0o40755, b"") for name in ("bin", "proc", "sys", "dev", "tmp", "root")),
                ("bin/busybox", 0o100755, program.read()), ("init", 0o100755, INIT)]), 1))
        return sh(script, isolation="vm", kernel=kernel(), initrd=initrd, **more)

    def test_a_machine_runs_a_task_and_says_how_it_ended(self):
        self.worker({"x": self.machine(
            "cat; echo; echo err >&2; ls %s /sys/class/net; env; echo '{\"answer\":42}'" % self.server.home)})
        self.create(id="t", payload={"text": "a\tb \u00e4 %s"})
        self.assertEqual(self.is_in("t", "done")["result"], {"answer": 42})
        said = self.log("t")["data"]
        self.assertIn('"id":"t"', said)
        self.assertIn("No such file", said)
        self.assertIn("STINT_TASK_ID=t\n", said)
        self.assertNotIn("eth0", said)
        self.assertNotIn("STINT_TOKEN", said)
        self.assertNotIn("stint ready", said)

    def test_a_machine_that_hangs_is_stopped(self):
        self.worker({"x": self.machine("echo at work; sleep 1000", graceMs=500)})
        self.create(id="t")
        self.until(lambda: "at work" in self.log("t")["data"], "it runs")
        self.assertEqual(self.client.post("/api/tasks/t/cancel").status, 202)
        self.is_in("t", "cancelled")

    def test_no_directory_is_shared_with_a_machine(self):
        self.worker({"x": self.machine("true")}, roots=[self.folder])
        self.create(id="t", workingDir=self.folder)
        self.assertEqual(self.is_in("t", "blocked")["error"]["code"], "BAD_WORKDIR")


if __name__ == "__main__":
    unittest.main()
