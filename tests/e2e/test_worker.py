"""The supervisor with real processes: what it runs, how that ends, what it leaves, and what it survives."""
import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from hang import HANG_S
import proof
import stintd

STINT = os.path.abspath(os.environ.get("STINT", "build/stint"))
WORKER = os.path.abspath(os.environ.get("STINT_WORKER", "build/stint-worker"))
PATIENCE_S = HANG_S


def sh(script, **more):
    return {"kind": "command", "argv": ["sh", "-c", script], **more}


class Worker:
    """stint-worker in the home of a server, with these executors; `config` has further keys, `before` is a command that it is run by."""

    def __init__(self, server, executors, *flags, queues=None, roots=(), home=None, before=(), config=None, **variables):
        self.home = home or server.home
        self.config = os.path.join(server.home, "worker-%d.json" % time.monotonic_ns())
        with open(self.config, "w") as file:
            json.dump({"executors": executors, "queues": queues or {"q": {}}, "roots": list(roots), **(config or {})}, file)
        self.said_to = open(os.path.join(server.home, "worker.log"), "ab")
        self.log = self.said_to.name
        url = () if home is None else ("--url", server.url, "--token-file", os.path.join(server.home, "admin.token"))
        self.process = subprocess.Popen(
            [*before, WORKER, "--home", self.home, "--config", self.config, *url, *flags], stdin=subprocess.DEVNULL,
            stderr=self.said_to, env=stintd.environment(**variables), start_new_session=True)

    def said(self):
        with open(self.log) as file:
            return file.read()

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        try:
            return self.process.wait(HANG_S)
        except subprocess.TimeoutExpired:
            raise AssertionError("it does not end: " + self.said()) from None

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(HANG_S)
        self.said_to.close()


class Case(stintd.Case):
    flags = ("--set", "retry.baseMs=10", "--set", "retry.maxMs=50", "--set", "worker.leaseMinMs=1000",
             "--set", "restart.graceMs=1000", "--set", "sweep.intervalMs=50")

    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="stint-worker-")
        self.addCleanup(shutil.rmtree, self.folder, True)

    def worker(self, executors, *flags, **options):
        worker = Worker(self.server, executors, *flags, **options)
        self.addCleanup(worker.end)
        return worker

    def task(self, task):
        return self.client.get("/api/tasks/" + task).json

    def is_in(self, task, *states):
        return self.until(lambda: (found := self.task(task))["state"] in states and found, (task, states))

    def events(self, task):
        return [event["type"] for event in self.client.get("/api/tasks/%s/events" % task).json["events"]]

    def log(self, task):
        return self.client.get("/api/tasks/%s/log" % task).json

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        """What a child wrote there, once it has."""
        def look():
            if not os.path.exists(self.path(name)):
                return None
            with open(self.path(name)) as file:
                return file.read().strip()

        return self.until(look, name)

    def is_gone(self, pid):
        try:
            with open("/proc/%s/stat" % pid) as file:
                return file.read().rsplit(")", 1)[1].split()[0] == "Z"
        except (FileNotFoundError, ProcessLookupError):  # before it is opened, or before it is read
            return True


class Ends(Case):
    def test_a_task_is_run_and_its_last_line_is_the_result(self):
        self.worker({"x": sh("echo begin; echo '{\"answer\":42}'")})
        self.create(id="t")
        self.assertEqual(self.is_in("t", "done")["result"], {"answer": 42})
        self.assertEqual(self.events("t")[-3:], ["task.created", "task.claimed", "task.completed"])
        self.assertEqual(self.log("t")["data"], 'begin\n{"answer":42}\n')

    def test_text_is_a_result_too(self):
        self.worker({"x": sh("echo one; echo two words")})
        self.create(id="t")
        self.assertEqual(self.is_in("t", "done")["result"], "one\ntwo words")

    def test_the_task_comes_as_json_on_standard_input(self):
        self.worker({"x": sh("cat")})
        self.create(id="t", payload={"n": [1, 2]}, instructions="do it")
        result = self.is_in("t", "done")["result"]
        self.assertEqual((result["id"], result["payload"], result["instructions"], result["attempt"]),
                         ("t", {"n": [1, 2]}, "do it", 1))

    def test_numbers_of_any_length_come_to_the_command_and_back(self):
        numbers = b"[123456789012345678901234567890,0.12345678901234567890123]"
        self.worker({"x": sh("cat")})
        self.client.post("/api/tasks", b'{"id":"t","title":"x","queue":"q","payload":%s}' % numbers)
        self.is_in("t", "done")
        self.assertEqual(self.client.get("/api/tasks/t").body.count(numbers), 2)

    def test_the_environment_is_built_from_nothing(self):
        self.worker({"x": sh("env -0 | tr '\\0' '\\n' > $OUT; pwd", env={"OUT": self.path("env")}, envAllow=["LET_IN"],
                             write=[self.folder])}, LET_IN="yes", KEPT_OUT="secret")
        self.create(id="t")
        task = self.is_in("t", "done")
        env = dict(line.split("=", 1) for line in self.read("env").splitlines())
        self.assertEqual((env["STINT_TASK_ID"], env["STINT_ATTEMPT"], env["STINT_QUEUE"], env["LET_IN"]), ("t", "1", "q", "yes"))
        self.assertEqual(env["STINT_FENCE"], task["fence"])
        self.assertEqual(env["STINT_WORKSPACE"], task["result"])
        self.assertTrue(env["STINT_URL"].startswith("unix:"))
        self.assertGreater(int(env["STINT_DEADLINE_MS"]), time.time() * 1000)
        self.assertNotIn("KEPT_OUT", env)
        for name in ("HOME", "TMPDIR", "STINT_TOKEN_FILE", "STINT_WORKER_ID", "PATH"):
            self.assertIn(name, env)
        self.assertNotIn("stint_", "".join(value for name, value in env.items() if name != "STINT_TOKEN_FILE"))

    def test_a_child_reports_with_the_token_of_its_claim(self):
        self.worker({"x": sh(STINT + " task progress 'half way' --percent 50 --data '{\"at\":7}' && echo fine")})
        self.create(id="t")
        self.assertEqual(self.is_in("t", "done", "scheduled", "failed")["result"], "fine", self.log("t"))
        self.assertIn("task.progressed", self.events("t"))

    def test_exit_statuses(self):
        self.worker({"later": sh("exit 75"), "never": sh("exit 78"), "no": sh("echo why >&2; exit 3")}, "--concurrency", "4")
        for name in ("later", "never", "no"):
            self.create(id=name, executor=name, maxAttempts=1)
        self.assertEqual(self.is_in("never", "failed")["error"]["details"], {"exit": 78})
        error = self.is_in("no", "failed")["error"]
        self.assertEqual((error["code"], error["message"], error["class"]), ("EXECUTION_ERROR", "exit status 3: why", "task"))
        later = self.until(lambda: (found := self.task("later"))["attempt"] > 0 and found["state"] == "scheduled" and found, "later")
        self.assertEqual((later["spent"], later["crashes"]), (0, 0))

    def test_a_signal_is_a_crash_and_the_crash_budget_ends_it(self):
        self.worker({"x": sh("kill -9 $$")})
        self.create(id="t")
        task = self.is_in("t", "failed")
        self.assertEqual((task["crashes"], task["spent"], task["error"]["code"]), (3, 0, "WORKER_CRASHED"))
        self.assertEqual(task["error"]["details"], {"signal": 9})

    def test_what_takes_too_long_is_ended_with_its_whole_tree(self):
        self.worker({"x": sh("trap '' TERM; (setsid sleep 1000 & echo $! > $DIR/pid); sleep 1000; sleep 1000",
                             env={"DIR": self.folder}, write=[self.folder], graceMs=200)})
        self.create(id="t", timeoutMs=1000, maxAttempts=1)
        error = self.is_in("t", "failed")["error"]
        self.assertEqual((error["code"], error["class"]), ("TASK_TIMEOUT", "timeout"))
        self.assertTrue(self.is_gone(self.read("pid")), "it is reported when the tree is gone")

    def test_silence_is_a_stall_where_that_is_configured(self):
        self.worker({"x": sh("echo hello; sleep 1000", stallMs=500, graceMs=200)})
        self.create(id="t", maxAttempts=1)
        self.assertEqual(self.is_in("t", "failed")["error"]["code"], "STALLED")

    def test_a_program_that_is_not_there_is_the_hosts_trouble(self):
        self.worker({"x": {"kind": "command", "argv": ["/nonexistent/program"]}})
        self.create(id="t")
        task = self.until(lambda: (found := self.task("t"))["attempt"] > 0 and found["error"] and found, "tried")
        self.assertEqual((task["error"]["code"], task["spent"], task["state"]), ("WORKER_INIT_FAILED", 0, "scheduled"))

    def test_bytes_that_are_no_text_are_logged_as_such(self):
        self.worker({"x": sh("printf 'a\\377b\\000c\\303\\244\\n'")})
        self.create(id="t")
        self.is_in("t", "done")
        self.assertEqual(self.log("t")["data"], "a\ufffdb\ufffdc\u00e4\n")

    def test_a_flood_of_output_blocks_nobody_and_says_what_is_missing(self):
        self.worker({"flood": sh("yes 0123456789 | head -c 30000000; echo end"), "small": sh("echo small")}, "--concurrency", "2")
        self.create(id="flood", executor="flood")
        self.create(id="small", executor="small")
        self.is_in("small", "done")
        self.is_in("flood", "done")
        log = self.client.get("/api/tasks/flood/log?after=%d" % 0).json
        self.assertGreaterEqual(log["length"], 30000000)
        text = self.client.call("GET", "/api/tasks/flood/log", headers={"Accept": "text/plain"}).body.decode()
        self.assertIn("bytes were dropped", text)
        self.assertTrue(text.endswith("end\n"), text[-100:])


class Words(Case):
    """What the work says of its own end, with the token of its claim."""

    def ends(self, script, *states):
        self.worker({"x": sh(script.replace("stint ", STINT + " "), graceMs=200)})
        self.create(id="t", maxAttempts=1)
        return self.is_in("t", *states)

    def test_its_word_beats_the_exit_status(self):
        task = self.ends("stint task done 'all good'; exit 3", "done", "failed")
        self.assertEqual((task["state"], task["result"]), ("done", "all good"))

    def test_a_token_of_its_own_is_enough_to_hear_it(self):
        token = self.client.post("/api/tokens", {"kind": "worker", "name": "w", "queues": ["q"]}).json["token"]
        with open(self.path("token"), "w") as file:
            file.write(token)
        self.worker({"x": sh(STINT + " task fail 'no disk'; exit 0")}, "--token-file", self.path("token"))
        self.create(id="t", maxAttempts=1)
        self.assertEqual(self.is_in("t", "done", "failed")["state"], "failed")

    def test_so_does_its_failure(self):
        task = self.ends("stint task fail 'no disk'; exit 0", "done", "failed")
        self.assertEqual((task["state"], task["error"]["message"]), ("failed", "no disk"))

    def test_it_may_ask_for_a_review(self):
        self.assertEqual(self.ends("stint task review --result 7", "review", "done")["result"], 7)

    def test_a_crash_beats_a_success_it_reported(self):
        self.assertEqual(self.ends("stint task done 'all good'; kill -9 $$", "done", "failed")["state"], "failed")
        said = self.client.get("/api/tasks/t/log").json["data"]
        self.assertEqual(said, "t: saved; it counts when the process has ended\n", "it was not done, and nobody said so")

    def test_who_asks_and_goes_leaves_the_question_open(self):
        self.worker({"x": sh("[ $STINT_ATTEMPT = 2 ] || STINT task ask 'which?'".replace("STINT task", STINT + " task"))})
        self.create(id="t")
        task = self.until(lambda: (found := self.task("t"))["state"] == "asking" and found["workerId"] is None and found, "asking")
        self.assertEqual((task["spent"], task["crashes"]), (0, 0))
        self.assertEqual(self.client.post("/api/tasks/t/answer", {"text": "that one"}).status, 200)
        self.assertEqual(self.is_in("t", "done")["attempt"], 2)

    def test_after_its_last_word_it_has_ten_seconds_to_go(self):
        task = self.ends("stint task done 'all good'; sleep 1000", "done", "failed")
        self.assertEqual((task["state"], task["result"]), ("done", "all good"))


class Places(Case):
    def test_a_task_works_beneath_a_root_and_nowhere_else(self):
        self.worker({"x": sh("pwd; touch made")}, roots=[self.folder], queues={"q": {"executor": "x"}})
        os.mkdir(self.path("inside"))
        os.symlink("/usr", self.path("link"))
        self.create(id="good", workingDir=self.path("inside"))
        self.assertEqual(self.is_in("good", "done")["result"], self.path("inside"))
        self.assertTrue(os.path.exists(self.path("inside/made")))
        for name, place in (("outside", "/usr"), ("linked", self.path("link")), ("up", self.path("inside/../..")),
                            ("tilde", "~"), ("none", self.path("nothing"))):
            self.create(id=name, workingDir=place)
            self.assertEqual(self.is_in(name, "blocked")["error"]["code"], "BAD_WORKDIR", name)

    def test_a_root_above_the_state_directory_does_not_open_it(self):
        home = self.server.home
        self.worker({"x": sh("cat admin.token stint/admin.token; true")}, roots=[os.path.dirname(home)])
        for name, place in (("above", os.path.dirname(home)), ("at", home), ("in", os.path.join(home, "workers"))):
            self.create(id=name, workingDir=place)
            error = self.is_in(name, "blocked", "done")["error"]
            self.assertEqual((name, error["code"]), (name, "BAD_WORKDIR"), error)

    def test_without_one_it_has_an_empty_directory_that_goes_with_it(self):
        self.worker({"x": sh("pwd; echo $(ls -A | wc -l) files")})
        self.create(id="t")
        place, count = self.is_in("t", "done")["result"].split("\n")
        self.assertEqual(count, "0 files")
        self.assertTrue(place.startswith(os.path.join(self.server.home, "runs")))
        self.until(lambda: os.listdir(os.path.join(self.server.home, "runs")) == [], "it is removed")

    def test_many_files_are_removed_after_it_was_told(self):
        worker = self.worker({"x": sh("cd $TMPDIR; i=0; while [ $i -lt 5000 ]; do : > f$i; i=$((i+1)); done; echo many")})
        self.create(id="t")
        self.assertEqual(self.is_in("t", "done")["result"], "many")
        self.until(lambda: os.listdir(os.path.join(self.server.home, "runs")) == [], "it is removed")
        self.create(id="next")
        self.is_in("next", "done")
        self.assertEqual(worker.stop(), 0)

    def test_the_state_directory_is_out_of_reach(self):
        home = self.server.home
        self.worker({"x": sh(f"cat {home}/admin.token; ls {home}; cat {home}/stint.db; echo > {home}/x; "
                             f"ls {home}/runs; cat /proc/$PPID/environ; true")})
        self.create(id="t")
        self.is_in("t", "done")
        self.assertFalse(os.path.exists(os.path.join(home, "x")))
        log = self.log("t")["data"]
        self.assertNotIn(self.server.token, log)
        self.assertNotIn("SQLite", log)
        self.assertGreaterEqual(log.count("Permission denied"), 5, log)

    def test_unknown_executors_and_levels_are_said(self):
        self.worker({"a": sh("true"), "b": sh("true")}, queues={"q": {}})
        self.create(id="which")
        self.create(id="level", executor="a", isolationLevel="vm")
        self.assertEqual(self.is_in("which", "blocked")["error"]["code"], "EXECUTOR_NOT_FOUND")
        self.assertEqual(self.is_in("level", "blocked")["error"]["code"], "ISOLATION_UNAVAILABLE")


class Stops(Case):
    def start(self, script="echo $$ > $DIR/pid; sleep 1000", *flags, **more):
        worker = self.worker({"x": sh(script, env={"DIR": self.folder}, write=[self.folder], graceMs=500, **more)}, *flags)
        self.create(id="t")
        return worker, int(self.read("pid"))

    def test_cancel_reaches_the_process(self):
        _, pid = self.start()
        self.is_in("t", "running")
        self.assertEqual(self.client.post("/api/tasks/t/cancel").status, 202)
        self.is_in("t", "cancelled")
        self.assertTrue(self.is_gone(pid))

    def test_the_first_signal_lets_work_end(self):
        worker, pid = self.start("echo $$ > $DIR/pid; until [ -e $DIR/go ]; do sleep 0.05; done; echo done")
        worker.process.send_signal(signal.SIGTERM)
        self.until(lambda: '"stopping"' in worker.said(), "it stops")
        self.create(id="later")
        open(self.path("go"), "w").close()
        self.assertEqual(worker.process.wait(HANG_S), 0)
        self.assertEqual(self.task("t")["result"], "done")
        self.assertEqual(self.task("later")["state"], "ready", "nothing new was claimed")

    def test_the_second_signal_gives_everything_back_and_spends_nothing(self):
        worker, pid = self.start()
        worker.process.send_signal(signal.SIGTERM)
        self.until(lambda: '"stopping"' in worker.said(), "it stops")
        self.assertEqual(worker.stop(), 0)
        self.assertTrue(self.is_gone(pid))
        task = self.task("t")
        self.assertEqual((task["state"], task["spent"], task["crashes"]), ("ready", 0, 0))
        self.assertIn("task.released", self.events("t"))
        gone = [worker for worker in self.client.get("/api/workers").json if worker["state"] != "inactive"]
        self.assertEqual(gone, [])

    def test_a_worker_that_is_told_to_stop_stops(self):
        worker = self.worker({"x": sh("true")})
        name = self.until(lambda: self.client.get("/api/workers").json, "registered")[0]["workerId"]
        self.client.post("/api/workers/%s/terminate" % name)
        self.assertEqual(worker.process.wait(HANG_S), 0)

    def test_a_quiet_one_takes_nothing_new(self):
        worker, pid = self.start("echo $$ > $DIR/pid; until [ -e $DIR/go ]; do sleep 0.05; done", "--concurrency", "2")
        self.is_in("t", "running")
        name = self.client.get("/api/workers").json[0]["workerId"]
        self.client.post("/api/workers/%s/quiet" % name)
        self.until(lambda: "nothing new" in worker.said(), "it heard")
        self.create(id="later")
        open(self.path("go"), "w").close()
        self.is_in("t", "done")
        self.assertEqual(self.task("later")["state"], "ready")

    def test_the_death_of_the_supervisor_ends_its_children_and_the_next_one_explains_it(self):
        worker, pid = self.start("echo $$ > $DIR/pid; sleep 1000 & wait")
        worker.process.kill()
        worker.process.wait(HANG_S)
        self.until(lambda: self.is_gone(pid), "the shim ends the tree")
        os.unlink(self.path("pid"))
        self.worker({"x": sh("echo again")})
        task = self.is_in("t", "done")
        self.assertEqual((task["result"], task["attempt"]), ("again", 2))
        failed = [event for event in self.client.get("/api/tasks/t/events").json["events"] if event["type"] == "task.failed"]
        self.assertEqual([event["data"]["code"] for event in failed], ["WORKER_CRASHED"])


    def test_a_failure_that_was_told_before_the_supervisor_died_is_not_a_crash(self):
        worker, _ = self.start(STINT + " task fail 'no disk'; echo $$ > $DIR/pid; sleep 1000")
        worker.process.kill()
        worker.process.wait(HANG_S)
        self.worker({"x": sh("echo again")})
        events = self.until(lambda: [event for event in self.client.get("/api/tasks/t/events").json["events"] if event["type"] == "task.failed"],
                            "told")
        self.assertEqual([event["data"]["message"] for event in events], ["no disk"])


class Absences(Case):
    def test_work_goes_on_while_the_server_is_away_and_is_reported_after(self):
        worker = self.worker({"x": sh("echo $$ > $DIR/pid; until [ -e $DIR/go ]; do sleep 0.05; done; echo late",
                                      env={"DIR": self.folder}, write=[self.folder])})
        self.create(id="t")
        self.read("pid")
        self.is_in("t", "running")
        self.server.kill()
        self.until(lambda: "does not answer" in worker.said(), "it noticed")
        open(self.path("go"), "w").close()
        self.until(lambda: '"ended"' in worker.said(), "it ended")
        self.server.start()
        self.client.close()
        task = self.is_in("t", "done")
        self.assertEqual((task["result"], task["attempt"], task["crashes"]), ("late", 1, 0))

    def test_a_result_survives_the_death_of_both(self):
        worker = self.worker({"x": sh("echo $$ > $DIR/pid; until [ -e $DIR/go ]; do sleep 0.05; done; echo kept",
                                      env={"DIR": self.folder}, write=[self.folder])})
        self.create(id="t")
        self.read("pid")
        self.is_in("t", "running")
        self.server.kill()
        open(self.path("go"), "w").close()
        self.until(lambda: '"ended"' in worker.said(), "it ended")
        worker.process.kill()
        worker.process.wait(HANG_S)
        self.server.start()
        self.client.close()
        self.worker({"x": sh("echo again")})
        task = self.is_in("t", "done")
        self.assertEqual((task["result"], task["attempt"]), ("kept", 1))

    def ends_as_it_said(self, word, status, *states, flags=()):
        """It says how it ended and exits; then server and worker die before the one has heard it from the other."""
        worker = self.worker({"x": sh(STINT + " task %s && echo said > $DIR/said; until [ -e $DIR/go ]; do sleep 0.05; done; exit %d"
                                      % (word, status), env={"DIR": self.folder}, write=[self.folder])}, *flags)
        self.create(id="t", maxAttempts=1)
        self.read("said")
        self.server.kill()
        open(self.path("go"), "w").close()
        self.until(lambda: '"ended"' in worker.said(), "it ended")
        worker.process.kill()
        worker.process.wait(HANG_S)
        self.server.start()
        self.client.close()
        self.worker({"x": sh("echo again")}, *flags)
        ends = {"task.completed", "task.failed", "task.reviewed", "task.blocked", "task.released"}
        task = self.until(lambda: ends & set(self.events("t")) and self.task("t"), "it ended")
        self.assertIn(task["state"], states, self.events("t"))
        self.assertEqual(len([event for event in self.events("t") if event in ends]), 1)
        return task

    def test_a_failure_it_told_outlives_the_death_of_both(self):
        self.assertEqual(self.ends_as_it_said("fail 'no disk'", 0, "failed")["error"]["message"], "no disk")

    def test_a_worker_with_a_token_of_its_own_hears_the_word_too(self):
        token = self.client.post("/api/tokens", {"kind": "worker", "name": "w", "queues": ["q"]}).json["token"]
        path = os.path.join(self.server.home, "w.token")  # not in what the task may write
        with open(path, "w") as file:
            file.write(token)
        flags = ("--token-file", path)
        self.assertEqual(self.ends_as_it_said("fail 'no disk'", 0, "failed", flags=flags)["error"]["message"], "no disk")
        self.create(id="u", maxAttempts=1)
        self.is_in("u", "done")

    def test_so_does_a_success(self):
        self.assertEqual(self.ends_as_it_said("done 'all good'", 3, "done")["result"], "all good")

    def test_and_a_wish_for_a_review(self):
        self.assertEqual(self.ends_as_it_said("review --result 7", 0, "review")["result"], 7)

    def test_and_a_question(self):
        task = self.ends_as_it_said("ask 'which?'", 0, "asking")
        self.assertEqual((task["workerId"], task["spent"], task["crashes"]), (None, 0, 0))

    def test_a_worker_that_is_stopped_meanwhile_leaves_its_reports_to_the_next_one(self):
        worker = self.worker({"x": sh("echo $$ > $DIR/pid; until [ -e $DIR/go ]; do sleep 0.05; done; echo left",
                                      env={"DIR": self.folder}, write=[self.folder], graceMs=200)})
        self.create(id="t")
        self.read("pid")
        self.is_in("t", "running")
        self.server.kill()
        open(self.path("go"), "w").close()
        self.until(lambda: '"ended"' in worker.said(), "it ended")
        self.assertEqual(worker.stop(), 0, "with the first signal: nothing runs that it could wait for")
        self.server.start()
        self.client.close()
        self.worker({"x": sh("echo again")})
        task = self.is_in("t", "done")
        self.assertEqual((task["result"], task["attempt"]), ("left", 1))

    def test_a_remote_worker_that_hears_nothing_stops_its_work(self):
        home = tempfile.mkdtemp(prefix="stint-remote-")
        self.addCleanup(shutil.rmtree, home, True)
        worker = self.worker({"x": sh("echo $$ > $DIR/pid; sleep 1000", env={"DIR": self.folder}, write=[self.folder], graceMs=200)},
                             "--remote", "--lease-ms", "4000", home=home)
        self.create(id="t")
        pid = self.read("pid")
        self.is_in("t", "running")
        os.kill(self.server.process.pid, signal.SIGSTOP)
        try:
            self.until(lambda: self.is_gone(pid), "it stopped by itself")
        finally:
            os.kill(self.server.process.pid, signal.SIGCONT)
        self.assertIn("nine tenths", worker.said())

    def test_one_that_was_given_up_comes_back_under_another_id(self):
        worker = self.worker({"x": sh("echo $$ > $DIR/pid; sleep 1000", env={"DIR": self.folder}, write=[self.folder], graceMs=200)})
        self.create(id="t")
        pid = self.read("pid")
        self.is_in("t", "running")
        name = self.client.get("/api/workers").json[0]["workerId"]
        os.unlink(self.path("pid"))
        self.assertEqual(self.client.call("DELETE", "/api/workers/" + name).status, 200)
        self.until(lambda: self.is_gone(pid), "what it ran is stopped")
        other = self.until(lambda: [found["workerId"] for found in self.client.get("/api/workers").json if found["state"] == "active"], "back")
        self.assertNotEqual(other[0], name)
        self.assertNotEqual(self.read("pid"), pid, "and it is run again")


class Slots(Case):
    def test_a_slot_has_one_worker_and_a_longer_lease(self):
        self.worker({"x": sh("echo mine")}, "--slot", "s-1")
        self.until(lambda: self.client.get("/api/workers").json, "registered")
        filler, = self.client.get("/api/workers").json
        self.assertEqual((filler["slot"], filler["leaseGrantedMs"]), ("s-1", 90000))
        second = self.worker({"x": sh("true")}, "--slot", "s-1")
        self.assertEqual(second.process.wait(HANG_S), 75)
        self.create(id="t", owner="s-1")
        self.create(id="other", owner="s-2")
        self.is_in("t", "done")
        self.assertEqual(self.task("other")["state"], "ready")

    def test_a_slot_that_is_taken_elsewhere_is_left_alone(self):
        self.client.post("/api/workers/register", {"workerId": "elsewhere", "slot": "s-1"})
        worker = self.worker({"x": sh("true")}, "--slot", "s-1")
        self.assertEqual(worker.process.wait(HANG_S), 75)
        self.assertIn("slot_taken", worker.said())

    def test_the_slot_comes_from_the_environment_too(self):
        self.worker({"x": sh("true")}, SLOT_ID="s-9")
        self.assertEqual(self.until(lambda: self.client.get("/api/workers").json, "registered")[0]["slot"], "s-9")

    def test_a_successor_takes_the_slot_at_once_and_ends_what_was_left(self):
        first = self.worker({"x": sh("echo $$ > $DIR/pid; sleep 1000", env={"DIR": self.folder}, write=[self.folder])}, "--slot", "s")
        self.create(id="t", owner="s")
        pid = self.read("pid")
        first.process.kill()
        first.process.wait(HANG_S)
        self.worker({"x": sh("echo second")}, "--slot", "s")
        self.assertEqual(self.is_in("t", "done")["result"], "second")
        self.assertTrue(self.is_gone(pid))
        slot, = self.client.get("/api/slots").json
        self.assertEqual((slot["crashes"], slot["restarts"]), (1, 1), "one end, told by its successor and seen by the server")
        beat = self.client.get("/api/heartbeats").json["workers"]["s"]["metadata"]
        self.assertEqual((beat["restartCount"], beat["workerVersion"]), (1, beat["version"]))

    def lossy(self, path):
        """A proxy that loses the first reply to a request for this path: the server has done it, and nobody is told."""
        listener = socket.create_server(("127.0.0.1", 0))
        near_port, far_port = b":%d" % listener.getsockname()[1], b":%d" % self.server.port
        lost = []
        open_ones = [listener]

        def pass_on(source, sink, edit):
            with contextlib.suppress(OSError):
                while data := source.recv(65536):
                    sink.sendall(edit(data))
            for one in (source, sink):
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

        def serve(near):
            far = socket.create_connection(("127.0.0.1", self.server.port))
            open_ones.extend((near, far))

            def there(data):
                if path in data and not lost:
                    lost.append(far)
                return data.replace(near_port, far_port)

            def back(data):
                if lost == [far]:
                    lost.append("the reply")
                    raise ConnectionResetError
                return data

            threading.Thread(target=pass_on, args=(near, far, there), daemon=True).start()
            threading.Thread(target=pass_on, args=(far, near, back), daemon=True).start()

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    serve(listener.accept()[0])

        def close():
            listener.shutdown(socket.SHUT_RDWR)
            for one in open_ones:
                one.close()

        threading.Thread(target=accept, daemon=True).start()
        self.addCleanup(close)
        return "http://127.0.0.1" + near_port.decode(), lost

    def test_a_crash_whose_reply_was_lost_counts_once(self):
        first = self.worker({"x": sh("true")}, "--slot", "s")
        self.until(lambda: self.client.get("/api/workers").json, "registered")
        first.stop(signal.SIGKILL)
        os.truncate(first.log, 0)
        url, lost = self.lossy(b"/api/slots/s/crash")
        second = self.worker({"x": sh("true")}, "--slot", "s", "--url", url)
        self.until(lambda: '"registered"' in second.said(), "it comes after its reports are taken")
        self.assertIn("the reply", lost)
        slot, = self.client.get("/api/slots").json
        self.assertEqual(slot["crashes"], 1)

    def hold_next_letter(self, slot):
        """The successor stops where it writes down how the attempt of its predecessor ended, until the lease is let go."""
        place = os.path.join(self.server.home, "workers", "slot-" + slot)
        run, = os.listdir(os.path.join(place, "runs"))
        usual = signal.signal(signal.SIGIO, signal.SIG_IGN)  # so the kernel says that somebody wants the file
        self.addCleanup(signal.signal, signal.SIGIO, usual)
        lease = os.open(os.path.join(place, "outbox", "." + run + ".new"), os.O_RDWR | os.O_CREAT, 0o600)
        self.addCleanup(os.close, lease)
        try:
            fcntl.fcntl(lease, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError as fault:
            self.skipTest("no leases of files here: %s" % fault)
        return lease

    def test_a_signal_while_it_takes_over_ends_it_after_that_and_nothing_is_lost(self):
        first = self.worker({"x": sh("echo $$ > $DIR/pid; sleep 1000", env={"DIR": self.folder}, write=[self.folder])}, "--slot", "s")
        self.create(id="t", owner="s")
        self.read("pid")
        self.is_in("t", "running")
        first.stop(signal.SIGKILL)
        lease = self.hold_next_letter("s")
        second = self.worker({"x": sh("true")}, "--slot", "s")
        self.until(lambda: fcntl.fcntl(lease, fcntl.F_GETLEASE) != fcntl.F_WRLCK, "it takes over")
        second.process.send_signal(signal.SIGTERM)
        fcntl.fcntl(lease, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        self.assertEqual(second.process.wait(HANG_S), 0)
        failed = [event for event in self.client.get("/api/tasks/t/events").json["events"] if event["type"] == "task.failed"]
        self.assertEqual([event["data"]["code"] for event in failed], ["WORKER_CRASHED"])
        slot, = self.client.get("/api/slots").json
        self.assertEqual(slot["crashes"], 1)
        self.assertEqual(self.task("t")["state"], "ready", "it claimed nothing")

    def test_nothing_is_left_of_a_worker_that_died_while_it_wrote(self):
        first = self.worker({"x": sh("true")})
        self.until(lambda: '"registered"' in first.said(), "registered")
        first.stop(signal.SIGKILL)
        place = os.path.join(self.server.home, "workers")
        dead, = os.listdir(place)
        for name in ("outbox/.r-1.new", "runs/.r-1.new", ".worker.new"):
            open(os.path.join(place, dead, name), "w").close()
        second = self.worker({"x": sh("true")})
        self.until(lambda: second.said().count('"registered"') == 2, "registered")
        self.assertNotIn(dead, os.listdir(place))

    def test_who_was_not_let_in_leaves_the_record_of_who_was_there(self):
        """Its successor can still say that it replaces a dead one, and need not wait for its lease."""
        for end in (signal.SIGKILL, signal.SIGTERM):
            with self.subTest(end=end):
                first = self.worker({"x": sh("true")}, "--slot", "s")
                self.until(lambda: '"registered"' in first.said(), "registered")
                first.stop(signal.SIGKILL)
                os.truncate(first.log, 0)
                for _ in range(3):
                    self.client.post("/api/slots/s/crash")
                second = self.worker({"x": sh("true")}, "--slot", "s")
                self.until(lambda: "slot_quarantined" in second.said(), "not let in")
                second.stop(end)
                self.assertEqual(self.client.post("/api/slots/s/unquarantine").status, 200)
                third = self.worker({"x": sh("true")}, "--slot", "s")
                self.until(lambda: '"registered"' in third.said() or third.process.poll() is not None, "let in, or not")
                self.assertIn('"registered"', third.said())
                self.assertEqual(self.client.get("/api/slots").json[0]["crashes"], 0, "the end of the first was told once")
                third.stop()
                os.truncate(first.log, 0)

    def test_three_unclean_ends_within_a_minute_quarantine_the_slot(self):
        for _ in range(4):
            worker = self.worker({"x": sh("true")}, "--slot", "s")
            self.until(lambda: '"registered"' in worker.said() or "quarantined" in worker.said(), "it began")
            if "quarantined" in worker.said():
                break
            worker.process.kill()
            worker.process.wait(HANG_S)
            os.truncate(worker.log, 0)
        self.assertEqual(self.client.get("/api/slots").json[0]["state"], "quarantined")
        self.create(id="t", owner="s")
        self.assertEqual(self.client.post("/api/slots/s/unquarantine").status, 200)
        self.is_in("t", "done")


class Beginnings(Case):
    def test_a_signal_before_it_listens_ends_it_cleanly(self):
        token = self.path("token")  # nobody has written it yet: whoever reads it waits
        os.mkfifo(token)
        worker = self.worker({"x": sh("true")}, "--token-file", token)
        writer = self.until(lambda: self.open_for(token), "it reads its token")
        with open(writer, "w") as file:
            worker.process.send_signal(signal.SIGTERM)
            with open(os.path.join(self.server.home, "admin.token")) as own:
                file.write(own.read())
        self.assertEqual(worker.process.wait(HANG_S), 0, worker.said())
        self.assertIn('"stopped"', worker.said())
        self.assertNotIn("active", [found["state"] for found in self.client.get("/api/workers").json])

    def open_for(self, fifo):
        try:
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads
            return None

    def test_a_worker_that_the_server_does_not_know_says_so_and_ends(self):
        with open(self.path("token"), "w") as file:
            file.write("stint_worker_0123456789abcdef_" + 43 * "x")
        worker = self.worker({"x": sh("true")}, "--token-file", self.path("token"))
        self.assertEqual(worker.process.wait(HANG_S), 77)
        self.assertIn("401", worker.said())

    def test_a_worker_of_few_queues_serves_those_alone(self):
        token = self.client.post("/api/tokens", {"kind": "worker", "name": "w", "queues": ["q"]}).json["token"]
        with open(self.path("token"), "w") as file:
            file.write(token)
        self.worker({"x": sh("echo $STINT_QUEUE")}, "--queues", "q=4,r=1", "--token-file", self.path("token"))
        worker = self.worker({"x": sh("echo $STINT_QUEUE")}, "--queues", "q=4,r=1", "--concurrency", "3")
        for number in range(20):
            self.create(id="t-%d" % number, queue="qr"[number % 2])
        for number in range(20):
            self.assertEqual(self.is_in("t-%d" % number, "done")["result"], "qr"[number % 2])
        self.assertEqual(worker.stop(), 0)

    def test_a_worker_waits_for_its_server(self):
        self.server.kill()
        worker = self.worker({"x": sh("echo there")})
        self.until(lambda: "does not answer" in worker.said(), "it waits")
        self.server.start()
        self.client.close()
        self.create(id="t")
        self.assertEqual(self.is_in("t", "done")["result"], "there")

    def test_it_tells_a_service_manager(self):
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(listener.close)
        listener.bind(self.path("notify"))
        listener.settimeout(PATIENCE_S)
        worker = self.worker({"x": sh("true")}, NOTIFY_SOCKET=self.path("notify"), WATCHDOG_USEC="200000")
        heard = set()
        while not {b"READY=1", b"WATCHDOG=1"} <= heard:
            heard.add(listener.recv(100))
        self.assertEqual(worker.stop(), 0)
        while b"STOPPING=1" not in heard:
            heard.add(listener.recv(100))


class Commands(Case):
    def stint(self, *args, cwd=None):
        return subprocess.run([STINT, *args], capture_output=True, text=True, timeout=HANG_S, cwd=cwd or self.folder,
                              env=stintd.environment(STINT_HOME=self.server.home))

    def test_run_follows_the_output_and_ends_with_the_commands_status(self):
        self.worker({"other": sh("true")}, "--shell", "--root", self.folder)
        for script, status, out, err in (("echo hi; pwd", 0, "hi\n" + self.folder + "\n", ""), ("echo no >&2; exit 3", 3, "", "no\n")):
            ran = self.stint("run", "--", "sh", "-c", script)
            self.assertEqual((ran.returncode, ran.stdout), (status, out), ran.stderr)
            self.assertTrue(ran.stderr.startswith(err), ran.stderr)
        self.assertEqual(self.stint("run", "--", "no-such-program").returncode, 127)
        self.assertEqual(self.stint("run", "--timeout", "1s", "--", "sleep", "1000").returncode, 9)
        outside = self.stint("run", "--", "true", cwd="/usr")
        self.assertEqual(outside.returncode, 9)
        self.assertIn("/usr is not among this worker's \"roots\" (%s). " % self.folder, outside.stderr)

    def test_an_argv_is_run_to_the_letter_and_by_no_shell(self):
        self.worker({}, "--shell", "--root", self.folder)
        words = ["printf", "%s|", "a b", "$HOME", "; ls", "*", "--json"]
        self.assertEqual(self.stint("run", "--", *words).stdout, "a b|$HOME|; ls|*|--json|")

    def test_a_word_that_cannot_be_sent_to_the_letter_is_not_sent(self):
        ran = self.stint("run", "--detach", "--", "rm", os.fsdecode(b"caf\xe9"))
        self.assertEqual((ran.returncode, self.client.get("/api/tasks").json), (2, []), ran.stderr)
        self.assertIn("word 2", ran.stderr)

    def test_its_title_is_its_words_whole_or_cut_between_two_letters(self):
        for words in (["echo", "caf\u00e9"], ["echo", "x" * 194 + "\u65e5\u672c"]):
            self.stint("run", "--detach", "--", *words)
        self.assertEqual([task["title"] for task in self.client.get("/api/tasks").json],
                         ["echo caf\u00e9", "echo " + "x" * 194])

    def test_whoever_may_add_and_not_look_is_told_that_it_runs(self):
        token = self.client.post("/api/tokens", {"kind": "producer", "name": "p"}).json["token"]
        ran = self.stint("run", "--token", token, "--", "true")
        self.assertEqual((ran.returncode, len(self.client.get("/api/tasks").json)), (6, 1))
        self.assertIn("t-1 is still queued and goes on without this command", ran.stderr)

    def test_a_question_is_told_to_whoever_follows(self):
        self.worker({}, "--shell", "--root", self.folder)
        process = subprocess.Popen([STINT, "run", "--", "sh", "-c", STINT + " task ask 'go on?' --wait"], cwd=self.folder, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=stintd.environment(STINT_HOME=self.server.home))
        self.assertIn("t-1 asks: go on?", process.stderr.readline())
        self.assertEqual(self.stint("answer", "t-1", "yes").returncode, 0)
        self.assertEqual((process.communicate(timeout=HANG_S)[0], process.returncode), ("yes\n", 0))

    def test_a_server_that_goes_away_is_waited_for(self):
        self.worker({}, "--shell", "--root", self.folder)
        process = subprocess.Popen([STINT, "run", "--", "sh", "-c", "echo begin; while [ ! -e go ]; do sleep 0.1; done; exit 5"],
                                   cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=stintd.environment(STINT_HOME=self.server.home))
        self.assertEqual(process.stdout.readline(), "begin\n")
        self.client.close()
        self.server.kill()
        self.assertIn("trying again", process.stderr.readline())
        self.server.start()
        with open(os.path.join(self.folder, "go"), "w"):
            pass
        process.communicate(timeout=HANG_S)
        self.assertEqual(process.returncode, 5)

    def test_ctrl_c_cancels_it(self):
        self.worker({}, "--shell", "--root", self.folder)
        process = subprocess.Popen([STINT, "run", "--", "sh", "-c", "echo begin; sleep 1000"], cwd=self.folder, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=stintd.environment(STINT_HOME=self.server.home))
        self.assertEqual(process.stdout.readline(), "begin\n")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=HANG_S)
        self.assertEqual((process.returncode, "cancelled" in err), (130, True), err)
        self.assertEqual(self.client.get("/api/tasks").json[-1]["state"], "cancelled")

    def test_a_payload_without_an_argv_is_refused(self):
        self.worker({}, "--shell")
        for number, payload in enumerate((None, {}, {"argv": []}, {"argv": "ls"}, {"argv": [1]}, {"argv": [""]})):
            task = self.create(queue="shell", executor="shell", payload=payload)
            error = self.is_in(task["id"], "failed")["error"]
            self.assertIn("payload.argv", error["message"], number)

    def test_worker_is_reached_through_stint(self):
        process = subprocess.Popen([STINT, "worker", "--home", self.server.home, "--shell", "--name", "through"],
                                   stderr=subprocess.DEVNULL, env=stintd.environment(), start_new_session=True)
        try:
            self.until(lambda: [w for w in self.client.get("/api/workers").json if w["workerId"].startswith("through-")], "registered")
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(HANG_S), 0)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait(HANG_S)


class Configuration(unittest.TestCase):
    def check(self, config, *flags):
        with tempfile.TemporaryDirectory(prefix="stint-worker-") as folder:
            path = os.path.join(folder, "config.json")
            with open(path, "w") as file:
                file.write(config if isinstance(config, str) else json.dumps(config))
            return subprocess.run([WORKER, "--home", folder, "--check-config", *flags], capture_output=True, text=True,
                                  timeout=HANG_S, env=stintd.environment())

    def test_a_good_one_is_told(self):
        ran = self.check({"executors": {"tests": {"kind": "command", "argv": ["make", "test"]}},
                          "queues": {"ci": {"executor": "tests", "weight": 4}}, "roots": ["/srv"], "log": {"level": "warn"}})
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("make test", ran.stdout)
        self.assertIn("ci", ran.stdout)
        ran = self.check({"executors": {"a": {"kind": "pool", "argv": ["node", "worker.js"], "workingDir": "/srv/a", "size": 3}}})
        self.assertEqual((ran.returncode, "node worker.js (3 workers)" in ran.stdout), (0, True), ran)

    def test_who_runs_what_names_nobody_is_told(self):
        one, other = ({"kind": "command", "argv": ["true"]} for _ in range(2))
        for config, said in (({"executors": {"one": one}}, "queue    default          executor one, weight 1\n"),
                             ({"executors": {"one": one, "other": other}}, "queue    default          no executor: tasks must name one, weight 1\n"),
                             ({}, "executor none: a worker does not start without one\n")):
            self.assertIn(said, self.check(config).stdout)

    def test_every_mistake_is_told_with_its_line(self):
        for config, said in (
                ({"executors": {"a": {"kind": "agent", "argv": ["x"]}}}, 'executors.a.adapter is missing, as in {"kind": "agent", "adapter": "claude"}'),
                ({"executors": {"a": {"kind": "magic", "argv": ["x"]}}}, 'executors.a.kind must be "command", "pool" or "agent"; it is "magic"'),
                ({"executors": {"a": {"kind": "pool", "argv": "payload"}}}, "executors.a.argv must be a program"),
                ({"executors": {"a": {"kind": "pool", "argv": ["x"], "size": 0}}}, "executors.a.size must be"),
                ({"executors": {"a": {"kind": "pool", "argv": ["x"], "workingDir": "here"}}}, "absolute"),
                ({"executors": {"a": {"kind": "pool", "argv": ["x"], "silenceMs": 1}}}, "whole number of ms from 1000"),
                ({"executors": {"a": {"kind": "command", "argv": ["x"], "size": 2}}}, "executors.a.size is only for pools"),
                ({"executors": {"a": {"kind": "command"}}}, "needs kind and argv"),
                ({"executors": {"a": {"kind": "command", "argv": "x"}}}, "executors.a.argv"),
                ({"executors": {"a": {"kind": "command", "argv": []}}}, "executors.a.argv"),
                ({"executors": {"a": {"kind": "command", "argv": ["x"], "shell": True}}}, "executors.a.shell is not a known key; known are kind"),
                ({"executors": {"a": sh("x", timeotMs=3)}}, "executors.a.timeotMs is not a known key; did you mean timeoutMs?"),
                ({"executors": {"a": sh("x", limits={"memoryBytes": 3})}}, 'executors.a.limits.memoryBytes is a part of "budget"'),
                ({"executors": {"a": {"kind": "command", "argv": ["x"], "env": {"STINT_URL": "y"}}}}, "STINT_"),
                ({"executors": {"a": {"kind": "command", "argv": ["x"], "timeoutMs": -1}}}, "whole number"),
                ({"executors": {"a": {"kind": "command", "argv": ["x"], "write": ["relative"]}}}, "absolute"),
                ({"executors": {"-a": {"kind": "command", "argv": ["x"]}}}, "letters, digits"),
                ({"executors": {"a": sh("x", isolation="jail")}}, 'must be "process", "sandbox", "container" or "vm"; it is "jail"'),
                ({"executors": {"a": sh("x", isolation="container")}}, "needs rootfs"),
                ({"executors": {"a": sh("x", isolation="container", rootfs="here")}}, "executors.a.rootfs must be an absolute path"),
                ({"executors": {"a": sh("x", isolation="vm", image="/x")}}, "needs kernel"),
                ({"executors": {"a": sh("x", isolation="vm", kernel="/x")}}, "needs image"),
                ({"executors": {"a": sh("x", network="yes")}}, "executors.a.network must be true, false or a list of hosts"),
                ({"executors": {"a": sh("x", runtime="./crun")}}, "executors.a.runtime must be"),
                ({"executors": {"a": sh("x", runtime="docker")}}, 'not docker: use the runtime that docker uses'),
                ({"executors": {"a": sh("x", isolation="container", rootfs="/x", worktree=True)}}, "a work tree is part of a repository"),
                ({"executors": {"a": {"kind": "pool", "argv": ["x"], "isolation": "vm", "kernel": "/x", "image": "/y"}}},
                 "a pool cannot be behind"),
                ({"executors": []}, "executors must be"),
                ({"queues": {"q": {"executor": "nobody"}}}, "no executor of that name"),
                ({"roots": "x"}, "roots must be"),
                ({"landlock": "never"}, "landlock must be"),
                ({"lisen": 1}, "lisen"),
                ("{", "")):
            with self.subTest(config=config):
                ran = self.check(config)
                self.assertEqual(ran.returncode, 78, ran.stdout)
                self.assertIn(said, ran.stderr)
                self.assertRegex(ran.stderr, r"config\.json:\d+:\d+: ")

    def test_others_may_not_write_it(self):
        with tempfile.TemporaryDirectory(prefix="stint-worker-") as folder:
            path = os.path.join(folder, "config.json")
            with open(path, "w") as file:
                json.dump({"executors": {"a": {"kind": "command", "argv": ["true"]}}}, file)
            os.chmod(path, 0o666)
            ran = subprocess.run([WORKER, "--home", folder, "--check-config"], capture_output=True, text=True, timeout=HANG_S,
                                 env=stintd.environment())
            self.assertEqual(ran.returncode, 78)

    def test_flags_that_are_wrong(self):
        for flags in (["--concurrency", "0"], ["--nonsense", "1"], ["extra"], ["--slot", "a b"], ["--queues", "a=0"], ["--slot"]):
            ran = self.check({"executors": {"a": {"kind": "command", "argv": ["true"]}}}, *flags)
            self.assertEqual(ran.returncode, 2, flags)
            self.assertRegex(ran.stderr, r"^stint-worker: ")

    def test_a_word_that_is_no_command_is_named_with_those_there_are(self):
        for program, words, said in (
                (WORKER, ["runn"], '"runn" is not a known command; did you mean run? Known are run, run-once, sweep-prs, worktrees, agent and enroll'),
                (WORKER, ["--shell", "run-once"], '"run-once" goes before the flags'),
                (WORKER, ["run", "--queus", "a"], "did you mean --queues?"),
                (WORKER, ["run-once", "--agent", "a"], "did you mean --agent-id? stint-worker run-once --help"),
                (WORKER, ["worktrees", "--agent-id", "a"], "--agent-id is not a known flag"),
                (WORKER, ["--name", "a", "--name", "b"], "--name is given twice"),
                (WORKER, ["--name", "--shell"], "--name needs a value"),
                (os.environ["STINTD"], ["run"], 'stintd takes only flags, and "run" is not one'),
                (os.environ["STINTD"], ["--hme=/x"], "--hme is not a known flag; did you mean --home?"),
                (os.environ["STINTD"], ["--home"], "--home needs a value")):
            ran = subprocess.run([program, *words], capture_output=True, text=True, timeout=HANG_S, env=stintd.environment())
            self.assertEqual((ran.returncode, ran.stdout), (2, ""), words)
            self.assertIn(said, ran.stderr)
            self.assertEqual(ran.stderr.count("\n"), 1)

    def test_where_nobody_has_worked_there_are_no_work_trees(self):
        with tempfile.TemporaryDirectory() as folder:
            home = os.path.join(folder, "none")
            for flags, said in (([], "no work trees\n"), (["--json"], '{"schema":1,"ok":true,"worktrees":[]}\n')):
                ran = subprocess.run([WORKER, "worktrees", "--home", home, *flags], capture_output=True, text=True, timeout=HANG_S,
                                     env=stintd.environment())
                self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, said, ""))
            self.assertFalse(os.path.exists(home))

    def test_run_is_what_it_does_without_a_word(self):
        for words in (["run", "--help"], ["--help"], ["-h"]):
            ran = subprocess.run([WORKER, *words], capture_output=True, text=True, timeout=HANG_S, env=stintd.environment())
            self.assertEqual((ran.returncode, ran.stderr), (0, ""))
            self.assertIn("usage: stint-worker [run]", ran.stdout)


class Stranded(Case):
    flags = (*Case.flags, "--set", "executor.missingAfterMs=100")

    def test_a_task_that_nobody_can_run_says_so(self):
        self.create(id="t", executor="nobody-has-this")
        error = self.is_in("t", "blocked")["error"]
        self.assertEqual((error["code"], error["message"]),
                         ("EXECUTOR_NOT_FOUND", "no active worker of queue q has executor nobody-has-this; start one that has it, or give "
                          "the task another one, then retry it"))
        ran = subprocess.run([os.environ["STINT"], "why", "t"], capture_output=True, text=True, timeout=HANG_S,
                             env=stintd.environment(STINT_HOME=self.server.home))
        self.assertEqual(ran.stdout, "t is blocked. No worker of queue q runs nobody-has-this\n  try  stint retry t\n")


if __name__ == "__main__":
    proof.main()
