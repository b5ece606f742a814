"""Isolation beyond level process, end to end: a worker, its server, and tasks behind walls."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from hang import HANG_S
import stintd
import test_pool
import test_worktrees
from test_worker import STINT, WORKER, Case, sh


def levels():
    """What stint-worker says of this machine: the reason why not, by level."""
    with tempfile.TemporaryDirectory(prefix="stint-walls-") as home:
        ran = subprocess.run([WORKER, "--check-isolation", "--home", home], capture_output=True, text=True, timeout=HANG_S,
                             env=stintd.environment())
    return {answer["level"]: None if answer["works"] else answer["text"] for answer in json.loads(ran.stdout)}


WHY_NOT = levels()


def needs(level):
    return unittest.skipIf(WHY_NOT[level], "level %s cannot be had here: %s" % (level, WHY_NOT[level]))


def rootfs_with_usr(test, *granted):
    """A container's system that has nothing but this machine's /usr, once that is granted, and a place for each other grant."""
    if not sys.executable.startswith("/usr/") or not os.path.islink("/lib"):
        test.skipTest("this Python is not in /usr alone")
    place = test.path("rootfs")
    for name in ("/usr", "/proc", "/dev", "/tmp", "/run", *granted):
        os.makedirs(place + os.path.realpath(name), exist_ok=True)
    for name in filter(os.path.islink, ("/bin", "/lib", "/lib64")):
        os.symlink(os.readlink(name), place + name)
    return place


class Walls(Case):
    """Each test runs a shell, which a container has from busybox."""

    def rootfs(self):
        place = os.path.join(self.folder, "rootfs")
        if os.path.exists(place):
            return place
        for name in ("bin", "proc", "dev", "tmp", "run", "etc"):
            os.makedirs(os.path.join(place, name))
        busybox = shutil.which("busybox")
        if not busybox or subprocess.run(["ldd", busybox], capture_output=True).returncode == 0:
            self.skipTest("there is no static busybox (Debian: busybox-static)")
        shutil.copy(busybox, os.path.join(place, "bin", "busybox"))
        for name in ("sh", "cat", "ls", "id", "echo", "nc", "wc", "sleep", "true", "pwd", "env", "touch", "head"):
            os.symlink("busybox", os.path.join(place, "bin", name))
        return place

    def executor(self, level, script, **more):
        if level == "container":
            more["rootfs"] = self.rootfs()
        return sh(script, isolation=level, env={"PATH": "/usr/bin:/bin"}, **more)

    def of(self, level, script, **more):
        """The log of a task that ran this."""
        self.worker({"x": self.executor(level, script, **more)})
        self.create(id="t")
        self.is_in("t", "done")
        return self.log("t")["data"]

    def sees_nothing_of_ours(self, level):
        home = self.server.home
        said = self.of(level, f"cat {home}/admin.token; cat {home}/stint.db; ls {home}/runs; ls -a {home}; "
                              "ls /proc | grep -c '^[0-9]' || ls /proc; cat /proc/*/environ; true")
        self.assertNotIn(self.server.token, said)
        self.assertNotIn("SQLite", said)
        self.assertIn("No such file", said)

    def has_its_input_token_and_directories(self, level):
        said = self.of(level, 'cat; head -c 12 "$STINT_TOKEN_FILE"; echo; echo $STINT_URL; '
                              'cd "$STINT_WORKSPACE" && echo at work > file && cat file; '
                              'touch "$HOME/a" "$TMPDIR/b" /tmp/c && echo "all written"')
        self.assertIn('"id":"t"', said)
        self.assertIn("stint_claim_", said)
        self.assertIn("unix:/", said)
        self.assertIn("at work", said)
        self.assertIn("all written", said)

    def work_dir_is_changed(self, level):
        where = os.path.join(self.folder, "root", "project")
        os.makedirs(where)
        self.worker({"x": self.executor(level, "echo it > made; pwd")}, roots=[os.path.join(self.folder, "root")])
        self.create(id="t", workingDir=where)
        self.is_in("t", "done")
        with open(os.path.join(where, "made")) as file:
            self.assertEqual(file.read(), "it\n")
        self.assertIn(where if level == "sandbox" else "/run/stint/work", self.log("t")["data"])

    def ends_as_its_program_did(self, level):
        self.worker({"x": self.executor(level, "exit 3"), "y": self.executor(level, "kill -9 $$")})
        self.create(id="exit", executor="x", maxAttempts=1)
        self.create(id="signal", executor="y", maxAttempts=1)
        self.assertEqual(self.is_in("exit", "failed")["error"]["details"], {"exit": 3})
        self.assertEqual(self.is_in("signal", "failed")["error"]["details"], {"signal": 9})

    @needs("sandbox")
    def test_a_sandbox_sees_nothing_of_ours(self):
        self.sees_nothing_of_ours("sandbox")

    @needs("container")
    def test_a_container_sees_nothing_of_ours(self):
        self.sees_nothing_of_ours("container")

    @needs("container")
    @unittest.skipUnless(shutil.which("podman"), "there is no podman (Debian: podman)")
    def test_podman_makes_a_container_too(self):
        rootfs = self.rootfs()
        self.rootfs = lambda: rootfs
        before = sorted(os.listdir(rootfs))
        self.assertEqual(self.of("container", "echo $PPID; cat /proc/1/comm; id -u", runtime="podman").split(), ["1", "shim", "0"])
        self.assertEqual(sorted(os.listdir(rootfs)), before)

    @needs("sandbox")
    def test_a_sandbox_has_its_input_token_and_directories(self):
        self.has_its_input_token_and_directories("sandbox")

    @needs("container")
    def test_a_container_has_its_input_token_and_directories(self):
        self.has_its_input_token_and_directories("container")

    @needs("sandbox")
    def test_a_sandbox_changes_its_work_dir(self):
        self.work_dir_is_changed("sandbox")

    @needs("container")
    def test_a_container_changes_its_work_dir(self):
        self.work_dir_is_changed("container")

    @needs("sandbox")
    def test_a_sandbox_ends_as_its_program_did(self):
        self.ends_as_its_program_did("sandbox")

    @needs("container")
    def test_a_container_ends_as_its_program_did(self):
        self.ends_as_its_program_did("container")

    @needs("sandbox")
    def test_a_sandboxed_child_reports_through_the_socket_and_with_its_claim_alone(self):
        said = self.of("sandbox", f"{STINT} task progress hello && echo noted; {STINT} ls && echo listed; "
                                  f"{STINT} task done --result '\"said so\"' && echo told")
        self.assertIn("noted", said)
        self.assertIn("told", said)
        self.assertNotIn("listed", said)
        self.assertEqual(self.task("t")["result"], "said so")

    @needs("sandbox")
    def test_a_server_that_is_started_again_is_found_by_who_is_behind_a_wall(self):
        self.worker({"x": self.executor("sandbox", f"{STINT} task progress one && echo said > {self.folder}/one; "
                                        f"while [ ! -e {self.folder}/go ]; do sleep 0.05; done; "
                                        f"{STINT} task done again; exit 3", write=[self.folder])})
        self.create(id="t")
        self.read("one")
        self.server.kill()
        self.server.start()
        self.client.close()
        with open(self.path("go"), "w"):
            pass
        self.assertEqual(self.is_in("t", "done", "failed", "blocked")["result"], "again")

    @needs("sandbox")
    def test_a_task_tightens_a_level_and_never_loosens_it(self):
        self.worker({"plain": sh("ls -d /proc/[0-9]* | wc -l"),
                     "boxed": self.executor("sandbox", "ls -d /proc/[0-9]* | wc -l")})
        self.create(id="tight", executor="plain", isolationLevel="sandbox")
        self.create(id="loose", executor="boxed", isolationLevel="process")
        for task in ("tight", "loose"):
            self.assertLess(self.is_in(task, "done")["result"], 10, task)

    def test_a_level_that_cannot_be_had_blocks_and_says_why(self):
        self.worker({"x": sh("true"), "y": sh("true", isolation="sandbox")}, PATH="/nonexistent")
        self.create(id="rootless", executor="x", isolationLevel="container")
        self.create(id="kernelless", executor="x", isolationLevel="vm")
        self.create(id="boxed", executor="y")
        for task, said in (("rootless", "there is no crun"), ("kernelless", "there is no qemu"),
                           ("boxed", "there is no bwrap")):
            error = self.is_in(task, "blocked")["error"]
            self.assertEqual(error["code"], "ISOLATION_UNAVAILABLE")
            self.assertIn(said, error["message"])
            self.assertIn("try: ", error["message"])
            self.assertIsNone(self.task(task).get("result"))

    @needs("container")
    def test_a_rootfs_that_would_show_the_state_directory_blocks(self):
        os.mkdir(self.path("work"))
        self.worker({"x": sh("cat %s/admin.token" % self.server.home, isolation="container", rootfs="/")}, roots=[self.path("work")])
        for task, where in (("plain", {}), ("placed", {"workingDir": self.path("work")})):
            self.create(id=task, **where)
            error = self.is_in(task, "blocked", "done", "failed")["error"]
            self.assertEqual(error["code"], "ISOLATION_UNAVAILABLE")
            self.assertIn("would show the state directory", error["message"])

    def a_swapped_grant_leads_nowhere(self, **more):
        """Two tasks of one executor: the first may write where the second's grant lies."""
        shared = self.path("work/shared")
        os.makedirs(shared, exist_ok=True)
        os.makedirs(self.path("secret"), exist_ok=True)
        with open(self.path("secret/key"), "w") as file:
            file.write("mine")
        self.worker({"x": sh("if [ $STINT_TASK_ID = first ]; then mv shared was && ln -s %s shared; else cat shared/key; fi"
                             % self.path("secret"), write=[self.path("work")], **more),
                     "y": sh("cat %s/key" % shared, read=[shared], **more)}, roots=[self.path("work")])
        self.create(id="first", executor="x", workingDir=self.path("work"))
        self.is_in("first", "done")
        self.create(id="second", executor="y")
        task = self.is_in("second", "done", "failed", "blocked")
        self.assertEqual((task["state"], task["error"]["code"]), ("blocked", "ISOLATION_UNAVAILABLE"), task)
        self.assertIn("symbolic link", task["error"]["message"])

    def test_a_link_that_a_task_put_into_the_way_of_a_grant_leads_nowhere(self):
        self.a_swapped_grant_leads_nowhere()

    @needs("sandbox")
    def test_a_link_that_a_task_put_into_the_way_of_a_grant_leads_nowhere_behind_a_wall(self):
        self.a_swapped_grant_leads_nowhere(isolation="sandbox")

    def test_nor_does_one_in_the_way_of_where_programs_are_found(self):
        """Who runs what a task carries may read the directories of PATH."""
        os.makedirs(self.path("work/bin"))
        os.makedirs(self.path("secret"))
        with open(self.path("secret/key"), "w") as file:
            file.write("mine")
        for level in ("process", "sandbox"):
            with self.subTest(level):
                if WHY_NOT.get(level):
                    self.skipTest(WHY_NOT[level])
                worker = self.worker({"x": sh("mv bin was && ln -s %s bin" % self.path("secret")), "y": {
                    "kind": "command", "argv": "payload", "isolation": level}}, roots=[self.path("work")],
                                     PATH=self.path("work/bin") + ":/usr/bin:/bin")
                self.create(id="first-" + level, executor="x", workingDir=self.path("work"))
                self.is_in("first-" + level, "done")
                self.create(id=level, executor="y", payload={"argv": ["cat", self.path("work/bin/key"), self.path("secret/key")]}, maxAttempts=1)
                task = self.is_in(level, "done", "failed", "blocked")
                self.assertNotEqual(task["state"], "done", task)
                self.assertNotIn("mine", self.log(level)["data"])
                worker.stop()
                os.remove(self.path("work/bin"))
                os.rename(self.path("work/was"), self.path("work/bin"))

    @needs("sandbox")
    def test_what_a_wall_is_made_with_is_not_found_where_tasks_may_write(self):
        """A virtual environment in a project, say, that was active when the worker was started."""
        os.makedirs(self.path("work/bin"))
        os.makedirs(self.path("granted/bin"))
        plants = "for dir in %s; do printf '#!/bin/sh\\ncat %s/admin.token > %s\\nexit 1\\n' > $dir/bwrap; chmod 755 $dir/bwrap; done; cp bin/bwrap bin/git" % (
            "bin " + self.path("granted/bin"), self.server.home, self.path("work/stolen"))
        self.worker({"x": sh(plants, write=[self.path("granted")]), "y": sh("echo $PATH", isolation="sandbox")}, roots=[self.path("work")],
                    PATH=self.path("work/bin") + ":" + self.path("granted/bin") + ":/usr/bin:/bin")
        self.create(id="first", executor="x", workingDir=self.path("work"))
        self.is_in("first", "done")
        self.create(id="second", executor="y", workingDir=self.path("work"))
        task = self.is_in("second", "done", "blocked", "failed")
        self.assertFalse(os.path.exists(self.path("work/stolen")))
        self.assertTrue(os.path.exists(self.path("granted/bin/bwrap")))
        self.assertTrue(task["result"].startswith(self.path("work/bin") + ":"), "what tasks find is theirs to say")

    def test_a_wall_that_falls_blocks_with_its_last_words(self):
        with open(self.path("bwrap"), "w") as file:
            file.write("#!/bin/sh\necho 'no namespaces today' >&2\nexit 1\n")
        os.chmod(self.path("bwrap"), 0o755)
        self.worker({"x": sh("echo ran", isolation="sandbox")}, PATH=self.folder + ":/usr/bin:/bin")
        self.create(id="t")
        error = self.is_in("t", "blocked")["error"]
        self.assertEqual(error["code"], "ISOLATION_UNAVAILABLE")
        self.assertIn("no namespaces today", error["message"])
        self.assertNotIn("ran", self.log("t")["data"])


class PoolsWithout(test_pool.Case):
    """Pools whose workers cannot be behind the wall that they shall be behind: they have no worker, and their tasks learn why."""

    def blocks(self, said, path):
        self.worker({"p": self.executor("any", isolation="sandbox")}, "--name", "host", PATH=path)
        for task in ("one", "two"):
            self.create(id=task, module="echo")
            error = self.is_in(task, "blocked")["error"]
            self.assertEqual(error["code"], "ISOLATION_UNAVAILABLE")
            self.assertIn(said, error["message"])
        self.assertNotEqual((self.slot() or {"state": "empty"})["state"], "quarantined", "no program has crashed")
        self.assertEqual(self.lines("starts"), [])

    def test_a_level_that_cannot_be_had_blocks_and_says_why(self):
        self.blocks("there is no bwrap", "/nonexistent")

    def test_a_wall_that_falls_blocks_with_its_last_words(self):
        place = tempfile.mkdtemp(prefix="stint-walls-")  # not where the pool may write: nobody would look there
        self.addCleanup(shutil.rmtree, place)
        with open(os.path.join(place, "bwrap"), "w") as file:
            file.write("#!/bin/sh\necho 'no namespaces today' >&2\nexit 1\n")
        os.chmod(file.name, 0o755)
        self.blocks("no namespaces today", place + ":/usr/bin:/bin")


class Frames(test_pool.Case):
    """What a pool's worker writes is read by ours: a wall does not make that safe, the limits of a frame do."""

    def is_cut_off(self, **more):
        self.pool("any", **more)
        self.create(id="t", module="four_gib", maxAttempts=1)
        error = self.is_in("t", "failed", "done", "blocked")["error"]
        self.assertEqual(error["code"], "PROTOCOL_ERROR")
        self.assertIn("longer than 1 MiB", error["message"])

    @needs("sandbox")
    def test_four_gibibytes_from_a_sandbox_are_cut_off(self):
        self.is_cut_off(isolation="sandbox")

    @needs("container")
    def test_four_gibibytes_from_a_container_are_cut_off(self):
        read = self.executor("any")["read"]
        self.is_cut_off(isolation="container", rootfs=rootfs_with_usr(self, self.folder, *read))


@needs("sandbox")
class Pools(test_pool.Case):
    def test_a_pool_works_in_a_sandbox_and_sees_nothing_of_ours(self):
        self.pool(None, argv=[sys.executable, os.path.join(test_pool.EXAMPLES, "worker.py")], size=2, isolation="sandbox")
        for number in range(4):
            self.create(id="t-%d" % number, module="echo", payload=number)
        for number in range(4):
            self.assertEqual(self.is_in("t-%d" % number, "done", "blocked", "failed")["result"], number)
        self.assertTrue(all(" /run/stint/shim " in mounts for mounts in self.mounts_of_workers()))

    def mounts_of_workers(self):
        """Of all processes of ours that run the example."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/environ" % pid) as environ, open("/proc/%s/cmdline" % pid) as line:
                    if "STINT_WORKSPACE=" + self.server.home in environ.read() and "worker.py" in line.read():
                        with open("/proc/%s/mountinfo" % pid) as mounts:
                            found.append(mounts.read())
            except OSError:
                pass  # it has gone, or is not ours
        self.assertTrue(found)
        return found

    def test_a_task_cannot_tighten_a_pool(self):
        self.pool(None, argv=[sys.executable, os.path.join(test_pool.EXAMPLES, "worker.py")])
        self.create(id="t", module="echo", isolationLevel="sandbox")
        error = self.is_in("t", "blocked")["error"]
        self.assertEqual(error["code"], "ISOLATION_UNAVAILABLE")
        self.assertIn("before there is a task", error["message"])


@needs("sandbox")
class Trees(test_worktrees.TreeCase):
    def test_a_work_tree_in_a_sandbox_is_one(self):
        task = self.run_in_tree(
            "pwd; git rev-parse --abbrev-ref HEAD; cat file; git status --porcelain; test ! -e %s/admin.token" % self.server.home,
            {"setup": ["sh", "-c", "test -e file && echo $STINT_WORKSPACE > set.env"]}, isolation="sandbox")
        where, branch, text = task["result"].split("\n")[:3]
        self.assertTrue(where.startswith(os.path.join(self.server.home, "worktrees")), where)
        self.assertRegex(branch, r"^stint/t-[0-9.]+$")
        self.assertEqual(text, "one")


class Line(unittest.TestCase):
    """The serial line of a machine, with a shell in place of the machine."""

    def converse(self, script, said=b"stint 1\nend W\narg true\ninput 2\n{}"):
        ran = subprocess.run([os.path.join(os.path.dirname(WORKER), "stint-shim"), "--guest", "W", "/bin/sh", "-c", script],
                             input=said, capture_output=True, timeout=HANG_S)
        return ran.returncode, ran.stdout, ran.stderr

    def test_what_comes_before_it_is_ready_is_noise(self):
        self.assertEqual(self.converse(r"printf 'BIOS\r\nW exit 9\nstint ready\r\nhello\nW exit 0\n'"),
                         (0, b"hello", b"BIOS\nW exit 9\n"))

    def test_output_is_passed_on_byte_by_byte(self):
        for text, meant in ((r"a\n\nW exit 4\n", b"a\n"), (r"a\nW exit 4\n", b"a"), (r"W exit 4\n", b""),
                            (r"\n\n\nW exit 4\n", b"\n\n"), (r"WW\nWx\nW exit\nW exit 4\n", b"WW\nWx\nW exit"),
                            (r"a\000\377\n\nW exit 4\r\n", b"a\0\xff\n")):
            with self.subTest(text=text):
                self.assertEqual(self.converse("echo stint ready; printf '%s'; sleep 0.1" % text), (4, meant, b""))

    def test_words_that_come_in_pieces_are_words(self):
        self.assertEqual(self.converse(r"echo stint ready; printf 'a\n'; sleep 0.05; printf 'W ex'; sleep 0.05; printf 'it 7\n'"),
                         (7, b"a", b""))

    def test_a_signal_is_a_signal(self):
        self.assertEqual(self.converse("echo stint ready; echo W signal 9")[0], -9)

    def test_a_signal_that_ends_nothing_is_no_end(self):
        for number in (19, 20, 0, 65):
            code, out, _ = self.converse("echo stint ready; echo W signal %d" % number)
            self.assertEqual((code, out), (-6, b"W signal %d\n" % number))

    def test_nothing_is_handed_in_before_it_is_ready_and_then_all_of_it(self):
        self.assertEqual(self.converse("echo stint ready; head -c 32; echo; echo W exit 0"),
                         (0, b"stint 1\nend W\narg true\ninput 2\n{}"[:32], b""))
        large = b"x" * 3000000
        code, out, _ = self.converse("echo stint ready; head -c 3000000 | wc -c; echo W exit 0", large)
        self.assertEqual((code, out), (0, b"3000000"))

    def test_a_machine_that_goes_off_is_a_crash(self):
        code, out, err = self.converse(r"echo stint ready; printf 'half\nW ex'")
        self.assertEqual((code, out), (-6, b"half\nW ex"))
        self.assertIn(b"before it said how", err)
        code, out, err = self.converse("echo nothing")
        self.assertEqual((code, out), (-6, b""))
        self.assertIn(b"never ready", err)


class Doctor(unittest.TestCase):
    def lines(self, **variables):
        with tempfile.TemporaryDirectory(prefix="stint-walls-") as home:
            if "config" in variables:
                with open(os.path.join(home, "config.json"), "w") as file:
                    json.dump(variables.pop("config"), file)
                os.chmod(os.path.join(home, "config.json"), 0o600)
            ran = subprocess.run([STINT, "doctor", "--json", "--home", home], capture_output=True, text=True, timeout=HANG_S,
                                 env=stintd.environment(**variables))
        return [check for check in json.loads(ran.stdout)["checks"] if check["group"] == "isolation"]

    def test_it_says_of_every_level_whether_it_works(self):
        lines = {line["name"]: line for line in self.lines()}
        self.assertEqual(set(lines), {"process", "sandbox", "container", "vm", "tree"})
        for level, why_not in WHY_NOT.items():
            self.assertEqual(lines[level]["verdict"], "warn" if why_not else "pass", lines[level])

    def test_it_says_what_is_missing_and_what_to_do(self):
        lines = {line["name"]: line for line in self.lines(PATH="/nonexistent")}
        for level, package in (("sandbox", "bubblewrap"), ("container", "crun"), ("vm", "qemu")):
            self.assertEqual(lines[level]["verdict"], "warn")
            self.assertIn(package, lines[level]["fix"])

    def test_it_says_what_stays_if_worker_and_shims_are_killed_together(self):
        line, = [line for line in self.lines() if line["name"] == "tree"]
        self.assertEqual(line["verdict"], "pass")  # the doctor itself is in the cgroup of whoever asked it
        self.assertIn("has no cgroup of its own: if it is killed together with its shims", line["text"])

    @needs("vm")
    def test_it_says_whether_machines_are_emulated(self):
        qemu = shutil.which("qemu-system-x86_64")
        if not qemu:
            self.skipTest("there is no qemu-system-x86_64")
        works = os.access("/dev/kvm", os.R_OK | os.W_OK) and subprocess.run(
            [qemu, "-nodefaults", "-display", "none", "-machine", "accel=kvm", "-cpu", "max", "-S", "-monitor", "stdio"],
            input=b"quit\n", capture_output=True, timeout=HANG_S).returncode == 0
        line, = [line for line in self.lines() if line["name"] == "vm"]
        self.assertEqual("emulated" in line["text"], not works, line)

    @needs("container")
    @unittest.skipUnless(os.geteuid() == 0, "only root can make a state directory there")
    def test_a_state_directory_that_everybody_would_see_is_told(self):
        with tempfile.TemporaryDirectory(prefix="stint-walls-", dir="/opt") as home:
            path = os.path.join(home, "config.json")
            with open(path, "w") as file:
                json.dump({"executors": {"x": sh("true", isolation="container", rootfs="/")}}, file)
            os.chmod(path, 0o600)
            ran = subprocess.run([WORKER, "--check-isolation", "--home", home, "--config", path], capture_output=True, text=True,
                                 timeout=HANG_S, env=stintd.environment())
        said = {answer["level"]: answer for answer in json.loads(ran.stdout)}
        for level in ("process", "sandbox", "container"):
            self.assertFalse(said[level]["works"], said[level])
            self.assertIn("would show the state directory", said[level]["text"])

    def test_levels_that_an_executor_cannot_have_are_mistakes(self):
        for executor, said in (({"kind": "pool", "argv": ["x"], "size": 1, "isolation": "vm", "kernel": "/k", "initrd": "/i"}, "a serial line"),
                               ({"kind": "command", "argv": ["x"], "isolation": "vm", "kernel": "/k", "initrd": "/i", "worktree": True},
                                "a work tree"),
                               ({"kind": "command", "argv": ["x"], "isolation": "vm", "kernel": "/k"}, "needs image"),
                               ({"kind": "command", "argv": ["x"], "isolation": "vm", "kernel": "/k", "initrd": "/i", "read": ["/srv"]},
                                "no directory is shared with a machine"),
                               ({"kind": "command", "argv": ["x"], "network": False}, '"network": false'),
                               ({"kind": "command", "argv": ["x"], "isolation": "vm", "kernel": "/k", "initrd": "/i",
                                 "budget": {"memoryBytes": 60 << 20}}, "64 MiB"),
                               ({"kind": "command", "argv": ["x"], "isolation": "container"}, "needs rootfs"),
                               ({"kind": "command", "argv": ["x"], "isolation": "container", "rootfs": "/r", "runtime": "docker"}, "podman")):
            with self.subTest(said=said), tempfile.TemporaryDirectory(prefix="stint-walls-") as home:
                path = os.path.join(home, "config.json")
                with open(path, "w") as file:
                    json.dump({"executors": {"x": executor}}, file)
                os.chmod(path, 0o600)
                ran = subprocess.run([WORKER, "--check-config", "--home", home, "--config", path], capture_output=True, text=True,
                                     timeout=HANG_S, env=stintd.environment())
                self.assertEqual(ran.returncode, 78, ran.stderr)
                self.assertIn(said, ran.stderr)

    def test_a_grant_that_opens_the_state_directory_is_a_mistake(self):
        with tempfile.TemporaryDirectory(prefix="stint-walls-") as folder:
            home, path = os.path.join(folder, "a", "home"), os.path.join(folder, "config.json")
            os.makedirs(home, 0o700)
            os.symlink(home, os.path.join(folder, "link"))
            for grant, said in ((folder, "holds"), (home, "holds"), (home + "/runs", "lies in"), (home + "/x/../stint.db", "lies in"),
                                (folder + "/link/backups", "lies in"), (folder + "/a/home/..", "holds")):
                for key in ("read", "write"):
                    with open(path, "w") as file:
                        file.write('{"executors": {\n "x": {"kind": "command", "argv": ["true"],\n  "%s": ["/usr", "%s"]}}}' % (key, grant))
                    os.chmod(path, 0o600)
                    ran = subprocess.run([WORKER, "--check-config", "--home", home, "--config", path], capture_output=True, text=True,
                                         timeout=HANG_S, env=stintd.environment())
                    self.assertEqual(ran.returncode, 78, (grant, ran.stdout))
                    self.assertIn("%s:3" % path, ran.stderr)
                    self.assertIn('executors.x.%s has "%s", which %s the state directory %s' % (key, grant, said, home), ran.stderr)

    def test_an_executor_whose_level_cannot_be_had_is_wrong(self):
        config = {"executors": {"x": sh("true", isolation="container", rootfs="/no/such/rootfs")}}
        line, = [line for line in self.lines(config=config) if line["name"] == "container"]
        self.assertEqual(line["verdict"], "fail")
        self.assertIn("executor x", line["text"])
        self.assertIn("/no/such/rootfs" if not WHY_NOT["container"] else "", line["text"])


if __name__ == "__main__":
    unittest.main()
