"""A work tree of its own for a task: real git, real processes, and nothing that could be work is ever deleted."""
import json
import os
import random
import shutil
import signal
import subprocess
import time
import unittest

import stintd
from test_worker import STINT, Case, sh

GIT = shutil.which("git")
ENV = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": "/nonexistent", "PATH": os.environ["PATH"],
       "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "a",
       "GIT_COMMITTER_EMAIL": "a@example.org"}
AS_SOMEBODY = {name: value for name, value in ENV.items() if name.startswith("GIT_AUTHOR") or name.startswith("GIT_COMMITTER")}
AS_SOMEBODY["GIT_CONFIG_GLOBAL"] = "/dev/null"


@unittest.skipUnless(GIT, "git is not installed")
class TreeCase(Case):
    def setUp(self):
        super().setUp()
        self.folder = os.path.realpath(self.folder)
        self.repo = self.path("repo")
        self.git("init", "-q", "-b", "main", self.repo, cwd=self.folder)
        self.write("file", "one\n")
        self.write(".gitignore", "*.env\ncache/\n")
        self.write("sub/inner", "x")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "first")

    def git(self, *args, cwd=None):
        ran = subprocess.run([GIT, *args], cwd=cwd or self.repo, env=ENV, capture_output=True, text=True, timeout=60)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout

    def write(self, name, text):
        path = os.path.join(self.repo, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)

    def executor(self, script, worktree=True, **more):
        return sh(script, worktree=worktree, env=AS_SOMEBODY, **more)

    def run_in_tree(self, script, worktree=True, state="done", **more):
        worker = self.worker({"x": self.executor(script, worktree, **more)}, roots=[self.folder])
        self.create(id="t", workingDir=self.repo)
        task = self.is_in("t", "done", "failed", "blocked")
        self.assertEqual(task["state"], state, (task, worker.said()))
        self.assertEqual(worker.stop(), 0)
        return task

    def trees(self, *flags):
        ran = subprocess.run([STINT, "worker", "worktrees", "--home", self.server.home, "--json", *flags], capture_output=True,
                             text=True, timeout=120, env=stintd.environment())
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return json.loads(ran.stdout)["worktrees"]

    def branches(self):
        return self.git("branch", "--format=%(refname:short)").split()

    def assert_nothing_left(self):
        self.assertEqual(self.trees(), [])
        self.assertEqual(self.branches(), ["main"])
        self.assertEqual(self.git("worktree", "list", "--porcelain").count("worktree "), 1)
        self.assertEqual(self.git("status", "--porcelain"), "")

    def only(self):
        found = self.trees()
        self.assertEqual(len(found), 1, found)
        return found[0]


class Making(TreeCase):
    def test_a_task_works_in_a_tree_and_on_a_branch_of_its_own(self):
        task = self.run_in_tree("pwd; git rev-parse --abbrev-ref HEAD; cat file; rm -rf *; git checkout -q .")
        where, branch, text = task["result"].split("\n")
        self.assertTrue(where.startswith(os.path.join(self.server.home, "worktrees")), where)
        self.assertRegex(branch, r"^stint/t-[0-9.]+$")
        self.assertEqual(text, "one")
        self.assert_nothing_left()

    def test_a_directory_in_the_repository_is_that_of_the_tree(self):
        worker = self.worker({"x": self.executor("pwd; cat inner")}, roots=[self.folder])
        self.create(id="t", workingDir=os.path.join(self.repo, "sub"))
        self.assertRegex(self.is_in("t", "done")["result"], r"/sub\nx$")
        worker.stop()
        self.assert_nothing_left()

    def test_a_task_may_do_without(self):
        self.worker({"x": self.executor("pwd")}, roots=[self.folder])
        self.create(id="t", workingDir=self.repo, payload={"worktree": False})
        self.assertEqual(self.is_in("t", "done")["result"], self.repo)

    def test_what_the_include_file_names_and_git_ignores_is_there(self):
        self.write(".worktreeinclude", "*.env\n!no.env\ncache/wanted\nuntracked\n")
        for name in ("a.env", "no.env", "deep/b.env", "cache/wanted", "cache/other", "untracked"):
            self.write(name, name)
        self.git("add", ".worktreeinclude")
        self.git("commit", "-q", "-m", "include")
        task = self.run_in_tree("find . -name .git -prune -o -type f -print | sort | tr '\\n' ' '")
        names = task["result"].split()
        for name in ("./a.env", "./deep/b.env", "./cache/wanted"):
            self.assertIn(name, names)
        for name in ("./no.env", "./cache/other", "./untracked"):
            self.assertNotIn(name, names)
        self.assertEqual(self.trees(), [], "what git ignores is no work")

    def test_the_set_up_runs_in_it_and_what_it_makes_is_no_work(self):
        task = self.run_in_tree("cat made; ls", {"setup": ["sh", "-c", "echo $STINT_TASK_ID > made; ls $STINT_SOURCE_TREE > listed"],
                                                 "branch": "agents/{task}/{fence}"})
        self.assertTrue(task["result"].startswith("t\n"), task["result"])
        self.assert_nothing_left()

    def test_a_set_up_file_that_the_task_changed_is_work(self):
        self.run_in_tree("echo more >> made", {"setup": ["sh", "-c", "echo x > made; echo y > other"]})
        self.assertIn("1 uncommitted file", self.only()["reason"])

    def test_the_set_up_of_the_repository_only_where_the_configuration_says_so(self):
        self.write(".stint/setup.sh", "#!/bin/sh\ntouch ran.env\n")
        self.git("add", ".stint")
        self.git("commit", "-q", "-m", "setup")
        self.worker({"yes": self.executor("ls *.env", {"setup": "repository"}), "no": self.executor("ls")}, roots=[self.folder])
        self.create(id="t", executor="yes", workingDir=self.repo)
        self.create(id="u", executor="no", workingDir=self.repo)
        self.assertEqual(self.is_in("t", "done")["result"], "ran.env")
        self.assertNotIn("ran.env", self.is_in("u", "done")["result"])

    def test_a_set_up_that_fails_leaves_nothing_and_says_so(self):
        task = self.run_in_tree("true", {"setup": ["sh", "-c", "touch made; echo no network >&2; exit 3"]}, "blocked")
        self.assertEqual(task["error"]["code"], "BAD_WORKDIR")
        self.assertIn("its set-up: exit status 3: no network", task["error"]["message"])
        self.assert_nothing_left()

    def test_the_set_up_is_confined_like_the_task(self):
        self.write(".stint/setup.sh", "cat %s/admin.token\n" % self.server.home)
        self.git("add", ".stint")
        self.git("commit", "-q", "-m", "hostile")
        task = self.run_in_tree("true", {"setup": "repository"}, "blocked")
        self.assertIn("Permission denied", task["error"]["message"])

    def test_where_there_is_no_repository_it_is_refused(self):
        self.worker({"x": self.executor("true")}, roots=[self.folder])
        os.mkdir(self.path("plain"))
        self.create(id="t", workingDir=self.path("plain"))
        error = self.is_in("t", "blocked")["error"]
        self.assertEqual(error["code"], "BAD_WORKDIR")
        self.assertIn("is in no git repository", error["message"])

    def test_a_repository_outside_of_the_roots_is_refused(self):
        os.mkdir(self.path("root"))
        os.mkdir(self.path("root/lies"))
        with open(self.path("root/lies/.git"), "w") as file:
            file.write("gitdir: %s/.git\n" % self.repo)
        self.worker({"x": self.executor("true")}, roots=[self.path("root")])
        self.create(id="t", workingDir=self.path("root/lies"))
        error = self.is_in("t", "blocked")["error"]
        self.assertEqual(error["code"], "BAD_WORKDIR")
        self.assertIn("outside of the roots", error["message"])

    def test_a_base_that_is_not_there_is_refused(self):
        task = self.run_in_tree("true", {"base": "origin/main"}, "blocked")
        self.assertIn("it has no commit 'origin/main'", task["error"]["message"])
        self.assert_nothing_left()


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
    def kept(self, script, reason):
        self.run_in_tree(script)
        tree = self.only()
        self.assertEqual(tree["state"], "kept")
        self.assertIn(reason, tree["reason"])
        self.assertTrue(os.path.isdir(tree["path"]))
        self.assertEqual(self.trees("--prune"), [tree], "pruning takes nothing that has work in it")
        self.assertTrue(os.path.isdir(tree["path"]))
        return tree

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
        self.worker({"x": self.executor("test $STINT_ATTEMPT = 2 && exit 0; echo half > fresh; exit 1")}, roots=[self.folder])
        self.create(id="t", workingDir=self.repo, maxAttempts=2)
        self.is_in("t", "done")
        self.assertEqual(self.until(lambda: len(self.trees()) == 1 and self.only()["reason"], "one is kept"), "1 uncommitted file")


class Died(TreeCase):
    """kill -9 at any point: the next worker brings it to an end."""

    def kill_when(self, worker, is_so):
        self.until(is_so, worker.said())
        worker.process.send_signal(signal.SIGKILL)
        worker.process.wait(10)

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
            worker.process.wait(10)
            self.client.post("/api/tasks/%s/cancel" % task, {})
            self.heal()
            self.assert_nothing_left()
            self.git("fsck", "--strict")

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


class Places(TreeCase):
    def small_disk(self):
        small = self.path("small")
        os.mkdir(small)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs", small]).returncode != 0:
            self.skipTest("tmpfs cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", small])
        return small

    def test_a_work_dir_that_is_none_is_told_in_a_sentence(self):
        self.worker({"x": sh("true")}, roots=[self.folder])
        os.symlink("/etc", self.path("out"))
        os.symlink(self.repo, self.path("in"))
        for name, words in (("missing", "does not exist"), ("repo/file", "is not a directory"),
                            ("out", "leads through a symbolic link"), ("in", "leads through a symbolic link"),
                            ("../..", "is not beneath a root of this worker"), ("", "is not beneath a root of this worker")):
            task = "t" + str(len(name))
            self.create(id=task, workingDir=self.path(name) if name else "/etc")
            error = self.is_in(task, "blocked")["error"]
            self.assertEqual(error["code"], "BAD_WORKDIR")
            self.assertIn(words, error["message"])

    @unittest.skipUnless(os.geteuid() == 0, "only root can mount a small disk")
    def test_a_work_dir_on_a_full_disk_is_told_so(self):
        small = self.small_disk()
        try:
            with open(os.path.join(small, "all"), "wb", buffering=0) as file:
                while file.write(bytes(4096)) > 0:
                    pass
        except OSError:
            pass
        self.worker({"x": sh("true")}, roots=[self.folder])
        self.create(id="t", workingDir=small)
        error = self.is_in("t", "blocked")["error"]
        self.assertEqual(error["code"], "BAD_WORKDIR")
        self.assertIn("is on a disk that is full", error["message"])

    @unittest.skipUnless(os.geteuid() == 0, "only root can mount a small disk")
    def test_a_disk_without_room_for_a_tree_is_a_bad_work_dir(self):
        small = self.small_disk()
        self.write("large", os.urandom(400000).hex())
        self.git("add", "large")
        self.git("commit", "-q", "-m", "large")
        task = self.run_in_tree("true", {"root": small}, "blocked")
        self.assertEqual(task["error"]["code"], "BAD_WORKDIR")
        self.assertRegex(task["error"]["message"], "unable to write file")
        self.assertRegex(task["error"]["message"], r"with [0-9]+ KiB left on the disk of " + small)
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
