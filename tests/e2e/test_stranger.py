"""A hostile child, run by a real worker beside another one: every attempt fails, at level `process` and behind walls. docs/isolation.md
has a line for each kind of them; test_exec_hostile.c and test_exec_walls.c in tests/exec do the same beneath, without a worker and a
server."""
import ctypes
import os
import subprocess
import sys
import unittest
from unittest import mock

from figures import MIB, figure
from hang import HANG_S
import proof
import stintd
import test_worker
from test_walls import needs, rootfs_with_usr
from test_worker import STINT, WORKER, sh

STRANGER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stranger.py")
LONG = os.environ.get("STINT_LONG") == "1"
FLOOD_BYTES = 4 << 30 if LONG else 256 << 20
RACES = 25
LANDLOCK_CREATE_RULESET = 444


def landlock_abi():
    return ctypes.CDLL(None).syscall(LANDLOCK_CREATE_RULESET, None, 0, 1)


def resident_bytes(pid):
    with open("/proc/%d/statm" % pid) as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


@unittest.skipIf(landlock_abi() <= 0, "this kernel has no Landlock")
class StrangerCase(test_worker.Case):
    flags = (*test_worker.Case.flags, "--set", "limits.authFailuresPerS=1000")

    def setUp(self):
        super().setUp()
        for name in ("work", "sibling", "person"):
            os.mkdir(self.path(name))


class Stranger(StrangerCase):
    """One child that tries everything. Not in /tmp, which a wall replaces by one of its own."""

    def setUp(self):
        patch = mock.patch("tempfile.tempdir", "/var/tmp")
        patch.start()
        self.addCleanup(patch.stop)
        super().setUp()

    def begin(self, more):
        with open(STRANGER) as file:
            script = file.read()
        worker = self.worker({"stranger": {"kind": "command", "argv": [sys.executable, "-c", script], **more},
                              "victim": sh("test -e tried || { touch tried; exit 1; }; echo secret > secret; echo mine; echo $$ > pid; sleep 1000",
                                           graceMs=200)},
                             "--concurrency", "2", "--name", "host", roots=[self.path("work"), self.path("sibling")])
        self.create(id="sibling", executor="victim", workingDir=self.path("sibling"), maxAttempts=1)
        self.is_in("sibling", "failed")  # and again, for a fence that is not the stranger's
        self.client.post("/api/tasks/sibling/retry")
        pid = int(self.read("sibling/pid"))
        return worker, pid, self.is_in("sibling", "running")

    def attack(self, **more):
        worker, pid, sibling = self.begin(more)
        home = self.server.home
        with open("/proc/%d/environ" % pid, "rb") as file:
            run = dict(entry.split(b"=", 1) for entry in file.read().split(b"\0") if b"=" in entry)[b"STINT_RUN"].decode()
        self.create(id="stranger", executor="stranger", workingDir=self.path("work"), payload={
            "home": home, "worker": worker.process.pid, "server": self.server.process.pid, "config": worker.config,
            "workerId": sibling["workerId"], "socket": os.path.join(home, "stint.sock"), "port": self.server.port, "person": self.path("person"),
            "sibling": {"task": "sibling", "run": os.path.join(home, "runs", run), "file": self.path("sibling/secret"), "pid": pid,
                        "fence": sibling["fence"]}})
        found = self.is_in("stranger", "done", "failed", "scheduled", "blocked")
        self.assertEqual(found["state"], "done", (found["error"], self.log("stranger")["data"][-2000:]))
        self.assertEqual(self.task("sibling")["state"], "running", "nothing happened to the sibling")
        self.assertEqual((worker.process.poll(), self.server.process.poll()), (None, None))
        return found["result"]

    FAILS = {"read": {"EACCES", "EPERM"}, "write": {"EACCES", "EPERM"}, "list": {"EACCES", "EPERM"}, "link": {"EACCES", "EXDEV", "EPERM"},
             "signal": {"EPERM"}, "trace": {"EPERM"}, "without a token": {"401"}, "without a token, a change": {"401"},
             "guessed": {"401"}, "with its own token": {"403", "404"}, "mine the fence": {"refused"},
             "mine the fence of itself": {"refused"}}

    def every_attempt_fails(self, said, **besides):
        for name, came in said.items():
            kind = name.split(":")[0]
            with self.subTest(attempt=name):
                self.assertIn(came, self.FAILS[kind] | besides.get(kind, set()))
        self.assertGreaterEqual(len(said), 60)
        self.leaves_nothing_behind()

    def test_every_attempt_fails(self):
        said = self.attack()
        for name in list(said):
            if name.startswith("signal") and landlock_abi() < 6:
                del said[name]  # docs/isolation.md says so
        self.every_attempt_fails(said)

    def behind_a_wall_every_attempt_fails(self, **more):
        nowhere = {"ENOENT", "EROFS"}
        said = self.attack(**more)
        for place in ("TCP", "the server's socket"):
            for name in ("without a token: " + place, "without a token, a change: " + place):
                self.assertIn(said.pop(name), ("ECONNREFUSED", "ENETUNREACH") if place == "TCP" else ("ENOENT",))
        self.every_attempt_fails(said, read=nowhere, write=nowhere, list=nowhere, link=nowhere, signal={"ESRCH"})

    @needs("sandbox")
    def test_every_attempt_fails_in_a_sandbox(self):
        self.behind_a_wall_every_attempt_fails(isolation="sandbox")

    @needs("container")
    def test_every_attempt_fails_in_a_container(self):
        self.behind_a_wall_every_attempt_fails(isolation="container", rootfs=rootfs_with_usr(self), read=["/usr"])

    def leaves_nothing_behind(self):
        """It has put configurations into its work dir. Whoever works there, person or worker, reads none of them."""
        work = self.path("work")
        self.assertTrue(os.path.exists(os.path.join(work, ".stint/config.json")))
        env = stintd.environment(STINT_HOME=self.server.home, HOME=self.path("person"))
        for command in ([STINT, "config", "show"], [STINT, "ls"], [WORKER, "--home", self.server.home, "--check-config"]):
            ran = subprocess.run(command, cwd=work, env=env, capture_output=True, text=True, timeout=HANG_S)
            self.assertEqual(ran.returncode, 0, (command, ran.stderr))
            for word in ("6666", "evil", work):
                self.assertNotIn(word, ran.stdout + ran.stderr, command)
        self.assertEqual(os.listdir(self.path("person")), [])


class WorkDirs(StrangerCase):
    def test_a_work_dir_that_becomes_a_link_while_it_is_opened_leads_nowhere(self):
        """One task swaps a directory and a link to the state directory, as fast as it can; others ask to work there."""
        home, place = self.server.home, self.path("work/swap")
        self.worker({"swap": sh('mkdir here; ln -s %s there; while :; do mv -T here swap; mv -T swap here; mv -T there swap; mv -T swap there; done' % home),
                     "look": sh("pwd -P; ls; cat admin.token stint.db; touch here-i-was; true")},
                    "--concurrency", "6", roots=[self.path("work")])
        self.create(id="swap", executor="swap", workingDir=self.path("work"))
        self.until(lambda: os.path.lexists(place), "it swaps")
        for number in range(RACES):
            self.create(id="t-%d" % number, executor="look", workingDir=place)
        inside = 0
        for number in range(RACES):
            task = self.is_in("t-%d" % number, "done", "blocked", "failed")
            if task["state"] == "blocked":
                self.assertEqual(task["error"]["code"], "BAD_WORKDIR", task["error"])
                continue
            self.assertEqual(task["state"], "done", task["error"])
            inside += 1
            log = self.log("t-%d" % number)["data"]
            self.assertNotIn(self.server.token, log)
            self.assertNotIn("SQLite", log)
            self.assertTrue(task["result"].startswith(self.path("work")), task["result"])
        print("%d of %d came in" % (inside, RACES))
        self.assertFalse(os.path.exists(os.path.join(home, "here-i-was")))
        self.is_in("swap", "running")
        self.assertEqual(self.client.post("/api/tasks/swap/cancel").status, 202)
        self.is_in("swap", "cancelled")


class Floods(StrangerCase):
    def test_gigabytes_of_output_cost_a_bounded_log_and_nobody_waits(self):
        worker = self.worker({"flood": sh("head -c %d /dev/zero | tr '\\0' x; echo end" % FLOOD_BYTES), "small": sh("echo small")},
                             "--concurrency", "2")
        self.create(id="flood", executor="flood")
        self.is_in("flood", "running", "claimed", "done")
        most = 0
        for number in range(5):
            self.create(id="small-%d" % number, executor="small")
            self.is_in("small-%d" % number, "done")
            most = max(most, resident_bytes(worker.process.pid))
        self.is_in("flood", "done")
        figure("worker whose task floods its log", max(most, resident_bytes(worker.process.pid)) / MIB, "MiB", 32)
        self.assertGreaterEqual(self.log("flood")["length"], FLOOD_BYTES)
        text = self.client.call("GET", "/api/tasks/flood/log", headers={"Accept": "text/plain"}).body
        self.assertLess(len(text), 16 << 20)
        self.assertTrue(text.endswith(b"end\n"), text[-100:])


if __name__ == "__main__":
    proof.main()
