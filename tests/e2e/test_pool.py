"""Pools: programs that stay and speak frames over standard input and output, good ones and bad ones. spec/stdio.md."""
import json
import os
import shutil
import signal
import sys
import time
import unittest

from hang import HANG_S
import stintd
import test_worker

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "..", "examples", "pool-worker")
STINT = test_worker.STINT
NODE = shutil.which("node")


class Case(test_worker.Case):
    """A worker with one pool, `p`, in queue `q`."""

    def executor(self, program, *arguments, argv=None, size=1, **more):
        """A pool of workers that behave in a certain way: see pool_worker.py."""
        argv = argv or [sys.executable, "-u", os.path.join(HERE, "pool_worker.py"), program, self.folder, *map(str, arguments)]
        read = [HERE, os.path.realpath(EXAMPLES), os.path.dirname(os.path.dirname(os.path.realpath(sys.executable)))]
        return {"kind": "pool", "argv": argv, "size": size, "read": read, "write": [self.folder], "graceMs": 1000, "startMs": 60000,
                **more}

    def pool(self, program, *arguments, flags=(), **more):
        return self.worker({"p": self.executor(program, *arguments, **more)}, "--name", "host", *flags)

    def ok(self, reply):
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json

    def slot(self, name="host/p-1"):
        return {slot["name"]: slot for slot in self.ok(self.client.get("/api/slots"))}.get(name)

    def is_quarantined(self, name="host/p-1"):
        return self.until(lambda: (slot := self.slot(name)) and slot["state"] == "quarantined" and slot, "quarantine")

    def why(self, task):
        ran = test_worker.subprocess.run([STINT, "--home", self.server.home, "why", task], stdout=test_worker.subprocess.PIPE, text=True,
                                         env=stintd.environment())
        return ran.stdout

    def lines(self, name):
        """What workers left in a file; there may be none yet."""
        try:
            with open(self.path(name)) as file:
                return file.read().split()
        except FileNotFoundError:
            return []


class Examples(Case):
    def expect_work(self, argv, **more):
        self.pool(None, argv=argv, size=2, **more)
        test_worker.subprocess.run([STINT, "--home", self.server.home, "add", "x", "--id", "t", "--queue", "q", "--module", "echo",
                                    "--payload", '{"n": [1, 2]}'], stdout=test_worker.subprocess.DEVNULL, check=True,
                                   env=stintd.environment())
        self.assertEqual(self.is_in("t", "done", "blocked", "failed")["result"], {"n": [1, 2]}, self.task("t"))
        events = self.events("t")
        self.assertEqual((events[0], events[-1]), ("task.created", "task.completed"))
        self.assertIn("task.progressed", events)
        for number in range(8):
            self.create(id="more-%d" % number, module="echo", payload=number)
        for number in range(8):
            self.assertEqual(self.is_in("more-%d" % number, "done")["result"], number)
        self.create(id="other", module="nothing")
        error = self.is_in("other", "blocked")["error"]
        self.assertEqual((error["code"], error["class"]), ("EXECUTOR_NOT_FOUND", "policy"))
        self.assertIn("echo, sleep", error["message"])

    def test_the_worker_in_python(self):
        self.expect_work([sys.executable, os.path.join(EXAMPLES, "worker.py")])

    @unittest.skipUnless(NODE, "there is no node here")
    def test_the_worker_in_node(self):
        self.expect_work([NODE, "worker.js"], workingDir=os.path.realpath(EXAMPLES))

    def expect_failures(self, name, begin, modules, program):
        """What a module gives back may be what no frame can carry: that is a failure of its task, and of nothing else."""
        with open(os.path.join(EXAMPLES, name)) as file:
            text = file.read()
        self.assertIn(begin, text)
        with open(self.path(name), "w") as file:
            file.write(text.replace(begin, begin + modules))
        executor = self.executor(None, argv=[program, self.path(name)])
        self.worker({"p": {**executor, "read": executor["read"] + [self.folder]}}, "--name", "host")
        for module, said in (("huge", "1048576 bytes"), ("loud", "no no no"), ("odd", "")):
            self.create(id=module, module=module, maxAttempts=1)
            error = self.is_in(module, "failed", "done")["error"]
            self.assertEqual(error["code"], "EXECUTION_ERROR", error)
            self.assertIn(said, error["message"])
        self.create(id="next", module="echo", payload="fine")
        self.assertEqual(self.is_in("next", "done")["result"], "fine")
        self.assertIsNone(self.slot(), "nobody has crashed")

    def test_what_fits_into_no_frame_in_python(self):
        self.expect_failures("worker.py", "MODULES = {", '"huge": lambda task, progress: "x" * (1 << 20), "odd": lambda task, progress: '
                             'float("nan"), "loud": lambda task, progress: int("no " * (1 << 20)), ', sys.executable)

    @unittest.skipUnless(NODE, "there is no node here")
    def test_what_fits_into_no_frame_in_node(self):
        self.expect_failures("worker.js", "const modules = {", 'huge: async () => "x".repeat(1 << 20), odd: async () => 1n, '
                             'loud: async () => { throw new Error("no ".repeat(1 << 20)); },', NODE)

    def test_each_is_short_enough_to_be_read(self):
        for name in ("worker.py", "worker.js"):
            with open(os.path.join(EXAMPLES, name)) as file:
                self.assertLess(len(file.readlines()), 100, name)


class Words(Case):
    """What a worker says, and what is made of it."""

    def run_one(self, module, **task):
        self.create(id=module, module=module, **task)
        return self.is_in(module, "done", "failed", "blocked")

    def test_a_task_comes_in_the_words_of_the_protocol(self):
        self.pool("any")
        told = self.run_one("whole", title="x", priority=50, payload={"n": 2 ** 200}, metadata={"m": 2}, instructions="do")["result"]
        self.assertEqual((told["id"], told["title"], told["priority"], told["moduleId"]), ("whole", "x", "high", "whole"))
        self.assertEqual((told["payload"], told["metadata"], told["instructions"]), ({"n": 2 ** 200}, {"m": 2}, "do"))
        self.assertEqual((told["executionAttempt"], told["isolationLevel"], told["workerId"], told["attempt"]),
                         (0, "process", "p-1", 1))
        self.assertEqual(told["fence"], self.task("whole")["fence"])
        self.assertGreater(told["deadlineMs"], time.time() * 1000)

    def test_its_environment_has_both_names_and_nothing_else(self):
        self.pool("any", env={"MINE": "1"})
        env = self.run_one("env")["result"]
        self.assertEqual((env["AIRI_WORKER_ID"], env["AIRIER_WORKER_ID"], env["MINE"]), ("p-1", "p-1", "1"))
        self.assertEqual(env["STINT_WORKSPACE"], env["PWD_IS"])
        self.assertFalse([name for name in env if name.startswith("STINT_") and name not in
                          ("STINT_WORKER_ID", "STINT_WORKSPACE", "STINT_RUN")])

    def test_its_directory_is_that_of_its_executor(self):
        self.pool("any", workingDir=self.folder)
        self.assertEqual(self.run_one("env")["result"]["PWD_IS"], os.path.realpath(self.folder))

    def test_failures(self):
        self.pool("any")
        error = self.run_one("fail", maxAttempts=1)["error"]
        self.assertEqual((error["code"], error["class"], error["message"], error["details"]),
                         ("NO_LUCK", "task", "as asked", {"n": 1}))
        error = self.run_one("no_success", maxAttempts=1)["error"]
        self.assertEqual((error["code"], error["message"]), ("EXECUTION_ERROR", "it is broken"))
        self.assertEqual(self.lines("starts"), ["p-1"], "one worker did both")

    def test_progress_comes_to_the_server_and_not_in_floods(self):
        self.pool("any")
        self.run_one("progress")
        told = [event for event in self.client.get("/api/tasks/progress/events").json["events"] if event["type"] == "task.progressed"]
        self.assertIn(told[-1]["data"].get("percent"), (0, 100))
        self.assertLess(len(told), 10)

    def test_what_it_writes_goes_into_the_log_of_its_task_and_of_no_other(self):
        worker = self.pool("talks")
        self.until(lambda: "nothing to do" in worker.said(), "without a task: the log of the supervisor")
        worker.stop()
        self.pool("any")
        for task in ("one", "two"):
            self.create(id=task, module="words")
            self.is_in(task, "done")
        self.assertEqual([self.log(task)["data"] for task in ("one", "two")], ["of one\n", "of two\n"])

    def test_frames_may_come_byte_by_byte_and_may_be_large(self):
        self.pool("any")
        self.assertEqual(self.run_one("split")["result"], "in pieces")
        self.assertEqual(len(self.run_one("largest")["result"]), (1 << 20) - 5000)
        self.assertEqual(self.run_one("echo", payload="y" * 900000)["result"], "y" * 900000)

    def test_frames_that_are_not_understood_are_dropped(self):
        self.pool("any")
        self.assertEqual(self.run_one("garbage")["result"], "heard")

    # how it answers, and what is said of that
    bad_answers = {
        "half": "no JSON", "utf8": "no JSON", "nul": "no JSON", "nan": "no JSON", "deep": "no JSON", "envelope": "id, type and timestamp",
        "shape": "result.success must be true or false", "type": "task.complete", "id": "another", "none": "none was dropped",
    }

    def test_a_worker_that_is_ready_without_an_answer_has_failed_its_task(self):
        self.pool("any", size=2)
        self.until(lambda: len(self.lines("starts")) == 2, "both have started")
        for how in self.bad_answers:
            self.create(id=how, module="answer_badly", payload=how, maxAttempts=1)
        for how, reason in self.bad_answers.items():
            with self.subTest(how=how):
                error = self.is_in(how, "failed", "done", "blocked")["error"]
                self.assertEqual((error["code"], error["class"]), ("EXECUTION_ERROR", "task"), error)
                self.assertIn("worker.ready came without an answer", error["message"])
                self.assertIn(reason, error["message"])
        self.create(id="next", module="echo", payload="fine")
        self.assertEqual(self.is_in("next", "done")["result"], "fine")
        self.assertEqual(sorted(self.lines("starts")), ["p-1", "p-2"], "they were kept")

    def test_one_that_says_too_often_that_it_is_there_does_all_its_tasks(self):
        for number in range(10):
            self.create(id="t%d" % number, module="echo", payload=number)
        self.pool("eager")
        for number in range(10):
            self.assertEqual(self.is_in("t%d" % number, "done", "failed")["result"], number)
        self.assertEqual(self.lines("starts"), ["p-1"])

    def test_one_that_is_ready_long_after_its_hello_does_its_first_task_too(self):
        worker = self.pool("ready-later")
        self.create(id="t", module="echo", payload="fine")
        self.is_in("t", "running")
        open(self.path("loaded"), "w").close()
        self.until(lambda: "is ready although it has a task" in worker.said(), "the log says what was made of it")
        open(self.path("let-go"), "w").close()
        self.assertEqual(self.is_in("t", "done", "failed")["result"], "fine")

    def test_texts_that_few_can_read_are_results_like_any_other(self):
        self.pool("any")
        for name, text, result in (("nul", "a\\u0000b", "a\0b"), ("smile", "\\ud83d\\ude00", "\U0001f600")):
            self.create(id=name, module="odd_text", payload=text)
            self.assertEqual(self.is_in(name, "done", "failed", "blocked")["result"], result)
        self.create(id="lone", module="odd_text", payload="\\ud83d", maxAttempts=1)
        self.assertIn("no JSON", self.is_in("lone", "done", "failed")["error"]["message"])

    def test_a_second_answer_changes_nothing(self):
        self.pool("any")
        self.assertEqual(self.run_one("twice")["result"], "first")
        self.assertEqual(self.run_one("echo", payload=1)["result"], 1)
        self.assertEqual(self.task("twice")["result"], "first")

    def test_an_answer_for_a_task_that_it_does_not_have_changes_nothing(self):
        self.create(id="not-mine", module="echo", queue="elsewhere")
        self.pool("any")
        self.assertEqual(self.run_one("another")["result"], "mine")
        self.assertEqual(self.task("not-mine")["state"], "ready")

    def test_the_deepest_payload_is_a_task_like_any_other(self):
        """Around it there are the task, the claim and the reply with all claims: nobody may stumble over those."""
        self.worker({"p": self.executor("any"), "x": test_worker.sh("echo ran"), "deep": test_worker.sh("echo '%s'" % ("[" * 32 + "]" * 32))})
        for task, more in (("pooled", {"executor": "p", "module": "who"}), ("run", {"executor": "x"}), ("deep", {"executor": "deep"})):
            self.create(id=task, payload=json.loads("[" * 31 + "]" * 31), **more)
            self.is_in(task, "done")
        self.assertEqual(self.task("deep")["result"], "[" * 32 + "]" * 32, "too deep for a result: a text")
        for verb in (["show", "run"], ["ls"]):
            ran = test_worker.subprocess.run([STINT, "--home", self.server.home, *verb, "--json"], stdout=test_worker.subprocess.PIPE,
                                             stderr=test_worker.subprocess.PIPE, text=True, env=stintd.environment())
            self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_a_task_is_for_those_who_have_its_module(self):
        self.pool("each", "who", "echo", size=2)
        for number in range(4):
            self.create(id="w%d" % number, module="who")
        self.assertEqual({self.is_in("w%d" % number, "done")["result"][0] for number in range(4)}, {"p-1"})
        self.create(id="other", module="other")
        self.assertIn("they have who, echo", self.is_in("other", "blocked")["error"]["message"])

    def test_a_worker_that_can_do_nothing_gets_nothing_and_that_is_said(self):
        self.pool("none")
        self.create(id="t", module="echo")
        self.assertIn('has the module "echo"; they have none', self.is_in("t", "blocked")["error"]["message"])

    def test_a_task_without_a_module_is_for_who_has_one_alone(self):
        self.pool("each", "who")
        self.create(id="t")
        self.assertEqual(self.is_in("t", "done")["result"][0], "p-1")

    def test_without_a_module_of_many_it_is_blocked(self):
        self.pool("any")
        self.create(id="t")
        self.assertEqual(self.is_in("t", "blocked")["error"]["code"], "EXECUTOR_NOT_FOUND")
        self.create(id="u", module="../etc")
        self.assertEqual(self.is_in("u", "blocked")["error"]["code"], "EXECUTOR_NOT_FOUND")

    def test_a_work_dir_is_not_for_a_task_to_choose(self):
        self.pool("any")
        self.create(id="t", module="echo", workingDir=self.folder)
        self.assertEqual(self.is_in("t", "blocked")["error"]["code"], "BAD_WORKDIR")

    def test_a_pool_works_on_as_many_as_it_has_and_claims_no_more(self):
        self.pool("any", size=2)
        self.create(id="a", module="meet", payload="b")
        self.create(id="b", module="meet", payload="a")
        self.assertEqual({self.is_in(task, "done")["result"] for task in "ab"}, {"p-1", "p-2"})
        for task in "cde":
            self.create(id=task, module="hold")
        self.until(lambda: sum(self.task(task)["state"] == "running" for task in "cde") == 2, "two run")
        self.assertEqual(sorted(self.task(task)["state"] for task in "cde"), ["ready", "running", "running"])
        rests = next(task for task in "cde" if self.task(task)["state"] == "ready")
        worker, = (worker["workerId"] for worker in self.ok(self.client.get("/api/workers")))
        self.until(lambda: "is ready. All workers of pool p of %s are busy; the first that is free takes it\n" % worker in self.why(rests), "why says what it waits for")
        open(self.path("let-go"), "w").close()
        for task in "cde":
            self.is_in(task, "done")

    def test_tasks_whose_only_worker_is_busy_keep_no_other_worker_from_its_work(self):
        self.pool("each", "hold", "echo", size=2)
        for number in range(4):
            self.create(id="hold-%d" % number, module="hold")
        self.create(id="echo", module="echo", payload="heard")
        self.assertEqual(self.is_in("echo", "done")["result"], "heard")
        released = ["task.released" in self.events("hold-%d" % number) for number in range(4)]
        self.assertEqual(released, [False, True, True, True], "nobody knows for how long")
        self.assertEqual(self.task("hold-1")["spent"], 0)
        open(self.path("let-go"), "w").close()
        self.is_in("hold-1", "done")

    def test_commands_have_room_of_their_own(self):
        self.worker({"p": self.executor("any"), "x": test_worker.sh("echo ran")})
        self.create(id="held", module="hold", executor="p")
        self.is_in("held", "running")
        for number in range(3):
            self.create(id="c%d" % number, executor="x")
            self.assertEqual(self.is_in("c%d" % number, "done")["result"], "ran")
        open(self.path("let-go"), "w").close()
        self.is_in("held", "done")

    def test_the_server_shows_how_the_pool_stands(self):
        self.pool("any", size=2)
        self.run_one("echo")
        self.run_one("leave", maxAttempts=1)

        def shown():
            workers = [worker for worker in self.ok(self.client.get("/api/workers")) if worker["state"] == "active"]
            ran = test_worker.subprocess.run([STINT, "--home", self.server.home, "worker", "show", workers[0]["workerId"], "--json"],
                                             stdout=test_worker.subprocess.PIPE, text=True, env=stintd.environment())
            return json.loads(ran.stdout)["worker"]["metadata"]["pools"]["p"]

        pool = self.until(lambda: (pool := shown())["workerCrashes"] == 3 and pool["tasksCompleted"] == 1 and pool, "the snapshot")
        said = test_worker.subprocess.run([STINT, "--home", self.server.home, "worker", "show",
                                           self.ok(self.client.get("/api/workers"))[0]["workerId"]],
                                          stdout=test_worker.subprocess.PIPE, text=True, env=stintd.environment()).stdout
        self.assertRegex(said, "POOL +p: . of 2 run, 0 busy; 1 done, 3 failed, 3 crashes\n +p-[12], .*: exit status 7 without an answer\n")
        self.assertEqual(pool["lastTrouble"]["reason"], "exit status 7 without an answer")
        for name in ("totalWorkers", "activeWorkers", "idleWorkers", "busyWorkers", "tasksFailed", "averageWorkerUptimeMs", "startedAt"):
            self.assertIsInstance(pool[name], int, name)
        self.assertEqual((pool["totalWorkers"], pool["tasksFailed"], len(pool["workers"])), (2, 3, 2))


class Stopping(Case):
    def test_idle_ones_go_when_their_input_ends(self):
        worker = self.pool("any", size=3, graceMs=60000)
        self.until(lambda: len(self.lines("starts")) == 3, "all have started")
        self.create(id="t", module="echo")
        self.is_in("t", "done")
        self.assertEqual(worker.stop(), 0)
        self.assertEqual(sorted(self.lines("ends")), ["p-1", "p-2", "p-3"])
        self.assertEqual(self.ok(self.client.get("/api/slots")), [], "nobody has crashed")

    def test_one_that_will_not_go_is_killed(self):
        worker = self.pool("stays", graceMs=500)
        pid = self.read("stays")
        self.assertEqual(worker.stop(), 0)
        self.assertTrue(self.is_gone(pid))
        self.assertEqual(self.ok(self.client.get("/api/slots")), [], "what we end ourselves is no crash")

    def test_work_that_ends_soon_ends(self):
        worker = self.pool("any")
        self.create(id="t", module="hold")
        self.read("held-t")
        worker.process.send_signal(signal.SIGTERM)
        self.until(lambda: "stopping" in worker.said(), "it heard")
        open(self.path("let-go"), "w").close()
        self.assertEqual(worker.process.wait(HANG_S), 0)
        self.assertEqual(self.is_in("t", "done")["result"], "held")

    def test_work_that_does_not_is_given_back_and_costs_nothing(self):
        worker = self.pool("any")
        self.create(id="t", module="hang")
        pid = self.read("hangs")
        self.assertEqual(worker.stop(), 0)
        task = self.is_in("t", "ready")
        self.assertEqual((task["spent"], task["crashes"], task["attempt"]), (0, 0, 1))
        self.assertTrue(self.is_gone(pid))

    def test_work_goes_on_while_the_server_is_away(self):
        self.pool("any")
        self.create(id="t", module="hold")
        self.read("held-t")
        self.is_in("t", "running")
        self.server.stop()
        open(self.path("let-go"), "w").close()
        self.server.start()
        self.client.close()
        self.assertEqual(self.is_in("t", "done")["result"], "held")
        self.create(id="next", module="echo", payload="fine")
        self.assertEqual(self.is_in("next", "done")["result"], "fine")
        self.assertEqual(self.lines("starts"), ["p-1"])

    def test_a_second_signal_does_not_wait(self):
        worker = self.pool("any")
        self.create(id="t", module="hang")
        self.read("hangs")
        worker.process.send_signal(signal.SIGTERM)
        self.until(lambda: "stopping" in worker.said(), "it heard")
        self.assertEqual(worker.stop(), 0)
        self.is_in("t", "ready")

    def test_a_supervisor_that_is_killed_takes_its_workers_with_it(self):
        worker = self.pool("any", size=2)
        self.create(id="t", module="hang", maxAttempts=1)
        pid = self.read("hangs")
        worker.process.kill()
        worker.process.wait(HANG_S)
        os.unlink(self.path("hangs"))
        worker = self.pool("any", size=2)
        again = self.read("hangs")
        self.assertTrue(self.is_gone(pid), "before it was run again")
        self.assertNotEqual(pid, again)
        task = self.task("t")
        self.assertEqual((task["attempt"], task["crashes"] >= 1, task["spent"]), (2, True, 0))
        self.assertIsNone(self.slot(), "its workers did not crash, it did")

    def test_run_once_works_with_a_pool_too(self):
        config = self.path("once.json")
        with open(config, "w") as file:
            json.dump({"executors": {"p": self.executor("any", size=2), "bad": self.executor("exit")}}, file)
        self.create(id="t", executor="p", module="echo", payload={"summary": "as told"})

        def once():
            ran = test_worker.subprocess.run(
                [test_worker.WORKER, "run-once", "--agent-id", "a", "--queues", "q", "--home", self.server.home, "--config", config],
                stdout=test_worker.subprocess.PIPE, stderr=test_worker.subprocess.PIPE, text=True, env=stintd.environment(), timeout=HANG_S)
            return json.loads(ran.stdout)

        self.assertEqual((done := once())["action"], "completed", done)
        self.assertEqual((done["itemId"], done["summary"]), ("t", "as told"))
        self.assertEqual(self.lines("starts"), ["p-1"], "one task, one worker")
        self.create(id="u", executor="bad", module="echo")
        self.assertEqual((done := once())["ok"], False, done)
        task = self.task("u")
        self.assertEqual((task["error"]["code"], task["spent"], task["state"]), ("WORKER_INIT_FAILED", 0, "scheduled"))
        self.assertIn("no configuration", task["error"]["message"])
        for _ in range(3):
            self.client.post("/api/slots/a%2Fbad-1/crash")
        self.create(id="v", executor="bad", module="echo")
        self.assertEqual((done := once())["ok"], False, done)
        self.assertIn("stint slot unquarantine a/bad-1", self.task("v")["error"]["message"])


if __name__ == "__main__":
    unittest.main()
