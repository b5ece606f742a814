"""A worker on a machine that is short of descriptors, processes or memory: what it cannot start goes back with the reason
and costs nothing, what the kernel kills is told, and everything is done in the end. The proofs are those of test_plugs.py."""
import contextlib
import json
import os
import shutil
import subprocess

from hang import HANG_S
import proof
import stintd
import test_plugs
import test_worker

TASKS = 10
SHORT = {"WORKER_INIT_FAILED"}


class Cage:
    """A cgroup with a limit, of the first version or of the second, and a command that goes in there."""

    def __init__(self, case, controller, **limits):
        first = "/sys/fs/cgroup/" + controller
        parent = first if os.path.isdir(first) else "/sys/fs/cgroup"
        self.path = os.path.join(parent, "stint-cage-%d-%s" % (os.getpid(), controller))
        try:
            os.mkdir(self.path)
        except OSError as fault:
            case.skipTest("no cgroup of our own: %s" % fault)
        case.addCleanup(os.rmdir, self.path)
        name, value = next((name, value) for name, value in limits.items()
                           if name.startswith("v1_") == (parent == first))
        try:
            with open(os.path.join(self.path, "%s.%s" % (controller, name[3:])), "w") as file:
                file.write(str(value))
        except OSError as fault:
            case.skipTest("no limit in it: %s" % fault)
        self.command = ("sh", "-c", 'echo $$ > %s/cgroup.procs; exec "$@"' % self.path, "cage")


class ShortageCase(test_plugs.PlugCase):
    flags = proof.settings(worker_leaseMinMs=1000, task_crashBudget=1)
    limits = ("crash_budget=1",)

    def start_until_refused(self, **options):
        """Start tasks that all stay until one could not be started, however slow the machine is."""
        hold = os.path.join(self.folder, "hold")
        os.mkfifo(hold)
        self.start("few", ": < $DIR/hold", "--concurrency", str(TASKS), **options)
        self.wait_until(lambda: any(event["type"] == "task.failed" for event in self.events()), test_plugs.PATIENCE_S,
                        "all were started")
        self.addCleanup(os.close, os.open(hold, os.O_RDWR))  # from now on nobody waits

    def finish(self, tasks, states=("done",)):
        """All of them ended as they should, and what is in between is told."""
        self.wait_until(lambda: all(self.state(task) in states for task in tasks), test_plugs.PATIENCE_S, "not all have ended")
        self.end_all()
        for task in tasks:
            found = self.task(task)
            self.assertEqual(found["spent"], 0, found)
            self.explained(task, found["attempt"])
        self.codes = [(event["data"].get("code"), event["data"].get("message")) for event in self.events()
                      if event["type"] == "task.failed"]
        self.assertEqual(self.server.stop(), 0)
        self.prove(limits=self.limits)

    def refused(self):
        """The reasons why something was not started: nothing else went wrong."""
        self.assertEqual({code for code, _ in self.codes} - SHORT, set())
        return len(self.codes)


class Descriptors(ShortageCase):
    def test_without_descriptors_work_is_put_off_and_done(self):
        tasks = [self.create() for _ in range(TASKS)]
        self.start_until_refused(before=("sh", "-c", 'ulimit -n 60; exec "$@"', "few"))
        self.finish(tasks)
        self.assertGreater(self.refused(), 0)


class Processes(ShortageCase):
    def test_without_processes_work_is_put_off_and_done(self):
        cage = Cage(self, "pids", v1_max=15, v2_max=15)
        tasks = [self.create() for _ in range(TASKS)]
        self.start_until_refused(before=cage.command)
        self.finish(tasks)
        self.assertGreater(self.refused(), 0)


class Memory(ShortageCase):
    def test_what_the_kernel_kills_for_its_memory_is_told_and_the_others_are_done(self):
        cage = Cage(self, "memory", v1_limit_in_bytes=64 << 20, v2_max=64 << 20)
        tasks = [self.create(id="small-%d" % number) for number in range(TASKS)]
        hogs = [self.create(id="hog-%d" % number) for number in range(2)]
        self.start("small", """case $STINT_TASK_ID in hog-*) x=$(head -c 100000000 /dev/zero | tr '\\0' x) ;; esac
                   echo "$STINT_TASK_ID" """,
                   "--concurrency", "4", before=cage.command)
        self.finish(tasks + hogs, ("done", "failed"))
        with self.server_again():
            for hog in hogs:
                self.assertEqual(self.task(hog)["error"]["details"], {"signal": 9})
            for task in tasks:
                self.assertEqual(self.task(task)["result"], task)

    @contextlib.contextmanager
    def server_again(self):
        self.client.close()
        self.server.start()
        yield
        self.server.stop()


# All that can be forked is, by programs that wait; then without another fork: it says why no more could be, waits for a word,
# and fails. The shell that is refused a process ends there: it is not the one that goes on.
BOMB = """sh -c 'left=%d; while [ $left -gt 0 ]; do sleep 120 & left=$((left - 1)); done' 2> $DIR/why
read -r why < $DIR/why
echo "$why" >&2
echo yes > $DIR/full
read -r word < $DIR/gate
exit 3
"""


class AnotherUser(test_worker.Case):
    """The limit of processes of a user does not hold root, so that this worker is somebody else."""
    user = 61000 + os.getpid() % 4000  # another run of this test has another

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("only root can start a worker as somebody else")
        if not shutil.which("setpriv"):
            self.skipTest("there is no setpriv")
        if self.processes():
            self.skipTest("somebody has the user id %d" % self.user)
        os.chmod(self.folder, 0o755)
        os.mkdir(self.path("bin"))
        for program in ("stint", "stint-worker", "stint-shim"):  # where they were built others need not be able to go
            shutil.copy(os.path.join(os.path.dirname(test_worker.WORKER), program), self.path("bin"))
        for name in ("home", "work"):
            os.mkdir(self.path(name), 0o700)
            os.chown(self.path(name), self.user, self.user)
        os.mkfifo(self.path("work/gate"))
        shutil.copy(os.path.join(self.server.home, "admin.token"), self.path("token"))
        for name in ("token", "work/gate"):
            os.chown(self.path(name), self.user, self.user)

    def processes(self):
        """Of that user, those that have ended and wait to be collected aside."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open("/proc/%s/status" % pid) as file:
                fields = dict(line.split(":", 1) for line in file if ":" in line)
                if int(fields["Uid"].split()[0]) == self.user and not fields["State"].strip().startswith("Z"):
                    found.append(int(pid))
        return found

    def begin(self, executors):
        with open(self.path("config"), "w") as file:
            json.dump({"executors": executors, "queues": {"q": {}}}, file)
        said_to = open(self.path("said"), "wb")
        self.addCleanup(said_to.close)
        process = subprocess.Popen(
            ["setpriv", "--reuid", str(self.user), "--regid", str(self.user), "--clear-groups", self.path("bin/stint-worker"),
             "--home", self.path("home"), "--config", self.path("config"), "--url", self.server.url, "--token-file",
             self.path("token"), "--concurrency", "2"],
            stdin=subprocess.DEVNULL, stderr=said_to, env=stintd.environment(), start_new_session=True)
        self.addCleanup(process.wait, HANG_S)
        self.addCleanup(process.kill)
        return process

    def test_a_fork_bomb_hits_its_limit_alone_and_nothing_is_left_of_it(self):
        with open("/proc/loadavg") as file:
            most = int(file.read().split()[3].split("/")[1]) + 2000  # many more than the limit lets it have
        worker = self.begin({
            "bomb": test_worker.sh(BOMB % most, env={"DIR": self.path("work")}, write=[self.path("work")], limits={"tasks": 5}),
            "other": test_worker.sh("echo $(echo alive)", limits={"tasks": 2000})})
        self.create(id="bomb", executor="bomb", maxAttempts=1)  # nobody opens the gate again
        self.read("work/full")
        self.assertGreater(len(self.processes()), 5)
        self.create(id="other", executor="other")
        self.assertEqual(self.is_in("other", "done")["result"], "alive")
        self.assertIn(self.task("bomb")["state"], ("claimed", "running"))
        with open(self.path("work/gate"), "w") as gate:
            gate.write("\n")
        error = self.until(lambda: self.task("bomb")["error"], "it failed")
        self.assertEqual((error["code"], error["details"]), ("EXECUTION_ERROR", {"exit": 3}))
        self.assertIn("fork", error["message"])
        self.until(lambda: self.processes() == [worker.pid], "nothing is left of it")
        worker.terminate()
        self.assertEqual(worker.wait(HANG_S), 0)


if __name__ == "__main__":
    proof.main()
