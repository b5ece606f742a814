"""What the next attempt learns of the one before it: why that failed, why it was rejected, by whom, and with what evidence."""
import json
import signal
import subprocess
import unittest

from hang import HANG_S
import stintd
import test_worker

DOOR = "/api/v1/worker/orchestrator"
EVIDENCE = {"files": ["a.c"], "links": ["https://ci.example/7"]}


class Again(stintd.Case):
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
