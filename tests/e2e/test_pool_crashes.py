"""Workers of pools that end badly, and what becomes of their tasks, their slots and the others. spec/stdio.md."""
import os
import time
import unittest

import stintd
import test_pool
import test_worker

STINT = test_pool.STINT


class Crashes(test_pool.Case):
    """Bad ends of an attempt."""
    flags = test_pool.Case.flags + ("--set", "task.crashBudget=1")

    # module: code, class, what the message says, configuration of the pool, of the task
    ends = {
        "crash": ("WORKER_CRASHED", "crash", "SIGSEGV): the last of bad-crash", {}, {}),
        "leave": ("WORKER_CRASHED", "crash", "exit status 7", {}, {}),
        "say_goodbye": ("WORKER_CRASHED", "crash", 'worker.shutdown while it had a task; its reason: tired', {}, {}),
        "close_output": ("WORKER_CRASHED", "crash", "closed its standard output, and did not end", {}, {}),
        "close_within_a_frame": ("PROTOCOL_ERROR", "crash", "within a frame", {}, {}),
        "silent": ("WORKER_CRASHED", "crash", "silent", {"silenceMs": 4000}, {}),
        "half": ("PROTOCOL_ERROR", "crash", "within a frame", {}, {}),
        "half_then_hang": ("PROTOCOL_ERROR", "crash", "within a frame", {"silenceMs": 4000}, {}),
        "giant": ("PROTOCOL_ERROR", "crash", "longer than 1 MiB", {}, {}),
        "four_gib": ("PROTOCOL_ERROR", "crash", "longer than 1 MiB", {}, {}),
        "noise": ("PROTOCOL_ERROR", "crash", 'logs belong on standard error; it wrote "Listening on port 3000"', {}, {}),
        "only_garbage": ("PROTOCOL_ERROR", "crash", "100 frames in a row", {}, {}),
        "hang": ("TASK_TIMEOUT", "timeout", "3000 ms", {}, {"timeoutMs": 3000}),
        "stubborn": ("TASK_TIMEOUT", "timeout", "3000 ms", {}, {"timeoutMs": 3000}),
        "late": ("TASK_TIMEOUT", "timeout", "3000 ms", {}, {"timeoutMs": 3000}),
        "stall": ("STALLED", "timeout", "no sign of life", {"stallMs": 3000}, {}),
    }

    def test_every_bad_end_has_its_code_and_the_next_task_a_worker(self):
        self.worker({module: self.executor("any", **row[3]) for module, row in self.ends.items()}, "--name", "host")
        for module, row in self.ends.items():
            self.create(id="bad-" + module, executor=module, module=module, maxAttempts=1, **row[4])
        for module, (code, klass, text, _, _) in self.ends.items():
            with self.subTest(module=module):
                error = self.is_in("bad-" + module, "failed", "done", "blocked")["error"]
                self.assertEqual((error["code"], error["class"]), (code, klass), error)
                self.assertIn(text, error["message"])
        for module in self.ends:
            self.create(id="next-" + module, executor=module, module="echo", payload=module)
        for module, row in self.ends.items():
            with self.subTest(module=module):
                self.assertEqual(self.is_in("next-" + module, "done")["result"], module)
                self.assertEqual(self.lines("starts").count(module + "-1"), 2)
                slot = self.slot("host/%s-1" % module)
                self.assertEqual(slot["crashes"] if slot else 0, row[1] == "crash", "what we end ourselves is no crash")
        self.assertEqual(self.task("bad-crash")["error"]["details"], {"exitCode": None, "signal": "SIGSEGV", "worker": "crash-1"})
        self.assertEqual(self.task("bad-leave")["error"]["details"], {"exitCode": 7, "signal": None, "worker": "leave-1"})
        self.assertEqual(self.log("bad-crash")["data"], "the last of bad-crash\n")
        self.assertEqual(self.lines("late"), ["bad-late"], "it did answer")
        self.assertTrue(self.is_gone(self.read("stubborn")))

    def test_an_answer_and_an_end_without_a_word(self):
        self.pool("any")
        self.create(id="t", module="answer_and_leave")
        self.assertEqual(self.is_in("t", "done")["result"], "last")
        self.until(lambda: (slot := self.slot()) and slot["crashes"] == 1, "it is a crash of the slot, and none of the task")
        self.create(id="next", module="echo", payload="fine")
        self.assertEqual(self.is_in("next", "done")["result"], "fine")

    def test_one_that_does_not_say_that_it_is_ready_gets_no_second_task(self):
        self.pool("any")
        self.create(id="t", module="never_ready")
        self.assertEqual(self.is_in("t", "done", "failed")["result"], "done")
        self.create(id="next", module="who")
        self.assertEqual((self.is_in("next", "done")["attempt"], len(self.lines("starts"))), (1, 2))
        self.assertEqual(self.slot()["crashes"], 1)

    def test_what_it_leaves_is_removed(self):
        self.pool("any")
        self.create(id="t", module="litter")
        self.is_in("t", "failed")
        self.create(id="next", module="echo", payload="fine")
        self.is_in("next", "done")
        runs = os.path.join(self.server.home, "runs")
        self.until(lambda: len(os.listdir(runs)) == 1, "the directory of the worker that lives, and no other")

    def test_a_cancelled_task_ends_with_its_worker(self):
        self.pool("any")
        self.create(id="t", module="hang")
        pid = self.read("hangs")
        self.is_in("t", "running")
        self.client.post("/api/tasks/t/cancel")
        self.is_in("t", "cancelled")
        self.assertTrue(self.is_gone(pid))
        self.create(id="next", module="echo", payload="fine")
        self.assertEqual(self.is_in("next", "done")["result"], "fine")
        self.assertIsNone(self.slot())

    def test_one_that_closed_its_input(self):
        self.pool("deaf-at-first")
        self.create(id="t", module="echo", payload="fine")
        task = self.is_in("t", "done", "failed")
        self.assertEqual((task["result"], task["attempt"], len(self.lines("starts"))), ("fine", 1, 2))

    def test_one_that_never_reads_its_input_keeps_nobody_waiting(self):
        self.worker({"p": self.executor("unread", stallMs=6000), "x": test_worker.sh("echo ran")})
        self.create(id="unread", executor="p", module="echo", payload="z" * 900000, maxAttempts=1)
        self.is_in("unread", "running")
        self.create(id="c", executor="x")
        self.is_in("c", "done")
        self.assertEqual(self.is_in("unread", "failed")["error"]["code"], "STALLED")


class Poison(test_pool.Case):
    flags = test_pool.Case.flags + ("--set", "quarantine.trialAfterMs=1000")

    def test_others_are_done_and_the_poison_ends_by_its_budget(self):
        self.pool("any")
        self.create(id="poison", module="crash", priority=100)
        for number in range(5):
            self.create(id="t%d" % number, module="echo", payload=number)
        task = self.is_in("poison", "failed")
        self.assertEqual((task["crashes"], task["spent"], task["error"]["code"]), (3, 0, "WORKER_CRASHED"))
        for number in range(5):
            self.assertEqual(self.is_in("t%d" % number, "done")["result"], number)


class Quarantine(test_pool.Case):
    def stays_at(self, starts):
        """Nothing is started while somebody else has time to do a lot."""
        self.assertEqual(len(self.lines("starts")), starts)
        for _ in range(12):
            self.client.get("/api/slots")
            time.sleep(0.1)
        self.assertEqual(len(self.lines("starts")), starts)

    def test_the_third_crash_within_a_minute_is_the_last_and_no_restart_forgets_it(self):
        worker = self.pool("recovers")
        self.is_quarantined()
        self.stays_at(3)
        self.assertIn("quarantine", worker.said())
        worker.stop()
        worker = self.pool("recovers")
        self.until(lambda: worker.said().count("registered") >= 2, "another worker under the same name")
        self.stays_at(3)
        self.server.stop()
        self.server.start()
        self.client.close()
        self.assertEqual(self.is_quarantined()["crashes"], 3)
        self.stays_at(3)
        open(self.path("well"), "w").close()
        self.create(id="t", module="echo", payload="fine")
        ran = test_worker.subprocess.run([STINT, "--home", self.server.home, "slot", "unquarantine", "host/p-1"],
                                         stdout=test_worker.subprocess.DEVNULL, stderr=test_worker.subprocess.PIPE, text=True, env=stintd.environment())
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(self.is_in("t", "done")["result"], "fine")
        self.assertEqual(len(self.lines("starts")), 4)

    def test_who_never_comes_to_life_is_quarantined_too(self):
        worker = self.worker({"mute": self.executor("mute", startMs=300), "banner": self.executor("banner"),
                              "exit": self.executor("exit"), "missing": self.executor(None, argv=["/nonexistent/program"]),
                              "goodbye": self.executor("goodbye"), "background": self.executor("background"),
                              "other-end": self.executor("other-end")}, "--slot", "slot-1")
        for executor, said in (("mute", "no worker.hello came in time"), ("banner", "Welcome to the worker!"), ("missing", "/nonexistent/program"),
                               ("exit", "exit status 3 before its worker.hello: no configuration"), ("goodbye", "before its worker.hello; its reason: no license"),
                               ("background", "a worker stays in the foreground"), ("other-end", "it announced 1124073472 bytes")):
            self.is_quarantined("slot-1/%s-1" % executor)
            self.assertIn(said, worker.said())

    def test_who_asks_for_a_pool_whose_directory_is_missing_is_told_which(self):
        missing = self.path("missing")
        worker = self.pool("any", workingDir=missing)
        self.until(lambda: missing in worker.said(), "the log names it")
        self.create(id="t", module="echo", payload="fine")
        error = self.is_in("t", "blocked", "failed")["error"]
        self.assertEqual(error["code"], "BAD_WORKDIR")
        self.assertIn(missing, error["message"])
        self.assertIsNone(self.slot(), "nothing has crashed")
        os.mkdir(missing)
        self.until(lambda: self.lines("starts"), "it is tried again")
        self.client.post("/api/tasks/t/retry")
        self.assertEqual(self.is_in("t", "done")["result"], "fine")

    def test_nobody_is_kept_for_a_worker_that_comes_back_in_a_while(self):
        """A worker that reads nothing is found out when it gets a task. By then the pause before the next one is long."""
        self.pool("three-bad-then-deaf", 1)
        self.create(id="t", module="echo")
        self.is_quarantined()
        self.client.post("/api/slots/host%2Fp-1/unquarantine")
        task = self.is_in("t", "scheduled")
        self.assertEqual((task["error"]["code"], task["error"]["class"], task["spent"], task["crashes"]), ("WORKER_INIT_FAILED", "host", 0, 0))
        self.assertRegex(task["error"]["message"], "the next one is started in [0-9]+ s; p-1: it reads its standard input no more")

    def test_nobody_is_kept_until_another_task_has_ended(self):
        self.pool("three-bad-then-deaf", 2, size=2)
        self.create(id="long", module="hold")
        self.is_in("long", "running")
        self.create(id="t", module="echo", payload="fine")
        self.is_quarantined("host/p-2")
        self.client.post("/api/slots/host%2Fp-2/unquarantine")
        self.until(lambda: "task.released" in self.events("t"), "given back, while the only worker has something else to do")
        self.assertEqual((self.task("t")["spent"], self.task("long")["state"]), (0, "running"))
        open(self.path("let-go"), "w").close()
        self.assertEqual(self.is_in("t", "done")["result"], "fine")

    def test_who_waits_for_a_quarantined_pool_is_told_so_and_what_to_do(self):
        self.pool("recovers")
        self.create(id="named", executor="p", module="echo", payload=1)
        self.create(id="by-its-queue", module="echo", payload=2)
        self.is_quarantined()
        for task in ("named", "by-its-queue"):
            said = self.why(task)
            self.assertIn("host/p-1 of the pool that could take it crashed too often and is quarantined; a trial is due in ", said)
            self.assertIn("try  stint slot unquarantine host/p-1", said)
            self.assertEqual(self.task(task)["reason"], "pool_quarantined")
        open(self.path("well"), "w").close()
        self.client.post("/api/slots/host%2Fp-1/unquarantine")
        for task in ("named", "by-its-queue"):
            self.is_in(task, "done")


class Trial(test_pool.Case):
    flags = test_pool.Case.flags + ("--set", "quarantine.trialAfterMs=1000")

    def test_one_trial_is_let_through_and_a_crash_ends_it(self):
        self.pool("recovers")
        self.is_quarantined()
        self.until(lambda: len(self.lines("starts")) == 4, "a trial")
        self.is_quarantined()
        open(self.path("well"), "w").close()
        self.create(id="t", module="echo", payload="fine")
        self.assertEqual(self.is_in("t", "done")["result"], "fine")

    def test_one_bad_place_does_not_stop_the_others(self):
        self.pool("one-bad", size=2)
        self.is_quarantined("host/p-1")
        for number in range(3):
            self.create(id="t%d" % number, module="who")
            self.assertEqual(self.is_in("t%d" % number, "done")["result"][0], "p-2")


if __name__ == "__main__":
    unittest.main()
