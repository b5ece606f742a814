"""Level vm: a real kernel in a real machine. The words on its line are in test_walls.py."""
import glob
import gzip
import hashlib
import os
import re
import shutil
import struct
import subprocess
import unittest

from hang import HANG_S
from test_walls import needs
from test_worker import Case, sh

NETWORK_CARD = "0x020000"  # the class of one on the bus, whether there is a driver or not

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


# Loads what sees a disk, and goes on with the system that is on it.
LOADER = b"""#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
for module in %s; do insmod /$module; done
mount -t ext4 /dev/vda /root
umount /dev
exec switch_root /root /init
"""
DRIVERS = ("virtio_pci", "virtio_blk")


def modules():
    """Those of that kernel that see a disk, each after what it depends on; None where one of them is missing."""
    ordered = {}

    def add(name):
        found = glob.glob(os.path.join(os.path.dirname(kernel()), "../lib/modules/*/kernel/**/%s.ko" % name), recursive=True)
        if not found:
            return False
        with open(found[0], "rb") as file:
            data = file.read()
        depends = re.search(rb"\0depends=([^\0]*)\0", data)[1].decode()
        known = all(other in ordered or add(other) for other in depends.split(",") if other)
        ordered[name] = data
        return known

    return {name + ".ko": data for name, data in ordered.items()} if all(map(add, DRIVERS)) else None


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def qcow2(raw, path):
    """The same disk in qemu's own format: a header, tables that say where each piece lies, the pieces."""
    bits = 16
    size, piece = os.path.getsize(raw), 1 << bits
    refs, block, level1, level2, data = (number * piece for number in range(1, 6))
    count = -(-size // piece)
    header = struct.pack(">4sIQIIQIIQQIIQ", b"QFI\xfb", 2, 0, 0, bits, size, 0, 1, level1, refs, 1, 0, 0)
    in_use = 1 << 63
    with open(raw, "rb") as source, open(path, "wb") as file:
        for place, text in ((0, header), (refs, struct.pack(">Q", block)), (block, struct.pack(">H", 1) * (5 + count)),
                            (level1, struct.pack(">Q", level2 | in_use)),
                            (level2, b"".join(struct.pack(">Q", data + number * piece | in_use) for number in range(count)))):
            file.seek(place)
            file.write(text)
        file.seek(data)
        shutil.copyfileobj(source, file)
    return path


@needs("vm")
@unittest.skipUnless(kernel(), "there is no kernel for guests in build/guest: ./dev guest fetches one")
class Machines(Case):
    FOLDERS = ("bin", "proc", "sys", "dev", "tmp", "root")

    def busybox(self):
        found = shutil.which("busybox")
        if not found or subprocess.run(["ldd", found], capture_output=True).returncode == 0:
            self.skipTest("there is no static busybox (Debian: busybox-static)")
        return found

    emulate = None  # does a guest under KVM take minutes here? Where KVM is itself emulated it may; found out once

    def vm(self):
        if Machines.emulate is None:
            Machines.emulate = not self.boots_soon()
        return {"isolation": "vm", "kernel": kernel(), "emulate": Machines.emulate}

    def boots_soon(self):
        init = self.initrd("probe.gz", b"#!/bin/busybox sh\n/bin/busybox poweroff -f\n")
        try:
            return subprocess.run(["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                                   "-machine", "accel=kvm", "-cpu", "max", "-m", "512", "-nic", "none", "-kernel", kernel(),
                                   "-initrd", init, "-append", "quiet panic=-1"],
                                  timeout=10, stdin=subprocess.DEVNULL, capture_output=True).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def initrd(self, name, init, *files):
        with open(self.busybox(), "rb") as program, open(self.path(name), "wb") as file:
            file.write(gzip.compress(cpio([*((folder, 0o40755, b"") for folder in self.FOLDERS),
                                           ("bin/busybox", 0o100755, program.read()), ("init", 0o100755, init), *files]), 1))
        return self.path(name)

    def machine(self, script, **more):
        return sh(script, **self.vm(), initrd=self.initrd("initrd.gz", INIT), **more)

    def disk(self):
        """A system on a disk, and what loads the drivers for it."""
        mke2fs, found = shutil.which("mke2fs", path="/usr/sbin:/sbin"), modules()
        if not mke2fs or not found:
            self.skipTest("there is no mke2fs, or no driver of a disk in build/guest: ./dev guest fetches one")
        for folder in self.FOLDERS:
            os.makedirs(self.path("disk/" + folder))
        shutil.copy(self.busybox(), self.path("disk/bin/busybox"))
        with open(self.path("disk/init"), "wb") as file:
            file.write(INIT)
        os.chmod(self.path("disk/init"), 0o755)
        subprocess.run([mke2fs, "-q", "-t", "ext4", "-d", self.path("disk"), self.path("disk,raw.img"), "24m"], check=True, timeout=HANG_S,
                       stdout=subprocess.DEVNULL)
        loader = LOADER % " ".join(found).encode()
        files = [(name, 0o100644, data) for name, data in found.items()]
        return {"image": self.path("disk,raw.img"), "initrd": self.initrd("loader.gz", loader, *files)}

    def test_a_machine_runs_a_task_and_says_how_it_ended(self):
        self.worker({"x": self.machine(
            "cat; echo; echo err >&2; ls %s /sys/class/net; cat /sys/bus/pci/devices/*/class; grep MemTotal /proc/meminfo; env; "
            "echo '{\"answer\":42}'" % self.server.home)})
        self.create(id="t", payload={"text": "a\tb \u00e4 %s"})
        self.assertEqual(self.is_in("t", "done")["result"], {"answer": 42})
        said = self.log("t")["data"]
        self.assertIn('"id":"t"', said)
        self.assertIn("No such file", said)
        self.assertIn("STINT_TASK_ID=t\n", said)
        self.assertNotIn("eth0", said)
        self.assertNotIn(NETWORK_CARD, said)
        self.assertLess(int(re.search(r"MemTotal: *(\d+) kB", said)[1]), 512 << 10)
        self.assertNotIn("STINT_TOKEN", said)
        self.assertNotIn("stint ready", said)

    def test_what_a_machine_writes_to_its_disk_ends_with_it(self):
        disk = self.disk()
        disks = {"raw": disk, "qcow2": {**disk, "image": qcow2(disk["image"], self.path("disk.qcow2"))}}
        before = {name: digest(disk["image"]) for name, disk in disks.items()}
        self.worker({name: sh("grep ' / ' /proc/mounts; cat /kept; echo left > /kept; sync; cat /kept", **self.vm(), **disk)
                     for name, disk in disks.items()})
        for name, disk in disks.items():
            self.create(id=name, executor=name)
            self.assertEqual(self.is_in(name, "done")["result"].split("\n")[1:], ["left"], self.log(name))
            self.assertIn("/dev/vda / ext4 rw", self.log(name)["data"])
            self.assertEqual(digest(disk["image"]), before[name], "the next one finds nothing")

    def test_a_machine_that_hangs_is_stopped(self):
        self.worker({"x": self.machine("cat /sys/bus/pci/devices/*/class; echo at work; sleep 1000", graceMs=500, network=True)})
        self.create(id="t")
        self.until(lambda: "at work" in self.log("t")["data"], "it runs")
        self.assertIn(NETWORK_CARD, self.log("t")["data"], "it was granted one")
        self.assertEqual(self.client.post("/api/tasks/t/cancel").status, 202)
        self.is_in("t", "cancelled")

    def test_a_worker_that_is_killed_leaves_no_machine(self):
        worker = self.worker({"x": self.machine("echo at work; sleep 1000")})
        self.create(id="t")
        self.until(lambda: "at work" in self.log("t")["data"], "it runs")
        self.assertEqual(len(self.machines()), 1)
        worker.process.kill()
        worker.process.wait(HANG_S)
        self.until(lambda: not self.machines(), "it ends with its worker")

    def machines(self):
        """Those of this test, by the file that they boot."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/cmdline" % pid, "rb") as file:
                    line = file.read().split(b"\0")
            except OSError:
                continue  # it has gone
            if line[0].endswith(b"/qemu-system-x86_64") and self.path("initrd.gz").encode() in line:
                found.append(pid)
        return found

    def test_budgets_hold_for_a_machine(self):
        self.worker({"cpuSeconds": self.machine("while :; do :; done", budget={"cpuSeconds": 1}),
                     "outputBytes": self.machine("while :; do echo more; done", budget={"outputBytes": 20000})}, "--concurrency", "2")
        for key in ("cpuSeconds", "outputBytes"):
            self.create(id=key, executor=key)
        for key in ("cpuSeconds", "outputBytes"):
            error = self.is_in(key, "blocked", "failed", "done")["error"]
            self.assertEqual((error["code"], error["details"]["budget"]), ("BUDGET_EXCEEDED", key), error)

    def test_what_cannot_go_over_its_line_is_told(self):
        self.worker({"x": self.machine("true\ntrue")})
        self.create(id="t", maxAttempts=1)
        error = self.is_in("t", "failed", "done", "blocked")["error"]
        self.assertEqual(error["code"], "EXECUTION_ERROR")
        self.assertIn("line break", error["message"])

    def test_no_directory_is_shared_with_a_machine(self):
        self.worker({"x": self.machine("true")}, roots=[self.folder])
        self.create(id="t", workingDir=self.folder)
        self.assertEqual(self.is_in("t", "blocked")["error"]["code"], "BAD_WORKDIR")


if __name__ == "__main__":
    unittest.main()
