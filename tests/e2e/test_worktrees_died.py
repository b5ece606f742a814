"""Work trees of workers that were killed: the next one brings them to their end."""
import fcntl
import glob
import json
import os
import random
import shutil
import signal
import time
import unittest

from hang import HANG_S
from test_worker import sh
from test_worktrees import TreeCase


class Died(TreeCase):
    """kill -9 at any point: the next worker brings it to an end."""

    def kill_when(self, worker, is_so):
        self.until(is_so, worker.said())
        worker.process.send_signal(signal.SIGKILL)
        worker.process.wait(HANG_S)

    def heal(self):
        log = os.path.join(self.server.home, "worker.log")
        before = os.path.getsize(log) if os.path.exists(log) else 0
        worker = self.worker({"other": sh("true")}, queues={"nothing": {}})
        self.until(lambda: "registered" in worker.said()[before:], worker.said)
        worker.stop()

    def test_while_it_was_made(self):
        worker = self.worker({"x": self.executor("true", {"setup": ["sh", "-c", "touch %s; sleep 1000" % self.path("here")]},
                                                 write=[self.folder])}, roots=[self.folder])
        self.create(id="t", workingDir=self.repo)
        self.kill_when(worker, lambda: os.path.exists(self.path("here")))
        self.assertEqual(self.only()["state"], "making")
        self.heal()
        self.assert_nothing_left()

    def test_while_it_ran_with_and_without_work(self):
        for task, script, left in (("t", "true", 0), ("u", "echo x > fresh", 1)):
            here = self.path("here-" + task)
            worker = self.worker({"x": self.executor("%s; touch %s; sleep 1000" % (script, here), write=[self.folder])},
                                 roots=[self.folder])
            self.create(id=task, workingDir=self.repo)
            self.kill_when(worker, lambda: os.path.exists(here))
            self.client.post("/api/tasks/%s/cancel" % task, {})
            self.heal()
            self.assertEqual(len(self.trees()), left)
        self.assertEqual(self.only()["state"], "kept")

    def test_at_any_moment(self):
        for turn in range(8):
            worker = self.worker({"x": self.executor("echo x > cache.env")}, "--name", "w%d" % turn, roots=[self.folder])
            task = "t%d" % turn
            self.create(id=task, workingDir=self.repo)
            self.until(lambda: self.task(task)["state"] != "ready", worker.said)
            deadline = time.monotonic() + random.Random(turn).random() * 0.1
            while time.monotonic() < deadline:
                pass
            worker.process.send_signal(signal.SIGKILL)
            worker.process.wait(HANG_S)
            self.client.post("/api/tasks/%s/cancel" % task, {})
            self.heal()
            self.assert_nothing_left()
            self.git("fsck", "--strict")

    def test_while_its_git_had_a_lock_in_the_repository(self):
        """A git that was killed leaves its locks: this one comes to its end, though nobody waits for it any more."""
        self.git("config", "core.packedRefsTimeout", "-1")
        foreign = os.path.join(self.repo, ".git/packed-refs.lock")
        open(foreign, "w").close()
        worker = self.worker({"x": self.executor("touch " + self.path("here"), write=[self.folder])}, roots=[self.folder])
        self.create(id="t", workingDir=self.repo)
        self.kill_when(worker, lambda: os.path.exists(self.path("here")) and
                       glob.glob(os.path.join(self.repo, ".git/refs/heads/stint/*.lock")))
        with open(os.path.join(self.server.home, "worktrees/records", self.only()["name"], "jobs")) as jobs:
            with self.assertRaises(BlockingIOError):
                fcntl.flock(jobs, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.remove(foreign)
            fcntl.flock(jobs, fcntl.LOCK_EX)  # as a successor waits for it
        self.assertEqual(self.branches(), ["main"])
        self.heal()
        self.assert_nothing_left()

    def half(self, state, spoil):
        """A tree whose record says so, and of which only a part is there."""
        self.run_in_tree("echo x > fresh")
        tree = self.only()
        os.remove(os.path.join(tree["path"], "fresh"))
        path = os.path.join(self.server.home, "worktrees/records", tree["name"], "record")
        with open(path) as file:
            record = json.load(file)
        record["state"] = state
        record["tip"] = record["base"]
        with open(path, "w") as file:
            json.dump(record, file)
        spoil(tree, record)
        self.heal()
        self.assert_nothing_left()

    def test_while_it_was_removed(self):
        self.half("removing", lambda tree, record: os.remove(os.path.join(tree["path"], "file")))

    def test_when_only_what_is_gits_was_left(self):
        self.half("removing", lambda tree, record: shutil.rmtree(tree["path"]))

    def test_when_git_had_not_come_to_an_end(self):
        def spoil(tree, record):
            os.remove(os.path.join(tree["path"], ".git"))
            record["git"] = ""
            with open(os.path.join(self.server.home, "worktrees/records", tree["name"], "record"), "w") as file:
                json.dump(record, file)
        self.half("making", spoil)

    def lock_branch(self, tree, record):
        open(os.path.join(self.repo, ".git/refs/heads", tree["branch"] + ".lock"), "w").close()

    def test_when_a_git_that_made_it_was_killed_over_its_branch(self):
        self.half("making", self.lock_branch)

    def test_when_a_git_that_removed_it_was_killed_over_its_branch(self):
        self.half("removing", self.lock_branch)

    def test_before_anything_was_written_down(self):
        os.makedirs(os.path.join(self.server.home, "worktrees/records/t-1"))
        self.heal()
        self.assertEqual(os.listdir(os.path.join(self.server.home, "worktrees/records")), [])

    def test_one_that_somebody_works_with_is_left_alone(self):
        here = self.path("here")
        worker = self.worker({"x": self.executor("touch %s; sleep 1000" % here, write=[self.folder], graceMs=500)}, "--drain-ms", "1",
                             roots=[self.folder])
        self.create(id="t", workingDir=self.repo)
        self.until(lambda: os.path.exists(here), worker.said)
        self.heal()
        self.assertEqual([row["state"] for row in self.trees("--prune")], ["live"])
        self.assertTrue(os.path.isdir(self.only()["path"]))
        worker.stop()
        self.assertEqual(self.trees(), [])

    def test_a_cancel_while_it_is_made_leaves_nothing(self):
        here = self.path("here")
        worker = self.worker({"x": self.executor("true", {"setup": ["sh", "-c", "touch %s; sleep 1000" % here]},
                                                 write=[self.folder])}, "--lease-ms", "1000", roots=[self.folder])
        self.create(id="t", workingDir=self.repo)
        self.until(lambda: os.path.exists(here), worker.said)
        self.client.post("/api/tasks/t/cancel", {})
        self.is_in("t", "cancelled")
        self.until(lambda: not self.trees(), "its tree goes")
        worker.stop()
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
