"""Bulk actions: many tasks at once by a filter, in steps, across kill -9, and never twice."""
import json
import subprocess

import proof
import stintd
from hang import HANG_S

MANY = 3000
BATCH = 1000
KILLS = 4


class BulkCase(proof.ProofCase):
    def add_many(self, count, prefix="m", **fields):
        for first in range(0, count, BATCH):
            tasks = [{"id": f"{prefix}{i}", "title": "part", "queue": "q", **fields}
                     for i in range(first, min(first + BATCH, count))]
            reply = self.client.post("/api/tasks/batch", {"tasks": tasks})
            self.assertTrue(all(one["ok"] for one in reply.json["results"]), reply.body[:300])

    def bulk(self, filter, action, status=202, **fields):
        reply = self.client.post("/api/tasks/bulk", {"filter": filter, "action": action, **fields})
        self.assertEqual(reply.status, status, reply.body)
        return reply.json

    def look(self, bulk):
        return self.client.get("/api/bulk/" + bulk).json

    def ended(self, bulk):
        """Asks until it has ended: each question is a turn of the loop, and each turn takes a step."""
        while True:
            found = self.look(bulk)
            if found["state"] != "running":
                return found

    def states(self, ids):
        return [self.state(one) for one in ids]

    def kill(self):
        self.server.kill()
        self.client.close()
        self.server.start()

    def check_store(self):
        self.client.close()
        self.server.stop()
        done = subprocess.run([stintd.STINTD, "--home", self.server.home, "--check-store"], capture_output=True, text=True,
                              timeout=HANG_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Across(BulkCase):
    def test_each_task_is_changed_once_across_kills(self):
        self.add_many(MANY)
        self.add_many(7, prefix="other", labels=["other"])
        made = self.bulk({"queue": "q", "state": "ready"}, "priority", value=7)
        self.assertEqual(made["matched"], MANY + 7)
        for _ in range(KILLS):
            self.look(made["id"])
            self.kill()
        end = self.ended(made["id"])
        self.assertEqual((end["state"], end["done"], end["skipped"]), ("done", MANY + 7, {}))
        events = self.events()
        changed = [event["task"] for event in events if event["type"] == "task.updated"]
        self.assertEqual(len(changed), MANY + 7)
        self.assertEqual(len(set(changed)), MANY + 7)
        own = [event for event in events if event["type"].startswith("bulk.")]
        self.assertEqual([event["type"] for event in own], ["bulk.started", "bulk.ended"])
        self.assertEqual(own[1]["data"]["done"], MANY + 7)
        self.check_store()

    def test_what_was_made_after_it_began_stays(self):
        self.add_many(MANY)
        made = self.bulk({"queue": "q"}, "cancel")
        self.client.post("/api/tasks", {"id": "late", "title": "late", "queue": "q"})
        self.ended(made["id"])
        self.assertEqual(self.state("late"), "ready")
        self.assertEqual(self.state("m0"), "cancelled")
        self.assertEqual(self.state(f"m{MANY - 1}"), "cancelled")

    def test_others_are_served_while_it_runs(self):
        self.add_many(MANY)
        made = self.bulk({"queue": "q"}, "park")
        self.client.post("/api/tasks", {"id": "mine", "title": "mine", "queue": "other"})
        running = self.look(made["id"])
        self.assertEqual(self.client.post("/api/claims", {"workerId": "w", "queues": ["other"]}).json["claims"][0]["task"]["id"],
                         "mine")
        self.assertLess(running["done"], MANY)
        self.assertEqual(self.ended(made["id"])["done"], MANY)


class Rules(BulkCase):
    def test_an_empty_filter_is_refused_and_all_means_all(self):
        self.add_many(3)
        reply = self.client.call("POST", "/api/tasks/bulk", {"filter": {}, "action": "cancel"})
        self.assertEqual(reply.status, 422)
        self.assertEqual(reply.json["errors"][0]["field"], "filter")
        reply = self.client.call("POST", "/api/tasks/bulk", {"filter": {"all": True, "queue": "q"}, "action": "cancel"})
        self.assertEqual((reply.status, reply.json["errors"][0]["field"]), (422, "filter.all"))
        reply = self.client.call("POST", "/api/tasks/bulk", {"filter": {"all": False}, "action": "cancel"})
        self.assertEqual(reply.status, 422)
        reply = self.client.call("POST", "/api/tasks/bulk", {"filter": {"queue": None}, "action": "cancel"})
        self.assertEqual(reply.status, 422)
        self.assertEqual(self.states(["m0", "m1", "m2"]), ["ready"] * 3)
        made = self.bulk({"all": True}, "cancel")
        self.assertEqual(self.ended(made["id"])["done"], 3)

    def test_what_is_wrong_is_named(self):
        for body, field in (({"action": "cancel"}, "filter"), ({"filter": {"queue": "q"}}, "action"),
                            ({"filter": {"queue": "q"}, "action": "burn"}, "action"),
                            ({"filter": {"queue": "q"}, "action": "move"}, "value"),
                            ({"filter": {"queue": "q"}, "action": "priority", "value": "soon"}, "value"),
                            ({"filter": {"queue": "q"}, "action": "park", "value": 3}, "value"),
                            ({"filter": {"state": "asleep"}, "action": "park"}, "filter.state"),
                            ({"filter": {"colour": "red"}, "action": "park"}, "filter.colour"),
                            ({"filter": "all", "action": "park"}, "filter"),
                            ({"filter": {"queue": "q"}, "action": "park", "when": 1}, "when")):
            reply = self.client.call("POST", "/api/tasks/bulk", body, judged=False)
            self.assertEqual(reply.status, 422, reply.body)
            self.assertEqual(reply.json["errors"][0]["field"], field, reply.body)

    def test_a_dry_run_counts_and_changes_nothing(self):
        self.add_many(5)
        self.client.post("/api/tasks", {"id": "x", "title": "x", "queue": "q", "labels": ["nightly"]})
        count = self.bulk({"label": "nightly"}, "purge", status=200, dryRun=True)
        self.assertEqual(count, {"action": "purge", "matched": 1, "states": {"ready": 1}})
        self.assertEqual(self.bulk({"queue": "q"}, "cancel", status=200, dryRun=True)["matched"], 6)
        self.assertEqual(self.client.get("/api/bulk").json, [])
        self.assertEqual(self.state("x"), "ready")

    def test_the_same_key_is_the_same_action_across_a_kill(self):
        self.create(id="a")
        key, cancel = {"Idempotency-Key": "k"}, {"filter": {"queue": "q"}, "action": "cancel"}
        first = self.client.post("/api/tasks/bulk", cancel, key)
        self.assertEqual((first.status, first.json["matched"]), (202, 1), first.body)
        self.ended(first.json["id"])
        self.assertEqual(self.states(["a"]), ["cancelled"])
        self.kill()
        self.create(id="b")
        again = self.client.post("/api/tasks/bulk", cancel, key)
        self.assertEqual((again.status, again.json), (202, first.json), again.body)
        self.assertEqual(self.client.get("/api/tasks/b").json["state"], "ready")
        other = self.client.post("/api/tasks/bulk", {**cancel, "action": "park"}, key)
        self.assertEqual((other.status, other.json["code"]), (422, "idempotency_conflict"))
        self.assertEqual(len(self.client.get("/api/bulk").json), 1)

    def test_each_action_does_what_its_command_does(self):
        self.add_many(4)
        self.client.post("/api/tasks", {"id": "child", "title": "c", "queue": "other", "blockedBy": ["m0"]})
        for action, fields, state in (("park", {}, "pending"), ("unpark", {}, "ready"), ("cancel", {}, "cancelled")):
            self.ended(self.bulk({"queue": "q"}, action, **fields)["id"])
            self.assertEqual(self.states([f"m{i}" for i in range(4)]), [state] * 4)
        purged = self.ended(self.bulk({"queue": "q"}, "purge")["id"])
        self.assertEqual((purged["done"], purged["skipped"]), (3, {"in_use": 1}))
        self.ended(self.bulk({"queue": "q"}, "retry")["id"])
        self.assertEqual(self.state("m0"), "ready")
        moved = self.ended(self.bulk({"queue": "q"}, "move", value="r")["id"])
        self.assertEqual(moved["done"], 1)
        self.assertEqual(self.client.get("/api/tasks/m0").json["queue"], "r")
        again = self.ended(self.bulk({"queue": "r"}, "unpark")["id"])
        self.assertEqual((again["done"], again["skipped"]), (0, {"bad_transition": 1}))

    def test_it_stops_when_told(self):
        self.add_many(MANY)
        made = self.bulk({"queue": "q"}, "cancel")
        end = self.client.call("DELETE", "/api/bulk/" + made["id"]).json
        self.assertEqual((end["state"], end["reason"]), ("stopped", "by_person"))
        self.assertLess(end["done"], MANY)
        self.assertEqual(self.state(f"m{MANY - 1}"), "ready")
        self.kill()
        self.assertEqual(self.look(made["id"])["done"], end["done"])
        self.assertEqual(self.client.call("DELETE", "/api/bulk/" + made["id"]).json["endedAt"], end["endedAt"])
        self.assertEqual(self.client.call("DELETE", "/api/bulk/b-99", judged=False).status, 404)

    def test_its_rights_are_those_of_the_caller_while_they_last(self):
        self.add_many(MANY)
        wide = self.client.post("/api/tokens", {"kind": "operator", "name": "o2"}).json
        other = self.server.client(token=wide["token"])
        made = other.post("/api/tasks/bulk", {"filter": {"queue": "q"}, "action": "cancel"}).json
        other.close()
        self.client.call("DELETE", "/api/tokens/" + wide["id"])
        end = self.ended(made["id"])
        self.assertEqual((end["state"], end["reason"]), ("stopped", "revoked"))
        viewer = self.client.post("/api/tokens", {"kind": "viewer", "name": "v"}).json
        looker = self.server.client(token=viewer["token"])
        self.assertEqual(looker.call("POST", "/api/tasks/bulk", {"filter": {"all": True}, "action": "cancel"}).status, 403)
        self.assertEqual(len(looker.get("/api/bulk").json), 1)
        looker.close()

    def test_a_group_is_cancelled_and_retried_as_a_bulk(self):
        self.add_many(3, group="g")
        self.add_many(1, prefix="alone")
        self.finish_one()
        reply = self.client.post("/api/groups/g/cancel", {"dryRun": True})
        self.assertEqual(reply.json["matched"], 2)
        made = self.client.post("/api/groups/g/cancel", {}).json
        self.assertEqual(self.ended(made["id"])["done"], 2)
        self.assertEqual(self.state("alone0"), "ready")
        made = self.client.post("/api/groups/g/retry", {}).json
        self.assertEqual(self.ended(made["id"])["done"], 2)
        self.assertEqual(sorted(self.states(["m0", "m1", "m2"])), ["done", "ready", "ready"])
        self.assertEqual(self.client.call("POST", "/api/groups/none/cancel", {}).status, 404)

    def finish_one(self):
        claim = self.claim(max=1)[0]
        self.assertEqual(self.report("complete", claim).status, 200)

    def test_failures_are_found_by_their_code(self):
        self.add_many(3)
        for code in ("BUILD_BROKEN", "BUILD_BROKEN", "OTHER_THING"):
            claim = self.claim(max=1)[0]
            self.report("fail", claim, error={"code": code, "message": "no", "retry": False})
        self.assertEqual(len(self.client.get("/api/tasks?error=BUILD_BROKEN").json), 2)
        self.assertEqual(self.bulk({"error": "BUILD_BROKEN"}, "retry", status=200, dryRun=True)["states"], {"failed": 2})
        self.assertEqual(self.ended(self.bulk({"error": "OTHER_THING"}, "retry")["id"])["done"], 1)


class Search(BulkCase):
    def ids(self, question, more=""):
        """All pages."""
        path, found = f"/api/tasks?q={question}{more}", []
        while path:
            reply = self.client.get(path)
            found += [task["id"] for task in reply.json]
            path = reply.headers.get("Link", "<").split("<")[1].split(">")[0]
        return found

    def test_all_words_are_found_wherever_they_stand_newest_first(self):
        self.client.post("/api/tasks", {"id": "a", "title": "Port the header parser", "queue": "ci", "labels": ["nightly"]})
        self.client.post("/api/tasks", {"id": "b", "title": "Größe der Köpfe", "queue": "docs"})
        self.client.post("/api/tasks", {"id": "c", "title": "parser again", "queue": "ci"})
        self.client.post("/api/tasks/a/cancel", {})
        self.assertEqual(self.ids("pars"), ["c", "a"])
        self.assertEqual(self.ids("NIGHT+head"), ["a"])
        self.assertEqual(self.ids("ci+parser"), ["c", "a"])
        self.assertEqual(self.ids("arser"), [])
        self.assertEqual(self.ids("GR%C3%96SSE"), [])
        self.assertEqual(self.ids("gr%C3%96%C3%9Fe"), ["b"])
        self.assertEqual(self.ids("parser", "&state=ready"), ["c"])
        self.assertEqual(self.ids("parser", "&limit=1"), ["c", "a"])
        self.assertEqual(self.client.call("GET", "/api/tasks?q=" + "+".join("x" * 17), judged=False).status, 422)

    def test_what_was_made_or_said_a_moment_ago_is_found(self):
        self.add_many(300)
        self.client.post("/api/tasks", {"id": "new", "title": "zebra", "queue": "first"})
        self.assertEqual(self.ids("zebra"), ["new"])
        claim = self.claim(max=1, queues=["first"])[0]
        self.report("progress", claim, note="counting stripes")
        self.assertEqual(self.ids("stripes"), ["new"])
        self.report("fail", claim, error={"code": "TOO_WILD", "message": "it ran away", "retry": False})
        self.assertEqual(self.ids("away+too_wild"), ["new"])
        self.assertEqual(self.ended(self.bulk({"q": "ran away"}, "retry")["id"])["done"], 1)

    def test_every_page_goes_on_where_the_last_one_ended(self):
        self.add_many(250)
        self.assertEqual(self.ids("part", "&limit=7"), [f"m{i}" for i in reversed(range(250))])


class Errors(BulkCase):
    def fail_with(self, *messages, code="EXECUTION_ERROR"):
        for message in messages:
            claim = self.claim(max=1)[0]
            self.report("fail", claim, error={"code": code, "message": message, "retry": False})

    def test_failures_are_counted_by_their_cause_and_sent_again_by_it(self):
        self.add_many(5)
        self.fail_with("exit status 2 at line 17", "exit status 3 at line 4", "disk full")
        self.fail_with("exit status 2 at line 17", code="OTHER_CODE")
        first, *rest = self.client.get("/api/errors").json
        self.assertEqual((first["tasks"], first["failed"], first["blocked"]), (2, 2, 0))
        self.assertEqual((first["code"], first["message"]), ("EXECUTION_ERROR", "exit status N at line N"))
        self.assertEqual(first["task"], "m1")
        self.assertEqual(sorted(one["tasks"] for one in rest), [1, 1])
        self.assertEqual(sorted(one["id"] for one in self.client.get("/api/tasks?error=" + first["id"]).json), ["m0", "m1"])
        self.assertEqual(self.ended(self.bulk({"error": first["id"]}, "retry")["id"])["done"], 2)
        self.assertEqual(self.states(["m0", "m1", "m2", "m3"]), ["ready", "ready", "failed", "failed"])
        self.assertEqual(len(self.client.get("/api/errors?queue=q").json), 2)
        self.assertEqual(self.client.get("/api/errors?queue=none").json, [])
        self.assertEqual(self.client.call("GET", "/api/errors?colour=red", judged=False).status, 422)

    def test_blocked_tasks_count_too_by_the_words_of_the_server(self):
        self.client.post("/api/tasks", {"id": "parent", "title": "p", "queue": "q"})
        self.client.post("/api/tasks", {"id": "child", "title": "c", "queue": "q", "blockedBy": ["parent"]})
        self.client.post("/api/tasks/parent/cancel", {})
        found, = self.client.get("/api/errors").json
        self.assertEqual((found["code"], found["blocked"], found["task"]), ("DEPENDENCY_FAILED", 1, "child"))


if __name__ == "__main__":
    proof.main()
