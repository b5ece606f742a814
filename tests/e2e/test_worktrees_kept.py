"""What is in a work tree that could be work stays, and what a task can do to the repository is not much."""
import os
import shutil
import unittest

import stintd
from test_worktrees import TreeCase


class Hostile(TreeCase):
    def test_hooks_and_monitors_of_a_repository_do_not_run(self):
        for hook in ("post-checkout", "reference-transaction", "post-index-change"):
            path = os.path.join(self.repo, ".git/hooks", hook)
            with open(path, "w") as file:
                file.write("#!/bin/sh\ntouch %s\n" % self.path("planted"))
            os.chmod(path, 0o755)
        self.git("config", "core.fsmonitor", "touch %s; false" % self.path("planted"))
        os.remove(self.path("planted")) if os.path.exists(self.path("planted")) else None
        self.run_in_tree("true", write=[self.folder])
        self.assertFalse(os.path.exists(self.path("planted")))

    def test_a_task_commits_and_can_change_nothing_else_of_the_repository(self):
        script = """echo two > file && git commit -q -a -m second || exit 9
        common=$(git rev-parse --git-common-dir)
        for path in hooks/post-commit config HEAD refs/heads/main info/attributes packed-refs; do
            (echo x >> $common/$path) 2>/dev/null && echo changed $path
        done
        git config user.name x 2>/dev/null && echo changed config
        (echo x > %s/file) 2>/dev/null && echo changed source
        git update-ref refs/heads/other HEAD 2>/dev/null && echo changed branches
        true""" % self.repo
        self.assertEqual(self.run_in_tree(script)["result"], "")
        self.assertIn("1 commit on stint/t-", self.only()["reason"])


    def test_git_may_pack_the_refs_while_a_task_works(self):
        """The directory of its branch is what it was granted: it stays though git has emptied it."""
        worker = self.worker({"x": self.executor("touch %s; until [ -e %s ]; do sleep 0.01; done; git commit -q --allow-empty -m late"
                                                 % (self.path("here"), self.path("packed")), write=[self.folder])}, roots=[self.folder])
        self.create(id="t", workingDir=self.repo, maxAttempts=1)
        self.until(lambda: os.path.exists(self.path("here")), worker.said)
        self.git("pack-refs", "--all", "--prune")
        open(self.path("packed"), "w").close()
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


class Ending(TreeCase):
    def kept(self, script, reason, worktree=True, **more):
        self.run_in_tree(script, worktree, **more)
        tree = self.only()
        self.assertEqual(tree["state"], "kept")
        self.assertIn(reason, tree["reason"])
        self.assertTrue(os.path.isdir(tree["path"]))
        self.assertEqual(self.trees("--prune"), [tree], "pruning takes nothing that has work in it")
        self.assertTrue(os.path.isdir(tree["path"]))
        return tree

    def throw_away(self, tree):
        self.git("worktree", "remove", "--force", "--force", tree["path"])
        self.trees("--prune")

    def test_changed_and_new_and_staged_files_stay(self):
        tree = self.kept("echo two > file; echo new > fresh; echo s > staged; git add staged", "3 uncommitted files")
        with open(os.path.join(tree["path"], "fresh")) as file:
            self.assertEqual(file.read(), "new\n")

    def test_deleted_files_are_a_change(self):
        self.kept("rm file", "1 uncommitted file")

    def test_commits_that_were_not_pushed_stay_until_they_are(self):
        tree = self.kept("echo two > file; git commit -q -a -m second; git commit -q --allow-empty -m third", "2 commits")
        self.git("init", "-q", "--bare", self.path("remote"), cwd=self.folder)
        self.git("remote", "add", "origin", self.path("remote"))
        self.git("push", "-q", "origin", tree["branch"])
        self.assertEqual([(row["name"], row["state"]) for row in self.trees("--prune")], [(tree["name"], "removed")])
        self.assert_nothing_left()

    def test_a_commit_without_a_branch_stays(self):
        self.kept("git checkout -q --detach; git commit -q --allow-empty -m lost", "1 commit")

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

    def test_a_merge_half_done_stays(self):
        self.kept("""git commit -q --allow-empty -m a; git checkout -q --detach HEAD~1; git commit -q --allow-empty -m b
            git merge -q --no-commit --no-ff @{-1}; true""", "a merge is not finished")

    def test_a_tree_that_somebody_locked_stays(self):
        self.run_in_tree("echo x > fresh")
        tree = self.only()
        os.remove(os.path.join(tree["path"], "fresh"))
        self.git("worktree", "lock", tree["path"])
        self.assertEqual(self.trees("--prune")[0]["reason"], "somebody has locked it")
        self.git("worktree", "unlock", tree["path"])
        self.assertEqual(self.trees("--prune")[0]["state"], "removed")
        self.assert_nothing_left()

    def test_what_somebody_removed_is_forgotten_and_its_branch_stays(self):
        tree = self.kept("git commit -q --allow-empty -m work", "1 commit")
        self.git("worktree", "remove", "--force", tree["path"])
        self.trees("--prune")
        self.assertEqual(self.trees(), [])
        self.assertIn(tree["branch"], self.branches())

    def test_closed_directories_do_not_keep_a_clean_tree(self):
        self.run_in_tree("mkdir -p cache/deep; touch cache/deep/file; chmod 0 cache/deep cache")
        self.assert_nothing_left()

    def test_a_failed_attempt_keeps_its_work_too_and_the_next_has_a_tree_of_its_own(self):
        worker = self.worker({"x": self.executor("test $STINT_ATTEMPT = 2 && exit 0; echo half > fresh; exit 1")}, roots=[self.folder])
        self.create(id="t", workingDir=self.repo, maxAttempts=2)
        self.is_in("t", "done")
        worker.stop()
        self.assertEqual(self.only()["reason"], "1 uncommitted file")

    def test_files_that_git_was_told_to_look_away_from_stay_if_they_are_there(self):
        for flag in ("--assume-unchanged", "--skip-worktree"):
            with self.subTest(flag):
                tree = self.kept("git update-index %s file; echo two > file" % flag, "1 uncommitted file", name="t" + flag)
                self.throw_away(tree)
        self.run_in_tree("git update-index --skip-worktree file; rm file", name="sparse")
        self.assertEqual(self.trees(), [], "as in a sparse checkout")

    def test_what_the_set_up_hid_from_git_is_no_work_until_somebody_changes_it(self):
        hides = {"setup": ["sh", "-c", "git update-index --skip-worktree file; echo mine > file"]}
        self.run_in_tree("true", hides)
        self.assert_nothing_left()
        self.kept("echo more >> file", "1 uncommitted file", hides, name="t2")

    def add_submodule(self):
        self.git("init", "-q", "-b", "main", self.path("lib"), cwd=self.folder)
        self.git("commit", "-q", "--allow-empty", "-m", "lib", cwd=self.path("lib"))
        self.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", self.path("lib"), "lib")
        self.git("config", "-f", ".gitmodules", "submodule.lib.ignore", "all")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "with lib")

    def test_a_submodule_that_somebody_filled_stays_whatever_its_repository_says(self):
        self.add_submodule()
        self.run_in_tree("true")
        self.assertEqual(self.trees(), [], "nobody filled it")
        for name, script in enumerate((
                "git commit -q --allow-empty -m work",
                "git checkout -q -b x; git commit -q --allow-empty -m work; git checkout -q main")):
            with self.subTest(script):
                tree = self.kept("git init -q -b main lib && cd lib && git pull -q %s main && %s" % (self.path("lib"), script),
                                 "uncommitted file", name="t%d" % name, read=[self.path("lib")])
                self.throw_away(tree)

    def test_a_repository_that_the_set_up_made_is_never_known_to_be_without_work(self):
        set_up = "git init -q other; echo x > other/file"
        self.kept("echo work > other/file", "1 uncommitted file", {"setup": ["sh", "-c", set_up]})


class Others(TreeCase):
    """A server that was begun anew gives the same task the same fence: what lies there is somebody else's."""

    def begin_anew(self):
        self.client.close()
        self.server.end()
        self.server = stintd.Server(*self.flags)
        self.client = self.server.client()

    def test_a_tree_of_that_name_is_not_touched(self):
        fence = self.run_in_tree("echo x > fresh", {"root": self.path("trees")})["fence"]
        tree = self.only()
        path = tree["path"]
        self.git("checkout", "-q", "--detach", cwd=path)
        self.git("branch", "-q", "-D", tree["branch"])
        self.begin_anew()
        task = self.run_in_tree("true", {"root": self.path("trees")}, "blocked")
        self.assertEqual((task["fence"], task["error"]["code"]), (fence, "BAD_WORKDIR"))
        self.assertIn("File exists", task["error"]["message"])
        self.assertTrue(os.path.exists(os.path.join(path, "fresh")))
        self.assertEqual(self.trees(), [], "nothing of it is ours")

    def test_a_branch_of_that_name_is_not_touched(self):
        self.run_in_tree("echo x > fresh", {"root": self.path("one")})
        tree = self.only()
        self.begin_anew()
        task = self.run_in_tree("true", {"root": self.path("two")}, "blocked")
        self.assertEqual(task["error"]["code"], "BAD_WORKDIR")
        self.assertIn("there is a branch '%s' already" % tree["branch"], task["error"]["message"])
        self.assertIn(tree["branch"], self.branches())
        self.assertEqual(self.trees(), [], "nothing of it is ours")


if __name__ == "__main__":
    unittest.main()
