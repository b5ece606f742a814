"""What the next attempt learns of the one before it: why that failed, why it was rejected, by whom, and with what evidence."""
import json
import signal
import subprocess
import sys
import unittest

from hang import HANG_S
import stintd
import test_pool
import test_worker

DOOR = "/api/v1/worker/orchestrator"
EVIDENCE = {"files": ["a.c"], "links": ["https://ci.example/7"]}


class Base(stintd.Case):
    flags = ("--set", "retry.baseMs=1")

    def holder(self, kind):
        reply = self.client.post("/api/tokens", {"kind": kind, "name": kind.replace(":", "-")})
        self.assertEqual(reply.status, 201, reply.body)
        client = self.server.client(token=reply.json["token"])
        self.addCleanup(client.close)
        return client

    def claim(self, task="t", worker="w"):
        reply = self.client.post("/api/tasks/%s/claim" % task, {"workerId": worker})
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json

    def end(self, how, claim, **fields):
        task = claim["task"]["id"]
        reply = self.client.post("/api/tasks/%s/%s" % (task, how), {"workerId": "w", "fence": claim["fence"], **fields})
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json

    def task(self, task="t"):
        return self.client.get("/api/tasks/" + task).json


class Again(Base):
    def test_the_error_of_a_failed_attempt_is_handed_to_the_next(self):
        self.create(id="t")
        error = {"code": "CHECK_FAILED", "message": "two tests fail"}
        failed = self.end("fail", self.claim(), error=error)
        self.assertEqual(failed["error"]["message"], "two tests fail")
        self.until(lambda: self.task()["state"] == "ready", "the back-off is over")
        claim = self.claim()
        self.assertEqual(claim["task"]["previousError"], {**error, "class": "task"})
        self.assertEqual((self.task()["error"], self.task()["previousError"]["message"]), (None, "two tests fail"))
        self.assertNotIn("previousError", self.end("complete", claim))

    def test_the_first_attempt_has_none_before_it(self):
        self.create(id="t")
        self.assertNotIn("previousError", self.claim()["task"])

    def test_the_reason_and_evidence_of_a_gate_are_its_error_and_reach_the_next_attempt(self):
        self.create(id="t", gates=["security"])
        self.end("review", self.claim(), result="first")
        reply = self.holder("gate:security").post("/api/tasks/t/gates/security", {
            "verdict": "reject", "reason": "the key is in the log", "evidence": EVIDENCE})
        self.assertEqual(reply.status, 200, reply.body)
        told = {"code": "CHECK_FAILED", "message": "the key is in the log", "class": "task", "gate": "security",
                "evidence": EVIDENCE}
        self.assertEqual(reply.json["error"], told)
        self.assertEqual(self.claim()["task"]["previousError"], told)

    def test_a_rejection_without_words_names_its_gate(self):
        self.create(id="t", gates=["security"])
        self.end("review", self.claim())
        self.holder("gate:security").post("/api/tasks/t/gates/security", {"verdict": "reject"})
        self.assertEqual(self.task()["error"]["message"], "rejected at gate security")

    def test_the_words_of_deny_reach_the_next_attempt(self):
        self.create(id="t")
        self.end("review", self.claim())
        self.holder("approver")
        token = self.client.post("/api/tokens", {"kind": "approver", "name": "me"}).json["token"]
        done = subprocess.run([test_worker.STINT, "deny", "t", "the title is wrong", "--url", self.server.url],
                              capture_output=True, text=True, timeout=HANG_S, env=stintd.environment(STINT_TOKEN=token))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.claim()["task"]["previousError"]["message"], "the title is wrong")

    def test_a_failed_check_from_outside_says_what_failed(self):
        self.create(id="t", workflow="autopilot")
        self.client.post(DOOR + "/tasks/t/claim", {"worker_id": "c"})
        for event in ("worker.building", "worker.pr.created", "worker.execution.completed"):
            reply = self.client.post(DOOR + "/tasks/t/progress", {"worker_id": "c", "event": event})
            self.assertEqual(reply.status, 200, reply.body)
        data = {"message": "lint: 3 errors", "run": 7}
        reply = self.client.post("/api/tasks/t/events", {"type": "cicd.ci.failed", "data": data})
        self.assertEqual(reply.status, 200, reply.body)
        told = {"code": "CHECK_FAILED", "message": "lint: 3 errors", "class": "task", "event": "cicd.ci.failed", "evidence": data}
        self.assertEqual(self.task()["error"], told)
        claim = self.client.post(DOOR + "/tasks/t/claim", {"worker_id": "c"}).json
        self.assertEqual(claim["previous_error"], told)

    def test_a_failure_from_outside_says_why(self):
        self.create(id="t", workflow="autopilot")
        self.client.post("/api/tasks/t/events", {"type": "dispatch.failed", "status": "failed"})
        task = self.task()
        self.assertEqual((task["state"], task["error"]["message"], task["error"]["event"]),
                         ("failed", "dispatch.failed", "dispatch.failed"))

    def test_a_second_attempt_shows_neither_result_nor_evidence_of_the_first(self):
        self.create(id="t")
        self.end("complete", self.claim(), result={"pr": 1}, evidence=EVIDENCE)
        self.assertEqual((self.task()["result"], self.task()["evidence"]), ({"pr": 1}, EVIDENCE))
        self.client.post("/api/tasks/t/retry")
        claim = self.claim()
        self.assertIsNone(claim["task"]["result"])
        task = self.task()
        self.assertEqual((task["result"], task.get("evidence")), (None, None))
        self.end("release", claim)
        self.assertIsNone(self.task()["result"])
        self.end("complete", self.claim(), result={"pr": 2})
        self.assertEqual(self.task()["result"], {"pr": 2})


class Parents(Base):
    def finish(self, task, **fields):
        return self.end("complete", self.claim(task), **fields)

    def listed(self, task="t"):
        return [found for found in self.client.get("/api/tasks").json if found["id"] == task][0]

    def test_the_document_names_who_holds_it_back_and_what_came_of_the_others(self):
        for name in ("a", "b", "c"):
            self.create(id=name)
        made = self.create(id="t", blockedBy=["b", "a", "c"])
        self.assertEqual(made["blockedBy"], ["b", "a", "c"])
        self.finish("a", result={"branch": "fix"})
        task = self.task()
        self.assertEqual((task["state"], task["blockedBy"]), ("waiting", ["b", "c"]))
        self.assertEqual(task["parents"], [{"id": "b", "state": "ready", "result": None},
                                           {"id": "a", "state": "done", "result": {"branch": "fix"}},
                                           {"id": "c", "state": "ready", "result": None}])
        self.assertEqual(self.listed()["blockedBy"], ["b", "c"])
        self.assertNotIn("parents", self.listed(), "lists are short")
        self.client.post("/api/tasks/b/cancel")
        self.assertEqual((self.task()["state"], self.task()["blockedBy"]), ("blocked", ["b", "c"]), "it holds it back")
        self.finish("c", result=7)
        self.client.post("/api/tasks/t/retry")
        claim = self.claim()["task"]
        self.assertEqual((claim["blockedBy"], [parent["state"] for parent in claim["parents"]]), ([], ["cancelled", "done", "done"]))
        self.assertEqual(claim["parents"][2]["result"], 7)

    def test_the_results_have_256_kib_together(self):
        for name, length in (("a", 200000), ("b", 100000), ("c", 10)):
            self.create(id=name)
            self.finish(name, result="é" * (length // 2))
        self.create(id="t", blockedBy=["a", "b", "c"])
        parents = self.claim()["task"]["parents"]
        self.assertEqual([parent.get("resultCut", False) for parent in parents], [False, True, True])
        self.assertLessEqual(sum(len(parent["result"].encode()) for parent in parents), 256 << 10)
        self.assertTrue(parents[1]["result"].startswith('"é'))

    def test_who_may_not_see_a_parents_queue_does_not_see_its_result(self):
        self.create(id="a", queue="secret")
        self.finish("a", result="the key")
        self.create(id="t", blockedBy=["a"])
        reply = self.client.post("/api/tokens", {"kind": "worker", "name": "narrow", "queues": ["q"]})
        worker = self.server.client(token=reply.json["token"])
        self.addCleanup(worker.close)
        reply = worker.get("/api/tasks/t")
        self.assertEqual((reply.status, reply.json["parents"]), (200, [{"id": "a", "state": "done"}]))
        claim, = worker.post("/api/claims", {"workerId": "n", "queues": ["q"]}).json["claims"]
        self.assertEqual(claim["task"]["parents"][0]["result"], "the key", "an attempt has the results of its parents")


class Choices(Base):
    def ask(self, **fields):
        self.create(id="t")
        self.end("ask", self.claim(), question="which branch?", **fields)

    def answer(self, **fields):
        return self.client.post("/api/tasks/t/answer", fields)

    def test_an_answer_is_one_of_the_options(self):
        self.ask(options=["main", "release"])
        reply = self.answer(text="develop")
        self.assertEqual((reply.status, reply.json["errors"]), (422, [
            {"field": "text", "message": 'must be one of the options: "main", "release"'}]))
        self.assertEqual(self.task()["state"], "asking")
        reply = self.answer(text="release")
        self.assertEqual((reply.status, reply.json["answer"]), (200, {"text": "release"}))

    def test_no_is_always_an_answer(self):
        self.ask(options=["main", "release"])
        self.assertEqual(self.answer(deny=True, text="neither").status, 200)

    def test_who_allows_other_words_gets_them(self):
        self.ask(options=["main", "release"], freeText=True)
        self.assertEqual(self.answer(text="develop").status, 200)

    def test_without_options_any_text_will_do(self):
        self.ask()
        self.assertEqual(self.answer(text="develop").status, 200)

    def test_options_that_are_no_texts_are_no_choice(self):
        self.ask(options=["main", {"other": 1}])
        self.assertEqual(self.answer(text="develop").status, 200)

    def test_the_timeline_shows_the_question(self):
        self.ask(options=["main", "release"])
        event = [event for event in self.client.get("/api/tasks/t/events").json["events"] if event["type"] == "task.asked"][0]
        self.assertEqual((event["data"]["question"], event["data"]["options"]), ("which branch?", ["main", "release"]))


class Slot(test_worker.Case):
    def test_after_a_killed_worker_the_task_says_that_it_was_recovered(self):
        self.create(id="t", owner="slot-1")
        executors, mark = {"nap": test_worker.sh("echo here; exec sleep 600")}, ("--slot", "slot-1")
        queues = {"q": {"executor": "nap"}}
        first = self.worker(executors, *mark, queues=queues)
        self.until(lambda: self.client.get("/api/tasks/t").json["state"] == "running", "it runs")
        first.stop(signal.SIGKILL)
        self.worker(executors, *mark, queues=queues)
        self.until(lambda: self.client.get("/api/tasks/t").json["attempt"] == 2, "it runs again")
        metadata = self.client.get("/api/tasks/t").json["metadata"]
        self.assertEqual(set(metadata), {"crashRecovery", "previousSession", "recoveredAt"}, metadata)
        self.assertIs(metadata["crashRecovery"], True)


class Crash(test_pool.Case):
    flags = test_pool.Case.flags + ("--set", "quarantine.trialAfterMs=1000")

    def test_the_event_of_a_crash_says_how_it_ended_and_whether_it_can_be_recovered(self):
        self.pool("any")
        self.create(id="t", module="crash")
        self.is_in("t", "failed")
        told = [event["data"] for event in self.client.get("/api/tasks/t/events").json["events"] if event["type"] == "task.failed"]
        self.assertEqual([data["recoverable"] for data in told], [True, True, False])
        for data in told:
            self.assertEqual((data["class"], data["signal"]), ("crash", "SIGSEGV"), data)


# It takes what it reads for text, as a program does that never heard of bytes: a length of 128 and more loses a byte.
READS_TEXT = """
import json, os, struct
def say(kind, **more):
    body = json.dumps({"id": "1", "type": kind, "timestamp": "now", "workerId": "w", **more}).encode()
    os.write(1, struct.pack(">I", len(body)) + body)
say("worker.hello", capabilities={"moduleIds": ["echo"], "maxConcurrent": 1})
kept = b""
while True:
    while len(kept) < 4 or len(kept) < 4 + struct.unpack(">I", kept[:4])[0]:
        more = os.read(0, 65536)
        if not more:
            raise SystemExit
        kept += more.decode("latin-1").encode("ascii", "replace")
    length = struct.unpack(">I", kept[:4])[0]
    task, kept = json.loads(kept[4:4 + length])["task"], kept[4 + length:]
    say("task.result", taskId=task["id"], result={"success": True, "output": len(task["payload"])})
    say("worker.ready")
"""


class Text(test_pool.Case):
    def test_a_worker_that_reads_its_standard_input_as_text_understands_every_frame(self):
        self.worker({"p": self.executor("", argv=[sys.executable, "-c", READS_TEXT])}, "--name", "host")
        sizes = (0, 40, 80, 120, 160, 200, 250, 33000, 60000, 900000)
        for size in sizes:
            self.create(id="t%d" % size, module="echo", payload="x" * size)
        for size in sizes:
            self.assertEqual(self.is_in("t%d" % size, "done")["result"], size)


class Stdin(test_worker.Case):
    def test_a_program_reads_on_its_standard_input_why_the_attempt_before_failed(self):
        self.create(id="t", executor="again")
        self.worker({"again": test_worker.sh(
            """test "$STINT_ATTEMPT" -gt 1 || { echo "no luck" >&2; exit 1; }; tr -d '\\n'; echo""")})
        self.until(lambda: self.client.get("/api/tasks/t").json["state"] == "done", "done")
        result = self.client.get("/api/tasks/t").json["result"]
        self.assertIn("no luck", result["previousError"]["message"], json.dumps(result))


if __name__ == "__main__":
    unittest.main()
