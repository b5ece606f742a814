"""Programs of different versions together: ./dev compat

A server of this tree with the command and the worker of older commits, and the reverse for the newest of them; and a store that goes from an
old server to this one and back. The older programs are built from git, once, into build/compat/COMMIT. They speak for themselves: no reply of an
older server is compared with today's contract.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../e2e"))
from hang import HANG_S  # noqa: E402
import stintd  # noqa: E402

TOP = os.path.dirname(os.path.dirname(HERE))
PROGRAMS = ("stint", "stintd", "stint-worker", "stint-shim")
# The last commits before larger work began, oldest first: what a user of that day has installed. Servers refuse what they do not know, so
# clients of this tree are tried with the newest of these servers alone: docs/compatibility.md says to update the server first.
OLD = ("ba4a522c", "1b3a5603")
BUILD_S = 1800


def built(commit):
    """The directory with the programs of that commit."""
    place = os.path.join(TOP, "build", "compat", commit)
    programs = os.path.join(place, "build")
    if os.path.exists(os.path.join(place, "built")):
        return programs
    if subprocess.run(["git", "-C", TOP, "cat-file", "-e", commit + "^{commit}"], stderr=subprocess.DEVNULL).returncode != 0:
        raise unittest.SkipTest(f"commit {commit} is not here: git fetch --unshallow")
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(os.path.join(place, "tree"))
    archive = subprocess.Popen(["git", "-C", TOP, "archive", commit], stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", os.path.join(place, "tree")], stdin=archive.stdout, check=True)
    with open(os.path.join(place, "log"), "w") as log:
        for command in (["meson", "setup", programs, os.path.join(place, "tree"), "--buildtype=release"], ["ninja", "-C", programs, "-j2", *PROGRAMS]):
            subprocess.run(command, stdout=log, stderr=log, check=True, timeout=BUILD_S)
    if archive.wait(HANG_S) != 0:
        raise RuntimeError(f"git archive {commit} failed")
    with open(os.path.join(place, "built"), "w"):
        pass
    return programs


class Server(stintd.Server):
    def __init__(self, programs):
        self.programs = programs
        super().__init__()

    def command(self):
        return [os.path.join(self.programs, "stintd"), *super().command()[1:]]


class Case(unittest.TestCase):
    """Of two sides: `served` has the server, `used` what talks to it."""

    def begin(self, served, used):
        self.served, self.used = served, used
        self.server = Server(served)
        self.addCleanup(self.server.end)

    def stint(self, *words, status=0, side=None, cwd=None, **env):
        ran = subprocess.run([os.path.join(side or self.used, "stint"), *words], capture_output=True, text=True, timeout=HANG_S, cwd=cwd,
                             stdin=subprocess.DEVNULL, env=stintd.environment(STINT_HOME=self.server.home, **env))
        self.assertEqual(ran.returncode, status, f"stint {' '.join(words)}: {ran.stdout}{ran.stderr}")
        return ran.stdout

    def task(self, name):
        return json.loads(self.stint("show", name, "--json"))["task"]

    def claim(self, queue):
        """What a program inside of the task has in its environment."""
        claim = json.loads(self.stint("claim", "--queues", queue, "--worker", "w", "--json"))["claim"]
        return {"STINT_TASK_ID": claim["task"]["id"], "STINT_FENCE": claim["fence"], "STINT_WORKER_ID": "w"}


def pairs():
    """This tree's programs with those of each older commit, both ways: (name, server, clients)."""
    new = os.path.dirname(os.path.abspath(stintd.STINTD))
    for commit in OLD:
        yield f"server of this tree, clients {commit}", new, built(commit)
    yield f"server {OLD[-1]}, clients of this tree", built(OLD[-1]), new


class Together(Case):
    def each(self, check):
        for name, served, used in pairs():
            with self.subTest(name):
                self.begin(served, used)
                check()
            self.doCleanups()

    def test_a_task_from_its_beginning_to_its_end(self):
        self.each(self.whole_task)

    def whole_task(self):
        name = json.loads(self.stint("add", "port it", "--queue", "a", "--priority", "high", "--payload", '{"n":1}', "--json"))["task"]["id"]
        self.assertEqual(self.stint("ls", "--queue", "a", "-o", "id"), name + "\n")
        self.assertEqual(self.task(name)["state"], "ready")
        self.stint("why", name, "--json")
        held = self.claim("a")
        self.stint("task", "progress", "half of it", "--percent", "50", **held)
        self.stint("task", "done", "--result", '{"a":1}', **held)
        self.stint("task", "done", "--result", '{"a":1}', **held)  # a reply was lost
        self.stint("wait", name)
        self.assertEqual((self.task(name)["state"], self.task(name)["result"]), ("done", {"a": 1}))
        self.assertIn("task.completed", self.stint("events", "--task", name, "--json"))

    def test_what_an_operator_does(self):
        self.each(self.operator)

    def operator(self):
        name = self.stint("add", "x", "--queue", "a").strip()
        for verb, state in (("park", "pending"), ("unpark", "ready"), ("cancel", "cancelled"), ("retry", "ready")):
            self.stint(verb, name)
            self.assertEqual(self.task(name)["state"], state)
        self.stint("queue", "pause", "a")
        self.assertEqual(json.loads(self.stint("claim", "--queues", "a", "--worker", "w", "--json"))["claim"], None)
        self.stint("queue", "resume", "a")
        self.stint("queue", "ls", "--json")
        held = self.claim("a")
        self.stint("task", "fail", "no", "--no-retry", **held)
        self.assertEqual((self.task(name)["state"], self.task(name)["error"]["message"]), ("failed", "no"))
        self.stint("show", "nothing", status=3)
        viewer = self.stint("token", "create", "--kind", "viewer").strip()
        self.stint("ls", STINT_TOKEN=viewer)
        self.stint("add", "y", status=6, STINT_TOKEN=viewer)

    def test_a_question_and_its_answer(self):
        self.each(self.question)

    def question(self):
        name = self.stint("add", "x", "--queue", "a").strip()
        held = self.claim("a")
        asking = subprocess.Popen([os.path.join(self.used, "stint"), "task", "ask", "which branch?", "--wait"], stdout=subprocess.PIPE, text=True,
                                  stderr=subprocess.DEVNULL, env=stintd.environment(STINT_HOME=self.server.home, **held))
        self.addCleanup(asking.kill)
        until = time.monotonic() + HANG_S
        while self.task(name)["state"] != "asking":
            self.assertLess(time.monotonic(), until)
        self.assertEqual(self.stint("inbox", "-o", "id"), name + "\n")
        self.stint("answer", name, "main")
        self.assertEqual(asking.communicate(timeout=HANG_S)[0], "main\n")
        self.stint("task", "done", "fine", **held)
        self.assertEqual(self.task(name)["state"], "done")

    def test_a_worker_runs_commands(self):
        self.each(self.commands)

    def commands(self):
        folder = tempfile.mkdtemp(prefix="stint-compat-")
        self.addCleanup(shutil.rmtree, folder, True)
        log = open(os.path.join(folder, "log"), "wb")
        self.addCleanup(log.close)
        worker = subprocess.Popen([os.path.join(self.used, "stint-worker"), "--shell", "--root", folder], stderr=log, start_new_session=True,
                                  env=stintd.environment(STINT_HOME=self.server.home))

        def end():
            worker.send_signal(signal.SIGTERM)
            self.assertEqual(worker.wait(HANG_S), 0)

        self.addCleanup(end)
        for side in (self.used, self.served):
            self.assertEqual(self.stint("run", "--", "sh", "-c", "echo hello; exit 3", status=3, side=side, cwd=folder), "hello\n")
        program = os.path.join(self.used, "stint")
        self.stint("run", "--", "sh", "-c", f"{program} task progress halfway --percent 50 && {program} task done --result '[1]'", cwd=folder)
        done = [task for task in json.loads(self.stint("ls", "--all", "--json"))["tasks"] if task["state"] == "done"]
        self.assertEqual([self.task(task["id"])["result"] for task in done], [[1]])


class Stores(Case):
    def test_a_store_goes_to_the_new_server_and_nothing_is_lost(self):
        for commit in OLD:
            for how in ("stop", "kill"):
                with self.subTest(commit, how=how):
                    self.moves(built(commit), how)
                self.doCleanups()

    def moves(self, old, how):
        new = os.path.dirname(os.path.abspath(stintd.STINTD))
        self.begin(old, old)
        ready, done, held = (self.stint("add", name, "--queue", name).strip() for name in ("ready", "done", "held"))
        self.stint("task", "done", "--result", "[1]", **self.claim("done"))
        claim = self.claim("held")
        self.turn(new, how)
        self.assertEqual([self.task(name)["state"] for name in (ready, done, held)], ["ready", "done", "claimed"])
        self.assertEqual(self.task(done)["result"], [1])
        self.stint("task", "done", **claim)
        self.assertEqual(self.task(held)["state"], "done")
        self.claim("ready")
        self.server.stop()
        self.back_is_refused_or_whole(old, ready)
        self.turn(new, None)
        self.assertEqual([self.task(name)["state"] for name in (ready, done, held)], ["claimed", "done", "done"])

    def turn(self, programs, how):
        if how:
            getattr(self.server, how)()
        self.server.programs = self.used = programs
        self.server.start()

    def back_is_refused_or_whole(self, old, ready):
        """An old server that cannot read a newer store says so and changes nothing."""
        self.server.programs = old
        try:
            self.server.start()
        except RuntimeError as fault:
            self.assertRegex(str(fault), r"newer")
            return
        self.used = old
        self.assertEqual(self.task(ready)["state"], "claimed")
        self.server.stop()


if __name__ == "__main__":
    unittest.main()
