"""stint worker run-once: one pass, its configuration object, its result object, and what it takes up again."""
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import unittest

from hang import HANG_S
import stintd

STINT = os.path.abspath(os.environ.get("STINT", "build/stint"))
PATIENCE_S = HANG_S


def sh(script, **more):
    return {"kind": "command", "argv": ["sh", "-c", script.replace("stint task", STINT + " task")], "graceMs": 200, **more}


class Case(stintd.Case):
    executors = {"good": sh("echo '{\"summary\":\"made it\",\"links\":[\"https://x.test/pull/1\"]}'")}
    flags = ("--set", "retry.baseMs=10", "--set", "retry.maxMs=50", "--set", "sweep.intervalMs=50")

    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="stint-once-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.config = self.write("config.json", {"executors": self.executors, "queues": {"q": {"executor": "good"}}})

    def write(self, name, value):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(value if isinstance(value, str) else json.dumps(value))
        return path

    def words(self, *flags):
        return [STINT, "worker", "run-once", "--home", self.server.home, "--config", self.config, *flags]

    def once(self, *flags, agent="dev-3", **variables):
        """The status, the results, and what it complained about."""
        agent = ("--agent-id", agent) if agent else ()
        ran = subprocess.run(self.words(*agent, *flags), capture_output=True, text=True, timeout=PATIENCE_S,
                             stdin=subprocess.DEVNULL, env=stintd.environment(**variables))
        return ran.returncode, [json.loads(line) for line in ran.stdout.splitlines()], ran.stderr

    def start(self, *flags):
        process = subprocess.Popen(self.words("--agent-id", "dev-3", *flags), stdout=subprocess.PIPE, text=True,
                                   stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=stintd.environment(),
                                   start_new_session=True)

        def end():
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=HANG_S)

        self.addCleanup(end)
        return process

    def task(self, task):
        return self.client.get("/api/tasks/" + task).json

    def result(self, *flags, **more):
        status, (result,), said = self.once(*flags, **more)
        self.assertIsInstance(result.pop("elapsedMs"), int)
        return status, result


class Results(Case):
    def test_a_result_that_cannot_be_written_is_no_success(self):
        self.create(id="t")
        with open("/dev/full", "w") as full:
            ran = subprocess.run(self.words("--agent-id", "dev-3"), stdout=full, stderr=subprocess.PIPE, text=True,
                                 timeout=PATIENCE_S, stdin=subprocess.DEVNULL, env=stintd.environment())
        self.assertEqual(self.task("t")["state"], "done")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("the result cannot be written", ran.stderr)
        self.assertIn("No space left on device", ran.stderr)

    executors = {
        **Case.executors,
        "text": sh("echo one; echo two"),
        "bad": sh("echo no disk >&2; exit 3"),
        "slow": sh("sleep 1000"),
        "ask": sh("stint task ask 'which one?'"),
        "block": sh("stint task block 'no key'"),
        "word": sh("stint task done 'my own word'; exit 3"),
        "later": sh("exit 75"),
        "brief": sh("while " + STINT + " show $STINT_TASK_ID >/dev/null 2>&1; do sleep 0.1; done; echo brief"),
        "says": sh("echo $STINT_MODEL $STINT_THINKING $STINT_EXECUTION_MODE $STINT_WORKER_ID"),
    }

    def test_nothing_to_do_is_well(self):
        self.assertEqual(self.result(), (0, {"ok": True, "action": "noop_empty"}))
        self.assertEqual(self.result("--empty-exit", "5"), (5, {"ok": True, "action": "noop_empty"}))

    def test_a_task_is_done_and_its_summary_and_links_are_told(self):
        self.create(id="t", title="Do it")
        self.assertEqual(self.result("--empty-exit", "5"), (0, {
            "ok": True, "action": "completed", "itemId": "t", "title": "Do it", "summary": "made it",
            "links": ["https://x.test/pull/1"]}))
        self.assertEqual(self.task("t")["state"], "done")

    def test_text_is_a_summary_in_one_line(self):
        self.create(id="t", executor="text")
        self.assertEqual(self.result()[1]["summary"], "one two")

    def test_a_failure_is_told_in_one_line(self):
        self.create(id="t", title="Do it", executor="bad", maxAttempts=1)
        status, result = self.result()
        self.assertEqual((status, result["ok"], result["action"], result["error"]), (1, False, "failed", "exit status 3: no disk"))
        self.assertIn("stint retry t", result["nextSteps"])

    def test_a_failure_that_is_tried_again_says_so(self):
        self.create(id="t", executor="bad")
        status, result = self.result()
        self.assertEqual((status, result["action"]), (1, "failed"))
        self.assertIn("tried again", result["nextSteps"])

    def test_a_question_blocks_it_and_is_told(self):
        self.create(id="t", title="t", executor="ask")
        self.assertEqual(self.result(), (1, {"ok": False, "action": "blocked", "itemId": "t", "title": "t",
                                             "error": "it asks: which one?", "nextSteps": "stint answer t ANSWER"}))

    def test_its_own_word_counts(self):
        self.create(id="t", executor="block")
        status, result = self.result()
        self.assertEqual((status, result["action"], result["error"]), (1, "blocked", "no key"))
        self.create(id="u", executor="word")
        status, result = self.result()
        self.assertEqual((status, result["action"], result["summary"]), (0, "completed", "my own word"))

    def test_what_is_given_back_is_blocked_for_now(self):
        self.create(id="t", executor="later")
        self.assertEqual(self.result()[1]["action"], "blocked")
        self.assertEqual(self.task("t")["spent"], 0)

    def test_the_total_clock_ends_it(self):
        self.create(id="t", executor="slow", maxAttempts=1)
        status, result = self.result("--max-run-seconds", "1")
        self.assertEqual((status, result["action"], result["error"]), (1, "failed", "ran longer than 1000 ms"))
        self.assertEqual(self.task("t")["error"]["code"], "TASK_TIMEOUT")

    def test_a_cancel_reaches_it(self):
        self.create(id="t", executor="slow")
        process = self.start()
        self.until(lambda: self.task("t")["workerId"] == "dev-3", "claimed")
        self.client.post("/api/tasks/t/cancel", {})
        out, _ = process.communicate(timeout=PATIENCE_S)
        self.assertEqual((process.returncode, json.loads(out)["error"]), (1, "it was cancelled"))

    def test_a_signal_gives_it_back(self):
        self.create(id="t", executor="slow")
        process = self.start("--drain-ms", "0")
        self.until(lambda: self.task("t")["workerId"] == "dev-3", "claimed")
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=PATIENCE_S)
        self.assertEqual((process.returncode, json.loads(out)["action"]), (1, "blocked"))
        self.assertEqual((self.task("t")["state"], self.task("t")["spent"]), ("ready", 0))

    def test_a_pass_that_cannot_report_says_so_and_the_next_one_reports(self):
        self.create(id="t", executor="brief")
        process = self.start("--drain-ms", "100")
        runs = os.path.join(self.server.home, "workers", "agent-dev-3", "runs")
        self.until(lambda: self.task("t")["workerId"] == "dev-3" and os.listdir(runs), "it runs")
        self.client.close()
        self.server.kill()
        outbox = os.path.join(self.server.home, "workers", "agent-dev-3", "outbox")
        self.until(lambda: os.listdir(outbox), "it has ended, and its report is on disk")
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=PATIENCE_S)
        self.assertEqual((process.returncode, json.loads(out)["action"]), (1, "failed"), out)
        self.assertIn("the next pass sends it", json.loads(out)["error"])
        self.server.start()
        self.assertEqual(self.result()[1]["action"], "noop_empty")
        self.assertEqual((self.task("t")["state"], self.task("t")["result"], self.task("t")["attempt"]), ("done", "brief", 1))

    def test_the_lease_is_renewed_with_a_note(self):
        self.create(id="t", executor="slow")
        self.start("--lease-ms", "60000", "--progress-every-ms", "100")
        self.until(lambda: "task.progressed" in [
            event["type"] for event in self.client.get("/api/tasks/t/events").json["events"]], "a note")

    def test_several_passes_have_a_line_each(self):
        self.create(id="t")
        self.create(id="u", executor="bad", maxAttempts=1)
        status, results, _ = self.once("--max-iterations", "3", "--poll-interval-ms", "1")
        self.assertEqual((status, [result["action"] for result in results]), (1, ["completed", "failed", "noop_empty"]))

    def test_a_server_that_is_away_is_a_failure(self):
        url = "unix:" + os.path.join(self.folder, "nothing.sock")
        status, (result,), _ = self.once("--url", url)
        self.assertEqual((status, result["action"]), (1, "failed"))
        self.assertEqual(result["error"], "the server at %s does not answer: No such file or directory; start it (stint up), "
                                          "or name another with --url" % url)

    def test_what_is_for_agents_is_handed_on(self):
        self.create(id="t", executor="says")
        status, result = self.result("--model", "m-1", "--thinking", "high", "--execution-mode", "isolated")
        self.assertEqual(result["summary"], "m-1 high isolated dev-3")


class Resuming(Case):
    executors = {**Case.executors, "twice": sh("[ $STINT_ATTEMPT -gt 1 ] || exec sleep 1000; echo second")}

    def test_json_is_what_it_prints_anyway(self):
        self.create(id="t")
        self.assertEqual(self.result("--json")[1]["action"], "completed")
        self.assertEqual(self.result("-o", "json")[1]["action"], "noop_empty")

    def test_a_claim_of_its_own_comes_first(self):
        self.create(id="urgent", priority=9)
        self.create(id="own")
        token = self.client.post("/api/tokens", {"kind": "worker", "name": "dev"}).json["token"]
        self.assertEqual(self.server.client(token=token).post("/api/tasks/own/claim", {"workerId": "dev-3"}).status, 200)
        self.assertEqual(self.result(STINT_TOKEN=token)[1]["itemId"], "own")
        self.assertEqual(self.task("own")["attempt"], 2)
        self.assertEqual(self.task("urgent")["state"], "ready")

    def test_what_others_hold_is_theirs(self):
        self.create(id="t")
        self.client.post("/api/tasks/t/claim", {"workerId": "dev-4"})
        self.assertEqual(self.result()[1]["action"], "noop_empty")

    def test_after_a_kill_the_next_pass_takes_it_up_again_alone(self):
        self.create(id="t", executor="twice")
        process = self.start()
        self.until(lambda: self.task("t")["workerId"] == "dev-3" and os.listdir(
            os.path.join(self.server.home, "workers", "agent-dev-3", "runs")), "it runs")
        process.kill()
        process.wait(HANG_S)
        status, result = self.result()
        self.assertEqual((status, result["action"], result.get("summary")), (0, "completed", "second"), (result, self.task("t")))
        self.assertEqual((self.task("t")["attempt"], self.task("t")["spent"], self.task("t")["crashes"]), (2, 0, 0))

    def test_two_passes_of_one_agent_are_not_made_at_once(self):
        self.create(id="t", executor="twice")
        self.create(id="u")
        self.start()
        self.until(lambda: self.task("t")["workerId"] == "dev-3", "claimed")
        status, result = self.result()
        self.assertEqual((status, result), (1, {"ok": False, "action": "blocked",
                                                "error": "dev-3 is at work already on this machine"}))
        self.assertEqual(self.result(agent="dev-4")[1]["itemId"], "u")


class Main(Case):
    """executionMode main: one session for all tasks of an agent's name."""
    FAKE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../agents/fake_agent.py")
    executors = {"x": {"kind": "agent", "adapter": "claude", "argv": ["/usr/bin/python3", os.path.abspath(FAKE)], "graceMs": 500}}

    def setUp(self):
        super().setUp()
        self.config = self.write("config.json", {"executors": self.executors, "queues": {"q": {"executor": "x"}}})

    def add(self, task, said, **more):
        turns = [[{"tool": "Bash", "input": {"command": "echo 1 > " + task}}, {"say": said}]]
        self.create(id=task, instructions="Do as the script says.\nscript " + json.dumps(turns), **more)

    def session(self, task):
        session = self.task(task)["sessionId"]
        return self.client.get("/api/sessions/" + session).json["agentSessionId"], self.client.get("/api/sessions/%s/prompt" % session).json["prompt"]

    def test_the_next_task_goes_on_in_the_session_of_the_one_before_and_is_told_whole(self):
        turns = [[{"tool": "Bash", "input": {"command": "echo 1 > " + task}}, {"say": task + " is there"}] for task in ("one", "two")]
        self.create(id="one", instructions="Do as the script says.\nscript " + json.dumps(turns))
        self.create(id="two")
        self.add("alone", "alone is there")
        for task in ("one", "two"):
            status, result = self.result("--execution-mode", "main")
            self.assertEqual((status, result["itemId"], result.get("summary")), (0, task, task + " is there"), (result, self.task(task)))
        (first, _), (second, prompt) = self.session("one"), self.session("two")
        self.assertEqual(first, second)
        self.assertIn("Task id: two", prompt)
        self.assertIn("Report progress at least every 10 minutes, in one line.", prompt)
        self.assertEqual(self.result("--execution-mode", "isolated")[1]["itemId"], "alone")
        self.assertNotEqual(self.session("alone")[0], first)

    def test_one_that_is_gone_begins_anew_and_an_event_says_so(self):
        self.add("one", "one is there")
        self.result("--execution-mode", "main")
        homes = [os.path.join(top, name) for top, names, _ in os.walk(self.server.home) for name in names if name == "projects"]
        self.assertEqual(len(homes), 1)
        shutil.rmtree(homes[0])
        self.add("two", "two is there")
        self.assertEqual(self.result("--execution-mode", "main")[0], 0)
        self.assertNotEqual(self.session("one")[0], self.session("two")[0])
        notes = [event["data"].get("note") for event in self.client.get("/api/tasks/two/events").json["events"]]
        self.assertIn("the main session cannot be continued: a new one begins", notes)


class Objects(Case):
    WHOLE = {"agentId": "dev-3", "queues": ["q", "r"], "leaseMs": 60000, "progressEveryMs": 30000, "maxIterations": 2,
             "pollIntervalMs": 1, "enablePrSweep": False, "allowStatuses": ["ready", "pending"], "executionMode": "isolated",
             "model": "m", "thinking": "low", "maxRunSeconds": 30}

    def run_object(self, value, *flags):
        return self.once("--config-object", self.write("object.json", value), *flags, agent=None)

    def test_every_field_is_taken(self):
        self.create(id="t", queue="r", executor="good", state="pending")
        status, results, said = self.run_object(self.WHOLE)
        self.assertEqual((status, [result["action"] for result in results]), (0, ["completed", "noop_empty"]), said)

    def test_flags_count_more(self):
        status, results, said = self.run_object(self.WHOLE, "--max-iterations", "1", "--empty-exit", "5")
        self.assertEqual((status, len(results)), (5, 1), said)

    def test_parked_tasks_are_left_alone_unless_allowed(self):
        self.create(id="t", state="pending")
        self.assertEqual(self.result()[1]["action"], "noop_empty")
        self.assertEqual(self.result("--allow-statuses", "ready,pending")[1]["itemId"], "t")

    def test_a_wrong_field_is_named_and_nothing_is_claimed(self):
        self.create(id="t")
        wrong = {"agentId": 7, "queues": "q", "leaseMs": 1, "progressEveryMs": "1", "maxIterations": 0, "pollIntervalMs": -1,
                 "enablePrSweep": "yes", "allowStatuses": ["done"], "executionMode": "fast", "model": "", "thinking": "deep",
                 "maxToolCalls": 0, "maxRunSeconds": 1.5, "leasems": 1}
        for name, value in wrong.items():
            with self.subTest(field=name):
                status, results, said = self.run_object({"agentId": "dev-3", "queues": ["q"], name: value})
                self.assertEqual((status, results), (78, []))
                self.assertRegex(said, r"object\.json:1: .*%s" % name)
        self.assertEqual(self.task("t")["attempt"], 0)

    def test_what_no_object_is_is_told(self):
        for text in ("[]", "{", "7"):
            self.assertEqual(self.run_object(text)[0], 78)
        self.assertEqual(self.once("--config-object", "/nonexistent/object.json", agent=None)[0], 78)

    def test_an_agent_must_be_named(self):
        status, results, said = self.run_object({"queues": ["q"]})
        self.assertEqual((status, results), (78, []))
        self.assertIn("agentId is missing", said)

    def test_a_budget_that_cannot_be_enforced_is_refused(self):
        for field, value in (("maxToolCalls", 3), ("executionMode", "main")):
            status, results, said = self.run_object({"agentId": "dev-3", field: value})
            self.assertEqual((status, results), (78, []))
            self.assertIn(field, said)

    def test_a_lease_that_ends_before_its_renewal_is_refused(self):
        status, _, said = self.run_object({"agentId": "dev-3", "leaseMs": 5000})
        self.assertEqual(status, 78)
        self.assertIn("progressEveryMs", said)


class Sweep(Case):
    """With a gh of our own in the PATH."""
    PRS = [
        {"number": 7, "title": "Fix it", "url": "https://github.com/own/repo/pull/7", "isDraft": False, "reviewDecision": "",
         "headRefOid": "a" * 40},
        {"number": 8, "title": "Later", "url": "https://github.com/own/repo/pull/8", "isDraft": True, "reviewDecision": "",
         "headRefOid": "b" * 40},
        {"number": 9, "title": "Fine", "url": "https://github.com/own/repo/pull/9", "isDraft": False,
         "reviewDecision": "APPROVED", "headRefOid": "c" * 40},
        {"number": 10, "title": "\"Quoted\" é", "url": "https://github.com/own/repo/pull/10", "isDraft": False,
         "reviewDecision": "REVIEW_REQUIRED", "headRefOid": "d" * 40},
    ]

    def gh(self, prs=None, script=None):
        self.bin = os.path.join(self.folder, "bin")
        os.makedirs(self.bin, exist_ok=True)
        self.write("bin/prs.json", self.PRS if prs is None else prs)
        path = self.write("bin/gh", "#!/bin/sh\necho \"$@\" >&2\n" + (script or "cat %s/prs.json\n" % self.bin))
        os.chmod(path, 0o755)

    def path(self):
        return self.bin + ":/usr/bin:/bin"

    def sweep(self, *flags, path=None):
        ran = subprocess.run([STINT, "worker", "sweep-prs", "--home", self.server.home, "--config", self.config,
                              "--repository", "own/repo", "--queue", "q", *flags], capture_output=True, text=True,
                             timeout=PATIENCE_S, env=stintd.environment(PATH=path or self.path()))
        return ran.returncode, json.loads(ran.stdout) if ran.stdout else None, ran.stderr

    def tasks(self):
        return sorted(task["title"] for task in self.client.get("/api/tasks?limit=100").json)

    def test_one_task_for_each_that_needs_attention(self):
        self.gh()
        self.assertEqual(self.sweep("--executor", "good")[:2],
                         (0, {"ok": True, "action": "swept", "queue": "q", "found": 2, "added": 2}))
        self.assertEqual(self.tasks(), ['Review #10: "Quoted" é', "Review #7: Fix it"])
        task = self.task("pr-own.repo-7-aaaaaaaaaaaa")
        self.assertEqual((task["payload"]["url"], task["uniqueKey"], task["executor"], task["labels"]),
                         ("https://github.com/own/repo/pull/7", "pr:own/repo#7", "good", ["pr-review"]))

    def test_a_second_sweep_adds_nothing(self):
        self.gh()
        self.sweep()
        self.assertEqual(self.sweep()[1]["added"], 0)
        self.gh([{**self.PRS[0], "headRefOid": "e" * 40}])
        self.assertEqual(self.sweep()[1]["added"], 0, "it is still to be looked at")

    def test_what_was_looked_at_comes_again_with_a_new_commit(self):
        self.gh([self.PRS[0]])
        self.sweep()
        self.assertEqual(self.result()[1]["action"], "completed")
        self.assertEqual(self.sweep()[1]["added"], 0)
        self.gh([{**self.PRS[0], "headRefOid": "e" * 40}])
        self.assertEqual(self.sweep()[1]["added"], 1)

    def test_without_gh_it_says_so_and_changes_nothing(self):
        empty = os.path.join(self.folder, "empty")
        os.mkdir(empty)
        status, printed, said = self.sweep(path=empty)
        self.assertEqual((status, printed), (69, None))
        self.assertIn("gh is not in the PATH", said)
        self.assertEqual(self.tasks(), [])

    def test_a_gh_that_fails_is_told_in_its_own_words(self):
        self.gh(script="echo not logged in >&2; exit 4\n")
        status, printed, said = self.sweep()
        self.assertEqual((status, printed), (1, None))
        self.assertIn("not logged in", said)
        for script in ("echo '{}'\n", "echo nonsense\n", "true\n"):
            self.gh(script=script)
            self.assertEqual(self.sweep()[0], 1)
        self.assertEqual(self.tasks(), [])

    def test_a_repository_has_an_owner_and_a_name(self):
        self.gh()
        for name in ("own", "own/", "/repo", "a/b/c", "--web/x", "a/b c"):
            self.assertEqual(self.sweep("--repository=" + name)[0], 2, name)

    def test_a_pass_sweeps_first_if_that_is_configured(self):
        self.gh([self.PRS[0]])
        with open(self.config) as file:
            config = json.load(file)
        self.config = self.write("config.json", {**config, "prSweep": {"kind": "github", "repository": "own/repo", "queue": "q"}})
        self.assertEqual(self.result("--enable-pr-sweep", "false", PATH=self.path())[1]["action"], "noop_empty")
        self.assertEqual(self.result(PATH=self.path())[1]["title"], "Review #7: Fix it")

    def test_a_sweep_that_cannot_be_made_keeps_nobody_from_working(self):
        self.gh(script="exit 1\n")
        with open(self.config) as file:
            config = json.load(file)
        self.config = self.write("config.json", {**config, "prSweep": {"kind": "github", "repository": "own/repo"}})
        self.create(id="t")
        status, (result,), said = self.once(PATH=self.path())
        self.assertEqual((status, result["action"]), (0, "completed"))
        self.assertIn("the sweep was left out", said)

    def lines(self, *lines, **sweep):
        path = self.write("list-work", "#!/bin/sh\ncat <<'EOF'\n%s\nEOF\n" % "\n".join(lines))
        os.chmod(path, 0o755)
        with open(self.config) as file:
            config = json.load(file)
        self.config = self.write("config.json", {**config, "prSweep": {"kind": "command", "argv": [path], "queue": "q", **sweep}})

    def run_sweep(self):
        ran = subprocess.run([STINT, "worker", "sweep-prs", "--home", self.server.home, "--config", self.config],
                             capture_output=True, text=True, timeout=PATIENCE_S, env=stintd.environment(PATH="/usr/bin:/bin"))
        return ran.returncode, json.loads(ran.stdout) if ran.stdout else None, ran.stderr

    def test_a_program_may_list_the_work(self):
        self.lines('{"id": "a", "title": "A", "executor": "good"}', "", '{"uniqueKey": "b", "title": "B é", "queue": "other"}')
        for added in (2, 0):
            self.assertEqual(self.run_sweep()[:2], (0, {"ok": True, "action": "swept", "queue": "q", "found": 2, "added": added}))
        self.assertEqual((self.task("a")["queue"], self.task("a")["executor"]), ("q", "good"))
        self.assertEqual([task["title"] for task in self.client.get("/api/tasks?queue=other").json], ["B é"])

    def test_a_line_that_is_no_task_is_named(self):
        for line, words in (("not json", "line 2 of what "), ('["a"]', "must be one JSON object"),
                            ('{"title": "C"}', "neither id nor uniqueKey")):
            self.lines('{"id": "a", "title": "A"}', line)
            status, printed, said = self.run_sweep()
            self.assertEqual((status, printed), (1, None))
            self.assertIn(words, said)

    def test_a_program_that_is_not_there_is_named(self):
        self.lines(argv=["/nowhere/list-work"])
        status, printed, said = self.run_sweep()
        self.assertEqual((status, printed), (69, None))
        self.assertIn("/nowhere/list-work, is not there", said)

    def test_a_gh_where_tasks_may_write_is_not_run_and_that_is_said(self):
        self.gh()
        with open(self.config) as file:
            config = json.load(file)
        self.config = self.write("config.json", {**config, "roots": [self.folder]})
        status, printed, said = self.sweep()
        self.assertEqual((status, printed), (69, None))
        self.assertIn("where tasks may write", said)

    def test_a_wrong_sweep_is_a_wrong_configuration(self):
        for wrong in ({"kind": "command"}, {"kind": "command", "argv": []}, {"argv": ["x"]},
                      {"kind": "command", "argv": ["x"], "repository": "o/n"},
                      {"kind": "gitlab"}, {"repository": "x"}, {"queue": "a b"}, {"executor": 7}, {"what": 1}, 7):
            self.config = self.write("config.json", {"executors": self.executors, "prSweep": wrong})
            status, results, said = self.once()
            self.assertEqual((status, results), (78, []))
            self.assertIn("prSweep", said)


class Skill(unittest.TestCase):
    """skills/workqueue-worker/SKILL.md, as OpenClaw reads it."""

    def setUp(self):
        top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        self.folder = os.path.join(top, "skills", "workqueue-worker")
        with open(os.path.join(self.folder, "SKILL.md")) as file:
            _, head, self.text = file.read().split("---\n", 2)
        self.head, _, metadata = head.partition("metadata:\n")
        self.metadata = json.loads(metadata)["openclaw"]  # JSON is YAML

    def test_its_head_is_what_openclaw_wants(self):
        head = dict(line.split(": ", 1) for line in self.head.splitlines())
        self.assertEqual(head["name"], os.path.basename(self.folder))
        self.assertRegex(head["name"], r"^[a-z0-9-]{1,64}$")
        self.assertTrue(0 < len(head["description"]) < 160)
        self.assertLessEqual(set(head), {"name", "description", "version", "homepage", "license", "compatibility",
                                         "allowed-tools", "user-invocable"})
        self.assertEqual(self.metadata["requires"], {"bins": ["stint"]})
        self.assertLessEqual(set(self.metadata), {"emoji", "os", "always", "primaryEnv", "skillKey", "requires", "envVars", "install"})
        for variable in self.metadata["envVars"]:
            self.assertEqual(set(variable), {"name", "required", "description"})

    def test_its_commands_are_commands(self):
        commands = re.findall(r"stint [a-z-]+(?: [a-z-]+)*(?: --?[a-z-]+| \S+)*", "\n".join(
            re.findall(r"^```sh\n(.*?)^```", self.text, re.S | re.M)))
        commands += re.findall(r"`(stint [^`]+)`", self.text)
        self.assertGreater(len(commands), 8)
        for command in commands:
            with self.subTest(command=command):
                words = shlex.split(command.split(")")[0].split("#")[0].replace("$", ""), posix=True)
                ran = subprocess.run([STINT, *words[1:], "--help"], capture_output=True, text=True, timeout=HANG_S)
                self.assertEqual((ran.returncode, ran.stdout[:6]), (0, "usage:"), ran.stderr)

    def test_its_cron_job_is_one_and_calls_what_is_there(self):
        job, = [job for text in re.findall(r"^```json\n(.*?)^```", self.text, re.S | re.M) if "schedule" in (job := json.loads(text))]
        self.assertEqual((job["schedule"]["kind"], job["payload"]["kind"], job["sessionTarget"]), ("every", "agentTurn", "isolated"))
        command = job["payload"]["message"].partition(": ")[2].split()
        ran = subprocess.run([STINT, *command[1:], "--help"], capture_output=True, text=True, timeout=HANG_S)
        self.assertEqual((command[0], ran.returncode), ("stint", 0), ran.stderr)


if __name__ == "__main__":
    unittest.main()
