"""A worker whose disk is full: what it cannot start goes back with the reason, what has ended is reported all the same, and
when there is room again it goes on by itself.

The disk is a small file system in a mount namespace of this process alone; the server's is another one."""
import os
import unittest

from hang import HANG_S
import test_full_disk
import test_worker
import test_worktrees
from test_worker import sh

setUpModule = test_full_disk.setUpModule
UNTIL_GO = "echo $$ > $DIR/pid; until [ -e $DIR/go ]; do sleep 0.05; done; "
LONG = 100000  # more than becomes free with what the attempt itself had on disk


class FullDisk(test_worker.Case):
    def setUp(self):
        super().setUp()
        self.disk = test_full_disk.Disk(self)

    def start(self, script, *flags):
        return self.worker({"x": sh(script, env={"DIR": self.folder}, write=[self.folder])}, *flags, home=self.disk.place)

    def running(self, script="printf '\"'; head -c %d /dev/zero | tr '\\0' x; printf '\"'" % LONG, task="t"):
        """A worker with a task under way that waits for a file."""
        worker = self.start(UNTIL_GO + script)
        self.create(id=task)
        self.read("pid")
        self.is_in(task, "running")
        return worker

    def end_work(self, worker):
        open(self.path("go"), "w").close()
        self.until(lambda: '"ended"' in worker.said(), "it ended")

    def kill(self, worker):
        worker.process.kill()
        worker.process.wait(HANG_S)

    def outbox(self):
        place = os.path.join(self.disk.place, "workers")
        return [name for worker in os.listdir(place) for name in os.listdir(os.path.join(place, worker, "outbox"))
                if not name.startswith(".")]

    def return_of_the_server(self):
        self.server.start()
        self.client.close()

    def test_what_cannot_be_started_goes_back_with_the_reason_and_runs_when_there_is_room(self):
        worker = self.start("echo fine")
        self.until(lambda: '"registered"' in worker.said(), "registered")
        self.disk.fill()
        self.create(id="t")
        task = self.until(lambda: (found := self.task("t"))["error"] and found, "refused")
        self.assertEqual((task["error"]["code"], task["spent"], task["crashes"]), ("WORKER_INIT_FAILED", 0, 0))
        self.assertIn("No space left on device", task["error"]["message"])
        self.disk.make_room()
        self.assertEqual(self.is_in("t", "done")["result"], "fine")
        self.assertEqual(self.events("t").count("task.completed"), 1)

    def test_a_host_in_trouble_does_not_take_all_there_is(self):
        worker = self.start("echo fine")
        self.until(lambda: '"registered"' in worker.said(), "registered")
        self.disk.fill()
        for number in range(200):
            self.create(id="t-%d" % number)
        self.until(lambda: worker.said().count("cannot be run here") >= 2, "it tries again")
        untouched = [task for task in self.client.get("/api/tasks?limit=1000").json if task["attempt"] == 0]
        self.assertGreater(len(untouched), 150)
        self.disk.make_room()

    def test_what_ends_meanwhile_is_reported(self):
        worker = self.running()
        self.disk.fill()
        self.end_work(worker)
        self.assertEqual(self.is_in("t", "done")["result"], LONG * "x")
        self.assertIn("in memory alone", worker.said())

    def test_what_the_work_has_filled_is_free_for_its_report(self):
        worker = self.running("head -c 100000000 /dev/zero > $TMPDIR/all; printf '\"'; head -c %d /dev/zero | tr '\\0' x; printf '\"'" % LONG)
        self.server.kill()
        self.end_work(worker)
        self.until(lambda: len(self.outbox()) == 1, "its report is on disk")
        self.kill(worker)
        self.return_of_the_server()
        self.start("echo again")
        task = self.is_in("t", "done")
        self.assertEqual((task["result"], task["attempt"]), (LONG * "x", 1))

    def test_a_word_that_does_not_fit_is_not_forgotten(self):
        worker = self.start(test_worker.STINT + " task fail 'no disk'; echo $$ > $DIR/pid; until [ -e $DIR/go ]; do sleep 0.05; done")
        self.create(id="t", maxAttempts=1)
        self.read("pid")
        self.disk.fill()
        self.end_work(worker)
        self.assertEqual(self.is_in("t", "failed", "done")["state"], "failed")

    def test_a_report_is_written_down_as_soon_as_there_is_room(self):
        worker = self.running()
        self.server.kill()
        self.disk.fill()
        self.end_work(worker)
        self.assertEqual(self.outbox(), [])
        self.disk.make_room()
        self.until(self.outbox, "on disk")
        self.kill(worker)
        self.return_of_the_server()
        self.start("echo again")
        task = self.is_in("t", "done")
        self.assertEqual((task["result"], task["attempt"]), (LONG * "x", 1))

    def test_a_report_that_is_lost_with_its_worker_is_a_crash_and_explained(self):
        worker = self.running()
        self.server.kill()
        self.disk.fill()
        self.end_work(worker)
        self.kill(worker)
        self.disk.make_room()
        self.return_of_the_server()
        self.start("echo again")
        task = self.is_in("t", "done")
        self.assertEqual((task["result"], task["attempt"]), ("again", 2))
        failed, = [event for event in self.client.get("/api/tasks/t/events").json["events"] if event["type"] == "task.failed"]
        self.assertEqual(failed["data"]["code"], "WORKER_CRASHED")

    def test_a_worker_does_not_start_on_it_and_says_so(self):
        self.disk.fill()
        worker = self.start("echo fine")
        self.assertEqual(worker.process.wait(HANG_S), 75)
        self.assertIn("No space left on device", worker.said())


class WorkTrees(test_worktrees.TreeCase):
    """The disk with the state directory, or with the repository, is full when an attempt in a work tree is over."""

    def setUp(self):
        super().setUp()
        self.disk = test_full_disk.Disk(self)

    def running(self, script="true", home=None):
        """A worker with a task that has done this in its tree and waits for a file."""
        self.home = home
        script += "; touch %s; until [ -e %s ]; do sleep 0.01; done" % (self.path("here"), self.path("go"))
        worker = self.worker({"x": self.executor(script, write=[self.folder])}, roots=[self.folder, self.disk.place], home=home)
        self.create(id="t", workingDir=self.repo, maxAttempts=1)
        self.until(lambda: os.path.exists(self.path("here")), worker.said)
        return worker

    def end_when_full(self, worker):
        self.disk.fill()
        open(self.path("go"), "w").close()
        self.is_in("t", "done")
        self.until(lambda: "a work tree is kept" in worker.said(), worker.said)

    def test_a_tree_whose_end_cannot_be_written_down_is_listed_and_goes_when_there_is_room(self):
        worker = self.running(home=self.disk.place)
        self.end_when_full(worker)
        self.assertIn("its record cannot be written: No space left on device", worker.said())
        self.assertTrue(os.path.exists(os.path.join(self.only()["path"], "file")))
        self.disk.make_room()
        self.until(lambda: self.trees() == [], worker.said)
        self.assertEqual(worker.stop(), 0)
        self.assert_nothing_left()

    def test_work_is_there_whether_or_not_that_it_is_kept_could_be_written_down(self):
        worker = self.running("echo work > fresh", home=self.disk.place)
        self.end_when_full(worker)
        for _ in range(2):
            tree, = self.trees("--prune")
            self.assertEqual((tree["state"], tree["reason"]), ("kept", "1 uncommitted file"))
        self.disk.make_room()
        self.until(lambda: self.only()["reason"] == "1 uncommitted file", worker.said)
        with open(os.path.join(self.only()["path"], "fresh")) as file:
            self.assertEqual(file.read(), "work\n")
        self.assertEqual(worker.stop(), 0)

    def test_a_branch_that_the_disk_does_not_let_go_is_not_forgotten(self):
        """To take one out of the list of packed refs that is written anew, and here it needs more room than the tree left."""
        repo = os.path.join(self.disk.place, "repo")
        self.git("clone", "-q", self.repo, repo)
        self.repo = repo
        tip = self.git("rev-parse", "HEAD")
        for number in range(2000):
            with open(os.path.join(repo, ".git/refs/tags/t%d" % number), "w") as file:
                file.write(tip)
        worker = self.running()
        self.git("pack-refs", "--all", "--prune")
        self.end_when_full(worker)
        tree = self.only()
        self.assertEqual(tree["state"], "removing")
        self.assertIn("No space left on device", tree["reason"])
        self.assertEqual(self.branches(), ["main", tree["branch"]])
        self.disk.make_room()
        self.until(lambda: self.trees() == [], worker.said)
        self.assertEqual(worker.stop(), 0)
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
