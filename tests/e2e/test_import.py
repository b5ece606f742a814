"""stint import pm2, clawhub, github, beads: what becomes of the things of other systems, that a dry run changes nothing, that twice is
once, and that a mistake is told with its place."""
import json
import os
import shutil
import subprocess
import tempfile
import time
import unittest

from hang import HANG_S
import stintd
from test_examples import STINT, environment

# It answers as gh does: JSON on standard output; and writes down what it was asked.
GH = """#!/bin/sh
echo "$*" >>"$GH_ASKED"
test -z "$GH_FAILS" || { echo 'gh: not logged in' >&2; exit 4; }
cat "$GH_SAYS"
"""


def issue(number, **more):
    return {"number": number, "title": f"issue {number}", "body": "words of a stranger", "labels": [],
            "url": f"https://github.com/own.er/some_name/issues/{number}", "author": {"login": "bob"},
            "createdAt": "2026-01-02T03:04:05Z", **more}


class Import(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stint-import-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.server = stintd.Server()
        self.addCleanup(self.server.end)
        self.client = self.server.client()
        self.addCleanup(self.client.close)
        self.env = environment(self.folder, STINT_HOME=self.server.home, TZ="Europe/Berlin", GH_ASKED=self.path("asked"),
                               GH_SAYS=self.path("issues.json"))
        self.env["PATH"] = self.folder + "/bin:" + self.env["PATH"]

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text, mode=0o644):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(os.open(self.path(name), os.O_CREAT | os.O_WRONLY | os.O_TRUNC, mode), "w") as file:
            file.write(text if isinstance(text, str) else json.dumps(text))

    def stint(self, *words, status=0, **env):
        ran = subprocess.run([STINT, *words], cwd=self.folder, env={**self.env, **env}, capture_output=True, text=True,
                             timeout=HANG_S, stdin=subprocess.DEVNULL)
        self.assertEqual(ran.returncode, status, ran.stdout + ran.stderr)
        return ran

    def imported(self, *words, **env):
        return json.loads(self.stint("import", *words, "--json", **env).stdout)["import"]

    def wrong(self, *words, **env):
        """The sentence about the mistake; nothing was changed."""
        before = self.newest()
        said = self.stint("import", *words, status=1, **env).stderr
        self.assertEqual(self.newest(), before)
        return said

    def newest(self):
        return self.client.get("/api/events?after=now").json["next"]

    def task(self, id):
        return self.client.get("/api/tasks/" + id).json

    def thrice(self, *words, new, existing=0):
        """A dry run changes nothing, the import does, and once more nothing."""
        before = self.newest()
        dry = self.imported(*words, "--dry-run")
        self.assertEqual((dry["dryRun"], dry["imported"], dry["existing"], self.newest()), (True, new, existing, before))
        told = self.imported(*words)
        self.assertEqual((told["imported"], told["existing"]), (new, existing))
        before = self.newest()
        again = self.imported(*words)
        self.assertEqual((again["imported"], again["existing"], self.newest()), (0, new + existing, before))
        return told


class Beads(Import):
    def lines(self, *issues):
        self.write(".beads/issues.jsonl", "".join(json.dumps(one) + "\n" for one in issues))

    def test_issues_become_tasks_that_wait_for_what_blocks_them(self):
        self.lines({"id": "bd-2", "title": "second", "status": "in_progress", "priority": 0, "labels": ["ui"],
                    "description": "do it", "acceptance_criteria": "it works",
                    "dependencies": [{"issue_id": "bd-2", "depends_on_id": "bd-1", "type": "blocks"},
                                     {"issue_id": "bd-2", "depends_on_id": "bd-9", "type": "related"},
                                     {"issue_id": "bd-2", "depends_on_id": "bd-3", "type": "blocks"}]},
                   {"id": "bd-1", "title": "first", "status": "open", "priority": 4},
                   {"id": "bd-3", "title": "over", "status": "closed"},
                   {"id": "bd-1.1", "title": "later", "status": "deferred", "priority": 2})
        told = self.thrice("beads", "--queue", "app", new=3)
        self.assertEqual({one["id"]: one["outcome"] for one in told["tasks"]},
                         {"bd-1": "new", "bd-2": "new", "bd-3": "leftOut", "bd-1.1": "new"})
        second = self.task("bd-2")
        self.assertEqual((second["state"], second["blockedBy"], second["priority"], second["queue"]),
                         ("waiting", ["bd-1"], 100, "app"))
        self.assertEqual((second["instructions"], second["labels"]), ("do it\n\n## Acceptance criteria\n\nit works", ["ui", "beads"]))
        self.assertEqual(second["metadata"]["importedFrom"], {"system": "beads", "status": "in_progress"})
        self.assertEqual((self.task("bd-1")["state"], self.task("bd-1")["priority"]), ("ready", -100))
        self.assertEqual(self.task("bd-1.1")["state"], "pending")

    def test_more_issues_than_one_request_takes(self):
        self.lines(*({"id": f"bd-{i}", "title": "x" * 900, "dependencies": [
            {"issue_id": f"bd-{i}", "depends_on_id": f"bd-{i + 1}", "type": "blocks"}] if i < 450 else []} for i in range(451)))
        self.thrice("beads", new=451)
        self.assertEqual(self.task("bd-0")["blockedBy"], ["bd-1"])

    def test_an_import_that_was_cut_off_goes_on(self):
        self.client.post("/api/tasks", {"id": "bd-1", "title": "was there"})
        self.lines({"id": "bd-1", "title": "a"}, {"id": "bd-2", "title": "b"})
        self.thrice("beads", ".beads", new=1, existing=1)
        self.assertEqual(self.task("bd-1")["title"], "was there")

    def test_mistakes_have_a_place(self):
        for lines, wanted in (
                ('{"id":"a"}\n{"id":\n', "issues.jsonl:2:"),
                ('{"id":"a"}\n\n{"id":"a"}\n', "issues.jsonl:3:1: the issue a is there twice: the first one is in line 1"),
                ('{"id":"a b"}\n', "issues.jsonl:1:1: 'a b' cannot be the id of a task"),
                ('{"title":"a"}\n', 'issues.jsonl:1:1: the issue has no "id"'),
                ('[]\n', "issues.jsonl:1:1: every issue must be an object"),
                ('{"id":"a","status":"lost"}\n', 'must be open, in_progress, blocked, deferred, hooked, pinned, closed or tombstone; it is lost'),
                ('{"id":"a","priority":5}\n', '"priority" of a must be a number from 0 to 4'),
                ('{"id":"a","title":7}\n', '"title" must be a text; it is 7'),
                ('{"id":"a","dependencies":[{"depends_on_id":"b","type":"blocks"}]}\n'
                 '{"id":"b","dependencies":[{"depends_on_id":"a","type":"blocks"}]}\n', "issues.jsonl:1:1: a waits for itself")):
            with self.subTest(lines=lines):
                self.write(".beads/issues.jsonl", lines)
                said = self.wrong("beads")
                self.assertIn(wanted, said)
                self.assertIn("nothing was changed", said)

    def test_what_the_server_refuses_is_told_with_its_line(self):
        self.lines({"id": "a", "title": "good"}, {"id": "b", "title": "bad", "labels": ["x" * 5000]})
        said = self.stint("import", "beads", status=1).stderr
        self.assertRegex(said, r"issues\.jsonl:2:1: the issue b: labels.*1 tasks were added before it\. Mend it and repeat")
        self.assertEqual(self.task("a")["state"], "ready")

    def test_no_tracker(self):
        self.assertIn("there is no .beads/issues.jsonl", self.stint("import", "beads", status=3).stderr)


class Github(Import):
    def setUp(self):
        super().setUp()
        self.write("bin/gh", GH, 0o755)

    def test_issues_of_a_label_become_tasks(self):
        self.write("issues.json", [issue(7, labels=[{"name": "stint"}, {"name": "P1"}]), issue(8, body="")])
        words = ("github", "-R", "own.er/some_name", "--label", "stint,bug", "--executor", "claude", "--cwd", "work", "--worktree", "--gate", "merge")
        self.thrice(*words, new=2)
        task = self.task("gh:own.er.some_name:7")
        self.assertEqual((task["title"], task["description"], task["priority"], task["labels"]),
                         ("issue 7", "words of a stranger", 50, ["stint", "P1"]))
        self.assertNotIn("words of a stranger", task["instructions"])
        self.assertIn("https://github.com/own.er/some_name/issues/7", task["instructions"])
        self.assertEqual((task["executor"], task["workingDir"], task["worktree"], task["gates"]),
                         ("claude", self.path("work"), True, ["merge"]))
        self.assertEqual(task["metadata"]["importedFrom"],
                         {"system": "github", "repository": "own.er/some_name", "number": 7, "author": "bob",
                          "url": "https://github.com/own.er/some_name/issues/7", "createdAt": "2026-01-02T03:04:05Z"})
        with open(self.path("asked")) as file:
            asked = file.readline()
        self.assertIn("--limit 200 --repo own.er/some_name --label stint --label bug", asked)

    def test_issues_without_a_label_are_not_taken(self):
        self.assertIn("with --label", self.stint("import", "github", status=2).stderr)
        self.assertFalse(os.path.exists(self.path("asked")))

    def test_the_limit_is_told_when_it_was_met(self):
        self.write("issues.json", [issue(1), issue(2)])
        self.assertIn("there may be more than 2 issues", self.stint("import", "github", "-l", "x", "--limit", "2").stderr)

    def test_gh_that_fails_or_talks_nonsense(self):
        said = self.wrong("github", "-l", "x", GH_FAILS="1")
        self.assertIn("gh: not logged in", said)
        self.assertIn("gh ended with status 4; nothing was changed", said)
        for text, wanted in (("[", "the output of gh:1:2"), ('[{"number":0}]', 'the output of gh:1:2: this is no issue'),
                             ('[{"number":1,"url":"https://x/a/b/issues/1","title":[]}]', '"title" must be a text; it is []')):
            self.write("issues.json", text)
            self.assertIn(wanted, self.wrong("github", "-l", "x"))

    def test_no_gh(self):
        os.unlink(self.path("bin/gh"))
        if not shutil.which("gh"):
            self.assertIn("gh, GitHub's command line, cannot be run", self.wrong("github", "-l", "x"))


class Clawhub(Import):
    def tasks(self, *tasks, wrap=False):
        self.write(".clawhub/tasks.json", {"tasks": list(tasks)} if wrap else list(tasks))

    def test_tasks_of_both_generations(self):
        now = int(time.time() * 1000)
        self.tasks({"id": "late", "title": "late", "owner": "slot-1", "status": "todo", "createdAt": 2000, "priority": 5},
                   {"id": "early", "title": "early", "owner": "slot-1", "status": "queued", "createdAt": 1000, "priority": 5},
                   {"id": "work", "title": "work", "owner": "slot-2", "status": "in-progress", "createdAt": 3000, "priority": "P0",
                    "steps": ["one", "two"], "deliverables": "a file", "instructions": "do", "description": "d", "tags": ["x"],
                    "dependsOn": ["done", "early"], "timeoutMs": 60000, "metadata": {"mine": 1}},
                   {"id": "look", "title": "look", "status": "review", "createdAt": "2026-01-02T03:04:05.000Z"},
                   {"id": "done", "title": "done", "status": "done"})
        self.write(".clawhub/worker-heartbeats.json", {"workers": {
            "slot-1": {"slot": "slot-1", "status": "idle", "task": None, "sessionId": None, "lastUpdate": now},
            "slot-2": {"slot": "slot-2", "status": "working", "task": "work", "sessionId": "agent:main:worker-slot-2:x", "lastUpdate": 1}}})
        self.thrice("clawhub", ".", new=4)
        work = self.task("work")
        self.assertEqual((work["owner"], work["state"], work["blockedBy"], work["priority"]), ("slot-2", "waiting", ["early"], 100))
        self.assertEqual((work["steps"], work["deliverables"], work["labels"], work["timeoutMs"]), (["one", "two"], "a file", ["x"], 60000))
        self.assertEqual((work["metadata"]["mine"], work["metadata"]["crashRecovery"], work["metadata"]["previousSession"]),
                         (1, True, "agent:main:worker-slot-2:x"))
        self.assertEqual(work["metadata"]["importedFrom"], {"system": "clawhub", "status": "in-progress", "createdAt": 3000})
        self.assertEqual(self.task("look")["state"], "pending")
        claim, = self.client.post("/api/claims", {"workerId": "w", "slot": "slot-1"}).json["claims"]
        self.assertEqual(claim["task"]["id"], "early")  # the older one, though it stands behind the other

    def test_each_slot_is_told_with_its_command_and_whether_it_still_works(self):
        now = int(time.time() * 1000)
        self.tasks(wrap=True)
        self.write(".clawhub/worker-heartbeats.json", {"workers": [
            {"slot": "slot-1", "task": None, "lastBeatAt": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(now // 1000))},
            {"id": "slot-2", "status": "offline", "lastUpdate": now}]})
        said = self.stint("import", "clawhub", ".clawhub/tasks.json").stderr
        self.assertIn("stint worker --slot slot-1", said)
        self.assertIn("stint worker --slot slot-2", said)
        self.assertRegex(said, r"slot-1 beat \d+ s ago: stop that worker")
        self.assertNotIn("slot-2 beat", said)

    def test_mistakes_have_a_place(self):
        for text, wanted in (
                ('[{"id":"a","status":"todo"},\n {"id":"b","status":"eaten"}]', 'tasks.json:2:2: "status" of b must be todo, in-progress'),
                ('[{"id":"a","priority":"soon"}]', '"priority" of a must be a number, P0 to P3'),
                ('[\n1]', "tasks.json:2:1: every task must be an object"),
                ('{"other":[]}', 'tasks.json:1:1: this must be a list of tasks, or have "tasks"'),
                ('[{"id":"a","dependsOn":[1]}]', "what a depends on must be a list of ids"),
                ('[{"id":"a","dependsOn":["a"]}]', "a waits for itself"),
                ('[,]', "tasks.json:1:2")):
            with self.subTest(text=text):
                self.write(".clawhub/tasks.json", text)
                self.assertIn(wanted, self.wrong("clawhub", "."))
        self.assertIn("cannot read", self.stint("import", "clawhub", "none", status=2).stderr)


class Pm2(Import):
    APPS = {"apps": [
        {"name": "report", "script": "./jobs/report.py", "args": "--all 'a b' \"c\"", "cwd": "app", "autorestart": False,
         "cron_restart": "30 2 * * *", "env": {"LEVEL": 3, "NAME": "x"}},
        {"name": "thumbs", "script": "thumbs.js", "node_args": ["--no-warnings"], "kill_timeout": 5000, "max_memory_restart": "200M",
         "max_restarts": 10, "env": {"MODE": "fast"}},
        {"name": "worker-slot-1", "script": "./bridge/worker.mjs", "args": "slot-1", "env": {"SLOT_ID": "slot-1"}}]}

    def test_apps_become_schedules_executors_and_slots(self):
        self.write("ecosystem.json", self.APPS)
        told = self.thrice("pm2", "ecosystem.json", new=1)
        self.assertEqual([(app["name"], app["becomes"]) for app in told["apps"]],
                         [("report", "schedule"), ("thumbs", "executor"), ("worker-slot-1", "slot")])
        self.assertEqual(told["apps"][2]["command"], "stint worker --slot slot-1")
        schedule = self.client.get("/api/schedules/report").json
        self.assertEqual((schedule["cron"], schedule["tz"]), ("30 2 * * *", "Europe/Berlin"))
        self.assertEqual(schedule["task"]["payload"]["argv"], ["python3", self.path("app/jobs/report.py"), "--all", "a b", "c"])
        self.assertEqual((schedule["task"]["workingDir"], schedule["task"]["env"]), (self.path("app"), {"LEVEL": "3", "NAME": "x"}))
        self.assertEqual(told["config"], {
            "roots": [self.folder], "queues": {"thumbs": {"executor": "thumbs"}},
            "executors": {"thumbs": {"kind": "command", "argv": ["node", "--no-warnings", self.path("thumbs.js")],
                                     "env": {"MODE": "fast"}, "graceMs": 5000, "budget": {"memoryBytes": 200 << 20}}}})

    def test_the_configuration_is_one_that_a_worker_reads(self):
        self.write("ecosystem.json", [{"name": "mk", "script": "make", "args": ["test"]}])
        self.stint("import", "pm2", "ecosystem.json", "--out", "worker.json")
        self.assertEqual(os.stat(self.path("worker.json")).st_mode & 0o777, 0o600)
        checked = self.stint("worker", "run", "--config", self.path("worker.json"), "--check-config").stdout
        self.assertRegex(checked, r"executor mk +command.*: make test\nqueue +mk +executor mk")
        self.stint("import", "pm2", "ecosystem.json", "--out", "worker.json")  # the same once more
        self.write("worker.json", "{}")
        said = self.stint("import", "pm2", "ecosystem.json", "--out", "worker.json", status=4).stderr
        self.assertIn("it is there already, with another content", said)
        with open(self.path("worker.json")) as file:
            self.assertEqual(file.read(), "{}")

    def test_what_is_printed_is_the_same_file(self):
        self.write("ecosystem.json", {"name": "mk", "script": "make"})
        shown = json.loads(self.stint("import", "pm2", "ecosystem.json").stdout)
        self.assertEqual(shown["executors"]["mk"]["argv"], ["make"])
        self.assertFalse(os.path.exists(self.path("worker.json")))

    def test_a_program_is_not_run_to_read_it(self):
        self.write("ecosystem.config.js", "require('fs').writeFileSync('ran', '')")
        said = self.stint("import", "pm2", "ecosystem.config.js", status=2).stderr
        self.assertIn("JSON.stringify(require(", said)
        self.assertFalse(os.path.exists(self.path("ran")))

    def test_mistakes_have_a_place(self):
        for text, wanted in (
                ('{"apps":[{"name":"a","script":"a.js"},\n{"name":"b"}]}', 'ecosystem.json:2:1: the app b has no "script"'),
                ('{"apps":[1]}', "an app must be an object"),
                ('{"apps":{}}', '"apps" must be a list'),
                ('{"apps":[{"name":"a b","script":"x"}]}', '"name" of an app must have letters'),
                ('[{"script":"x.js"},{"script":"x.py"}]', "there are two apps with the name x"),
                ('[{"script":"x.js","args":"\'a"}]', '"args" of x has a quote that does not end'),
                ('[{"script":"x.js","args":3}]', '"args" of x must be a text, or a list of texts'),
                ('[{"script":"x.js"} // api\n]', "ecosystem.json:1:")):
            with self.subTest(text=text):
                self.write("ecosystem.json", text)
                self.assertIn(wanted, self.wrong("pm2", "ecosystem.json"))

    def test_a_cron_line_that_the_server_refuses(self):
        self.write("ecosystem.json", [{"name": "a", "script": "x.sh", "autorestart": False, "cron_restart": "61 * * * *"}])
        self.assertRegex(self.stint("import", "pm2", "ecosystem.json", status=1).stderr, r"ecosystem\.json:1:2: the schedule a: cron ")


class Tasks(Import):
    """What stint export prints becomes tasks of another server."""

    def setUp(self):
        super().setUp()
        self.other = stintd.Server()
        self.addCleanup(self.other.end)

    def exported(self, *flags, home=None):
        lines = self.stint("export", *flags, STINT_HOME=home or self.server.home).stdout.splitlines()
        return [json.loads(line) for line in lines]

    def make(self, id, **fields):
        reply = self.client.post("/api/tasks", {"id": id, "title": "the " + id, **fields})
        self.assertEqual(reply.status, 201, reply.body)

    KEPT = ("id", "title", "queue", "priority", "labels", "payload", "blockedBy", "onParentFailure", "concurrencyKey", "uniqueKey", "metadata",
            "timeoutMs", "maxAttempts", "requires", "notBefore", "state")

    def kept(self, tasks):
        return sorted(([(name, task.get(name)) for name in self.KEPT] for task in tasks), key=str)

    def test_there_and_back_and_twice_is_once(self):
        self.make("late", notBefore=4102444800000, labels=["a", "b"], metadata={"mine": 1.5}, executor="x")
        self.make("first", priority=7, payload={"argv": ["true"]}, requires=["gpu"], uniqueKey="u", concurrencyKey="acme")
        self.make("second", blockedBy=["first"], onParentFailure="run", timeoutMs=5000, maxAttempts=7)
        self.make("parked", state="pending")
        self.write("tasks.jsonl", "\n".join(json.dumps(task) for task in reversed(self.exported())) + "\n")
        there = {"STINT_HOME": self.other.home}
        self.assertEqual(self.imported("tasks", "tasks.jsonl", "--dry-run", **there)["imported"], 4)
        self.assertEqual(self.exported(home=self.other.home), [])
        self.assertEqual(self.imported("tasks", "tasks.jsonl", **there)["imported"], 4)
        self.assertEqual(self.kept(self.exported(home=self.other.home)), self.kept(self.exported()))
        again = self.imported("tasks", "tasks.jsonl", **there)
        self.assertEqual((again["imported"], again["existing"]), (0, 4))

    def test_what_is_over_is_left_out_and_what_a_person_must_see_is_parked(self):
        self.make("done", queue="q")
        self.make("works", queue="q")
        for name in ("done", "works"):
            claim = self.client.post("/api/claims", {"workerId": "w", "queues": ["q"]}).json["claims"][0]
            self.assertEqual(claim["task"]["id"], name)
            if name == "done":
                self.client.post("/api/tasks/done/complete", {"workerId": "w", "fence": claim["fence"]})
        self.make("gone")
        self.make("waits", blockedBy=["gone"])
        self.client.post("/api/tasks/gone/cancel", {})
        self.assertEqual(sorted(task["id"] for task in self.exported()), ["waits", "works"])
        everything = self.exported("--all")
        self.assertEqual(len(everything), 4)
        self.write("tasks.jsonl", "\n".join(json.dumps(task) for task in everything))
        found = self.imported("tasks", "tasks.jsonl", STINT_HOME=self.other.home)
        self.assertEqual(found["imported"], 2)
        states = {task["id"]: task["state"] for task in self.exported(home=self.other.home)}
        self.assertEqual(states, {"works": "ready", "waits": "pending"})

    def test_a_mistake_has_its_place_and_changes_nothing(self):
        self.write("tasks.jsonl", '{"id":"a","title":"a"}\n{"id":"a","title":"b"}\n')
        self.assertIn("tasks.jsonl:2:1: the task a is there twice", self.wrong("tasks", "tasks.jsonl"))
        self.write("tasks.jsonl", '{"id":"a","title":"a"}\n{"title":"b"}\n')
        self.assertIn('tasks.jsonl:2:1: the task has no "id"', self.wrong("tasks", "tasks.jsonl"))


if __name__ == "__main__":
    unittest.main()
