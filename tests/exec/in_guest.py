#!/usr/bin/env python3
"""Run tests of this directory in a virtual machine that has cgroups of the second version alone: in_guest.py BUDGET WALLS

There the controllers of memory, tasks and processors are where most machines of today have them, and this one may not.
BUDGET (test_exec_budget) runs three times: in the root of all cgroups, in one that is its own as a service has it, and as an
ordinary user in one that was given to it. In these two so do the limits of WALLS (test_exec_walls), where bubblewrap and crun
are there to be taken along. Skipped without qemu, busybox or a kernel (./dev guest, or STINT_GUEST_KERNEL).
"""
import glob
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile

LIMIT_S = 1700  # ends a hang, before meson does
WALLS = {"sandbox": "bwrap", "container": "crun"}  # what each is made of
HERE = os.path.dirname(os.path.abspath(__file__))

INIT = r"""#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
# Walls are made with pivot_root, which needs a root that can be left: the first one cannot.
if [ ! -e /second ]; then
	mkdir /new && mount -t tmpfs new /new
	for part in /*; do [ $part = /new ] || cp -a $part /new; done
	touch /new/second
	exec switch_root /new /init
fi
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /tmp && chmod 1777 /tmp
mount -t cgroup2 cgroup /sys/fs/cgroup
ip link set lo up
export STINT_SHIM=/t/shim STINT_EXEC_CHILD=/t/child STINT_EXEC_HOSTILE=/t/hostile STINT_EXEC_SUPERVISOR=/t/supervisor
export STINT_EXEC_TESTS='*_bounded' G=/sys/fs/cgroup
told() { echo "GUEST $1 $2"; }
# Each in a cgroup of its own, which its worker leaves for one beneath it.
serve() {
	mkdir $G/$1
	sh -c 'echo $$ > $0/cgroup.procs; exec /t/$*' $G/$1 $2 $3; told $1 $?
}
give() {
	mkdir $G/$1
	chown 65534:65534 $G/$1 $G/$1/cgroup.procs $G/$1/cgroup.subtree_control
	sh -c 'echo $$ > $0/cgroup.procs; exec su -s /bin/sh nobody -c "exec /t/$*"' $G/$1 $2 $3; told $1 $?
}
/t/budget; told root $?
echo "+memory +pids +cpu" > $G/cgroup.subtree_control
serve service budget
give user budget
for level in $LEVELS; do
	serve service-$level walls $level
	give user-$level walls $level
done
poweroff -f
"""


def skip(reason):
    print("skipped: " + reason)
    sys.exit(77)


def kernel():
    said = os.environ.get("STINT_GUEST_KERNEL")
    found = [said] if said else sorted(glob.glob(os.path.join(HERE, "../../build/guest/boot/vmlinuz-*")))
    if not found or not os.path.exists(found[-1]):
        skip("there is no kernel for a guest: ./dev guest fetches one")
    return found[-1]


def libraries(program):
    said = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    return re.findall(r"(/\S+)", said)


def archive(root):
    """The tree as an initramfs: cpio of the form newc."""
    out = bytearray()

    def add(name, mode, data=b"", major=0, minor=0):
        fields = [1, mode, 0, 0, 1, 0, len(data), 0, 0, major, minor, len(name) + 1, 0]
        out.extend(b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0")
        out.extend(bytes(-len(out) % 4))
        out.extend(data)
        out.extend(bytes(-len(out) % 4))

    for folder, _, files in os.walk(root):
        for name in ["."] + files:
            path = os.path.normpath(os.path.join(folder, name))
            inner = os.path.relpath(path, root)
            if os.path.isdir(path):
                add(inner, 0o40755)
            else:
                with open(path, "rb") as file:
                    add(inner, 0o100755, file.read())
    add("dev/console", 0o20600, major=5, minor=1)
    add("TRAILER!!!", 0)
    return gzip.compress(bytes(out), 1)


def levels():
    """Those that can be taken along. A shim that needs libraries, as one with sanitizers does, cannot start in a container."""
    able = [level for level, program in WALLS.items() if shutil.which(program)]
    return [level for level in able if level != "container" or not libraries(os.environ["STINT_SHIM"])]


def build(place, busybox):
    root = os.path.join(place, "root")
    for name in ("bin", "dev", "proc", "sys", "tmp", "etc", "t"):
        os.makedirs(os.path.join(root, name))
    shutil.copy(busybox, os.path.join(root, "bin/busybox"))
    programs = {"t/budget": sys.argv[1], "t/walls": sys.argv[2]}
    for level in levels():
        programs["bin/" + WALLS[level]] = shutil.which(WALLS[level])
    for name in ("shim", "child", "hostile", "supervisor"):
        variable = "STINT_SHIM" if name == "shim" else "STINT_EXEC_" + name.upper()
        programs["t/" + name] = os.environ[variable]
    for name, path in programs.items():
        shutil.copy(path, os.path.join(root, name))
        for library in libraries(path):
            os.makedirs(os.path.dirname(root + library), exist_ok=True)
            shutil.copy(library, root + library)
    with open(os.path.join(root, "init"), "w") as file:
        file.write(INIT.replace("$LEVELS", " ".join(levels())))
    with open(os.path.join(root, "etc/passwd"), "w") as file:
        file.write("root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")
    with open(os.path.join(root, "etc/group"), "w") as file:
        file.write("root:x:0:\nnogroup:x:65534:\n")
    path = os.path.join(place, "initramfs")
    with open(path, "wb") as file:
        file.write(archive(root))
    return path


def main():
    qemu, busybox = shutil.which("qemu-system-x86_64"), shutil.which("busybox")
    if not qemu or not busybox:
        skip("qemu-system-x86_64 or busybox is not installed")
    image = kernel()
    with tempfile.TemporaryDirectory(prefix="stint-guest-") as place:
        ran = subprocess.run(
            [qemu, "-accel", "tcg", "-cpu", "max", "-m", "768", "-smp", "2", "-nographic", "-no-reboot", "-nodefaults", "-serial",
             "stdio", "-kernel", image, "-initrd", build(place, busybox), "-append",
             "console=ttyS0 quiet loglevel=0 panic=-1 lsm=landlock"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=LIMIT_S)
    print(ran.stdout.replace("\r", ""))
    print(ran.stderr)
    ends = dict(re.findall(r"^GUEST (\S+) (\d+)", ran.stdout.replace("\r", ""), re.M))
    wanted = ["root", "service", "user", *("%s-%s" % (who, level) for who in ("service", "user") for level in levels())]
    return 0 if ends == {name: "0" for name in wanted} and "SKIPPED" not in ran.stdout else 1  # it has all that they ask for


sys.exit(main())
