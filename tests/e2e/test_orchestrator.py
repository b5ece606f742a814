"""The surface of worker connectors, as its document describes it: its examples word for word, its walk with curl, its
sequence from activation to the merge, its refusals, and the questions that its success criteria ask of the database."""
import json
import os
import subprocess
import threading
import unittest

from hang import HANG_S
import stintd

HERE = os.path.dirname(os.path.abspath(__file__))
STINT = os.environ.get("STINT", "build/stint")
BASE = "/api/v1/worker/orchestrator"
WORKER = "claude-code-session-abc123"
TASK = {
    "id": "VTID-01180", "title": "Autopilot Recommendation Inbox API v0", "priority": 1, "workflow": "autopilot",
    "instructions": "# VTID-01180 — Autopilot Recommendation Inbox...",
    "metadata": {"spec_snapshot_id": "9fa1a01a-e571-4ea2-943f-d429b48ae4a0", "layer": "DEV", "module": "OPERATOR",
                 "summary": "an inbox", "spec_status": "approved"},
}


class Connector(stintd.Case):
    """Without a token, as its old clients come."""
    flags = ("--set", "auth=open")

    def setUp(self):
        super().setUp()
        self.worker = self.server.client(token="")

    def tearDown(self):
        self.worker.close()
        super().tearDown()

    def post(self, path, body=None, status=200):
        reply = self.worker.post(BASE + path, body)
        self.assertEqual(reply.status, status, reply.body)
        return reply.json

    def get(self, path, status=200):
        reply = self.worker.get(BASE + path)
        self.assertEqual(reply.status, status, reply.body)
        return reply.json

    def add(self, **fields):
        reply = self.worker.post("/api/tasks", {**TASK, **fields})
        self.assertEqual(reply.status, 201, reply.body)
        return reply.json

    def register(self, worker=WORKER, **more):
        return self.post("/register", {"worker_id": worker, **more})

    def claim(self, worker=WORKER, task="VTID-01180", status=200, **more):
        return self.post(f"/tasks/{task}/claim", {"worker_id": worker, **more}, status)

    def progress(self, event, worker=WORKER, task="VTID-01180", status=200, **more):
        return self.post(f"/tasks/{task}/progress", {"worker_id": worker, "event": event, **more}, status)

    def task(self, task="VTID-01180"):
        return self.client.get("/api/tasks/" + task).json

    def events(self, task="VTID-01180"):
        return self.client.get(f"/api/tasks/{task}/events?limit=1000").json["events"]

    def last_event(self):
        return self.last_change()


class Document(Connector):
    def test_registration(self):
        answer = self.register(capabilities=["typescript", "react", "node"], max_concurrent=1)
        self.assertEqual((answer["ok"], answer["worker_id"], answer["registered"]), (True, WORKER, True))
        self.assertRegex(answer["registered_at"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertNotIn("reregistered", answer)
        again = self.register(capabilities=["typescript"], version="1.1.0", metadata={"host": "a"})
        self.assertIs(again["reregistered"], True)
        self.assertEqual(again["registered_at"], answer["registered_at"])
        listed, = self.get("/workers")["workers"]
        self.assertEqual((listed["worker_id"], listed["capabilities"], listed["max_concurrent"], listed["status"],
                          listed["metadata"]),
                         (WORKER, ["typescript"], 1, "active", {"version": "1.1.0", "host": "a"}))

    def test_polling(self):
        self.add()
        answer = self.get("/tasks/pending")
        self.assertEqual((answer["ok"], answer["count"], answer["worker_id"]), (True, 1, None))
        task, = answer["tasks"]
        for key, value in {"vtid": "VTID-01180", "title": TASK["title"], "state": "in_progress", "priority": 1,
                           "spec_snapshot_id": "9fa1a01a-e571-4ea2-943f-d429b48ae4a0", "layer": "DEV",
                           "module": "OPERATOR", "summary": "an inbox", "spec_status": "approved", "is_terminal": False,
                           "claimed_by": None, "claim_expires_at": None}.items():
            self.assertEqual(task[key], value, key)
        self.assertIsNotNone(task["dispatched_at"])

    def test_polling_shows_the_oldest_first_what_is_nobodys_and_what_is_ones_own(self):
        for number, more in enumerate(({"priority": -5}, {}, {"owner": "somebody"}, {"owner": WORKER},
                                       {"state": "pending"}, {"queue": "other"})):
            self.add(id=f"VTID-{number}", **more)
        self.register(max_concurrent=2)
        self.claim(task="VTID-1")
        names = lambda query="": [task["vtid"] for task in self.get("/tasks/pending" + query)["tasks"]]
        self.assertEqual(names(), ["VTID-0", "VTID-5"])
        self.assertEqual(names("?worker_id=" + WORKER), ["VTID-0", "VTID-1", "VTID-3", "VTID-5"])
        self.assertEqual(names("?worker_id=other&limit=1"), ["VTID-0"])
        self.assertEqual(names("?limit=0&worker_id="), ["VTID-0", "VTID-5"])
        self.assertEqual(names("?limit=none"), ["VTID-0", "VTID-5"])

    def test_claiming(self):
        self.add()
        self.register()
        answer = self.claim()
        self.assertEqual((answer["ok"], answer["claimed"], answer["vtid"], answer["worker_id"]),
                         (True, True, "VTID-01180", WORKER))
        self.assertEqual(answer["spec"], "# VTID-01180 — Autopilot Recommendation Inbox...")
        self.assertEqual(answer["claim_expires_at"], answer["expires_at"])
        refused = self.claim("another", status=409)
        self.assertEqual((refused["ok"], refused["claimed"], refused["reason"], refused["claimed_by"]),
                         (False, False, "Task already claimed by another worker", WORKER))
        self.assertNotIn("fence", refused)

    def test_the_same_worker_again_makes_it_last_longer(self):
        self.add()
        first = self.claim()
        before = self.last_event()
        longer = self.claim(expires_minutes=90)
        self.assertEqual((longer["fence"], longer["attempt"]), (first["fence"], 1))
        self.assertGreater(longer["claim_expires_at"], first["claim_expires_at"])
        self.assertEqual(self.last_event(), before)

    def test_what_stands_for_the_specification(self):
        self.add(id="a", metadata={})
        self.add(id="b", metadata={}, instructions=None, description=TASK["instructions"])
        self.add(id="c", metadata={}, instructions="another")
        ids = {task["vtid"]: task["spec_snapshot_id"] for task in self.get("/tasks/pending")["tasks"]}
        self.assertRegex(ids["a"], r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
        self.assertEqual(ids["a"], ids["b"])
        self.assertNotEqual(ids["a"], ids["c"])
        self.assertEqual(self.claim("w", "b")["spec"], TASK["instructions"])

    def test_heartbeat(self):
        self.add()
        self.register()
        self.assertIsNone(self.post("/heartbeat", {"worker_id": WORKER, "active_vtid": "VTID-01180"})["current_vtid"])
        self.claim()
        answer = self.post("/heartbeat", {"worker_id": WORKER, "active_vtid": "VTID-01180"})
        self.assertEqual((answer["ok"], answer["current_vtid"]), (True, "VTID-01180"))
        self.assertIsNotNone(answer["heartbeat_at"])
        self.assertEqual(self.task()["state"], "claimed")  # a beat confirms nothing
        self.assertEqual(self.post("/heartbeat", {"worker_id": WORKER, "active_vtid": "x"})["current_vtid"], "VTID-01180")

    def test_release_and_unregistration(self):
        self.add()
        self.register()
        self.claim()
        refused = self.post("/tasks/VTID-01180/release", {"worker_id": "another"}, 409)
        self.assertEqual((refused["ok"], refused["released"]), (False, False))
        answer = self.post("/tasks/VTID-01180/release", {"worker_id": WORKER, "reason": "runner_stopped"})
        self.assertEqual((answer["ok"], answer["released"], answer["reason"]), (True, True, "runner_stopped"))
        self.assertEqual(self.task()["state"], "ready")
        self.assertEqual(self.events()[-1]["data"]["reason"], "runner_stopped")
        self.claim()
        gone = self.worker.call("DELETE", f"{BASE}/register/{WORKER}")
        self.assertEqual((gone.status, gone.json["unregistered"]), (200, True))
        self.assertEqual(self.task()["state"], "ready")
        self.assertEqual(self.get("/workers")["workers"], [])
        self.assertEqual(self.post("/heartbeat", {"worker_id": WORKER}, 400)["error"], "Worker not registered")
        self.assertNotIn("reregistered", self.register())  # a new instance

    def test_what_its_last_word_has_ended_is_given_back_by_whoever_had_it(self):
        self.add()
        self.register()
        self.claim()
        self.post("/tasks/VTID-01180/progress", {"worker_id": WORKER, "event": "worker.execution.completed"})
        refused = self.post("/tasks/VTID-01180/release", {"worker_id": "another"}, 409)
        self.assertEqual((refused["ok"], refused["released"]), (False, False))
        self.assertTrue(self.post("/tasks/VTID-01180/release", {"worker_id": WORKER})["released"])
        self.assertEqual(self.task()["state"], "review")

    def test_figures_and_health(self):
        self.add(id="a")
        self.add(id="b")
        self.register()
        self.register("idle")
        self.claim(task="a")
        answer = self.get("/stats")
        for key, value in {"total_workers": 2, "active_workers": 2, "workers_with_tasks": 1, "pending_tasks": 1,
                           "active_claims": 1, "tasks_today": 2, "execution_armed": True}.items():
            self.assertEqual(answer[key], value, key)
        self.assertEqual(self.get("/health")["status"], "healthy")
        self.client.post("/api/execution", {"armed": False})
        self.assertIs(self.get("/health")["execution_armed"], False)


class Walk(Connector):
    """The whole of it."""

    def stages(self):
        return [(event["data"].get("fromStage"), event["data"]["stage"]) for event in self.events()
                if event["type"] == "task.stage_changed"]

    def walk(self):
        done = subprocess.run([os.path.join(HERE, "connector.sh"), self.server.url], capture_output=True, text=True,
                              timeout=HANG_S)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([answer["ok"] for answer in answers], [True] * 9, done.stdout)
        return answers

    def test_from_activation_to_the_merge_with_a_validator(self):
        self.add(state="pending")
        self.assertEqual((self.task()["stage"], self.get("/tasks/pending")["tasks"]), ("allocated", []))
        self.worker.post("/api/tasks/VTID-01180/unpark")  # Activate
        answers = self.walk()
        self.assertEqual(answers[1]["tasks"][0]["vtid"], "VTID-01180")
        self.assertIs(answers[2]["claimed"], True)
        self.assertEqual([answer["state"] for answer in answers[4:8]],
                         ["in_progress", "building", "pr_created", "reviewing"])
        task = self.task()
        self.assertEqual((task["stage"], task["state"], task["workerId"]), ("reviewing", "review", None))
        # nobody without a token passes the gate, and nobody merges before it
        self.assertEqual(self.worker.post("/api/tasks/VTID-01180/gates/validate", {"verdict": "pass"}).status, 403)
        merge = {"id": "pr-7", "type": "github.merge.success", "status": "success"}
        reply = self.worker.post("/api/tasks/VTID-01180/events", merge)
        self.assertEqual((reply.status, reply.json["code"]), (409, "gate_required"))
        reply = self.worker.post("/api/tasks/VTID-01180/events", {"type": "autopilot.validation.passed"})
        self.assertEqual((reply.status, reply.json["code"]), (409, "gate_required"))
        validator = self.server.client(token=self.client.post(
            "/api/tokens", {"kind": "gate:validate", "name": "validator"}).json["token"])
        waiting, = validator.get("/api/approvals").json
        self.assertEqual((waiting["task"], waiting["gate"], waiting["stage"]), ("VTID-01180", "validate", "reviewing"))
        reply = validator.post("/api/tasks/VTID-01180/gates/validate", {"verdict": "pass", "evidence": {"run": 81}})
        self.assertEqual((reply.status, reply.json["stage"], reply.json["state"]), (200, "validated", "review"))
        validator.close()
        reply = self.worker.post("/api/tasks/VTID-01180/events", merge)
        self.assertEqual((reply.status, reply.json["stage"]), (200, "merged"))
        self.assertEqual((self.task()["stage"], self.task()["status"]), ("merged", "done"))
        self.assertEqual(self.stages(), [
            ("allocated", "in_progress"), ("in_progress", "building"), ("building", "pr_created"),
            ("pr_created", "reviewing"), ("reviewing", "validated"), ("validated", "merged")])
        actions = [event["data"].get("action") for event in self.events() if event["type"] == "task.stage_changed"]
        self.assertEqual(actions, [None, None, None, "validate", "merge", None])
        before = self.last_event()
        again = self.worker.post("/api/tasks/VTID-01180/events", merge)
        self.assertEqual((again.json["seq"], self.last_event()), (reply.json["seq"], before))

    def test_without_a_workflow_the_last_word_puts_it_into_review(self):
        self.add(workflow=None)
        self.walk()
        self.assertEqual((self.task()["state"], self.task()["result"]), ("review", {"files_changed": 3, "lines_added": 150}))
        reply = self.client.post("/api/tasks/VTID-01180/gates/review", {"verdict": "pass"})
        self.assertEqual((reply.status, reply.json["state"]), (200, "done"))

    def test_what_a_worker_says_has_failed_has_failed(self):
        for workflow in ("autopilot", None):
            task = f"VTID-{workflow}"
            self.add(id=task, workflow=workflow)
            self.claim(task=task)
            self.progress("worker.execution.failed", task=task, message="no disk")
            found = self.task(task)
            self.assertEqual((found["state"], found["error"]["message"], found["spent"]), ("failed", "no disk", 1))

    def test_the_database_answers_the_success_criteria(self):
        def query(sql):
            done = subprocess.run([STINT, "db", "query", sql, "--json", "--home", self.server.home], capture_output=True,
                                  text=True, timeout=HANG_S, env=stintd.environment())
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout)["result"]["rows"]
        self.add()
        self.register(capabilities=["typescript", "react", "node"])
        self.assertEqual(query("SELECT worker_id, capabilities, max_concurrent, status FROM worker_registry"),
                         [[WORKER, '["node","react","typescript"]', 1, "active"]])
        self.claim()
        self.claim("second", status=409)
        rows = query("SELECT vtid, worker_id, released_at, expires_at > claimed_at FROM worker_task_claims")
        self.assertEqual(rows, [["VTID-01180", WORKER, None, 1]])
        self.assertEqual(query("SELECT count(*) FROM worker_registry"), [[1]])  # who was refused left nothing
        self.worker.call("DELETE", f"{BASE}/register/{WORKER}")
        self.assertEqual(query("SELECT count(*) FROM worker_task_claims WHERE released_at IS NULL"), [[0]])
        self.assertEqual(query("SELECT status FROM worker_registry"), [["terminated"]])

    def test_a_claim_that_has_ended_stays_in_the_table_with_its_time_and_its_reason(self):
        def query(sql):
            return self.client.post("/api/query", {"sql": sql}).json["rows"]
        for number, end in enumerate(("release", "fail", "live")):
            task = f"VTID-0118{number}"
            self.add(id=task)
            self.claim(task=task, expires_minutes=30)
            if end == "release":
                self.worker.post(f"{BASE}/tasks/{task}/release", {"worker_id": WORKER, "reason": "runner_stopped"})
            elif end == "fail":
                self.progress("worker.execution.failed", task=task, message="no disk")
        rows = query("SELECT vtid, worker_id, release_reason, released_at >= claimed_at, "
                     "round((julianday(expires_at) - julianday(claimed_at)) * 1440) FROM worker_task_claims ORDER BY vtid")
        self.assertEqual(rows, [["VTID-01180", WORKER, "runner_stopped", 1, 30.0], ["VTID-01181", WORKER, "failed", 1, 30.0],
                                ["VTID-01182", WORKER, None, None, 30.0]])
        self.assertEqual(query("SELECT count(*) FROM worker_task_claims WHERE released_at IS NULL"), [[1]])
        ids = [row[0] for row in query("SELECT id FROM worker_task_claims")]
        self.assertEqual((len(set(ids)), query("SELECT id FROM worker_registry")), (3, [[WORKER]]))

    def test_an_action_becomes_a_task_where_a_queue_is_named(self):
        self.server.stop()
        self.server.flags += ["--set", "workflow.validateQueue=validators"]
        self.server.start()
        self.worker.close()
        self.client.close()
        self.add()
        self.walk()
        claim, = self.client.post("/api/claims", {"workerId": "v", "queues": ["validators"]}).json["claims"]
        task = claim["task"]
        self.assertEqual((task["title"], task["payload"]),
                         ("validate VTID-01180", {"action": "validate", "task": "VTID-01180"}))


class Racers(Connector):
    def test_a_hundred_claim_and_one_wins(self):
        self.add()
        answers, gate = [], threading.Barrier(100)

        def race(number):
            client = self.server.client(token="")
            gate.wait(HANG_S)
            answers.append(client.post(f"{BASE}/tasks/VTID-01180/claim", {"worker_id": f"w-{number}"}))
            client.close()
        threads = [threading.Thread(target=race, args=(number,)) for number in range(100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG_S)
        self.assertEqual(sorted(answer.status for answer in answers), [200] + [409] * 99)
        winner, = [answer.json["worker_id"] for answer in answers if answer.status == 200]
        self.assertEqual(self.task()["workerId"], winner)
        self.assertTrue(all(answer.json["claimed_by"] == winner for answer in answers if answer.status == 409))


class Names(Connector):
    """Two processes under one name."""

    def test_without_a_fence_both_are_the_same_and_the_events_say_so(self):
        self.add()
        self.claim()
        self.progress("worker.building")
        self.progress("worker.pr.created")
        told = [event["data"].get("nameOnly") for event in self.events() if event["type"] in ("task.claimed", "task.progressed")]
        self.assertEqual(told, [True] * 3)

    def test_with_a_fence_the_late_one_changes_nothing(self):
        self.add()
        first = self.claim()["fence"]
        self.post("/tasks/VTID-01180/release", {"worker_id": WORKER, "fence": first})
        second = self.claim()["fence"]
        self.assertGreater(int(second), int(first))
        before = self.last_event()
        self.assertEqual(self.claim(fence=first, status=409)["error_code"], "stale_claim")
        self.assertEqual(self.progress("worker.building", fence=first, status=400)["error"], "No active claim for this task")
        self.post("/tasks/VTID-01180/release", {"worker_id": WORKER, "fence": first}, 409)
        self.assertEqual(self.last_event(), before)
        self.assertEqual(self.progress("worker.building", fence=second)["fence"], second)
        self.assertNotIn("nameOnly", self.events()[-2]["data"])

    def test_a_name_belongs_to_the_credential_that_used_it_first(self):
        self.add()
        token = self.client.post("/api/tokens", {"kind": "worker", "name": "other"}).json["token"]
        other = self.server.client(token=token)
        self.register()
        self.claim()
        before = self.last_event()
        for path, body in (("/register", {}), ("/heartbeat", {}), ("/tasks/VTID-01180/claim", {})):
            reply = other.post(BASE + path, {"worker_id": WORKER, **body})
            self.assertEqual((reply.status, reply.json["ok"]), (403, False), reply.body)
        reply = other.post(BASE + "/tasks/VTID-01180/progress", {"worker_id": WORKER, "event": "worker.building"})
        self.assertEqual((reply.status, reply.json["ok"]), (400, False), reply.body)
        self.assertEqual(other.call("DELETE", f"{BASE}/register/{WORKER}").status, 404)
        self.assertEqual(other.get(BASE + "/workers").json["workers"], [])
        self.assertEqual(self.last_event(), before)
        other.close()


class Refusals(Connector):
    def refused(self, reply, status, error, **more):
        self.assertEqual(reply.status, status, reply.body)
        self.assertEqual(reply.headers["Content-Type"], "application/json")
        self.assertEqual((reply.json["ok"], reply.json["error"]), (False, error))
        for key, value in more.items():
            self.assertEqual(reply.json[key], value, reply.body)

    def test_what_is_refused_before_the_path_is_looked_at_has_the_same_shape(self):
        body = b"{" + b" " * (1 << 20) + b"}"
        self.refused(self.worker.post(f"{BASE}/register", body), 413, "The body is too large.", error_code="too_large")
        self.worker.close()
        reply = self.worker.call("POST", f"{BASE}/register", {}, {"Origin": "http://elsewhere"})
        self.refused(reply, 403, "Requests from that origin are not served.", error_code="forbidden")

    def test_what_is_missing_is_called_by_name(self):
        self.add()
        before = self.last_event()
        call = lambda path, body: self.worker.post(BASE + path, body)
        for path in ("/register", "/heartbeat", "/tasks/VTID-01180/claim", "/tasks/VTID-01180/progress",
                     "/tasks/VTID-01180/release"):
            for body in ({}, {"worker_id": None}, {"worker_id": ""}):
                self.refused(call(path, body), 400, "worker_id is required")
            self.refused(call(path, {"worker_id": 7, "event": "x"}), 400, "worker_id must be a string of 1 to 128 bytes without control characters; it is 7")
        self.refused(call("/tasks/VTID-01180/progress", {"worker_id": "w"}), 400, "event is required")
        self.refused(call("/tasks/VTID-01180/progress", {"worker_id": "w", "event": "x"}), 400, "No active claim for this task")
        self.refused(call("/tasks/VTID-9/progress", {"worker_id": "w", "event": "x"}), 400, "No active claim for this task")
        self.refused(call("/tasks/VTID-9/claim", {"worker_id": "w"}), 404, "Task not found", claimed=False)
        self.refused(call("/heartbeat", {"worker_id": "w"}), 400, "Worker not registered")
        self.refused(self.worker.call("DELETE", BASE + "/register/w"), 404, "Worker not registered")
        self.assertEqual(self.last_event(), before)

    def test_what_is_wrong_is_said_with_its_field_and_what_is_allowed(self):
        self.add()
        before = self.last_event()
        for path, body, words in (
                ("/register", {"worker_id": "w", "max_concurrent": 0}, "max_concurrent must be"),
                ("/register", {"worker_id": "w", "max_concurrent": "1"}, "max_concurrent must be"),
                ("/register", {"worker_id": "w", "capabilities": "node"}, "capabilities must be"),
                ("/register", {"worker_id": "w", "metadata": []}, "metadata must be"),
                ("/register", {"worker_id": "w" * 129}, "worker_id "),
                ("/register", {"worker_id": "a\nb"}, "worker_id "),
                ("/tasks/VTID-01180/claim", {"worker_id": "w", "expires_minutes": 0}, "expires_minutes must be"),
                ("/tasks/VTID-01180/claim", {"worker_id": "w", "expires_minutes": 10081}, "expires_minutes must be"),
                ("/tasks/VTID-01180/claim", {"worker_id": "w", "fence": 7}, "fence must be"),
                ("/tasks/VTID-01180/progress", {"worker_id": "w", "event": 7}, "event must be"),
                ("/tasks/VTID-01180/progress", {"worker_id": "w", "event": "x", "message": []}, "message must be")):
            reply = self.worker.post(BASE + path, body)
            self.assertEqual((reply.status, reply.json["ok"]), (400, False), reply.body)
            self.assertIn(words, reply.json["error"])
        for data in (b"{", b"[]", b"7", b'{"worker_id":"a","worker_id":"b"}'):
            reply = self.worker.call("POST", BASE + "/register", data)
            self.assertEqual((reply.status, reply.json["ok"]), (400, False), reply.body)
        reply = self.worker.call("POST", BASE + "/register", b"worker_id=w", {"Content-Type": "text/plain"})
        self.assertEqual((reply.status, reply.json["ok"]), (415, False), reply.body)
        self.assertEqual(self.last_event(), before)

    def test_fields_that_nobody_knows_are_ignored(self):
        self.add()
        self.register(hostname="a", runtime={"node": 20})
        self.claim(colour="red")
        self.progress("worker.building", tenant="b")

    def test_what_cannot_be_claimed(self):
        self.add(id="parked", state="pending")
        self.add(id="paused", queue="paused")
        self.client.post("/api/queues/paused/pause")
        self.add(id="owned", owner="somebody")
        self.add(id="done", workflow=None)
        self.claim(task="done")
        self.client.post("/api/tasks/done/cancel")
        self.add(id="later", notBefore=4102444800000)
        self.add(id="behind", blockedBy=["parked"])
        for task, status, reason in (("parked", 409, "Task is not waiting for a worker: it is parked (pending)"),
                                     ("later", 409, "Task is not waiting for a worker: its time has not come (scheduled)"),
                                     ("behind", 409, "Task is not waiting for a worker: it waits for other tasks (waiting)"),
                                     ("paused", 409, "Task is in a queue that is paused"),
                                     ("done", 409, "Task is already terminal")):
            reply = self.worker.post(f"{BASE}/tasks/{task}/claim", {"worker_id": "w"})
            self.refused(reply, status, reason, claimed=False, reason=reason)
            self.assertEqual(reply.json.get("task_state", ""), reason[reason.find("(") + 1:-1] if "(" in reason else "")
        self.assertEqual(self.claim("w", "owned", 403)["claimed"], False)
        self.register(max_concurrent=1)
        self.add(id="a")
        self.add(id="b")
        self.claim(task="a")
        self.assertIn("max_concurrent", self.claim(task="b", status=409)["reason"])

    def test_polling_lists_what_a_claim_would_get_and_nothing_else(self):
        self.client.post("/api/queues/paused/pause")
        self.add(id="fine")
        self.add(id="skilled", requires=["gpu"])
        self.add(id="paused", queue="paused")
        self.add(id="own", owner=WORKER)
        self.add(id="another", owner="another")
        self.add(id="agent", executor="claude")
        self.add(id="parked", state="pending")
        for worker, capabilities in ((WORKER, []), ("plain", []), ("skilled", ["gpu", "cpu"])):
            self.register(worker, capabilities=capabilities, max_concurrent=100)
        for worker in (WORKER, "plain", "skilled", "stranger"):
            offered = {task["vtid"] for task in self.get("/tasks/pending?worker_id=" + worker)["tasks"]}
            for task in ("fine", "skilled", "paused", "own", "another", "agent", "parked"):
                reply = self.worker.post(f"{BASE}/tasks/{task}/claim", {"worker_id": worker})
                self.assertEqual(reply.status == 200, task in offered, (worker, task, reply.body))
                if reply.status == 200:
                    self.post(f"/tasks/{task}/release", {"worker_id": worker, "reason": "deferred"})

    def test_what_cannot_be_claimed_hides_nothing_from_a_poll(self):
        self.client.post("/api/queues/paused/pause")
        for number in range(205):
            self.add(id=f"p{number}", queue="paused")
        self.add(id="fine")
        self.assertEqual([task["vtid"] for task in self.get("/tasks/pending?limit=200")["tasks"]], ["fine"])

    def test_a_full_worker_sees_its_own_claims_alone(self):
        self.register(max_concurrent=1)
        self.add(id="a")
        self.add(id="b")
        self.claim(task="a")
        self.assertEqual([task["vtid"] for task in self.get("/tasks/pending?worker_id=" + WORKER)["tasks"]], ["a"])

    def test_what_a_task_requires_is_compared_with_what_its_worker_registered(self):
        self.add(id="skilled", requires=["gpu"])
        self.add(id="agent", executor="claude")
        self.register(capabilities=["cpu"])
        self.assertIn("did not register", self.claim(task="skilled", status=403)["reason"])
        self.assertIn("names an executor", self.claim(task="agent", status=403)["reason"])
        self.register(capabilities=["cpu", "gpu"])
        self.claim(task="skilled")

    def test_disarmed(self):
        self.add()
        self.register()
        self.client.post("/api/execution", {"armed": False})
        reply = self.worker.post(BASE + "/tasks/VTID-01180/claim", {"worker_id": WORKER})
        self.refused(reply, 403, "Autopilot execution is disarmed", claimed=False, error_code="EXECUTION_DISARMED")
        self.post("/heartbeat", {"worker_id": WORKER})
        self.assertEqual(self.get("/tasks/pending")["count"], 1)


class OptIn(Connector):
    flags = ("--set", "auth=open", "--set", "execution.optInQueues=*")

    def test_only_what_may_run_on_its_own(self):
        self.add()
        refused = self.claim(status=409)
        self.assertEqual((refused["claimed"], refused["error_code"]), (False, "NOT_AUTONOMOUS_TASK"))
        self.add(id="VTID-2", metadata={"autonomous_execution": True})
        self.assertEqual([task["vtid"] for task in self.get("/tasks/pending")["tasks"]], ["VTID-2"])
        self.claim(task="VTID-2")


if __name__ == "__main__":
    unittest.main()
