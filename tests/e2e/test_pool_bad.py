"""Workers of a pool that behave as badly as they can: every task has one end, and a reason. ./dev pools draws them from a seed."""
import contextlib
import json
import os
import random
import shutil
import stat
import sys
import time
import unittest

import bad_worker
import test_pool

HERE = test_pool.HERE
SEED = int(os.environ.get("STINT_SEED", "1"))
ROUNDS = int(os.environ.get("STINT_ROUNDS", "0"))
SLOW = int(os.environ.get("STINT_SLOW", "1"))
KEPT = os.path.abspath(os.environ.get("STINT_KEPT", "build/pools"))


class Case(test_pool.Case):
    flags = test_pool.Case.flags + ("--set", "quarantine.trialAfterMs=1000", "--set", "task.crashBudget=1")

    def bad(self, seed, size, **clocks):
        argv = [sys.executable, "-u", os.path.join(HERE, "bad_worker.py"), self.folder, str(seed)]
        return {**self.executor(None, argv=argv, size=size), **clocks, "graceMs": 500}

    def expect_nothing_left(self, worker):
        self.assertEqual(worker.stop(), 0)
        self.assertEqual(os.listdir(os.path.join(self.server.home, "runs")), [])


class Bad(Case):
    def expect_one_end(self, task, act):
        found = self.is_in(task, "done", "failed", "blocked", "cancelled")
        end = found["error"]["code"] if found.get("error") else found["state"]
        self.assertIn(end, bad_worker.ENDS[act], found)
        if found.get("error"):
            self.assertTrue(found["error"]["message"], found)
        elif act != "good_and_deepest":
            self.assertEqual(found["result"], "good")
        ends = [event for event in self.events(task) if event in ("task.completed", "task.failed", "task.blocked")]
        self.assertEqual(len(ends), 1, (act, self.events(task)))

    def test_every_bad_act_has_one_end_with_a_reason(self):
        worker = self.worker({"patient": self.bad(0, 12), "hasty": self.bad(0, 8, silenceMs=2000, stallMs=2000)}, "--name", "host")
        for act in bad_worker.ACTS:
            executor = "hasty" if bad_worker.by_a_clock(act) else "patient"
            self.create(id=act, executor=executor, module="m", payload=act, maxAttempts=1)
        for act in bad_worker.ACTS:
            with self.subTest(act=act):
                self.expect_one_end(act, act)
        self.expect_nothing_left(worker)


@unittest.skipIf(ROUNDS == 0, "only when asked for: ./dev pools")
class Drawn(Case):
    """Clocks are short: on a machine that has much else to do, good workers may be taken for silent ones (STINT_SLOW stretches them).
    All about a round that fails is kept: the home of its server with both logs, what its workers drew, and its tasks with their events."""
    patience_s = 300  # a pool of one whose worker crashes again and again starts it once a minute

    def lift(self):
        for slot in self.ok(self.client.get("/api/slots")):
            if slot["state"] == "quarantined":
                self.client.post("/api/slots/%s/unquarantine" % slot["name"].replace("/", "%2F"))

    def write_tasks(self, names):
        with open(self.path("tasks"), "w") as file:
            for name in names:
                events = self.ok(self.client.get("/api/tasks/%s/events" % name))["events"]
                file.write(json.dumps({"task": self.task(name), "events": events}) + "\n")

    def keep(self, seed, names, odd):
        """Where all about this round is from now on. A server that does not answer is kept as it is."""
        folder = os.path.join(KEPT, "seed-%d-%d" % (seed, time.time()))
        with open(self.path("odd"), "w") as file:
            file.write("\n".join(odd) + "\n")
        with contextlib.suppress(Exception):
            self.write_tasks(names)
        self.server.kill()
        shutil.copytree(self.folder, folder)
        shutil.copytree(self.server.home, os.path.join(folder, "home"), symlinks=True, ignore=lambda path, found: [
            name for name in found if stat.S_ISSOCK(os.lstat(os.path.join(path, name)).st_mode)])
        return folder

    def what_is_odd(self, name, acts):
        """Nothing, or a sentence. It has been read once at the most, and ends as that may end; what could not be begun spends nothing."""
        task = self.task(name)
        told = [event["data"] for event in self.ok(self.client.get("/api/tasks/%s/events" % name))["events"]]
        failed = [data["code"] for data in told if "code" in data and data["state"] in ("ready", "scheduled")]
        ends = [data["state"] for data in told if data.get("state") in ("done", "failed", "blocked", "cancelled")]
        end = task["error"]["code"] if task.get("error") else task["state"]
        allowed = bad_worker.ENDS[acts[0]] if acts else ("STALLED", "WORKER_CRASHED")  # of one that never read it
        if len(acts) > 1 or len(ends) != 1 or end not in allowed or set(failed) - {"WORKER_INIT_FAILED"}:
            return "%s was read as %s and ended as %s, %s, after %s: %s" % (name, acts, ends, end, failed, task)
        return None

    def run_round(self, seed):
        size = random.Random(seed).randrange(1, 13)
        executor = self.bad(seed, size, startMs=2500 * SLOW, silenceMs=2500 * SLOW, stallMs=3000 * SLOW)
        worker = self.worker({"p": executor}, "--name", "host-%d" % seed)
        names = ["s%d-t%d" % (seed, number) for number in range(10 * size)]  # with fewer workers each crash costs more time
        for name in names:
            self.create(id=name, module="m", maxAttempts=1)
        try:
            for name in names:
                self.until(lambda: self.lift() or self.task(name)["state"] in ("done", "failed", "blocked"), name)
            words = self.lines("acts")
            acts = {name: [act for task, act in zip(words[::2], words[1::2]) if task == name] for name in names}
            odd = [said for name in names if (said := self.what_is_odd(name, acts[name]))]
            self.expect_nothing_left(worker)
        except Exception as fault:  # whatever it is: it is looked at later, and the next round begins
            odd = [repr(fault)]
        if odd:
            print("odd: all about it is in", self.keep(seed, names, odd), *odd, sep="\n", flush=True)
        return not odd

    def test_rounds(self):
        bad = []
        for seed in range(SEED, SEED + ROUNDS):
            print("seed", seed, flush=True)
            if seed > SEED:
                self.doCleanups()
                self.tearDown()
                self.setUp()
            if not self.run_round(seed):
                bad.append(seed)
        self.assertEqual(bad, [], "seeds of rounds that were odd")


if __name__ == "__main__":
    unittest.main()
