"""The command `stint` against a real server: each verb, wrong input, exit statuses, what a terminal and what a pipe get."""
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import threading
import time
import unittest
import urllib.parse

from between import Between
from hang import HANG_S
import stintd

STINT = os.path.abspath(os.environ.get("STINT", "build/stint"))
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# What of the caller's environment would change what is tested.
OWN = ("NO_COLOR", "CLICOLOR_FORCE", "COLUMNS", "TERM", "LANG", "LC_ALL", "LC_CTYPE")


def environment(**more):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("STINT_", "CLAWNSOLE_")) and k not in OWN}
    kept.update({"LANG": "C.UTF-8", "TERM": "xterm", "PAGER": "cat"})
    kept.update({k: v for k, v in more.items() if v is not None})
    return kept


class Ran:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    @property
    def json(self):
        """What was printed; or how it failed, which is the last line on standard error."""
        return json.loads(self.out or self.err.splitlines()[-1])

    @property
    def lines(self):
        return self.out.splitlines()


class CliCase(unittest.TestCase):
    """One server for the tests of a class; each test uses queues and tasks of its own."""

    @classmethod
    def setUpClass(cls):
        cls.server = stintd.Server("--set", "retry.baseMs=60000")
        cls.client = cls.server.client()

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.end()

    def stint(self, *args, status=0, stdin="", cwd=None, **env):
        env.setdefault("STINT_HOME", self.server.home)
        ran = subprocess.run([STINT, *args], input=stdin, capture_output=True, text=True, timeout=HANG_S, cwd=cwd,
                             env=environment(**env))
        ran = Ran(ran.returncode, ran.stdout, ran.stderr)
        if status is not None:
            self.assertEqual(ran.status, status, f"stint {args}: {ran.out}{ran.err}")
        return ran

    def terminal(self, *args, columns=80, status=0, talk=False, **env):
        """On a pseudo-terminal of that width; with `talk` standard error, too."""
        env.setdefault("STINT_HOME", self.server.home)
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen([STINT, *args], stdin=slave, stdout=slave, stderr=slave if talk else subprocess.PIPE,
                                   env=environment(**env))
        os.close(slave)
        out = b""
        until = time.monotonic() + HANG_S
        while time.monotonic() < until:
            try:
                if not select.select([master], [], [], 1)[0]:
                    continue
                piece = os.read(master, 65536)
            except OSError:
                break
            if not piece:
                break
            out += piece
        os.close(master)
        err = "" if talk else process.stderr.read().decode()
        if not talk:
            process.stderr.close()
        ended = process.wait(HANG_S)
        if status is not None:
            self.assertEqual(ended, status, err)
        return Ran(ended, out.decode().replace("\r\n", "\n"), err)

    def begin(self, *args, **options):
        """A command that goes on; it ends with the test, if not before."""
        options.setdefault("text", True)
        env = {"STINT_HOME": self.server.home, **options.pop("env", {})}
        process = subprocess.Popen([STINT, *args], env=environment(**env), **options)

        def end():
            if process.poll() is None:
                process.kill()
            process.wait(HANG_S)
            for pipe in (process.stdout, process.stderr):
                if pipe:
                    pipe.close()

        self.addCleanup(end)
        return process

    def add(self, *args, **options):
        return self.stint("add", *args, **options).out.strip()

    def state(self, task):
        return self.client.get("/api/tasks/" + task).json["state"]

    def claim(self, queue, worker="w"):
        claim, = self.client.post("/api/claims", {"workerId": worker, "queues": [queue]}).json["claims"]
        return claim

    def holding(self, claim, worker="w"):
        return {"STINT_TASK_ID": claim["task"]["id"], "STINT_FENCE": claim["fence"], "STINT_WORKER_ID": worker}


class Adding(CliCase):
    def test_add_prints_the_id_and_nothing_else(self):
        ran = self.stint("add", "say hello", "--queue", "plain")
        self.assertRegex(ran.out, r"^t-[0-9a-z]+\n$")
        self.assertEqual(ran.err, "")
        self.assertEqual(self.client.get("/api/tasks/" + ran.out.strip()).json["title"], "say hello")

    def test_every_flag_reaches_the_task(self):
        parent = self.add("first", "--queue", "flags")
        before = int(time.time() * 1000)
        task = self.stint(
            "add", "all of it", "--queue", "flags", "--priority", "high", "--after", parent, "--timeout", "5m",
            "--max-attempts", "7", "--needs", "gpu,linux", "--label", "a", "--label", "b", "--executor", "tests",
            "--payload", '{"n":[1,2]}', "--owner", "slot-1", "--not-before", "1h", "--start-by", "2h", "--finish-by",
            "3h", "--hold", "--id", "my-task", "--unique", "only-one", "--on-conflict", "reject", "--unique-for", "1h", "--cwd", "/srv/sub", "--module", "chess",
            "--isolation", "sandbox", "--json").json["task"]
        expected = {"id": "my-task", "queue": "flags", "priority": 50, "blockedBy": [parent], "timeoutMs": 300000,
                    "maxAttempts": 7, "requires": ["gpu", "linux"], "labels": ["a", "b"], "executor": "tests",
                    "payload": {"n": [1, 2]}, "owner": "slot-1", "state": "pending", "uniqueKey": "only-one",
                    "onConflict": "reject", "uniqueForMs": 3600000,
                    "workingDir": "/srv/sub", "module": "chess", "isolationLevel": "sandbox"}
        self.assertEqual({key: task[key] for key in expected}, expected)
        for name, hours in (("notBefore", 1), ("startBy", 2), ("finishBy", 3)):
            self.assertLess(abs(task[name] - before - hours * 3600000), 60000)
        self.assertRegex(self.stint("show", "my-task").out, "(?s)executor +tests\n.*module +chess\n.*isolation +sandbox\n")

    def test_numbers_of_any_length_are_what_they_were(self):
        numbers = '{"n":[123456789012345678901234567890,0.12345678901234567890123]}'
        task = self.add("long", "--queue", "numbers", "--payload", numbers)
        for args in (["show", task, "--json"], ["show", task, "--json=payload"], ["ls", "--queue", "numbers", "--json"],
                     ["show", task]):
            self.assertIn(numbers, self.stint(*args).out)

    def test_a_level_of_isolation_that_there_is_not_is_refused(self):
        ran = self.stint("add", "x", "--id", "no-level", "--isolation", "jail", status=None)
        self.assertIn("process, sandbox, container, vm", ran.err)
        self.assertEqual(self.client.get("/api/tasks/no-level").status, 404)

    def repository(self, text):
        """A directory within one whose .stint/config.json has this text."""
        top = tempfile.mkdtemp(prefix="stint-repository-")
        self.addCleanup(shutil.rmtree, top)
        for name in (".git", ".stint", "src"):
            os.mkdir(os.path.join(top, name))
        with open(os.path.join(top, ".stint", "config.json"), "w") as file:
            file.write(text)
        return os.path.join(top, "src")

    def test_a_repository_says_what_the_flags_do_not(self):
        here = self.repository('{"queue": "ours", "executor": "tests", "labels": ["a", "b"],} // as usual')
        names = ("queue", "executor", "labels")

        def added(*args, **more):
            task = self.client.get("/api/tasks/" + self.add("t", *args, **more).split()[0]).json
            return tuple(task.get(name) for name in names)
        self.assertEqual(added(cwd=here), ("ours", "tests", ["a", "b"]))
        self.assertEqual(added("--queue", "q", "--label", "c", cwd=here), ("q", "tests", ["c"]))
        self.assertEqual(added()[:2], ("default", None), "elsewhere it says nothing")
        task, = self.stint("add", "-", "--json", stdin="- [ ] one\n", cwd=here).json["tasks"]
        self.assertEqual((task["queue"], task["labels"]), ("ours", ["a", "b"]))

    def test_a_repository_may_say_nothing_else(self):
        for text, told in (
                ('{"queue": "q",\n "executors": {"x": {"argv": ["sh"]}}}', "config.json:2:2: a repository may say queue, "
                 "executor and labels, not executors"),
                ('{"url": "http://127.0.0.1:1"}', "not url"), ('{"queue": 7}', "queue takes a name"),
                ('{"labels": [1]}', "labels takes a list of texts"), ("[]", "it must be an object"), ("{", "config.json:1:")):
            ran = self.stint("add", "t", "--queue", "hostile", cwd=self.repository(text), status=2)
            self.assertIn(told, ran.err)
        self.assertEqual(self.client.get("/api/tasks?queue=hostile").json, [])
        here = self.repository("{}")
        os.mkfifo(os.path.join(here, "pipe"))
        os.replace(os.path.join(here, "pipe"), os.path.join(here, "../.stint/config.json"))
        self.assertIn("is not a file", self.stint("add", "t", cwd=here, status=2).err)

    @unittest.skipIf(os.geteuid() != 0, "only root can give a file away")
    def test_what_belongs_to_somebody_else_is_not_followed(self):
        here = self.repository('{"queue": "theirs"}')
        os.chown(os.path.join(here, "../.stint/config.json"), 65534, 65534)
        ran = self.stint("add", "t", "--json", cwd=here)
        self.assertEqual(ran.json["task"]["queue"], "default")
        self.assertIn("belongs to another user", ran.err)

    def test_instructions_come_from_a_file_or_standard_input(self):
        task = self.stint("add", "-f", "-", "--queue", "file", "--json", stdin="# Port it\n\nto C23\n").json["task"]
        self.assertEqual((task["title"], task["instructions"]), ("Port it", "# Port it\n\nto C23\n"))
        with tempfile.NamedTemporaryFile("w", suffix=".md") as file:
            file.write("do this")
            file.flush()
            task = self.stint("add", "a title", "--file", file.name, "--payload", "@" + file.name, status=2)
            self.assertIn("--payload is not JSON", task.err)
            task = self.stint("add", "a title", "--file", file.name, "--json").json["task"]
        self.assertEqual((task["title"], task["instructions"]), ("a title", "do this"))

    def test_the_same_key_makes_one_task(self):
        first = self.add("x", "--key", "k-1")
        self.assertEqual(self.add("x", "--key", "k-1"), first)
        ran = self.stint("add", "y", "--key", "k-1", status=4)
        self.assertIn("idempotency_conflict", ran.err)

    def test_the_same_unique_key_gives_the_task_that_is_there(self):
        first = self.add("x", "--unique", "u-1")
        again = self.stint("add", "x", "--unique", "u-1", "--json").json["task"]
        self.assertEqual((again["id"], again["deduplicated"]), (first, True))

    def test_an_id_that_exists_is_a_conflict(self):
        self.add("x", "--id", "twice")
        self.assertIn("task_exists", self.stint("add", "x", "--id", "twice", status=4).err)

    def test_what_the_server_refuses_is_told_with_its_field(self):
        ran = self.stint("add", "x", "--id", "no spaces allowed", status=2)
        self.assertIn("id ", ran.err)
        ran = self.stint("add", "x", "--after", "not-there", status=2)
        self.assertIn("not-there", ran.err)

    def test_wrong_input_changes_nothing(self):
        before = stintd.last_change(self.client)
        for args in (["x", "--timeout", "30"], ["x", "--priority", "soon"], ["x", "--payload", "{"], ["x", "y"], [],
                     ["x", "--bogus"], ["x", "--queue"], ["--file", "/not/there"], ["x", "--not-before", "tomorrow"]):
            with self.subTest(args=args):
                ran = self.stint("add", *args, status=2)
                self.assertEqual(ran.out, "")
                self.assertTrue(ran.err.startswith("stint: "), ran.err)
        self.assertEqual(stintd.last_change(self.client), before)

    def test_a_checklist_becomes_tasks_that_wait_for_each_other(self):
        text = "# Plan\n- [ ] release\n  - [ ] build\n    with gcc\n  - [x] write\n  - [ ] test\n1. one\n2. two\n   - below two\n"
        ran = self.stint("add", "-", "--queue", "list", "--json", stdin=text)
        tasks = {task["title"]: task for task in ran.json["tasks"]}
        self.assertEqual(set(tasks), {"release", "build", "test", "one", "two", "below two"})
        ids = {title: task["id"] for title, task in tasks.items()}
        self.assertEqual(set(tasks["release"]["blockedBy"]), {ids["build"], ids["test"]})
        self.assertEqual(set(tasks["two"]["blockedBy"]), {ids["one"], ids["below two"]})
        self.assertEqual(tasks["below two"]["blockedBy"], [ids["one"]])
        self.assertEqual(tasks["build"]["instructions"], "with gcc")
        self.assertEqual({title for title, task in tasks.items() if task["state"] == "ready"}, {"build", "test", "one"})

    def test_a_checklist_with_a_key_is_made_once(self):
        first = self.stint("add", "-", "--key", "c-1", stdin="- a\n- b\n").out
        self.assertEqual(self.stint("add", "-", "--key", "c-1", stdin="- a\n- b\n").out, first)

    def test_a_checklist_with_an_item_that_waits_for_too_many_makes_nothing(self):
        for below, status in ((100, 0), (101, 2)):
            queue = "wide-%d" % below
            text = "- all\n" + "".join("  - part %d\n" % i for i in range(below))
            ran = self.stint("add", "-", "--queue", queue, stdin=text, status=status)
            self.assertEqual(len(self.client.get("/api/tasks?limit=1000&queue=" + queue).json), 0 if status else 101)
        self.assertIn("line 1 of the checklist waits for 101 tasks", ran.err)
        self.stint("add", "-", "--queue", "wide-after", "--after", "t-1,t-2", status=2, stdin="- all\n" + "  - part\n" * 99)

    def test_a_checklist_without_items_is_refused(self):
        ran = self.stint("add", "-", stdin="nothing here\n", status=2)
        self.assertIn("no item", ran.err)
        self.assertIn("line 2", self.stint("add", "-", stdin="- a\n- [ ]\n- [ ] \n", status=2).err)


    def test_the_first_line_of_a_file_is_its_title_to_the_last_letter(self):
        for text, title in (("fix the caf\u00e9\nmore", "fix the caf\u00e9"), ("# \U0001f389\U0001f389", "\U0001f389\U0001f389"),
                            ("\u00e4" * 150, "\u00e4" * 100), ("a" + "\u00e4" * 150, "a" + "\u00e4" * 99)):
            with self.subTest(text=text):
                self.assertEqual(self.stint("add", "-f", "-", "--json=title", stdin=text).json["task"]["title"], title)

    def test_a_task_may_have_a_workflow_and_gates(self):
        task = self.stint("add", "x", "--workflow", "autopilot", "--gate", "security,legal", "--queue", "gated", "--json").json["task"]
        self.assertEqual((task["workflow"], sorted(task["gates"])), ("autopilot", ["legal", "security", "validate"]))
        self.assertIn("workflow", self.stint("add", "x", "--workflow", "nosuch", status=2).err)

    def test_a_directory_is_meant_from_here(self):
        with tempfile.TemporaryDirectory() as folder:
            here = os.path.realpath(folder)
            for typed, meant in ((".", here), ("./", here), ("sub", here + "/sub"), (".//./sub/x", here + "/sub/x"), ("..", here + "/.."),
                                 (".hidden", here + "/.hidden"), ("/srv/sub", "/srv/sub")):
                told = self.stint("add", "x", "--cwd", typed, "--hold", "--json=workingDir", cwd=folder)
                self.assertEqual(told.json["task"]["workingDir"], meant)

    def test_a_title_of_blanks_is_none(self):
        for title in ("", "  ", "\t\n "):
            self.assertIn("a task needs a title", self.stint("add", title, "--queue", "blank", status=2).err)
        self.assertEqual(self.client.get("/api/tasks?queue=blank").json, [])

    def test_what_the_server_made_of_a_time_is_told(self):
        ran = self.stint("add", "x", "--timeout", "5h", "--queue", "told", "--json=timeoutMs")
        self.assertEqual(ran.json["task"]["timeoutMs"], 2 * 3600 * 1000)
        self.assertIn("2 h is the longest that the server allows", ran.err)
        self.assertEqual(self.stint("add", "x", "--timeout", "1h", "--queue", "told").err, "")
        for flag in ("--start-by", "--finish-by"):
            self.assertIn(f"{flag} has passed already", self.stint("add", "x", flag, "2020-01-01T00:00", "--queue", "told").err)
        self.assertEqual(self.stint("add", "x", "--start-by", "1h", "--queue", "told").err, "")


class Looking(CliCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        post = cls.client.post
        for number in range(5):
            post("/api/tasks", {"id": f"look-{number}", "title": f"task number {number}", "queue": "look",
                                "priority": number, "labels": ["odd" if number % 2 else "even"]})
        post("/api/tasks/look-0/cancel")

    def test_elsewhere_than_on_a_terminal_a_list_is_lines_with_tabs(self):
        ran = self.stint("ls", "--queue", "look")
        self.assertEqual([line.split("\t")[0] for line in ran.lines], ["look-4", "look-3", "look-2", "look-1"])
        self.assertEqual(ran.lines[0].split("\t")[1:3], ["ready", "look"])
        self.assertNotIn("\033", ran.out)

    def test_the_list_says_what_a_task_waits_for(self):
        for queue, reason in (("look-open", "-"), ("look-paused", "queue_paused")):
            task = self.add("x", "--queue", queue)
            if reason == "queue_paused":
                self.stint("queue", "pause", queue)
            line, = self.stint("ls", "--queue", queue).lines
            self.assertEqual(line.split("\t")[7], reason, line)
            self.assertEqual(self.stint("ls", "--queue", queue, "--json").json["tasks"][0]["reason"],
                             self.client.get(f"/api/tasks/{task}/why").json["reason"])
        task = self.add("x", "--queue", "look-later", "--after", self.add("y", "--queue", "look-first"))
        self.assertIn("\tdependency\t", self.stint("ls", "--queue", "look-later").out)

    def test_forms_of_the_list(self):
        self.assertEqual(self.stint("ls", "--queue", "look", "-o", "id").lines, ["look-4", "look-3", "look-2", "look-1"])
        lines = self.stint("ls", "--queue", "look", "-o", "jsonl").lines
        self.assertEqual([json.loads(line)["id"] for line in lines], ["look-4", "look-3", "look-2", "look-1"])
        ran = self.stint("ls", "--queue", "look", "--json").json
        self.assertEqual((ran["schema"], ran["ok"], ran["more"], len(ran["tasks"])), (1, True, False, 4))
        ran = self.stint("ls", "--queue", "look", "--json=id,nothing", "--limit", "1").json
        self.assertEqual((ran["tasks"], ran["more"]), ([{"id": "look-4", "nothing": None}], True))
        self.assertTrue(self.stint("ls", "--queue", "look", "-o", "table").out.startswith("STATE "))
        self.assertIn("EXECUTOR", self.stint("ls", "--queue", "look", "-o", "wide").out)

    def test_filters(self):
        self.assertEqual(self.stint("ls", "--label", "odd", "-o", "id").lines, ["look-3", "look-1"])
        self.assertEqual(self.stint("ls", "--search", "number 2", "-o", "id").lines, ["look-2"])
        self.assertEqual(self.stint("ls", "--state", "cancelled", "--queue", "look", "-o", "id").lines, ["look-0"])
        self.assertEqual(len(self.stint("ls", "--state", "ready,cancelled", "--queue", "look", "-o", "id").lines), 5)
        self.assertEqual(len(self.stint("ls", "--all", "--queue", "look", "-o", "id").lines), 5)
        self.assertIn("must be one or more of pending, scheduled, ", self.stint("ls", "--state", "sleepy", status=2).err)

    def test_a_limit_is_kept_and_said(self):
        ran = self.stint("ls", "--queue", "look", "-n", "2")
        self.assertEqual(len(ran.lines), 2)
        self.assertIn("There are more: stint ls --limit 0", ran.err)
        self.assertEqual(self.stint("ls", "--queue", "look", "-n", "2", "--quiet").err, "")
        self.assertEqual("2 more: stint ls --limit 0 lists all of them.", self.terminal("ls", "--queue", "look", "-n", "2", talk=True).lines[-1])

    def test_long_lists_are_fetched_page_by_page(self):
        for start in range(0, 1500, 500):
            self.client.post("/api/tasks/batch", [{"title": "x", "queue": "many"} for _ in range(500)])
        self.assertEqual(len(self.stint("ls", "--queue", "many", "--limit", "0", "-o", "id").lines), 1500)
        self.assertEqual(len(self.stint("ls", "--queue", "many", "--limit", "1200", "--json").json["tasks"]), 1200)

    def test_watching_goes_on_until_it_is_stopped(self):
        looks = [(["ls", "--queue", "look", "-n", "1", "-o", "id"], "look-4\n"),
                 (["show", "look-4", "--json=id", "--no-timeline"], '{"schema":1,"ok":true,"task":{"id":"look-4"}')]
        begun = [self.begin(*words, "--watch", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for words, _ in looks]
        for process, (_, line) in zip(begun, looks):
            for _ in range(2):
                self.assertTrue(process.stdout.readline().startswith(line))
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=HANG_S)
            self.assertEqual(process.returncode, -signal.SIGINT)
        self.stint("claim", "--watch", status=2)

    def test_a_table_fits_the_terminal(self):
        for columns in (240, 200, 140, 110, 109, 80, 72, 71, 60):
            ran = self.terminal("ls", "--queue", "look", "--color", "never", columns=columns)
            self.assertTrue(ran.lines[0].startswith("STATE "), ran.out)
            for line in ran.lines:
                self.assertLessEqual(len(line), min(columns, 200))
        ran = self.stint("ls", "--queue", "look", "-o", "table", COLUMNS="30")
        self.assertTrue(all(len(line) <= 60 for line in ran.lines), "less than 60 counts as 60")

    def test_colour_only_where_it_is_wanted(self):
        list_look = ("ls", "--queue", "look")
        self.assertIn("\033[", self.terminal(*list_look).out)
        self.assertNotIn("\033", self.terminal(*list_look, NO_COLOR="1").out)
        self.assertNotIn("\033", self.terminal(*list_look, TERM="dumb").out)
        self.assertNotIn("\033", self.terminal(*list_look, "--color", "never").out)
        self.assertIn("\033[", self.terminal(*list_look, "--color", "always", NO_COLOR="1").out)
        self.assertNotIn("\033", self.stint(*list_look, "-o", "table").out)
        self.assertIn("\033[", self.stint(*list_look, "-o", "table", CLICOLOR_FORCE="1").out)

    def test_a_title_cannot_steer_the_terminal(self):
        self.client.post("/api/tasks", {"id": "evil", "title": "\x1b[2J\x1b]0;x\x07ha\u202e\nha", "queue": "evil"})
        for ran in (self.terminal("ls", "--queue", "evil", "--color", "never"), self.terminal("show", "evil", "--color", "never"),
                    self.stint("ls", "--queue", "evil")):
            self.assertNotIn("\x1b", ran.out)
            self.assertNotIn("\u202e", ran.out)
            self.assertIn("ha", ran.out)
        self.assertNotIn("\u2026", self.terminal("ls", "--queue", "evil", columns=30, LANG="C").out)

    def test_nor_does_json(self):
        title = "\x1b[2J\x7f\u009b31mh\u00e4\u202e\U000e0041"
        self.client.post("/api/tasks", {"id": "evil-json", "title": title, "queue": "evil"})
        said = self.terminal("show", "evil-json", "--json").out
        for order in "\x1b\x7f\u009b\u202e\U000e0041":
            self.assertNotIn(order, said)
        self.assertIn("h\u00e4", said)
        self.assertEqual(json.loads(said)["task"]["title"], title, "it means the same")
        self.assertIn("\u009b", self.stint("show", "evil-json", "--json").out, "elsewhere it is as it was sent")

    def test_show_tells_what_why_and_when(self):
        ran = self.stint("show", "look-4")
        for part in ("○ ready  look-4  task number 4\n", "Created by admin\n", "labels       even\n"):
            self.assertIn(part, ran.out)
        ran = self.stint("show", "look-4", "--json").json
        self.assertEqual((ran["schema"], ran["task"]["id"], ran["why"]["reason"]), (1, "look-4", "ready"))
        self.assertEqual([event["type"] for event in ran["events"]], ["task.created"])
        self.assertEqual(self.stint("show", "look-4", "--json=state", "--no-timeline").json["task"], {"state": "ready"})

    def test_show_tells_where_how_long_and_by_which_rules(self):
        self.client.post("/api/tasks", {"id": "look-all", "title": "x", "queue": "look-all", "workingDir": "/srv/a b", "timeoutMs": 60000,
                                        "model": "m-1", "deliverables": ["a diff"], "uniqueKey": "k-1", "workflow": "autopilot",
                                        "gates": ["security"]})
        shown = self.stint("show", "look-all").out
        for part in ("work dir     /srv/a b\n", "timeout      1 min\n", "model        m-1\n", 'deliverables a diff\n', "unique       k-1\n",
                     "workflow     autopilot, at stage in_progress\n", 'gates        security, validate\n'):
            self.assertIn(part, shown)

    def tried_twice(self, task):
        self.client.post("/api/tasks", {"id": task, "title": "x", "queue": task})
        for attempt, (outcome, more) in enumerate((("fail", {"error": {"code": "CHECK_FAILED", "message": "2 tests fail"}}), ("complete", {}))):
            claim, = self.client.post("/api/claims", {"workerId": f"w{attempt}", "queues": [task]}).json["claims"]
            self.client.post(f"/api/tasks/{task}/{outcome}", {"workerId": f"w{attempt}", "fence": claim["fence"], **more})
        return task

    def test_show_draws_each_attempt_and_how_it_ended(self):
        task = self.tried_twice("look-bars")
        for columns in (80, 120):
            lines = self.terminal("show", task, "--color", "never", columns=columns).out.splitlines()
            self.assertEqual([len(line) <= columns for line in lines], [True] * len(lines), lines)
            self.assertRegex(lines[3], r"^1  w0  0 s  ━+ ✗ 2 tests fail$")
            self.assertRegex(lines[4], r"^2  w1  0 s  .*─*━+ ✓ done$")
            self.assertRegex(lines[5], r"^ +\d\d:\d\d:\d\d to \d\d:\d\d:\d\d   ━ work( ─ in the queue)?$")
        self.assertIn("Attempt 1 failed: 2 tests fail (CHECK_FAILED). 1 of 3 failures spent", self.stint("show", task).out)
        plain = self.terminal("show", task, "--color", "never", LC_ALL="C").out
        self.assertTrue(plain.isascii(), plain)
        self.assertRegex(plain, r"(?m)^1  w0  0 s  =+ x 2 tests fail$")

    def test_exact_times_have_their_date(self):
        task, date = self.tried_twice("look-exact"), r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d"
        self.assertRegex(self.stint("show", task, "--exact").out, rf"(?m)^{date}  Created by admin$")
        self.assertRegex(self.terminal("ls", "--all", "--queue", task, "--exact", "--color", "never").out, rf"(?m){date}$")
        self.assertRegex(self.terminal("events", "--task", task, "--exact", "--color", "never").out, rf"(?m)^{date}  {task} is created")

    def test_what_is_longer_than_the_screen_goes_through_the_pager(self):
        pager = {"PAGER": "sed 's/^/page: /'"}
        lines = self.terminal("help", "add", **pager).out.splitlines()
        self.assertEqual([line.startswith("page: ") for line in lines], [True] * len(lines))
        self.assertNotIn("page: ", self.terminal("help", "arm", **pager).out, "it fits the screen")
        self.assertNotIn("page: ", self.stint("help", "add", **pager).out, "there is no screen")
        self.assertNotIn("page: ", self.terminal("help", "add", PAGER="no-such-pager").out)
        self.assertIn("usage: stint add", self.terminal("help", "add", PAGER="no-such-pager").out)

    def test_show_keeps_the_question_beside_its_answer(self):
        task = self.add("x", "--queue", "look-ask")
        claim = self.claim("look-ask")
        self.stint("task", "ask", "tea or coffee?", **self.holding(claim))
        self.stint("answer", task, "tea")
        shown = self.stint("show", task).out
        self.assertIn("asked        tea or coffee?\nanswer       tea\n", shown)

    def test_the_log_of_a_task_that_printed_nothing_says_so_on_a_terminal(self):
        task = self.add("x", "--queue", "look-silent")
        self.stint("task", "done", **self.holding(self.claim("look-silent")))
        self.assertIn("%s has printed nothing" % task, self.terminal("logs", task, talk=True).out)
        ran = self.stint("logs", task)
        self.assertEqual((ran.out, ran.err), ("", ""))

    def test_an_attempt_that_there_was_not_is_named(self):
        task = self.add("x", "--queue", "look-log")
        self.claim("look-log")
        ran = self.stint("logs", task, "--attempt", "7", status=3)
        self.assertIn(f"{task} has had no attempt 7", ran.err)
        self.assertIn(f"try  stint show {task}\n", ran.err)

    def test_no_members_at_all_is_a_mistake(self):
        for fields in ("", ","):
            ran = self.stint("ls", f"--json={fields}", status=2)
            self.assertEqual((ran.json["error"]["code"], "--json= needs names" in ran.err), ("usage", True))

    def test_what_is_not_there_is_said(self):
        for args in (["show", "nothing"], ["why", "nothing"], ["wait", "nothing"], ["cancel", "nothing"],
                     ["worker", "show", "nobody"], ["slot", "unquarantine", "nobody"], ["token", "revoke", "0123456789abcdef"], ["events", "--task", "nothing"]):
            with self.subTest(args=args):
                ran = self.stint(*args, status=3)
                self.assertIn("not_found", ran.err)
                self.assertRegex(ran.err, "there is no (task|worker|slot|token) \"")
                self.assertIn("  try  ", ran.err)
        ran = self.stint("show", "a/../b c?", "--json", status=3)
        self.assertEqual((ran.json["ok"], ran.json["error"]["code"], ran.json["schema"], ran.out), (False, "not_found", 1, ""))
        self.assertEqual((ran.json["error"]["try"], ran.json["error"]["exit"]), ("stint ls --all", 3))


class Yaml(CliCase):
    def test_who_asks_for_yaml_hears_that_json_is_read_as_such(self):
        for words in (["ls", "-o", "yaml"], ["show", "t-1", "--output=yaml"], ["worker", "worktrees", "-oyaml"]):
            ran = self.stint(*words, status=2)
            self.assertIn("there is no -o yaml: use -o json", ran.err)
            self.assertIn("try  stint help " + " ".join(words[:words[0] == "worker" and 2 or 1]), ran.err)


class Hints(CliCase):
    """Every command behind `try` can be typed as it stands; what it needs further is a comment of the shell behind it."""

    def hint(self, *words, status):
        ran = self.stint(*words, status=status)
        found = re.findall(r"^ *try  (.*)$", ran.err + ran.out, re.M)
        self.assertTrue(found, ran.err + ran.out)
        return found

    def type(self, hint, **more):
        path = os.path.dirname(STINT) + os.pathsep + os.environ["PATH"]
        folder = os.path.join(self.server.home, "hints") if not hint.startswith("stint run") else tempfile.mkdtemp(prefix="stint-hints-")
        os.makedirs(folder, exist_ok=True)
        self.addCleanup(shutil.rmtree, folder, True)
        try:
            ran = subprocess.run(["sh", "-c", hint], capture_output=True, text=True, timeout=3, stdin=subprocess.DEVNULL,
                                 cwd=folder, env=environment(STINT_HOME=self.server.home, PATH=path, HOME=folder, **more))
        except subprocess.TimeoutExpired:
            return  # it waits for something, as stint wait does
        self.assertNotIn(ran.returncode, (2, 126, 127), "%s: %s" % (hint, ran.stderr))

    def test_each_can_be_typed(self):
        odd = self.add("x", "--id", "hint-odd", "--queue", "a queue; with 'odd' signs")
        held = self.add("x", "--queue", "hint-held")
        self.claim("hint-held")
        later = self.add("x", "--queue", "hint-later", "--not-before", "1h")
        child = self.add("x", "--queue", "hint-child", "--after", later)
        parked = self.add("x", "--queue", "hint-parked", "--hold")
        owned = self.add("x", "--queue", "hint-owned", "--owner", "hint-slot")
        needs = self.add("x", "--queue", "hint-needs", "--needs", "gpu", "--executor", "none-such")
        asking = self.add("x", "--queue", "hint-asking")
        self.stint("task", "ask", "which?", **self.holding(self.claim("hint-asking")))
        choosing = self.add("x", "--queue", "hint-choosing")
        self.stint("task", "ask", "which?", "--option", "it's main", "--option", "b", **self.holding(self.claim("hint-choosing")))
        gated = self.add("x", "--queue", "hint-gated", "--gate", "a,b")
        self.stint("task", "review", "x", **self.holding(self.claim("hint-gated")))
        stuck = self.add("x", "--queue", "hint-stuck")
        self.stint("task", "block", "x", **self.holding(self.claim("hint-stuck")))
        failed = self.add("x", "--queue", "hint-failed")
        self.stint("task", "fail", "x", "--no-retry", **self.holding(self.claim("hint-failed")))
        self.stint("queue", "drain", "hint-drained")
        tasks = (odd, held, later, child, parked, owned, needs, asking, choosing, gated, stuck, failed)
        told = [self.stint("why", task, "--json").json["why"] for task in tasks]
        hints = [why["try"] for why in told if "try" in why]
        self.assertGreater(len(hints), 7)
        for words, status in ((["show", "nowhere"], 3), (["worker", "show", "nobody"], 3), (["slot", "unquarantine", "none"], 3),
                              (["lss"], 2), (["queue"], 2), (["queue", "pauze", "x"], 2), (["add"], 2), (["ls", "--stat", "x"], 2),
                              (["approve", held], 4), (["unpark", odd], 4), (["add", "x", "--id", "hint-odd"], 4),
                              (["token", "create"], 2), (["events", "--type", "task.faild"], 2), (["config", "show", "--set", "x"], 2),
                              (["task", "done"], 2), (["logs", odd, "--attempt", "9"], 3), (["wait", odd, "--timeout", "1s"], 8),
                              (["answer", held, "x"], 4), (["deny", held], 4), (["approve", gated], 2), (["rm", odd], 2),
                              (["session", "show", "none"], 3), (["workflow", "show", "none"], 3), (["worker", "stop", "nobody"], 3),
                              (["token", "revoke", "none"], 3), (["claim", "--wait", "5"], 2), (["completion", "tcsh"], 2),
                              (["ls", "-o", "env"], 2), (["ls", "--state", "redy"], 2), (["events", "--after", "999999999"], 4),
                              (["add", "x", "--after", "nowhere"], 2), (["add", "x", "--queue", "hint-drained"], 4),
                              (["--token", "stint_worker_0000000000000000_x", "ls"], 6), (["--token-file", "/none/such", "ls"], 6),
                              (["--url", "nowhere", "ls"], 2), (["--url", "http://127.0.0.1:1", "ls"], 7)):
            hints += self.hint(*words, status=status)
        for hint in hints:
            self.assertTrue(hint.startswith("stint "), hint)
            if not hint.startswith("stint worker run"):
                self.type(hint)

    def test_each_that_stands_in_the_source_can_be_typed(self):
        """With a value in place of each $word and %s. What begins so and ends with a full stop or a blank is a sentence."""
        verbs = {line.split("\t")[0] for line in self.stint("__complete", "").lines}
        values = ((r"help %s", "help ls"), (r"--type %s", "--type task.failed"), (r"%\.\*s|%s|\$\w+", "x"))
        hints = set()
        for path in pathlib.Path(TOP).glob("src/cli/*/*.[ch]"):
            hints.update(re.findall(r'"((?:env -u \w+ )?stint [^%](?:[^"\\]|\\")*[^. "\\])"', path.read_text()))
        self.assertGreater(len(hints), 40)
        for hint in sorted(hints):
            typed = hint.replace('\\"', '"')
            for pattern, value in values:
                typed = re.sub(pattern, value, typed)
            words = shlex.split(typed, comments=True)
            if words[1] == "up":
                typed = shlex.join(words + ["--help"])  # no second server
            if words[0] == "env" or words[1] in verbs or words[1].startswith("--"):
                with self.subTest(hint=hint):
                    self.type(typed, STINT_TASK_ID="x", STINT_FENCE="1", STINT_WORKER_ID="x")

    def test_a_refused_move_says_what_is_in_the_way(self):
        held = self.add("x", "--queue", "way-held")
        self.claim("way-held", worker="vm-2")
        self.assertIn("stint: cannot approve %s: worker vm-2 still has it (claimed) (bad_transition)\n" % held,
                      self.stint("approve", held, status=4).err)
        parked = self.add("x", "--queue", "way-ready")
        self.assertIn("stint: cannot unpark %s: it is ready (bad_transition)\n" % parked, self.stint("unpark", parked, status=4).err)


class Beginnings(CliCase):
    def test_looking_takes_the_beginning_of_an_id_and_changing_does_not(self):
        for task in ("report-2026-01", "report-2026-02", "invoice-7"):
            self.add("x", "--id", task)
        ran = self.stint("show", "invo", "--json")
        self.assertEqual(ran.json["task"]["id"], "invoice-7")
        self.assertIn("invo is invoice-7", ran.err)
        self.assertEqual(self.stint("why", "report-2026-02", "--json").json["why"]["id"], "report-2026-02")
        ran = self.stint("why", "report", status=3)
        self.assertIn("2 begin so: report-2026-02, report-2026-01", ran.err)
        self.stint("cancel", "invo", status=3)
        self.assertEqual(self.state("invoice-7"), "ready")


class Why(CliCase):
    def why(self, task, reason, sentence, hint=None):
        """The sentence is the server's; the terminal prints it."""
        told = self.stint("why", task, "--json").json["why"]
        self.assertEqual(told["reason"], reason)
        self.assertRegex(told["text"], "^%s$" % sentence)
        self.assertEqual((told.get("try"), told["fix"]), (hint, hint))
        self.assertEqual(self.client.get(f"/api/tasks/{task}/why").json["reason"], reason)
        state = {"pending": "parked", "review": "in review"}.get(told["state"], told["state"])
        people = self.stint("why", task).lines
        self.assertRegex(people[0], r"^%s is %s\. %s$" % (re.escape(task), state, sentence))
        self.assertEqual(people[1:], [f"  try  {hint}"] if hint else [])
        return told

    def test_ready(self):
        task = self.add("x", "--queue", "w-ready")
        self.why(task, "ready", "No worker has asked queue w-ready for work lately; the next one that does gets it", "stint worker ls")
        self.client.post("/api/tasks/%s/claim" % task, {"workerId": "w"})
        self.client.post("/api/claims", {"workerId": "w", "queues": ["w-ready"]})
        task = self.add("x", "--queue", "w-ready")
        self.why(task, "ready", "The next worker that asks queue w-ready for work gets it")

    def test_parked_scheduled_and_paused(self):
        task = self.add("x", "--hold")
        self.why(task, "parked", "Parked until somebody unparks it", f"stint unpark {task}")
        task = self.add("x", "--not-before", "2h")
        self.why(task, "scheduled", "Starts in (1 h 59 min|2 h)")
        self.stint("queue", "pause", "w-paused")
        task = self.add("x", "--queue", "w-paused")
        self.why(task, "queue_paused", "Queue w-paused is paused", "stint queue resume w-paused")

    def test_waiting_names_the_task_that_is_waited_for(self):
        first = self.add("x", "--queue", "w-dep")
        done = self.add("x", "--queue", "w-dep2")
        claim = self.claim("w-dep2")
        self.stint("task", "done", **self.holding(claim))
        task = self.add("x", "--after", f"{done},{first}")
        self.why(task, "dependency", f"After {first}, which is ready", "stint worker ls")
        asking = self.add("x", "--queue", "w-dep3")
        self.stint("task", "ask", "go on?", "--option", "yes", **self.holding(self.claim("w-dep3")))
        middle = self.add("x", "--after", asking)
        last = self.add("x", "--after", middle)
        self.why(last, "dependency", f"After {middle}, which is after {asking}, which is asking", f"stint answer {asking} yes")

    def test_held_asking_and_ended(self):
        task = self.add("x", "--queue", "w-held")
        claim = self.claim("w-held")
        self.why(task, "unconfirmed", r"Worker w took it \d+ s ago and is starting it")
        self.stint("task", "progress", **self.holding(claim))
        self.why(task, "running", r"w has it; stopped in (29 min( \d+ s)?|30 min) if not done")
        self.stint("task", "progress", "third file", "--percent", "62", **self.holding(claim))
        self.why(task, "running", r"62 %: third file\. w has it; stopped in (29 min( \d+ s)?|30 min) if not done")
        self.stint("task", "ask", "which branch?", **self.holding(claim))
        self.why(task, "asking", r"Asks: which branch\?", f"stint show {task}")
        self.stint("answer", task, "main")
        self.stint("task", "fail", "no luck", "--no-retry", **self.holding(claim))
        self.why(task, "ended", "Not tried again after failure 1 of 3: no luck", f"stint logs {task}")

    def test_a_holder_that_is_not_heard_any_more(self):
        """Nobody's lease runs out here, and the time until half of one has passed is short."""
        server = stintd.Server("--set", "worker.leaseMinMs=100", "--set", "worker.rescheduleOnExpiry=false")
        self.addCleanup(server.end)
        client = server.client()
        self.addCleanup(client.close)
        client.post("/api/tasks", {"id": "t", "title": "x"})
        client.post("/api/workers/register", {"workerId": "w", "leaseMs": 1000})
        claim, = client.post("/api/claims", {"workerId": "w"}).json["claims"]
        client.post("/api/tasks/t/progress", {"workerId": "w", "fence": claim["fence"]})
        until = time.monotonic() + HANG_S
        while "No word" not in (told := self.stint("why", "t", STINT_HOME=server.home).lines[0]) and time.monotonic() < until:
            time.sleep(0.1)
        self.assertRegex(told, r"^t is running\. No word from w for \d+ s; its lease runs out in \d:\d\d$")
        self.assertIn("w sent no heartbeat for more than half", " ".join(self.stint("doctor", STINT_HOME=server.home).out.split()))

    def test_backing_off_and_blocked(self):
        task = self.add("x", "--queue", "w-off")
        self.stint("task", "fail", "flaky", **self.holding(self.claim("w-off")))
        self.why(task, "back_off", r"Tries again (in (\d+ min ?)?(\d+ s)?|now)\. Last: flaky")
        task = self.add("x", "--queue", "w-block")
        self.stint("task", "block", "no access", **self.holding(self.claim("w-block")))
        self.why(task, "blocked", "no access", f"stint retry {task}")

    def test_workers_that_do_not_fit(self):
        self.client.post("/api/workers/register", {"workerId": "why-worker", "capabilities": ["linux"], "executors": ["e", "tests"],
                                                   "leaseMs": 60000})
        self.why(self.add("x", "--needs", "gpu", "--queue", "w-cap"), "no_capability",
                 "Needs gpu; no worker that is alive has it", "stint worker ls")
        self.why(self.add("x", "--executor", "rust", "--queue", "w-exe"), "no_executor",
                 "No worker of queue w-exe runs rust; workers run e, tests", "stint worker ls")
        self.why(self.add("x", "--executor", "test", "--queue", "w-exe"), "no_executor",
                 r"No worker of queue w-exe runs test; workers run e, tests\. Did you mean tests\?", "stint worker ls")
        self.why(self.add("x", "--owner", "slot-9", "--queue", "w-own"), "owner_away",
                 "Only slot slot-9 may take it, and no worker is in that slot", "stint worker ls")
        self.add("x", "--queue", "w-served", "--executor", "e")
        self.assertEqual(len(self.client.post("/api/claims", {"workerId": "why-worker", "queues": ["w-served"]}).json["claims"]), 1)
        self.why(self.add("x", "--queue", "w-unserved"), "queue_unserved", "No worker serves queue w-unserved", "stint worker ls")
        self.client.call("DELETE", "/api/workers/why-worker", {})
        self.client.post("/api/workers/register", {"workerId": "full", "maxConcurrent": 1, "leaseMs": 60000})
        self.add("x", "--queue", "w-busy")
        self.claim("w-busy", "full")
        self.why(self.add("x", "--queue", "w-busy"), "workers_busy", "The one worker that serves queue w-busy is busy")
        self.client.call("DELETE", "/api/workers/full", {})
        self.why(self.add("x", "--queue", "w-none"), "no_worker", "No worker is alive", "stint worker ls")

    def test_a_name_cannot_become_a_command(self):
        """Names come from others, and the line that helps is there to be pasted."""
        queue = "a b; $(touch pwned) 'x'"
        self.client.post(f"/api/queues/{urllib.parse.quote(queue)}/pause")
        task = self.add("x", "--queue", queue)
        hint = self.stint("why", task, "--json").json["why"]["try"]
        self.assertEqual(shlex.split(hint), ["stint", "queue", "resume", queue])
        self.assertIn(f"try  {hint}\n", self.stint("why", task).out)
        task = self.add("x \u009b31m", "--queue", "\u202e")
        self.assertNotIn("\u202e", self.stint("why", task).out)
        self.assertNotIn("\u009b", self.stint("show", task).out)

    def test_members_can_be_picked(self):
        task = self.add("x", "--queue", "w-pick", "--hold")
        self.assertEqual(self.stint("why", task, "--json=reason,try").json["why"],
                         {"reason": "parked", "try": f"stint unpark {task}"})

    def test_a_quarantined_slot(self):
        for _ in range(3):
            self.client.post("/api/slots/s-crash/crash")
        task = self.add("x", "--owner", "s-crash", "--queue", "w-crash")
        self.why(task, "owner_quarantined", "Slot s-crash crashed too often and is quarantined; a trial is due in .*",
                 "stint slot unquarantine s-crash")
        self.assertEqual(self.stint("slot", "unquarantine", "s-crash").out, "s-crash\n")
        self.assertNotEqual(self.stint("why", task, "--json").json["why"]["reason"], "owner_quarantined")


class Agreement(CliCase):
    """One reason, wherever it is asked for."""

    def metric(self):
        text = self.client.get("/metrics").body.decode()
        return {name: int(count) for name, count in re.findall(r'^stint_waiting_tasks{reason="(\w+)"} (\d+)', text, re.M)}

    def test_why_show_the_task_and_the_metric_say_the_same(self):
        post = self.client.post

        def task(name, **more):
            reply = post("/api/tasks", {"id": name, "title": name, "queue": name, **more})
            self.assertEqual(reply.status, 201, reply.body)
            return name

        def hold(name, worker="script", **more):
            path = f"/api/tasks/{task(name, **more)}/claim"
            return {"workerId": worker, "fence": post(path, {"workerId": worker}).json["fence"]}

        token = post("/api/workers/register", {"workerId": "beats", "capabilities": ["a"], "executors": ["e"],
                                               "maxConcurrent": 4, "leaseMs": 60000, "host": "here"}).json["token"]
        for _ in range(3):
            post("/api/slots/crashed/crash")
        post("/api/queues/paused/pause")
        task("ready")
        task("parked", state="pending")
        task("later", notBefore=int(time.time() * 1000) + 3600000)
        task("child", blockedBy=["ready"])
        post("/api/schedules", {"id": "queued", "every": "1h", "overlap": "queue", "task": {"title": "x", "queue": "queued"}})
        for _ in range(2):
            self.assertEqual(post("/api/schedules/queued/run").status, 201)
        task("paused")
        task("capability", requires=["b"])
        task("executor", executor="f")
        task("owner", owner="nobody")
        task("crashed", owner="crashed")
        task("held", credential="team")
        post("/api/holds", {"credential": "team"})
        post("/api/tasks/back-off/fail", {**hold("back-off"), "error": {"code": "EXECUTION_ERROR", "message": "no"}})
        post("/api/tasks/review/review", hold("review"))
        post("/api/tasks/blocked/block", {**hold("blocked"), "error": {"code": "STOPPED", "message": "no"}})
        post("/api/tasks/asking/ask", {**hold("asking"), "question": "?"})
        post("/api/tasks/answered/ask", {**(holder := hold("answered", "beats")), "question": "?"})
        post("/api/tasks/answered/release", holder)
        post("/api/tasks/answered/answer", {"text": "!"})
        post("/api/tasks/done/complete", hold("done"))
        hold("claimed")
        hold("replaced", uniqueKey="one")
        task("successor", uniqueKey="one", onConflict="replace")
        self.assertEqual(self.client.call("PATCH", "/api/queues/limited", {"concurrency": 1}).status, 200)
        hold("limited")
        task("limited-2", queue="limited")
        post("/api/tasks/running/progress", hold("running"))
        family = hold("family")
        made = post("/api/tokens", {"kind": "claim", "task": "family", "fence": family["fence"]}).json["token"]
        own = self.server.client(token=made)
        self.addCleanup(own.close)
        self.assertEqual(own.post("/api/tasks", {"title": "x"}).status, 201)
        self.assertEqual(post("/api/tasks/family/wait", family).json["state"], "waiting")
        for name in ("stopping", "asking-stopping"):
            holder = hold(name, "beats")
            reply = post("/api/workers/heartbeat", {"workerId": "beats", "token": token, "boundTasks": [name]})
            token = reply.json["token"]
            if name == "asking-stopping":
                post(f"/api/tasks/{name}/ask", {**holder, "question": "?"})
            self.assertEqual(post(f"/api/tasks/{name}/cancel").status, 202)

        def look():
            counted = dict.fromkeys(self.metric(), 0)
            for name in [found["id"] for found in self.client.get("/api/tasks").json]:
                reason = self.client.get(f"/api/tasks/{name}/why").json["reason"]
                self.assertEqual(self.client.get(f"/api/tasks/{name}").json["reason"], reason)
                told = self.stint("why", name, "--json").json["why"]
                self.assertEqual((told["reason"], bool(told["text"])), (reason, True))
                self.assertEqual(self.stint("show", name, "--json").json["why"]["reason"], reason)
                if reason not in ("unconfirmed", "running", "stopping", "overdue", "ended"):
                    counted[reason] += 1
            self.assertEqual(self.metric(), counted)
            return {reason for reason, count in counted.items() if count > 0}

        seen = look()
        for name in ("busy-1", "busy-2"):
            hold(name, "beats")
        seen |= look()
        self.client.call("DELETE", "/api/workers/beats", {})
        seen |= look()
        post("/api/workers/register", {"workerId": "elsewhere"})
        self.assertEqual(post("/api/claims", {"workerId": "elsewhere", "queues": ["done"]}).json, {"claims": []})
        seen |= look()
        post("/api/workers/register", {"workerId": "host-1"})
        for _ in range(3):
            post("/api/slots/host%2Fe-1/crash")
        task("pooled", executor="e")
        seen |= look()
        post("/api/execution", {"armed": False})
        seen |= look()
        # tests/store/test_store_why.c and test_store_workflow.c
        self.assertEqual(set(self.metric()) - seen, {"store_read_only", "not_autonomous"})


class Operating(CliCase):
    def test_park_unpark_cancel_retry(self):
        task = self.add("x", "--queue", "op")
        for verb, state in (("park", "pending"), ("unpark", "ready"), ("cancel", "cancelled"), ("retry", "ready")):
            ran = self.stint(verb, task)
            self.assertEqual((ran.out, ran.err), (task + "\n", ""))
            self.assertEqual(self.state(task), state)

    def test_a_dry_run_changes_nothing(self):
        task = self.add("x")
        for verb in ("cancel", "park"):
            ran = self.stint(verb, task, "not-there", "--dry-run", status=3)
            self.assertEqual(ran.lines, [f"{task}  ready  x"])
        self.assertEqual(self.state(task), "ready")

    def test_a_reason_is_kept(self):
        task = self.add("x")
        self.stint("cancel", task, "--reason", "superseded")
        events = self.stint("events", "--task", task).lines
        self.assertEqual(json.loads(events[-1])["data"]["reason"], "superseded")

    def test_a_person_learns_what_a_change_of_a_queue_means_for_its_tasks(self):
        tasks = [self.add("x", "--queue", "told") for _ in range(3)]
        self.claim("told")
        said = [self.terminal("queue", verb, "told").out for verb in ("pause", "drain", "resume")]
        self.assertEqual(said, [f"Queue told is {state}. 2 tasks wait, 1 goes on to its end\n" for state in ("paused", "draining", "open")])
        self.assertEqual(self.stint("queue", "pause", "told").out, "told\n")
        self.assertEqual(len(tasks), 3)

    def test_who_may_not_is_told_which_token_may(self):
        token = self.stint("token", "create", "--kind", "viewer").out.strip()
        for words, kind in ((["queue", "pause", "q"], "operator"), (["add", "x"], "producer"), (["token", "ls"], "admin")):
            said = self.stint(*words, status=6, STINT_TOKEN=token).err
            self.assertIn(f"This needs a token of kind {kind}; this one is of kind viewer.", said)
            self.assertIn(f"  try  stint token create --kind {kind} ", said)

    def test_edit_changes_what_the_flags_name_and_nothing_else(self):
        first, last = self.add("x", "--queue", "edit", "--label", "a", "--max-attempts", "5"), self.add("y", "--queue", "edit")
        self.assertEqual(self.stint("edit", first, last, "--priority", "high", "--label", "b,c", "--not-before", "1h", "--after", "").lines, [first, last])
        task = self.stint("show", first, "--json").json["task"]
        self.assertEqual((task["title"], task["priority"], task["labels"], task["state"], task["maxAttempts"]), ("x", 50, ["b", "c"], "scheduled", 5))
        self.stint("edit", last, "--title", "z", "--file", "-", "--after", first, stdin="do it")
        task = self.stint("show", last, "--json").json["task"]
        self.assertEqual((task["title"], task["instructions"], task["blockedBy"], task["state"]), ("z", "do it", [first], "waiting"))
        self.assertIn("nothing to change", self.stint("edit", first, status=2).err)
        self.assertIn(f"{first} is changed", self.terminal("edit", first, "--priority", "0").out)

    def test_one_that_is_refused_does_not_stop_the_others(self):
        first, last = self.add("x"), self.add("x")
        ran = self.stint("park", first, "not-there", last, status=3)
        self.assertEqual(ran.lines, [first, last])
        self.assertEqual((self.state(first), self.state(last)), ("pending", "pending"))
        ran = self.stint("unpark", first, "not-there", "--json", status=3)
        good, bad = json.loads(ran.out), json.loads(ran.err)
        self.assertEqual((good["task"]["id"], bad["error"]["code"]), (first, "not_found"))

    def test_a_wrong_move_names_the_state_and_a_way_on(self):
        task = self.add("x")
        ran = self.stint("unpark", task, status=4)
        self.assertIn("is ready", ran.err)
        self.assertIn(f"try  stint why {task}", ran.err)

    def test_of_several_the_one_that_was_refused_is_named_in_the_way_on(self):
        first, last = self.add("x"), self.add("x")
        ran = self.stint("unpark", "not-there", first, last, status=3)
        self.assertEqual([line for line in ran.err.splitlines() if "  try  " in line],
                         ["  try  stint ls --all", f"  try  stint why {first}", f"  try  stint why {last}"])

    def test_a_question_with_options_is_answered_with_one_of_them(self):
        task = self.add("x", "--queue", "options")
        claim, = self.client.post("/api/claims", {"workerId": "w", "queues": ["options"]}).json["claims"]
        self.client.post("/api/tasks/%s/ask" % task, {"workerId": "w", "fence": claim["fence"], "question": "which?",
                                                      "options": ["main", "the next one"]})
        for words in (["answer", task, "develop"], ["approve", task]):
            run = self.stint(*words, status=2)
            self.assertIn('%s must be answered with one of its options: "main", "the next one"' % task, run.err)
            self.assertIn("  try  stint answer %s main\n" % task, run.err)
        self.stint("answer", task, "the next one")

    def test_inbox_answer_approve_deny(self):
        for verb, args, expected in (("answer", ["main"], {"text": "main"}), ("approve", [], {"text": "yes"}),
                                     ("deny", ["not today"], {"text": "not today", "deny": True}),
                                     ("deny", [], {"deny": True})):
            queue = f"ask-{verb}-{len(args)}"
            task = self.add("x", "--queue", queue)
            claim = self.claim(queue)
            self.stint("task", "ask", "which?", "--option", "main", "--option", "yes", **self.holding(claim))
            self.assertIn(task, self.stint("inbox", "-o", "id").lines)
            self.assertIn("\twhich? (main, yes)\t", self.stint("inbox").out)
            self.assertEqual(self.stint("why", task).lines[0], f"{task} is asking. Asks: which? (main, yes)")
            self.stint(verb, task, *args)
            self.assertEqual(self.client.get("/api/tasks/" + task).json["answer"], expected)
            self.assertNotIn(task, self.stint("inbox", "-o", "id").lines)
        self.stint("answer", task, "again", status=4)

    def test_queues(self):
        self.add("x", "--queue", "q-1")
        for verb, state in (("pause", "paused"), ("resume", "open"), ("drain", "draining")):
            self.assertEqual(self.stint("queue", verb, "q-1", "q-2").lines, ["q-1", "q-2"])
            found = {queue["name"]: queue["state"] for queue in self.stint("queue", "ls", "--json").json["queues"]}
            self.assertEqual(found["q-1"], state)
        self.assertIn("queue_draining", self.stint("add", "x", "--queue", "q-1", status=4).err)
        self.stint("queue", "resume", "q-1", "q-2")
        self.assertIn("q-1\topen\t1\t0\t1\t0\t0", [line.rsplit("\t", 2)[0] for line in self.stint("queue", "ls").lines])

    def test_workers(self):
        self.client.post("/api/workers/register", {"workerId": "host-1", "slot": "s-1", "capabilities": ["gpu"],
                                                   "leaseMs": 60000, "host": "build-7", "version": "2.1"})
        row = next(line.split("\t") for line in self.stint("worker", "ls").lines if line.startswith("host-1\t"))
        self.assertEqual(row[1:3] + row[6:7], ["active", "s-1", "gpu"])
        self.assertRegex(row[5], r"^\d+ \w+$", "how long ago it was heard")
        shown = self.stint("worker", "show", "host-1").out
        self.assertRegex(shown, r"HOST +build-7\nPID +-\nVERSION +2.1\nRESTARTS +0\n")
        self.assertEqual(self.stint("worker", "quiet", "host-1", "--json").json["worker"]["state"], "quiet")
        self.assertEqual(self.stint("worker", "stop", "host-1").out, "host-1\n")
        self.assertEqual(self.stint("worker", "show", "host-1", "--json").json["worker"]["state"], "terminating")
        self.client.call("DELETE", "/api/workers/host-1", {})
        self.assertNotIn("host-1", self.stint("worker", "ls", "-o", "id").lines)
        self.assertIn("host-1", self.stint("worker", "ls", "--all", "-o", "id").lines)

    def test_a_worker_is_shown_with_what_it_holds_and_its_version(self):
        self.client.post("/api/workers/register", {"workerId": "host-2", "leaseMs": 60000, "metadata": {"version": "0.9", "pools": {
            "p": {"totalWorkers": 3, "workers": [{"id": "p-1", "state": "busy", "task": "t-1"}, {"id": "p-2", "state": "ready"},
                                                 {"id": "p-3", "state": "quarantined"}]}}}})
        self.assertRegex(self.stint("worker", "show", "host-2").out,
                         r"VERSION +0\.9\n(.*\n)*TASKS +-\nPOOL +p: .*\n +p-1 is busy with t-1\n +p-3 is quarantined\n$")
        tasks = [self.add("x", "--queue", "held-by-2") for _ in range(2)]
        for _ in tasks:
            self.claim("held-by-2", "host-2")
        self.assertRegex(self.stint("worker", "show", "host-2").out, rf"TASKS +({tasks[0]}, {tasks[1]}|{tasks[1]}, {tasks[0]})\n")
        self.client.call("DELETE", "/api/workers/host-2", {})

    def test_a_token_that_could_be_written_nowhere_is_not_made(self):
        before = self.stint("token", "ls", "-o", "id").lines
        with tempfile.TemporaryDirectory() as folder:
            ran = self.stint("token", "create", "--kind", "viewer", "--out", os.path.join(folder, "no", "token"), status=1)
            self.assertIn("No such file or directory; no token was made", ran.err)
            self.stint("token", "create", "--kind", "boss", "--out", os.path.join(folder, "token"), status=2)
            self.assertEqual(os.listdir(folder), [])
        self.assertEqual(self.stint("token", "ls", "-o", "id").lines, before)

    def test_tokens(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "token")
            ran = self.stint("token", "create", "--kind", "producer", "--name", "ci", "--queues", "tok", "--out", path)
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
            self.assertNotIn("stint_producer", ran.out + ran.err)
            self.stint("token", "create", "--kind", "producer", "--out", path, status=2)
            env = {"STINT_TOKEN_FILE": path}
            self.assertTrue(self.add("x", "--queue", "tok", **env))
            self.assertIn("forbidden", self.stint("add", "x", "--queue", "other", status=6, **env).err)
            self.stint("ls", status=6, **env)
            token = next(token for token in self.stint("token", "ls", "--json").json["tokens"] if token["name"] == "ci")
            self.assertEqual(self.stint("token", "revoke", token["id"]).out, token["id"] + "\n")
            self.assertIn("unauthorized", self.stint("add", "x", "--queue", "tok", status=6, **env).err)
            self.assertIn("revoked", self.stint("token", "ls").out)
            path = os.path.join(folder, "json")
            told = self.stint("token", "create", "--kind", "viewer", "--out", path, "--json").json["token"]
            with open(path) as file:
                self.assertTrue(file.read().startswith("stint_viewer_" + told["id"]))
            self.assertNotIn("token", told)
            self.stint("token", "create", "--kind", "worker", "--queues", "", status=2)
        printed = self.stint("token", "create", "--kind", "viewer").out.strip()
        self.assertTrue(self.stint("ls", STINT_TOKEN=printed).status == 0)
        self.stint("token", "create", "--kind", "root", status=2)
        self.stint("token", "create", status=2)


class Working(CliCase):
    def test_a_shell_worker_from_claim_to_done(self):
        task = self.add("it's here", "--queue", "sh", "--payload", '{"who":"it\'s me"}')
        script = ('eval "$("$STINT" claim --queues sh -o env)" && [ "$STINT_TITLE" = "it\'s here" ] && '
                  '"$STINT" task progress half --percent 50 && "$STINT" task done "$STINT_PAYLOAD"')
        ran = subprocess.run(["sh", "-ec", script], capture_output=True, text=True, timeout=HANG_S,
                             env=environment(STINT_HOME=self.server.home, STINT=STINT))
        self.assertEqual(ran.returncode, 0, ran.stderr)
        document = self.client.get("/api/tasks/" + task).json
        self.assertEqual((document["state"], document["result"]), ("done", '{"who":"it\'s me"}'))

    def test_a_shell_that_claims_again_has_nothing_left_of_the_task_before(self):
        self.add("first", "--queue", "sh-two", "--payload", '{"rm":"-rf"}')
        self.add("second", "--queue", "sh-two")
        script = ('for i in 1 2; do eval "$("$STINT" claim --queues sh-two -o env)"; echo "$STINT_TITLE ${STINT_PAYLOAD-none}"; '
                  '"$STINT" task done --quiet; done')
        ran = subprocess.run(["sh", "-ec", script], capture_output=True, text=True, timeout=HANG_S,
                             env=environment(STINT_HOME=self.server.home, STINT=STINT))
        self.assertEqual((ran.returncode, ran.stdout), (0, 'first {"rm":"-rf"}\nsecond none\n'), ran.stderr)

    def test_nothing_to_claim_is_no_failure_unless_asked_for(self):
        ran = self.stint("claim", "--queues", "empty")
        self.assertEqual(ran.out, "")
        ran = self.stint("claim", "--queues", "empty", "--json").json
        self.assertEqual((ran["claim"], ran["claims"]), (None, []))
        self.stint("claim", "--queues", "empty", "--empty-exit", status=5)
        self.assertEqual(self.stint("claim", "--queues", "empty", "-o", "env").out, "")

    def test_claims_in_all_forms(self):
        ids = [self.add("x", "--queue", "forms") for _ in range(4)]
        self.assertEqual(self.stint("claim", "--queues", "forms", "-o", "id").lines, ids[:1])
        claims = self.stint("claim", "--queues", "forms", "--max", "2", "--worker", "me", "--lease", "1h", "--json").json["claims"]
        self.assertEqual([claim["task"]["id"] for claim in claims], ids[1:3])
        self.assertEqual(claims[0]["leaseMs"], 3600000)
        ran = self.stint("claim", "--id", ids[3], "--worker", "me")
        self.assertEqual(ran.out.split("\t")[0], ids[3])
        self.stint("claim", "--id", ids[3], "--worker", "other", status=4)
        self.stint("claim", "--max", "2", "-o", "env", status=2)

    def test_a_claim_waits_for_work(self):
        process = self.begin("claim", "--queues", "later", "--wait", "30s", "-o", "id", stdout=subprocess.PIPE)
        until = time.monotonic() + HANG_S
        while b"\nstint_waiting_claims 1\n" not in self.client.get("/metrics").body:
            self.assertLess(time.monotonic(), until)
        task = self.add("x", "--queue", "later")
        self.assertEqual(process.communicate(timeout=HANG_S)[0].strip(), task)

    def test_every_report(self):
        for verb, args, state in (("review", ["see it", "--evidence", '{"pr":1}'], "review"), ("block", ["no disk"], "blocked"),
                                  ("fail", ["bad", "--no-retry"], "failed"), ("release", ["later"], "ready"),
                                  ("done", ["--result", '{"a":1}'], "done"), ("done", [], "done")):
            queue = f"report-{verb}-{len(args)}"
            task = self.add("x", "--queue", queue)
            ran = self.stint("task", verb, *args, **self.holding(self.claim(queue)))
            self.assertEqual(ran.out, "")
            self.assertIn(task, ran.err)
            self.assertEqual(self.state(task), state, verb)
        self.assertEqual(self.stint("show", task, "--json").json["task"]["result"], None)

    def test_a_report_repeated_is_answered_as_before_and_a_stale_one_refused(self):
        self.add("x", "--queue", "stale")
        claim = self.claim("stale")
        self.stint("task", "done", "a", **self.holding(claim))
        self.stint("task", "done", "a", **self.holding(claim))
        self.assertIn("already_terminal", self.stint("task", "fail", "b", status=4, **self.holding(claim)).err)
        env = dict(self.holding(claim), STINT_FENCE="1")
        self.stint("task", "done", "a", status=4, **env)

    def test_progress_prints_what_the_server_wants(self):
        token = self.client.post("/api/workers/register", {"workerId": "told", "leaseMs": 60000}).json["token"]
        task = self.add("x", "--queue", "told")
        env = self.holding(self.claim("told", "told"), "told")
        self.client.post("/api/workers/heartbeat", {"workerId": "told", "token": token, "boundTasks": [task]})
        self.assertEqual(self.stint("task", "progress", **env).out, "")
        self.assertIn("is being stopped by its worker", self.terminal("cancel", task).out)
        self.assertEqual(self.stint("task", "progress", **env).out, "cancel\n")
        commands = self.stint("task", "progress", "--json", **env).json["progress"]["commands"]
        self.assertEqual([command["type"] for command in commands], ["cancel"])
        self.assertIn("stopping", self.stint("ls", "--queue", "told").out)
        self.stint("task", "release", **env)
        self.assertEqual(self.state(task), "cancelled")

    def test_outside_of_a_task_it_says_what_is_missing(self):
        ran = self.stint("task", "done", status=2)
        self.assertIn("STINT_TASK_ID", ran.err)
        ran = self.stint("task", "done", status=2, STINT_TASK_ID="t-1")
        self.assertIn("STINT_FENCE", ran.err)

    def test_a_report_waits_for_a_server_that_is_away(self):
        server = stintd.Server()
        self.addCleanup(server.end)
        client = server.client()
        client.post("/api/tasks", {"id": "t", "title": "x", "queue": "q"})
        claim, = client.post("/api/claims", {"workerId": "w", "queues": ["q"]}).json["claims"]
        client.close()
        server.kill()
        env = dict(self.holding(claim), STINT_HOME=server.home)
        process = self.begin("task", "done", "kept", stderr=subprocess.PIPE, env=env)
        self.assertIn("is away", process.stderr.readline())
        server.start()
        process.communicate(timeout=HANG_S)
        self.assertEqual(process.returncode, 0)
        client = server.client()
        self.assertEqual(client.get("/api/tasks/t").json["result"], "kept")
        client.close()


class Waiting(CliCase):
    def waiter(self, *args):
        process = self.begin("wait", *args, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        until = time.monotonic() + HANG_S
        while b"\nstint_event_streams 1\n" not in self.client.get("/metrics").body:
            self.assertLess(time.monotonic(), until, "nobody follows the events")
            if process.poll() is not None:
                break
        return process

    def ended(self, process):
        out, err = process.communicate(timeout=HANG_S)
        return process.returncode, out, err

    def test_wait_ends_when_the_task_is_done(self):
        task = self.add("x", "--queue", "wait-1")
        process = self.waiter(task)
        self.stint("task", "done", **self.holding(self.claim("wait-1")))
        self.assertEqual(self.ended(process)[:2], (0, f"{task}  done\n"))

    def test_wait_says_that_a_person_is_waited_for(self):
        task = self.add("x", "--queue", "stuck")
        claim = self.claim("stuck")
        waiter = self.begin("wait", task, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.stint("task", "block", "no key", **self.holding(claim))
        self.assertIn(f"{task} is blocked, and waits for a person", waiter.stderr.readline())
        self.stint("cancel", task)
        self.assertEqual(waiter.wait(HANG_S), 9)

    def test_wait_for_several_ends_with_the_last(self):
        first, second = self.add("x", "--queue", "wait-2"), self.add("x", "--queue", "wait-2")
        process = self.waiter(first, second, first)
        self.stint("task", "done", **self.holding(self.claim("wait-2")))
        self.assertIsNone(process.poll())
        self.stint("cancel", second)
        self.assertEqual(self.ended(process)[:2], (9, f"{first}  done\n{second}  cancelled\n"))

    def test_any_ends_with_the_first(self):
        first, second = self.add("x", "--queue", "wait-3"), self.add("x", "--queue", "wait-3")
        process = self.waiter("--any", first, second)
        self.stint("task", "done", **self.holding(self.claim("wait-3")))
        self.assertEqual(self.ended(process)[:2], (0, f"{first}  done\n"))

    def test_what_has_ended_already_is_not_waited_for(self):
        task = self.add("x")
        self.stint("cancel", task)
        ran = self.stint("wait", task, "--json", status=9)
        self.assertEqual(ran.json["task"]["state"], "cancelled")

    def test_time_is_up(self):
        task = self.add("x", "--queue", "wait-4")
        ran = self.stint("wait", task, "--timeout", "100ms", status=8)
        self.assertIn(f"{task} is still ready", ran.err)
        self.assertIn(f"stint why {task}", ran.err)

    def test_time_is_up_for_all_that_have_not_ended(self):
        first, second, third = (self.add("x", "--queue", "wait-5") for _ in range(3))
        self.stint("cancel", second)
        ran = self.stint("wait", first, second, third, "--timeout", "100ms", status=8)
        self.assertIn(f"{first} is still ready, {third} ready", ran.err)
        many = [self.add("x", "--queue", "wait-6") for _ in range(12)]
        self.assertIn("ready and 2 more", self.stint("wait", *many, "--timeout", "100ms", status=8).err)

    def test_a_bar_is_wiped_when_a_signal_ends_the_wait(self):
        task = self.add("x", "--queue", "bar-wiped")
        master, slave = pty.openpty()
        process = self.begin("wait", task, stdout=subprocess.PIPE, stderr=slave)
        os.close(slave)
        drawn = ""
        while "0/1" not in drawn:
            drawn += os.read(master, 4096).decode()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(HANG_S), -signal.SIGINT)
        with contextlib.suppress(OSError):  # EIO: the terminal has no other end any more
            while not drawn.endswith("\r\033[K"):
                drawn += os.read(master, 4096).decode()
        os.close(master)
        self.assertTrue(drawn.endswith("\r\033[K"), repr(drawn[-40:]))

    def test_wait_goes_on_when_the_events_it_missed_are_not_kept(self):
        server = stintd.Server()
        self.addCleanup(server.end)
        client = server.client()
        client.post("/api/tasks", {"id": "t", "title": "x"})
        client.post("/api/backup", {"file": "early.db"})
        client.post("/api/tasks/batch", {"tasks": [{"title": "later"} for _ in range(20)]})
        process = self.begin("wait", "t", stdout=subprocess.PIPE, env={"STINT_HOME": server.home})
        until = time.monotonic() + HANG_S
        while b"\nstint_event_streams 1\n" not in client.get("/metrics").body:
            self.assertLess(time.monotonic(), until)
        client.close()
        server.kill()
        subprocess.run([stintd.STINTD, "--home", server.home, "--restore", os.path.join(server.home, "backups", "early.db")],
                       check=True, capture_output=True)
        server.start()
        client = server.client()
        client.post("/api/tasks/t/cancel")
        client.close()
        self.assertEqual(process.communicate(timeout=HANG_S)[0], "t  cancelled\n")

    def test_wait_goes_on_when_the_stream_breaks_before_its_first_byte(self):
        server, between = self.server, Between(self.server)
        self.addCleanup(between.close)
        self.client.post("/api/tasks", {"id": "broken-stream", "title": "x"})
        streams = []

        def before(request):
            if not request.path.startswith("/api/events") or "limit=" in request.path:
                return None
            streams.append(request)
            if len(streams) > 2:  # the first is repeated at once: it may have met an old connection
                return 410, {"code": "cursor_gone", "status": 410, "title": "gone"}
            other = server.client()
            other.post("/api/tasks/broken-stream/cancel")
            other.close()
            return False
        between.before = before
        process = self.begin("--url", between.url, "--token", server.token, "wait", "broken-stream", stdout=subprocess.PIPE)
        self.assertEqual(process.communicate(timeout=HANG_S)[0], "broken-stream  cancelled\n")

    def test_a_server_that_comes_back_is_found_again(self):
        server = stintd.Server()
        self.addCleanup(server.end)
        client = server.client()
        client.post("/api/tasks", {"id": "t", "title": "x"})
        process = self.begin("wait", "t", stdout=subprocess.PIPE, env={"STINT_HOME": server.home})
        until = time.monotonic() + HANG_S
        while b"\nstint_event_streams 1\n" not in client.get("/metrics").body:
            self.assertLess(time.monotonic(), until)
        client.close()
        server.kill()
        server.start()
        client = server.client()
        client.post("/api/tasks/t/cancel")
        client.close()
        self.assertEqual(process.communicate(timeout=HANG_S)[0], "t  cancelled\n")
        self.assertEqual(process.returncode, 9)

    def test_a_bar_on_a_terminal_and_none_elsewhere(self):
        task = self.add("x", "--queue", "bar")
        master, slave = pty.openpty()
        process = self.begin("wait", task, stdout=subprocess.PIPE, stderr=slave)
        os.close(slave)
        drawn, env = "", self.holding(self.claim("bar"))
        until = time.monotonic() + HANG_S
        while f"{task} claimed" not in drawn or "half" not in drawn:
            self.assertLess(time.monotonic(), until, drawn)
            if "claimed" in drawn:
                self.stint("task", "progress", "half", "--percent", "50", **env)
            drawn += os.read(master, 4096).decode()
        self.stint("task", "done", **env)
        self.assertEqual(process.communicate(timeout=HANG_S)[0], f"{task}  done\n")
        os.close(master)
        self.assertIn("━" * 12 + "─" * 12 + f" 0/1 {task} running: half", drawn)
        self.assertEqual(self.stint("wait", task).err, "")

    def test_events_are_followed_from_now_and_filtered(self):
        process = self.begin("events", "--follow", "--type", "task.cancelled", "-n", "2", stdout=subprocess.PIPE)
        until = time.monotonic() + HANG_S
        while b"\nstint_event_streams 1\n" not in self.client.get("/metrics").body:
            self.assertLess(time.monotonic(), until)
        tasks = [self.add("x", "--queue", "follow") for _ in range(2)]
        self.stint("cancel", *tasks)
        events = [json.loads(line) for line in process.communicate(timeout=HANG_S)[0].splitlines()]
        self.assertEqual([(event["type"], event["task"]) for event in events],
                         [("task.cancelled", task) for task in tasks])

    def test_events_of_a_type_that_there_is_not_are_not_waited_for(self):
        ran = self.stint("events", "--follow", "--type", "task.created,task.faild", status=2)
        self.assertIn('there is no event "task.faild"; did you mean task.failed?', ran.err)
        self.add("x", "--queue", "types")
        for noun in ("task", "task.*"):
            types = {json.loads(line)["type"] for line in self.stint("events", "--type", noun, "--limit", "0").lines}
            self.assertTrue(types and all(kind.startswith("task.") for kind in types), types)

    def test_events_go_on_when_the_server_has_come_back(self):
        server = stintd.Server()
        self.addCleanup(server.end)
        process = self.begin("events", "--follow", "--after", "0", "--type", "task.created,server.started", "-n", "4",
                             "--json=type,task", stdout=subprocess.PIPE, env={"STINT_HOME": server.home})
        self.assertIn("server.started", process.stdout.readline())
        for number, restart in ((1, True), (2, False)):
            client = server.client()
            client.post("/api/tasks", {"id": f"t{number}", "title": "x"})
            client.close()
            self.assertEqual(json.loads(process.stdout.readline())["task"], f"t{number}")
            if restart:
                server.kill()
                server.start()
                self.assertIn("server.started", process.stdout.readline())
        process.communicate(timeout=HANG_S)
        self.assertEqual(process.returncode, 0)

    def test_who_never_met_the_server_does_not_wait_for_it(self):
        server = stintd.Server()
        server.kill()  # its socket is left behind
        self.addCleanup(server.end)
        for args in (["--follow", "--after", "0"], ["--follow"], []):
            self.assertIn("unreachable", self.stint("events", *args, status=7, STINT_HOME=server.home).err)

    def test_a_bar_fits_its_terminal(self):
        task = self.add("x", "--queue", "bars", "--id", "a-task-with-quite-a-long-name")
        for columns, term in ((80, "xterm"), (40, "xterm"), (12, "xterm"), (80, "dumb")):
            master, slave = pty.openpty()
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            process = self.begin("wait", task, "--timeout", "300ms", stdout=subprocess.DEVNULL, stderr=slave,
                                 env={"TERM": term})
            self.assertEqual(process.wait(HANG_S), 8)
            os.close(slave)
            drawn = os.read(master, 65536).decode()
            os.close(master)
            drawn = re.sub(r"\x1b\[2[23];2t|\x1b\]2;.*?(\x07|\x1b\\)", "", drawn)  # the title of the window
            bars = [line for line in re.split(r"\r|\x1b\[K", drawn) if "0/1" in line]
            self.assertEqual(bool(bars), term != "dumb", drawn)
            for bar in bars:
                self.assertLess(len(bar), columns, bar)
            self.assertEqual("\x1b[K" in drawn, term != "dumb")

    def test_forms_of_events(self):
        task = self.add("x", "--queue", "forms")
        seq = json.loads(self.stint("events", "--task", task).out)["seq"]
        self.assertEqual(self.stint("events", "--task", task, "-o", "id").out, f"{seq}\n")
        for form in ("table", "wide"):
            self.assertRegex(self.stint("events", "--task", task, "-o", form).out, r"^[:\d]+  %s is created by admin" % task)
        self.assertEqual(self.stint("events", "--task", task, "--json=seq").json, {"seq": seq})

    def test_events_in_pages(self):
        task = self.add("x", "--queue", "pages")
        self.stint("cancel", task)
        self.assertEqual([json.loads(line)["type"] for line in self.stint("events", "--task", task).lines],
                         ["task.created", "task.cancelled"])
        everything = self.stint("events", "--limit", "0").lines
        first = json.loads(everything[0])
        self.assertEqual(first["type"], "server.started")
        self.assertEqual(self.stint("events", "--limit", "0", "--after", str(first["seq"])).lines, everything[1:])
        self.assertEqual(self.stint("events", "--after", "now").out, "")
        self.assertIn("cursor_gone", self.stint("events", "--after", "99999999", status=4).err)
        self.stint("events", "--after", "yesterday", status=2)
        self.assertIn(f"{task} is created by admin", self.terminal("events", "--task", task).out)


class Finding(CliCase):
    def test_the_server_is_found_in_every_way(self):
        token = os.path.join(self.server.home, "admin.token")
        sock = "unix:" + os.path.join(self.server.home, "stint.sock")
        none = {"STINT_HOME": None, "HOME": "/nonexistent", "XDG_STATE_HOME": None}
        self.stint("ls", "--home", self.server.home, **none)
        self.stint("--home", self.server.home, "ls", **none)
        self.stint("ls", "--url", self.server.url, "--token-file", token, **none)
        self.stint("ls", "--url", sock, "--token", self.server.token, **none)
        self.stint("ls", STINT_URL=self.server.url, STINT_TOKEN=self.server.token, **none)
        self.stint("ls", STINT_URL=sock, STINT_TOKEN_FILE=token, **none)
        self.stint("ls", STINT_URL=self.server.url, STINT_HOME=self.server.home)
        self.stint("ls", status=7, **none)

    def test_nobody_there_is_unreachable(self):
        with tempfile.TemporaryDirectory() as folder:
            ran = self.stint("ls", status=7, STINT_HOME=folder)
            self.assertIn("stint up", ran.err)
            ran = self.stint("ls", "--json", status=7, STINT_HOME=folder)
            self.assertEqual((ran.json["error"]["code"], ran.json["error"]["retryable"]), ("unreachable", True))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            url = "http://127.0.0.1:%d" % free.getsockname()[1]
            self.assertIn("refused", self.stint("ls", "--url", url, status=7).err)

    def test_no_token_and_a_wrong_one_are_not_authorised(self):
        none = {"STINT_HOME": "/nonexistent", "HOME": "/nonexistent"}
        self.assertIn("no token: none of --token", self.stint("ls", "--url", self.server.url, status=6, **none).err)
        self.assertIn("does not know the token from --token (unauthorized)",
                      self.stint("ls", "--token", "stint_admin_x_y", status=6).err)
        self.stint("ls", STINT_TOKEN_FILE="/not/there", status=6)

    def test_the_admin_token_goes_to_this_computer_only(self):
        heard, done = [], threading.Event()
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen(1)
            listener.settimeout(HANG_S)

            def serve():
                connection, _ = listener.accept()
                heard.append(connection.recv(65536))
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]")
                connection.close()
                done.set()

            thread = threading.Thread(target=serve)
            thread.start()
            # a name that is not loopback to the eye, and this computer all the same
            self.stint("ls", "--url", "http://%s:%d" % (socket.gethostname(), listener.getsockname()[1]), status=None)
            if not done.wait(1):
                with socket.create_connection(listener.getsockname()) as own:
                    own.sendall(b"nobody came\r\n")
            thread.join(HANG_S)
        self.assertNotIn(b"Authorization", heard[0])

    def test_a_refusal_names_the_command_that_helps(self):
        worker = self.stint("token", "create", "--kind", "worker", "--quiet").out.strip()
        self.add("x", "--queue", "f-help")
        self.stint("claim", "--queues", "f-help", "--worker", "taken")
        err = self.stint("claim", "--worker", "taken", status=6, STINT_TOKEN=worker).err
        self.assertIn("try  stint claim --worker me", err)
        self.stint("disarm")
        self.assertIn("try  stint arm\n", self.stint("claim", status=6).err)
        self.stint("arm")
        for _ in range(3):
            self.client.post("/api/slots/f-slot/crash")
        task = self.add("x", "--owner", "f-slot", "--queue", "f-help")
        self.assertIn("try  stint slot unquarantine f-slot\n", self.stint("claim", "--id", task, "--slot", "f-slot", status=4).err)

    def test_what_is_no_address_is_usage(self):
        for url in ("nonsense", "https://", "http://", "unix:relative"):
            self.stint("ls", "--url", url, status=2)

    def test_a_server_that_speaks_nonsense_is_told_apart(self):
        for reply in (b"220 smtp ready\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nnot json!", b""):
            with socket.socket() as listener:
                listener.bind(("127.0.0.1", 0))
                listener.listen(4)
                listener.settimeout(HANG_S)

                def serve():
                    for _ in range(1 if reply else 2):  # silence may be bad luck: it is asked once more
                        connection, _ = listener.accept()
                        connection.recv(65536)
                        connection.sendall(reply)
                        connection.close()

                thread = threading.Thread(target=serve)
                thread.start()
                self.stint("ls", "--url", "http://127.0.0.1:%d" % listener.getsockname()[1], status=7)
                thread.join(HANG_S)

    def test_a_task_is_made_once_though_its_reply_was_lost(self):
        """A proxy that passes the request on, swallows the reply and hangs up; the second time it behaves."""
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen(4)
            listener.settimeout(HANG_S)

            def serve():
                for good in (False, True):
                    near, _ = listener.accept()
                    request = near.recv(65536).replace(b"Host: 127.0.0.1:%d" % listener.getsockname()[1],
                                                       b"Host: 127.0.0.1:%d" % self.server.port)
                    with socket.create_connection(("127.0.0.1", self.server.port), HANG_S) as far:
                        far.sendall(request)
                        reply = far.recv(65536)
                    if good:
                        near.sendall(reply)
                    near.close()

            thread = threading.Thread(target=serve)
            thread.start()
            ran = self.stint("add", "once", "--queue", "once", "--url", "http://127.0.0.1:%d" % listener.getsockname()[1])
            thread.join(HANG_S)
        self.assertEqual(self.stint("ls", "--queue", "once", "-o", "id").out, ran.out)

    def test_who_stops_reading_is_no_trouble(self):
        self.client.post("/api/tasks/batch", [{"title": "x" * 1000, "queue": "pipe"} for _ in range(500)])
        process = self.begin("ls", "--queue", "pipe", "--limit", "0", "--json", stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=False)
        process.stdout.read(10)
        process.stdout.close()
        self.assertEqual(process.stderr.read(), b"")
        process.stderr.close()
        self.assertIn(process.wait(HANG_S), (-signal.SIGPIPE, 1))

    def test_who_waits_for_events_notices_that_nobody_reads_them(self):
        process = self.begin("events", "--follow", "--after", "0", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertIn("server.started", process.stdout.readline())
        process.stdout.close()
        self.assertEqual(process.stderr.read(), "")
        self.assertIn(process.wait(HANG_S), (-signal.SIGPIPE, 1))

    def test_a_closed_output_is_a_failure_and_not_the_servers_line(self):
        """The first file that is opened takes the number of one that is closed: that would be the connection."""
        for redirected, status in ((">&-", 1), ("2>&-", 0), ("<&-", 0), (">&- 2>&- <&-", 1)):
            ran = subprocess.run(["sh", "-c", f'"$0" queue ls --json {redirected}', STINT], capture_output=True, text=True,
                                 timeout=HANG_S, env=environment(STINT_HOME=self.server.home))
            self.assertEqual(ran.returncode, status, redirected)
        ran = subprocess.run(["sh", "-c", '"$0" show nobody --json 2>&-', STINT], capture_output=True, text=True,
                             timeout=HANG_S, env=environment(STINT_HOME=self.server.home))
        self.assertEqual((ran.returncode, ran.stdout), (3, ""))

    def test_output_that_cannot_be_written_is_a_failure(self):
        with open("/dev/full", "wb") as full:
            ran = subprocess.run([STINT, "help"], stdout=full, stderr=subprocess.PIPE, timeout=HANG_S, env=environment())
        self.assertEqual(ran.returncode, 1)
        self.assertIn(b"cannot write", ran.stderr)


class Standing(CliCase):
    def test_alone_it_says_how_things_stand(self):
        client = self.server.client()
        self.addCleanup(client.close)
        self.assertEqual(self.stint().out, "No tasks yet.\n")
        client.post("/api/tasks", {"id": "a", "title": "x", "queue": "q"})
        self.assertEqual(self.stint().out, "Nothing needs you. 1 task waits.\n")
        client.post("/api/queues/q/pause", {})
        self.assertEqual(self.stint().out, "Nothing needs you. 1 task waits because its queue is paused.\n")
        for task, gate in (("b", []), ("c", ["ship"]), ("d", [])):
            client.post("/api/tasks", {"id": task, "title": "x", "queue": task, "gates": gate, "maxAttempts": 1})
        for task, outcome, more in (("b", None, {}), ("c", "review", {}), ("d", "fail", {"error": {"code": "X", "message": "no"}})):
            claim, = client.post("/api/claims", {"workerId": "w-" + task, "queues": [task]}).json["claims"]
            if outcome:
                client.post(f"/api/tasks/{task}/{outcome}", {"workerId": "w-" + task, "fence": claim["fence"], **more})
        ran = self.stint()
        self.assertEqual(ran.lines[0], "1 needs you. 1 task runs and 1 waits because its queue is paused. 1 failed today.")
        self.assertRegex(ran.lines[1], r"^  . c  Needs a verdict on gate ship")
        self.assertEqual(json.loads(self.stint("--json").out)["tasks"], {"needYou": 1, "running": 1, "waiting": 1})
        self.stint("--bogus", status=2)

    def test_alone_without_a_server_it_says_so(self):
        ran = self.stint(status=7, STINT_HOME=os.path.join(self.server.home, "none"))
        self.assertEqual(ran.out, "")
        self.assertIn("stint up", ran.err)


class Helping(CliCase):
    def verbs(self):
        return [line for line in self.stint("__man").lines]

    def test_the_list_fits_one_screen(self):
        ran = self.stint("help")
        self.assertLessEqual(len(ran.lines), 26)
        for line in ran.lines:
            self.assertLessEqual(len(line), 80)
        for verb in self.verbs():
            self.assertRegex(ran.out, rf"\b{verb}\b")
        self.assertEqual(self.stint("--help").out, ran.out)

    def test_every_verb_explains_itself(self):
        for verb in self.verbs():
            ran = self.stint("help", verb)
            self.assertTrue(ran.out.startswith(("usage: stint " + verb, "stint " + verb)), ran.out)
            if ran.out.startswith("usage"):
                self.assertEqual(self.stint(verb, "--help").out, ran.out)
                for line in ran.lines:
                    self.assertLessEqual(len(line), 100, line)
        self.assertIn("Examples", self.stint("help", "queue", "pause").out)
        self.assertIn("--after ID,…          not before these tasks are done; may be repeated", self.stint("help", "add").out)
        self.assertIn("table|wide|json|jsonl|id\n", self.stint("help", "ls").out)
        self.assertNotIn("…", self.terminal("help", "add", LANG="C").out)

    def test_every_verb_has_its_manual_page(self):
        with open(os.path.join(TOP, "meson.build")) as file:
            pages = re.search(r"man_pages = \[(.*?)\]", file.read(), re.S).group(1)
        self.assertEqual(re.findall(r"'([\w-]+)'", pages), ["stint", *self.verbs()])
        scdoc = shutil.which("scdoc")
        for page in ["stint", *self.verbs()]:
            source = self.stint("__man", page).out
            self.assertIn(page, source)
            if scdoc:
                ran = subprocess.run([scdoc], input=source, capture_output=True, text=True, timeout=HANG_S)
                self.assertEqual((ran.returncode, ran.stderr), (0, ""), page)

    def test_an_empty_name_is_a_variable_that_was_not_set(self):
        """Everything and nothing are both wrong: a token for all queues, a task that waits for nobody."""
        for words, flag in ((["claim", "--queues", ""], "--queues"), (["claim", "--queues", ","], "--queues"),
                            (["token", "create", "--kind", "worker", "--queues="], "--queues"),
                            (["add", "x", "--after", ""], "--after"), (["add", "x", "--queue", ""], "--queue"),
                            (["add", "x", "--needs", ""], "--needs"), (["ls", "--queue", ""], "--queue"),
                            (["ls", "--state", ""], "--state"), (["claim", "--worker", ""], "--worker"),
                            (["claim", "--slot", ""], "--slot"), (["events", "--task", ""], "--task")):
            ran = self.stint(*words, status=2)
            self.assertIn(f"{flag} is empty", ran.err, words)
        task = self.add("names no executor", "--queue", "h-none")
        self.assertEqual(self.stint("claim", "--queues", "h-none", "--executors", "", "--json").json["claim"]["task"]["id"], task)

    def test_a_noun_alone_names_its_verbs(self):
        ran = self.stint("queue", status=2)
        self.assertEqual(ran.out, "")
        self.assertIn("stint queue needs a verb: ls, show, keys, limit, budget, pause, resume, drain or inbox (usage)", ran.err)
        self.assertEqual(self.stint("queue", "--json", status=2).json["error"]["code"], "usage")
        self.assertIn("stint slot needs a verb: ls or unquarantine (usage)", self.stint("slot", status=2).err)
        self.assertIn("stint db needs a verb: query (usage)", self.stint("db", status=2).err)

    def test_help_takes_a_verb_and_nothing_more(self):
        self.assertIn('there is no "stint add foo"', self.stint("help", "add", "foo", status=2).err)

    def test_slips_are_understood(self):
        for args, part in ((["lss"], "did you mean \"ls\"?"), (["rm", "t-7"], "there is no \"stint rm\"; it is \"stint cancel\" (usage)\n  try  stint cancel t-7\n"), (["queue", "puase"], "did you mean \"pause\"?"),
                           (["ls", "--quee", "x"], "did you mean --queue?"), (["quue", "ls"], "did you mean \"queue\"?"),
                           (["queue", "frob"], "there is no \"stint queue frob\"; say ls, show, keys, limit, budget, pause, resume, drain or inbox"),
                           (["ls", "--queue", "--json"], "--queue needs a value: NAME; if it is --json, say --queue=--json"),
                           (["frobnicate"], "stint help"), (["queue"], "stint queue needs a verb")):
            ran = self.stint(*args, status=2)
            self.assertIn(part, ran.err)
        for args in (["--json"], ["-o", "json"], ["-ojson"], ["--output=json"]):
            ran = self.stint("ls", "--bogus", *args, status=2)
            self.assertEqual((ran.json["ok"], ran.json["error"]["code"]), (False, "usage"))

    def test_version(self):
        self.assertRegex(self.stint("version").out, r"^stint \d+\.\d+\.\d+\n$")
        self.assertEqual(self.stint("--version").out, self.stint("version").out)

    def test_completion_offers_what_fits(self):
        task = self.add("to complete", "--queue", "comp")

        def offers(*words):
            return [line.split("\t")[0] for line in self.stint("__complete", *words).lines]

        self.assertIn("add", offers(""))
        self.assertEqual(offers("que"), ["queue"])
        self.assertEqual(offers("queue", "p"), ["pause"])
        self.assertIn(task, offers("show", ""))
        self.assertEqual(offers("show", task), [task])
        self.assertEqual(offers("ls", "--queue", "com"), ["comp"])
        self.assertIn("--queue", offers("ls", "--q"))
        self.assertEqual(offers("ls", "--state", "run"), ["running"])
        self.assertEqual(offers("ls", "--color", "al"), ["always"])
        self.assertEqual(offers("add", "x", "--file", ""), ["__files__"])
        ran = self.stint("__complete", "show", "", STINT_HOME="/nonexistent")
        self.assertEqual((ran.out, ran.status), ("", 0))

    def test_the_scripts_can_be_read_by_their_shells(self):
        """What they do is in test_completion.py."""
        for shell in ("bash", "zsh", "fish"):
            script = self.stint("completion", shell).out
            if not shutil.which(shell):
                continue
            with tempfile.NamedTemporaryFile("w") as file:
                file.write(script)
                file.flush()
                ran = subprocess.run([shell, "-n", file.name], capture_output=True, text=True, timeout=HANG_S)
                self.assertEqual((ran.returncode, ran.stderr), (0, ""), shell)
        self.stint("completion", "tcsh", status=2)


class Doctor(CliCase):
    def checks(self, *args, **options):
        return {check["name"]: check for check in self.stint("doctor", "--json", *args, **options).json["checks"]}

    def test_a_healthy_server(self):
        checks = self.checks()
        for name in ("home", "admin.token", "stint.db", "reachable", "token", "version", "writable", "disk space"):
            self.assertIn(checks[name]["verdict"], ("pass", "warn"), checks[name])
        ran = self.stint("doctor")
        self.assertNotRegex(ran.out, r"(?m)^pass ")
        self.assertRegex(ran.err, r"^\d+ passed \(--all lists them\)\n$")
        self.assertRegex(self.stint("doctor", "--all").out, r"(?m)^pass  version +server ")

    def test_a_slot_in_quarantine_is_to_be_looked_at(self):
        self.assertNotIn("slots", self.checks())
        for _ in range(3):
            self.client.post("/api/slots/box%2Fairi-1/crash")
        check = self.checks()["slots"]
        self.assertEqual((check["verdict"], check["text"]), ("warn", "1 in quarantine, because it crashed too often: box/airi-1"))
        self.assertEqual(check["fix"], "stint slot unquarantine box/airi-1   # when it is mended; stint worker show says what was wrong")
        self.stint("slot", "unquarantine", "box/airi-1")
        self.assertNotIn("slots", self.checks())

    def test_doors_that_are_closed(self):
        checks = self.checks("--security")
        for name in ("no token", "wrong token", "other host", "other origin", "form post", "listener"):
            self.assertEqual(checks[name]["verdict"], "pass", checks[name])

    def test_files_that_others_can_read(self):
        path = os.path.join(self.server.home, "admin.token")
        os.chmod(path, 0o644)
        try:
            check = self.checks(status=1)["admin.token"]
            self.assertEqual((check["verdict"], check["fix"]), ("fail", f"chmod 600 {path}"))
        finally:
            os.chmod(path, 0o600)

    def test_a_token_that_is_gone_or_empty(self):
        server = stintd.Server()
        self.addCleanup(server.end)
        path = os.path.join(server.home, "admin.token")
        with open(path, "w"):
            pass
        checks = self.checks(status=1, STINT_HOME=server.home)
        self.assertEqual((checks["admin.token"]["verdict"], checks["token"]["verdict"]), ("fail", "fail"))
        self.assertIn(f"rm {path}", checks["admin.token"]["fix"])
        os.unlink(path)
        self.assertIn("stopping a server", self.checks(status=1, STINT_HOME=server.home)["admin.token"]["fix"])

    def test_nobody_home_and_a_wrong_token(self):
        with tempfile.TemporaryDirectory() as folder:
            checks = self.checks(status=1, STINT_HOME=folder)
            self.assertEqual((checks["reachable"]["verdict"], checks["reachable"]["fix"]), ("fail", "stint up"))
            told = self.stint("doctor", "--json=name", status=1, STINT_HOME=folder).json
            self.assertEqual((told["ok"], {"name": "reachable"} in told["checks"]), (False, True))
        self.assertEqual(self.checks("--token", "stint_no", status=1)["token"]["verdict"], "fail")

    def test_fix_closes_what_others_could_open_and_says_so(self):
        server = stintd.Server()
        self.addCleanup(server.end)
        other = os.path.join(server.home, "a token")
        shutil.copy(os.path.join(server.home, "admin.token"), other)
        opened = {"home": server.home, "admin.token": os.path.join(server.home, "admin.token"), "token file": other,
                  "stint.db": os.path.join(server.home, "stint.db")}
        for path in opened.values():
            os.chmod(path, 0o755 if os.path.isdir(path) else 0o664)
        before = self.stint("doctor", STINT_HOME=server.home, STINT_TOKEN_FILE=other, status=1)
        self.assertIn(" passed (--all lists them); stint doctor --fix repairs 4 of the others\n", before.err)
        self.assertEqual(os.stat(other).st_mode & 0o777, 0o664)
        checks = self.checks("--fix", STINT_HOME=server.home, STINT_TOKEN_FILE=other)
        for name, path in opened.items():
            self.assertEqual(checks[name]["verdict"], "fixed", checks[name])
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o700 if os.path.isdir(path) else 0o600)
        self.assertNotIn("fixed", [check["verdict"] for check in self.checks("--fix", STINT_HOME=server.home).values()])

    def test_fix_removes_what_a_server_that_was_killed_left_and_no_data(self):
        server = stintd.Server()
        self.addCleanup(server.end)
        server.kill()

        def files():
            found = {}
            for entry in os.scandir(server.home):
                if entry.is_file() and entry.name != "url":
                    with open(entry.path, "rb") as file:
                        found[entry.name] = file.read()
            return found
        before = files()
        checks = self.checks(status=1, STINT_HOME=server.home)
        self.assertEqual([checks["old " + name]["verdict"] for name in ("socket", "url")], ["warn"] * 2)
        checks = self.checks("--fix", status=1, STINT_HOME=server.home)
        self.assertEqual([checks["old " + name]["verdict"] for name in ("socket", "url")], ["fixed"] * 2)
        self.assertEqual(checks["reachable"]["fix"], "stint up")
        self.assertEqual(files(), before)
        self.assertEqual([name for name in os.listdir(server.home) if "sock" in name or name == "url"], [])

    def test_fix_leaves_a_server_that_runs_and_what_is_no_file_of_ours_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            foreign = os.path.join(folder, "foreign")
            with open(foreign, "w") as file:
                file.write("x")
            os.chmod(foreign, 0o644)
            link = os.path.join(self.server.home, "config.json")
            os.symlink(foreign, link)
            self.addCleanup(os.unlink, link)
            self.stint("doctor", "--fix", status=None)
            self.assertEqual((os.stat(foreign).st_mode & 0o777, os.path.islink(link)), (0o644, True))
        for name in ("stint.sock", "url"):
            self.assertTrue(os.path.exists(os.path.join(self.server.home, name)), name)

    def test_fix_makes_the_state_directory(self):
        with tempfile.TemporaryDirectory() as folder:
            home = os.path.join(folder, "a", "b")
            self.assertEqual(self.checks(status=1, STINT_HOME=home)["home"]["verdict"], "fail")
            self.assertEqual(self.checks("--fix", status=1, STINT_HOME=home)["home"]["verdict"], "fixed")
            self.assertEqual(os.stat(home).st_mode & 0o777, 0o700)

    def test_a_server_that_lets_everybody_in_is_told_as_what_it_is(self):
        server = stintd.Server("--set", "auth=open")
        self.addCleanup(server.end)
        check = self.checks("--security", STINT_HOME=server.home)["no token"]
        self.assertEqual(check["verdict"], "warn")
        self.assertIn('"auth": "token"', check["fix"])


class Inside(CliCase):
    def test_the_token_of_a_claim_says_who_it_is(self):
        task = self.add("x", "--queue", "inside")
        env = self.holding(self.claim("inside"))
        token = self.stint("token", "create", "--kind", "claim", **env).out.strip()
        own = {"STINT_TASK_ID": task, "STINT_TOKEN": token}
        self.stint("task", "progress", **own)
        self.stint("ls", status=6, STINT_TOKEN=token)
        said = self.stint("show", "t-zzz", status=3, STINT_TOKEN=token).err
        self.assertEqual(said.count("stint: "), 1, said)
        self.stint("task", "done", "so", **own)
        self.assertEqual(self.state(task), "done")

    def test_logs(self):
        task = self.add("x", "--queue", "logs")
        claim = self.claim("logs")
        self.assertEqual(self.stint("logs", task).out, "")

        def write(offset, data):
            reply = self.client.post(f"/api/tasks/{task}/log", {"workerId": "w", "fence": claim["fence"], "offset": offset,
                                                              "data": data})
            self.assertEqual(reply.status, 200, reply.body)

        write(0, "one\n\x1b[31mtwo\n")
        self.assertEqual(self.stint("logs", task).out, "one\n\x1b[31mtwo\n")
        self.assertEqual(self.terminal("logs", task, TERM="xterm").out, "one\n\x1b[31mtwo\x1b[0m\n")
        self.assertEqual(self.stint("logs", task, "--json").json["log"]["length"], 13)
        follower = self.begin("logs", task, "--follow", stdout=subprocess.PIPE)
        self.assertEqual([follower.stdout.readline() for _ in range(2)], ["one\n", "\x1b[31mtwo\n"])
        write(13, "three\n")
        self.stint("task", "done", **self.holding(claim))
        self.assertEqual(follower.communicate(timeout=HANG_S)[0], "three\n")
        self.assertEqual(follower.returncode, 0)
        self.stint("logs", "nothing", status=3)

    def test_logs_of_what_nobody_has_begun_yet_are_waited_for(self):
        task = self.add("x", "--queue", "logs")
        follower = self.begin("logs", task, "--follow", stdout=subprocess.PIPE)
        claim = self.claim("logs")
        self.client.post(f"/api/tasks/{task}/log", {"workerId": "w", "fence": claim["fence"], "offset": 0, "data": "begun\n"})
        self.assertEqual(follower.stdout.readline(), "begun\n")
        self.stint("task", "done", **self.holding(claim))
        self.assertEqual((follower.wait(HANG_S), follower.stdout.read()), (0, ""))


class Keeping(CliCase):
    def test_slots(self):
        self.client.post("/api/workers/register", {"workerId": "filler", "slot": "s-1", "leaseMs": 60000})
        for _ in range(3):
            self.client.post("/api/slots/s-2/crash")
        rows = {line.split("\t")[0]: line.split("\t")[1:] for line in self.stint("slot", "ls").lines}
        self.assertEqual(rows["s-1"][:2], ["filled", "filler"])
        self.assertEqual((rows["s-2"][0], rows["s-2"][2]), ("quarantined", "3"))
        self.assertRegex(" ".join(rows["s-2"][3:]), r"^in \d+ min (now|\d s ago)$", "when a trial is due, and since when")
        self.assertEqual(self.stint("slot", "ls", "-o", "id").lines, ["s-1", "s-2"])
        self.assertEqual(len(self.stint("slot", "ls", "--json").json["slots"]), 2)
        for slot in ("s-3", "box/airi-1"):
            self.client.post("/api/slots/%s/crash" % urllib.parse.quote(slot, safe=""))
        self.assertIn("box/airi-1\topen\t-\t1\t", self.stint("slot", "ls").out, "nobody registers there, so that nobody knows")
        self.assertIn("s-3\tempty\t-\t1\t", self.stint("slot", "ls").out)

    def test_a_backup_is_a_file_with_everything_in_it(self):
        self.add("x")
        path = self.stint("backup").out.strip()
        self.assertTrue(os.path.getsize(path) > 0)
        told = self.stint("backup", "named.db", "--json").json["backup"]
        self.assertEqual(told["bytes"], os.path.getsize(told["path"]))
        self.stint("backup", "../outside.db", status=2)

    def test_questions_in_sql(self):
        self.assertEqual(self.stint("db", "query", "SELECT 1, 'two', NULL").out, "1\ttwo\t\n")
        self.assertEqual(self.stint("db", "query", "-", "--json", stdin="SELECT 1 AS a").json["result"]["rows"], [[1]])
        self.assertIn("may only read", self.stint("db", "query", "DELETE FROM task", status=2).err)
        self.stint("db", "query", "SELEC", status=2)


class Config(CliCase):
    def test_every_setting_says_who_said_it(self):
        with tempfile.TemporaryDirectory() as home:
            with open(os.path.join(home, "config.json"), "w") as file:
                os.chmod(file.fileno(), 0o600)
                file.write('{ "task": { "crashBudget": 7 } }')
            where = {"STINT_HOME": home, "XDG_CONFIG_HOME": home, "STINT_LOG_LEVEL": "warn"}
            lines = [line.split("\t") for line in self.stint("config", "show", "--origin", "--set", "retry.maxMs=1000", **where).lines]
            found = {key: (value, origin) for key, value, origin in lines}
            self.assertEqual(found["task.crashBudget"], ("7", os.path.join(home, "config.json") + ":1:13"))
            self.assertEqual(found["log.level"], ("warn", "STINT_LOG_LEVEL"))
            self.assertEqual(found["retry.maxMs"], ("1000", "--set"))
            self.assertEqual(found["sweep.intervalMs"][1], "default")
            told = self.stint("config", "show", "--json", **where).json
            self.assertEqual((told["schema"], told["config"]["home"]), (1, home))
            paths = [line.split("\t") for line in self.stint("config", "path", **where).lines]
            self.assertEqual(paths[0], [os.path.join(home, "config.json"), "there"])
            self.assertEqual(len(paths), 3)

    def test_the_schema_allows_what_the_server_reads_and_nothing_else(self):
        schema = json.loads(self.stint("config", "schema").out)
        self.assertEqual(self.stint("config", "schema", "--json").json["document"], schema)
        values = {"$schema": "x", "executors": {"a": {}}}
        for key in self.stint("config", "show", "--json", STINT_HOME="/nonexistent").json["config"]["keys"]:
            *group, name = key["key"].split(".")
            owner = values.setdefault(group[0], {}) if group else values
            owner[name] = key["value"]
        values.pop("store")  # its default is no value
        try:
            import jsonschema
        except ImportError:
            self.skipTest("python3-jsonschema is not installed")
        validator = jsonschema.Draft202012Validator(schema)
        validator.check_schema(schema)
        self.assertEqual(list(validator.iter_errors(values)), [])
        for wrong in ({"lisen": "x"}, {"task": {"crashBudget": 0}}, {"task": {"crash": 1}}, {"auth": "none"},
                      {"behindProxy": "yes"}, {"sweep": {"intervalMs": "1000"}}, {"listen": ""}):
            self.assertFalse(validator.is_valid(wrong), wrong)

    def test_what_is_wrong_is_said(self):
        ran = self.stint("config", "show", "--set", "lisen=1", status=1)
        self.assertIn("did you mean listen?", ran.err)
        self.assertFalse(self.stint("config", "show", "--set", "lisen=1", "--json", status=1).json["ok"])
        self.stint("config", "show", "--set", "lisen", status=2)


class Up(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="stint-up-")
        self.addCleanup(shutil.rmtree, self.home, True)
        self.processes = []
        self.addCleanup(self.end_all)

    def end_all(self):
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # its worker too, which would go on writing into the home
            process.wait(HANG_S)
            process.stdout.close()
            process.stderr.close()

    def up(self, *args):
        process = subprocess.Popen([STINT, "up", "--home", self.home, "--listen", "127.0.0.1:0", *args],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=environment(), start_new_session=True)
        self.processes.append(process)
        return process

    def up_and_ready(self, *args):
        process = self.up(*args)
        lines = []
        while not lines or not lines[-1].startswith("try "):
            line = process.stdout.readline()
            self.assertTrue(line, process.stderr.read() if process.poll() is not None else lines)
            lines.append(line)
        return process, "".join(lines)

    def stint(self, *args):
        return subprocess.run([STINT, *args], capture_output=True, text=True, timeout=HANG_S,
                              env=environment(STINT_HOME=self.home))

    def test_roots_that_are_configured_are_not_widened(self):
        root = os.path.join(self.home, "..", os.path.basename(self.home) + "-root")
        os.mkdir(root)
        self.addCleanup(shutil.rmtree, root, True)
        with open(os.path.join(self.home, "config.json"), "w") as file:
            json.dump({"roots": [os.path.realpath(root)]}, file)
        os.chmod(file.name, 0o600)
        _, said = self.up_and_ready("--no-demo")
        self.assertIn("in any directory under \"roots\" of the configuration", re.sub(r"\s+", " ", said))
        self.assertRegex(said, r"(?m)^try .* run --no-cwd -- echo hello$")
        self.assertEqual(self.stint("run", "--cwd", os.path.realpath(root), "--", "true").returncode, 0)
        outside = self.stint("run", "--cwd", "/usr", "--", "true")
        self.assertIn("is not among this worker's \"roots\"", outside.stderr)

    def test_up_says_where_it_is_and_stops_with_ctrl_c(self):
        process, said = self.up_and_ready("--no-demo")
        url = re.search(r"^server +(http://127\.0\.0\.1:\d+), this computer only$", said, re.M).group(1)
        with open(os.path.join(self.home, "url")) as file:
            self.assertEqual(file.read().strip(), url)
        self.assertIn(f"try     export STINT_HOME={self.home}; {STINT} run -- echo hello\n", said)
        self.assertRegex(said, r"(?m)^agents  (none found \(looked for claude, codex, gemini, opencode, openclaw\)|\w+.*)$")
        self.assertLessEqual(len(said.splitlines()), 7, said)
        self.assertEqual(self.stint("add", "hello").returncode, 0)
        os.killpg(process.pid, signal.SIGINT)
        self.assertEqual(process.wait(HANG_S), 0)
        self.assertEqual(process.stderr.read(), "stint: stopped\n")
        self.assertFalse(os.path.exists(os.path.join(self.home, "stint.sock")))
        self.assertEqual(self.stint("ls").returncode, 7)

    def test_a_new_store_has_three_tasks_that_show_how_it_works(self):
        _, said = self.up_and_ready()
        self.assertRegex(said, r"(?m)^demo +3 tasks: ")
        self.assertEqual(self.stint("wait", "--timeout", "25s", "demo-hello", "demo-crash").returncode, 0)
        self.assertIn("hello, world", self.stint("show", "demo-hello").stdout)
        self.assertRegex(self.stint("show", "demo-crash").stdout,
                         r"(?s)Attempt 1 on .*Attempt 1 failed: ended by signal 9 \(SIGKILL\): half way \(WORKER_CRASHED\)\n.*Attempt 2 on .*Attempt 2 is done")
        until = time.monotonic() + HANG_S
        while "tea or coffee?" not in self.stint("inbox").stdout:
            self.assertLess(time.monotonic(), until)
        self.assertEqual(self.stint("answer", "demo-ask", "tea").returncode, 0)
        self.assertEqual(self.stint("wait", "--timeout", "25s", "demo-ask").returncode, 0)
        self.assertIn("answer: tea", re.sub(r"(answer) +", r"\1: ", self.stint("show", "demo-ask").stdout))

    def test_the_demo_is_for_new_stores_that_want_it(self):
        process, said = self.up_and_ready("--no-demo")
        self.assertNotIn("demo-", said)
        self.assertEqual(self.stint("ls", "--all", "-o", "id").stdout, "")
        process.send_signal(signal.SIGTERM)
        process.wait(HANG_S)
        _, said = self.up_and_ready()
        self.assertNotIn("demo-", said, "it was there before")

    def test_a_second_up_says_what_runs_and_leaves_it_alone(self):
        first, _ = self.up_and_ready()
        second = self.up()
        out, _ = second.communicate(timeout=HANG_S)
        self.assertEqual(second.returncode, 0)
        self.assertIn("already up", out)
        self.assertIsNone(first.poll())
        self.assertEqual(self.stint("ls").returncode, 0)

    def test_of_two_that_are_started_at_once_one_is_up_and_the_other_says_so(self):
        first, second = self.up("--no-demo"), self.up("--no-demo")
        until = time.monotonic() + HANG_S
        while first.poll() is None and second.poll() is None:
            self.assertLess(time.monotonic(), until)
            time.sleep(0.01)
        over, runs = (first, second) if first.poll() is not None else (second, first)
        out, err = over.communicate(timeout=HANG_S)
        self.assertEqual(over.returncode, 0, err)
        self.assertTrue(out.startswith("stint is already up: "), out)
        while not (line := runs.stdout.readline()).startswith("server "):
            self.assertTrue(line)
        with open(os.path.join(self.home, "url")) as file:
            self.assertIn(file.read().strip(), line)

    def test_what_is_to_be_logged_is_logged(self):
        process, _ = self.up_and_ready("--set", "log.level=info")
        process.send_signal(signal.SIGTERM)
        self.assertIn("listening", process.communicate(timeout=HANG_S)[1])

    def test_a_home_beside_us_is_told_as_a_whole(self):
        self.home = os.path.relpath(os.path.join(self.home, "it's here"))
        _, said = self.up_and_ready()
        line = next(line for line in said.splitlines() if line.startswith("try"))
        self.assertIn("STINT_HOME=" + os.path.join(os.getcwd(), self.home), shlex.split(line.replace(";", "")))

    def test_whoever_is_killed_takes_its_server_and_its_worker_along(self):
        process, _ = self.up_and_ready()
        until = time.monotonic() + HANG_S
        while not (workers := json.loads(self.stint("worker", "ls", "--json").stdout)["workers"]):
            self.assertLess(time.monotonic(), until)
        process.send_signal(signal.SIGKILL)
        process.wait(HANG_S)
        while self.stint("ls").returncode != 7 or os.path.exists(f"/proc/{workers[0]['pid']}"):
            self.assertLess(time.monotonic(), until)

    def test_a_worker_that_is_killed_is_followed_by_another_that_tells_what_it_ran(self):
        process, _ = self.up_and_ready("--no-demo")
        task = self.stint("add", "half way", "--queue", "shell", "--executor", "shell", "--payload",
                          '{"argv":["sh","-c","test $STINT_ATTEMPT = 2 || sleep 600"]}').stdout.strip()
        until = time.monotonic() + HANG_S
        while json.loads(self.stint("show", task, "--json").stdout)["task"]["state"] != "running":
            self.assertLess(time.monotonic(), until)
        worker, = json.loads(self.stint("worker", "ls", "--json").stdout)["workers"]
        os.kill(worker["pid"], signal.SIGKILL)
        self.assertEqual(self.stint("wait", "--timeout", "25s", task).returncode, 0)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(HANG_S), 0)
        self.assertIn("the worker was ended by signal 9; another one is started in 1 s", process.stderr.read())

    def test_a_server_that_cannot_start_is_told(self):
        process = self.up("--set", "nonsense=1")
        _, err = process.communicate(timeout=HANG_S)
        self.assertEqual(process.returncode, 1)
        self.assertIn("nonsense", err)
        self.assertIn("ended by itself", err)

    def test_a_terminated_up_stops_its_server(self):
        process, _ = self.up_and_ready()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(HANG_S), 0)
        self.assertEqual(self.stint("ls").returncode, 7)


if __name__ == "__main__":
    unittest.main()
