"""A person's word, with real processes: who waits for it, for how long, and who goes on with it."""
import concurrent.futures
import json
import signal
import subprocess
import time
import unittest

from hang import HANG_S
import stintd
import test_worker
from test_worker import STINT


def sh(script, **more):
    return test_worker.sh(script.replace("stint task", STINT + " task"), graceMs=200, **more)


def stint(server, *words, **variables):
    return subprocess.run([STINT, *words, "--home", server.home], capture_output=True, text=True, timeout=HANG_S,
                          stdin=subprocess.DEVNULL, env=stintd.environment(**variables))


class Case(test_worker.Case):
    def answer(self, task, **words):
        reply = self.client.post("/api/tasks/%s/answer" % task, words)
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json

    def asks(self, task):
        return self.is_in(task, "asking")

    def is_parked(self, task):
        """It asks, and nobody holds it."""
        return self.until(lambda: (found := self.task(task))["state"] == "asking" and found["workerId"] is None and found,
                          "parked")


class Waiting(Case):
    """The process lives while it waits."""
    flags = test_worker.Case.flags + ("--set", "ask.parkMs=0")

    def test_a_live_process_gets_its_answer_on_standard_output(self):
        self.worker({"x": sh("a=$(stint task ask 'which branch?' --option main --option next --wait) && echo \"<$a>\"")})
        self.create(id="t")
        self.assertEqual(self.asks("t")["question"], {"id": "q-1", "text": "which branch?", "options": ["main", "next"]})
        self.assertEqual(self.answer("t", text="next")["state"], "running")
        task = self.is_in("t", "done")
        self.assertEqual((task["result"], task["attempt"], task["spent"]), ("<next>", 1, 0))

    def test_a_denial_is_told_by_its_status(self):
        self.worker({"x": sh("stint task ask 'may I?' --wait; echo \"status $?\"")})
        self.create(id="t")
        self.asks("t")
        self.answer("t", deny=True, text="not on a Friday")
        self.assertEqual(self.is_in("t", "done")["result"], "not on a Friday\nstatus 9")

    def test_whoever_gives_up_waiting_leaves_its_question_open_whatever_it_says_then(self):
        self.worker({"x": sh("stint task ask 'may I?' --wait --timeout 100ms; echo status $?; stint task done")})
        self.create(id="t")
        self.assertEqual(self.is_parked("t")["question"]["text"], "may I?")
        self.assertIn("status 8", self.client.get("/api/tasks/t/log").json["data"])

    def test_two_questions_of_one_attempt_are_two_questions(self):
        self.worker({"x": sh("for i in 1 2; do stint task ask 'again?' --wait; done")})
        self.create(id="t")
        self.asks("t")
        self.answer("t", text="one")
        self.until(lambda: self.events("t").count("task.asked") == 2, "asked again")
        self.assertNotIn("answer", self.task("t"))
        self.answer("t", text="two", question="q-2")
        self.assertEqual(self.is_in("t", "done")["result"], "one\ntwo")

    def test_it_waits_through_a_restart_of_the_server(self):
        self.worker({"x": sh("stint task ask 'still there?' --wait")})
        self.create(id="t")
        self.asks("t")
        self.server.kill()
        self.server.start()
        self.client.close()
        self.answer("t", text="yes")
        task = self.is_in("t", "done")
        self.assertEqual((task["result"], task["attempt"]), ("yes", 1))

    def test_its_clocks_stand_still_while_it_waits_and_go_on_after(self):
        limits = {"stallMs": 4000}
        self.worker({"asks": sh("stint task ask 'well?' --wait", **limits),
                     "silent": sh("sleep 1000", **limits),
                     "busy": sh("while :; do echo .; sleep 0.1; done", **limits),
                     "asks-busy": sh("stint task ask 'well?' --wait; while :; do echo .; sleep 0.1; done", **limits)},
                    "--concurrency", "4")
        self.create(id="asks", executor="asks", timeoutMs=6000, maxAttempts=1)
        self.create(id="asks-busy", executor="asks-busy", timeoutMs=6000, maxAttempts=1)
        self.asks("asks")
        self.asks("asks-busy")
        # these begin later and ask nobody: when both clocks have struck for them they would have for the others, too
        self.create(id="silent", executor="silent", timeoutMs=6000, maxAttempts=1)
        self.create(id="busy", executor="busy", timeoutMs=6000, maxAttempts=1)
        self.assertEqual(self.is_in("silent", "failed")["error"]["code"], "STALLED")
        self.assertEqual(self.is_in("busy", "failed")["error"]["code"], "TASK_TIMEOUT")
        for task in ("asks", "asks-busy"):
            found = self.task(task)
            self.assertEqual((found["state"], found["attempt"]), ("asking", 1))
            self.assertGreater(found["runMs"], 0)
            self.answer(task, text="go on")
        self.assertEqual(self.is_in("asks", "done", "failed")["result"], "go on")
        self.assertEqual(self.is_in("asks-busy", "failed")["error"]["code"], "TASK_TIMEOUT")

    def test_cancel_reaches_who_waits(self):
        self.worker({"x": sh("stint task ask 'well?' --wait")})
        self.create(id="t")
        self.asks("t")
        self.client.post("/api/tasks/t/cancel", {})
        self.assertEqual(self.is_in("t", "cancelled")["spent"], 0)


class Parking(Case):
    """The process has waited long enough, or is gone: the question waits without it."""
    flags = test_worker.Case.flags + ("--set", "ask.parkMs=300")

    def test_it_is_ended_and_the_next_attempt_goes_on_with_the_answer(self):
        self.worker({"x": sh("task=$(cat); echo $$ > $DIR/pid-$STINT_ATTEMPT; "
                             "a=$(stint task ask 'which?' --wait --deadline 1h) || exit 3; "
                             "stint task progress \"$a\"; echo \"$task\"",
                             env={"DIR": self.folder}, write=[self.folder])})
        self.create(id="t")
        task = self.is_parked("t")
        self.assertTrue(self.is_gone(self.read("pid-1")), "it is given back when the tree is gone")
        self.assertEqual((task["spent"], task["crashes"], task["attempt"]), (0, 0, 1))
        self.assertEqual(self.answer("t", text="that one")["state"], "ready")
        task = self.is_in("t", "done", "asking", "failed")
        self.assertEqual((task["state"], task["attempt"], task["spent"]), ("done", 2, 0))
        given = task["result"]  # the task as it came on standard input
        self.assertEqual((given["question"]["text"], given["answer"]), ("which?", {"text": "that one"}))
        events = self.events("t")
        self.assertEqual([events.count("task." + kind) for kind in ("asked", "released", "answered")], [1, 1, 2])

    def test_the_death_of_the_supervisor_leaves_the_question_open(self):
        executors = {"x": sh("echo $$ > $DIR/pid-$STINT_ATTEMPT; stint task ask 'which?' --wait", env={"DIR": self.folder},
                             write=[self.folder])}
        worker = self.worker(executors)
        self.create(id="t")
        self.asks("t")
        worker.stop(signal.SIGKILL)
        self.worker(executors)
        task = self.is_parked("t")
        self.assertTrue(self.is_gone(self.read("pid-1")))
        self.assertEqual((task["spent"], task["crashes"], task["question"]["text"]), (0, 0, "which?"))
        self.answer("t", text="that one")
        self.assertEqual((self.is_in("t", "done")["result"], self.task("t")["attempt"]), ("that one", 2))

    def test_a_pass_of_run_once_is_parked_too_and_the_next_one_goes_on(self):
        config = self.path("once.json")
        with open(config, "w") as file:
            json.dump({"executors": {"x": sh("stint task ask 'which?' --wait")}, "queues": {"q": {}}}, file)
        words = ("worker", "run-once", "--config", config, "--agent-id")
        self.create(id="t", title="t")
        ran = stint(self.server, *words, "dev-3")
        result = json.loads(ran.stdout)
        self.assertEqual((ran.returncode, result["action"], result["error"]), (1, "blocked", "it asks: which?"), ran.stderr)
        self.assertIsNone(self.task("t")["workerId"])
        self.answer("t", text="that one")
        ran = stint(self.server, *words, "dev-4")  # a pass has no host: what it asked is anyone's
        self.assertEqual((ran.returncode, json.loads(ran.stdout)["summary"]), (0, "that one"), ran.stdout + ran.stderr)


class Hosts(Case):
    """What was answered is kept for the host that asked."""

    def register(self, worker, host):
        reply = self.client.post("/api/workers/register", {"workerId": worker, "host": host, "leaseMs": 3600000})
        self.assertEqual(reply.status, 200, reply.body)

    def claim(self, worker):
        return self.client.post("/api/claims", {"workerId": worker, "queues": ["q"]}).json["claims"]

    def test_for_a_while_only_that_host_may_claim_and_everybody_is_told_so(self):
        self.register("here", "host-a")
        self.register("there", "host-b")
        self.create(id="t")
        claim, = self.claim("here")
        proof = {"workerId": "here", "fence": claim["fence"]}
        self.assertEqual(self.client.post("/api/tasks/t/ask", {**proof, "question": "which?"}).status, 200)
        self.assertEqual(self.client.post("/api/tasks/t/release", proof).json["state"], "asking")
        self.answer("t", text="that one")
        self.assertEqual(self.claim("there"), [])
        self.assertEqual(self.client.post("/api/tasks/t/claim", {"workerId": "there"}).json["code"], "forbidden")
        why = self.client.get("/api/tasks/t/why").json
        self.assertEqual((why["reason"], why["host"]), ("kept_for_host", "host-a"))
        self.assertGreater(why["until"], time.time() * 1000)
        said = stint(self.server, "why", "t").stdout
        self.assertRegex(said, r"t is ready\. Has its answer; only host host-a, where it asked, may take it for (10|9) min")
        self.assertIn("stint park t && stint unpark t", said)
        self.server.kill()
        self.server.start()
        self.client.close()
        self.assertEqual(self.claim("there"), [])
        self.assertEqual(self.client.get("/api/tasks").json[0]["reason"], "kept_for_host")
        for verb in ("park", "unpark"):
            self.assertEqual(stint(self.server, verb, "t").returncode, 0)
        claim, = self.claim("there")
        self.assertEqual((claim["task"]["question"], claim["task"]["answer"]), ({"id": "q-1", "text": "which?"}, {"text": "that one"}))

    SESSION = {"id": "s-1", "agentSessionId": "abc", "adapter": "claude", "host": "host-a", "attach": "cd /w && claude --resume abc"}

    def work_as_an_agent(self):
        self.register("here", "host-a")
        self.register("there", "host-b")
        self.create(id="t", queue="q", maxAttempts=5)
        proof = {"workerId": "here", "fence": self.claim("here")[0]["fence"]}
        self.assertEqual(self.client.post("/api/tasks/t/progress", {**proof, "session": self.SESSION}).status, 200)
        return proof

    def test_what_an_agent_began_goes_on_where_its_session_is_also_after_a_restart(self):
        proof = self.work_as_an_agent()
        self.client.post("/api/tasks/t/fail", {**proof, "error": {"code": "CHECK_FAILED", "message": "no"}})
        for _ in range(2):
            self.assertEqual(self.claim("there"), [])
            self.assertEqual(self.client.post("/api/tasks/t/claim", {"workerId": "there"}).json["code"], "forbidden")
            said = stint(self.server, "why", "t").stdout
            self.assertRegex(said, r"t is ready\. Goes on in its session; only host host-a, where that is, may take it for (10|9) min")
            self.server.kill()
            self.server.start()
            self.client.close()
        self.assertEqual(len(self.claim("here")), 1)

    def test_after_a_rejection_too_and_a_fresh_retry_lets_anyone_begin_anew(self):
        proof = self.work_as_an_agent()
        self.client.post("/api/tasks/t/review", {**proof, "result": "look"})
        self.client.post("/api/tasks/t/gates/review", {"verdict": "reject", "reason": "no"})
        self.assertEqual(self.claim("there"), [])
        proof = {"workerId": "here", "fence": self.claim("here")[0]["fence"]}
        self.client.post("/api/tasks/t/block", {**proof, "error": {"code": "BAD_WORKDIR", "message": "no"}})
        self.assertEqual(stint(self.server, "retry", "t", "--fresh").returncode, 0)
        claim, = self.claim("there")
        self.assertIs(claim["fresh"], True)

    def wait_for_work(self, pool, worker, waiting):
        client = self.server.client()
        self.addCleanup(client.close)
        future = pool.submit(client.post, "/api/claims", {"workerId": worker, "queues": ["q"], "waitMs": 60000})
        self.until(lambda: b"\nstint_waiting_claims %d\n" % waiting in self.client.get("/metrics").body, "it waits")
        return future

    def test_whoever_waits_on_that_host_gets_it_at_once_and_whoever_waits_elsewhere_does_not(self):
        self.register("here", "host-a")
        self.register("there", "host-b")
        self.create(id="t")
        proof = {"workerId": "here", "fence": self.claim("here")[0]["fence"]}
        self.client.post("/api/tasks/t/ask", {**proof, "question": "which?"})
        self.client.post("/api/tasks/t/release", proof)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            there = self.wait_for_work(pool, "there", 1)
            here = self.wait_for_work(pool, "here", 2)
            self.answer("t", text="that one")
            self.assertEqual([claim["task"]["id"] for claim in here.result(HANG_S).json["claims"]], ["t"])
            self.create(id="u")
            self.assertEqual([claim["task"]["id"] for claim in there.result(HANG_S).json["claims"]], ["u"])

    def test_a_question_that_is_sent_twice_is_one(self):
        self.create(id="t")
        claim, = self.claim("script")
        body = {"workerId": "script", "fence": claim["fence"], "question": "which?"}
        first = self.client.post("/api/tasks/t/ask", body).json
        again = self.client.post("/api/tasks/t/ask", body)
        self.assertEqual((again.status, again.json["version"]), (200, first["version"]))
        self.assertEqual(self.client.post("/api/tasks/t/ask", {**body, "question": "when?"}).json["code"], "bad_transition")

    def asked(self, task="t", worker="script", **question):
        """The claim of a task that asks."""
        claim, = self.claim(worker)
        proof = {"workerId": worker, "fence": claim["fence"]}
        reply = self.client.post("/api/tasks/%s/ask" % task, {**proof, **question})
        self.assertEqual(reply.status, 200, reply.body)
        return proof

    def test_an_approval_names_the_question_that_was_read(self):
        self.create(id="t")
        push = {"question": "it is done", "data": {"tool": "Bash", "input": {"command": "git push"}}}
        proof = self.asked(**push)
        waits, = self.client.get("/api/approvals").json
        self.assertEqual((waits["task"], waits["kind"], waits["question"]), (
            "t", "question", {"id": "q-1", "text": "it is done", "tool": "Bash", "input": {"command": "git push"}}))
        self.client.post("/api/tasks/t/ask", {**proof, "withdraw": "q-1"})
        self.assertEqual(self.client.get("/api/approvals").json, [])
        self.client.post("/api/tasks/t/ask", {**proof, "question": "?", "data": {"tool": "Bash", "input": {"command": "rm -rf ."}}})
        late = stint(self.server, "approve", "t", "--question", "q-1")
        self.assertEqual((late.returncode, "question_changed" in late.stderr), (4, True), late.stderr)
        beyond = stint(self.server, "approve", "t", "--question", "q-9999999999")
        self.assertEqual((beyond.returncode, "question_changed" in beyond.stderr), (4, True), beyond.stderr)
        self.assertEqual(self.task("t")["state"], "asking")
        self.assertIn("Wants to run rm -rf .", self.client.get("/api/tasks/t/why").json["text"])
        self.assertEqual(stint(self.server, "deny", "t", "never").returncode, 0)
        self.assertEqual(self.task("t")["answer"], {"text": "never", "deny": True})

    def test_what_is_approved_for_the_task_is_carried_by_every_claim_and_not_asked_again(self):
        self.create(id="t")
        push = {"question": "now?", "data": {"tool": "Bash", "input": {"command": "git push origin a"}, "rule": "git push*"}}
        proof = self.asked(**push)
        self.assertEqual(stint(self.server, "approve", "t", "--for-task").returncode, 0)
        self.assertEqual(self.client.post("/api/tasks/t/release", proof).json["state"], "ready")
        self.server.kill()
        self.server.start()
        self.client.close()
        claim, = self.claim("script")
        self.assertEqual(claim["allowed"], [{"tool": "Bash", "rule": "git push*"}])
        self.assertEqual([(q["id"], q["answer"]) for q in claim["questions"]], [("q-1", {"allow": "task"})])
        push["data"]["input"]["command"] = "git push origin b"
        task = self.client.post("/api/tasks/t/ask", {"workerId": "script", "fence": claim["fence"], **push}).json
        self.assertEqual((task["state"], task["answer"]), ("running", {"allow": "task"}))

    def test_at_its_deadline_a_question_is_denied_whoever_waits_for_it(self):
        self.create(id="t")
        soon = int(time.time() * 1000) + 300
        proof = self.asked(question="which?", deadline=soon)
        self.client.post("/api/tasks/t/release", proof)
        task = self.is_in("t", "ready")
        self.assertEqual((task["answer"], task["spent"]), ({"deny": True, "late": True}, 0))
        claim, = self.claim("script")
        self.assertEqual(claim["questions"][0]["answer"], {"deny": True, "late": True})

    def test_what_a_person_tells_reaches_the_holder_and_every_later_attempt(self):
        self.create(id="t")
        self.assertEqual(stint(self.server, "tell", "t", "look at a").returncode, 0)
        claim, = self.claim("script")
        self.assertEqual([(one["id"], one["text"]) for one in claim["task"]["tells"]], [(1, "look at a")])
        proof = {"workerId": "script", "fence": claim["fence"]}
        progress = lambda **more: self.client.post("/api/tasks/t/progress", {**proof, **more}).json["commands"]
        self.assertEqual(progress(), [])
        self.client.post("/api/tasks/t/tell", {"text": "and at b"})
        self.server.kill()
        self.server.start()
        self.client.close()
        self.assertEqual(progress(), [{"type": "tell", "task": "t"}])
        self.assertEqual([one.get("heard", False) for one in self.task("t")["tells"]], [True, False])
        self.assertEqual(progress(told=2), [])
        self.client.post("/api/tasks/t/release", proof)
        claim, = self.claim("script")
        self.assertEqual([one["text"] for one in claim["task"]["tells"]], ["look at a", "and at b"])
        self.client.post("/api/tasks/t/complete", {"workerId": "script", "fence": claim["fence"]})
        self.assertEqual(stint(self.server, "tell", "t", "too late").returncode, 4)

    def test_usage_is_summed_over_attempts_and_an_unknown_price_is_not_zero(self):
        self.create(id="t")
        for turn, (usage, summed) in enumerate((
                ({"inputTokens": 10, "outputTokens": 5, "usd": 0.25}, (10, 5, 0.25)),
                ({"inputTokens": 7, "outputTokens": 1, "usd": 0.5}, (17, 6, 0.75)),
                ({"inputTokens": 1, "outputTokens": 1}, (18, 7, None)))):
            claim, = self.claim("script")
            proof = {"workerId": "script", "fence": claim["fence"]}
            for said in ({"outputTokens": 1, "usd": 0.01}, usage, usage, {"inputTokens": 0}):  # sent twice, and one that falls
                if "usd" in usage or "usd" not in said:
                    self.assertEqual(self.client.post("/api/tasks/t/progress", {**proof, "usage": {**usage, **said} if said == {"inputTokens": 0} else said}).status, 200)
            found = self.task("t")["usage"]
            self.assertEqual((found["inputTokens"], found["outputTokens"], found["usd"]), summed)
            self.client.post("/api/tasks/t/release", proof)
        self.assertEqual(self.client.post("/api/tasks/t/progress", {**proof, "usage": {"usd": -1}}).status, 422)

    def test_the_fifty_first_question_of_an_attempt_is_refused(self):
        self.create(id="t")
        proof = self.asked(question="0?")
        for number in range(1, 51):
            self.answer("t", text="yes", question="q-%d" % number)
            reply = self.client.post("/api/tasks/t/ask", {**proof, "question": "%d?" % number})
            self.assertEqual(reply.status, 200 if number < 50 else 413, reply.body)
        self.assertEqual(self.task("t")["state"], "running")


if __name__ == "__main__":
    unittest.main()
