"""Two features of flow control that meet: limits and holds at the doors of other systems, verdicts in a tree, reports of a lost worker.

tests/meetings.md says for every pair where its test is."""
import os
import re
import unittest

import stintd

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

CONNECTOR = "/api/v1/worker/orchestrator"


class Meeting(stintd.Case):
    clients = ()

    def tearDown(self):
        for client in self.clients:
            client.close()
        super().tearDown()

    def holder(self, kind, **more):
        made = self.client.post("/api/tokens", {"kind": kind, "name": kind.replace(":", "-"), **more})
        self.assertEqual(made.status, 201, made.body)
        client = self.server.client(token=made.json["token"])
        self.clients = [*self.clients, client]
        return client

    def limit(self, **limits):
        reply = self.client.call("PATCH", "/api/queues/q", limits)
        self.assertEqual(reply.status, 200, reply.body)

    def hold(self, account="team"):
        self.assertEqual(self.client.post("/api/holds", {"credential": account}).status, 201)

    def claim(self, worker="w", **fields):
        return self.client.post("/api/claims", {"workerId": worker, "queues": ["q"], **fields}).json["claims"]

    def report(self, how, claim, worker="w", **fields):
        task = claim["task"]["id"]
        return self.client.post(f"/api/tasks/{task}/{how}", {"workerId": worker, "fence": claim["fence"], **fields})

    def state(self, task):
        return self.client.get("/api/tasks/" + task).json["state"]

    def limited(self, reply, limit):
        self.assertEqual((reply.status, reply.json["code"], reply.json["limit"]), (409, "limited", limit), reply.body)


class Doors(Meeting):
    """A limit and a hold bind every new claim at every door."""
    flags = ("--set", "auth=open")

    def setUp(self):
        super().setUp()
        self.old = self.server.client(token="")
        self.clients = [self.old]

    def pending(self):
        return [task["vtid"] for task in self.old.get(CONNECTOR + "/tasks/pending?worker_id=c").json["tasks"]]

    def connector_claim(self, task):
        return self.old.post(f"{CONNECTOR}/tasks/{task}/claim", {"worker_id": "c"})

    def test_a_connector_is_offered_nothing_over_the_limit_and_may_not_claim_it(self):
        self.old.post(CONNECTOR + "/register", {"worker_id": "c"})
        for task in ("VTID-00001", "VTID-00002"):
            self.create(id=task)
        self.limit(concurrency=1)
        self.assertEqual(len(self.pending()), 2)
        claim, = self.claim()
        self.assertEqual(self.pending(), [])
        refused = self.connector_claim("VTID-00002")
        self.assertEqual(refused.status, 409, refused.body)
        self.assertEqual(self.state("VTID-00002"), "ready")
        self.report("complete", claim)
        self.assertEqual(self.pending(), ["VTID-00002"])
        self.assertEqual(self.connector_claim("VTID-00002").status, 200)

    def test_a_connector_is_offered_no_task_of_a_held_account(self):
        self.old.post(CONNECTOR + "/register", {"worker_id": "c"})
        self.create(id="VTID-00001", credential="team")
        self.hold()
        self.assertEqual(self.pending(), [])
        self.assertEqual(self.connector_claim("VTID-00001").status, 409)
        self.client.call("DELETE", "/api/holds/team", {})
        self.assertEqual(self.pending(), ["VTID-00001"])

    def test_a_workqueue_hands_out_nothing_over_the_limit(self):
        self.create(id="a")
        self.create(id="b")
        self.limit(concurrency=1)
        self.claim()
        reply = self.old.post("/api/workqueue/claim-next", {"agentId": "main", "queues": ["q"]})
        self.assertEqual(reply.status, 200, reply.body)
        self.assertIsNone(reply.json["item"])
        self.assertEqual(self.state("b"), "ready")

    def test_a_slot_cannot_move_a_task_of_its_own_over_the_limit(self):
        self.create(id="a")
        self.create(id="mine", owner="slot-1")
        self.limit(concurrency=1)
        claim, = self.claim()
        moved = self.old.call("PATCH", "/api/tasks/mine", {"status": "in-progress"})
        self.limited(moved, "concurrency")
        self.assertEqual(self.state("mine"), "ready")
        self.report("complete", claim)
        self.assertEqual(self.old.call("PATCH", "/api/tasks/mine", {"status": "in-progress"}).status, 200)

    def test_a_slot_cannot_move_a_task_of_a_held_account(self):
        self.create(id="mine", owner="slot-1", credential="team")
        self.create(id="next", owner="slot-2", credential="team")
        self.hold()
        self.limited(self.old.call("PATCH", "/api/tasks/mine", {"status": "in-progress"}), "hold")
        self.assertEqual(self.state("mine"), "ready")
        self.client.call("DELETE", "/api/holds/team", {})
        self.assertEqual(self.old.call("PATCH", "/api/tasks/mine", {"status": "in-progress"}).status, 200)

    def test_a_parked_task_is_not_handed_out_over_the_limit_either(self):
        self.create(id="a")
        self.create(id="parked", state="pending")
        self.limit(concurrency=1)
        self.claim()
        self.assertEqual(self.claim("v", includeStatuses=["pending"]), [])


class Permits(Meeting):
    def test_a_claim_that_is_taken_up_again_takes_no_second_permit(self):
        self.create(id="a")
        self.create(id="b")
        self.limit(rate={"count": 1, "perMs": 3600000, "burst": 2})
        first, = self.claim(max=1)
        again = self.claim(resumeOwned=True, max=1)
        self.assertEqual([claim["task"]["id"] for claim in again], ["a"])
        self.assertNotEqual(again[0]["fence"], first["fence"])
        self.assertEqual([claim["task"]["id"] for claim in self.claim("v")], ["b"])  # the second of two permits

    def test_a_repeated_request_takes_no_second_permit(self):
        self.create(id="a")
        self.create(id="b")
        self.limit(rate={"count": 1, "perMs": 3600000, "burst": 2})
        first, = self.claim(requestId="r")
        self.assertEqual(self.claim(requestId="r")[0]["fence"], first["fence"])
        self.assertEqual([claim["task"]["id"] for claim in self.claim("v")], ["b"])

    def test_a_finish_frees_the_place_for_the_claim_of_the_same_request(self):
        self.create(id="a")
        self.create(id="b")
        self.limit(concurrency=1)
        claim, = self.claim()
        reply = self.client.post("/api/claims", {"workerId": "w", "queues": ["q"], "finish": [
            {"id": "a", "fence": claim["fence"], "outcome": "complete"}]}).json
        self.assertEqual([one["task"]["id"] for one in reply["claims"]], ["b"])

    def test_a_quota_failure_holds_the_claim_of_the_same_request(self):
        self.create(id="a", credential="team")
        self.create(id="b", credential="team")
        claim, = self.claim()
        reply = self.client.post("/api/claims", {"workerId": "w", "queues": ["q"], "finish": [
            {"id": "a", "fence": claim["fence"], "outcome": "fail", "error": {"code": "QUOTA", "message": "limit"}}]}).json
        self.assertEqual(reply["claims"], [])
        self.assertEqual((self.state("a"), self.state("b")), ("ready", "ready"))

    def test_a_failure_that_is_not_to_be_retried_holds_its_account_too(self):
        self.create(id="a", credential="team")
        claim, = self.claim()
        self.report("fail", claim, error={"code": "QUOTA", "message": "limit", "retry": False})
        self.assertEqual(self.state("a"), "failed")
        self.assertEqual([hold["credential"] for hold in self.client.get("/api/holds").json], ["team"])


class LostWorkers(Meeting):
    flags = ("--set", "worker.leaseMinMs=100", "--set", "restart.graceMs=0", "--set", "worker.rescheduleOnExpiry=false",
             "--set", "sweep.intervalMs=20")

    def test_what_a_lost_worker_may_still_do_counts_until_somebody_acts(self):
        self.create(id="a")
        self.create(id="b")
        self.limit(concurrency=1)
        token = self.client.post("/api/workers/register", {"workerId": "w", "leaseMs": 100}).json["token"]
        self.claim()
        beat = self.client.post("/api/workers/heartbeat", {"workerId": "w", "token": token, "leaseMs": 100, "boundTasks": ["a"]})
        self.assertEqual(beat.status, 200, beat.body)
        self.until(lambda: self.client.get("/api/workers/w").json["state"] == "inactive", "the worker is not lost")
        self.assertEqual(self.claim("v"), [])
        self.assertIn("1", self.client.get("/api/tasks/b/why").json["text"])
        self.client.post("/api/tasks/a/cancel", {})
        self.assertEqual([claim["task"]["id"] for claim in self.claim("v")], ["b"])


class Trees(Meeting):
    def begin(self, worker, task, **fields):
        """A task that the holder of the token has, and a client with the token of its claim."""
        self.create(id=task, **fields)
        claim = worker.post(f"/api/tasks/{task}/claim", {"workerId": "w"}).json
        token = worker.post("/api/tokens", {"kind": "claim", "task": task, "fence": claim["fence"]}).json["token"]
        work = self.server.client(token=token)
        self.clients = [*self.clients, work]
        return claim, work

    def test_who_worked_in_a_tree_judges_no_task_of_it(self):
        """The admin may do both, work and judge, but not in one tree."""
        worker, approver = self.holder("worker"), self.holder("approver")
        claim, work = self.begin(worker, "p", gates=["review"])
        made = work.post("/api/tasks", {"id": "c", "title": "a part", "gates": ["review"]})
        self.assertEqual(made.status, 201, made.body)
        held = self.client.post("/api/tasks/c/claim", {"workerId": "o"}).json
        self.client.post("/api/tasks/c/review", {"workerId": "o", "fence": held["fence"]})
        worker.post("/api/tasks/p/review", {"workerId": "w", "fence": claim["fence"]})
        self.assertEqual((self.state("p"), self.state("c")), ("review", "review"))
        for task in ("c", "p"):  # it has held c, and c is a part of p
            refused = self.client.post(f"/api/tasks/{task}/gates/review", {"verdict": "pass"})
            self.assertEqual(refused.status, 403, refused.body)
            self.assertEqual(approver.post(f"/api/tasks/{task}/gates/review", {"verdict": "pass"}).status, 200)
        self.assertEqual((self.state("p"), self.state("c")), ("done", "done"))

    def test_a_final_failure_goes_down_the_tree(self):
        worker = self.holder("worker")
        claim, work = self.begin(worker, "p", maxAttempts=1)
        for child in ("c1", "c2"):
            work.post("/api/tasks", {"id": child, "title": "a part"})
        worker.post("/api/tasks/p/fail", {"workerId": "w", "fence": claim["fence"], "error": {"code": "EXECUTION_ERROR"}})
        self.assertEqual([self.state(task) for task in ("p", "c1", "c2")], ["failed", "cancelled", "cancelled"])

    def test_work_in_a_task_reads_the_results_of_its_parents_and_its_children_and_nothing_else(self):
        worker = self.holder("worker")
        self.create(id="before")
        claim, = self.claim()
        self.report("complete", claim, result="the plan")
        self.create(id="other")
        _, work = self.begin(worker, "p", blockedBy=["before"])
        work.post("/api/tasks", {"id": "c", "title": "a part"})
        own = work.get("/api/tasks/p").json
        self.assertEqual([(one["id"], one["result"]) for one in own["parents"]], [("before", "the plan")])
        self.assertEqual([one["id"] for one in own["children"]], ["c"])
        self.assertEqual(work.get("/api/tasks/c").json["parent"], "p")
        self.assertEqual(work.call("PATCH", "/api/tasks/c", {"metadata": {"x": 1}}).status, 404)  # to read, and no more
        self.assertEqual(work.get("/api/tasks/other").status, 404)


class Templates(Meeting):
    """What keeps a planned time from making its task is told with the time, and the next one may make its own."""
    flags = ("--set", "sweep.intervalMs=20")

    def skips(self, name, **task):
        made = self.client.post("/api/schedules", {"id": name, "every": 1000, "overlap": "allow", "task": {
            "title": "again", "queue": "q", **task}})
        self.assertEqual(made.status, 201, made.body)
        return lambda: [one["reason"] for one in self.client.get("/api/schedules/" + name).json["history"] if one["outcome"] == "skipped"]

    def test_each_reason_is_told(self):
        self.create(id="holder", uniqueKey="k")
        self.create(id="member", group="g")
        self.client.post("/api/groups/g/close", {})
        self.client.call("PATCH", "/api/queues/full", {"maxOpen": 1})
        self.create(queue="full")
        self.client.post("/api/queues/draining/drain", {})
        reasons = {
            "key": (self.skips("key", uniqueKey="k"), "task_exists"),
            "group": (self.skips("group", group="g"), "group_closed"),
            "full": (self.skips("full", queue="full"), "max_open"),
            "draining": (self.skips("draining", queue="draining"), "queue_draining"),
        }
        for name, (told, reason) in reasons.items():
            self.until(told, name)
            self.assertEqual(told()[0], reason)
        self.client.post("/api/queues/draining/resume", {})
        self.until(lambda: self.client.get("/api/tasks?schedule=draining").json, "the next one is made")


class List(unittest.TestCase):
    def test_every_meeting_has_its_test(self):
        with open(os.path.join(TOP, "tests", "meetings.md")) as file:
            rows = re.findall(r"^\| .* \| (tests/\S+) \| (\w+) \|$", file.read(), re.M)
        self.assertGreaterEqual(len(rows), 39)
        for path, name in rows:
            with open(os.path.join(TOP, path)) as file:
                self.assertRegex(file.read(), r"\b" + name + r"\(", path)


class Fixed(Meeting):
    def test_what_is_fixed_at_creation_is_refused_in_a_change(self):
        self.create(id="a", group="g", uniqueKey="k", onConflict="reject", uniqueForMs=1000)
        for field, value in (("group", "h"), ("parent", "b"), ("onConflict", "replace"), ("uniqueForMs", 5)):
            reply = self.client.call("PATCH", "/api/tasks/a", {field: value})
            self.assertEqual(reply.status, 422, reply.body)
            self.assertEqual([error["field"] for error in reply.json["errors"]], [field])
        self.assertEqual(self.client.call("PATCH", "/api/tasks/a", {"concurrencyKey": "acme", "credential": "team"}).status, 200)

    def test_a_unique_key_is_one_for_all_queues_and_callers(self):
        self.create(id="a", uniqueKey="k")
        producer = self.holder("producer")
        again = producer.post("/api/tasks", {"title": "x", "queue": "elsewhere", "uniqueKey": "k"})
        self.assertEqual((again.status, again.json["id"], again.json["deduplicated"]), (200, "a", True))


if __name__ == "__main__":
    unittest.main()
