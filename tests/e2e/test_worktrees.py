"""A work tree of its own for a task: real git, real processes, and nothing that could be work is ever deleted."""
import fcntl
import glob
import json
import os
import shutil
import subprocess
import tempfile
import unittest

from hang import HANG_S
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
    home = None  # of the worker; else the server's

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
        ran = subprocess.run([GIT, *args], cwd=cwd or self.repo, env=ENV, capture_output=True, text=True, timeout=HANG_S)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout

    def write(self, name, text):
        path = os.path.join(self.repo, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)

    def executor(self, script, worktree=True, **more):
        return sh(script, worktree=worktree, env=AS_SOMEBODY, **more)

    def run_in_tree(self, script, worktree=True, state="done", name="t", **more):
        worker = self.worker({"x": self.executor(script, worktree, **more)}, roots=[self.folder])
        self.create(id=name, workingDir=self.repo)
        task = self.is_in(name, "done", "failed", "blocked")
        self.assertEqual(task["state"], state, (task, worker.said()))
        self.assertEqual(worker.stop(), 0)
        return task

    def trees(self, *flags):
        ran = subprocess.run([STINT, "worker", "worktrees", "--home", self.home or self.server.home, "--json", *flags], capture_output=True,
                             text=True, timeout=HANG_S, env=stintd.environment())
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

    def kept(self, script, reason, worktree=True, **more):
        self.run_in_tree(script, worktree, **more)
        tree = self.only()
        self.assertEqual(tree["state"], "kept")
        self.assertIn(reason, tree["reason"])
        self.assertTrue(os.path.isdir(tree["path"]))
        self.assertEqual(self.trees("--prune"), [tree], "pruning takes nothing that has work in it")
        self.assertTrue(os.path.isdir(tree["path"]))
        return tree


class Making(TreeCase):
    def test_a_task_works_in_a_tree_and_on_a_branch_of_its_own(self):
        task = self.run_in_tree("pwd; git rev-parse --abbrev-ref HEAD; cat file; rm -rf *; git checkout -q .")
        where, branch, text = task["result"].split("\n")
        self.assertTrue(where.startswith(os.path.join(self.server.home, "worktrees")), where)
        self.assertRegex(branch, r"^stint/t-[0-9.]+$")
        self.assertEqual(text, "one")
        self.assert_nothing_left()

    def test_many_at_once_do_not_stumble_over_each_other(self):
        """git that adds a tree looks at all the others, and fails over one that is half there."""
        worker = self.worker({"x": self.executor("echo $STINT_TASK_ID > cache.env")}, "--concurrency", "8", roots=[self.folder])
        for i in range(24):
            self.create(id="t%d" % i, workingDir=self.repo)
        for i in range(24):
            self.is_in("t%d" % i, "done")
        worker.stop()
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

    def test_a_repository_that_the_include_file_names_comes_whole(self):
        self.write(".worktreeinclude", "cache/\n")
        self.git("init", "-q", "cache/nested")
        self.write("cache/nested/deep/a", "nested")
        self.write("cache/b", "flat")
        self.assertEqual(self.run_in_tree("cat cache/b cache/nested/deep/a cache/nested/.git/HEAD")["result"].split("\n")[0],
                         "flatnestedref: refs/heads/master")

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

    def test_what_cannot_have_a_tree_is_told(self):
        bare, other = self.path("bare"), self.path("other")
        self.git("clone", "-q", "--bare", self.repo, bare)
        self.git("clone", "-q", self.repo, other)
        self.git("branch", "stint", cwd=other)
        os.makedirs(self.path("table"))
        self.git("clone", "-q", self.repo, self.path("table"))
        os.mkdir(self.path("table/.git/reftable"))
        self.worker({"x": self.executor("true")}, roots=[self.folder])
        for name, path, words in (("bare", bare, "is a bare repository"), ("git", os.path.join(self.repo, ".git"), "is a bare repository"),
                                  ("branch", other, "'refs/heads/stint' exists; cannot create"), ("table", self.path("table"), "reftable")):
            self.create(id=name, workingDir=path)
            error = self.is_in(name, "blocked")["error"]
            self.assertEqual(error["code"], "BAD_WORKDIR")
            self.assertIn(words, error["message"])
        self.assertEqual(self.trees(), [])

    def test_a_base_that_is_not_there_is_refused(self):
        task = self.run_in_tree("true", {"base": "origin/main"}, "blocked")
        self.assertIn("it has no commit 'origin/main'", task["error"]["message"])
        self.assert_nothing_left()


class OneAtATime(TreeCase):
    """git that adds a tree looks at all the others, and fails over one that is half there: those of one repository are added and
    removed one after the other."""

    def fingerprint(self):
        """As the worker calls the repository."""
        name = 14695981039346656037
        for byte in os.path.join(self.repo, ".git").encode():
            name = (name ^ byte) * 1099511628211 % (1 << 64)
        return "%016x" % name

    def add_stops(self):
        """A git and an rm that stop at a file: beside the trees, where both may look and write, and no task may."""
        self.root = tempfile.mkdtemp(prefix="stint-trees-")
        self.addCleanup(shutil.rmtree, self.root)
        self.stops = os.path.join(self.root, self.fingerprint())
        os.mkdir(self.stops)
        for program, begins in (("git", "worktree add"), ("rm", "-rf --one-file-system")):
            with open(os.path.join(self.stops, program), "w") as file:
                file.write("""#!/bin/sh
                    if [ "$1 $2" = "%s" ]; then
                        : > %s.here; while [ -e %s.stop ]; do sleep 0.01; done
                    fi
                    exec %s "$@"
                    """ % (begins, file.name, file.name, shutil.which(program)))
            os.chmod(file.name, 0o755)
            open(file.name + ".stop", "w").close()

    def start(self, script="true", worktree=True, **variables):
        return self.worker({"x": self.executor(script, worktree, write=[self.folder])}, "--concurrency", "2", roots=[self.folder], **variables)

    def lock(self):
        os.makedirs(os.path.join(self.server.home, "worktrees/locks"), 0o700, exist_ok=True)
        return open(os.path.join(self.server.home, "worktrees/locks", self.fingerprint()), "a")

    def is_becoming(self, state):
        for path in glob.glob(os.path.join(self.server.home, "worktrees/records/t-*/record")):
            with open(path) as file:
                return json.load(file)["state"] == state

    def elsewhere(self, task):
        """From its beginning to its end in another repository: those do not wait for each other."""
        self.create(id=task, workingDir=self.path("other"))
        self.is_in(task, "done")
        self.until(lambda: not glob.glob(os.path.join(self.server.home, "worktrees/records/%s-*" % task)), task)

    def test_the_repository_is_locked_while_git_adds_a_tree_and_while_one_is_removed(self):
        self.add_stops()
        worker = self.start(worktree={"root": self.root}, PATH=self.stops + ":" + ENV["PATH"])
        self.create(id="t", workingDir=self.repo)
        for program in ("git", "rm"):
            self.until(lambda: os.path.exists(os.path.join(self.stops, program + ".here")), worker.said)
            with self.lock() as lock, self.assertRaises(BlockingIOError, msg=program):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.remove(os.path.join(self.stops, program + ".stop"))
        self.is_in("t", "done")
        worker.stop()
        self.assert_nothing_left()
        with self.lock() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def test_nothing_is_added_or_removed_while_somebody_else_does(self):
        self.git("clone", "-q", self.repo, self.path("other"))
        worker = self.start("test $STINT_TASK_ID != t || { touch %s; until [ -e %s ]; do sleep 0.01; done; }"
                            % (self.path("here"), self.path("go")))
        with self.lock() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.create(id="t", workingDir=self.repo)
            self.until(lambda: self.is_becoming("making"), worker.said)
            self.elsewhere("u")
            self.assertEqual(glob.glob(os.path.join(self.repo, ".git/worktrees/t-*")), [], "git has not begun")
        self.until(lambda: os.path.exists(self.path("here")), worker.said)
        tree, = glob.glob(os.path.join(self.server.home, "worktrees/*/t-*/.git"))
        with self.lock() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            open(self.path("go"), "w").close()
            self.until(lambda: self.is_becoming("removing"), worker.said)
            self.elsewhere("v")
            self.assertTrue(os.path.exists(tree), "it is not being removed")
        self.is_in("t", "done")
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
                            ("../..", "is not among this worker's \"roots\""), ("", "/etc is not among this worker's \"roots\" (%s). Add it in " % self.folder)):
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
