"""Pulling plugs: workers and the server are killed with -9 while work is under way, one after the other and together.

Afterwards every task has ended as it should, no attempt ran beside another one of its task, no process is left, the
outcome of every attempt is told by an event, and the history holds before the checker.
"""
import os
import random
import shutil
import tempfile
import time

import proof
import test_worker

SEED = int(os.environ.get("STINT_SEED", "1"))
ROUNDS = int(os.environ.get("STINT_ROUNDS", "8"))
TASKS = int(os.environ.get("STINT_TASKS", "60"))
GRACE_MS, BASE_MS, MAX_MS, CRASHES = 1000, 10, 50, 1000
PATIENCE_S = 120

# Whoever finds the file locked runs beside another attempt. The lock goes with the process, whatever ends it.
WORK = """exec 9>"$DIR/$STINT_TASK_ID.lock"
flock -n 9 || echo "$STINT_TASK_ID" >> "$DIR/twice"
(setsid sleep 0.2 9>&- &)
sleep 0.$((STINT_FENCE % 4))
echo "{\\"attempt\\":$STINT_ATTEMPT}"
"""


class Plugs(proof.ProofCase):
    flags = proof.settings(worker_leaseMinMs=1000, restart_graceMs=GRACE_MS, retry_baseMs=BASE_MS, retry_maxMs=MAX_MS,
                           sweep_intervalMs=50, task_crashBudget=CRASHES)
    limits = ("restart_grace_ms=%d" % GRACE_MS, "retry_base_ms=%d" % BASE_MS, "retry_max_ms=%d" % MAX_MS,
              "crash_budget=%d" % CRASHES)

    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="stint-plugs-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.workers = {}

    def start(self, slot):
        executors = {"x": test_worker.sh(WORK, env={"DIR": self.folder}, write=[self.folder])}
        worker = test_worker.Worker(self.server, executors, "--name", slot, "--concurrency", "3", "--lease-ms", "3000")
        self.addCleanup(worker.end)
        self.workers[slot] = worker

    def kill_worker(self, slot):
        self.workers[slot].process.kill()
        self.workers[slot].process.wait(10)

    def pull(self, dice):
        what = dice.choice(["worker", "worker", "server", "both"])
        slot = dice.choice(sorted(self.workers))
        if what != "server":
            self.kill_worker(slot)
        if what != "worker":
            self.server.kill()
            self.client.close()
            time.sleep(dice.uniform(0, 0.5))
            self.server.start()
        if what != "server":
            self.start(slot)

    def runs_left(self):
        """Processes that an attempt started, whoever owns them now."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/environ" % pid, "rb") as file:
                    if ("DIR=" + self.folder).encode() in file.read().split(b"\0"):
                        found.append(pid)
            except OSError:
                pass
        return found

    def test_no_plug_loses_a_task_or_runs_one_twice(self):
        dice = random.Random(SEED)
        tasks = [self.create() for _ in range(TASKS)]
        for slot in ("one", "two"):
            self.start(slot)
        for _ in range(ROUNDS):
            time.sleep(dice.uniform(0.1, 1))
            self.pull(dice)
        self.wait_until(lambda: all(self.state(task) == "done" for task in tasks), PATIENCE_S, "not every task is done")
        for worker in self.workers.values():
            self.assertEqual(worker.stop(), 0)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "twice")), "an attempt ran beside another one")
        self.assertEqual(self.runs_left(), [])
        self.assertEqual(os.listdir(os.path.join(self.server.home, "runs")), [])
        for task in tasks:
            last = self.client.get("/api/tasks/" + task).json
            self.assertEqual(last["result"], {"attempt": last["attempt"]})
            self.explained(task, last["attempt"])
        self.assertEqual(self.server.stop(), 0)
        self.prove(limits=self.limits)

    def explained(self, task, attempts):
        """Between two claims there is exactly one event that says how the first one ended."""
        ends = {"task.completed", "task.failed", "task.released", "task.expired", "task.requeued", "claim.unconfirmed"}
        open_, claims = False, 0
        for event in self.client.get("/api/tasks/%s/events" % task).json["events"]:
            if event["type"] == "task.claimed":
                self.assertFalse(open_, (task, event))
                open_, claims = True, claims + 1
            elif event["type"] in ends and event["data"].get("from") in ("claimed", "running"):
                self.assertTrue(open_, (task, event))
                open_ = False
        self.assertEqual((open_, claims), (False, attempts))


if __name__ == "__main__":
    proof.main()
