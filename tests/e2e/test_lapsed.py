"""Workers that are stopped past their lease, while what they run is not: their shims end it before somebody else has the task.

Every attempt holds a lock as long as anything of it lives, and writes down whether it had it for itself. How many there are is not
counted: on a busy machine a worker may be late once more than the test wants it to be."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

from hang import HANG_S
import proof
import stintd
import test_pool
import test_worker

LEASE_MS = 6000
LEASE = ("--lease-ms", str(LEASE_MS))
ALONE = """exec 9>$DIR/lock
flock -n 9 && echo alone >> $DIR/journal || echo together >> $DIR/journal
until [ -e $DIR/go ]; do sleep 0.1; done
echo $STINT_ATTEMPT"""


class Case(test_pool.Case):
    def elsewhere(self):
        """A home for another worker."""
        home = tempfile.mkdtemp(prefix="stint-other-")
        self.addCleanup(shutil.rmtree, home, True)
        return home

    def command(self):
        return {"x": test_worker.sh(ALONE, env={"DIR": self.folder}, write=[self.folder], graceMs=100)}

    def is_locked(self):
        """Something of an attempt lives."""
        return subprocess.run(["flock", "-n", self.path("lock"), "true"], check=False).returncode != 0

    def stop(self, process):
        """How many attempts there were until then. It is continued in the end: one that is stopped does not hear that it shall end."""
        process.send_signal(signal.SIGSTOP)
        self.addCleanup(process.send_signal, signal.SIGCONT)
        return len(self.lines("journal"))

    def begin(self, **fields):
        self.create(id="t", **fields)
        self.one_more_begins(0)

    def one_more_begins(self, than):
        self.until(lambda: len(self.lines("journal")) > than, "an attempt")

    def let_go(self):
        open(self.path("go"), "w").close()

    def expect_one_end(self, lost):
        """Of all attempts the last one was recorded, and no two of them lived at a time."""
        task, events = self.is_in("t", "done"), self.events("t")
        count = {name: events.count("task." + name) for name in ("claimed", "expired", "completed", "failed", "orphan_result")}
        self.assertEqual((task["attempt"], task["spent"], task["crashes"]), (count["claimed"], 0, 0))
        self.assertEqual((count["completed"], count["failed"], count["orphan_result"]), (1, 0, 0), events)
        self.assertEqual(count["expired"] > 0, lost, events)
        self.assertEqual(set(self.lines("journal")), {"alone"})

    def active(self):
        return [worker["workerId"] for worker in self.client.get("/api/workers").json if worker["state"] == "active"]


class Beside(Case):
    def first(self):
        return self.worker(self.command(), *LEASE)

    def test_what_a_stopped_worker_ran_is_gone_before_somebody_else_has_it(self):
        first = self.first()
        self.begin()
        self.is_in("t", "running")
        name, = self.active()
        before = self.stop(first.process)
        second = self.worker(self.command(), home=self.elsewhere())
        self.one_more_begins(before)
        self.let_go()
        self.expect_one_end(lost=True)
        self.assertEqual(second.stop(), 0)
        first.process.send_signal(signal.SIGCONT)
        self.create(id="u")
        self.is_in("u", "done")
        self.assertNotIn(name, self.active(), "it goes on under another id")
        self.assertIn("its shim has ended it", first.said())
        self.assertEqual(first.stop(), 0)
        self.expect_one_end(lost=True)


class Elsewhere(Beside):
    def first(self):
        return self.worker(self.command(), *LEASE, "--remote", home=self.elsewhere())


class StoppedShim(Case):
    """Somebody stops a shim, and nothing else: its program runs on, and nobody watches it."""

    def stop_shim(self, task):
        self.is_in(task, "running")  # before that it is not the worker who ends it
        with open("/proc/%s/stat" % self.read("pid-" + task)) as file:
            shim = int(file.read().rsplit(")", 1)[1].split()[1])
        os.kill(shim, signal.SIGSTOP)

    def test_the_end_of_its_program_is_seen_and_a_cancel_is_heard(self):
        script = "echo $$ > $DIR/pid-$STINT_TASK_ID; until [ -e $DIR/go ]; do sleep 0.05; done; echo fine"
        worker = self.worker({"x": test_worker.sh(script, env={"DIR": self.folder}, write=[self.folder])}, "--lease-ms", "2000")
        self.create(id="cancelled")
        self.stop_shim("cancelled")
        self.client.post("/api/tasks/cancelled/cancel", {})
        self.is_in("cancelled", "cancelled")
        self.assertTrue(self.is_gone(self.read("pid-cancelled")))
        self.create(id="ended")
        self.stop_shim("ended")
        self.let_go()
        self.assertEqual(self.is_in("ended", "done")["result"], "fine")
        self.assertIn("its shim had been stopped", worker.said())


class InTime(Case):
    def test_what_its_shim_ended_is_given_back_if_nobody_else_has_it_yet(self):
        worker = self.worker(self.command(), *LEASE)
        self.begin()
        self.is_in("t", "running")
        self.server.process.send_signal(signal.SIGSTOP)
        self.stop(worker.process)
        self.until(lambda: not self.is_locked(), "its shim has ended it")
        self.let_go()
        self.server.process.send_signal(signal.SIGCONT)
        worker.process.send_signal(signal.SIGCONT)
        self.expect_one_end(lost=False)
        self.assertIn("task.released", self.events("t"))


class Away(Case):
    def test_beside_a_server_that_is_away_a_worker_that_lives_goes_on(self):
        worker = self.worker(self.command(), *LEASE)
        self.begin()
        self.is_in("t", "running")
        self.server.kill()
        over = time.monotonic() + 1.5 * LEASE_MS / 1000
        self.until(lambda: time.monotonic() > over, "its lease is over")
        self.assertTrue(self.is_locked(), worker.said())
        self.server.start()
        self.client.close()
        self.let_go()
        self.assertEqual(self.is_in("t", "done")["result"], 1)


class Pool(Case):
    def test_a_worker_of_a_pool_goes_with_its_task_and_did_not_crash(self):
        first = self.pool("any", flags=LEASE)
        self.begin(module="alone")
        self.is_in("t", "running")
        before = self.stop(first.process)
        second = self.worker({"p": self.executor("any")}, "--name", "other", home=self.elsewhere())
        self.one_more_begins(before)
        self.let_go()
        self.expect_one_end(lost=True)
        self.assertEqual(second.stop(), 0)
        first.process.send_signal(signal.SIGCONT)
        self.create(id="u", module="echo", payload=7)
        self.assertEqual(self.is_in("u", "done")["result"], 7)
        self.assertIn("its shim has ended it", first.said())
        self.assertNotIn("crashed", first.said())
        self.assertEqual((self.slot() or {"crashes": 0})["crashes"], 0)


class IdlePool(Case):
    def test_one_with_nothing_to_do_stays(self):
        worker = self.pool("any", flags=LEASE)
        self.create(id="t", module="who")
        who = self.is_in("t", "done")["result"]
        self.stop(worker.process)
        self.until(lambda: not self.active(), "its lease is over")
        worker.process.send_signal(signal.SIGCONT)
        self.create(id="u", module="who")
        self.assertEqual(self.is_in("u", "done")["result"], who, "the same process")


class PassCase(Case):
    def once(self, agent, every_ms):
        config = self.path("once.json")
        with open(config, "w") as file:
            json.dump({"executors": self.command(), "queues": {"q": {"executor": "x"}}}, file)
        process = subprocess.Popen([test_worker.STINT, "worker", "run-once", "--home", self.server.home, "--config", config, *LEASE,
                                    "--agent-id", agent, "--progress-every-ms", str(every_ms)], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=stintd.environment(),
                                   start_new_session=True)

        def end():
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=HANG_S)

        self.addCleanup(end)
        return process

    def said(self, process):
        return json.loads(process.communicate(timeout=HANG_S)[0])


class Pass(PassCase):
    def test_what_a_stopped_pass_ran_is_gone_before_somebody_else_has_it(self):
        self.create(id="t")
        first = self.once("dev-1", 500)
        self.one_more_begins(0)
        before = self.stop(first)
        self.is_in("t", "ready")
        second = self.once("dev-2", 500)
        self.one_more_begins(before)
        self.let_go()
        self.assertEqual(self.said(second)["action"], "completed")
        first.send_signal(signal.SIGCONT)
        self.assertIn("the claim was lost", self.said(first)["error"])
        self.expect_one_end(lost=True)


class LivingPass(PassCase):
    def test_a_pass_that_lives_renews_its_lease_well_before_it_is_over(self):
        self.create(id="t")
        process = self.once("dev-1", LEASE_MS - 1)
        self.one_more_begins(0)
        over = time.monotonic() + 1.5 * LEASE_MS / 1000
        self.until(lambda: time.monotonic() > over, "its first lease is over")
        self.let_go()
        self.assertEqual(self.said(process)["action"], "completed")
        self.expect_one_end(lost=False)


if __name__ == "__main__":
    proof.main()
