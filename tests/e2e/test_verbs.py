"""Every verb in every way it can end: success, refusal, bad usage, a wrong token, a server that is away; with the exact exit
status and the envelope of --json. A verb that is missing here fails the test."""
import json
import os
import re
import shlex
import subprocess
import tempfile
import unittest

from hang import HANG_S
import stintd
from test_cli import STINT, CliCase, environment

NONE = object()


class Row:
    def __init__(self, good, key, refused=None, bad=None, prepare=None):
        """`good` are the words of a success and `key` the member that --json has then (None: no JSON); `refused` the words
        of a refusal with its status and code; `bad` those of bad usage."""
        self.good, self.key, self.refused, self.bad = good, key, refused, bad or ["--bogus"]
        self.prepare = prepare


class Verbs(CliCase):
    @classmethod
    def setUpClass(cls):
        cls.server = stintd.Server("--set", "limits.authFailuresPerS=1000")
        cls.client = cls.server.client()
        cls.gone = stintd.Server()
        cls.gone.kill()  # its socket and its address are left behind
        cls.count = 0

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.gone.end()

    def setUp(self):
        """A connection of its own: the one before may have been idle for longer than a server keeps it."""
        super().setUp()
        type(self).client.close()
        type(self).client = self.server.client()

    # ---- worlds: each gives what is put in place of {…} in the words, and an environment

    def task(self, **more):
        type(self).count += 1
        name = f"v-{self.count}"
        self.client.post("/api/tasks", {"id": name, "title": "x", "queue": "q-" + name, **more})
        return {"id": name, "queue": "q-" + name}

    def schedule(self):
        type(self).count += 1
        name = f"s-{self.count}"
        self.client.post("/api/schedules", {"id": name, "every": "1h", "task": {"title": "x", "queue": "q-" + name}})
        return {"id": name, "new": "new-" + name}

    def bulk(self):
        found = self.task()
        made = self.client.post("/api/tasks/bulk", {"filter": {"queue": found["queue"]}, "action": "park"}).json
        while self.client.get("/api/bulk/" + made["id"]).json["state"] == "running":
            pass
        return {**found, "bulk": made["id"]}

    def parked(self):
        return self.task(state="pending")

    def cancelled(self):
        found = self.task()
        self.client.post(f"/api/tasks/{found['id']}/cancel")
        return found

    def held(self):
        found = self.task()
        claim, = self.client.post("/api/claims", {"workerId": "w", "queues": [found["queue"]]}).json["claims"]
        return {**found, "env": {"STINT_TASK_ID": found["id"], "STINT_FENCE": claim["fence"], "STINT_WORKER_ID": "w"},
                "fence": claim["fence"]}

    def done(self):
        found = self.held()
        self.client.post(f"/api/tasks/{found['id']}/complete", {"workerId": "w", "fence": found["fence"]})
        return found

    def asking(self):
        found = self.held()
        self.client.post(f"/api/tasks/{found['id']}/ask", {"workerId": "w", "fence": found["fence"], "question": "?"})
        return found

    def logged(self):
        found = self.held()
        self.client.post(f"/api/tasks/{found['id']}/log", {"workerId": "w", "fence": found["fence"], "offset": 0, "data": "x"})
        return found

    def worker(self):
        type(self).count += 1
        self.client.post("/api/workers/register", {"workerId": f"w-{self.count}", "leaseMs": 60000})
        return {"id": f"w-{self.count}"}

    def quarantined(self):
        type(self).count += 1
        for _ in range(3):
            self.client.post(f"/api/slots/s-{self.count}/crash")
        return {"id": f"s-{self.count}"}

    def session(self):
        type(self).count += 1
        label = f"agent:main:worker-slot-1:{self.count}"
        self.client.post("/api/sessions/spawn", {"sessionLabel": label, "prompt": "do it"})
        claim = self.client.post(f"/api/tasks/{label}/claim", {"workerId": "agents"}).json
        self.client.post(f"/api/tasks/{label}/log", {"workerId": "agents", "fence": claim["fence"], "offset": 0, "data": "x"})
        self.client.post(f"/api/tasks/{label}/progress", {"workerId": "agents", "fence": claim["fence"], "prompt": "do it", "session": {
            "id": "s-1", "adapter": "claude", "agentSessionId": "u-1", "host": "h", "attach": "claude --resume u-1"}})
        return {"id": label}

    def token(self):
        return {"id": self.client.post("/api/tokens", {"kind": "viewer", "name": "x"}).json["id"]}

    def certificate(self):
        directory = os.path.join(self.server.home, "others")
        self.stint("tls", "init", "--dir", directory)
        return {"cert": os.path.join(directory, "server.crt")}

    def queue(self):
        self.client.post("/api/queues/a/resume", {})
        self.client.post("/api/tasks", {"title": "x", "queue": "a"})
        return {}

    def group(self):
        return {**(found := self.task(group=f"g-{self.count + 1}")), "group": f"g-{self.count}", "task": found["id"]}

    def ended_group(self):
        found = self.group()
        self.client.post(f"/api/groups/{found['group']}/close", {})
        self.client.post(f"/api/tasks/{found['task']}/cancel")
        return found

    MISSING = (3, "not_found")
    UNKNOWN_STATE = (["-s", "asleep", "-Q", "x"], 2, "invalid")
    ID = ["{id}"]
    ROWS = {
        "doctor": Row([], "checks", (["--home", "/nonexistent"], 1, None)),
        "add": Row(["x"], "task", (["x", "--id", "{id}"], 4, "task_exists"), ["a", "b"], task),
        "ls": Row([], "tasks", (["--state", "nothing"], 2, "invalid"), ["x"]),
        "show": Row(ID, "task", (["nothing"], *MISSING), [], task),
        "why": Row(ID, "why", (["nothing"], *MISSING), [], task),
        "wait": Row(ID, "task", (["nothing"], *MISSING), [], done),
        "edit": Row([*ID, "--priority", "high"], "task", (["nothing", "--priority", "1"], *MISSING), ID, task),
        "cancel": Row(ID, "task", (["nothing"], *MISSING), [], task),
        "retry": Row(ID, "task", (["nothing"], *MISSING), [], cancelled),
        "park": Row(ID, "task", (["nothing"], *MISSING), [], task),
        "unpark": Row(ID, "task", (["nothing"], *MISSING), [], parked),
        "inbox": Row([], "approvals", None, ["x"]),
        "answer": Row(["{id}", "yes"], "task", (["nothing", "yes"], *MISSING), ["x"], asking),
        "tell": Row([*ID, "hello"], "task", (["nothing", "hello"], *MISSING), [], task),
        "approve": Row(ID, "task", (["nothing"], *MISSING), [], asking),
        "deny": Row(ID, "task", (["nothing"], *MISSING), [], asking),
        "events": Row(["-n", "1"], None, (["--after", "99999999"], 4, "cursor_gone"), ["x"]),
        "logs": Row(ID, "log", (["nothing"], *MISSING), [], logged),
        "errors": Row([], "errors", None, ["x"]),
        "group ls": Row([], "groups", None, ["x"]),
        "group show": Row(["{group}"], "group", (["nothing"], *MISSING), [], group),
        "group close": Row(["{group}"], "group", (["nothing"], *MISSING), [], group),
        "group cancel": Row(["{group}", "--yes"], "bulk", (["nothing"], *MISSING), [], group),
        "group retry": Row(["{group}", "--yes"], "bulk", (["nothing"], *MISSING), [], group),
        "bulk cancel": Row(["-Q", "{queue}", "--yes"], "bulk", UNKNOWN_STATE, ["--all", "x"], task),
        "bulk retry": Row(["-Q", "{queue}"], "bulk", UNKNOWN_STATE, ["--all", "x"], task),
        "bulk park": Row(["-Q", "{queue}", "--dry-run"], "bulk", UNKNOWN_STATE, [], task),
        "bulk unpark": Row(["-Q", "{queue}", "--no-wait"], "bulk", UNKNOWN_STATE, ["--all", "x"], parked),
        "bulk move": Row(["elsewhere", "-Q", "{queue}"], "bulk", (["elsewhere", *UNKNOWN_STATE[0]], *UNKNOWN_STATE[1:]), [], task),
        "bulk priority": Row(["high", "-Q", "{queue}"], "bulk", (["soon", "--all"], 2, "invalid"), ["high"], task),
        "bulk purge": Row(["-Q", "{queue}"], "bulk", UNKNOWN_STATE, ["--all", "x"], cancelled),
        "bulk ls": Row([], "bulks", None, ["x"]),
        "bulk show": Row(["{bulk}"], "bulk", (["b-999999"], *MISSING), [], bulk),
        "bulk stop": Row(["{bulk}"], "bulk", (["b-999999"], *MISSING), [], bulk),
        "group rm": Row(["{group}"], "group", (["nothing"], *MISSING), [], ended_group),
        "hold ls": Row([], "holds", None, ["x"]),
        "hold budget": Row(["a", "--turns", "5"], "account", (["{long}", "--turns", "5"], 2, "invalid"), []),
        "hold accounts": Row([], "accounts", None, ["x"]),
        "queue budget": Row(["q", "--turns", "5"], "queue", (["{long}", "--turns", "5"], 2, "invalid"), []),
        "hold add": Row(["a"], "hold", (["{long}"], 2, "invalid"), []),
        "hold rm": Row(["a"], "hold", (["none"], 3, "not_found"), []),
        "queue ls": Row([], "queues", None, ["x"]),
        "queue show": Row(["a"], "queue", (["nothing"], 3, "not_found"), [], queue),
        "queue keys": Row(["a"], "keys", (["nothing"], 3, "not_found"), [], queue),
        "queue limit": Row(["a", "--concurrency", "2"], "queue", (["{long}", "--concurrency", "2"], 2, "invalid"), []),
        "queue pause": Row(["a"], "queue", (["{long}"], 2, "invalid"), []),
        "queue resume": Row(["a"], "queue", (["{long}"], 2, "invalid"), []),
        "queue drain": Row(["b"], "queue", (["{long}"], 2, "invalid"), []),
        "schedule add": Row(["{new}", "--every", "1h", "x"], "schedule", (["{id}", "--every", "1h"], 4, "schedule_exists"), ["x"],
                            schedule),
        "schedule ls": Row([], "schedules", None, ["x"]),
        "schedule show": Row(ID, "schedule", (["nothing"], *MISSING), [], schedule),
        "schedule run": Row(ID, "task", (["nothing"], *MISSING), [], schedule),
        "schedule pause": Row(ID, "schedule", (["nothing"], *MISSING), [], schedule),
        "schedule resume": Row(ID, "schedule", (["nothing"], *MISSING), [], schedule),
        "schedule rm": Row(ID, "schedule", (["nothing"], *MISSING), [], schedule),
        "schedule next": Row(ID, "schedule", (["nothing"], *MISSING), [], schedule),
        "workflow ls": Row([], "workflows", None, ["x"]),
        "workflow show": Row(["autopilot"], "workflow", (["nothing"], *MISSING), []),
        "disarm": Row([], "execution", None, ["x"]),
        "arm": Row([], "execution", None, ["x"]),
        "worker ls": Row([], "workers", None, ["x"]),
        "worker show": Row(ID, "worker", (["nobody"], *MISSING), [], worker),
        "worker quiet": Row(ID, "worker", (["nobody"], *MISSING), [], worker),
        "worker stop": Row(ID, "worker", (["nobody"], *MISSING), [], worker),
        "slot ls": Row([], "slots", None, ["x"]),
        "slot unquarantine": Row(ID, "slot", (["nobody"], *MISSING), [], quarantined),
        "session ls": Row([], "sessions", None, ["x"]),
        "session show": Row(ID, "session", (["nobody"], *MISSING), [], session),
        "session stop": Row(ID, "session", (["nobody"], *MISSING), [], session),
        "session logs": Row(ID, "log", (["nobody"], *MISSING), [], session),
        "session prompt": Row(ID, "prompt", (["nobody"], *MISSING), [], session),
        "session attach": Row(ID, "session", (["nobody"], *MISSING), [], session),
        "claim": Row(["--queues", "{queue}"], "claim", (["--id", "nothing"], *MISSING), ["--max", "0"], task),
        "task progress": Row([], "progress", (["--task", "nothing"], *MISSING), ["--percent", "101"], held),
        "task done": Row([], "task", (["--fence", "1"], 4, "stale_claim"), ["a", "--result", "1"], held),
        "task review": Row([], "task", (["--fence", "1"], 4, "stale_claim"), ["a", "--result", "1"], held),
        "task fail": Row(["no"], "task", (["no", "--fence", "1"], 4, "stale_claim"), [], held),
        "task block": Row(["no"], "task", (["no", "--fence", "1"], 4, "stale_claim"), [], held),
        "task ask": Row(["?"], "task", (["?", "--fence", "1"], 4, "stale_claim"), [], held),
        "task release": Row([], "task", (["--fence", "1"], 4, "stale_claim"), ["--delay", "5"], held),
        "task add": Row(["a part"], "task", (["x", "--fence", "1"], 4, "stale_claim"), ["a", "--max-attempts", "0"], held),
        "task wait": Row([], "task", (["--fence", "1"], 4, "stale_claim"), ["x"], held),
        "token create": Row(["--kind", "viewer"], "token", (["--kind", "root"], 2, "invalid"), []),
        "token ls": Row([], "tokens", None, ["x"]),
        "token rotate": Row(["--key"], "keys", ([], 2, "usage"), ["x"]),
        "tls init": Row([], "tls", (["a b"], 2, "invalid"), []),
        "tls show": Row(["{cert}"], "certificates", (["/nowhere/x.crt"], *MISSING), [], certificate),
        "worker invite": Row([], "token", (["--uses", "0"], 2, "usage"), ["x"]),
        "token revoke": Row(ID, "token", (["0123456789abcdef"], *MISSING), [], token),
        "backup": Row(["{id}.db"], "backup", (["../x"], 2, "invalid"), ["a", "b"], task),
        "db query": Row(["SELECT 1"], "result", (["DELETE FROM task"], 2, "invalid"), []),
        "config show": Row([], "config", (["--set", "no=1"], 1, None), ["x"]),
        "config path": Row([], "files", None, ["x"]),
        "config schema": Row([], "document", None, ["x"]),
        "skill ls": Row([], "skills", None, ["x"]),
        "skill show": Row(["stint-task"], "skill", (["nothing"], *MISSING), []),
        "skill install": Row(["--dry-run"], "files", (["nothing"], *MISSING), ["--agent", "emacs"]),
        "completion": Row(["bash"], NONE, None, ["tcsh"]),
        "version": Row([], "version", None, ["x"]),
        "help": Row(["add"], NONE, None, ["nothing"]),
    }
    LOCAL = {"tls init", "tls show", "config show", "config path", "config schema", "skill ls", "skill show", "skill install", "completion", "version",
             "help"}  # ask no server
    ELSEWHERE = {"up", "down", "dashboard", "run", "top", "worker run", "worker run-once",  # test_cli.Up, test_top, test_worker, test_once
                 "worker enroll",  # test_enroll
                 "worker sweep-prs", "worker worktrees", "agent ls", "agent show", "agent test", "agent login",  # test_agents
                 "mcp",  # test_mcp
                 "workflow act",  # test_agents
                 "notify run", "notify ls", "notify test",  # test_notify
                 "bundle",  # test_bundle
                 "import clawhub", "import pm2", "import github", "import beads", "import tasks", "export",  # test_import
                 "import clawnsole", *(f"workqueue {name}" for name in (  # test_workqueue
                     "enqueue", "claim-next", "progress", "done", "fail", "inspect", "list", "assignments"))}

    def each(self, check, but=frozenset()):
        """check(verb, row, words, env) for every verb, each in a world of its own."""
        for verb, row in self.ROWS.items():
            with self.subTest(verb=verb):
                found = {"id": "nothing", "long": "x" * 300, **(row.prepare(self) if row.prepare else {})}

                def words(of, found=found):
                    return [word.format(**found) if "{" in word else word for word in of]

                if verb not in but:
                    check(verb.split(), row, words, found.get("env", {}))

    def test_every_verb_is_here(self):
        known = re.findall(r"^\*stint ([a-z0-9 -]+)\* ?", self.stint("__man", "stint").out, re.M)
        self.assertEqual(set(known), set(self.ROWS) | self.ELSEWHERE)

    SILENT = {"up", "top", "worker run", "notify run",  # they go on until they are stopped; what they log is JSON
              "mcp",  # a protocol of its own
              "workflow act",  # the result of a task, which is JSON anyway
              "completion", "help"}  # a script, and a text

    def test_every_verb_that_answers_does_so_in_json(self):
        for verb in set(self.ROWS) | self.ELSEWHERE:
            with self.subTest(verb=verb):
                has = "--json" in self.stint("help", *verb.split()).out
                self.assertEqual(has, verb not in self.SILENT)

    def test_success(self):
        def check(verb, row, words, env):
            if row.key is NONE:
                self.assertTrue(self.stint(*verb, *words(row.good), **env).out)
                return
            told = self.stint(*verb, *words(row.good), "--json", **env).json
            if row.key is None:
                self.assertIn("seq", told)  # the events themselves
                return
            self.assertEqual((told["schema"], told["ok"]), (1, True), told)
            self.assertIn(row.key, told)

        self.each(check)

    def test_success_for_people(self):
        def check(verb, row, words, env):
            self.assertNotIn("stint: ", self.stint(*verb, *words(row.good), **env).err)

        self.each(check)

    def test_members_are_picked(self):
        def check(verb, row, words, env):
            if row.key in (NONE, None, "version"):
                return
            picked = self.stint(*verb, *words(row.good), "--json=no-such-member", **env).json[row.key]
            for thing in picked if isinstance(picked, list) else [picked]:
                self.assertEqual(thing, {"no-such-member": None})

        self.each(check)

    def test_refusal(self):
        def check(verb, row, words, env):
            if not row.refused:
                return
            refused, status, code = row.refused
            ran = self.stint(*verb, *words(refused), "--json", status=status, **env)
            self.assertEqual((ran.json["schema"], ran.json["ok"]), (1, False))
            if code:
                self.assertEqual((ran.json["error"]["code"], ran.json["error"]["retryable"]), (code, False))
                self.assertTrue(ran.json["error"]["message"])
                self.assertRegex(self.stint(*verb, *words(refused), status=status, **env).err, rf"^stint: .+ \({code}\)\n  try  stint ")
                fix = shlex.split(ran.json["error"]["try"])
                self.stint(*fix[1:], "--help")  # it is a command

        self.each(check)

    def test_bad_usage(self):
        def check(verb, row, words, _):
            before = stintd.last_change(self.client)
            for bad in (row.bad, ["--bogus"]):
                self.assertRegex(self.stint(*verb, *words(bad), status=2).err, r"^stint: .+\n  try  stint ")
            if row.key is not NONE:
                told = self.stint(*verb, *words(row.bad), "--json", status=2).json
                self.assertEqual((told["schema"], told["ok"]), (1, False))
                self.assertIn(told["error"]["code"], ("usage", "invalid"))
            self.assertEqual(stintd.last_change(self.client), before)

        self.each(check)

    def test_a_wrong_token(self):
        def check(verb, row, words, env):
            status = 1 if verb == ["doctor"] else 6
            told = self.stint(*verb, *words(row.good), "--json", status=status, STINT_TOKEN="stint_admin_0_0", **env).json
            self.assertFalse(told["ok"])
            self.assertEqual(told.get("error", {}).get("code"), None if verb == ["doctor"] else "unauthorized")

        self.each(check, but=self.LOCAL)

    def test_a_token_that_may_not(self):
        """A token for /metrics alone may do nothing of all this."""
        token = self.stint("token", "create", "--kind", "metrics").out.strip()

        def check(verb, row, words, env):
            told = self.stint(*verb, *words(row.good), "--json", status=6, STINT_TOKEN=token, **env).json
            self.assertEqual(told["error"]["code"], "forbidden")

        self.each(check, but=self.LOCAL | {"doctor"})

    def test_a_server_that_is_away(self):
        """All at once: those of `task` wait for it, for seven seconds."""
        waiting = []

        def begin(verb, row, words, env):
            process = subprocess.Popen([STINT, *verb, *words(row.good), "--json"], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
                                       env=environment(STINT_HOME=self.gone.home, **env))
            waiting.append((verb, process))

        self.each(begin, but=self.LOCAL)
        for verb, process in waiting:
            with self.subTest(verb=" ".join(verb)):
                out, err = process.communicate(timeout=HANG_S)
                told = json.loads(out or err.splitlines()[-1])
                if verb == ["doctor"]:
                    self.assertEqual((process.returncode, told["ok"]), (1, False))
                    continue
                self.assertEqual(process.returncode, 7, err)
                self.assertEqual((told["schema"], told["ok"], told["error"]["code"], told["error"]["retryable"]),
                                 (1, False, "unreachable", True))
                self.assertEqual(verb[0] == "task", "trying again" in err)

    def test_no_server_at_all(self):
        with tempfile.TemporaryDirectory() as home:
            def check(verb, row, words, env):
                self.assertIn("stint up", self.stint(*verb, *words(row.good), status=7, STINT_HOME=home, **env).err)

            self.each(check, but=self.LOCAL | {"doctor"})
            self.assertEqual(os.listdir(home), [])


if __name__ == "__main__":
    unittest.main()
