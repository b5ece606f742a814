"""Workflows of a configuration: tasks follow their rules; a rule that cannot be is told with its file and line."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

from hang import HANG_S
import stintd

STINT = os.environ.get("STINT", "build/stint")
DOCS = {
    "text": "a page is written, looked at and published",
    "last": "merged",
    "rules": [
        {"events": ["page.drafted"], "from": ["in_progress"], "to": "building"},
        {"events": ["worker.execution.written"], "from": ["in_progress", "building"], "to": "reviewing",
         "action": "validate", "reports": True},
        {"events": ["spelling.failed"], "from": ["reviewing"], "to": "failed", "onReject": "in_progress"},
        {"events": ["page.published"], "from": ["validated"], "to": "merged"},
    ],
}


class Configured(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.mkdtemp(prefix="stint-workflows-")
        self.addCleanup(shutil.rmtree, self.place)
        self.path = os.path.join(self.place, "config.json")
        self.write({"docs": DOCS})
        self.server = stintd.Server("--config", self.path)
        self.addCleanup(self.server.end)
        self.client = self.server.client()
        self.addCleanup(self.client.close)

    def write(self, workflows):
        with open(self.path, "w") as file:
            json.dump({"workflows": workflows}, file)

    def restart(self):
        self.client.close()
        self.assertEqual(self.server.stop(), 0)
        self.server.start()

    def create(self, **fields):
        reply = self.client.post("/api/tasks", {"title": "a page", "workflow": "docs", **fields})
        self.assertEqual(reply.status, 201, reply.body)
        return reply.json["id"]

    def tell(self, task, event, expect=200):
        reply = self.client.post("/api/tasks/%s/events" % task, {"type": event})
        self.assertEqual(reply.status, expect, reply.body)
        return reply.json

    def claim(self, task, worker="w"):
        return self.client.post("/api/tasks/%s/claim" % task, {"workerId": worker}).json

    def progress(self, task, claim, event, worker="w"):
        reply = self.client.post("/api/tasks/%s/progress" % task,
                                 {"workerId": worker, "fence": claim["fence"], "event": event})
        self.assertEqual(reply.status, 200, reply.body)
        return self.where(task)

    def where(self, task):
        found = self.client.get("/api/tasks/" + task).json
        return found["workflow"], found["stage"], found["state"]

    def validator(self):
        token = self.client.post("/api/tokens", {"kind": "approver", "name": "v"}).json["token"]
        client = self.server.client(token=token)
        self.addCleanup(client.close)
        return client

    def pass_gate(self, task, verdict="pass"):
        reply = self.validator().post("/api/tasks/%s/gates/validate" % task, {"verdict": verdict})
        self.assertEqual(reply.status, 200, reply.body)

    def test_a_task_goes_by_its_own_rules_to_its_last_stage(self):
        task = self.create()
        claim = self.claim(task)
        self.assertEqual(self.progress(task, claim, "page.drafted"), ("docs", "building", "running"))
        self.assertEqual(self.progress(task, claim, "worker.building")[1], "building", "no rule of its own knows that")
        self.assertEqual(self.progress(task, claim, "written"), ("docs", "reviewing", "review"))
        changed = self.client.get("/api/tasks/%s/events" % task).json["events"][-2]
        self.assertEqual((changed["type"], changed["data"]["action"]), ("task.stage_changed", "validate"))
        self.assertEqual(self.tell(task, "page.published", 409)["code"], "gate_required")
        self.pass_gate(task)
        self.assertEqual(self.where(task), ("docs", "validated", "review"))
        self.tell(task, "page.published")
        self.assertEqual(self.where(task), ("docs", "merged", "done"))

    def test_a_rejection_by_its_own_rule_starts_the_next_attempt(self):
        task = self.create()
        self.progress(task, self.claim(task), "written")
        self.tell(task, "spelling.failed")
        self.assertEqual(self.where(task), ("docs", "in_progress", "ready"))

    def test_what_all_workflows_share_is_there(self):
        task = self.create()
        self.progress(task, self.claim(task), "worker.execution.failed")
        self.assertEqual(self.where(task), ("docs", "failed", "failed"))

    def test_tasks_know_their_workflow_by_a_number_that_stays(self):
        task = self.create()
        self.write({"another": {**DOCS, "text": ""}, "docs": DOCS})
        self.restart()
        other = self.create(workflow="another")
        self.write({"docs": DOCS})
        self.restart()
        self.assertEqual(self.where(task), ("docs", "in_progress", "ready"))
        self.assertEqual(self.where(other), ("another", "in_progress", "ready"))
        self.tell(task, "page.drafted")
        self.assertEqual(self.where(task)[1], "building")
        self.tell(other, "page.drafted")
        self.assertEqual(self.where(other)[1], "in_progress", "it is not configured any more")
        refused = self.client.post("/api/tasks", {"title": "x", "workflow": "another"})
        self.assertEqual((refused.status, refused.json["errors"][0]["field"]), (422, "workflow"))
        self.write({"another": DOCS})
        self.restart()
        self.tell(other, "page.drafted")
        self.assertEqual(self.where(other), ("another", "building", "ready"))

    def test_they_are_shown_as_data(self):
        listed = {each["name"]: each for each in self.client.get("/api/workflows").json}
        self.assertEqual(set(listed), {"autopilot", "autopilot-deploy", "docs"})
        docs = listed["docs"]
        self.assertEqual((docs["text"], docs["last"], docs["builtIn"]), (DOCS["text"], "merged", False))
        self.assertEqual(docs["rules"][1], {"events": ["written"], "from": ["in_progress", "building"],
                                            "guards": ["holder"], "to": "reviewing", "action": "validate",
                                            "reports": True})
        self.assertEqual(docs["rules"][3]["guards"], ["review", "gated"])
        self.assertIn("validation.passed", [name for rule in docs["rules"] for name in rule["events"]])
        self.assertEqual(self.client.get("/api/workflows/docs").json, docs)
        self.assertEqual(self.client.get("/api/workflows/nope").status, 404)
        self.assertEqual(self.client.get("/api/tasks?workflow=docs").json, [])

    def stint(self, *words):
        run = subprocess.run([STINT, *words], capture_output=True, text=True, timeout=HANG_S, stdin=subprocess.DEVNULL,
                             env=stintd.environment(STINT_HOME=self.server.home))
        return run.returncode, run.stdout, run.stderr

    def test_the_command_line_shows_them(self):
        code, out, _ = self.stint("workflow", "ls")
        self.assertEqual(code, 0)
        for word in ("autopilot", "docs", "merged", DOCS["text"]):
            self.assertIn(word, out)
        code, out, _ = self.stint("workflow", "show", "docs")
        self.assertEqual(code, 0)
        for word in ("page.published", "validated", "merged", "reviewing"):
            self.assertIn(word, out)
        code, out, _ = self.stint("workflow", "show", "docs", "--json")
        self.assertEqual(json.loads(out)["workflow"], self.client.get("/api/workflows/docs").json)
        self.assertEqual(self.stint("workflow", "show", "nope")[0], 3)


class Wrong(unittest.TestCase):
    """Line 4 of the file is the rule."""

    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="stint-workflows-")
        self.addCleanup(shutil.rmtree, self.home)

    def check(self, text):
        path = os.path.join(self.home, "config.json")
        with open(path, "w") as file:
            file.write(text)
        run = subprocess.run([stintd.STINTD, "--home", self.home, "--listen", "127.0.0.1:0"], capture_output=True,
                             text=True, timeout=HANG_S, env=stintd.environment())
        self.assertEqual(run.returncode, 78, run.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.home, "stint.db")), "nothing was begun")
        return run.stderr.replace(path, "FILE")

    def rule(self, rule, last="merged", line=4):
        said = self.check('{ "workflows": {\n"docs": { "last": "%s",\n"rules": [\n%s] } } }\n' % (last, rule))
        self.assertIn("stintd: FILE:%d:" % line, said)
        return said

    def test_a_bad_rule_is_told_with_its_place_and_what_is_allowed(self):
        good = '"events": ["x"], "from": ["in_progress"], "to": "building"'
        for rule, words in (
                ('{}', "must have events, from and to"),
                ('7', "must be an object"),
                ('{ "events": [], "from": ["in_progress"], "to": "building" }', "rules[0].events must be a list"),
                ('{ "events": ["a b"], "from": ["in_progress"], "to": "building" }', 'names of events, of letters, digits and . _ - : /, or *. and the end of one; [0] is "a b"'),
                ('{ "events": ["x"], "from": ["nowhere"], "to": "building" }', "from must be a list of stages: allocated,"),
                ('{ "events": ["x"], "from": ["in_progress"], "to": "done" }', "to must be a stage"),
                ('{ %s, "guards": ["lucky"] }' % good, "must be a list of guards: holder, review"),
                ('{ %s, "action": "dance" }' % good, "must be create_pr, validate, merge or verify"),
                ('{ %s, "reports": 1 }' % good, "must be true or false"),
                ('{ %s, "when": "later" }' % good, "rules[0].when is not a known key; known are events, from"),
                ('{ "events": ["x"], "from": ["building"], "to": "in_progress" }', "leads back"),
                ('{ "events": ["x"], "from": ["failed"], "to": "merged" }', "nothing leads out of them"),
                ('{ "events": ["x"], "from": ["reviewing"], "to": "merged" }', "that was not validated"),
                ('{ "events": ["x"], "from": ["in_progress"], "to": "validated" }', "from pr_created or reviewing"),
                ('{ "events": ["x"], "from": ["allocated"], "to": "building" }', "the only way from there is to in_progress"),
                ('{ "events": ["x"], "from": ["validated"], "to": "deploying" }', "behind the last one, merged"),
                ('{ "events": ["x"], "from": ["reviewing"], "to": "validated", "reports": true }', "reports: it must"),
                ('{ "events": ["x"], "from": ["reviewing"], "to": "failed", "onReject": "building" }', "in_progress,"),
                ('{ %s, "onReject": "in_progress" }' % good, "then it must lead to failed"),
                ('{ %s, "guards": ["verdict"] }' % good, "then it must lead to validated"),
        ):
            with self.subTest(rule):
                line = 3 if rule in ("{}", "7") else 4
                self.assertIn(words, self.rule(rule, line=line))

    def test_so_is_a_bad_workflow(self):
        rules = '[{ "events": ["x"], "from": ["validated"], "to": "merged" }]'
        for text, words in (
                ('{ "workflows": [] }', "workflows must be an object"),
                ('{ "workflows": { "docs": 7 } }', "workflows.docs must be an object"),
                ('{ "workflows": { "docs": {} } }', "must have last and rules"),
                ('{ "workflows": { "autopilot": { "last": "merged", "rules": %s } } }' % rules, "is built in"),
                ('{ "workflows": { "a b": { "last": "merged", "rules": %s } } }' % rules, "must have a name of"),
                ('{ "workflows": { "docs": { "last": "building", "rules": %s } } }' % rules, "the stage that is done"),
                ('{ "workflows": { "docs": { "last": "completed", "rules": %s } } }' % rules, "no rule that leads to"),
                ('{ "workflows": { "docs": { "last": "merged", "rules": %s, "more": 1 } } }' % rules, "workflows.docs.more is not a known key"),
                ('{ "workflows": { "docs": { "last": "merged", "text": 1, "rules": %s } } }' % rules, "must be a string of at most 255 bytes; it is 1"),
        ):
            with self.subTest(words):
                said = self.check(text)
                self.assertIn("stintd: FILE:1:", said)
                self.assertIn(words, said)


if __name__ == "__main__":
    unittest.main()
