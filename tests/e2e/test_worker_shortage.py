"""A worker on a machine that is short of descriptors, processes or memory: what it cannot start goes back with the reason
and costs nothing, what the kernel kills is told, and everything is done in the end. The proofs are those of test_plugs.py."""
import contextlib
import os

import proof
import test_plugs

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
        self.start("few", "exec sleep 0.2", "--concurrency", str(TASKS), before=("sh", "-c", 'ulimit -n 60; exec "$@"', "few"))
        self.finish(tasks)
        self.assertGreater(self.refused(), 0)


class Processes(ShortageCase):
    def test_without_processes_work_is_put_off_and_done(self):
        cage = Cage(self, "pids", v1_max=15, v2_max=15)
        tasks = [self.create() for _ in range(TASKS)]
        self.start("few", "exec sleep 0.2", "--concurrency", str(TASKS), before=cage.command)
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


if __name__ == "__main__":
    proof.main()
