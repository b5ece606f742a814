"""Every example is run: those in the help and the manual pages against a server of their own, each in the world that it
speaks of; and the blocks of the README that are marked with <!-- run: NAME -->, whose output is compared, too."""
import fcntl
import glob
import http.server
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import threading
import time
import unittest

from hang import HANG_S
import stintd

STINT = os.path.abspath(os.environ.get("STINT", "build/stint"))
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MAKEFILE = "report test:\n\t@echo made $@\n"


def environment(folder, **more):
    """A user of their own: a home directory, the programs, and nothing of ours."""
    return {"PATH": os.path.dirname(STINT) + ":/usr/bin:/bin", "HOME": folder, "USER": "ann", "LANG": "C.UTF-8",
            "TERM": "xterm", "NO_COLOR": "1", "PAGER": "cat", "XDG_CONFIG_HOME": folder, **more}


def run(command, folder, env, timeout=HANG_S):
    return subprocess.run(["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL)


def stint(*args):
    return subprocess.run([STINT, *args], capture_output=True, text=True, timeout=HANG_S, env=environment("/nonexistent"))


def verbs():
    return re.findall(r"^\*stint ([a-z0-9 -]+)\* ?", stint("__man", "stint").stdout, re.M)


def examples(verb):
    text = stint("help", *verb.split()).stdout
    return [line.strip() for line in text.partition("\nExamples\n")[2].splitlines()]


class World:
    """What an example takes for granted: the task t-7k3 in the right state, a worker, files."""

    def __init__(self, test, verb, example):
        self.test, self.verb, self.example = test, verb, example
        self.folder = tempfile.mkdtemp(prefix="stint-example-")
        test.addCleanup(shutil.rmtree, self.folder, True)
        self.server = stintd.Server()
        test.addCleanup(self.server.end)
        self.client = self.server.client()
        test.addCleanup(self.client.close)
        self.env = environment(self.folder, STINT_HOME=self.server.home)
        for name, text in (("instructions.md", "# Port it\n\nto C23\n"), ("out.json", '{"a":1}'), ("Makefile", MAKEFILE),
                           ("result.json", "[]"), ("worker.json", '{"agentId": "dev-3", "queues": ["ci"]}')):
            with open(os.path.join(self.folder, name), "w") as file:
                file.write(text)
        self.prepare()

    def post(self, path, body=None):
        reply = self.client.post(path, body)
        self.test.assertLess(reply.status, 300, reply.body)
        return reply.json

    def add(self, task, **more):
        return self.post("/api/tasks", {"id": task, "title": task, **more})

    def hold(self, task):
        """Somebody holds it: what a program inside of it has in its environment."""
        claim = self.post(f"/api/tasks/{task}/claim", {"workerId": "me"})
        self.env.update(STINT_TASK_ID=task, STINT_FENCE=claim["fence"], STINT_WORKER_ID="me")
        return {"workerId": "me", "fence": claim["fence"]}

    def end(self, task, how="complete", **more):
        self.post(f"/api/tasks/{task}/{how}", {**self.hold(task), **more})

    def prepare(self):
        verb = self.verb
        self.post("/api/workers/register", {"workerId": "host-1", "slot": "slot-2", "leaseMs": 60000})
        if verb in ("answer", "approve", "deny", "inbox"):
            self.add("t-7k3")
            self.end("t-7k3", "ask", question="which database?")
        elif verb == "task ask":
            self.add("t-7k3")
            self.end("t-7k3", "ask", question="which branch?")
            self.post("/api/tasks/t-7k3/release", {"workerId": "me", "fence": self.env["STINT_FENCE"]})
            self.post("/api/tasks/t-7k3/answer", {"text": "main"})  # to the attempt before this one
            self.hold("t-7k3")
        elif verb == "wait":
            for task in ("t-7k3", "t-1", "t-2", "t-3"):
                self.add(task)
                self.end(task)
            self.add("t-10", group="nightly")
            self.end("t-10")
            self.post("/api/groups/nightly/close")
            if "stint add" in self.example:
                self.work_on("ci")
        elif verb == "retry" or verb == "ls":
            for task in ("t-7k3", "t-9"):
                self.add(task, queue="ci")
                self.end(task, "fail", error={"code": "EXECUTION_ERROR", "message": "no", "retry": False})
            self.add("t-10", group="nightly")
        elif verb == "run":
            self.supervise()
        elif verb == "token rotate":
            with open(os.path.join(self.folder, "ci-1.token"), "w") as file:
                file.write(self.post("/api/tokens", {"kind": "worker", "name": "ci-1"})["token"] + "\n")
        elif verb == "worker sweep-prs":
            with open(os.open(os.path.join(self.folder, "gh"), os.O_CREAT | os.O_WRONLY, 0o755), "w") as file:
                file.write("#!/bin/sh\necho '[]'\n")
            self.env["PATH"] = self.folder + ":" + self.env["PATH"]
        elif verb in ("worker run", "worker run-once"):
            with open(os.path.join(self.server.home, "config.json"), "w") as file:
                file.write('{"executors": {"tests": {"kind": "command", "argv": ["make", "test"]}}}')
        elif verb.startswith("notify "):
            self.receive()
        elif verb == "unpark":
            self.add("t-7k3", state="pending")
        elif verb == "logs":
            self.add("t-7k3")
            holder = self.hold("t-7k3")
            self.post("/api/tasks/t-7k3/log", {**holder, "offset": 0, "data": "hello\n"})
            self.post("/api/tasks/t-7k3/complete", holder)
        elif verb.startswith("session "):
            label = "agent:main:worker-slot-1:5f0c"
            self.post("/api/sessions/spawn", {"sessionLabel": label, "prompt": "do it"})
            holder = self.hold(label)
            self.post(f"/api/tasks/{label}/log", {**holder, "offset": 0, "data": "hello\n"})
            self.post(f"/api/tasks/{label}/progress", {**holder, "prompt": "do it", "session": {
                "id": "s-1", "adapter": "claude", "agentSessionId": "u-1", "host": "h", "attach": "claude --resume u-1"}})
            self.post(f"/api/tasks/{label}/complete", holder)
        elif verb in ("workqueue progress", "workqueue done", "workqueue fail"):
            self.add("t-7k3", queue="dev-team")
            self.post("/api/workqueue/claim-next", {"agentId": "dev-3"})
        elif verb == "import clawnsole":
            folder = os.path.join(self.folder, ".openclaw/clawnsole")
            os.makedirs(folder)
            with open(os.path.join(folder, "work-queues.json"), "w") as file:
                json.dump({"version": 1, "queues": {}, "items": [{"id": "a", "queue": "q"}], "assignments": {}}, file)
            self.env["HOME"] = self.folder
        elif verb.startswith("import "):
            self.elsewhere(verb)
        elif verb.startswith("task "):
            self.add("t-7k3")
            self.hold("t-7k3")
            if "--after links" in self.example:
                subprocess.run(["stint", "task", "add", "check the links", "--id", "links"], env=self.env, check=True, capture_output=True)
        elif verb.startswith("hold "):
            self.post("/api/holds", {"credential": "team-account", "reason": "used up"})
        elif verb.startswith("agent "):
            self.program("claude", "echo '2.1.325 (Claude Code)'")
            with open(os.path.join(self.folder, "token.txt"), "w") as file:
                file.write("sk-ant-oat01-example\n")
            self.env.update(PATH=self.folder + ":" + self.env["PATH"], ANTHROPIC_API_KEY="x")
        elif verb.startswith("group "):
            self.add("t-7k3", group="nightly")
            if verb == "group rm":
                self.end("t-7k3")
                self.post("/api/groups/nightly/close")
        elif verb.startswith("bulk "):
            self.add("t-7k3", queue="ci", labels=["nightly"], group="nightly")
            while verb in ("bulk show", "bulk stop") and \
                    self.post("/api/tasks/bulk", {"filter": {"queue": "ci"}, "action": "park"})["id"] != "b-7":
                pass
        elif verb == "queue show":
            self.add("t-7k3", queue="ci")
        elif verb == "queue keys":
            self.add("t-7k3", queue="mail", concurrencyKey="acme")
        elif verb.startswith("schedule ") and verb != "schedule add":
            self.post("/api/schedules", {"id": "nightly", "cron": "@daily", "task": {"title": "again"}})
        elif verb == "mcp":
            self.program("claude", 'while [ "$1" != -- ]; do shift; done; shift; exec "$@" </dev/null')
            with open(os.path.join(self.folder, "agent.token"), "w") as file:
                file.write(self.post("/api/tokens", {"kind": "producer", "name": "agent"})["token"] + "\n")
        elif verb == "top":
            self.program("ssh", 'shift 2; exec "$@"')
        elif verb == "slot unquarantine":
            for _ in range(3):
                self.post("/api/slots/slot-1/crash")
        elif verb == "claim":
            for task, queue in (("t-7k3", "other"), ("t-8", "ci"), ("t-9", "demo")):
                self.add(task, queue=queue)
        else:
            self.add("t-7k3", labels=["nightly"])
            self.add("t-7k4")

    def elsewhere(self, verb):
        """What other systems keep, in the places that the examples name."""
        for name, text in ((".openclaw/workspace/.clawhub/tasks.json", [{"id": "a", "title": "a", "owner": "slot-1", "status": "todo"}]),
                           (".beads/issues.jsonl", {"id": "bd-1", "title": "one"}),
                           ("work/app/.beads/issues.jsonl", {"id": "bd-2", "title": "two"}),
                           ("ecosystem.json", {"apps": [{"name": "thumbs", "script": "thumbs.js"}]}),
                           ("tasks.jsonl", {"id": "t-9", "title": "one", "state": "ready"})):
            os.makedirs(os.path.dirname(os.path.join(self.folder, name)), exist_ok=True)
            with open(os.path.join(self.folder, name), "w") as file:
                json.dump(text, file)
        if verb == "import github":
            self.program("gh", "echo '[{\"number\":7,\"title\":\"x\",\"url\":\"https://github.com/owner/name/issues/7\"}]'")

    def receive(self):
        """Somebody who is told, and takes whatever comes."""
        class Receiver(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *args):
                pass

        receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        threading.Thread(target=receiver.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        self.test.addCleanup(receiver.server_close)
        self.test.addCleanup(receiver.shutdown)
        secret = os.path.join(self.server.home, "ops.secret")
        with open(os.open(secret, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
        with open(os.path.join(self.server.home, "config.json"), "w") as file:
            json.dump({"notify": {"targets": {"ops": {"url": "http://127.0.0.1:%d/" % receiver.server_port,
                                                      "secretFile": secret, "allow": ["127.0.0.1"]}}}}, file)

    def supervise(self):
        """A worker for `stint run`, as `stint up` has one."""
        worker = subprocess.Popen(["stint-worker", "--shell", "--root", self.folder], env=self.env,
                                  stderr=subprocess.DEVNULL, start_new_session=True)

        def end():
            worker.send_signal(signal.SIGTERM)
            worker.wait(HANG_S)

        self.test.addCleanup(end)

    def work_on(self, queue):
        """A worker that finishes the next task of the queue."""
        client = self.server.client()

        def work():
            claims = client.post("/api/claims", {"workerId": "w", "queues": [queue], "waitMs": 15000}).json["claims"]
            for claim in claims:
                client.post(f"/api/tasks/{claim['task']['id']}/complete", {"workerId": "w", "fence": claim["fence"]})
            client.close()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        self.test.addCleanup(thread.join, 30)

    def program(self, name, text):
        """A program of that name, found before any other."""
        with open(os.open(os.path.join(self.folder, name), os.O_CREAT | os.O_WRONLY, 0o755), "w") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        self.env["PATH"] = self.folder + ":" + self.env["PATH"]

    def token(self):
        return self.post("/api/tokens", {"kind": "viewer", "name": "x"})["id"]


class OfTheHelp(unittest.TestCase):
    # Not 0, because the example itself says otherwise.
    # They need what no store in a file has, or another program: where they are run.
    ELSEWHERE = {"stint queue inbox --retry 12": "test_inbox", "stint workflow act --strategy squash < task.json": "test_agents"}
    STATUS = {'[ "$(stint task progress)" = cancel ] && exit 1': 1}

    def test_every_verb_has_examples_and_the_manual_has_the_same(self):
        whole = stint("__man", "stint").stdout
        for verb in verbs():
            self.assertTrue(examples(verb), verb)
            page = stint("__man", verb.split()[0]).stdout
            for example in examples(verb):
                self.assertIn(f"\n{example}\n", page)
                self.assertIn(f"\n{example}\n", whole)

    def test_every_example_does_what_it_says(self):
        for verb in verbs():
            for example in examples(verb):
                with self.subTest(example=example):
                    if example in self.ELSEWHERE:
                        self.assertTrue(os.path.exists(os.path.join(os.path.dirname(__file__), self.ELSEWHERE[example] + ".py")))
                    elif verb == "up":
                        self.goes_up(example)
                    elif verb == "down":
                        self.goes_down(example)
                    elif "--follow" in example and verb == "events":
                        self.follows(example, "fail", "task.failed")
                    elif "--follow" in example and verb == "inbox":
                        self.follows(example, "block", "t-7k3")
                    elif verb == "notify run":
                        self.watches(example)
                    elif verb == "top":
                        self.shows(example)
                    elif verb == "worker run" and "--check-config" not in example:
                        self.supervises(example)
                    else:
                        self.works(verb, example)
                self.doCleanups()

    def works(self, verb, example):
        world = World(self, verb, example)
        command = example.replace("0123456789abcdef", world.token())
        if verb == "tls show":
            command = "stint tls init --quiet >/dev/null; " + command
        if verb == "worker enroll":  # there is a server, and it has made the code; starting is in test_enroll
            words = command.split()
            command = " ".join([*words[:3], world.server.url, world.post("/api/tokens", {"kind": "join"})["code"], "--no-start"])
            world.env["STINT_HOME"] = os.path.join(world.folder, "machine")
        ran = run("set -o pipefail; " + command, world.folder, world.env)
        self.assertEqual(ran.returncode, self.STATUS.get(example, 0), ran.stdout + ran.stderr)
        self.assertNotRegex(ran.stderr, r"(?m)^stint: (?!.* is t-)", "it complains")

    def shows(self, example):
        world = World(self, "top", example)
        shown, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        process = subprocess.Popen(["bash", "-c", "exec " + example], cwd=world.folder, env=world.env, stdin=terminal,
                                   stdout=terminal, stderr=terminal)
        os.close(terminal)
        try:
            seen, end = b"", time.monotonic() + HANG_S
            while process.poll() is None and time.monotonic() < end:
                if select.select([shown], [], [], 0.1)[0]:
                    try:
                        seen += os.read(shown, 65536)
                    except OSError:  # the last one has closed it
                        break
                elif seen:
                    os.write(shown, b"q")
            self.assertEqual(process.wait(HANG_S), 0, seen)
            self.assertIn(b"Nothing needs you", seen)
        finally:
            process.kill()
            process.wait(HANG_S)
            os.close(shown)

    def goes_up(self, example):
        folder = tempfile.mkdtemp(prefix="stint-example-")
        self.addCleanup(shutil.rmtree, folder, True)
        command = example.replace("/tmp/stint", folder + "/stint")
        process = subprocess.Popen(["bash", "-c", "exec " + command], cwd=folder, stdout=subprocess.PIPE, text=True,
                                   stderr=subprocess.PIPE, env=environment(folder, STINT_LISTEN="127.0.0.1:0"))
        try:
            lines = [process.stdout.readline()]
            while lines[-1] and not lines[-1].startswith("try "):
                lines.append(process.stdout.readline())
            self.assertTrue(lines[-1], lines)
            tried = run(lines[-1][4:], folder, environment(folder))
            self.assertEqual(tried.returncode, 0, tried.stderr)
            if "--detach" in example:
                self.assertEqual(run("stint down", folder, environment(folder)).returncode, 0)
            else:
                process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(HANG_S), 0)
        finally:
            process.kill()
            process.communicate(timeout=HANG_S)

    def goes_down(self, example):
        folder = tempfile.mkdtemp(prefix="stint-example-")
        self.addCleanup(shutil.rmtree, folder, True)
        ran = run("stint up --detach --no-demo --listen 127.0.0.1:0 && " + example, folder, environment(folder))
        self.assertEqual((ran.returncode, ran.stdout.splitlines()[-1]), (0, "Stopped."), ran.stderr)
        self.assertEqual(run("stint ls", folder, environment(folder)).returncode, 7)

    def supervises(self, example):
        world = World(self, "worker run", example)
        process = subprocess.Popen(["bash", "-c", "exec " + example], cwd=world.folder, env=world.env,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            until = time.monotonic() + HANG_S
            while not [worker for worker in world.client.get("/api/workers").json if worker.get("executors") == ["tests"]]:
                self.assertLess(time.monotonic(), until)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(HANG_S), 0)
        finally:
            process.kill()
            process.communicate(timeout=HANG_S)

    def watches(self, example):
        world = World(self, "notify run", example)
        process = subprocess.Popen(["bash", "-c", "exec " + example], cwd=world.folder, env=world.env,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            until = time.monotonic() + HANG_S
            while b"\nstint_event_streams 1\n" not in world.client.get("/metrics").body:
                self.assertLess(time.monotonic(), until)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(HANG_S), 0)
        finally:
            process.kill()
            process.communicate(timeout=HANG_S)

    def follows(self, example, end, wanted):
        world = World(self, "events", example)
        process = subprocess.Popen(["bash", "-c", 'notify() { echo "$1"; }; ' + example], cwd=world.folder, env=world.env,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            until = time.monotonic() + HANG_S
            while b"\nstint_event_streams 1\n" not in world.client.get("/metrics").body:
                self.assertLess(time.monotonic(), until)
            code = {"fail": "EXECUTION_ERROR", "block": "NOT_ALLOWED"}[end]
            world.end("t-7k3", end, error={"code": code, "message": "no", **({"retry": False} if end == "fail" else {})})
            line = process.stdout.readline()
            while line and wanted not in line:
                line = process.stdout.readline()
            self.assertIn(wanted, line)
        finally:
            os.killpg(process.pid, signal.SIGINT)
            process.communicate(timeout=HANG_S)


class Terminal:
    """A shell on a pseudo-terminal that is told one command after the other."""

    def __init__(self, folder, env):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "--noediting"], env)
        self.send("stty -echo; PS1= PS2=")
        self.said("true")

    def send(self, text):
        os.write(self.fd, (text + "\n").encode())

    def said(self, command):
        """What it prints."""
        self.send(command + "\nprintf '\\036%s\\036' \"$?\"")
        seen, until = "", time.monotonic() + HANG_S
        while seen.count("\x1e") < 2:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise AssertionError(f"{command} does not end: {seen}")
            seen += os.read(self.fd, 65536).decode()
        printed = seen.split("\x1e")[0].replace("\r\n", "\n")
        return re.sub(r"\x1b\[2[23];2t|\x1b\]2;.*?(\x07|\x1b\\)", "", printed)  # the title of the window

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


class OfTheReadme(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = ""
        for name in ("README.md", "docs/doors.md"):
            with open(os.path.join(TOP, name)) as file:
                cls.text += file.read()

    def blocks(self, name):
        found = re.findall(r"^<!-- run: (\S+) -->\n```\w*\n(.*?)^```\n", self.text, re.S | re.M)
        self.assertTrue([text for of, text in found if of == name], name)
        return [text for of, text in found if of == name]

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stint-readme-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.env = environment(self.folder)
        for name, text in (("Makefile", MAKEFILE), ("result.json", "{}")):
            with open(os.path.join(self.folder, name), "w") as file:
                file.write(text)

    def up(self, command="stint up --no-demo --listen 127.0.0.1:0"):
        clone = os.path.join(self.folder, "stint")  # where a reader stands, and not the home, which holds the state
        os.makedirs(clone, exist_ok=True)
        process = subprocess.Popen(["bash", "-c", "exec " + command], cwd=clone, env=self.env, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

        def end():
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=HANG_S)

        self.addCleanup(end)
        lines = [process.stdout.readline()]
        while lines[-1] and not lines[-1].startswith("try "):
            lines.append(process.stdout.readline())
        return [line.rstrip("\n") for line in lines]

    def terminal(self):
        terminal = Terminal(self.folder, self.env)
        self.addCleanup(terminal.end)
        return terminal

    def same(self, published, printed):
        """Times, ages, ports and places differ, and … stands for anything; a bar that went away was not there. What takes longer is told who has it."""
        for pattern, text in ((r"[^\n]*\x1b\[K", ""), (r"\x1b\[[\d;]*m", ""), (r"(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d", "TIME"), (r":\d{4,5}\b", ":PORT"), (r"\bnow  |\b\d+ s ago  ", ""),
                              (r"(?m)^\d\d:\d\d  ", "AT  "), (r" +\d+ s\b", " AGE"), (re.escape(self.folder), "/home/ann"), (r"(?m)^agents .*", "agents"),
                              (r"\S*/stint run", "stint run"), (r"(?m)^\S+ on \S+; Ctrl-C cancels it\n", "")):
            published, printed = re.sub(pattern, text, published), re.sub(pattern, text, printed)
        wanted = ".*?".join(re.escape(part) for part in published.rstrip("\n").split("…"))
        if not re.fullmatch(wanted, printed.rstrip("\n"), re.S):
            self.assertEqual(published, printed)

    def run_block(self, terminal, text):
        for step in re.split(r"^\$ ", text, flags=re.M)[1:]:
            command, _, output = step.partition("\n")
            with self.subTest(command=command):
                self.same(output, terminal.said(command))

    def test_the_first_five_minutes(self):
        first, *blocks = self.blocks("first")
        command, _, output = first.removeprefix("$ ").partition("\n")
        self.assertTrue(command.startswith("./dev up"))
        self.same(output, "\n".join(self.up(command.replace("./dev up", "stint up"))))
        terminal = self.terminal()
        for block in blocks:
            self.run_block(terminal, block)

    def test_an_agent_from_nothing_to_a_merged_change(self):
        """With a fake Claude Code in its place; the published output is that of the real one."""
        turns = [[{"tool": "Bash", "input": {"command": "sed -i 's/== 3/== 2/' test_sum.py && python3 test_sum.py"}},
                  {"tool": "Bash", "input": {"command": "git commit -qam 'fix the expected sum'"}},
                  {"say": "The test expected 1 + 1 to be 3. It expects 2 now, and passes."}]]
        place, project = os.path.join(self.folder, ".local/bin"), os.path.join(self.folder, "project")
        os.makedirs(place)
        os.makedirs(project)
        with open(os.path.join(TOP, "tests/agents/fake_agent.py")) as file, open(os.path.join(place, "claude"), "w") as to:
            to.write("#!/usr/bin/python3\n" + file.read().replace('[[{"say": "nothing to do"}]]', repr(turns)))
        os.chmod(os.path.join(place, "claude"), 0o755)
        with open(os.path.join(project, "test_sum.py"), "w") as file:
            file.write("assert 1 + 1 == 3\n")
        git = "git init -q -b main . && git config user.name Ann && git config user.email ann@example.org && git add . && git commit -qm 'a test'"
        self.assertEqual(run(git, project, self.env).returncode, 0)
        self.up()
        terminal = self.terminal()
        terminal.said("cd project")
        for block in self.blocks("claude"):
            self.run_block(terminal, block)

    def test_from_a_shell_script(self):
        self.up()
        script, = self.blocks("script")
        with open(os.path.join(self.folder, "Makefile"), "w") as file:
            file.write('test:\n\t@test "$$STINT_TITLE" = good\n')
        worker = subprocess.Popen(["sh", "-c", script], cwd=self.folder, env=self.env, start_new_session=True,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            good = run('stint wait --timeout 1m "$(stint add good --queue ci)" && echo deployed', self.folder, self.env)
            self.assertRegex(good.stdout, r"^t-1  done\ndeployed\n$", good.stderr)
            bad = run('stint wait --timeout 1m "$(stint add bad --queue ci --max-attempts 1)"', self.folder, self.env)
            self.assertEqual((bad.returncode, bad.stdout), (9, "t-2  failed\n"), bad.stderr)
        finally:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait(HANG_S)

    def test_from_an_agent(self):
        self.up()
        block, = self.blocks("agent")
        for line in block.splitlines():
            with self.subTest(line=line):
                ran = run('set -e; stint add x >/dev/null; eval "$(stint claim -o env)"; ' + line, self.folder, self.env)
                self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_coming_from_clawnsole(self):
        self.up()
        terminal = self.terminal()
        for block in self.blocks("clawnsole"):
            self.run_block(terminal, block)

    def test_from_curl(self):
        if not shutil.which("curl"):
            self.skipTest("curl is not installed: apt-get install curl")
        self.up()
        block, = self.blocks("curl")
        self.run_block(self.terminal(), block)

    def test_every_block_is_run_or_says_why_not(self):
        for before, text in re.findall(r"(^[^\n]*\n)```\w*\n(.*?)^```\n", self.text, re.S | re.M):
            if "stint " in text or "curl" in text:
                self.assertRegex(before, r"<!-- (run|not run): .* -->", text)

    def test_commands_in_the_text_are_commands(self):
        """In any document: `stint VERB --flag` names what is there."""
        documents = [os.path.join(TOP, name) for name in ("README.md", "SECURITY.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
        for path in documents + glob.glob(os.path.join(TOP, "docs", "*.md")) + glob.glob(os.path.join(TOP, "spec", "*.md")):
            with open(path) as file:
                text = file.read()
            for span in re.findall(r"(?<!`)`(stint [^`\n]+)`(?!`)", text):
                if re.search(r"\\\||VERB|…|\[", span):
                    continue  # a form, not a command
                with self.subTest(document=os.path.basename(path), command=span):
                    first = re.split(r" (?:\||&&|>|--) ", span)[0]  # behind -- it is another program's
                    ran = run(first + " --help", "/", environment("/nonexistent"))
                    self.assertEqual(ran.returncode, 0, ran.stderr)


if __name__ == "__main__":
    unittest.main()
