"""What an attempt may use: whoever uses it up is ended, the task says which budget, and none is promised that nobody keeps."""
import os
import shutil
import subprocess
import tempfile
import unittest

from hang import HANG_S
import stintd
import test_pool
import test_walls
from test_worker import WORKER, Case, sh

NOBODY = 65534


def check(config, **more):
    """--check-config of that text: its status and what it says. As somebody else if asked."""
    with tempfile.TemporaryDirectory(prefix="stint-budgets-") as folder:
        path, home = os.path.join(folder, "config.json"), os.path.join(folder, "home")
        worker = shutil.copy(WORKER, folder)
        with open(path, "w") as file:
            file.write(config)
        os.mkdir(home, 0o700)
        os.chmod(folder, 0o755)
        if "user" in more:
            os.chown(home, more["user"], more["user"])
        ran = subprocess.run([worker, "--check-config", "--home", home, "--config", path], capture_output=True, text=True,
                             env=stintd.environment(), timeout=HANG_S, **more)
        return ran.returncode, ran.stdout, ran.stderr


def has_memory_wall():
    return check('{"executors":{"a":{"kind":"command","argv":["x"],"budget":{"memoryBytes":50000000}}}}')[0] == 0


class Spent(Case):
    def over(self, budget, script, key, **more):
        self.worker({"x": sh(script, budget=budget, **more)})
        self.create(id="t", maxAttempts=3)
        task = self.is_in("t", "blocked", "failed", "done")
        self.assertEqual((task["state"], task["error"]["code"]), ("blocked", "BUDGET_EXCEEDED"), task)
        self.assertEqual(task["error"]["details"], {"budget": key, "limit": budget[key]})
        self.assertIn("budget." + key, task["error"]["message"])
        self.assertEqual(self.events("t").count("task.claimed"), 1, "nothing is tried again before a person acts")
        return task

    def test_memory_of_all_that_it_started(self):
        if not has_memory_wall():
            self.skipTest("no memory controller for us on this machine")
        eat = "head -c 200000000 /dev/zero | tail"
        task = self.over({"memoryBytes": 40 << 20}, "(%s); sleep 1000" % eat, "memoryBytes")
        self.assertIn("memory", task["error"]["message"])

    def test_processor_time_of_all_that_it_started(self):
        self.over({"cpuSeconds": 0.5}, "for i in 1 2 3; do (while :; do :; done) & done; sleep 1000", "cpuSeconds")

    def test_wall_time(self):
        self.over({"minutes": 0.01}, "sleep 1000", "minutes", graceMs=500)

    def test_output(self):
        self.over({"outputBytes": 100000}, "yes", "outputBytes")

    def test_a_success_over_budget_is_none(self):
        self.over({"outputBytes": 3}, "echo 12345", "outputBytes")

    def test_a_retry_by_a_person_starts_again(self):
        self.over({"outputBytes": 3}, "test -e %s || { touch %s; echo 12345; }" % (2 * (self.path("tried"),)), "outputBytes",
                  write=[self.folder])
        self.client.post("/api/tasks/t/retry", {})
        self.is_in("t", "done")


class Behind(Case):
    """The same at every level."""

    def spent_at(self, level):
        if reason := test_walls.WHY_NOT[level]:
            self.skipTest(reason)
        scripts = {"cpuSeconds": (0.5, "while :; do :; done"), "outputBytes": (1000, "while :; do echo more; done")}
        if has_memory_wall():
            scripts["memoryBytes"] = (60 << 20, "head -c 200000000 /dev/zero | tail; sleep 1000")
        more = {"rootfs": test_walls.Walls.rootfs(self)} if level == "container" else {}
        if level == "container":
            os.symlink("busybox", os.path.join(more["rootfs"], "bin/tail"))
        self.worker({key: sh(script, isolation=level, env={"PATH": "/usr/bin:/bin"}, budget={key: budget}, **more)
                     for key, (budget, script) in scripts.items()}, "--concurrency", "3")
        for key in scripts:
            self.create(id=key, executor=key)
        for key in scripts:
            error = self.is_in(key, "blocked", "failed", "done")["error"]
            self.assertEqual((error["code"], error["details"]["budget"]), ("BUDGET_EXCEEDED", key), error)

    def test_in_a_sandbox(self):
        self.spent_at("sandbox")

    def test_in_a_container(self):
        self.spent_at("container")


class OfPools(test_pool.Case):
    """Each task has a whole budget, however many the worker has had before."""

    def ends(self, module, payload, name=None):
        name = name or module
        self.create(id=name, module=module, payload=payload)
        return self.is_in(name, "done", "failed", "blocked")

    def over(self, key, module, payload):
        task = self.ends(module, payload)
        self.assertEqual((task["state"], (task["error"] or {}).get("code")), ("blocked", "BUDGET_EXCEEDED"), task)
        self.assertEqual(task["error"]["details"]["budget"], key)
        self.assertEqual(self.ends("echo", 1)["state"], "done", "another worker takes its place")
        self.assertNotEqual((self.slot() or {}).get("crashes", 0), 1, "that is no crash")

    def test_processor_time(self):
        self.pool("any", budget={"cpuSeconds": 2})
        for number in range(3):
            self.assertEqual(self.ends("burn", 0.8, "t-%d" % number)["state"], "done")
        self.over("cpuSeconds", "burn", 60)

    def test_memory(self):
        if not has_memory_wall():
            self.skipTest("no memory controller for us on this machine")
        self.pool("any", budget={"memoryBytes": 100 << 20})
        self.over("memoryBytes", "eat", 300 << 20)

    def test_output(self):
        self.pool("any", budget={"outputBytes": 100000})
        for number in range(3):
            self.assertEqual(self.ends("shout", 60000, "t-%d" % number)["state"], "done")
        self.over("outputBytes", "shout", 200000)

    def test_wall_time(self):
        self.pool("any", budget={"minutes": 0.08})
        self.over("minutes", "hang", None)


class Unenforceable(unittest.TestCase):
    def test_what_nobody_counts_is_a_mistake(self):
        status, _, said = check('{"executors":{"a":{"kind":"command","argv":["x"],\n"budget":{"tokens":5}}}}')
        self.assertEqual(status, 78)
        self.assertIn("config.json:2", said)
        self.assertIn("executors.a.budget.tokens cannot be enforced", said)

    @unittest.skipUnless(os.geteuid() == 0, "only root can become somebody without cgroups")
    def test_what_this_machine_cannot_hold_is_a_mistake_that_says_why_and_what_to_do(self):
        budgets = '{"executors":{"big":{"kind":"command","argv":["x"],"budget":{"memoryBytes":50000000},"limits":{"cpus":1}}}}'
        status, _, said = check(budgets, user=NOBODY, group=NOBODY, extra_groups=[])
        self.assertEqual(status, 78, said)
        for words in ("executors.big.budget.memoryBytes cannot be enforced on this machine", "memory controller",
                      "executors.big.limits.cpus", "Delegate=yes"):
            self.assertIn(words, said)

    @unittest.skipUnless(os.geteuid() == 0, "only root can become somebody without cgroups")
    def test_what_needs_no_cgroup_is_fine_without(self):
        budgets = '{"executors":{"a":{"kind":"command","argv":["true"],"budget":{"minutes":5,"cpuSeconds":9,"outputBytes":10}}}}'
        status, said, complaint = check(budgets, user=NOBODY, group=NOBODY, extra_groups=[])
        self.assertEqual(status, 0, complaint)
        for words in ("budget: 5 minutes", "budget: 9 s of processor time", "budget: 10 bytes of output"):
            self.assertIn(words, said)


if __name__ == "__main__":
    unittest.main()
