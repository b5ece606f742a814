"""Workers of a pool that behave as badly as they can: every task has one end, and a reason. ./dev pools draws them from a seed."""
import os
import random
import sys
import unittest

import bad_worker
import test_pool

HERE = test_pool.HERE
SEED = int(os.environ.get("STINT_SEED", "1"))
ROUNDS = int(os.environ.get("STINT_ROUNDS", "0"))
TASKS = 100


class Case(test_pool.Case):
    flags = test_pool.Case.flags + ("--set", "quarantine.trialAfterMs=1000", "--set", "task.crashBudget=1")

    def bad(self, seed, size, **clocks):
        argv = [sys.executable, "-u", os.path.join(HERE, "bad_worker.py"), self.folder, str(seed)]
        return {**self.executor(None, argv=argv, size=size), **clocks, "graceMs": 500}

    def acts(self):
        return dict(zip(*[iter(self.lines("acts"))] * 2))

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
    """Clocks are short: on a machine that has much else to do, good workers may be taken for silent ones."""

    def lift(self):
        for slot in self.ok(self.client.get("/api/slots")):
            if slot["state"] == "quarantined":
                self.client.post("/api/slots/%s/unquarantine" % slot["name"].replace("/", "%2F"))

    def run_round(self, seed):
        draw = random.Random(seed)
        executor = self.bad(seed, draw.randrange(1, 13), startMs=2500, silenceMs=2500, stallMs=3000)
        worker = self.worker({"p": executor}, "--name", "host-%d" % seed)
        names = ["s%d-t%d" % (seed, number) for number in range(TASKS)]
        for name in names:
            self.create(id=name, module="m", maxAttempts=1)
        for name in names:
            self.until(lambda: self.lift() or self.task(name)["state"] in ("done", "failed", "blocked"), name)
        for name in names:
            with self.subTest(seed=seed, task=name):
                found = self.task(name)
                self.assertIn(found["state"], ("done", "failed"))
                if name in self.acts():
                    end = found["error"]["code"] if found.get("error") else "done"
                    self.assertIn(end, bad_worker.ENDS[self.acts()[name]], (self.acts()[name], found))
                else:
                    self.assertIn(found["error"]["code"], ("STALLED", "WORKER_CRASHED"), "one that never read it")
        self.expect_nothing_left(worker)

    def test_rounds(self):
        for seed in range(SEED, SEED + ROUNDS):
            print("seed", seed, flush=True)
            self.run_round(seed)


if __name__ == "__main__":
    unittest.main()
