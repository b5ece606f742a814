"""The door of the clawnsole workqueue: its commands and its HTTP, as its clients say them and as they are answered.

  test_workqueue.py --items 1000000    fill a workqueue with so many items and tell what a call costs
"""
import concurrent.futures
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

from hang import HANG_S
import stintd
from test_cli import STINT, CliCase, Ran, environment

ITEM = ["id", "queue", "title", "instructions", "priority", "status", "claimedBy", "claimedAt", "leaseUntil", "attempts",
        "lastError", "createdAt", "updatedAt"]
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
WAIT_S = HANG_S


def wait_for(what, wanted):
    """What it gives once that is wanted; or at last, when it never is."""
    until = time.monotonic() + WAIT_S
    while True:
        given = what()
        if wanted(given) or time.monotonic() > until:
            return given
        time.sleep(0.02)


class Door(CliCase):
    """`clawnsole` is stint by another name, as somebody who comes from there would have it."""
    FLAGS = ()

    @classmethod
    def setUpClass(cls):
        cls.server = stintd.Server("--set", "worker.leaseMinMs=100", "--set", "restart.graceMs=0", *cls.FLAGS)
        cls.client = cls.server.client()
        cls.folder = tempfile.TemporaryDirectory()
        os.symlink(os.path.abspath(STINT), os.path.join(cls.folder.name, "clawnsole"))

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def shell(self, line, status=0, **env):
        """A line as a shell reads it."""
        path = self.folder.name + ":" + os.environ["PATH"]
        ran = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=HANG_S, cwd=self.folder.name,
                             env=environment(STINT_HOME=self.server.home, PATH=path, **env))
        self.assertEqual(ran.returncode, status, f"{line}: {ran.stdout}{ran.stderr}")
        return Ran(ran.returncode, ran.stdout, ran.stderr)

    def workqueue(self, *words, status=0, **env):
        ran = self.stint("workqueue", *words, status=status, **env)
        if status == 0:
            self.assertEqual(ran.out, json.dumps(ran.json, indent=2, ensure_ascii=False) + "\n")
            self.assertIs(ran.json["ok"], True)
        else:
            self.assertEqual((ran.status, ran.out), (1, ""))
        return ran

    def enqueue(self, queue, instructions="do it", **flags):
        words = [word for name, value in flags.items() for word in (f"--{name}", str(value))]
        return self.workqueue("enqueue", "--queue", queue, "--instructions", instructions, *words).json["item"]

    def claim(self, agent, *words, **env):
        return self.workqueue("claim-next", "--agent", agent, *words, **env).json["item"]

    def refused(self, *words, **env):
        return self.workqueue(*words, status=1, **env).err.strip()

    def say(self, path, body, status=200):
        reply = self.client.post("/api/workqueue/" + path, body)
        self.assertEqual(reply.status, status, reply.body)
        return reply.json

    def ask(self, path, status=200):
        reply = self.client.get("/api/workqueue/" + path)
        self.assertEqual(reply.status, status, reply.body)
        return reply.json

    def events(self, task):
        return self.client.get(f"/api/tasks/{task}/events").json["events"]


class TheDocument(Door):
    """The commands of the document, word for word; what stands in <> there has a value here."""

    def test_the_exact_commands_of_the_worker(self):
        enqueued = self.enqueue("dev-team", "Review and ship any safe PRs.", title="Review open PRs", priority=50)
        line = "clawnsole workqueue claim-next --agent dev-3 --queues dev-team,qa --leaseMs 900000"
        claimed = self.shell(line).json["item"]
        self.assertEqual((claimed["id"], claimed["status"], claimed["claimedBy"]), (enqueued["id"], "claimed", "dev-3"))
        item = claimed["id"]
        line = f'clawnsole workqueue progress {item} --agent dev-3 --note "..." --leaseMs 900000'
        going = self.shell(line).json["item"]
        self.assertEqual((going["status"], going["lastNote"]), ("in_progress", "..."))
        line = f"clawnsole workqueue inspect {item} --json"
        shown = self.shell(line).json["item"]
        self.assertAlmostEqual(shown.pop("leaseUntil"), going.pop("leaseUntil"), delta=10)  # of two clocks
        self.assertEqual(shown, going)
        line = f"clawnsole workqueue done {item} --agent dev-3 --result '{{\"ok\":true}}'"
        done = self.shell(line).json["item"]
        self.assertEqual((done["status"], done["result"], done["claimedBy"]), ("done", {"ok": True}, "dev-3"))

    def test_fail_is_final(self):
        self.enqueue("final")
        item = self.claim("dev-3", "--queues", "final")["id"]
        failed = self.shell(f'clawnsole workqueue fail {item} --agent dev-3 --error "..."').json["item"]
        self.assertEqual((failed["status"], failed["lastError"], failed["attempts"]), ("failed", "...", 1))
        self.assertIsNone(self.claim("dev-3", "--queues", "final"))

    def test_the_flags_that_were_missing(self):
        item = self.enqueue("missing")["id"]
        self.say("update", {"itemId": item, "patch": {"status": "pending"}})
        self.assertIsNone(self.claim("m", "--queues", "missing"))
        line = "clawnsole workqueue claim-next --agent m --queues missing --includeStatuses ready,pending --json"
        claimed = self.shell(line).json["item"]
        self.assertEqual(claimed["id"], item)
        self.assertIsNone(self.claim("m", "--queues", "missing"))
        for flag in ("--resumeOwned", "--preferOwned"):
            again = self.shell(f"clawnsole workqueue claim-next --agent m --queues missing {flag}").json["item"]
            self.assertEqual((again["id"], again["claimedBy"]), (item, "m"))
            self.assertGreater(int(again["fence"]), int(claimed["fence"]))
            claimed = again
        self.assertEqual(self.refused("claim-next", "--agent", "m", "--includeStatuses", "done"),
                         'includeStatuses may have only "ready" and "pending"')

    def test_assignments_and_defaults_of_the_manual(self):
        self.assertEqual(self.shell("clawnsole workqueue assignments set --agent dev-7 --queues dev-team7,qa7").json,
                         {"ok": True, "agentId": "dev-7", "queues": ["dev-team7", "qa7"]})
        self.assertEqual(self.shell("clawnsole workqueue assignments list").json["assignments"]["dev-7"],
                         ["dev-team7", "qa7"])
        item = self.enqueue("qa7")["id"]
        self.assertEqual(self.shell("clawnsole workqueue claim-next --agent dev-7").json["item"]["id"], item)


class CommandLine(Door):
    def test_an_item_has_every_field_and_its_times_are_iso(self):
        item = self.enqueue("fields", "  trimmed ", title="   ", dedupeKey="k")
        self.assertEqual(list(item), [*ITEM, "dedupeKey"])
        self.assertEqual((item["title"], item["instructions"]), ("(untitled)", "trimmed"))
        self.assertEqual((item["priority"], item["status"], item["claimedBy"], item["claimedAt"], item["leaseUntil"],
                          item["attempts"], item["lastError"]), (0, "ready", "", "", 0, 0, ""))
        self.assertRegex(item["createdAt"], ISO)
        self.assertEqual(item["createdAt"], item["updatedAt"])
        before = time.time() * 1000
        claimed = self.claim("f", "--queues", "fields")
        self.assertRegex(claimed["claimedAt"], ISO)
        self.assertAlmostEqual(claimed["leaseUntil"], before + 900000, delta=60000)
        self.assertEqual(claimed["attempts"], 1)

    def test_what_is_missing_is_named_first(self):
        for words, wanted in ((("enqueue",), "enqueue requires --queue"),
                              (("enqueue", "--queue", "q"), "enqueue requires --instructions"),
                              (("enqueue", "--queue", "--instructions", "x"), "enqueue requires --queue"),
                              (("claim-next",), "claim-next requires --agent"),
                              (("progress",), "progress requires <itemId>"),
                              (("progress", "x"), "progress requires --agent"),
                              (("progress", "x", "--agent", "a"), "progress requires --note"),
                              (("done",), "done requires <itemId>"),
                              (("done", "x"), "done requires --agent"),
                              (("fail", "x", "--agent", "a"), "fail requires --error"),
                              (("inspect",), "inspect requires <itemId>"),
                              (("assignments", "set"), "assignments set requires --agent"),
                              (("assignments", "set", "--agent", "a", "--queues", ", ,"),
                               "assignments set requires --queues q1,q2"),
                              (("assignments", "drop"), "unknown workqueue assignments command: drop"),
                              (("frob",), "unknown workqueue command: frob")):
            with self.subTest(words=words):
                self.assertEqual(self.refused(*words), wanted)

    def test_bad_values_are_told_and_change_nothing(self):
        before = len(self.ask("items?queue=bad")["items"])
        for words, wanted in ((("enqueue", "--queue", "bad", "--instructions", "x", "--priority", "soon"),
                               "priority must be a whole number from -2147483648 to 2147483647"),
                              (("enqueue", "--queue", "q" * 300, "--instructions", "x"),
                               "queue has 300 bytes; at most 255 are allowed"),
                              (("claim-next", "--agent", "a", "--leaseMs", "long"),
                               "leaseMs must be a whole number from 0 to 31536000000"),
                              (("claim-next", "--agent", "a" * 200), "agentId has 200 bytes; at most 128 are allowed"),
                              (("done", "x", "--agent", "a", "--fence", "no"),
                               'fence must be the string of digits that was given out; it is "no"'),
                              (("list", "--status", "open"),
                               "status must be of ready, pending, claimed, in_progress, done, failed, with commas "
                               "between them")):
            with self.subTest(words=words):
                self.assertEqual(self.refused(*words), wanted)
        self.assertEqual(len(self.ask("items?queue=bad")["items"]), before)

    def test_flags_are_read_as_the_original_reads_them(self):
        item = self.enqueue("flags", "-x", title="-")  # a value may begin with one dash
        self.assertEqual((item["instructions"], item["title"]), ("-x", "-"))
        item = self.workqueue("claim-next", "--resumeOwned", "--agent", "g", "--queues", "flags", "--json").json["item"]
        self.assertEqual(item["claimedBy"], "g")
        ran = self.workqueue("done", "--agent", "g", "--unheard-of", "value", "--", item["id"])
        self.assertEqual(ran.json["item"]["status"], "done")
        self.assertIn("--unheard-of", ran.err)
        self.assertEqual(self.workqueue("inspect", item["id"], "--json").json["item"]["status"], "done")
        self.assertIn("usage: stint workqueue done", self.stint("workqueue", "done", "--help").out)
        self.assertIn("stint workqueue claim-next", self.stint("workqueue").out)

    def test_a_result_is_json_a_file_or_a_text(self):
        with open(os.path.join(self.folder.name, "result.json"), "w") as file:
            file.write('{"pr": [17, null]}\n')
        with open(os.path.join(self.folder.name, "garbled.json"), "w") as file:
            file.write('{\n  "pr": }\n')
        for given, wanted in (("'{\"a\":1}'", {"a": 1}), ("@result.json", {"pr": [17, None]}), ("shipped", "shipped"),
                              ("12", 12), ("null", None)):
            self.enqueue("results")
            item = self.claim("r", "--queues", "results")["id"]
            done = self.shell(f"clawnsole workqueue done {item} --agent r --result {given}").json["item"]
            self.assertEqual(done["result"], wanted)
        self.enqueue("results")
        item = self.claim("r", "--queues", "results")["id"]
        garbled = self.shell(f"clawnsole workqueue done {item} --agent r --result @garbled.json", status=1)
        self.assertRegex(garbled.err, r"^garbled.json:2:9: ")
        missing = self.shell(f"clawnsole workqueue done {item} --agent r --result @none.json", status=1)
        self.assertRegex(missing.err, r"^cannot read none.json: ")
        self.assertEqual(self.workqueue("inspect", item).json["item"]["status"], "claimed")
        self.assertNotIn("result", self.workqueue("done", item, "--agent", "r").json["item"])

    def test_queues_come_from_the_flag_the_assignment_or_the_default(self):
        ids = {queue: self.enqueue(queue)["id"] for queue in ("asked", "assigned", "defaulted", "dev-team")}
        self.assertEqual(self.workqueue("claim-next", "--agent", "nq", CLAWNSOLE_DEFAULT_QUEUES="").json,
                         {"ok": True, "item": None, "reason": "NO_QUEUES"})
        self.assertEqual(self.claim("nq", CLAWNSOLE_DEFAULT_QUEUES=" defaulted ,,")["id"], ids["defaulted"])
        self.assertEqual(self.claim("nq")["id"], ids["dev-team"])
        self.workqueue("assignments", "set", "--agent", "nq", "--queues", "assigned, assigned")
        self.assertEqual(self.claim("nq", CLAWNSOLE_DEFAULT_QUEUES="")["id"], ids["assigned"])
        self.assertEqual(self.claim("nq", "--queues", "asked")["id"], ids["asked"])
        self.assertEqual(self.workqueue("claim-next", "--agent", "nq").json, {"ok": True, "item": None})

    def test_a_list_is_oldest_first_and_filtered(self):
        ids = [self.enqueue("listed", title=str(i))["id"] for i in range(3)]
        self.claim("l", "--queues", "listed")
        listed = self.workqueue("list", "--queue", "listed").json["items"]
        self.assertEqual([item["id"] for item in listed], ids)
        self.assertEqual([item["id"] for item in self.ask("items?queue=listed")["items"]], ids[::-1])
        listed = self.workqueue("list", "--queue", "listed", "--status", "ready,done").json["items"]
        self.assertEqual([item["id"] for item in listed], ids[1:])
        self.assertEqual(self.workqueue("list", "--queue", "nothing-here").json, {"ok": True, "items": []})

    def test_an_unknown_item_is_null_to_inspect_and_an_error_elsewhere(self):
        self.assertEqual(self.workqueue("inspect", "nope").json, {"ok": True, "item": None})
        self.assertEqual(self.refused("done", "nope", "--agent", "a"), "item not found: nope")

    def test_a_server_that_is_away_or_does_not_know_us_is_one_sentence(self):
        self.assertIn("no server answers", self.refused("list", STINT_URL="http://127.0.0.1:1", STINT_HOME=None))
        self.assertIn("does not know the token", self.refused("list", "--token", "stint_admin_x_y"))


class Rules(Door):
    def test_the_order_is_priority_then_age_over_all_queues_together(self):
        low, first, other, second = (self.enqueue(queue, priority=priority)["id"] for queue, priority in
                                     (("o1", 1), ("o1", 5), ("o2", 9), ("o2", 5)))
        taken = [self.claim("o", "--queues", "o2,o1")["id"] for _ in range(4)]
        self.assertEqual(taken, [other, first, second, low])

    def test_a_key_holds_within_its_queue_until_the_item_is_over(self):
        first = self.enqueue("k1", dedupeKey="hourly-pr-review:2026-02-09T20")
        again = self.enqueue("k1", "other words", dedupeKey="hourly-pr-review:2026-02-09T20")
        self.assertEqual(again, {**first, "_deduped": True})
        elsewhere = self.enqueue("k2", dedupeKey="hourly-pr-review:2026-02-09T20")
        self.assertNotEqual(elsewhere["id"], first["id"])
        self.assertNotIn("_deduped", elsewhere)
        self.claim("k", "--queues", "k1")
        self.workqueue("fail", first["id"], "--agent", "k", "--error", "x")
        self.assertNotEqual(self.enqueue("k1", dedupeKey="hourly-pr-review:2026-02-09T20")["id"], first["id"])

    def test_what_is_over_stays_as_it_is(self):
        item = self.enqueue("over")["id"]
        claimed = self.claim("v", "--queues", "over")
        done = self.workqueue("done", item, "--agent", "v", "--result", "1").json["item"]
        for words in (("done", item, "--agent", "v", "--result", "2"), ("fail", item, "--agent", "v", "--error", "x"),
                      ("progress", item, "--agent", "v", "--note", "x"), ("done", item, "--agent", "w")):
            self.assertEqual(self.refused(*words), "item is already done")
        # the same claim says the same once more, and is answered as before
        again = self.workqueue("done", item, "--agent", "v", "--result", "2", "--fence", claimed["fence"])
        self.assertEqual(again.json["item"], done)

    def test_a_lease_that_ran_out_gives_the_item_to_the_next_one(self):
        item = self.enqueue("lost")["id"]
        self.claim("first", "--queues", "lost", "--leaseMs", "100")
        taken = wait_for(lambda: self.claim("second", "--queues", "lost"), lambda taken: taken)
        self.assertEqual((taken["id"], taken["attempts"], taken["claimedBy"]), (item, 2, "second"))
        self.assertEqual(self.refused("progress", item, "--agent", "first", "--note", "late"),
                         "item claimed by another agent: second")
        self.workqueue("done", item, "--agent", "second")

    def test_progress_on_a_lease_that_ran_out_is_not_claimed(self):
        item = self.enqueue("late")["id"]
        self.claim("tardy", "--queues", "late", "--leaseMs", "100")
        wait_for(lambda: self.ask("item/" + item)["item"]["status"], lambda status: status == "ready")
        self.assertEqual(self.refused("progress", item, "--agent", "tardy", "--note", "x"), "item is not claimed")
        self.assertEqual(self.ask("item/" + item)["item"]["claimedBy"], "")

    def test_the_name_alone_is_noted_in_the_event_and_the_fence_is_not(self):
        item = self.enqueue("noted")["id"]
        fence = self.claim("n", "--queues", "noted")["fence"]
        self.workqueue("progress", item, "--agent", "n", "--note", "by name")
        self.workqueue("done", item, "--agent", "n", "--fence", fence)
        claimed, progressed, completed = self.events(item)[1:4]
        self.assertTrue(claimed["data"]["named"])
        self.assertEqual((progressed["data"]["nameOnly"], progressed["data"]["note"]), (True, "by name"))
        self.assertNotIn("nameOnly", completed["data"])

    def test_two_processes_under_one_name_are_one_without_fences(self):
        item = self.enqueue("twins")["id"]
        self.claim("twin", "--queues", "twins")
        self.claim("twin", "--queues", "twins", "--resumeOwned")
        # the first process goes on and ends what the second one has taken up: as it always was
        self.assertEqual(self.workqueue("done", item, "--agent", "twin").json["item"]["status"], "done")

    def test_two_processes_under_one_name_are_two_with_fences(self):
        item = self.enqueue("fenced")["id"]
        first = self.claim("twin", "--queues", "fenced")["fence"]
        second = self.claim("twin", "--queues", "fenced", "--resumeOwned")["fence"]
        for words in (("progress", item, "--agent", "twin", "--note", "x", "--fence", first),
                      ("done", item, "--agent", "twin", "--result", "1", "--fence", first),
                      ("fail", item, "--agent", "twin", "--error", "x", "--fence", first)):
            self.assertIn("That claim is over", self.refused(*words))
        self.assertEqual(self.ask("item/" + item)["item"]["status"], "claimed")
        done = self.workqueue("done", item, "--agent", "twin", "--result", "2", "--fence", second).json["item"]
        self.assertEqual((done["status"], done["result"]), ("done", 2))

    def test_many_processes_under_one_name_never_get_the_same_item(self):
        ids = {self.enqueue("race", title=str(i))["id"] for i in range(24)}

        def claims(_):
            client = self.server.client()
            taken = []
            while item := client.post("/api/workqueue/claim-next", {"agentId": "r", "queues": ["race"]}).json["item"]:
                taken.append(item["id"])
            client.close()
            return taken

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            taken = [item for each in pool.map(claims, range(8)) for item in each]
        self.assertEqual(sorted(taken), sorted(ids))

    def test_two_that_resume_at_once_get_different_fences(self):
        self.enqueue("resumed")
        self.claim("z", "--queues", "resumed")

        def resume(_):
            client = self.server.client()
            item = client.post("/api/workqueue/claim-next",
                               {"agentId": "z", "queues": ["resumed"], "resumeOwned": True}).json["item"]
            client.close()
            return item["fence"]

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            fences = list(pool.map(resume, range(4)))
        self.assertEqual(len(set(fences)), 4)

    def test_a_task_of_our_own_is_an_item_too(self):
        task = self.client.post("/api/tasks", {"title": "ours", "description": "d", "queue": "mixed", "owner": "mx",
                                               "metadata": {"command": ["make"]}}).json["id"]
        claimed = self.claim("mx", "--queues", "mixed")
        self.assertEqual((claimed["id"], claimed["title"], claimed["instructions"], claimed["meta"]),
                         (task, "ours", "d", {"command": ["make"]}))
        self.assertEqual(self.client.get("/api/tasks/" + task).json["workerId"], "mx")


class Http(Door):
    def test_the_example_of_the_document(self):
        item = self.say("enqueue", {"queue": "dev-team", "title": "hello", "instructions": "do thing", "priority": 10})
        self.assertEqual((item["ok"], item["item"]["title"]), (True, "hello"))
        claimed = self.say("claim-next", {"agentId": "dev", "queue": "elsewhere", "leaseMs": 900000})
        self.assertEqual((claimed["queues"], claimed["queuesSource"]), (["dev-team"], "default"))
        self.assertEqual(claimed["item"]["id"], item["item"]["id"])
        self.assertEqual(self.say("claim-next", {"agentId": "dev"})["item"], None)
        summary = self.ask("summary?queue=dev-team")
        self.assertEqual((summary["counts"], [each["id"] for each in summary["active"]]),
                         ({"claimed": 1}, [item["item"]["id"]]))
        self.assertIn("dev-team", self.ask("queues")["queues"])

    def test_what_is_refused_has_the_shape_of_the_original(self):
        item = self.say("enqueue", {"queue": "shapes"})["item"]["id"]
        self.say("claim-next", {"agentId": "one", "queues": ["shapes"]})
        free = self.say("enqueue", {"queue": "shapes"})["item"]["id"]
        move = {"itemId": item, "agentId": "one", "status": "done"}
        for path, body, status, error in (
                ("enqueue", {"title": "x"}, 400, "queue_required"),
                ("enqueue", {"queue": "   "}, 400, "queue_required"),
                ("enqueue", {"queue": 7}, 400, "invalid_request"),
                ("enqueue", {"queue": "x", "meta": []}, 400, "invalid_request"),
                ("enqueue", b"{", 400, "invalid_request"),
                ("enqueue", b"[]", 400, "invalid_request"),
                ("claim-next", {}, 400, "invalid_request"),
                ("claim-next", {"agentId": "a", "queues": "x"}, 400, "invalid_request"),
                ("transition", {**move, "itemId": ""}, 400, "itemId_required"),
                ("transition", {**move, "agentId": None}, 400, "agentId_required"),
                ("transition", {**move, "status": "ready"}, 400, "invalid_status"),
                ("transition", {**move, "status": "failed"}, 400, "error_required"),
                ("transition", {**move, "itemId": "nope"}, 404, "not_found"),
                ("transition", {**move, "agentId": "two"}, 409, "claimed_by_other"),
                ("transition", {**move, "itemId": free}, 409, "not_claimed"),
                ("done", {"itemId": free, "agentId": "one"}, 409, "not_claimed"),
                ("update", {"itemId": item, "patch": {"status": "gone"}}, 400, "invalid_status"),
                ("update", {"itemId": free, "patch": {"status": "done"}}, 409, "bad_transition"),
                ("delete", {"itemId": "nope"}, 404, "not_found"),
                ("delete", {}, 400, "itemId_required"),
                ("assignments", {"agentId": "a", "queues": [" "]}, 400, "invalid_request"),
                ("import", {"items": []}, 400, "invalid_request"),
                ("import", {"items": [{"id": "x y", "queue": "q"}]}, 400, "invalid_request"),
                ("claim-next", {"agentId": "x", "more": "x" * (65 << 10)}, 413, "request_too_large")):
            with self.subTest(path=path, body=body if len(str(body)) < 200 else "large"):
                refused = self.say(path, body, status)
                self.assertEqual((refused["ok"], refused["error"]), (False, error))
                self.assertTrue(refused["message"])
        other = self.say("transition", {**move, "agentId": "two"}, 409)
        self.assertEqual((other["claimedBy"], other["leaseUntil"] > 0), ("one", True))
        self.assertNotIn("fence", other)
        self.assertEqual([self.ask("item/" + each)["item"]["status"] for each in (item, free)], ["claimed", "ready"])

    def test_what_is_refused_before_the_path_is_looked_at_has_the_same_shape(self):
        refused = self.client.post("/api/workqueue/enqueue", b"{" + b" " * (1 << 20) + b"}")
        self.assertEqual((refused.status, refused.headers["Content-Type"]), (413, "application/json"))
        self.assertEqual((refused.json["ok"], refused.json["error"]), (False, "request_too_large"))
        self.client.close()
        refused = self.client.call("POST", "/api/workqueue/enqueue", {"queue": "q"}, {"Origin": "http://elsewhere"})
        self.assertEqual((refused.status, refused.json["ok"], refused.json["error"]), (403, False, "forbidden"))

    def test_who_may_not_is_told_in_the_same_shape(self):
        nobody = self.server.client(token="")
        for method, path, status, error in (("GET", "/api/workqueue/queues", 401, "unauthorized"),
                                            ("PUT", "/api/workqueue/enqueue", 401, "unauthorized")):
            reply = nobody.call(method, path)
            self.assertEqual((reply.status, reply.json["error"]), (status, error))
        nobody.close()
        reply = self.client.call("PUT", "/api/workqueue/enqueue", {})
        self.assertEqual((reply.status, reply.json["error"]), (405, "method_not_allowed"))
        reply = self.client.get("/api/workqueue/frob")
        self.assertEqual((reply.status, reply.json["error"]), (404, "not_found"))
        token = self.client.post("/api/tokens", {"kind": "worker", "name": "w", "queues": ["mine"]}).json["token"]
        worker = self.server.client(token=token)
        for path, body in (("enqueue", {"queue": "mine"}), ("claim-next", {"agentId": "own", "queues": ["other"]}),
                           ("delete", {"itemId": "x"}), ("import", {"items": [{"id": "x", "queue": "q"}]})):
            reply = worker.post("/api/workqueue/" + path, body)
            self.assertEqual((reply.status, reply.json["error"]), (403, "forbidden"), path)
        item = self.say("enqueue", {"queue": "mine"})["item"]["id"]
        claimed = worker.post("/api/workqueue/claim-next", {"agentId": "own", "queues": ["mine"]}).json["item"]
        self.assertEqual(claimed["id"], item)
        # the name belongs to whoever used it first
        self.assertEqual(self.say("claim-next", {"agentId": "own", "queues": ["mine"]}, 403)["error"], "forbidden")
        worker.close()

    def test_an_operator_changes_and_removes(self):
        item = self.say("enqueue", {"queue": "ops", "title": "a", "meta": {"x": 1}})["item"]["id"]
        changed = self.say("update", {"itemId": item, "patch": {"title": " b ", "instructions": "c", "priority": "7"}})
        self.assertEqual([changed["item"][key] for key in ("title", "instructions", "priority", "meta", "status")],
                         ["b", "c", 7, {"x": 1}, "ready"])
        held = self.say("claim-next", {"agentId": "op", "queues": ["ops"]})["item"]
        freed = self.say("update", {"itemId": item, "patch": {"status": "ready"}})["item"]
        self.assertEqual((freed["status"], freed["claimedBy"], freed["leaseUntil"]), ("ready", "", 0))
        self.assertEqual(self.say("done", {"itemId": item, "agentId": "op", "fence": held["fence"]}, 409)["error"],
                         "stale_claim")
        for status, shown in (("pending", "pending"), ("ready", "ready"), ("failed", "failed"), ("pending", "pending")):
            self.assertEqual(self.say("update", {"itemId": item, "patch": {"status": status}})["item"]["status"], shown)
        self.assertEqual(self.say("update", {"itemId": item, "patch": {}})["item"]["status"], "pending")
        self.assertEqual(self.say("delete", {"itemId": item})["item"]["title"], "b")
        self.assertIsNone(self.ask("item/" + item)["item"])

    def test_meta_is_whatever_the_caller_put_there(self):
        meta = {'a "quoted" key': 1, "tab\tand\nline": {"\x01": []}, "": None, "back\\slash": "\x1f"}
        item = self.say("enqueue", {"queue": "odd-keys", "title": "a", "meta": meta})["item"]
        self.assertEqual(item["meta"], meta)
        self.assertEqual(self.client.get(f"/api/workqueue/item/{item['id']}").json["item"]["meta"], meta)

    def test_a_list_is_told_in_pages(self):
        for i in range(7):
            self.say("enqueue", {"queue": "paged", "title": str(i)})
        for order, wanted in (("newest", "6543210"), ("oldest", "0123456")):
            titles, after = "", ""
            while True:
                page = self.ask(f"items?queue=paged&limit=3&order={order}" + (f"&after={after}" if after else ""))
                titles += "".join(item["title"] for item in page["items"])
                after = page.get("next")
                if not after:
                    break
            self.assertEqual(titles, wanted)


class Lasting(stintd.Case):
    def test_assignments_and_items_outlive_a_crash(self):
        self.client.post("/api/workqueue/assignments", {"agentId": "a", "queues": ["x", "y", "x"]})
        item = self.client.post("/api/workqueue/enqueue", {"queue": "y", "dedupeKey": "k"}).json["item"]["id"]
        held = self.client.post("/api/workqueue/claim-next", {"agentId": "a"}).json["item"]
        self.client.post("/api/workqueue/progress", {"itemId": item, "agentId": "a", "note": "half"})
        self.client.close()
        self.server.kill()
        self.server.start()
        self.client = self.server.client()
        self.assertEqual(self.client.get("/api/workqueue/assignments").json["assignments"], {"a": ["x", "y", "x"]})
        shown = self.client.get("/api/workqueue/item/" + item).json["item"]
        self.assertEqual((shown["status"], shown["claimedBy"], shown["lastNote"], shown["fence"]),
                         ("in_progress", "a", "half", held["fence"]))
        done = self.client.post("/api/workqueue/done", {"itemId": item, "agentId": "a", "fence": held["fence"]})
        self.assertEqual(done.json["item"]["claimedBy"], "a")
        told = [event for event in self.client.get("/api/events").json["events"] if event["type"] == "slot.assigned"]
        self.assertEqual([event["data"] for event in told], [{"slot": "a", "queues": ["x", "y", "x"]}])


class Configured(Door):
    FLAGS = ("--set", "workqueue.defaultQueues=here,there")

    def test_the_servers_default_is_configuration_and_the_callers_comes_first(self):
        item = self.enqueue("there")["id"]
        self.assertEqual(self.say("claim-next", {"agentId": "c", "defaultQueues": []})["reason"], "NO_QUEUES")
        claimed = self.say("claim-next", {"agentId": "c"})
        self.assertEqual((claimed["item"]["id"], claimed["queues"]), (item, ["here", "there"]))
        self.assertEqual(self.ask("queues")["queues"], ["here", "there"])


# ---- taking over ------------------------------------------------------------------------------------------------------


def old_item(number, **fields):
    made = f"2026-02-{number % 27 + 1:02}T20:00:00.{number % 1000:03}Z"
    return {"id": f"0b8e7c1e-5d1f-4b5e-9b1a-{number:012}", "queue": "dev-team", "title": f"item {number}",
            "instructions": "do it", "priority": number % 3, "status": "ready", "claimedBy": "", "claimedAt": "",
            "leaseUntil": 0, "attempts": 0, "lastError": "", "createdAt": made, "updatedAt": made, **fields}


PAST = {"claimedBy": "dev-1", "claimedAt": "2026-02-09T20:20:35.682Z", "leaseUntil": 1770669335682, "attempts": 2,
        "updatedAt": "2026-02-09T20:30:00.000Z"}


class Import(Door):
    def setUp(self):
        self.home = tempfile.TemporaryDirectory()
        self.addCleanup(self.home.cleanup)
        self.place = os.path.join(self.home.name, "clawnsole")
        os.mkdir(self.place)

    def write(self, text, name="work-queues.json"):
        path = os.path.join(self.place, name)
        with open(path, "w") as file:
            file.write(text if isinstance(text, str) else json.dumps(text, indent=2) + "\n")
        return path

    def state(self, *items, **more):
        return {"version": 1, "queues": {"dev-team": {"name": "dev-team", "createdAt": "2026-01-01T00:00:00.000Z"}},
                "items": list(items), "assignments": {}, **more}

    def take(self, *words, status=0):
        return self.stint("import", "clawnsole", *words, status=status, OPENCLAW_HOME=self.home.name)

    def test_a_priority_that_is_no_whole_number_becomes_the_next_one_and_is_kept(self):
        items = [old_item(70, queue="odd", priority=1.5), old_item(71, queue="odd", priority=-0.4),
                 old_item(72, queue="odd", priority=1e12), old_item(73, queue="odd", priority=None)]
        self.write(self.state(*items))
        self.take()
        shown = {item["id"]: item["priority"] for item in self.workqueue("list").json["items"]}
        self.assertEqual([shown[item["id"]] for item in items], [2, 0, 2147483647, 0])
        kept = [self.client.get("/api/tasks/" + item["id"]).json["metadata"]["clawnsoleItem"] for item in items]
        self.assertEqual([each.get("priority") for each in kept], [1.5, -0.4, 1e12, None])

    def test_nothing_is_lost_and_twice_is_once(self):
        items = [old_item(1, dedupeKey="a", meta={"command": ["make", "x"], "repo": "o/r", 'odd "\t key': 1}),
                 old_item(2, status="pending", priority=-5),
                 old_item(3, status="done", result={"pr": 17}, lastNote="shipped", **PAST),
                 old_item(4, status="failed", dedupeKey="a", lastError="broken", **PAST),
                 old_item(5, status="done", result=None, seenCount=3, meta={"n": 1}, **PAST)]
        self.write(self.state(*items, assignments={"dev-1": ["dev-team", "qa", "dev-team"]}))
        self.assertIn("5 of 5 items imported, 0 were there already; 1 assignments", self.take().out)
        shown = {item["id"]: item for item in self.workqueue("list").json["items"]}
        for item in items:
            with self.subTest(status=item["status"]):
                mine = shown[item["id"]]
                self.assertEqual({key: mine.get(key) for key in item if key != "seenCount"},
                                 {key: value for key, value in item.items() if key != "seenCount"})
        task = self.client.get("/api/tasks/" + items[4]["id"]).json
        self.assertEqual(task["metadata"]["clawnsoleItem"]["seenCount"], 3)
        last = self.client.get("/api/version").json
        self.assertIn("0 of 5 items imported, 5 were there already; 0 assignments", self.take().out)
        self.assertEqual({item["id"]: item for item in self.workqueue("list").json["items"]}, shown)
        self.assertEqual(self.ask("assignments")["assignments"]["dev-1"], ["dev-team", "qa", "dev-team"])
        created = [event for event in self.events(items[2]["id"]) if event["type"] == "task.created"]
        self.assertEqual((created[0]["data"]["imported"], len(created)), ("clawnsole", 1))
        self.assertTrue(last)
        # what is imported is worked on as ever: the highest priority, then the oldest
        self.assertEqual(self.claim("im", "--queues", "dev-team")["id"], items[0]["id"])
        self.assertEqual(self.workqueue("done", items[0]["id"], "--agent", "im").json["item"]["attempts"], 1)

    def test_what_was_held_is_ready_and_remembers(self):
        item = old_item(20, queue="held", status="in_progress", lastNote="half", **PAST)
        self.write(self.state(item))
        self.take()
        shown = self.ask("item/" + item["id"])["item"]
        self.assertEqual([shown[key] for key in ("status", "claimedBy", "leaseUntil", "attempts", "lastNote")],
                         ["ready", "", 0, 2, "half"])
        kept = self.client.get("/api/tasks/" + item["id"]).json["metadata"]["clawnsoleItem"]
        self.assertEqual((kept["status"], kept["claimedBy"]), ("in_progress", "dev-1"))
        self.assertEqual(self.claim("h", "--queues", "held")["attempts"], 3)

    def test_open_items_that_share_a_key_are_all_there(self):
        twins = [old_item(number, queue="shared", dedupeKey="same") for number in (30, 31)]
        self.write(self.state(*twins))
        self.assertIn("2 of 2 items", self.take().out)
        shown = self.workqueue("list", "--queue", "shared").json["items"]
        self.assertEqual([item["dedupeKey"] for item in shown], ["same", "same"])
        self.assertEqual(self.enqueue("shared", dedupeKey="same")["id"], twins[0]["id"])

    def test_both_files_are_read_and_the_newer_one_counts(self):
        self.write(self.state(assignments={"x1": ["a"], "empty": []}))
        self.write({"version": 1, "agents": {"x1": {"queues": ["old"]}, "x2": {"queues": ["b", "c"]}},
                    "defaults": {"queues": ["dev-team", "qa"]}}, "work-queue-assignments.json")
        tried = self.take("--dry-run", "--json").json["import"]
        self.assertEqual((tried["dryRun"], tried["assignments"]), (True, 2))
        self.assertNotIn("x1", self.ask("assignments")["assignments"])
        ran = self.take()
        self.assertIn("dev-team,qa", ran.err)
        assigned = self.ask("assignments")["assignments"]
        self.assertEqual((assigned["x1"], assigned["x2"]), (["a"], ["b", "c"]))
        self.workqueue("assignments", "set", "--agent", "x1", "--queues", "changed")
        self.take()
        self.assertEqual(self.ask("assignments")["assignments"]["x1"], ["changed"])

    def test_a_path_is_a_directory_or_one_of_the_files(self):
        path = self.write(self.state(old_item(40)))
        self.assertEqual(self.stint("import", "clawnsole", path, "--json").json["import"]["imported"], 1)
        self.assertEqual(self.stint("import", "clawnsole", self.place, "--json").json["import"]["existing"], 1)
        missing = self.stint("import", "clawnsole", "/nonexistent", status=3)
        self.assertIn("cannot read /nonexistent/work-queues.json", missing.err)

    def test_what_is_garbled_is_told_with_its_place_and_changes_nothing(self):
        good = json.dumps(old_item(50))
        for text, place, wanted in (
                ("", "", "is empty"),
                ("[]", ":1:1:", "here should be an object"),
                ('{"items": [' + good + "\n" + good + "]}", ":2:1:", "here should be a comma"),
                ('{"items": [' + good + ",\n {]}", ":2:3:", "here should be }"),
                ('{"items": [' + good + ",\n {\"id\": tru}]}", ":2:9:", "This is not JSON"),
                ('{"items": [' + good, "", "ends here"),
                ('{"items": {}}', ":1:11:", "should be a list"),
                ('{"items": [}', ":1:12:", "should be a value"),
                ('{"version": 2, "items": []}', ":1:13:", "only version 1"),
                ('{"items": []} x', ":1:15:", "more than one value"),
                ('{"items": [' + good + ",\n7]}", ":2:1:", "must be an object"),
                (json.dumps({"items": [old_item(50), old_item(51, createdAt="yesterday")]}, indent=0), "",
                 "createdAt must be a time"),
                (json.dumps({"items": [old_item(50), {"queue": "q"}]}), "", "id must be 1 to 128 letters"),
                (json.dumps({"items": [old_item(50), old_item(52, status="lost")]}), "", "status must be one of"),
                (json.dumps({"items": [old_item(50), old_item(53, priority="7")]}), "", "priority must be a number")):
            with self.subTest(wanted=wanted, text=text[-30:]):
                path = self.write(text)
                ran = self.take(status=1)
                self.assertIn(path + place, ran.err)
                self.assertIn(wanted, ran.err)
                self.assertEqual(ran.out, "")
        self.assertIsNone(self.ask("item/" + old_item(50)["id"])["item"])

    def test_a_try_changes_nothing(self):
        self.write(self.state(old_item(60), old_item(61)))
        tried = self.take("--dry-run", "--json").json["import"]
        self.assertEqual((tried["items"], tried["imported"], tried["existing"]), (2, 2, 0))
        self.assertIsNone(self.ask("item/" + old_item(60)["id"])["item"])

    def test_a_long_import_shows_how_far_it_is_on_a_terminal(self):
        self.write(self.state(*(old_item(1000 + i, queue="many", title="x" * 500) for i in range(1500))))
        ran = self.terminal("import", "clawnsole", self.place, talk=True)
        self.assertIn("400 items checking", ran.out)
        self.assertIn("400 items importing", ran.out)
        self.assertIn("1500 of 1500 items imported", ran.out)
        quiet = self.stint("import", "clawnsole", self.place)
        self.assertNotIn("\r", quiet.err)
        self.assertEqual(len(self.workqueue("list", "--queue", "many").json["items"]), 1500)


# ---- many ----------------------------------------------------------------------------------------------------------------


def fill(client, count, rare):
    """So many items, one in `rare` of them in a queue of its own."""
    for start in range(0, count, 500):
        items = [{"id": f"i-{number}", "queue": "rare" if number % rare == 0 else "many", "instructions": "x",
                  "priority": number % 7, "createdAt": "2026-02-09T20:00:00.000Z",
                  "status": "done" if number % 2 else "ready"} for number in range(start, min(start + 500, count))]
        reply = client.post("/api/workqueue/import", {"items": items})
        if reply.status != 200:
            raise RuntimeError(reply.body)


def timed(call):
    begun = time.perf_counter()
    reply = call()
    if reply.status != 200:
        raise RuntimeError(reply.body)
    return (time.perf_counter() - begun) * 1000, reply.json


class Many(stintd.Case):
    COUNT = 4000

    def test_a_filter_that_matches_little_is_bounded_and_comes_to_its_end(self):
        fill(self.client, self.COUNT, 1000)
        found, after, pages = [], "", 0
        while True:
            page = self.client.get("/api/workqueue/items?queue=rare&limit=2" + after).json
            found += [item["id"] for item in page["items"]]
            pages += 1
            if "next" not in page:
                break
            after = "&after=" + page["next"]
        self.assertEqual(found, ["i-3000", "i-2000", "i-1000", "i-0"])
        counts = self.client.get("/api/workqueue/summary").json["counts"]
        self.assertEqual(counts, {"ready": self.COUNT // 2, "done": self.COUNT // 2})
        self.assertEqual(self.client.get("/api/workqueue/queues").json["queues"], ["dev-team", "many", "rare"])
        taken = self.client.post("/api/workqueue/claim-next", {"agentId": "a", "queues": ["many", "rare"]}).json["item"]
        self.assertEqual((taken["id"], taken["priority"]), ("i-6", 6))


def tell_costs(count):
    server = stintd.Server("--set", "log.level=error")
    stintd.contract().judge = lambda *args, **more: None  # the clock is for the server
    client = server.client()
    begun = time.monotonic()
    fill(client, count, 100000)
    print(f"{count} items in {time.monotonic() - begun:.0f} s")
    calls = {
        "enqueue": lambda i, _: client.post("/api/workqueue/enqueue", {"queue": "many", "instructions": "x"}),
        "claim-next": lambda i, _: client.post("/api/workqueue/claim-next", {"agentId": "a", "queues": ["many", "rare"]}),
        "progress": lambda i, item: client.post("/api/workqueue/progress",
                                                {"itemId": item, "agentId": "a", "note": "x"}),
        "done": lambda i, item: client.post("/api/workqueue/done", {"itemId": item, "agentId": "a"}),
        "inspect": lambda i, item: client.get("/api/workqueue/item/" + item),
        "list 20": lambda i, _: client.get("/api/workqueue/items?limit=20&status=ready"),
        "list rare": lambda i, _: client.get("/api/workqueue/items?limit=20&queue=rare"),
    }
    taken = {name: [] for name in calls}
    item = None
    for i in range(200):
        for name, call in calls.items():
            if name == "list rare" and i >= 5:
                continue
            ms, answer = timed(lambda: call(i, item))
            taken[name].append(ms)
            if name == "claim-next":
                item = answer["item"]["id"]
    for name, each in taken.items():
        each.sort()
        print(f"{name:12} median {statistics.median(each):8.2f} ms   worst {each[-1]:8.2f} ms   of {len(each)}")
    ms, answer = timed(lambda: client.get("/api/workqueue/summary"))
    print(f"{'summary':12} {ms:15.2f} ms   {answer['counts']}")
    begun = time.perf_counter()
    subprocess.run([STINT, "workqueue", "inspect", item], env=environment(STINT_HOME=server.home), check=True,
                   stdout=subprocess.DEVNULL)
    print(f"{'stint':12} {(time.perf_counter() - begun) * 1000:15.2f} ms   the whole command")
    client.close()
    server.end()


if __name__ == "__main__":
    if "--items" in sys.argv:
        tell_costs(int(sys.argv[sys.argv.index("--items") + 1]))
    else:
        unittest.main()
