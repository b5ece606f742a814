"""What a task leaves behind in places that are easy to overlook, and a repository that others use meanwhile."""
import os
import shutil
import socket
import unittest

from test_walls import needs
from test_worktrees import TreeCase


class Left(TreeCase):
    def test_a_commit_that_was_made_without_a_branch_and_left_stays(self):
        tree = self.kept("git checkout -q --detach; git commit -q --allow-empty -m lost; git commit -q --allow-empty -m more; git checkout -q -",
                         "2 commits made without a branch")
        self.git("branch", "found", self.git("-C", tree["path"], "rev-parse", "HEAD@{1}").strip())
        self.assertEqual(self.trees("--prune")[0]["state"], "removed", "something leads to them now")
        self.git("branch", "-q", "-D", "found")
        self.assert_nothing_left()

    def test_what_a_task_amended_rebased_or_reset_keeps_no_tree(self):
        self.run_in_tree("""set -e; next() { echo $1 > file; git commit -q -a -m $1; }
            next a; git commit -q --amend -m b; next c; git reset -q --hard HEAD~1; next d
            git checkout -q --detach; next e; git commit -q --amend -m f; git checkout -q @{-1}; git merge -q --ff-only @{-1}
            git rebase -q --force-rebase HEAD~2; git update-ref refs/remotes/origin/work HEAD""")
        self.assert_nothing_left()

    def test_a_ref_that_is_the_trees_own_stays(self):
        self.kept("git checkout -q --detach; git commit -q --allow-empty -m mine; git update-ref refs/worktree/mine HEAD; git checkout -q -",
                  "1 commit on stint/t-")

    def test_a_disk_that_is_not_mounted_is_no_tree_that_was_removed(self):
        root = self.path("disk")
        tree = self.kept("echo new > fresh", "1 uncommitted file", {"root": root})
        os.rename(root, root + ".away")
        for empty in (False, True):
            if empty:  # the directory is there again, and another disk behind it
                os.makedirs(os.path.dirname(tree["path"]))
            found, = self.trees("--prune")
            self.assertEqual(found["state"], "kept")
            self.assertIn("is its disk mounted?", found["reason"])
        shutil.rmtree(root)
        os.rename(root + ".away", root)
        self.assertEqual([row["reason"] for row in self.trees("--prune")], ["1 uncommitted file"])
        with open(os.path.join(tree["path"], "fresh")) as file:
            self.assertEqual(file.read(), "new\n")

    def test_a_tree_that_is_gone_is_forgotten_as_its_reason_says(self):
        tree = self.kept("echo new > fresh", "1 uncommitted file")
        shutil.rmtree(tree["path"])
        found, = self.trees("--prune")
        self.assertIn("git -C %s worktree prune" % self.repo, found["reason"])
        self.git("worktree", "prune")
        self.trees("--prune")
        self.assertEqual(self.trees(), [])
        self.assertIn(tree["branch"], self.branches(), "what is on its branch stays")

    def test_a_cherry_pick_half_done_stays(self):
        self.kept("""next() { echo $1 > file; git commit -q -a -m $1; }
            next a; next b; git branch stint/aside; git reset -q --hard HEAD~2; next c
            git cherry-pick stint/aside~1 stint/aside; git reset -q --hard stint/aside; git update-ref refs/remotes/origin/x HEAD; true""",
                  "a cherry-pick or a revert is not finished")


class Meanwhile(TreeCase):
    def test_git_may_pack_the_refs_while_a_task_works(self):
        """The directory of its branch is what it was granted: it stays though git has emptied it."""
        os.mkdir(self.path("signs"))
        worker = self.worker({"x": self.executor("touch %s; until [ -e %s ]; do sleep 0.01; done; git commit -q --allow-empty -m late"
                                                 % (self.path("signs/here"), self.path("signs/packed")), write=[self.path("signs")])}, roots=[self.folder])
        self.create(id="t", workingDir=self.repo, maxAttempts=1)
        self.until(lambda: os.path.exists(self.path("signs/here")), worker.said)
        self.git("pack-refs", "--all", "--prune")
        open(self.path("signs/packed"), "w").close()
        self.is_in("t", "done")
        worker.stop()
        self.assertIn("1 commit on stint/t-", self.only()["reason"])

    def test_a_task_can_push_where_nothing_was_ever_fetched(self):
        self.git("init", "-q", "--bare", self.path("remote"), cwd=self.folder)
        self.git("remote", "add", "origin", self.path("remote"))
        self.run_in_tree("git commit -q --allow-empty -m work && git push -q origin HEAD:work", write=[self.path("remote")])
        self.assertEqual(self.trees(), [], "it was pushed, and git has written that down")

    def test_the_tree_of_another_task_is_no_repository_to_work_in(self):
        self.run_in_tree("echo secret > fresh; echo secret > key.env")
        tree = self.only()
        worker = self.worker({"x": self.executor("cat key.env fresh")}, roots=["/"])
        self.create(id="thief", workingDir=tree["path"])
        error = self.is_in("thief", "blocked")["error"]
        worker.stop()
        self.assertEqual(error["code"], "BAD_WORKDIR")
        self.assertIn("lies in the state directory", error["message"])

    @needs("sandbox")
    @unittest.skipUnless(shutil.which("bash"), "there is no bash, which can connect by itself")
    def test_what_a_sandboxed_task_tells_git_to_run_is_run_in_a_sandbox(self):
        """With work trees that have a configuration of their own a task can name filters, and it is us who look for work then."""
        self.git("config", "extensions.worktreeConfig", "true")
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            script = """git config --worktree filter.out.clean "bash -c 'echo out > /dev/tcp/127.0.0.1/%d; cat'"
                echo '* filter=out' > .gitattributes; echo two > file""" % listener.getsockname()[1]
            self.run_in_tree(script, isolation="sandbox")
            self.assertEqual(self.trees("--prune")[0]["state"], "kept")
            with self.assertRaises(BlockingIOError, msg="somebody got out"):
                listener.accept()


if __name__ == "__main__":
    unittest.main()
