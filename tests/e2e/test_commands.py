"""Commands as tasks: stint add -- COMMAND and stint run, with a real worker: how they are queued, what they read, what is shown."""
import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import termios
import time
import unittest

from hang import HANG_S
import stintd
import test_worker

STINT = test_worker.STINT


class Case(test_worker.Case):
    def environment(self, **more):
        return stintd.environment(STINT_HOME=self.server.home, **more)

    def stint(self, *args, status=0, cwd=None, env=None, stdin=subprocess.DEVNULL, **options):
        if "input" not in options:
            options["stdin"] = stdin
        ran = subprocess.run([STINT, *args], capture_output=True, timeout=HANG_S, cwd=cwd or self.folder,
                             env=env or self.environment(), **{"text": True, **options})
        if status is not None:
            self.assertEqual(ran.returncode, status, (args, ran.stdout, ran.stderr))
        return ran

    def terminal(self, *args, status=0, **more):
        """What a person sees; lines end in \\n."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
        process = subprocess.Popen([STINT, *args], stdin=slave, stdout=slave, stderr=slave, cwd=self.folder,
                                   env=self.environment(TERM="xterm", LC_ALL="C.UTF-8", **more))
        os.close(slave)
        self.addCleanup(process.wait, HANG_S)
        seen, until = b"", time.monotonic() + HANG_S
        while time.monotonic() < until:
            if not select.select([master], [], [], 1)[0]:
                continue
            try:
                piece = os.read(master, 65536)
            except OSError:
                break
            if not piece:
                break
            seen += piece
        os.close(master)
        self.assertEqual(process.wait(HANG_S), status, seen)
        return seen.decode().replace("\r\n", "\n")

    def shell(self):
        return self.worker({}, "--shell", "--root", self.folder)


class Adding(Case):
    def test_a_command_is_queued_for_the_shell_here_and_runs(self):
        task = self.stint("add", "count them", "-l", "nightly", "--", "sh", "-c", "pwd; exec ls -1").stdout.strip()
        found = self.task(task)
        self.assertEqual({name: found[name] for name in ("title", "queue", "executor", "workingDir", "labels", "maxAttempts")},
                         {"title": "count them", "queue": "shell", "executor": "shell", "workingDir": self.folder,
                          "labels": ["nightly"], "maxAttempts": 3})
        self.assertEqual(found["payload"], {"argv": ["sh", "-c", "pwd; exec ls -1"]})
        self.shell()
        self.assertEqual(self.is_in(task, "done")["result"], self.folder)

    def test_without_a_title_the_command_is_the_title(self):
        task = self.stint("add", "--", "make", "-j", "4").stdout.strip()
        self.assertEqual(self.task(task)["title"], "make -j 4")

    def test_the_flags_count_more_than_the_defaults(self):
        os.mkdir(self.path("sub"))
        task = self.stint("add", "-Q", "ci", "-x", "tests", "--cwd", "sub", "x", "--", "true").stdout.strip()
        found = self.task(task)
        self.assertEqual((found["queue"], found["executor"], found["workingDir"]), ("ci", "tests", self.path("sub")))
        empty = self.task(self.stint("add", "x", "--no-cwd", "--", "true").stdout.strip())
        self.assertNotIn("workingDir", {name for name, value in empty.items() if value is not None})

    def test_a_repository_names_no_executor_for_a_command(self):
        os.makedirs(self.path(".stint"))
        os.mkdir(self.path(".git"))
        with open(self.path(".stint/config.json"), "w") as file:
            json.dump({"queue": "agents", "executor": "claude", "labels": ["repo"]}, file)
        for verb in (["add", "x"], ["run", "--detach"]):
            found = self.task(self.stint(*verb, "--", "true").stdout.strip())
            self.assertEqual((found["queue"], found["executor"], found["labels"]), ("shell", "shell", ["repo"]), verb)

    def test_what_cannot_be_meant_is_refused_and_nothing_is_queued(self):
        for words, sentence in ((("add", "x", "y", "--", "true"), 'does not take "y"'),
                                (("add", "x", "--payload", "{}", "--", "true"), "leave out --payload"),
                                (("add", "-", "--", "true"), "a command is one task"),
                                (("add",), "needs a title"), (("add", "--"), "needs a title"),
                                (("add", "", "--", "true"), "needs a title")):
            self.assertIn(sentence, self.stint(*words, status=2).stderr, words)
        self.assertEqual(self.client.get("/api/tasks").json, [])

    def test_run_takes_the_flags_of_add(self):
        flags = ["--max-attempts", "4", "-l", "a,b", "--unique", "one", "--not-before", "1h", "--needs", "gpu", "--gate", "ok",
                 "--timeout", "5m", "-p", "high", "--isolation", "sandbox", "--after", self.stint("add", "first").stdout.strip()]
        documents = []
        for task, verb in (("a", ["add", "x"]), ("b", ["run", "-d"])):
            self.assertEqual(self.stint(*verb, *flags, "--id", task, "--", "true").stdout, task + "\n")
            document = self.task(task)
            self.client.post("/api/tasks/%s/cancel" % task)
            documents.append({name: document[name] for name in (
                "queue", "executor", "payload", "workingDir", "maxAttempts", "labels", "uniqueKey", "requires", "gates",
                "blockedBy", "timeoutMs", "priority", "isolationLevel")})
        self.assertEqual(documents[0], documents[1])
        self.assertEqual((documents[1]["maxAttempts"], documents[1]["priority"]), (4, 50))

    def test_run_tries_once_unless_told_otherwise(self):
        self.shell()
        script = "echo x >> tries; [ $(wc -l < tries) = 2 ]"
        self.stint("run", "--", "sh", "-c", script, status=1)
        os.remove(self.path("tries"))
        self.stint("run", "--max-attempts", "2", "--", "sh", "-c", script)

    def test_a_directory_that_holds_the_state_is_refused(self):
        above = os.path.dirname(self.server.home)
        for words, cwd in ((["run", "--", "true"], above), (["run", "--", "true"], "/"), (["add", "x", "--", "true"], above),
                           (["run", "--cwd", above, "--", "true"], self.folder), (["add", "--", "true"], self.server.home)):
            refused = self.stint(*words, cwd=cwd, status=2).stderr
            self.assertIn("stint's own data is inside it. cd into a project, or pass --no-cwd", refused)
        self.assertIn("cannot run in %s: " % above, self.stint("run", "--", "true", cwd=above, status=2).stderr)
        self.assertEqual(self.client.get("/api/tasks").json, [])
        self.shell()
        self.assertEqual(self.stint("run", "--no-cwd", "--", "ls", cwd=above).stdout, "")


class Variables(Case):
    SHOW = ("sh", "-c", 'echo "$A|$B|$C|$HOME"')

    def test_a_command_gets_the_variables_of_its_task(self):
        self.shell()
        env = self.environment(B="from here", C="not asked for")
        ran = self.stint("run", "--env", "A=x=1", "--env", "B", "--env", "A=last counts", "--", *self.SHOW, env=env)
        self.assertRegex(ran.stdout, r"^last counts\|from here\|\|/.*/home\n$")
        self.assertEqual(self.client.get("/api/tasks").json[0]["env"], {"A": "last counts", "B": "from here"})

    def test_an_executor_takes_those_that_it_names(self):
        worker = self.worker({"x": test_worker.sh(self.SHOW[2], envFromTask=["A", "HOME"], env={"A": "operator"}),
                              "y": test_worker.sh(self.SHOW[2], envFromTask=["B", "HOME"])})
        for task in ("x", "y"):
            self.create(id=task, executor=task, env={"A": "1", "B": "2", "HOME": "/nowhere", "C": "3"})
        self.assertEqual(self.is_in("x", "done")["result"], "operator|||/nowhere")
        self.assertEqual(self.is_in("y", "done")["result"], "|2||/nowhere")
        self.assertIn("A, C", worker.said())

    def test_a_patch_replaces_them_all(self):
        self.create(id="t", env={"A": "1", "B": "2"})
        self.assertEqual(self.client.call("PATCH", "/api/tasks/t", {"env": {"C": "3"}}).json["env"], {"C": "3"})
        self.assertEqual(self.client.call("PATCH", "/api/tasks/t", {"env": {"LD_X": "3"}}).status, 422)
        self.assertNotIn("env", self.client.call("PATCH", "/api/tasks/t", {"env": None}).json)

    def test_what_cannot_be_set_is_refused_and_nothing_is_queued(self):
        for given, said in (("STINT_URL=x", "belongs to stint"), ("LD_PRELOAD=x", "steers the loader"), ("1=x", "not the name"),
                            ("NOT_SET_HERE", "no variable NOT_SET_HERE is set here"), (b"A=\xff", "not UTF-8")):
            ran = self.stint("run", "-d", "--env", given, "--", "true", status=None)
            self.assertIn(said, ran.stderr)
            self.assertNotEqual(ran.returncode, 0)
        self.assertEqual(self.client.get("/api/tasks").json, [])


class Answers(Case):
    def test_a_pipe_gets_bare_ids(self):
        tasks = [self.stint("add", "x", "-Q", "q").stdout.strip() for _ in range(7)]
        for verb in ("park", "unpark", "cancel", "retry"):
            ran = self.stint(verb, *tasks)
            self.assertEqual((ran.stdout.split(), ran.stderr), (tasks, ""), verb)
        ran = self.stint("add", "-", input="- one\n- two\n")
        self.assertRegex(ran.stdout, r"^t-\d+\nt-\d+\n$")
        self.assertEqual(ran.stderr, "")

    def test_a_person_gets_a_sentence_each_and_no_bare_id(self):
        self.assertRegex(self.terminal("add", "x", "-Q", "q"), r"^t-1 is ready\W.*\n")
        self.assertRegex(self.terminal("run", "-d", "--", "true"), r"^t-2 is ready\W.*\n")
        self.assertEqual(self.terminal("cancel", "t-1", "t-2"), "t-1 is cancelled\nt-2 is cancelled\n")
        self.assertEqual(self.terminal("park", "t-1", status=4).count("\nt-1\n"), 0)

    def test_a_person_gets_one_line_above_five(self):
        tasks = [self.stint("add", "x", "-Q", "q").stdout.strip() for _ in range(6)]
        for verb, said in (("park", "6 tasks parked\n"), ("unpark", "6 tasks go on\n"), ("cancel", "6 tasks cancelled\n"),
                           ("retry", "6 tasks get another try\n")):
            self.assertEqual(self.terminal(verb, *tasks), said)
        with open(self.path("list"), "w") as file:
            file.write("- item\n" * 6)
        self.assertEqual(self.terminal("add", "-", "-f", "list"), "6 tasks added\n")

    def test_a_task_of_a_key_that_is_there_is_told(self):
        self.stint("add", "x", "-u", "k")
        self.assertIn("t-1 was there already", self.terminal("add", "x", "-u", "k"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
