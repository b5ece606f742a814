"""One task, over real sockets: what its routes say, and what they refuse."""
import unittest

import stintd


class TaskCase(stintd.Case):
    def claim(self, worker="w1", **fields):
        reply = self.client.post("/api/claims", {"workerId": worker, "queues": ["q"], **fields})
        self.assertEqual(reply.status, 200, reply.body)
        claim, = reply.json["claims"]
        return claim

    def report(self, verb, claim, worker="w1", **fields):
        path = "/api/tasks/%s/%s" % (claim["task"]["id"], verb)
        return self.client.post(path, {"workerId": worker, "fence": claim["fence"], **fields})

    def read(self, task_id="t-1"):
        reply = self.client.get("/api/tasks/" + task_id)
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json

    def patch(self, body, task_id="t-1", headers=None):
        return self.client.call("PATCH", "/api/tasks/" + task_id, body, headers)

    def events(self, task_id=None):
        reply = self.client.get("/api/events?after=0&limit=1000")
        self.assertEqual(reply.status, 200, reply.body)
        return [event for event in reply.json["events"] if task_id in (None, event.get("task"))]

    def kinds(self, task_id="t-1"):
        return [event["type"] for event in self.events(task_id)]

    def refused(self, reply, status, code):
        self.assertEqual((reply.status, reply.json.get("code")), (status, code), reply.body)
        return reply.json


class Times(TaskCase):
    def test_every_document_says_when_the_task_changed_last(self):
        made = self.create()
        self.assertEqual(made["updatedAt"], made["createdAt"])
        claim = self.claim()
        self.assertGreaterEqual(claim["task"]["updatedAt"], made["updatedAt"])
        self.assertEqual(self.read()["updatedAt"], claim["task"]["updatedAt"])
        done = self.report("complete", claim).json
        last = self.events("t-1")[-1]["time"]
        self.assertEqual((done["updatedAt"], self.read()["updatedAt"]), (last, last))
        self.assertEqual(self.report("complete", claim).json["updatedAt"], last)
        self.assertEqual([task["updatedAt"] for task in self.client.get("/api/tasks").json], [last])

    def test_what_changed_nothing_does_not_say_that_it_never_changed(self):
        made = self.create(owner="slot-1")
        for body in ({}, {"status": "todo"}):
            self.assertEqual(self.patch(body).json["updatedAt"], made["createdAt"])
        begun = self.patch({"status": "in-progress"}).json
        again = self.patch({"status": "in-progress"}).json
        self.assertEqual(again["updatedAt"], begun["updatedAt"])


class Versions(TaskCase):
    def test_a_command_about_a_version_that_has_passed_is_refused(self):
        first = self.create()
        seen = {"If-Match": '"%d"' % first["version"]}
        parked = self.client.post("/api/tasks/t-1/park", {}, seen)
        self.assertEqual((parked.status, parked.headers["ETag"]), (200, '"%d"' % parked.json["version"]))
        before = self.kinds()
        for verb in ("unpark", "cancel", "retry", "park"):
            self.refused(self.client.post("/api/tasks/t-1/" + verb, {}, seen), 412, "version_mismatch")
        self.refused(self.patch({"priority": 3}, headers=seen), 412, "version_mismatch")
        self.assertEqual(self.kinds(), before)
        now = {"If-Match": parked.headers["ETag"]}
        self.assertEqual(self.client.post("/api/tasks/t-1/unpark", {}, now).status, 200)

    def test_what_is_no_version_is_refused_even_where_an_old_one_is_not(self):
        first = self.create()
        claim = self.client.post("/api/tasks/t-1/claim", {"workerId": "w"}).json
        report = {"workerId": "w", "fence": claim["fence"]}
        for expect, version in ((200, None), (200, '"%d"' % first["version"]), (412, ""), (412, "1")):
            headers = {} if version is None else {"If-Match": version}
            self.assertEqual(self.client.post("/api/tasks/t-1/complete", report, headers).status, expect, version)

    def test_a_reader_that_has_the_version_gets_304(self):
        etag = self.client.get("/api/tasks/" + self.create()["id"]).headers["ETag"]
        again = self.client.call("GET", "/api/tasks/t-1", headers={"If-None-Match": etag})
        self.assertEqual((again.status, again.body, again.headers["ETag"]), (304, b"", etag))
        self.patch({"title": "another"})
        changed = self.client.call("GET", "/api/tasks/t-1", headers={"If-None-Match": etag})
        self.assertEqual((changed.status, changed.json["title"]), (200, "another"))


class Changes(TaskCase):
    def test_time_parents_and_key_change_and_the_state_follows(self):
        self.create(id="parent")
        self.create(id="child", queue="later")
        far = self.read("child")["createdAt"] + 10**9
        self.assertEqual(self.patch({"notBefore": far}, "child").json["state"], "scheduled")
        self.assertEqual(self.patch({"notBefore": None}, "child").json["state"], "ready")
        waiting = self.patch({"blockedBy": ["parent"]}, "child").json
        self.assertEqual((waiting["state"], waiting["blockedBy"]), ("waiting", ["parent"]))
        problem = self.refused(self.patch({"blockedBy": ["child"]}, "parent"), 422, "invalid")
        self.assertEqual(problem["errors"][0]["field"], "blockedBy")
        self.refused(self.patch({"blockedBy": ["nobody"]}, "child"), 422, "invalid")
        self.report("complete", self.claim())
        self.assertEqual(self.read("child")["state"], "ready")
        self.assertEqual(self.patch({"uniqueKey": "k"}, "child").json["uniqueKey"], "k")
        self.create(id="third")
        self.refused(self.patch({"uniqueKey": "k"}, "third"), 409, "task_exists")
        again = self.client.post("/api/tasks", {"queue": "q", "uniqueKey": "k"})
        self.assertEqual((again.status, again.json["id"]), (200, "child"))

    def test_metadata_is_merged_and_what_is_unknown_goes_there(self):
        self.create(metadata={"a": 1, "b": {"c": 2}})
        reply = self.patch({"metadata": {"a": None, "b": {"d": 3}}, "colour": "red"}).json
        self.assertEqual(reply["metadata"], {"b": {"c": 2, "d": 3}, "colour": "red"})
        self.assertIn("colour", reply["warnings"][0])
        problem = self.refused(self.patch({"attempt": 3, "result": 1, "title": "x"}), 422, "invalid")
        self.assertEqual({error["field"] for error in problem["errors"]}, {"attempt", "result"})
        self.assertEqual(self.read()["title"], "a task")

    def test_a_patch_of_nothing_is_no_event(self):
        self.create()
        self.assertEqual((self.patch({}).status, self.kinds()), (200, ["task.created"]))


class UniqueKeys(TaskCase):
    def add(self, name, conflict=None, **fields):
        fields = {"onConflict": conflict, **fields} if conflict else fields
        return self.client.post("/api/tasks", {"id": name, "title": name, "queue": "q", "uniqueKey": "k", **fields})

    def test_a_conflict_gives_the_task_refuses_or_takes_its_place(self):
        self.assertEqual(self.add("a").status, 201)
        found = self.add("b").json
        self.assertEqual((found["id"], found["deduplicated"]), ("a", True))
        self.refused(self.add("b", "reject"), 409, "task_exists")
        made = self.add("b", "replace")
        self.assertEqual((made.status, made.json["onConflict"]), (201, "replace"))
        old = self.read("a")
        self.assertEqual((old["state"], old["supersededBy"], made.json["createdAt"]), ("cancelled", "b", old["createdAt"]))

    def test_a_running_task_ends_first_and_its_successor_says_what_it_waits_for(self):
        self.add("a")
        claim = self.claim()
        self.add("b", "replace")
        self.assertEqual((self.read("b")["state"], self.client.get("/api/tasks/b/why").json["reason"]), ("waiting", "predecessor"))
        self.assertIn("Takes the place of a", self.client.get("/api/tasks/b/why").json["text"])
        error = {"code": "EXECUTION_ERROR", "message": "half of it"}
        self.assertEqual(self.report("fail", claim, error=error).json["state"], "cancelled")
        self.assertEqual(self.claim()["task"]["id"], "b")

    def test_dependants_wait_for_the_successor_and_get_its_result(self):
        self.add("a")
        self.client.post("/api/tasks", {"id": "last", "title": "last", "queue": "q", "blockedBy": ["a"]})
        self.add("b", "replace")
        self.assertEqual(self.read("last")["blockedBy"], ["b"])
        self.report("complete", self.claim(), result={"n": 7})
        claim = self.claim()
        self.assertEqual(claim["task"]["parents"], [{"id": "b", "state": "done", "result": {"n": 7}}])

    def test_a_key_is_held_past_done_for_its_time_alone(self):
        self.add("a", uniqueForMs=3600000)
        self.report("complete", self.claim())
        self.assertEqual(self.add("b", "replace").json["id"], "a")
        self.server.kill()
        self.server.start()
        self.client = self.server.client()
        self.refused(self.add("b", "reject"), 409, "task_exists")

    def test_what_has_no_key_or_comes_too_late_is_refused(self):
        for fields, field in (({"onConflict": "reject"}, "onConflict"), ({"uniqueForMs": 1000}, "uniqueForMs"),
                              ({"uniqueKey": "k", "onConflict": "newest"}, "onConflict"),
                              ({"uniqueKey": "k", "uniqueForMs": 0}, "uniqueForMs"), ({"supersededBy": "t-9"}, "supersededBy")):
            problem = self.refused(self.client.post("/api/tasks", {"title": "x", **fields}), 422, "invalid")
            self.assertEqual([error["field"] for error in problem["errors"]], [field], fields)
        self.add("a")
        self.refused(self.patch({"uniqueForMs": 5}, "a"), 422, "invalid")


class Slots(TaskCase):
    def test_a_slot_worker_lives_by_status_alone(self):
        self.create(owner="slot-1", timeoutMs=90000)
        begun = self.patch({"status": "in-progress"}).json
        self.assertEqual((begun["state"], begun["workerId"], begun["attempt"]), ("running", "slot-1", 1))
        self.assertTrue(0 < begun["leaseMs"] <= 90000)
        again = self.patch({"status": "in-progress"})
        self.assertEqual((again.status, again.json["version"]), (200, begun["version"]))
        self.assertEqual(self.patch({"status": "todo"}).json["state"], "ready")
        self.patch({"status": "in-progress"})
        done = self.client.call("PUT", "/api/tasks/t-1", {"status": "done"})
        self.assertEqual((done.status, done.json["status"]), (200, "done"))
        self.assertEqual(self.kinds(), ["task.created", "task.claimed", "task.released", "task.claimed",
                                        "task.completed"])
        for event in self.events("t-1")[1:]:
            self.assertEqual((event["actor"], event["data"]["operator"], event["data"]["nameOnly"]),
                             ("admin", True, True))

    def test_a_failure_is_told_in_metadata_and_shown_as_the_error(self):
        self.create(owner="slot-1")
        self.patch({"status": "in-progress"})
        blocked = self.patch({"status": "blocked", "metadata": {"errorReason": "it fell over"}}).json
        self.assertEqual((blocked["state"], blocked["error"]["message"], blocked["metadata"]["errorReason"]),
                         ("blocked", "it fell over", "it fell over"))
        self.assertEqual(self.kinds()[-2:], ["task.updated", "task.blocked"])

    def test_wrong_moves_name_the_state_and_change_nothing(self):
        self.create()
        before = self.kinds()
        unowned = self.refused(self.patch({"status": "in-progress"}), 409, "bad_transition")
        self.assertEqual(unowned["state"], "ready")
        self.assertIn("owner", unowned["detail"])
        for status in ("done", "review", "blocked"):
            problem = self.refused(self.patch({"status": status, "priority": 9}), 409, "bad_transition")
            self.assertEqual(problem["state"], "ready")
        self.refused(self.patch({"status": "cancelled"}), 422, "invalid")
        self.assertEqual((self.kinds(), self.read()["priority"]), (before, 0))
        self.claim()
        self.refused(self.patch({"status": "todo", "owner": "slot-1"}), 409, "claimed_by_other")

    def test_what_was_reported_is_decided_at_its_gate(self):
        self.create(owner="slot-1")
        self.patch({"status": "in-progress"})
        self.patch({"status": "review"})
        problem = self.refused(self.patch({"status": "done"}), 409, "bad_transition")
        self.assertEqual(problem["state"], "review")
        self.assertIn("/gates/", problem["detail"])
        self.client.post("/api/tasks/t-1/cancel")
        self.assertIn("/retry", self.refused(self.patch({"status": "done"}), 409, "bad_transition")["detail"])

    def test_a_slot_of_the_name_of_a_registered_worker_is_that_worker(self):
        worker = self.server.client(token=self.client.post(
            "/api/tokens", {"kind": "worker", "name": "x"}).json["token"])
        self.addCleanup(worker.close)
        self.assertEqual(worker.post("/api/workers/register", {"workerId": "slot-1", "slot": "slot-1"}).status, 200)
        for status in ("todo", "review", "blocked", "done"):
            self.create(id=status, owner="slot-1")
            self.assertEqual(self.patch({"status": "in-progress"}, status).json["workerId"], "slot-1")
            reply = self.patch({"status": status}, status)
            self.assertEqual((reply.status, reply.json["status"]), (200, status), reply.body)

    def test_fields_and_status_are_one_change(self):
        self.create()
        reply = self.patch({"owner": "slot-2", "status": "in-progress", "priority": 5})
        self.assertEqual((reply.status, reply.json["workerId"], reply.json["priority"]), (200, "slot-2", 5))


class ClaimsOwn(TaskCase):
    """Status and metadata, changed with the token of a claim."""

    def held(self, **fields):
        task = self.create(**fields)
        claim = self.claim()
        token = self.client.post("/api/tokens", {"kind": "claim", "task": task["id"], "fence": claim["fence"]}).json
        child = self.server.client(token=token["token"])
        self.addCleanup(child.close)
        return task["id"], lambda body, of=task["id"], verb="PATCH": child.call(verb, "/api/tasks/" + of, body)

    def test_a_status_ends_the_claim_as_a_report_does(self):
        for status, state, event in (("done", "done", "task.completed"), ("review", "review", "task.reviewed"),
                                     ("blocked", "blocked", "task.blocked"), ("todo", "ready", "task.released")):
            task, patch = self.held()
            reply = patch({"status": status}, verb="PUT" if status == "review" else "PATCH")
            self.assertEqual((reply.status, reply.json["state"], reply.json["status"]), (200, state, status))
            last = self.events(task)[-1]
            self.assertEqual((last["type"], last["actor"]), (event, "claim:admin"))
            self.assertNotIn("operator", last["data"])
            self.assertNotIn("nameOnly", last["data"])
            self.assertEqual(patch({"status": status}).status, 401, "the token has ended with its claim")

    def test_in_progress_is_where_it_is(self):
        task, patch = self.held()
        before = self.kinds(task)
        reply = patch({"status": "in-progress"})
        self.assertEqual((reply.status, reply.json["status"], self.kinds(task)), (200, "in-progress", before))

    def test_metadata_comes_along_and_tells_of_the_failure(self):
        task, patch = self.held(metadata={"a": 1})
        self.assertEqual(patch({"metadata": {"b": 2}}).json["metadata"], {"a": 1, "b": 2})
        blocked = patch({"status": "blocked", "metadata": {"errorReason": "it fell over"}}).json
        self.assertEqual((blocked["state"], blocked["error"]["message"]), ("blocked", "it fell over"))
        self.assertEqual(self.kinds(task)[-3:], ["task.updated", "task.updated", "task.blocked"])

    def test_nothing_else_is_changed_with_it(self):
        task, patch = self.held()
        before = self.kinds(task)
        problem = self.refused(patch({"status": "done", "title": "x", "priority": 9, "owner": None}), 422, "invalid")
        self.assertEqual({error["field"] for error in problem["errors"]}, {"title", "priority", "owner"})
        self.refused(patch({"status": "cancelled"}), 422, "invalid")
        other = self.create()["id"]
        for body in ({"status": "done"}, {"metadata": {"a": 1}}, {}):
            self.assertEqual(patch(body, other).body, patch(body, "absent").body)
            self.refused(patch(body, other), 404, "not_found")
        self.assertEqual((self.kinds(task), self.kinds(other)), (before, ["task.created"]))

    def test_an_open_question_is_answered_not_given_back(self):
        task, patch = self.held()
        self.client.post("/api/tasks/%s/ask" % task, {
            "workerId": "w1", "fence": self.read(task)["fence"], "question": "which?"})
        self.refused(patch({"status": "todo"}), 409, "bad_transition")
        self.assertEqual(self.read(task)["state"], "asking")


class LogCase(TaskCase):
    def append(self, claim, offset, data, **fields):
        path = "/api/tasks/%s/log" % claim["task"]["id"]
        return self.client.post(path, {"fence": claim["fence"], "offset": offset, "data": data, **fields})

    def log(self, query=""):
        reply = self.client.get("/api/tasks/t-1/log" + query)
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json

    def text(self):
        reply = self.client.call("GET", "/api/tasks/t-1/log", headers={"Accept": "text/plain"})
        self.assertEqual((reply.status, reply.headers["Content-Type"]), (200, "text/plain; charset=utf-8"))
        return reply.body.decode()


class Logs(LogCase):
    def test_output_is_appended_once_and_read_from_anywhere(self):
        self.create()
        self.assertEqual(self.log(), {"attempt": 0, "offset": 0, "data": "", "dropped": 0, "length": 0, "next": 0})
        claim = self.claim()
        first = self.append(claim, 0, "hällo ", workerId="w1")
        self.assertEqual((first.status, first.json), (200, {"attempt": 1, "next": 7}))
        self.assertEqual(self.append(claim, 7, "world\n").json["next"], 13)
        self.assertEqual(self.append(claim, 0, "hällo ").json, first.json)
        self.assertEqual(self.log()["data"], "hällo world\n")
        self.assertEqual(self.log("?attempt=1&after=7")["data"], "world\n")
        self.assertEqual(self.text(), "hällo world\n")
        self.assertNotIn("log", "".join(self.kinds()))

    def test_a_gap_is_refused_unless_declared_and_is_shown(self):
        self.create()
        claim = self.claim()
        self.append(claim, 0, "begin\n")
        problem = self.refused(self.append(claim, 10, "end\n"), 409, "bad_offset")
        self.assertEqual(problem["length"], 6)
        self.refused(self.append(claim, 0, "BEGIN\n"), 409, "bad_offset")
        self.assertEqual(self.append(claim, 106, "end\n", dropped=100).json["next"], 110)
        self.assertEqual(self.append(claim, 106, "end\n", dropped=100).status, 200)
        self.assertEqual((self.log()["data"], self.log()["next"]), ("begin\n", 6))
        rest = self.log("?after=6")
        self.assertEqual((rest["offset"], rest["dropped"], rest["data"], rest["length"]), (106, 100, "end\n", 110))
        self.assertEqual(self.text(), "begin\n\n[100 bytes were dropped]\nend\n")

    def test_only_the_holder_appends(self):
        self.create()
        claim = self.claim()
        self.refused(self.append(claim, 0, "x", workerId="w2"), 409, "stale_claim")
        self.refused(self.append({**claim, "fence": "1000000000009"}, 0, "x"), 409, "stale_claim")
        self.report("complete", claim)
        self.refused(self.append(claim, 0, "x"), 409, "stale_claim")
        self.assertEqual(self.client.get("/api/tasks/t-1/log?attempt=2").status, 404)
        self.assertEqual(self.client.get("/api/tasks/t-9/log").status, 404)

    def test_what_is_too_much_is_told(self):
        self.create()
        claim = self.claim()
        for body in ({"data": "x" * 65537}, {"offset": -1}, {"dropped": 1}, {"line": 1}):
            reply = self.client.post("/api/tasks/t-1/log", {"fence": claim["fence"], "offset": 0, "data": "", **body})
            self.refused(reply, 422, "invalid")
        for query in ("?limit=1", "?after=x", "?attempt=0", "?from=1"):
            self.assertEqual(self.client.get("/api/tasks/t-1/log" + query).status, 422)

    def test_a_log_is_there_after_the_plug_was_pulled(self):
        self.create()
        claim = self.claim()
        self.append(claim, 0, "safe\n")
        self.server.kill()
        self.client.close()
        self.server.start()
        self.assertEqual(self.log()["data"], "safe\n")
        self.assertEqual(self.append(claim, 5, "and on\n").status, 200)


class LoudLogs(LogCase):
    flags = ("--set", "task.logBytesPerSecond=1024", "--set", "task.logKeepBytes=262144")

    def test_who_says_too_much_at_once_is_told_to_wait(self):
        self.create()
        claim = self.claim()
        self.assertEqual(self.append(claim, 0, "x" * 65536).status, 200)
        reply = self.append(claim, 65536, "x" * 65536)
        self.refused(reply, 429, "rate_limited")
        self.assertEqual(reply.headers["Retry-After"], "1")


class Telling(TaskCase):
    def tell(self, body, task_id="t-1"):
        return self.client.post("/api/tasks/%s/events" % task_id, body)

    def test_what_happens_outside_is_told_once(self):
        self.create()
        told = {"id": "run-7", "type": "ci.passed", "status": "success", "data": {"url": "x"}}
        first = self.tell(told)
        self.assertEqual(first.status, 200, first.body)
        self.assertEqual(self.tell(told).json, first.json)
        self.refused(self.tell({**told, "status": "failure"}), 422, "idempotency_conflict")
        event = self.events("t-1")[-1]
        self.assertEqual((event["seq"], event["type"], event["actor"]), (first.json["seq"], "task.noted", "admin"))
        data = {name: event["data"].get(name) for name in ("event", "status", "id", "data")}
        self.assertEqual(data, {"event": "ci.passed", "status": "success", "id": "run-7", "data": {"url": "x"}})
        self.assertEqual(self.kinds(), ["task.created", "task.noted"])

    def test_a_task_that_is_done_is_told_and_others_are_not_there(self):
        self.create()
        self.report("complete", self.claim())
        self.assertEqual(self.tell({"type": "deployed"}).status, 200)
        self.assertEqual(self.read()["state"], "done")
        self.assertEqual(self.tell({"type": "deployed"}, "t-9").status, 404)
        problem = self.refused(self.tell({"type": "x" * 129, "what": 1}), 422, "invalid")
        self.assertEqual({error["field"] for error in problem["errors"]}, {"type", "what"})


class Documents(TaskCase):
    def test_a_new_task_says_everything_that_the_server_knows(self):
        self.create()
        task = self.read()
        expected = {"id": "t-1", "title": "a task", "queue": "q", "owner": None, "priority": 0, "executor": None,
                    "timeoutMs": 1800000, "maxAttempts": 3, "status": "todo", "state": "ready", "attempt": 0,
                    "spent": 0, "crashes": 0, "workerId": None, "fence": None, "leaseMs": None, "result": None,
                    "error": None, "version": task["version"], "createdAt": task["createdAt"],
                    "updatedAt": task["createdAt"], "reason": "ready"}
        self.assertEqual({**task, "reason": "ready"}, expected)

    def test_what_the_caller_said_is_said_again(self):
        said = {"description": "d", "instructions": "i", "steps": ["a", "b"], "deliverables": {"x": 1},
                "workingDir": "w", "model": "m", "thinking": "low", "requires": ["gpu"], "module": "mod",
                "payload": {"n": [1]}, "isolationLevel": "sandbox", "uniqueKey": "u", "concurrencyKey": "c",
                "labels": ["l"], "gates": ["g"], "metadata": {"k": "v"}, "budget": {"usd": 0.5, "minutes": 1.5, "tokens": 7},
                "owner": "slot-1", "executor": "shell", "priority": 7, "maxAttempts": 2, "timeoutMs": 5000,
                "startBy": 99999999999999, "finishBy": 99999999999999}
        made = self.create(**said)
        for name, value in said.items():
            self.assertEqual((name, made[name], self.read()[name]), (name, value, value))

    def test_patches_that_meet_are_all_done(self):
        self.create(id="t")
        clients = [self.server.client() for _ in range(40)]
        for number, client in enumerate(clients):
            client.send("PATCH", "/api/tasks/t", {"metadata": {"key-%d" % number: number}})
        self.assertEqual({client.receive().status for client in clients}, {200})
        for client in clients:
            client.close()

    NUMBERS = b"[123456789012345678901234567890,-9223372036854775809,0.12345678901234567890123,1e400,0.5,7]"

    def test_numbers_that_no_machine_holds_are_said_again_as_they_were(self):
        body = b'{"id":"t-1","title":"x","queue":"q","payload":{"n":%s},"metadata":{"m":%s}}'
        made = self.client.post("/api/tasks", body % (self.NUMBERS, self.NUMBERS))
        claim = self.client.post("/api/claims", {"workerId": "w1", "queues": ["q"]})
        fence = claim.json["claims"][0]["fence"].encode()
        said = b'{"workerId":"w1","fence":"%s",' % fence
        at = "/api/tasks/t-1/"
        checkpoint = self.client.post(at + "progress", said + b'"percent":33.333333333333333333,"data":%s}' % self.NUMBERS)
        patched = self.client.call("PATCH", at[:-1], b'{"metadata":{"k":%s}}' % self.NUMBERS)
        done = self.client.post(at + "complete", said + b'"result":%s}' % self.NUMBERS)
        read = self.client.get(at[:-1])
        for reply, times in ((made, 2), (claim, 2), (checkpoint, 0), (patched, 4), (done, 4), (read, 5)):
            self.assertIn(reply.status, (200, 201), reply.body)
            self.assertEqual(reply.body.count(self.NUMBERS), times, reply.body)
        events = self.client.get("/api/tasks/t-1/events").body
        self.assertIn(b'"percent":33.333333333333333333', events)

    def test_a_number_of_ours_that_is_too_large_is_refused_and_named(self):
        for field, number in (("priority", b"1180591620717411303424"), ("priority", b"-1e400"),
                              ("timeoutMs", b"1180591620717411303424"), ("maxAttempts", b"0.10000000000000000001"),
                              ("notBefore", b"99999999999999999999999"), ("title", b"99999999999999999999999")):
            reply = self.client.post("/api/tasks", b'{"id":"t-1","title":"x","queue":"q","%s":%s}' % (field.encode(), number)
                                     if field != "title" else b'{"id":"t-1","title":%s}' % number)
            error, = self.refused(reply, 422, "invalid")["errors"]
            self.assertEqual(error["field"], field)
        self.assertEqual(self.client.get("/api/tasks/t-1").status, 404)

    def test_review_shows_its_evidence_and_an_answer_can_be_read(self):
        self.create()
        claim = self.claim()
        asked = self.report("ask", claim, question="Shall I?", options=["yes", "no"]).json
        self.assertEqual((asked["state"], asked["question"]["options"]), ("asking", ["yes", "no"]))
        answered = self.client.post("/api/tasks/t-1/answer", {"deny": True, "text": "not today"}).json
        self.assertEqual((answered["state"], answered["answer"]), ("running", {"text": "not today", "deny": True}))
        review = self.report("review", claim, result={"pr": 7}, evidence=[{"check": "tests", "ok": True}]).json
        self.assertEqual((review["state"], review["evidence"]), ("review", [{"check": "tests", "ok": True}]))
        task = self.read()
        self.assertEqual((task["result"], task["evidence"], task["answer"]["text"]),
                         ({"pr": 7}, [{"check": "tests", "ok": True}], "not today"))

    def test_checkpoint_and_session_go_to_the_next_attempt(self):
        self.create()
        claim = self.claim()
        self.report("progress", claim, data={"step": 3}, session={"id": "agent:main:1", "host": "h"})
        task = self.read()
        self.assertEqual((task["checkpoint"], task["sessionId"]), ({"step": 3}, "agent:main:1"))
        self.report("release", claim)
        following = self.claim("w2")
        self.assertEqual((following["checkpoint"], following["task"]["sessionId"], following["attempt"]),
                         ({"step": 3}, "agent:main:1", 2))
        failed = self.report("fail", following, "w2", error={"code": "CHECK_FAILED", "message": "no"}).json
        self.assertEqual(failed["error"], {"code": "CHECK_FAILED", "message": "no", "class": "task"})
        self.assertEqual((failed["spent"], failed["crashes"], failed["leaseMs"]), (1, 0, None))


if __name__ == "__main__":
    unittest.main()
