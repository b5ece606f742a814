"""Workflows and gates over HTTP and by command: what is created, shown and filtered; who may judge; what is refused."""
import json
import os
import subprocess
import unittest

from hang import HANG_S
import stintd

STINT = os.environ.get("STINT", "build/stint")


class Gates(stintd.Case):
    def setUp(self):
        super().setUp()
        self.worker = self.holder("worker")

    def tearDown(self):
        for client in self.clients:
            client.close()
        super().tearDown()

    clients = ()

    def holder(self, kind, **more):
        reply = self.client.post("/api/tokens", {"kind": kind, "name": kind.replace(":", "-"), **more})
        self.assertEqual(reply.status, 201, reply.body)
        client = self.server.client(token=reply.json["token"])
        self.clients = [*self.clients, client]
        return client

    def task(self, task="t"):
        return self.client.get("/api/tasks/" + task).json

    def report(self, task="t"):
        """Somebody does the work and reports it."""
        claim = self.worker.post(f"/api/tasks/{task}/claim", {"workerId": "w"}).json
        reply = self.worker.post(f"/api/tasks/{task}/review", {"workerId": "w", "fence": claim["fence"], "result": "done"})
        self.assertEqual((reply.status, reply.json["state"]), (200, "review"), reply.body)

    def judge(self, client, gate, verdict="pass", task="t", **more):
        return client.post(f"/api/tasks/{task}/gates/{gate}", {"verdict": verdict, **more})

    def refused(self, reply, status, code):
        self.assertEqual((reply.status, reply.json["code"]), (status, code), reply.body)


class Documents(Gates):
    def test_what_is_asked_for_is_shown(self):
        made = self.create(id="t", workflow="autopilot", gates=["security", "validate"])
        self.assertEqual((made["workflow"], made["stage"], sorted(made["gates"]), made["gatesPassed"]),
                         ("autopilot", "in_progress", ["security", "validate"], []))
        self.assertEqual({key: self.task()[key] for key in ("workflow", "stage", "gates", "gatesPassed")},
                         {key: made[key] for key in ("workflow", "stage", "gates", "gatesPassed")})
        self.assertEqual(self.create(workflow="autopilot-deploy", state="pending")["stage"], "allocated")
        plain = self.create()
        self.assertTrue({"workflow", "stage", "gates", "gatesPassed"}.isdisjoint(plain))
        self.assertEqual(self.create(gates=["a", "a"])["gates"], ["a"])

    def test_lists_are_filtered_by_stage_and_workflow(self):
        self.create(id="a", workflow="autopilot")
        self.create(id="b", workflow="autopilot-deploy")
        self.create(id="c", workflow="autopilot", state="pending")
        self.create(id="d")
        names = lambda query: [task["id"] for task in self.client.get("/api/tasks?" + query).json]
        self.assertEqual(names("workflow=autopilot"), ["a", "c"])
        self.assertEqual(names("stage=in_progress"), ["a", "b"])
        self.assertEqual(names("stage=allocated&workflow=autopilot"), ["c"])
        self.assertEqual(names("stage=merged"), [])

    def test_what_is_wrong_is_said_and_nothing_is_made(self):
        before = self.last_change()
        for fields, field in (({"workflow": "waterfall"}, "workflow"), ({"workflow": 1}, "workflow"),
                              ({"gates": "security"}, "gates"), ({"gates": [1]}, "gates"), ({"gates": [""]}, "gates"),
                              ({"gates": [f"g{i}" for i in range(16)]}, "gates"), ({"stage": "building"}, "stage"),
                              ({"gatesPassed": []}, "gatesPassed")):
            reply = self.client.post("/api/tasks", {"title": "x", **fields})
            self.refused(reply, 422, "invalid")
            self.assertEqual(reply.json["errors"][0]["field"], field)
        self.create(id="t", workflow="autopilot")
        for fields in ({"workflow": "autopilot-deploy"}, {"gates": []}, {"stage": "merged"}):
            self.refused(self.client.call("PATCH", "/api/tasks/t", fields), 422, "invalid")
        for query in ("stage=shipped", "workflow=none"):
            self.assertEqual(self.client.get("/api/tasks?" + query).status, 422)
        self.assertEqual(self.last_change(), before + 1)


class Verdicts(Gates):
    def test_who_did_the_work_can_neither_call_it_done_nor_judge_it(self):
        self.create(id="t", gates=["security"])
        claim = self.worker.post("/api/tasks/t/claim", {"workerId": "w"}).json
        proof = {"workerId": "w", "fence": claim["fence"]}
        self.refused(self.worker.post("/api/tasks/t/complete", proof), 409, "gate_required")
        self.assertEqual(self.task()["state"], "claimed")
        self.worker.post("/api/tasks/t/review", proof)
        self.refused(self.judge(self.worker, "security"), 403, "forbidden")  # no scope
        self.assertEqual(self.judge(self.client, "security").json["state"], "done")
        # an admin has every scope, and yet
        self.create(id="u", gates=["security"])
        claim = self.client.post("/api/tasks/u/claim", {"workerId": "a"}).json
        self.client.post("/api/tasks/u/review", {"workerId": "a", "fence": claim["fence"]})
        self.refused(self.judge(self.client, "security", task="u"), 403, "forbidden")
        self.assertEqual(self.judge(self.holder("approver"), "security", task="u").json["state"], "done")

    def test_a_token_for_one_gate_opens_no_other(self):
        self.create(id="t", gates=["security", "style"])
        self.report()
        security = self.holder("gate:security")
        self.refused(self.judge(security, "style"), 403, "forbidden")
        reply = self.judge(security, "security", reason="looked at it", evidence={"url": "x"})
        self.assertEqual((reply.json["state"], reply.json["gatesPassed"]), ("review", ["security"]))
        self.assertEqual(self.judge(self.holder("approver"), "style").json["state"], "done")
        events = [event for event in self.client.get("/api/tasks/t/events").json["events"] if event["type"].startswith("gate.")]
        self.assertEqual([(event["type"], event["data"]["gate"]) for event in events],
                         [("gate.opened", "security"), ("gate.opened", "style"), ("gate.passed", "security"),
                          ("gate.passed", "style")])
        self.assertEqual((events[2]["data"]["reason"], events[2]["data"]["evidence"], events[2]["actor"]),
                         ("looked at it", {"url": "x"}, "gate:gate-security"))

    def test_it_is_so_after_a_kill(self):
        self.create(id="t", workflow="autopilot", gates=["security"])
        self.report()
        judge = self.holder("approver")
        self.judge(judge, "security")
        self.server.kill()
        self.server.start()
        for client in (self.client, self.worker, judge):
            client.close()
        self.assertEqual((self.task()["stage"], self.task()["gatesPassed"]), ("pr_created", ["security"]))
        self.judge(judge, "validate")
        merge = self.client.post("/api/tasks/t/events", {"type": "github.merge.success"})
        self.assertEqual((merge.status, self.task()["state"]), (200, "done"))

    def test_a_rejection_begins_the_next_attempt(self):
        self.create(id="t", workflow="autopilot", maxAttempts=2)
        judge = self.holder("approver")
        for state, stage in (("ready", "in_progress"), ("failed", "failed")):
            self.report()
            reply = self.judge(judge, "validate", "reject", reason="no tests")
            self.assertEqual((reply.json["state"], reply.json["stage"]), (state, stage))
        retried = self.client.post("/api/tasks/t/retry").json
        self.assertEqual((retried["state"], retried["stage"], retried["gatesPassed"]), ("ready", "in_progress", []))

    def test_what_cannot_be_judged(self):
        self.create(id="t", gates=["security"])
        judge = self.holder("approver")
        self.refused(self.judge(judge, "security"), 409, "bad_transition")
        self.report()
        self.refused(self.judge(judge, "style"), 404, "not_found")
        self.refused(self.judge(judge, "review"), 404, "not_found")
        self.refused(self.judge(judge, "security", task="nothing"), 404, "not_found")
        for body in ({}, {"verdict": "maybe"}, {"verdict": True}, {"verdict": "pass", "by": "me"}):
            self.refused(judge.post("/api/tasks/t/gates/security", body), 422, "invalid")
        self.refused(self.judge(self.holder("approver", queues=["other"]), "security"), 404, "not_found")
        self.assertEqual(self.task()["gatesPassed"], [])
        self.assertEqual(self.judge(judge, "security").json["state"], "done")
        self.refused(self.judge(judge, "security"), 409, "bad_transition")

    def test_what_waits_is_listed_for_whoever_may_see_it(self):
        self.create(id="a", gates=["security"])
        self.create(id="b", queue="other")
        self.create(id="c")
        for task in "ab":
            self.report(task)
        claim = self.worker.post("/api/tasks/c/claim", {"workerId": "w"}).json
        self.worker.post("/api/tasks/c/ask", {"workerId": "w", "fence": claim["fence"], "question": "which?"})
        listed = lambda client: [(item["task"], item["kind"], item.get("gate")) for item in client.get("/api/approvals").json]
        self.assertEqual(listed(self.client), [("a", "gate", "security"), ("b", "gate", "review"), ("c", "question", None)])
        self.assertEqual(listed(self.holder("approver", queues=["other"])), [("b", "gate", "review")])


class Commands(Gates):
    def stint(self, *args, token=None):
        env = stintd.environment(STINT_URL=self.server.url, STINT_TOKEN=token or self.server.token)
        done = subprocess.run([STINT, *args], capture_output=True, text=True, timeout=HANG_S, env=env)
        return done.returncode, done.stdout + done.stderr

    def test_inbox_approve_and_deny(self):
        self.create(id="t", title="an inbox", workflow="autopilot")
        self.report()
        code, text = self.stint("inbox")
        self.assertEqual(code, 0)
        self.assertIn("gate validate, stage pr_created", text)
        self.assertEqual(self.stint("why", "t")[1], "t is in review. Needs a verdict on gate validate\n  try  stint approve t\n")
        self.assertRegex(self.stint("show", "t")[1], r"(?s)  Stage pr_created, after in_progress\n.*  Needs a verdict on gate validate\n")
        self.assertEqual(self.stint("deny", "t", "no tests")[0], 0)
        self.assertEqual(self.task()["state"], "ready")
        self.report()
        code, text = self.stint("approve", "t", "--json")
        self.assertEqual((code, json.loads(text)["task"]["stage"]), (0, "validated"))
        self.assertEqual(self.stint("approve", "t")[0], 4)  # nothing is left to approve
        self.assertIn("Waits at stage validated of its workflow for the next event\n  try  stint workflow show autopilot\n", self.stint("why", "t")[1])
        code, text = self.stint("approve", "t", token=self.worker.token)
        self.assertIn(code, (3, 4, 6), text)  # its own task, which it may see

    def test_who_would_be_done_is_told_to_report_instead(self):
        self.create(id="t", gates=["security"])
        claim, = self.client.post("/api/claims", {"workerId": "me"}).json["claims"]
        code, text = self.stint("task", "done", "--task", "t", "--fence", claim["fence"], "--worker", "me")
        self.assertEqual(code, 4)
        self.assertIn("try  stint task review", text)

    def test_several_gates_are_named(self):
        self.create(id="t", gates=["security", "style"])
        self.report()
        self.assertIn("t is in review. Needs verdicts on gates security, style\n  try  stint approve t --gate security\n", self.stint("why", "t")[1])
        code, text = self.stint("approve", "t")
        self.assertEqual(code, 2)
        self.assertIn("security, style", text)
        self.assertEqual(self.stint("approve", "t", "--gate", "style")[0], 0)
        self.assertEqual(self.stint("approve", "t", "fine")[0], 0)
        self.assertEqual(self.task()["state"], "done")


if __name__ == "__main__":
    unittest.main()
