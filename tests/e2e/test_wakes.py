"""Every way in which a task becomes claimable wakes the claim that waits for it: one table of all ways.

A way is a generator. What stands before its `yield` prepares; the `yield` gives the fields of the claim that then waits; what
stands behind it makes the task claimable. A claim that is not woken is answered with nothing when its time is up."""
import concurrent.futures
import time
import unittest

from hang import HANG_S
import stintd

DOOR = "/api/v1/worker/orchestrator"
SOON_MS = 1200  # until a time comes: long enough for a claim to wait before


class Ways:
    """`post`, `patch` and `create` talk to the server; the claim that waits is of worker `w` for queue `q`."""

    def __init__(self, case):
        self.case, self.client = case, case.client

    def call(self, method, path, body=None):
        reply = self.client.call(method, path, body)
        self.case.assertLess(reply.status, 300, (method, path, reply.body))
        return reply.json

    def post(self, path, body=None):
        return self.call("POST", path, body or {})

    def patch(self, body, task="t"):
        return self.call("PATCH", "/api/tasks/" + task, body)

    def create(self, **fields):
        return self.case.create(**{"id": "t", **fields})

    def hold(self, task="t", worker="other", **fields):
        """Another worker claims the task; the proof of it."""
        claim = self.post("/api/tasks/%s/claim" % task, {"workerId": worker, **fields})
        return {"workerId": worker, "fence": claim["fence"]}

    def end(self, how, proof, task="t", **fields):
        return self.post("/api/tasks/%s/%s" % (task, how), {**proof, **fields})

    def soon(self):
        return int(time.time() * 1000) + SOON_MS

    # ---- producers and operators ----

    def created(self):
        yield {}
        self.create()

    def created_in_a_batch(self):
        yield {}
        self.post("/api/tasks/batch", {"tasks": [{"id": "t", "title": "t", "queue": "q"}]})

    def spawned_as_a_session(self):
        yield {"queues": ["sessions"]}
        self.post("/api/sessions/spawn", {"sessionLabel": "t", "prompt": "do it"})

    def unparked(self):
        self.create(state="pending")
        yield {}
        self.post("/api/tasks/t/unpark")

    def created_parked_for_a_claim_of_parked_tasks(self):
        yield {"includeStatuses": ["pending"]}
        self.create(state="pending")

    def failed_and_retried(self):
        self.create(maxAttempts=1)
        self.end("fail", self.hold(), error={"code": "EXECUTION_ERROR", "message": "no"})
        yield {}
        self.post("/api/tasks/t/retry")

    def done_and_retried(self):
        self.create()
        self.end("complete", self.hold())
        yield {}
        self.post("/api/tasks/t/retry")

    def cancelled_and_retried(self):
        self.create()
        self.post("/api/tasks/t/cancel")
        yield {}
        self.post("/api/tasks/t/retry")

    def blocked_and_retried(self):
        self.create()
        self.end("block", self.hold(), error={"code": "STOPPED", "message": "no"})
        yield {}
        self.post("/api/tasks/t/retry")

    def answered(self):
        self.create()
        proof = self.hold()
        self.end("ask", proof, question="which?")
        self.end("release", proof)
        yield {}
        self.post("/api/tasks/t/answer", {"text": "that one"})

    def rejected_at_a_gate(self):
        self.create(gates=["review"])
        self.end("review", self.hold())
        judge = self.case.judge("review")
        yield {}
        reply = judge.post("/api/tasks/t/gates/review", {"verdict": "reject", "reason": "no tests"})
        self.case.assertEqual(reply.status, 200, reply.body)

    def queue_resumed(self):
        self.create()
        self.post("/api/queues/q/pause")
        yield {}
        self.post("/api/queues/q/resume")

    def queue_resumed_for_a_claim_of_several(self):
        self.create()
        self.post("/api/queues/q/pause")
        yield {"queues": ["p", "q"]}
        self.post("/api/queues/q/resume")

    def queue_resumed_for_a_claim_of_all(self):
        self.create()
        self.post("/api/queues/q/pause")
        yield {"queues": []}
        self.post("/api/queues/q/resume")

    def paused_queue_drained(self):
        self.create()
        self.post("/api/queues/q/pause")
        yield {}
        self.post("/api/queues/q/drain")

    # ---- a change of the task ----

    def moved_to_the_queue(self):
        self.create(queue="elsewhere")
        yield {}
        self.patch({"queue": "q"})

    def owner_changed(self):
        self.create(owner="slot-9")
        yield {}
        self.patch({"owner": None})

    def owner_became_the_claimant(self):
        self.create(owner="slot-9")
        yield {"slot": "slot-1"}
        self.patch({"owner": "slot-1"})

    def needs_less(self):
        self.create(requires=["gpu"])
        yield {}
        self.patch({"requires": []})

    def executor_changed(self):
        self.create(executor="claude")
        yield {"executors": ["tests"]}
        self.patch({"executor": "tests"})

    def delay_removed(self):
        self.create(notBefore=int(time.time() * 1000) + 3600000)
        yield {}
        self.patch({"notBefore": None})

    def parents_removed(self):
        self.create(id="parent", queue="elsewhere")
        self.create(blockedBy=["parent"])
        yield {}
        self.patch({"blockedBy": []})

    def opted_in(self):
        self.create(queue="opted")
        yield {"queues": ["opted"]}
        self.patch({"metadata": {"autonomous_execution": True}})

    def given_back_by_its_slot(self):
        self.create(owner="slot-9")
        self.patch({"status": "in-progress"})
        yield {"slot": "slot-9"}
        self.patch({"status": "todo"})

    # ---- other tasks ----

    def parent_done(self):
        self.create(id="parent", queue="elsewhere")
        self.create(blockedBy=["parent"])
        proof = self.hold("parent")
        yield {}
        self.end("complete", proof, "parent")

    def parent_finished_with_a_claim(self):
        self.create(id="parent", queue="elsewhere")
        self.create(blockedBy=["parent"])
        proof = self.hold("parent")
        yield {}
        self.post("/api/claims", {"workerId": "other", "queues": ["elsewhere"], "finish": [
            {"id": "parent", "fence": proof["fence"], "outcome": "complete"}]})

    # ---- its holder ----

    def released(self):
        self.create()
        proof = self.hold()
        yield {}
        self.end("release", proof)

    def released_for_a_while(self):
        self.create()
        self.end("release", self.hold(), delayMs=SOON_MS)
        yield {}

    def holder_shut_down(self):
        self.post("/api/workers/register", {"workerId": "other"})
        self.create()
        self.hold()
        yield {}
        self.call("DELETE", "/api/workers/other")

    def unbound_by_its_holder(self):
        token = self.post("/api/workers/register", {"workerId": "other", "leaseMs": 60000})["token"]
        self.create()
        self.hold()
        token = self.post("/api/workers/heartbeat", {"workerId": "other", "token": token, "boundTasks": ["t"]})["token"]
        yield {}
        self.post("/api/workers/heartbeat", {"workerId": "other", "token": token, "unboundTasks": ["t"]})

    def replaced_in_its_slot(self):
        who = {"slot": "slot-9", "host": "h", "bootId": "b" * 32, "pid": 7, "startTime": 7}
        self.post("/api/workers/register", {"workerId": "other", **who})
        self.create()
        self.hold()
        yield {}
        self.post("/api/workers/register", {"workerId": "next", **who, "pid": 8, "startTime": 8, "replaces": {
            "workerId": "other", "pid": 7, "startTime": 7}})

    # ---- times ----

    def time_came(self):
        self.create(notBefore=self.soon())
        yield {}

    def back_off_over(self):
        self.create()
        self.end("fail", self.hold(), error={"code": "EXECUTION_ERROR", "message": "no", "retryAt": self.soon()})
        yield {}

    def claim_lease_lost(self):
        self.create()
        self.hold(leaseMs=SOON_MS)
        yield {}

    def worker_lease_lost(self):
        token = self.post("/api/workers/register", {"workerId": "other", "leaseMs": SOON_MS})["token"]
        self.create()
        self.hold()
        self.post("/api/workers/heartbeat", {"workerId": "other", "token": token, "leaseMs": SOON_MS, "boundTasks": ["t"]})
        yield {}

    def never_confirmed(self):
        self.post("/api/workers/register", {"workerId": "other", "leaseMs": 60000})
        self.create()
        self.hold()
        yield {}

    # ---- the claimant ----

    def worker_learned_something(self):
        self.create(requires=["gpu"])
        token = self.post("/api/workers/register", {"workerId": "w"})["token"]
        yield {}
        self.post("/api/workers/heartbeat", {"workerId": "w", "token": token, "capabilities": ["gpu"]})

    def executor_appeared(self):
        self.create(executor="claude")
        token = self.post("/api/workers/register", {"workerId": "w", "executors": []})["token"]
        yield {}
        self.post("/api/workers/heartbeat", {"workerId": "w", "token": token, "executors": ["claude"]})

    def worker_moved_into_the_slot(self):
        self.create(owner="slot-1")
        token = self.post("/api/workers/register", {"workerId": "w"})["token"]
        yield {}
        self.post("/api/workers/heartbeat", {"workerId": "w", "token": token, "slot": "slot-1"})

    def full_worker_has_room(self):
        self.post("/api/workers/register", {"workerId": "w", "maxConcurrent": 1})
        self.create(id="first")
        proof = self.hold("first", "w")
        self.create()
        yield {}
        self.end("complete", proof, "first")

    def full_worker_may_have_more(self):
        token = self.post("/api/workers/register", {"workerId": "w", "maxConcurrent": 1})["token"]
        self.create(id="first")
        self.hold("first", "w")
        self.create()
        yield {}
        self.post("/api/workers/heartbeat", {"workerId": "w", "token": token, "maxConcurrent": 2})

    def quarantine_lifted(self):
        for _ in range(3):
            self.post("/api/slots/slot-1/crash")
        self.create(owner="slot-1")
        yield {"slot": "slot-1"}
        self.post("/api/slots/slot-1/unquarantine")

    # ---- the doors of older systems ----

    def enqueued(self):
        yield {}
        self.post("/api/workqueue/enqueue", {"queue": "q", "instructions": "do it"})

    def item_set_ready(self):
        self.create(state="pending")
        yield {}
        self.post("/api/workqueue/update", {"itemId": "t", "patch": {"status": "ready"}})

    def released_by_a_connector(self):
        self.create()
        self.post(DOOR + "/tasks/t/claim", {"worker_id": "other"})
        yield {}
        self.post(DOOR + "/tasks/t/release", {"worker_id": "other", "reason": "deferred"})

    def connector_left(self):
        self.create()
        self.post(DOOR + "/tasks/t/claim", {"worker_id": "other"})
        yield {}
        self.call("DELETE", DOOR + "/register/other")

    def slot_went_offline(self):
        self.create(owner="slot-1")
        self.post("/api/heartbeats", {"slot": "slot-1", "status": "working", "task": "t"})
        self.patch({"status": "in-progress"})
        yield {"slot": "slot-1"}
        self.post("/api/heartbeats", {"slot": "slot-1", "status": "offline"})


    # ---- limits of the queue: task `t` stands behind task `first`, which another worker has ----

    def limit(self, queue="q", **limits):
        self.call("PATCH", "/api/queues/" + queue, limits)

    def behind(self, how="first", **fields):
        """The proof of who has the first one."""
        self.create(id=how, **fields)
        proof = self.hold(how)
        self.create(**fields)
        return proof

    def place_freed_by_an_end(self):
        self.limit(concurrency=1)
        proof = self.behind()
        yield {}
        self.end("complete", proof, "first")

    def place_freed_by_a_loss(self):
        self.limit(concurrency=1)
        self.create(id="first", maxAttempts=1, finishBy=self.soon())
        self.hold("first", leaseMs=SOON_MS)
        self.create()
        yield {}

    def place_freed_by_a_move(self):
        self.limit(concurrency=1)
        self.behind()
        yield {}
        self.patch({"queue": "elsewhere"}, "first")

    def place_freed_by_a_question(self):
        self.limit(concurrency=1)
        proof = self.behind()
        self.end("ask", proof, "first", question="tea or coffee?")
        yield {}
        self.end("release", proof, "first")

    def limit_lifted(self):
        self.limit(concurrency=1)
        self.behind()
        yield {}
        self.limit(concurrency=None)

    def limit_raised(self):
        self.limit(concurrency=1)
        self.behind()
        yield {}
        self.limit(concurrency=2)

    def key_freed(self):
        self.limit(perKey=1)
        proof = self.behind(concurrencyKey="acme")
        yield {}
        self.end("complete", proof, "first")

    def key_given_a_number_of_its_own(self):
        self.limit(perKey=1)
        self.behind(concurrencyKey="acme")
        yield {}
        self.limit(keys={"acme": 2})

    def key_changed(self):
        self.limit(perKey=1)
        self.behind(concurrencyKey="acme")
        yield {}
        self.patch({"concurrencyKey": "bell"})

    def key_of_the_first_changed(self):
        self.limit(perKey=1)
        self.behind(concurrencyKey="acme")
        yield {}
        self.patch({"concurrencyKey": "bell"}, "first")

    def sequence_freed_by_the_end_of_the_begun_one(self):
        self.limit(sequential=True)
        self.create(id="first", concurrencyKey="acme")
        self.end("review", self.hold("first"), "first", result=1)
        self.create(concurrencyKey="acme")
        yield {}
        self.post("/api/tasks/first/cancel")

    def rate_refilled(self):
        self.limit(rate={"count": 1, "perMs": SOON_MS + 500})
        self.behind()
        yield {}

    def rate_of_its_key_refilled(self):
        self.limit(rate={"count": 1, "perMs": SOON_MS + 500, "per": "key"})
        self.behind(concurrencyKey="acme")
        yield {}

    def rate_lifted(self):
        self.limit(rate={"count": 1, "perMs": 3600000})
        self.behind()
        yield {}
        self.limit(rate=None)

    def review_cleared(self):
        self.limit(review=1)
        self.create(id="first")
        self.end("review", self.hold("first"), "first", result=1)
        self.create()
        yield {}
        self.post("/api/tasks/first/gates/review", {"verdict": "pass"})

    def fair_queue_with_a_freed_place(self):
        self.limit(concurrency=1, fair=True)
        proof = self.behind(concurrencyKey="acme")
        yield {}
        self.end("complete", proof, "first")

    def place_freed_where_only_this_claimant_fits(self):
        """Another claim that waits lacks the capability: the permit is for this one."""
        self.limit(concurrency=1)
        proof = self.behind(requires=["gpu"])
        yield {"capabilities": ["gpu"]}
        self.end("complete", proof, "first")

    def budget_of_the_day_raised(self):
        self.limit(budget={"turns": 1})
        self.create(id="first")
        proof = self.hold("first")
        self.end("progress", proof, "first", usage={"turns": 2})
        self.end("complete", proof, "first")
        self.create()
        yield {}
        self.limit(budget={"turns": 100})

    # ---- holds ----

    def hold_account(self, **fields):
        self.post("/api/holds", {"credential": "team", **fields})

    def hold_lifted(self):
        self.hold_account()
        self.create(credential="team")
        yield {}
        self.call("DELETE", "/api/holds/team", {})

    def hold_over(self):
        self.hold_account(until=self.soon())
        self.create(credential="team")
        yield {}

    def hold_over_and_the_first_one_works(self):
        self.hold_account(until=int(time.time() * 1000) + 50)
        self.create(id="first", credential="team")
        self.create(credential="team")
        self.case.until(lambda: [one["state"] for one in self.client.get("/api/holds").json] == ["probing"], "its time comes")
        proof = self.hold("first")
        yield {}
        self.end("complete", proof, "first")

    def hold_over_and_the_first_one_gives_up(self):
        self.hold_account(until=int(time.time() * 1000) + 50)
        self.create(id="first", credential="team")
        self.create(credential="team")
        self.case.until(lambda: [one["state"] for one in self.client.get("/api/holds").json] == ["probing"], "its time comes")
        proof = self.hold("first")
        yield {}
        self.end("release", proof, "first", delayMs=60000)

    def account_changed(self):
        self.hold_account()
        self.create(credential="team")
        yield {}
        self.patch({"credential": "mara"})

    # ---- groups, subtasks, successors, schedules, many at once ----

    def group_closed(self):
        self.create(id="first", queue="elsewhere", group="g")
        self.end("complete", self.hold("first"), "first")
        self.create(blockedByGroups=["g"])
        yield {}
        self.post("/api/groups/g/close")

    def group_ended(self):
        self.create(id="first", queue="elsewhere", group="g")
        self.create(blockedByGroups=["g"])
        self.post("/api/groups/g/close")
        proof = self.hold("first")
        yield {}
        self.end("complete", proof, "first")

    def group_removed_from_the_way(self):
        self.create(id="first", queue="elsewhere", group="g")
        self.create(blockedByGroups=["g"], onParentFailure="run")
        self.post("/api/groups/g/close")
        yield {}
        self.post("/api/tasks/first/cancel")

    def subtask_ended(self):
        self.create()
        claim = self.post("/api/tasks/t/claim", {"workerId": "other"})
        token = self.post("/api/tokens", {"kind": "claim", "task": "t", "fence": claim["fence"]})["token"]
        work = self.case.server.client(token=token)
        self.case.addCleanup(work.close)
        self.case.assertEqual(work.post("/api/tasks", {"id": "part", "title": "part"}).status, 201)
        self.call("PATCH", "/api/tasks/part", {"queue": "elsewhere"})
        waits = self.post("/api/claims", {"workerId": "other", "queues": ["nothing"], "finish": [
            {"id": "t", "fence": claim["fence"], "outcome": "wait"}]})
        self.case.assertEqual(waits["finished"][0]["state"], "waiting", waits)
        proof = self.hold("part")
        yield {}
        self.end("complete", proof, "part")

    def predecessor_ended(self):
        self.create(id="first", uniqueKey="k")
        proof = self.hold("first")
        self.create(uniqueKey="k", onConflict="replace")
        yield {}
        self.end("complete", proof, "first")

    def made_by_a_schedule(self):
        self.post("/api/schedules", {"id": "s", "every": SOON_MS, "task": {"title": "t", "queue": "q"}})
        yield {}

    def made_by_hand_of_a_schedule(self):
        self.post("/api/schedules", {"id": "s", "every": "1h", "task": {"title": "t", "queue": "q"}})
        yield {}
        self.post("/api/schedules/s/run")

    def one_before_of_its_schedule_ended(self):
        self.post("/api/schedules", {"id": "s", "every": "1h", "overlap": "queue", "task": {"title": "t", "queue": "q"}})
        first = self.post("/api/schedules/s/run")["id"]
        proof = self.hold(first)
        self.post("/api/schedules/s/run")
        yield {}
        self.end("complete", proof, first)

    def unparked_with_many(self):
        self.create(state="pending")
        yield {}
        self.post("/api/tasks/bulk", {"filter": {"queue": "q"}, "action": "unpark"})

    def moved_with_many(self):
        self.create(queue="elsewhere")
        yield {}
        self.post("/api/tasks/bulk", {"filter": {"queue": "elsewhere"}, "action": "move", "value": "q"})

    def retried_with_many(self):
        self.create()
        self.post("/api/tasks/t/cancel")
        yield {}
        self.post("/api/tasks/bulk", {"filter": {"queue": "q"}, "action": "retry"})


WAYS = [name for name, value in vars(Ways).items()
        if getattr(getattr(value, "__code__", None), "co_flags", 0) & 0x20]  # the generators


class Wakes(stintd.Case):
    flags = ("--set", "worker.leaseMinMs=100", "--set", "claim.verifyAfterMs=%d" % SOON_MS, "--set", "restart.graceMs=0",
             "--set", "execution.optInQueues=opted", "--set", "retry.baseMs=%d" % SOON_MS)

    def judge(self, gate):
        token = self.client.post("/api/tokens", {"kind": "gate:" + gate, "name": "judge"}).json["token"]
        client = self.server.client(token=token)
        self.addCleanup(client.close)
        return client

    def waits(self, others):
        return b"\nstint_waiting_claims %d\n" % (others + 1) in self.client.get("/metrics").body


class One(stintd.Case):
    """A permit that is freed wakes one claim of those that wait, and one that can use it."""

    def waiting(self):
        for line in self.client.get("/metrics").body.decode().splitlines():
            if line.startswith("stint_waiting_claims "):
                return int(float(line.split()[1]))
        return 0

    def expect_one(self, free, fit, unfit):
        """`fit` and `unfit` are the claims that wait; all of the first could have the task."""
        clients = [self.server.client() for _ in range(len(fit) + len(unfit))]
        for client in clients:
            self.addCleanup(client.close)
        with concurrent.futures.ThreadPoolExecutor(len(clients)) as pool:
            calls = [pool.submit(client.post, "/api/claims", {"queues": ["q"], "waitMs": 60000, **claim})
                     for client, claim in zip(clients, unfit + fit)]
            self.until(lambda: self.waiting() == len(clients), "they wait")
            free()
            self.until(lambda: any(call.done() for call in calls), "nobody is woken")
            got = [call.result() for call in calls if call.done()]
            self.assertEqual([len(reply.json["claims"]) for reply in got], [1])
            self.assertIn(got[0].json["claims"][0]["task"]["workerId"], [claim["workerId"] for claim in fit])
            self.until(lambda: self.waiting() == len(clients) - 1, "the others do not wait any more")
            for _ in clients[1:]:  # let them go
                self.client.call("PATCH", "/api/queues/q", {"concurrency": None, "perKey": None, "rate": None, "sequential": None})
                self.create(requires=[], queue="q")
            for call in calls:
                call.result(HANG_S)

    def behind(self, **fields):
        self.create(id="first", **{key: value for key, value in fields.items() if key != "owner"})
        claim = self.client.post("/api/tasks/first/claim", {"workerId": "other", "capabilities": ["gpu"]}).json
        self.assertIn("fence", claim)
        self.create(id="next", **fields)
        self.create(id="after", **fields)
        return lambda: self.client.post("/api/tasks/first/complete", {"workerId": "other", "fence": claim["fence"]})

    def test_of_three_that_fit_and_two_that_do_not(self):
        self.client.call("PATCH", "/api/queues/q", {"concurrency": 1, "fair": True})
        free = self.behind(requires=["gpu"], concurrencyKey="acme", priority=50)
        self.expect_one(free, [{"workerId": f"gpu-{i}", "capabilities": ["gpu"]} for i in range(3)],
                        [{"workerId": f"cpu-{i}"} for i in range(2)])

    def test_of_a_key_and_a_slot(self):
        self.client.call("PATCH", "/api/queues/q", {"perKey": 1})
        free = self.behind(concurrencyKey="acme", owner="slot-1")
        self.expect_one(free, [{"workerId": "mine", "slot": "slot-1"}], [{"workerId": f"w{i}"} for i in range(3)])

    def test_of_a_rate_and_a_limit_together(self):
        self.client.call("PATCH", "/api/queues/q", {"concurrency": 1, "rate": {"count": 2, "perMs": 3600000, "burst": 2}})
        free = self.behind()
        self.expect_one(free, [{"workerId": f"w{i}"} for i in range(4)], [])


def test_of(name):
    def test(self):
        other = self.server.client()
        self.addCleanup(other.close)
        way = getattr(Ways(self), name)()
        fields = next(way)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(other.post, "/api/claims", {"workerId": "w", "queues": ["q"], "waitMs": 60000, **fields})
            self.until(lambda: self.waits(0) or waiting.done(), "it waits")
            self.assertEqual(list(way), [])
            claims = waiting.result(HANG_S).json["claims"]
        self.assertEqual(len(claims), 1, name)
    return test


for way_name in WAYS:
    setattr(Wakes, "test_a_waiting_claim_is_woken_by_what_was_" + way_name, test_of(way_name))


if __name__ == "__main__":
    unittest.main()
