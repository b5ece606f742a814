"""What stint offers to a person who is lost: the screen of verbs, topics, the verbs of other programs, and every `try` line, typed."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

from test_cli import CliCase, STINT, TOP, environment

# Programs of a usual machine, though not of every machine that runs the tests.
KNOWN = ("stintd", "timedatectl", "apt", "sysctl", "modprobe", "usermod", "sudo", "df", "chmod", "rm", "uptime")

# What people type who know other programs, and what they mean; None: the verb needs a word that is not there.
SYNONYMS = {
    "rm t-1": "cancel t-1", "rm": None, "remove t-1 t-2": "cancel t-1 t-2", "delete t-1": "cancel t-1", "kill t-1": "cancel t-1",
    "abort t-1": "cancel t-1", "stop t-1": "cancel t-1", "stop": "down", "shutdown": "down", "list": "ls", "list -Q ci": "ls -Q ci",
    "ps": "ls", "jobs --all": "ls --all", "tasks": "ls", "status": "ls", "status t-1": "why t-1", "tail t-1": "logs t-1",
    "log t-1 -f": "logs t-1 -f", "start": "up", "serve": "up", "submit 'a b'": "add 'a b'", "enqueue x -Q ci": "add x -Q ci",
    "create x": "add x", "new x": "add x", "push x": "add x", "info t-1": "show t-1", "describe t-1": "show t-1", "get t-1": "show t-1",
    "inspect t-1": "show t-1", "rerun t-1": "retry t-1", "restart t-1": "retry t-1", "pause t-1": "park t-1", "resume t-1": "unpark t-1",
    "exec -- true": "run -- true", "await t-1": "wait t-1", "reply t-1 yes": "answer t-1 yes", "reject t-1": "deny t-1",
    "health": "doctor", "info t-1 --no-such-flag": None,
}


class Synonyms(CliCase):
    def test_each_names_the_verb_with_the_same_arguments_and_does_nothing(self):
        before = self.stint("events", "--after", "0").out
        for typed, meant in SYNONYMS.items():
            with self.subTest(typed=typed):
                words = shlex.split(typed)
                ran = self.stint(*words, status=2)
                verb, hint = re.fullmatch(rf'stint: there is no "stint {words[0]}"; it is "stint (\w+)" \(usage\)\n  try:? +(.*)\n',
                                          ran.err).groups()
                self.assertEqual(hint, "stint " + (meant or "help " + verb))
                self.assertEqual(ran.out, "")
        self.assertEqual(self.stint("events", "--after", "0").out, before)

    def test_none_is_a_verb_that_there_is(self):
        verbs = {line.split("\t")[0] for line in self.stint("__complete", "").lines}
        self.assertEqual(verbs & {typed.split()[0] for typed in SYNONYMS}, set())

    def test_json_gets_an_object(self):
        error = self.stint("rm", "t-1", "--json", status=2).json["error"]
        self.assertEqual((error["code"], error["try"]), ("usage", "stint cancel t-1 --json"))

    def test_what_is_behind_cannot_become_a_command(self):
        self.assertIn("try  stint cancel 't-1; rm -rf /'\n", self.stint("rm", "t-1; rm -rf /", status=2).err)


class Help(CliCase):
    def test_flags_of_every_command_are_printed_once(self):
        for verb in self.stint("__man").lines:
            out = self.stint("help", verb).out
            self.assertNotIn("--token-file FILE  ", out, verb)
            if out.startswith("usage"):
                self.assertIn("flags of every command: stint help flags\n", out)
        flags = self.stint("help", "flags").out
        for flag in ("--json", "--output", "--watch", "--home", "--url", "--token", "--token-file", "--quiet", "--color", "--help"):
            self.assertEqual(len(re.findall(rf"(?m)^ +(?:-\w, )?{flag}[ \[]", flags)), 1, flag)

    def test_topics_are_those_that_it_names(self):
        topics = re.findall(r"(?m)^  (\S+)  ", self.stint("help", "topics").out)
        self.assertEqual(topics[:6], ["flags", "exits", "states", "times", "index", "concepts"])
        for topic in topics:
            self.assertGreater(len(self.stint("help", topic).out), 100)
        states = self.stint("__complete", "ls", "--state", "").lines
        for state in states:
            self.assertIn("\n  %s " % state.split("\t")[0], self.stint("help", "states").out)

    def test_times_can_be_written_as_it_says(self):
        for when in re.findall(r"\d[\w:-]+", self.stint("help", "times").out.replace("2026-", "2096-")):
            self.add("x", "--hold", "--not-before", when)

    def test_a_narrow_terminal_has_one_column(self):
        wide, narrow = self.terminal("help", columns=80).lines, self.terminal("help", columns=60).lines
        self.assertLessEqual(max(len(re.sub(r"\x1b\[\d*m", "", line)) for line in narrow), 60)
        self.assertGreater(len(narrow), len(wide))
        self.assertLessEqual(len(wide), 24)

    def test_prose_is_wrapped_at_words(self):
        for columns in (60, 80, 100, 200):
            for line in self.terminal("help", "up", columns=columns).lines:
                self.assertLessEqual(len(line), min(columns, 100), line)


class Followed(CliCase):
    """Whoever types every hint, and every hint of what that prints, comes to an end: success, or a sentence without a hint."""

    HOPS = 6
    LASTING = ("stint up", "stint worker run")  # they go on until Ctrl-C; test_up.py and test_examples.py run them

    def type(self, line):
        folder = tempfile.mkdtemp(prefix="stint-hint-")
        self.addCleanup(shutil.rmtree, folder, True)
        try:
            return subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=5, stdin=subprocess.DEVNULL, cwd=folder,
                                  env=environment(STINT_HOME=self.server.home, PATH=os.path.dirname(STINT) + os.pathsep + os.environ["PATH"]))
        except subprocess.TimeoutExpired:
            return None  # it follows something, as stint logs -f does

    def follow(self, line, hops=0, path=()):
        ran = self.type(line)
        if ran is None:
            return
        if hops > 0:
            self.assertNotIn(ran.returncode, (2, 3, 4, 126, 127), f"{' -> '.join(path)} -> {line}: {ran.stdout}{ran.stderr}")
        hints = re.findall(r"(?m)^ *try:? +(.*)$", ran.stdout + ran.stderr)
        if not hints:
            return
        self.assertLess(hops, self.HOPS, f"it leads on and on: {' -> '.join(path)}")
        for hint in hints:
            if hint in path + (line,):
                continue  # seen already: the state of the task has not moved, and nothing else is offered
            if hint.startswith("stint ") and not hint.startswith(self.LASTING):  # other programs: Doctor, below
                self.follow(hint, hops + 1, path + (line,))

    def held(self, queue, *report):
        task = self.add("x", "--queue", queue)
        claim = self.claim(queue)
        if report:
            self.stint("task", *report, **self.holding(claim))
        return task

    def tasks(self):
        """A task in each state, in queues of their own."""
        later = self.add("x", "--queue", "f-later", "--not-before", "1h")
        paused = self.add("x", "--queue", "f-paused")
        self.stint("queue", "pause", "f-paused")
        yield from (later, paused, self.add("x", "--queue", "f-child", "--after", later), self.add("x", "--queue", "f-none"),
                    self.add("x", "--queue", "f-parked", "--hold"), self.add("x", "--queue", "f-owned", "--owner", "f-slot"),
                    self.add("x", "--queue", "f-needs", "--needs", "gpu", "--executor", "none-such"), self.held("f-held"))
        yield self.held("f-ask", "ask", "which?", "--option", "it's main", "--option", "b")
        yield self.held("f-block", "block", "no disk")
        yield self.held("f-fail", "fail", "no", "--no-retry")
        yield self.held("f-back", "fail", "no")
        yield self.held("f-done", "done", "well")
        gated = self.add("x", "--queue", "f-gate", "--gate", "security")
        self.stint("task", "review", "x", **self.holding(self.claim("f-gate")))
        yield gated
        cancelled = self.add("x", "--queue", "f-cancel")
        self.stint("cancel", cancelled)
        yield cancelled

    def test_from_why_and_show_of_a_task_in_any_state(self):
        for task in self.tasks():
            for verb in ("why", "show"):
                with self.subTest(verb=verb, task=task, state=self.state(task)):
                    self.follow(f"stint {verb} {task}")

    def test_from_what_is_refused_in_any_state(self):
        for task in self.tasks():
            for verb in ("approve", "deny", "unpark", "answer {} yes", "park", "logs", "retry", "cancel"):
                words = verb.format(task) if "{}" in verb else f"{verb} {task}"
                with self.subTest(line=words, state=self.state(task)):
                    self.follow("stint " + words)

    def hints_of(self, *words):
        """Some hints are for a person at a terminal alone."""
        seen = re.sub(r"\x1b\[[\d;]*m", "", self.terminal(*words, talk=True, status=None).out)
        return re.findall(r"(?m)^ *try  (.*)$", seen)

    def test_from_what_a_person_sees_at_a_terminal(self):
        for _ in self.tasks():
            pass
        for words in ("", "ls", "ls --all", "ls -Q nothing", "inbox", "queue ls", "worker ls", "slot ls", "session ls", "token ls", "workflow ls",
                      "events --limit 5", "doctor", "help", "version", "config show", "config path"):
            for hint in self.hints_of(*words.split()):
                with self.subTest(words=words, hint=hint):
                    self.follow(hint, 1, ("stint " + words,))

    def test_from_why_where_nothing_is_handed_out(self):
        for _ in range(3):
            self.client.post("/api/slots/f-crashed/crash", {"reason": "signal 9"})
        owned = self.add("x", "--queue", "f-crash", "--owner", "f-crashed")
        self.follow(f"stint why {owned}")
        task = self.add("x", "--queue", "f-disarmed")
        self.stint("disarm")
        self.addCleanup(self.stint, "arm")
        self.assertIn("stint arm", self.stint("why", task).out)
        self.follow(f"stint why {task}")
        self.assertNotIn("disarmed", self.stint("why", task).out.replace("f-disarmed", ""))

    def test_from_refusals_of_every_verb(self):
        held, gated = self.held("f-held2"), self.add("x", "--queue", "f-gate2", "--gate", "a", "--gate", "b")
        self.stint("task", "review", "x", **self.holding(self.claim("f-gate2")))
        self.add("x", "--id", "f-there", "--unique", "f-key", "--queue", "f-there")
        self.stint("queue", "drain", "f-drain")
        self.addCleanup(self.stint, "queue", "resume", "f-drain")
        for line in (f"stint park {held}", f"stint unpark {held}", f"stint retry {held}", f"stint answer {held} yes", f"stint approve {gated}",
                     f"stint approve {gated} --gate c", f"stint deny {gated}", f"stint wait {held} --timeout 1s", f"stint logs {held} --attempt 9",
                     "stint add x --id f-there", "stint add x --queue f-drain", "stint add x --priority much", "stint add x --not-before someday",
                     "stint add x --isolation glass", "stint add x --payload {", "stint add - --file /none/such", "stint run", "stint run --cwd /none/such -- true",
                     "stint worker quiet nobody", "stint session stop none", "stint session logs none", "stint queue resume nothing",
                     "stint backup /none/such/file", "stint db query 'DROP TABLE task'", "stint db query 'SELECT nothing'", "stint config show --set x",
                     "stint config show --set lisen=1", "stint import clawnsole /none/such", "stint token create --kind nothing", "stint token create --kind worker",
                     "stint notify test none", "stint notify ls", "stint worker run-once --json", "stint worker worktrees", "stint workflow show",
                     "stint help nothing", "stint claim --queues f-none2 --worker w --empty-exit", "stint task progress x", "stint slot unquarantine f-free",
                     "stint down --home /none/such", "stint completion", "stint events --task nowhere", "stint show", "stint --home /none/such ls"):
            with self.subTest(line=line):
                self.follow(line)

    def test_what_is_done_has_nothing_to_try(self):
        task = self.held("f-end", "done", "well")
        for verb in ("why", "show", "logs"):
            ran = self.stint(verb, task, status=None)
            self.assertNotRegex(ran.out + ran.err, r"(?m)^ *try\b", verb)

    def test_from_mistakes(self):
        for line in ("stint", "stint help", "stint show nowhere", "stint worker show nobody", "stint slot unquarantine none", "stint lss", "stint queue",
                     "stint queue pauze x", "stint add", "stint ls --stat x", "stint token create", "stint events --type task.faild",
                     "stint task done", "stint rm t-1", "stint ps", "stint status", "stint session show none", "stint workflow show none",
                     "stint worker stop nobody", "stint token revoke none", "stint claim --wait 5", "stint completion tcsh", "stint ls -o env",
                     "stint ls -o csv", "stint ls --state redy", "stint events --after 999999999", "stint add x --after nowhere",
                     "stint --url nowhere ls", "stint --token-file /none/such ls", "stint inbox", "stint ls", "stint doctor"):
            with self.subTest(line=line):
                self.follow(line)


class Doctor(CliCase):
    def test_every_line_beside_what_is_wrong_can_be_typed(self):
        """In the shell of whoever reads it; what a hint needs further is a comment behind it."""
        path = os.path.join(self.server.home, "admin.token")
        os.chmod(path, 0o644)
        self.addCleanup(os.chmod, path, 0o600)
        ran = self.stint("doctor", "--security", status=1)
        hints = re.findall(r"(?m)^ +try  (.*)$", ran.out)
        self.assertIn(f"chmod 600 {path}", hints)
        for hint in hints:
            program = shlex.split(hint, comments=True)[0]
            self.assertTrue(program in ("stint", "export") or shutil.which(program) or program in KNOWN, hint)

    def test_each_that_stands_in_the_source_begins_with_a_program(self):
        for path in pathlib.Path(TOP).glob("src/cli/verb/doctor*.c"):
            notes = re.findall(r'doctor_note\(\s*exam, (?:WARN|FAIL)[^;]*?;', path.read_text(), re.S)
            self.assertTrue(notes)
            for note in notes:
                fix = note.split(",", 4)[4].strip()
                if fix.startswith('"'):
                    self.assertIn(re.match(r'"(\w+)', fix).group(1), ("stint", "export") + KNOWN, note)


if __name__ == "__main__":
    unittest.main()
