"""Skills and AGENTS.md: every command, flag, tool and path that they name is there; their blocks are run; and `stint skill install` writes
them where agents look, and never over what a person has changed."""
import glob
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
import threading
import time
import unittest

from hang import HANG_S
import stintd
from test_examples import TOP, World, environment, run

STINT = os.path.abspath(os.environ.get("STINT", "build/stint"))
NAMES = sorted(os.path.basename(os.path.dirname(path)) for path in glob.glob(os.path.join(TOP, "skills", "*", "SKILL.md")))
MARK = "<!-- stint-skill "


def read(*path):
    with open(os.path.join(TOP, *path)) as file:
        return file.read()


def source(name):
    return read("skills", name, "SKILL.md")


def blocks(text):
    """The lines of the sh blocks, without comments."""
    found = "".join(re.findall(r"^```sh\n(.*?)^```$", text, re.S | re.M))
    return [line for line in re.sub(r"\s+# .*", "", found).splitlines() if line]


def spans(text):
    return re.findall(r"(?<!`)`([^`\n]+)`(?!`)", re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M))


def stint_words(line):
    """The words of each `stint …` in a line of shell, up to what the shell itself reads."""
    for match in re.finditer(r"(?:^|[\s(`])stint (.*)", line):
        words = shlex.shlex(match.group(1), posix=True, punctuation_chars=True)
        words.whitespace_split = True
        taken = []
        for word in words:
            if word in ("|", "&&", ";", "||", ")", ">", "--"):
                break
            taken.append(word)
        yield taken


def help_of(words):
    return subprocess.run([STINT, *words, "--help"], capture_output=True, text=True, timeout=HANG_S, stdin=subprocess.DEVNULL,
                          env=environment("/nonexistent"))


def stale(text):
    """What the text names and the command does not have. A flag that stands alone must be one of a command in its section."""
    wrong = []
    for section in re.split(r"^## ", text, flags=re.M):
        known = ""
        for line in blocks(section) + [span for span in spans(section) if span.startswith("stint ")]:
            for words in stint_words(line):
                ran = help_of(words)
                known += ran.stdout
                if ran.returncode != 0 or not ran.stdout.startswith("usage: stint "):
                    wrong.append(line)
        for flag in [span.split()[0] for span in spans(section) if re.match(r"--?[a-z]", span)]:
            if not re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", known):
                wrong.append(flag)
    return wrong


class Texts(unittest.TestCase):
    def test_a_stale_text_is_found(self):
        """Otherwise the next test says nothing."""
        for text, wrong in (("`stint frobnicate`", ["stint frobnicate"]), ("`stint task finish`", ["stint task finish"]),
                            ("```sh\nstint ls --colour\n```\n", ["stint ls --colour"]),
                            ("```sh\nx=$(stint task ask 'a | b' --bogus)\n```\n", ["x=$(stint task ask 'a | b' --bogus)"]),
                            ("`stint add` with `--unique KEY` or `--sole`", ["--sole"]),
                            ("`stint add`\n## Next\n`stint ls` has no `--unique`", ["--unique"]),
                            ("`stint add \"x\" --unique a && rm -x`", [])):
            self.assertEqual(stale(text), wrong, text)

    def test_every_command_and_flag_of_a_skill_is_one(self):
        for name in NAMES:
            with self.subTest(skill=name):
                self.assertGreater(len([line for line in blocks(source(name)) if "stint " in line]), 2)
                self.assertEqual(stale(source(name)), [])

    def test_every_head_is_what_agents_read(self):
        for name in NAMES:
            with self.subTest(skill=name):
                _, head, _ = source(name).split("---\n", 2)
                head, _, metadata = head.partition("metadata:\n")
                head = dict(line.split(": ", 1) for line in head.splitlines())
                self.assertEqual(head["name"], name)
                self.assertRegex(name, r"^[a-z0-9]+(-[a-z0-9]+)*$")
                self.assertLess(len(head["description"]), 160)
                self.assertNotRegex(head["description"], r": |#|^[\[{'\"&*!|>%@`]")  # a plain scalar of YAML
                self.assertEqual(json.loads(metadata)["openclaw"]["requires"], {"bins": ["stint"]})

    def test_their_lines_work(self):
        """Each in a world of its own, in which the task that it names is where it should be."""
        for name in ("stint-task", "stint-supervise"):
            for line in blocks(source(name)):
                with self.subTest(skill=name, line=line):
                    words = next(stint_words(line))
                    asks = words[:2] == ["task", "ask"]
                    world = World(self, "task progress" if asks else " ".join(words[:2 if words[0] == "task" else 1]), line)
                    answering = threading.Thread(target=self.answer, args=(world,), daemon=True)
                    if asks:
                        answering.start()
                    ran = run("set -e; " + line + "; echo branch=$branch", world.folder, {"STINT_TASK_ID": "t-7k3", **world.env})
                    self.assertEqual(ran.returncode, 0, ran.stderr)
                    if asks:
                        answering.join(HANG_S)
                        self.assertEqual(ran.stdout, "branch=release\n")
                self.doCleanups()

    def answer(self, world):
        client = world.server.client()
        until = time.monotonic() + HANG_S
        while client.get("/api/tasks/t-7k3").json["state"] != "asking" and time.monotonic() < until:
            pass
        client.post("/api/tasks/t-7k3/answer", {"text": "release"})
        client.close()

    def test_every_tool_is_there_for_the_token_that_is_meant(self):
        server = stintd.Server()
        self.addCleanup(server.end)
        client = server.client()
        self.addCleanup(client.close)
        client.post("/api/tasks", {"id": "t", "title": "x"})
        fence = client.post("/api/tasks/t/claim", {"workerId": "w"}).json["fence"]
        tokens = {"stint-task": [client.post("/api/tokens", {"kind": "claim", "task": "t", "fence": fence}).json["token"]],
                  "stint-supervise": [client.post("/api/tokens", {"kind": kind, "name": "x"}).json["token"] for kind in ("operator", "producer")]}
        for name, own in tokens.items():
            with self.subTest(skill=name):
                there = set()
                for token in own:
                    ran = subprocess.run([STINT, "mcp"], input='{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n', capture_output=True,
                                         text=True, timeout=HANG_S, env=environment(server.home, STINT_HOME=server.home, STINT_TOKEN=token))
                    there |= {tool["name"] for tool in json.loads(ran.stdout)["result"]["tools"]}
                section = source(name).partition("\n## As tools\n")[2]
                self.assertEqual({span for span in spans(section) if re.fullmatch(r"[a-z_]+", span)} - {"pending"}, there)


class ForContributors(unittest.TestCase):
    def test_every_command_of_agents_md_exists(self):
        verbs = set(re.findall(r"^  ([a-z]+)\b", subprocess.run([os.path.join(TOP, "dev"), "help"], capture_output=True, text=True,
                                                                timeout=HANG_S).stdout, re.M))
        text = read("AGENTS.md")
        seen = set()
        for line in blocks(text) + spans(text):
            words = line.split()
            with self.subTest(command=line):
                if words[0] == "./dev":
                    self.assertIn(words[1], verbs)
                    seen.add("dev")
                elif words[0].startswith("tools/") and not words[0].endswith(".txt"):
                    path = os.path.join(TOP, words[0])
                    self.assertTrue(os.access(path, os.X_OK), path)
                    for flag in [word for word in words if word.startswith("--")]:
                        self.assertIn(flag, read(words[0]))
                    seen.add("tools")
                elif words[0] == "meson":
                    self.assertRegex(read("tests", words[5], "meson.build"), rf"suite: .*'{words[5]}'")
                    for test in words[6:]:
                        self.assertTrue(os.path.exists(os.path.join(TOP, "tests", words[5], f"test_{test}.py")))
                    seen.add("meson")
        self.assertEqual(seen, {"dev", "tools", "meson"})
        self.assertEqual(stale(text), [])
        mutant, = re.findall(r"--only (\S+)", text)
        self.assertTrue(os.path.exists(os.path.join(TOP, "tests", "mutants", mutant + ".patch")))

    def test_every_path_of_agents_md_exists(self):
        paths = [span for span in spans(read("AGENTS.md")) if re.fullmatch(r"[\w.-]*(/[\w.-]*)+|[A-Z]+\.md", span) and span != "build/"]
        self.assertGreater(len(paths), 10)
        for path in paths:
            self.assertTrue(os.path.exists(os.path.join(TOP, path)), path)

    def test_it_is_short(self):
        self.assertLess(len(read("AGENTS.md").splitlines()), 80)
        self.assertEqual(read("CLAUDE.md"), "@AGENTS.md\n")


class Install(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="stint-skills-")
        self.addCleanup(shutil.rmtree, self.home, True)
        self.project = os.path.join(self.home, "work", "project")
        os.makedirs(os.path.join(self.project, ".git"))
        os.makedirs(os.path.join(self.project, "src"))
        self.env = environment(self.home)

    def stint(self, *words, status=0, cwd=None, **env):
        ran = subprocess.run([STINT, *words], capture_output=True, text=True, timeout=HANG_S, stdin=subprocess.DEVNULL,
                             cwd=cwd or self.project, env={**self.env, **env})
        self.assertEqual(ran.returncode, status, ran.stdout + ran.stderr)
        return ran

    def install(self, *words, **more):
        """What was done, by the path below the home."""
        told = json.loads(self.stint("skill", "install", "--json", *words, **more).stdout)
        return {os.path.relpath(file["path"], self.home): file["done"] for file in told["files"]}

    def file(self, *path):
        return os.path.join(self.home, *path, "SKILL.md")

    def write(self, path, text):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)

    def text(self, path):
        with open(path) as file:
            return file.read()

    def files(self):
        return {os.path.relpath(os.path.join(folder, name), self.home) for folder, _, names in os.walk(self.home) for name in names}

    def test_the_command_carries_every_skill_of_the_repository(self):
        listed = json.loads(self.stint("skill", "ls", "--json").stdout)["skills"]
        self.assertEqual([skill["name"] for skill in listed], NAMES)
        self.assertEqual(self.stint("__complete", "skill", "show", "").stdout.split(), NAMES)
        for skill in listed:
            self.assertEqual(self.stint("skill", "show", skill["name"]).stdout, source(skill["name"]))
            self.assertIn(f"description: {skill['description']}\n", source(skill["name"]))

    def test_it_is_where_agents_look(self):
        wanted = {"claude": ".claude", "codex": ".agents", "gemini": ".agents", "opencode": ".agents", "openclaw": ".agents"}
        for agent, folder in wanted.items():
            with self.subTest(agent=agent):
                self.assertEqual(set(self.install("stint-task", "--agent", agent, "--dry-run")), {f"{folder}/skills/stint-task/SKILL.md"})
                self.assertEqual(set(self.install("stint-task", "--agent", agent, "--dry-run", "--project", cwd=os.path.join(self.project, "src"))),
                                 {f"work/project/{folder}/skills/stint-task/SKILL.md"})
        self.assertEqual(self.files(), set())
        self.assertEqual(self.install(), {f"{folder}/skills/{name}/SKILL.md": "written" for name in NAMES for folder in (".claude", ".agents")})

    def test_outside_of_a_repository_the_project_is_the_directory(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # $TMPDIR may be within a repository
            told = json.loads(self.stint("skill", "install", "stint-task", "--agent", "codex", "--project", "--dry-run", "--json", cwd=folder).stdout)
            self.assertEqual([file["path"] for file in told["files"]], [os.path.join(folder, ".agents/skills/stint-task/SKILL.md")])

    def test_claude_may_have_another_directory(self):
        elsewhere = os.path.join(self.home, "else", "where")
        self.assertEqual(self.install("stint-task", "--agent", "claude", CLAUDE_CONFIG_DIR=elsewhere),
                         {"else/where/skills/stint-task/SKILL.md": "written"})
        self.assertEqual(set(self.install("stint-task", "--agent", "claude", "--project", CLAUDE_CONFIG_DIR=elsewhere)),
                         {"work/project/.claude/skills/stint-task/SKILL.md"})

    def test_twice_is_once(self):
        self.install()
        before = {path: os.stat(os.path.join(self.home, path)) for path in self.files()}
        self.assertEqual(set(self.install().values()), {"up to date"})
        for path, was in before.items():
            now = os.stat(os.path.join(self.home, path))
            self.assertEqual((now.st_ino, now.st_mtime_ns), (was.st_ino, was.st_mtime_ns), path)
        self.assertEqual(self.files(), set(before))

    def test_the_file_is_the_text_and_a_mark_and_others_may_read_it(self):
        self.install("stint-task", "--agent", "claude")
        path = self.file(".claude/skills/stint-task")
        text = self.text(path)
        self.assertTrue(text.startswith(source("stint-task")))
        self.assertRegex(text[len(source("stint-task")):], r"\A<!-- stint-skill \d+\.\d+\.\d+ crc32c:[0-9a-f]{8}; .* -->\n\Z")
        mask = os.umask(0)
        os.umask(mask)
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o666 & ~mask)

    def test_what_another_version_wrote_is_replaced(self):
        self.install("stint-task", "--agent", "claude")
        path, other = self.file(".claude/skills/stint-task"), self.file(".claude/skills/stint-supervise")
        new = self.text(path)
        os.makedirs(os.path.dirname(other))
        os.rename(path, other)  # as it was written, but not the text of this skill: so an old version looks
        self.assertEqual(self.install("stint-supervise", "--agent", "claude"), {".claude/skills/stint-supervise/SKILL.md": "updated"})
        self.assertTrue(self.text(other).startswith(source("stint-supervise")))
        self.write(path, re.sub(r"stint-skill [\d.]+", "stint-skill 0.0.1", new))  # an older version had the same text
        self.assertEqual(self.install("stint-task", "--agent", "claude"), {".claude/skills/stint-task/SKILL.md": "up to date"})

    CHANGES = (("a word in the title", lambda text: text.replace("# stint-task\n", "# my task\n"), "in line 24"),
               ("a line at the end", lambda text: text + "and mine\n", "in lines "),
               ("no mark", lambda text: text.rpartition(MARK)[0] + "mine\n", "in line "),
               ("a line less", lambda text: text.replace("license: MIT-0\n", ""), "something is missing before line 5"),
               ("another file", lambda _: "my own skill\n", "in line 1"),
               ("nothing", lambda _: "", "something is missing before line 1"))

    def test_what_a_person_changed_is_kept_and_the_lines_are_named(self):
        path = self.file(".claude/skills/stint-task")
        for what, change, said in self.CHANGES:
            with self.subTest(change=what):
                self.install("--force", "--agent", "claude")
                mine = change(self.text(path))
                self.write(path, mine)
                os.remove(self.file(".claude/skills/stint-supervise"))
                ran = self.stint("skill", "install", "--agent", "claude", status=4)
                self.assertEqual(ran.stdout, "")
                self.assertIn(f"{path} was changed by hand", ran.stderr)
                self.assertIn(said, ran.stderr)
                self.assertEqual(self.text(path), mine)
                self.assertFalse(os.path.exists(self.file(".claude/skills/stint-supervise")), "nothing at all is written")
                hint = re.search(r"\n  try  (.*)\n", ran.stderr).group(1)
                self.assertEqual(hint, "stint skill install --agent claude --force")
                compare = re.search(r"(stint skill show .*) \(changed_by_hand\)", ran.stderr).group(1)
                self.assertIn(run(compare, self.project, self.env).returncode, (1,), "it shows a difference")
                self.assertEqual(run(hint, self.project, self.env).returncode, 0)
                self.assertTrue(self.text(path).startswith(source("stint-task")))

    def test_a_refusal_in_json_has_its_code(self):
        self.write(self.file(".agents/skills/stint-task"), "mine\n")
        told = json.loads(self.stint("skill", "install", "--json", status=4).stderr)
        self.assertEqual((told["ok"], told["error"]["code"]), (False, "changed_by_hand"))

    def test_ls_says_what_is_where(self):
        self.install("stint-task", "--agent", "claude")
        self.install("stint-task", "--agent", "codex", "--project")
        self.write(self.file("work/project/.agents/skills/stint-task"), "mine\n")
        files = {skill["name"]: skill["files"] for skill in json.loads(self.stint("skill", "ls", "--json").stdout)["skills"]}
        self.assertEqual([(file["state"], file["agents"]) for file in files["stint-task"]],
                         [("up to date", ["claude"]), ("changed by hand", ["codex", "gemini", "opencode", "openclaw"])])
        self.assertEqual(files["stint-supervise"], [])
        self.assertIn("stint-task\tchanged by hand\t", self.stint("skill", "ls").stdout)

    def test_ls_says_what_it_cannot_see(self):
        os.makedirs(self.file(".claude/skills/stint-task"))  # a directory of that name
        self.assertIn("SKILL.md: Is a directory", self.stint("skill", "ls", status=1).stderr)
        os.rmdir(self.file(".claude/skills/stint-task"))
        self.write(os.path.join(self.home, ".agents"), "a file\n")
        self.assertIn("stint-task\tnot installed\t", self.stint("skill", "ls").stdout)

    def test_a_repository_cannot_lead_out_of_itself(self):
        outside = os.path.join(self.home, "outside")
        os.makedirs(outside)
        os.symlink(outside, os.path.join(self.project, ".claude"))
        ran = self.stint("skill", "install", "--project", "--force", status=1)
        self.assertIn("leads out of the project by a symbolic link", ran.stderr)
        self.assertEqual(os.listdir(outside), [])
        self.assertFalse(os.path.exists(os.path.join(self.project, ".agents")))

    def test_links_within_a_project_and_in_a_home_are_followed(self):
        os.makedirs(os.path.join(self.project, ".agents"))
        os.symlink(".agents", os.path.join(self.project, ".claude"))
        self.install("--project")
        self.assertTrue(os.path.exists(self.file("work/project/.agents/skills/stint-task")))
        self.assertEqual(set(self.install("--project").values()), {"up to date"})
        os.makedirs(os.path.join(self.home, "dotfiles"))
        os.symlink(os.path.join(self.home, "dotfiles"), os.path.join(self.home, ".claude"))
        self.install("stint-task", "--agent", "claude")
        self.assertTrue(os.path.exists(self.file("dotfiles/skills/stint-task")))

    def test_a_file_that_is_a_link_is_kept(self):
        mine = os.path.join(self.home, "mine.md")
        self.write(mine, "mine\n")
        path = self.file(".claude/skills/stint-task")
        os.makedirs(os.path.dirname(path))
        os.symlink(mine, path)
        self.assertIn("is a symbolic link", self.stint("skill", "install", "stint-task", status=4).stderr)
        self.install("stint-task", "--force")
        self.assertEqual((self.text(mine), os.path.islink(path)), ("mine\n", False))

    def test_a_file_that_cannot_be_written_is_named_and_nothing_is_left(self):
        path = self.file(".claude/skills/stint-task")
        os.makedirs(path)  # a directory of that name
        self.assertIn(path, self.stint("skill", "install", "stint-task", "--agent", "claude", status=1).stderr)
        self.write(os.path.join(self.home, ".agents"), "a file\n")
        self.assertIn(".agents/skills", self.stint("skill", "install", "--agent", "codex", status=1).stderr)
        self.assertEqual(self.files(), {".agents"})

    def test_it_is_replaced_whole(self):
        """Readers beside many installs see one of the two texts, never a part; and no install leaves anything behind."""
        path = self.file(".claude/skills/stint-task")
        self.install("stint-task", "--agent", "claude")
        whole, torn, ended = self.text(path), [], threading.Event()

        def look():
            while not ended.is_set():
                if (seen := self.text(path)) not in (whole, "mine\n"):
                    torn.append(seen)

        reader = threading.Thread(target=look)
        reader.start()
        try:
            for _ in range(10):
                self.write(path + ".mine", "mine\n")
                os.rename(path + ".mine", path)
                both = [subprocess.Popen([STINT, "skill", "install", "stint-task", "--agent", "claude", "--force"], env=self.env,
                                         cwd=self.project, stdout=subprocess.DEVNULL) for _ in range(2)]
                self.assertEqual([process.wait(HANG_S) for process in both], [0, 0])
        finally:
            ended.set()
            reader.join()
        self.assertEqual(torn, [])
        self.assertEqual(self.files(), {".claude/skills/stint-task/SKILL.md"})

    def test_mistakes_are_explained(self):
        for words, status, said in ((["install", "nothing"], 3, "there is no skill nothing"), (["show", "nothing"], 3, "stint skill ls"),
                                    (["install", "--agent", "emacs"], 2, "openclaw"),
                                    (["install", "--user", "--project"], 2, "--user or --project, not both")):
            self.assertIn(said, self.stint("skill", *words, status=status).stderr)
        self.assertIn("HOME is not set", self.stint("skill", "install", status=1, HOME="").stderr)
        self.assertEqual(self.files(), set())


if __name__ == "__main__":
    unittest.main()
