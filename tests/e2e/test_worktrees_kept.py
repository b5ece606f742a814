"""What is in a work tree that could be work stays, and what a task can do to the repository is not much."""
import os
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


class Ending(TreeCase):
    def throw_away(self, tree):
        self.git("worktree", "remove", "--force", "--force", tree["path"])
        self.trees("--prune")

    def test_changed_and_new_and_staged_files_stay(self):
        tree = self.kept("echo two > file; echo new > fresh; echo s > staged; git add staged", "3 uncommitted files")
        with open(os.path.join(tree["path"], "fresh")) as file:
            self.assertEqual(file.read(), "new\n")

    def test_the_log_says_where_the_work_is(self):
        tree = self.kept("echo x > fresh; printf hello", "1 uncommitted file")
        self.assertEqual(self.client.get("/api/tasks/t/log").json["data"], "hello\nstint: its work tree is kept, on branch %s: %s (%s)\n" %
                         (tree["branch"], tree["path"], tree["reason"]))

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
