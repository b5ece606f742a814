"""Whose a worker is; an instance's own token; a child's; and what each of them sees."""
import http.client
import json
import subprocess
import tempfile
import threading
import time
import unittest

from hang import HANG_S
import stintd
import test_tokens
from test_tokens import TokenCase


class Case(TokenCase):
    def create(self, task, queue="q", **fields):
        reply = self.admin.post("/api/tasks", {"id": task, "title": task, "queue": queue, **fields})
        self.assertEqual(reply.status, 201, reply.body)

    def claim(self, client, worker, **fields):
        reply = client.post("/api/claims", {"workerId": worker, **fields})
        self.assertEqual(reply.status, 200, reply.body)
        claim, = reply.json["claims"]
        return claim

    def state(self, task):
        return self.admin.get("/api/tasks/" + task).json["state"]

    def refused(self, reply, status, code):
        self.assertEqual((reply.status, reply.json["code"]), (status, code), reply.body)


class Owners(Case):
    def setUp(self):
        super().setUp()
        self.honest, self.hostile = self.holder("worker", "honest"), self.holder("worker", "hostile")

    def test_a_worker_belongs_to_the_token_that_used_it_first(self):
        registered = self.honest.post("/api/workers/register", {"workerId": "w"}).json
        before = self.last_event()
        for path, body in (("/api/workers/register", {"workerId": "w"}),
                           ("/api/workers/heartbeat", {"workerId": "w", "token": registered["token"]}),
                           ("/api/workers/heartbeat", {"workerId": "w"}),
                           ("/api/claims", {"workerId": "w"})):
            reply = self.hostile.post(path, body)
            self.refused(reply, 403, "forbidden")
            self.assertNotIn(registered["token"].encode(), reply.body)
        self.refused(self.hostile.call("DELETE", "/api/workers/w"), 404, "not_found")
        self.refused(self.hostile.get("/api/workers/w"), 404, "not_found")
        self.assertEqual(self.last_event(), before)
        self.assertEqual(self.honest.get("/api/workers/w").json["state"], "active")
        beat = self.honest.post("/api/workers/heartbeat", {"workerId": "w", "token": registered["token"]})
        self.assertEqual(beat.status, 200)

    def test_so_it_is_after_a_restart_and_for_a_plain_claimant(self):
        self.honest.post("/api/workers/register", {"workerId": "w"})
        self.create("t")
        claim = self.claim(self.honest, "plain")
        self.server.kill()
        self.server.start()
        for client in (self.honest, self.hostile):
            client.close()
        for worker in ("w", "plain"):
            self.refused(self.hostile.post("/api/claims", {"workerId": worker}), 403, "forbidden")
        done = self.honest.post("/api/tasks/t/complete", {"workerId": "plain", "fence": claim["fence"]})
        self.assertEqual(done.status, 200)
        self.assertEqual(self.hostile.post("/api/claims", {"workerId": "plain"}).status, 200, "it is free again")

    def test_nobody_reports_on_what_another_holds(self):
        self.create("t")
        claim = self.claim(self.honest, "w")
        before = self.last_event()
        for worker in ("w", "mine"):
            body = {"workerId": worker, "fence": claim["fence"]}
            for verb, more in (("progress", {}), ("complete", {"result": 1}), ("release", {}), ("review", {}),
                               ("fail", {"error": {"message": "x"}}), ("ask", {"question": "?"})):
                self.refused(self.hostile.post("/api/tasks/t/" + verb, {**body, **more}), 404, "not_found")
            reply = self.hostile.post("/api/claims", {
                "workerId": worker, "finish": [{"id": "t", "fence": claim["fence"], "outcome": "complete"}]})
            self.assertIn(b'"code":"not_found"', reply.body)
        self.assertEqual(self.last_event(), before)
        self.assertEqual(self.state("t"), "claimed")
        self.refused(self.hostile.post("/api/tasks/t/claim", {"workerId": "mine"}), 409, "claimed_by_other")

    def test_nobody_reads_or_writes_the_log_of_what_another_holds(self):
        self.create("t")
        line = {"fence": self.claim(self.honest, "w")["fence"], "offset": 0, "data": "secret"}
        self.assertEqual(self.honest.post("/api/tasks/t/log", line).status, 200)
        for more in ({}, {"workerId": "w"}, {"workerId": "mine"}, {"fence": "1"}, {"offset": 7}):
            self.refused(self.hostile.post("/api/tasks/t/log", {**line, **more}), 404, "not_found")
        self.assertEqual(self.honest.get("/api/tasks/t/log").json["data"], "secret")
        for accept in ("application/json", "text/plain"):
            self.refused(self.hostile.call("GET", "/api/tasks/t/log", None, {"Accept": accept}), 404, "not_found")
        self.honest.post("/api/tasks/t/complete", {"workerId": "w", "fence": line["fence"]})
        self.refused(self.hostile.get("/api/tasks/t/log"), 404, "not_found")
        self.assertEqual(self.holder("viewer").get("/api/tasks/t/log").json["data"], "secret")
        self.refused(self.holder("viewer", queues=["elsewhere"]).get("/api/tasks/t/log"), 404, "not_found")

    def test_a_finished_task_is_not_shown_to_whoever_guesses_its_fence(self):
        self.create("t", instructions="secret")
        claim = self.claim(self.honest, "w")
        body = {"workerId": "w", "fence": claim["fence"], "result": 1}
        self.assertEqual(self.honest.post("/api/tasks/t/complete", body).status, 200)
        reply = self.hostile.post("/api/tasks/t/complete", body)
        self.refused(reply, 404, "not_found")
        self.assertEqual(self.honest.post("/api/tasks/t/complete", body).status, 200, "its holder may repeat it")

    def test_operators_send_anybodys_worker_away(self):
        self.honest.post("/api/workers/register", {"workerId": "w"})
        operator = self.holder("operator")
        self.assertEqual(operator.post("/api/workers/w/quiet").status, 200)
        reply = operator.call("DELETE", "/api/workers/w?how=terminated")
        self.assertEqual((reply.status, reply.json["ended"]), (200, "terminated"))


class Instances(Case):
    def setUp(self):
        super().setUp()
        self.parent = self.holder("worker", "ci", queues=["q"])
        self.registered = self.parent.post("/api/workers/register", {"workerId": "w/1 ü_"}).json
        self.instance = self.client(self.registered["credential"])

    def test_an_instance_gets_a_token_that_is_told_once(self):
        self.assertRegex(self.registered["credential"], r"^stint_worker_[0-9a-f]{16}\.[0-9a-z]+\.[0-9a-f]+\.1-[0-9a-f]{8}_[\w-]{43}$")
        beat = self.instance.post("/api/workers/heartbeat", {"workerId": "w/1 ü_", "token": self.registered["token"]})
        self.assertEqual(beat.status, 200)
        self.assertNotIn("credential", beat.json)
        self.assertEqual(len(self.admin.get("/api/tokens").json), 1, "it costs no row")

    def test_it_acts_as_its_worker_and_no_other(self):
        self.create("t")
        self.refused(self.instance.post("/api/claims", {"workerId": "other"}), 403, "forbidden")
        self.refused(self.instance.post("/api/workers/register", {"workerId": "other"}), 403, "forbidden")
        claim = self.claim(self.instance, "w/1 ü_")
        self.assertEqual(self.state("t"), "claimed")
        event = self.admin.get("/api/events?after=0&limit=100").json["events"][-1]
        self.assertEqual((event["type"], event["actor"]), ("task.claimed", "worker:ci"))
        done = self.parent.post("/api/tasks/t/complete", {"workerId": "w/1 ü_", "fence": claim["fence"]})
        self.assertEqual(done.status, 200, "both may act for it")

    def test_it_appends_to_the_logs_of_its_own_claims_alone(self):
        self.create("mine")
        line = {"fence": self.claim(self.instance, "w/1 ü_")["fence"], "offset": 0, "data": "x"}
        self.assertEqual(self.instance.post("/api/tasks/mine/log", line).status, 200)
        self.create("sibling")
        line["fence"] = self.claim(self.parent, "other")["fence"]
        self.refused(self.instance.post("/api/tasks/sibling/log", line), 409, "stale_claim")
        self.assertEqual(self.parent.post("/api/tasks/sibling/log", line).status, 200)

    def test_it_has_the_queues_of_its_parent(self):
        self.create("t", "elsewhere")
        self.assertEqual(self.instance.post("/api/claims", {"workerId": "w/1 ü_"}).json["claims"], [])
        reply = self.instance.post("/api/claims", {"workerId": "w/1 ü_", "queues": ["elsewhere"]})
        self.refused(reply, 403, "forbidden")

    def test_an_admins_instance_is_a_worker_and_no_admin(self):
        credential = self.admin.post("/api/workers/register", {"workerId": "a"}).json["credential"]
        client = self.client(credential)
        self.assertEqual(client.post("/api/claims", {"workerId": "a"}).status, 200)
        self.assertEqual(client.get("/api/tokens").status, 403)
        self.assertEqual(client.post("/api/tokens", {"kind": "admin", "name": "x"}).status, 403)


class ShortAttempt(Case):
    """The token comes with the claim."""

    def setUp(self):
        super().setUp()
        self.parent = self.holder("worker", "ci")
        self.create("t")

    def claims(self, **fields):
        reply = self.parent.post("/api/claims", {"workerId": "w", "tokens": True, **fields})
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json["claims"]

    def test_a_claim_carries_its_token(self):
        claim, = self.claims()
        made = self.parent.post("/api/tokens", {"kind": "claim", "task": "t", "fence": claim["fence"]}).json
        self.assertEqual(claim["token"], made["token"], "the one that is made for it by hand")
        child = self.client(claim["token"])
        self.assertEqual(child.get("/api/tasks/t").json["id"], "t")
        self.assertEqual(child.post("/api/tasks/t/complete", {}).json["state"], "done")
        self.assertEqual(child.get("/api/tasks/t").status, 401)

    def test_who_does_not_ask_gets_none(self):
        self.assertNotIn("token", self.claims(tokens=False)[0])

    def test_a_claim_that_waited_carries_its_token(self):
        self.claims()
        got = []
        waiting = threading.Thread(target=lambda: got.extend(self.claims(waitMs=60000)))
        waiting.start()
        until = time.monotonic() + HANG_S
        while b"\nstint_waiting_claims 1\n" not in self.admin.get("/metrics").body:
            self.assertLess(time.monotonic(), until)
        self.create("later")
        waiting.join()
        self.assertEqual(self.client(got[0]["token"]).get("/api/tasks/later").status, 200)

    def test_the_same_request_again_makes_a_new_token_and_the_old_one_is_dead(self):
        first, = self.claims(requestId="r")
        second, = self.claims(requestId="r")
        self.assertEqual(first["fence"], second["fence"])
        self.assertNotEqual(first["token"], second["token"])
        self.assertEqual(self.client(first["token"]).get("/api/tasks/t").status, 401)
        self.assertEqual(self.client(second["token"]).get("/api/tasks/t").status, 200)
        self.server.kill()
        self.server.start()
        self.assertEqual(self.client(first["token"]).get("/api/tasks/t").status, 401, "after a restart, too")
        self.assertEqual(self.client(second["token"]).get("/api/tasks/t").status, 200)

    def test_a_repeat_without_tokens_leaves_the_one_that_was_given(self):
        first, = self.claims(requestId="r")
        self.claims(requestId="r", tokens=False)
        self.assertEqual(self.client(first["token"]).get("/api/tasks/t").status, 200)


class Children(Case):
    def setUp(self):
        super().setUp()
        self.parent = self.holder("worker", "ci")
        self.create("t", instructions="mine")
        self.create("u", instructions="theirs")
        self.taken = self.claim(self.parent, "w")
        self.fence = self.taken["fence"]
        reply = self.parent.post("/api/tokens", {"kind": "claim", "task": "t", "fence": self.fence})
        self.assertEqual(reply.status, 201, reply.body)
        self.made = reply.json
        self.child = self.client(self.made["token"])

    def test_a_holder_makes_a_token_for_its_claim(self):
        self.assertRegex(self.made["token"], r"^stint_claim_[0-9a-f]{16}\.[0-9a-z]+\.[0-9a-z]+\.1-[0-9a-f]{8}_[\w-]{43}$")
        self.assertEqual((self.made["task"], self.made["fence"], self.made["workerId"]), ("t", self.fence, "w"))
        self.assertEqual(len(self.admin.get("/api/tokens").json), 1, "it costs no row")
        other = self.holder("worker")
        body = {"kind": "claim", "task": "t", "fence": self.fence}
        self.refused(other.post("/api/tokens", body), 404, "not_found")
        self.refused(self.parent.post("/api/tokens", {**body, "task": "u"}), 404, "not_found")
        self.refused(self.parent.post("/api/tokens", {**body, "fence": "1"}), 409, "stale_claim")
        self.refused(self.child.post("/api/tokens", body), 403, "forbidden")

    def test_a_child_does_its_work_with_it(self):
        self.assertEqual(self.child.get("/api/tasks/t").json["instructions"], "mine")
        self.assertEqual(self.child.get("/api/tasks/t/why").status, 200)
        events = self.child.get("/api/tasks/t/events").json["events"]
        self.assertEqual([event["task"] for event in events], ["t", "t"])
        self.assertEqual(self.child.post("/api/tasks/t/progress", {"note": "half"}).status, 200)
        self.assertEqual(self.child.post("/api/tasks/t/ask", {"question": "go?"}).json["state"], "asking")
        self.assertEqual(self.holder("approver").post("/api/tasks/t/answer", {"text": "go"}).status, 200)
        done = self.child.post("/api/tasks/t/complete", {"result": 7, "workerId": "w", "fence": self.fence})
        self.assertEqual((done.status, done.json["state"]), (200, "done"))
        event = self.admin.get("/api/events?after=0&limit=100").json["events"][-1]
        self.assertEqual((event["actor"], event["worker"]), ("claim:ci", "w"))
        self.assertEqual(self.child.get("/api/tasks/t").status, 401, "and then it has ended")

    def beat(self, **fields):
        reply = self.parent.post("/api/workers/heartbeat", {"workerId": "w", "leaseMs": 60000, **fields})
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json

    def test_under_a_supervisor_the_word_of_the_work_is_a_report(self):
        token = self.beat(boundTasks=["t"])["token"]
        for path, said, report in (
                ("complete", {"result": 7}, {"outcome": "complete", "result": 7}),
                ("review", {"result": 8, "evidence": ["pr"]}, {"outcome": "review", "result": 8, "evidence": ["pr"]}),
                ("release", {"reason": "tired"}, {"outcome": "release"}),
                ("fail", {"error": {"message": "no"}}, {"outcome": "fail", "error": {
                    "code": "OTHER", "message": "no", "class": "task"}})):
            reply = self.child.post("/api/tasks/t/" + path, said)
            self.assertEqual((reply.status, reply.json["state"], reply.json["report"]), (200, "running", report))
            event = self.admin.get("/api/tasks/t/events").json["events"][-1]
            self.assertEqual((event["type"], event["data"]["reported"]), ("task.progressed", True))
        before = self.last_event()
        self.assertEqual(self.child.post("/api/tasks/t/fail", said).json["report"], report)
        self.assertEqual(self.last_event(), before, "the same word again changes nothing")
        self.assertEqual(self.beat(token=token)["commands"], [{"type": "reported", "task": "t"}])
        done = self.parent.post("/api/tasks/t/complete", {"workerId": "w", "fence": self.fence, "result": 9})
        self.assertEqual((done.json["state"], done.json["result"]), ("done", 9))
        self.assertNotIn("report", self.admin.get("/api/tasks/t").json)

    def test_so_it_is_when_it_says_so_by_a_status(self):
        self.beat(boundTasks=["t"])
        for status, outcome in (("done", "complete"), ("review", "review"), ("todo", "release"), ("blocked", "block")):
            reply = self.child.call("PATCH", "/api/tasks/t", {"status": status})
            self.assertEqual((reply.status, reply.json["state"]), (200, "running"), reply.body)
            self.assertEqual(self.admin.get("/api/tasks/t").json["report"]["outcome"], outcome)

    def test_a_report_outlives_the_server(self):
        self.beat(boundTasks=["t"])
        self.child.post("/api/tasks/t/complete", {"result": 7})
        self.server.kill()
        self.server.start()
        admin = self.server.client()
        self.clients.append(admin)
        self.assertEqual(admin.get("/api/tasks/t").json["report"], {"outcome": "complete", "result": 7})

    def test_the_next_attempt_knows_nothing_of_it(self):
        self.beat(boundTasks=["t"])
        self.child.post("/api/tasks/t/complete", {"result": 7})
        released = self.parent.post("/api/tasks/t/release", {"workerId": "w", "fence": self.fence})
        self.assertEqual((released.json["state"], "report" in released.json), ("ready", False))
        again = self.parent.post("/api/tasks/t/claim", {"workerId": "w"}).json
        self.assertNotIn("report", again["task"])
        self.assertNotIn("report", self.admin.get("/api/tasks/t").json)

    def ended(self, verb, **body):
        reply = self.parent.post("/api/tasks/t/" + verb, {"workerId": "w", "fence": self.fence, "byReport": True, **body})
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json

    def test_an_attempt_ends_by_its_report(self):
        self.beat(boundTasks=["t"])
        self.child.post("/api/tasks/t/complete", {"result": 7})
        error = {"code": "EXECUTION_ERROR", "message": "exit status 1", "details": {"exit": 1}}
        task = self.ended("fail", error=error)
        self.assertEqual((task["state"], task["result"], task["error"]), ("done", 7, None))
        self.assertEqual(self.ended("fail", error=error)["state"], "done", "again: as the first time")
        self.refused(self.parent.post("/api/tasks/t/fail", {"workerId": "w", "fence": self.fence, "error": error}),
                     409, "already_terminal")

    def test_what_the_supervisor_saw_go_wrong_beats_a_success(self):
        self.beat(boundTasks=["t"])
        self.child.post("/api/tasks/t/complete", {"result": 7})
        task = self.ended("fail", error={"code": "TASK_TIMEOUT", "message": "too long"})
        self.assertEqual((task["state"], task["error"]["code"]), ("scheduled", "TASK_TIMEOUT"))

    def test_a_report_of_failure_beats_an_exit_of_0_and_finish_names_the_state(self):
        self.beat(boundTasks=["t"])
        self.child.post("/api/tasks/t/fail", {"error": {"code": "MINE", "message": "no", "retry": False}})
        reply = self.parent.post("/api/claims", {"workerId": "w", "tokens": True, "finish": [
            {"id": "t", "fence": self.fence, "outcome": "complete", "result": 1, "byReport": True}]}).json
        self.assertEqual(reply["finished"], [{"id": "t", "ok": True, "state": "failed"}])
        self.assertEqual(self.admin.get("/api/tasks/t").json["error"]["code"], "MINE")
        child = self.client(reply["claims"][0]["token"])
        self.assertEqual(child.get("/api/tasks/u").json["instructions"], "theirs", "the next one, with its token")

    def test_it_is_for_nothing_else(self):
        before = self.last_event()
        self.refused(self.child.get("/api/tasks/u"), 404, "not_found")
        self.refused(self.child.post("/api/tasks/u/complete"), 404, "not_found")
        self.refused(self.child.get("/api/tasks"), 403, "forbidden")
        self.refused(self.child.get("/api/events"), 403, "forbidden")
        self.refused(self.child.post("/api/tasks", {"title": "more", "owner": "slot-1"}), 422, "invalid")  # subtasks have none
        self.refused(self.child.post("/api/claims", {"workerId": "w"}), 403, "forbidden")
        self.refused(self.child.post("/api/tasks/t/cancel"), 403, "forbidden")
        self.refused(self.child.post("/api/tasks/t/complete", {"fence": "1"}), 403, "forbidden")
        self.refused(self.child.post("/api/tasks/t/complete", {"workerId": "v"}), 403, "forbidden")
        self.assertEqual(self.last_event(), before)

    def test_an_admin_makes_one_for_anybodys_claim_and_it_is_noted(self):
        made = self.admin.post("/api/tokens", {"kind": "claim", "task": "t", "fence": self.fence})
        self.assertEqual(made.status, 201)
        event = self.admin.get("/api/events?after=0&limit=100").json["events"][-1]
        self.assertEqual((event["type"], event["data"]["object"], event["data"]["kind"]),
                         ("server.audited", "t", "claim"))
        done = self.client(made.json["token"]).post("/api/tasks/t/complete", {"result": 1})
        self.assertEqual((done.status, done.json["state"]), (200, "done"))

    def test_a_task_that_was_taken_up_again_has_other_children(self):
        again = self.claim(self.parent, "w", resumeOwned=True)
        self.assertEqual(again["task"]["id"], "t")
        self.assertEqual(self.child.get("/api/tasks/t").status, 401)


class Sight(Case):
    def test_a_worker_lists_what_it_may_claim_and_what_it_holds(self):
        for task, queue in (("a", "q"), ("b", "q"), ("c", "q"), ("d", "elsewhere")):
            self.create(task, queue)
        worker, other = self.holder("worker", queues=["q"]), self.holder("worker")
        self.assertEqual([task["id"] for task in worker.get("/api/tasks").json], ["a", "b", "c"])
        self.claim(worker, "w")
        self.claim(other, "v", queues=["q"])
        self.assertEqual({task["id"] for task in worker.get("/api/tasks").json}, {"a", "c"})
        self.assertEqual([worker.get("/api/tasks/" + task).status for task in "abcd"], [200, 404, 200, 404])
        self.assertEqual(worker.get("/api/tasks/absent").body, worker.get("/api/tasks/b").body)

    def test_a_viewer_of_certain_queues_sees_those(self):
        for task, queue in (("a", "q"), ("b", "elsewhere")):
            self.create(task, queue)
        viewer = self.holder("viewer", queues=["q"])
        self.assertEqual([task["id"] for task in viewer.get("/api/tasks").json], ["a"])
        self.assertEqual([viewer.get("/api/tasks/" + task).status for task in "ab"], [200, 404])
        self.assertEqual([viewer.get(f"/api/tasks/{task}/events").status for task in "ab"], [200, 404])
        self.assertEqual([queue["name"] for queue in viewer.get("/api/queues").json], ["q"])
        self.assertEqual(viewer.get("/api/workers").json, [])
        self.admin.post("/api/slots/slot-1/crash")
        self.assertEqual(viewer.get("/api/slots").json, [])
        self.assertEqual(len(self.holder("viewer").get("/api/slots").json), 1)
        page = viewer.get("/api/events?after=0&limit=100").json
        self.assertEqual([event["task"] for event in page["events"]], ["a"])
        self.assertEqual(page["next"], str(self.last_event()), "it need not look at the others again")

    def test_pages_of_such_events_go_on_past_what_is_left_out(self):
        for i in range(30):
            self.create(f"t{i}", "q" if i % 3 == 0 else "elsewhere")
        viewer, after, seen = self.holder("viewer", queues=["q"]), "0", []
        for _ in range(20):
            page = viewer.get(f"/api/events?after={after}&limit=3").json
            seen += [event["task"] for event in page["events"]]
            after = page["next"]
        self.assertEqual(seen, [f"t{i}" for i in range(0, 30, 3)])

    def test_a_stream_of_certain_queues_tells_of_those_alone(self):
        minted = self.mint("viewer", queues=["q"])
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=HANG_S)
        connection.request("GET", "/api/events?after=0", headers={
            "Authorization": "Bearer " + minted["token"], "Accept": "text/event-stream"})
        stream = connection.getresponse()
        for i in range(6):
            self.create(f"t{i}", "q" if i % 2 == 0 else "elsewhere")
        seen = []
        while len(seen) < 3:
            line = stream.fp.readline()
            self.assertTrue(line)
            if line.startswith(b"data: "):
                seen.append(json.loads(line[6:])["task"])
        self.assertEqual(seen, ["t0", "t2", "t4"])
        connection.close()


class Open(unittest.TestCase):
    """auth=open: old clients without a token."""

    def setUp(self):
        self.server = stintd.Server("--set", "auth=open", "--set", "limits.authFailuresPerS=1000")
        self.admin, self.nobody = self.server.client(), self.server.client(token="")
        self.clients = [self.admin, self.nobody]

    def tearDown(self):
        for client in self.clients:
            client.close()
        self.server.end()

    ask, client = TokenCase.ask, TokenCase.client

    def test_it_is_said_at_the_start(self):
        self.assertIn("auth is open", self.server.said())

    def test_work_is_done_without_a_token(self):
        self.assertEqual(self.nobody.post("/api/tasks", {"id": "t", "title": "x"}).status, 201)
        claim, = self.nobody.post("/api/claims", {"workerId": "w"}).json["claims"]
        done = self.nobody.post("/api/tasks/t/complete", {"workerId": "w", "fence": claim["fence"]})
        self.assertEqual(done.status, 200)
        event = self.nobody.get("/api/events?after=0&limit=100").json["events"][-1]
        self.assertEqual(event["actor"], "open")
        self.assertNotIn("credential", self.nobody.post("/api/workers/register", {"workerId": "v"}).json)

    def test_the_token_of_a_claim_is_good_for_that_claim(self):
        for task in ("t", "u"):
            self.nobody.post("/api/tasks", {"id": task, "title": "x"})
        claim, = self.nobody.post("/api/claims", {"workerId": "w", "tokens": True}).json["claims"]
        made = self.nobody.post("/api/tokens", {"kind": "claim", "task": "t", "fence": claim["fence"]})
        self.assertEqual(made.status, 201)
        for token in (claim["token"], made.json["token"]):
            work = self.client(token)
            self.assertEqual(work.post("/api/tasks/t/progress", {"note": "half"}).status, 200)
            self.assertEqual(work.get("/api/tasks/u").status, 404)
        event = self.nobody.get("/api/tasks/t/events?limit=100").json["events"][-1]
        self.assertEqual(event["actor"], "claim:open")
        self.assertEqual(self.client(claim["token"]).post("/api/tasks/t/complete", {}).status, 200)
        self.assertEqual(self.client(claim["token"]).get("/api/tasks/t").status, 401)

    def test_but_not_what_an_admin_does(self):
        test_tokens.EveryRoute.check_kind(self, self.nobody, "open")

    def test_a_wrong_token_is_still_wrong(self):
        self.assertEqual(self.client("stint_admin_0_x").get("/api/tasks").status, 401)

    def test_host_and_origin_still_count(self):
        for headers, status in (({"Host": "evil.example"}, 421), ({"Origin": "http://evil.example"}, 403)):
            reply = self.nobody.call("POST", "/api/tasks", {"title": "x"}, headers)
            self.assertEqual(reply.status, status)

    def test_a_tokens_worker_is_not_open_to_others(self):
        self.admin.post("/api/workers/register", {"workerId": "w"})
        self.assertEqual(self.nobody.post("/api/claims", {"workerId": "w"}).status, 403)

    def test_it_goes_with_no_other_listener(self):
        for flags in (["--listen", "0.0.0.0:0"], ["--listen", "127.0.0.1:0", "--behind-proxy"],
                      ["--listen", "0.0.0.0:0", "--behind-proxy"], ["--listen", "[::]:0"]):
            with tempfile.TemporaryDirectory() as home:
                run = subprocess.run([stintd.STINTD, "--home", home, *flags, "--set", "auth=open"],
                                     capture_output=True, text=True, timeout=HANG_S)
                self.assertEqual(run.returncode, 78, flags)
                self.assertIn('auth "open" lets in everyone', run.stderr.splitlines()[-1], "the listener may be refused as well")
        with tempfile.TemporaryDirectory() as home:
            run = subprocess.run([stintd.STINTD, "--home", home, "--set", "auth=none"],
                                 capture_output=True, text=True, timeout=HANG_S)
            self.assertEqual(run.returncode, 78)
            self.assertIn('auth must be "token" or "open"; it is "none"', run.stderr)



if __name__ == "__main__":
    unittest.main()
