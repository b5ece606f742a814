"""Commands as tasks: stint add -- COMMAND and stint run, with a real worker: how they are queued, what they read, what is shown."""
import fcntl
import json
import os
import pty
import re
import select
import signal
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

    def terminal(self, *args, status=0, once=None, **more):
        """What a person sees; lines end in \\n. `once` is a text and what is done as soon as it is there."""
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
            if once and once[0].encode() in seen:
                once[1]()
                once = None
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
        self.worker({"x": test_worker.sh(self.SHOW[2], envFromTask=["A", "HOME"], env={"A": "operator"}),
                     "y": test_worker.sh(self.SHOW[2], envFromTask=["B", "HOME"])})
        for task in ("x", "y"):
            self.create(id=task, executor=task, env={"A": "1", "B": "2", "HOME": "/nowhere", "C": "3"})
        self.assertEqual(self.is_in("x", "done")["result"], "operator|||/nowhere")
        self.assertEqual(self.is_in("y", "done")["result"], "|2||/nowhere")
        self.assertEqual(self.stint("logs", "y", "--stderr").stdout, "stint: env of the task has A, C, which \"envFromTask\" of "
                         "executor y does not name: not set\n")

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


class Trees(Case):
    def git(self, *args):
        subprocess.run(["git", "-c", "user.name=ann", "-c", "user.email=a@b", *args], cwd=self.folder, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=HANG_S)

    def setUp(self):
        super().setUp()
        self.git("init", "-b", "main")
        for word in ("one", "two"):
            with open(self.path("file"), "w") as file:
                file.write(word)
            self.git("add", "file")
            self.git("commit", "-m", word)
        self.git("branch", "older", "HEAD~1")

    def test_a_command_runs_in_a_work_tree_if_its_task_wants_one(self):
        self.shell()
        with open(self.path("file"), "w") as file:
            file.write("not committed")
        script = ("sh", "-c", "cat file; git branch --show-current")
        self.assertEqual(self.stint("run", "--", *script).stdout, "not committedmain\n")
        self.assertRegex(self.stint("run", "--worktree", "--", *script).stdout, r"^twostint/t-2-\d+\n$")
        task = self.create(queue="shell", executor="shell", payload={"argv": list(script)}, workingDir=self.folder,
                           worktree={"base": "older"})
        self.assertRegex(self.is_in(task["id"], "done")["result"], r"^onestint/")

    def test_without_a_directory_there_is_none(self):
        self.shell()
        task = self.stint("run", "-d", "--worktree", "--no-cwd", "--", "true").stdout.strip()
        self.assertIn("names no directory of a repository", self.is_in(task, "blocked")["error"]["message"])

    def test_a_task_may_do_without_that_of_its_executor(self):
        self.worker({"x": test_worker.sh("git branch --show-current", worktree=True)}, roots=[self.folder])
        for task, wish, branch in (("with", None, "stint/with"), ("without", False, "main")):
            self.create(id=task, workingDir=self.folder, worktree=wish)
            self.assertTrue(self.is_in(task, "done")["result"].startswith(branch), task)


class Input(Case):
    def test_standard_input_goes_to_the_command(self):
        self.shell()
        self.assertEqual(self.stint("run", "--", "cat", input="one\ntwo").stdout, "one\ntwo")
        self.assertEqual(self.client.get("/api/tasks").json[0]["payload"], {"argv": ["cat"], "stdin": "one\ntwo"})
        task = self.stint("add", "--stdin", "--", "cat", input="later").stdout.strip()
        self.assertEqual(self.is_in(task, "done")["result"], "later")

    def test_bytes_that_are_no_text_arrive_as_they_were(self):
        self.shell()
        for size in (254, 255, 256):
            data = bytes(range(256))[:size] * 7
            with open(self.path("data"), "wb") as file:
                file.write(data)
            ran = self.stint("run", "--", "sh", "-c", "cat > got; wc -c < got", stdin=open(self.path("data"), "rb"))
            self.assertEqual(ran.stdout.strip(), str(len(data)))
            with open(self.path("got"), "rb") as file:
                self.assertEqual(file.read(), data)

    def test_an_attempt_after_the_first_reads_it_too(self):
        self.shell()
        script = "cat >> got; [ $(wc -l < got) = 2 ]"
        self.stint("run", "--max-attempts", "2", "--", "sh", "-c", script, input="line\n")

    def test_nothing_is_carried_of_a_terminal_or_of_nothing(self):
        for given in (subprocess.DEVNULL, open(os.devnull, "rb")):
            self.stint("run", "-d", "--", "cat", stdin=given)
        self.stint("run", "-d", "--", "cat", input="")
        self.stint("add", "--", "cat", input="not asked for")
        self.terminal("run", "-d", "--", "cat")
        self.assertEqual([task["payload"] for task in self.client.get("/api/tasks").json], [{"argv": ["cat"]}] * 5)

    def test_what_fits_is_carried_whole_and_more_is_refused(self):
        self.shell()
        most = (1 << 20) - 1000
        self.assertEqual(self.stint("run", "--", "wc", "-c", input="x" * most).stdout.strip(), str(most))
        before = self.client.get("/api/tasks").json
        for size in ((1 << 20) + 1, (1 << 20) - 50):
            ran = self.stint("run", "--", "wc", "-c", input="x" * size, status=2)
            self.assertIn("standard input is more than fits into a task", ran.stderr)
            self.assertIn("Nothing was queued", ran.stderr)
        self.assertEqual(self.client.get("/api/tasks").json, before)

    def test_a_payload_whose_input_is_none_is_refused(self):
        self.shell()
        for payload in ({"stdin": 1}, {"stdinBase64": "?"}, {"stdinBase64": "YQ="}, {"stdin": "a", "stdinBase64": "YQ=="}):
            task = self.create(queue="shell", executor="shell", payload={"argv": ["cat"], **payload})
            self.assertIn("payload.stdin", self.is_in(task["id"], "failed")["error"]["message"], payload)


# Writes its words to the streams by turns; each is read before the next one comes.
SPEAKER = """
import array, fcntl, os, sys, termios, time
for number, word in enumerate(sys.argv[1:]):
    stream, left = 1 + number % 2, array.array("i", [1])
    os.write(stream, word.encode() + b"\\n")
    while left[0]:
        time.sleep(0.01)
        fcntl.ioctl(stream, termios.FIONREAD, left)
    while number == 0 and "held" in sys.argv and not os.path.exists("go"):
        time.sleep(0.01)
open("said", "w").close()
"""


class Streams(Case):
    MIXED = ("/usr/bin/python3", "-c", SPEAKER, "one", "two", "three")

    def test_the_order_stays_while_the_server_does_not_answer(self):
        self.shell()
        self.stint("run", "-d", "--id", "t", "--", *self.MIXED[:3], "held", "b", "c", "d", "e", "f")
        self.until(lambda: self.log("t")["data"] == "held\n", "it has begun")
        os.kill(self.server.process.pid, signal.SIGSTOP)
        try:
            open(self.path("go"), "w").close()
            self.until(lambda: os.path.exists(self.path("said")), "all is said")
        finally:
            os.kill(self.server.process.pid, signal.SIGCONT)
        self.is_in("t", "done")
        piece = self.log("t")
        self.assertEqual((piece["data"], piece["streams"]), ("held\nb\nc\nd\ne\nf\n", [5, 2, 2, 2, 2, 2]))

    def test_run_keeps_output_and_errors_apart(self):
        self.shell()
        ran = self.stint("run", "--", *self.MIXED)
        self.assertEqual((ran.stdout, ran.stderr), ("one\nthree\n", "two\n"))
        ran = self.stint("run", "--", "sh", "-c", "printf in; printf err >&2; exit 4", status=4)
        self.assertEqual(ran.stdout, "in")
        self.assertTrue(ran.stderr.startswith("err"), ran.stderr)

    def test_the_log_has_both_in_the_order_in_which_they_came(self):
        self.shell()
        self.stint("run", "--id", "t", "--", *self.MIXED)
        piece = self.client.get("/api/tasks/t/log").json
        self.assertEqual((piece["data"], piece["streams"]), ("one\ntwo\nthree\n", [4, 4, 6]))
        self.assertEqual(self.stint("logs", "t").stdout, "one\ntwo\nthree\n")
        self.assertEqual(self.stint("logs", "t", "--stdout").stdout, "one\nthree\n")
        self.assertEqual(self.stint("logs", "t", "--stderr").stdout, "two\n")
        self.assertEqual(self.client.get("/api/tasks/t/log?stream=stderr").json["data"], "two\n")

    def test_streams_that_change_with_every_line_lose_nothing(self):
        self.shell()
        script = "import os\nfor i in range(3000): os.write(1 + i % 2, b'%d \\xc3\\xa9\\n' % i)"
        ran = self.stint("run", "--", "/usr/bin/python3", "-c", script)
        for text, parity in ((ran.stdout, 0), (ran.stderr, 1)):
            self.assertEqual(text, "".join("%d \u00e9\n" % i for i in range(parity, 3000, 2)))

    def test_what_a_pool_worker_says_is_errors(self):
        task = self.create(id="t")
        claim = self.client.post("/api/tasks/t/claim", {"workerId": "w"}).json
        self.client.post("/api/tasks/t/log", {"fence": claim["fence"], "offset": 0, "data": "old form\n"})
        self.assertNotIn("streams", self.client.get("/api/tasks/%s/log" % task["id"]).json)
        self.assertEqual(self.stint("logs", "t", "--stdout").stdout, "old form\n")


class Terminals(Case):
    PAINTED = r"printf '\033[31mred\nplain\033[2J\033]0;title\007\n'"

    def ran(self, *args, **options):
        """Without the line that names its worker, which may have ended before it was seen."""
        return re.sub(r"^t(-1)? on \S+; Ctrl-C cancels it\n", "", self.terminal("run", *args, **options))

    def test_a_person_hears_who_has_the_command_and_how_to_stop_it(self):
        self.shell()
        seen = self.terminal("run", "--", "sh", "-c", "while [ ! -e go ]; do sleep 0.1; done",
                             once=("Ctrl-C", lambda: open(self.path("go"), "w").close()))
        self.assertRegex(seen, r"^t-1 on \S+; Ctrl-C cancels it\n")
        self.assertEqual(seen.count("Ctrl-C"), 1)

    def test_colours_survive_on_a_terminal_and_nothing_else_does(self):
        self.shell()
        seen = self.ran("--id", "t", "--", "sh", "-c", self.PAINTED)
        self.assertEqual(seen, "\x1b[31mred\x1b[0m\nplain\u241b[2J\u241b]0;title\u241b\n")
        self.assertEqual(self.terminal("logs", "t"), seen)
        self.assertEqual(self.terminal("logs", "t", NO_COLOR="1"), seen.replace("\x1b[31m", "").replace("\x1b[0m", ""))

    def test_a_pipe_gets_the_bytes(self):
        self.shell()
        ran = self.stint("run", "--", "sh", "-c", self.PAINTED)
        self.assertEqual(ran.stdout, "\x1b[31mred\nplain\x1b[2J\x1b]0;title\x07\n")

    def test_the_last_line_of_a_command_that_fails_stands_alone(self):
        self.shell()
        seen = self.ran("--", "sh", "-c", "printf 'no line end'; exit 1", status=1)
        self.assertRegex(seen, r"^no line end\n(\x1b\[31m)?✗ failed(\x1b\[0m)?  t-1  exit status 1")


class Following(Case):
    def test_all_attempts_are_followed_until_the_task_has_ended(self):
        script = "n=$(ls | grep -c try); echo attempt $n >&2; touch try$n; [ $n = 2 ]"
        task = self.stint("add", "--max-attempts", "5", "--", "sh", "-c", script).stdout.strip()
        follower = subprocess.Popen([STINT, "logs", "-f", task], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                    env=self.environment(), cwd=self.folder)
        self.addCleanup(follower.kill)
        self.shell()
        out, err = follower.communicate(timeout=HANG_S)
        self.assertEqual((out, follower.returncode), ("attempt 0\nattempt 1\nattempt 2\n", 0), err)
        self.assertRegex(err, r"stint: attempt 1 .*; attempt 2.*\nstint: attempt 2 .*; attempt 3.*\n%s is done\n" % task)

    def test_a_worker_that_dies_does_not_end_it(self):
        task = self.stint("add", "--", "sh", "-c", "echo begin; while [ ! -e go ]; do sleep 0.1; done; echo end").stdout.strip()
        worker = self.shell()
        follower = subprocess.Popen([STINT, "logs", "-f", task], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                    env=self.environment(), cwd=self.folder)
        self.addCleanup(follower.kill)
        self.assertEqual(follower.stdout.readline(), "begin\n")
        worker.process.kill()
        worker.process.wait(HANG_S)
        self.shell()
        self.assertEqual(follower.stdout.readline(), "begin\n")
        with open(self.path("go"), "w"):
            pass
        out, err = follower.communicate(timeout=HANG_S)
        self.assertEqual((out, follower.returncode), ("end\n", 0), err)
        self.assertIn("%s is done" % task, err)

    def test_one_attempt_is_followed_to_its_own_end(self):
        self.shell()
        self.stint("run", "--id", "t", "--max-attempts", "2", "--", "sh", "-c", "echo x; exit 1", status=1)
        self.assertEqual(self.stint("logs", "-f", "t", "--attempt", "1").stdout, "x\n")

    def test_what_needs_a_person_is_told_and_not_waited_for(self):
        self.worker({"x": test_worker.sh("echo no")})
        self.create(id="t", workingDir="/nowhere/at/all")
        self.assertIn("t is blocked: ", self.stint("logs", "-f", "t").stderr)


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
