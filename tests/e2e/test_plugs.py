"""Pulling plugs: workers, shims and the server are killed with -9 while work is under way, one after the other and together;
the server is away; hundreds of programs end in one moment.

Afterwards every task has ended as it should, no attempt ran beside another one of its task, no process and no cgroup is
left, the outcome of every attempt is told by an event, and the history holds before the checker.

The long forms (`./dev plugs --long`): the server is away for ten minutes, and five thousand programs end.
"""
import contextlib
import glob
import os
import random
import shutil
import tempfile
import time

from hang import HANG_S
import proof
import test_worker

LONG = os.environ.get("STINT_LONG") == "1"
SEED = int(os.environ.get("STINT_SEED", "1"))
ROUNDS = int(os.environ.get("STINT_ROUNDS", "8"))
TASKS = int(os.environ.get("STINT_TASKS", "60"))
AWAY_S = int(os.environ.get("STINT_AWAY_S", "600" if LONG else "5"))
EXITS = int(os.environ.get("STINT_EXITS", "5000" if LONG else "300"))
AT_ONCE = 1000  # that many a worker runs at most
GRACE_MS, BASE_MS, MAX_MS, CRASHES = 1000, 10, 50, 1000
PATIENCE_S = 600 if LONG else 120
ENDS = {"task.completed", "task.failed", "task.released", "task.expired", "task.requeued", "claim.unconfirmed"}

# Whoever finds the file locked runs beside another attempt. The lock goes with the process, whatever ends it.
WORK = """exec 9>"$DIR/$STINT_TASK_ID.lock"
flock -n 9 || echo "$STINT_TASK_ID" >> "$DIR/twice"
(setsid sleep 0.2 9>&- &)
sleep 0.$((STINT_FENCE % 4))
echo "{\\"attempt\\":$STINT_ATTEMPT}"
"""


def children_of(pid):
    with contextlib.suppress(OSError):
        with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
            return [int(child) for child in file.read().split()]
    return []


class PlugCase(proof.ProofCase):
    flags = proof.settings(worker_leaseMinMs=1000, restart_graceMs=GRACE_MS, retry_baseMs=BASE_MS, retry_maxMs=MAX_MS,
                           sweep_intervalMs=50, task_crashBudget=CRASHES)
    limits = ("restart_grace_ms=%d" % GRACE_MS, "retry_base_ms=%d" % BASE_MS, "retry_max_ms=%d" % MAX_MS,
              "crash_budget=%d" % CRASHES)

    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="stint-plugs-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.workers = {}

    def start(self, name, script, *flags, **options):
        executors = {"x": test_worker.sh(script, env={"DIR": self.folder}, write=[self.folder])}
        worker = test_worker.Worker(self.server, executors, "--name", name, *flags, **options)
        self.addCleanup(worker.end)
        self.workers[name] = worker
        return worker

    def go(self):
        open(os.path.join(self.folder, "go"), "w").close()

    def files(self, prefix):
        return [name for name in os.listdir(self.folder) if name.startswith(prefix)]

    def task(self, task):
        return self.client.get("/api/tasks/" + task).json

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

    def cgroups_left(self):
        """Of runs of our own workers: others may be at work on this machine."""
        ids = {event["data"].get("worker") or event.get("worker") for event in self.events() if event["type"] == "task.claimed"}
        instances = {str(name).rsplit("-", 1)[-1] for name in ids}
        self.assertTrue(instances)
        leaves = glob.glob("/sys/fs/cgroup/**/stint-*", recursive=True)
        return [leaf for leaf in leaves if os.path.basename(leaf).split("-")[1] in instances]

    def end_all(self):
        """The workers stop, once the last of them has begun, and nothing is left of what they ran."""
        pids = {worker.process.pid for worker in self.workers.values()}
        self.wait_until(lambda: pids <= {worker.get("pid") for worker in self.client.get("/api/workers").json}, PATIENCE_S,
                        "all have registered")
        for worker in self.workers.values():
            self.assertEqual(worker.stop(), 0, worker.said()[-2000:])
        self.assertEqual(self.runs_left(), [])
        self.assertEqual(self.cgroups_left(), [])
        self.assertEqual(os.listdir(os.path.join(self.server.home, "runs")), [])

    def explained(self, task, attempts, ended=True):
        """Between two claims there is exactly one event that says how the first one ended."""
        open_, claims = False, 0
        for event in self.client.get("/api/tasks/%s/events?limit=1000" % task).json["events"]:
            if event["type"] == "task.claimed":
                self.assertFalse(open_, (task, event))
                open_, claims = True, claims + 1
            elif event["type"] in ENDS and event["data"].get("from") in ("claimed", "running"):
                self.assertTrue(open_, (task, event))
                open_ = False
        self.assertEqual((open_, claims), (not ended, attempts), task)


class Plugs(PlugCase):
    def begin(self, slot):
        self.start(slot, WORK, "--concurrency", "3", "--lease-ms", "3000")

    def kill_worker(self, slot, shims):
        pid = self.workers[slot].process.pid
        for child in children_of(pid) if shims else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, 9)
        self.workers[slot].process.kill()
        self.workers[slot].process.wait(HANG_S)

    def pull(self, dice):
        what = dice.choice(["worker", "worker and shims", "server", "both", "everything"])
        slot = dice.choice(sorted(self.workers))
        if what != "server":
            self.kill_worker(slot, what in ("worker and shims", "everything"))
        if what in ("server", "both", "everything"):
            self.server.kill()
            self.client.close()
            time.sleep(dice.uniform(0, 0.5))
            self.server.start()
        if what != "server":
            self.begin(slot)

    def test_no_plug_loses_a_task_or_runs_one_twice(self):
        dice = random.Random(SEED)
        tasks = [self.create() for _ in range(TASKS)]
        for slot in ("one", "two"):
            self.begin(slot)
        for _ in range(ROUNDS):
            time.sleep(dice.uniform(0.1, 1))
            self.pull(dice)
        self.wait_until(lambda: all(self.state(task) == "done" for task in tasks), PATIENCE_S, "not every task is done")
        self.assertFalse(os.path.exists(os.path.join(self.folder, "twice")), "an attempt ran beside another one")
        self.end_all()
        for task in tasks:
            last = self.task(task)
            self.assertEqual(last["result"], {"attempt": last["attempt"]})
            self.explained(task, last["attempt"])
        self.assertEqual(self.server.stop(), 0)
        self.prove(limits=self.limits)


class Away(PlugCase):
    """The server is killed and stays away, longer than every lease."""
    flags = () if LONG else proof.settings(worker_leaseMinMs=1000, restart_graceMs=20000)
    limits = () if LONG else ("restart_grace_ms=20000",)
    lease = () if LONG else ("--lease-ms", "2000")

    def test_work_of_this_host_survives_and_what_ended_meanwhile_is_told(self):
        worker = self.start("here", """touch "$DIR/began-$STINT_TASK_ID"
            case $STINT_TASK_ID in over-*) until [ -e "$DIR/go-on" ]; do sleep 0.1; done ;;
            *) until [ -e "$DIR/go" ]; do sleep 0.1; done ;; esac
            echo "{\\"at\\":\\"$STINT_TASK_ID\\"}" """, "--concurrency", "10", *self.lease)
        tasks = [self.create(id="%s-%d" % (kind, number)) for kind in ("within", "over") for number in range(5)]
        self.wait_until(lambda: len(self.files("began-")) == 10, PATIENCE_S, "all run")
        self.wait_until(lambda: all(self.state(task) == "running" for task in tasks), PATIENCE_S, "and the server knows")
        self.server.kill()
        self.client.close()
        back = time.monotonic() + AWAY_S
        self.go()
        self.wait_until(lambda: worker.said().count('"ended"') == 5, PATIENCE_S, "five end while nobody listens")
        time.sleep(max(0, back - time.monotonic()))
        self.assertEqual(len([pid for pid in children_of(worker.process.pid)]), 5, "and five go on")
        self.server.start()
        self.wait_until(lambda: all(self.state(task) == "done" for task in tasks[:5]), PATIENCE_S, "those are told")
        self.assertEqual({self.state(task) for task in tasks[5:]}, {"running"})
        open(os.path.join(self.folder, "go-on"), "w").close()
        self.wait_until(lambda: all(self.state(task) == "done" for task in tasks), PATIENCE_S, "the others end")
        self.end_all()
        for name in tasks:
            task = self.task(name)
            self.assertEqual((task["result"], task["attempt"], task["crashes"]), ({"at": name}, 1, 0))
            self.explained(name, 1)
        self.assertEqual(self.server.stop(), 0)
        self.prove(limits=self.limits)


class Storm(PlugCase):
    """As many programs as there are end in one moment, each in its own way."""
    flags = proof.settings(worker_leaseMinMs=1000, task_crashBudget=1)
    limits = ("crash_budget=1",)

    def test_of_all_that_end_at_once_none_is_lost_and_none_is_told_twice(self):
        proof.raise_limits()
        gate = os.path.join(self.folder, "gate")
        os.mkfifo(gate)
        tasks = [self.create(id="e-%d" % number, maxAttempts=1) for number in range(EXITS)]
        for number in range(0, EXITS, AT_ONCE):
            self.start("crowd-%d" % number, """echo run >> "$DIR/ran-$STINT_TASK_ID"
                read -r _ < "$DIR/gate"
                case $((${STINT_TASK_ID#e-} % 4)) in 0) kill -9 $$ ;; 1) exit 78 ;; esac
                echo "$STINT_TASK_ID" """, "--concurrency", str(min(AT_ONCE, EXITS)))
        self.wait_until(lambda: len(self.files("ran-")) == EXITS, PATIENCE_S, "all run")
        began = time.monotonic()
        writer = os.open(gate, os.O_RDWR)  # a line for everyone, also for who opens it late
        os.write(writer, b"\n" * EXITS)
        self.wait_until(lambda: self.tasks_left() == 0, PATIENCE_S, "all are told")
        os.close(writer)
        print("%d exits, all told after %.1f s" % (EXITS, time.monotonic() - began))
        self.end_all()
        for name in tasks:
            self.ended_as_it_should(self.task(name))
            self.explained(name, 1)
        self.assertEqual(self.server.stop(), 0)
        self.prove(limits=self.limits)

    def ended_as_it_should(self, task):
        with open(os.path.join(self.folder, "ran-" + task["id"])) as file:
            self.assertEqual(file.read(), "run\n", "it ran once")
        how = int(task["id"][2:]) % 4
        if how == 0:
            self.assertEqual((task["state"], task["error"]["details"]), ("failed", {"signal": 9}))
        elif how == 1:
            self.assertEqual((task["state"], task["error"]["details"]), ("failed", {"exit": 78}))
        else:
            self.assertEqual((task["state"], task["result"]), ("done", task["id"]))


if __name__ == "__main__":
    proof.main()
