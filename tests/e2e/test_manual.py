"""The manual: every block of its pages that is marked <!-- run: NAME --> is pasted into a shell beside `stint up`; every other block says why
it is not run, or is a file. `stint help` shows the same pages."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from hang import HANG_S
from test_cli import STINT, TOP, environment

BIN = os.path.dirname(STINT)
# doors and cookbook have tests of their own
PAGES = sorted(os.path.basename(path)[:-3] for path in glob.glob(os.path.join(TOP, "docs", "*.md")) if not path.endswith(("doors.md", "cookbook.md")))
GH = """#!/bin/sh
echo '[{"number":7,"title":"it breaks","body":"always","labels":[{"name":"stint"}],"url":"https://github.com/owner/name/issues/7"}]'
"""


def text_of(page):
    with open(os.path.join(TOP, "docs", page + ".md")) as file:
        return file.read()


def blocks(text, mark):
    return re.findall(rf"^<!-- {mark}: (\S+) -->\n```\w+\n(.*?)^```$", text, re.S | re.M)


class Manual(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="stint-manual-")
        self.addCleanup(shutil.rmtree, self.home, True)
        self.env = environment(HOME=self.home, STINT_LISTEN="127.0.0.1:0", PATH=os.pathsep.join(
            (BIN, os.path.join(self.home, "bin"), "/usr/local/bin:/usr/bin:/bin")))
        for page in PAGES:
            for name, text in blocks(text_of(page), "file"):
                self.write("project/" + name, text)
        for name, value in ((".openclaw/clawnsole/work-queues.json", {"version": 1, "queues": {}, "items": [{"id": "a", "queue": "dev-team"}], "assignments": {}}),
                            (".openclaw/workspace/.clawhub/tasks.json", [{"id": "b", "title": "b", "owner": "slot-1", "status": "todo"}]),
                            ("project/.beads/issues.jsonl", {"id": "bd-1", "title": "one"})):
            self.write(name, json.dumps(value))
        self.write("bin/gh", GH, 0o755)
        self.assertEqual(self.shell("stint up --detach --no-demo").returncode, 0)
        self.addCleanup(self.shell, "stint down --now")

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.home, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, mode), "w") as file:
            file.write(text)

    def shell(self, script):
        return subprocess.run(["bash", "-c", script], cwd=os.path.join(self.home, "project"), env=self.env, capture_output=True, text=True, timeout=HANG_S,
                              stdin=subprocess.DEVNULL)

    def run_of(self, page, wanted, *said):
        """All blocks of that name, one after the other, in one shell. Each of the words is printed."""
        script = "".join(text for name, text in blocks(text_of(page), "run") if name == wanted)
        self.assertTrue(script, wanted)
        script = re.sub(r"^(stint [^#\n]*)(?=# is refused: )", r"\1|| test $? = 4 ", script, flags=re.M)
        ran = self.shell("set -e -o pipefail\n" + script)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        for words in said:
            self.assertRegex(ran.stdout + ran.stderr, words)

    RUNS = {
        "index": {"start": ["later", "done"]},
        "concepts": {"concepts": ["task.completed"]},
        "troubleshooting": {"waits": ["No worker serves queue nowhere"], "fails": ["the cause", "report.json"], "away": []},
        "faq": {"one": []},
        "flow": {"schedule": ["nightly", "poll"], "conflict": ["task_exists"], "group": [], "limit": ["acme"], "bulk": ["No task matches"]},
        "skills": {"skills": ["stint-supervise", "would write|written"]},
        "agents": {"budgets": []},
        "dashboard": {"link": ["#k="]},
        "migrating": {"clawnsole": [r'"id": "a"'], "clawhub": ["stint worker --slot|added"], "pm2": ["report", "executor thumbs"], "beads": ["bd-1"],
                      "github": ["gh:owner.name:7"], "beanstalkd": [r'{"file":"a.png"}']},
        "operations": {"drill": ["drill-1 is ready"]},
    }

    BESIDE = {"tls": {"init", "client"}, "remote-workers": {"invite", "enroll", "lost"}}  # Machines runs these

    def test_every_command_does_what_the_page_says(self):
        for page, runs in self.RUNS.items():
            for name, said in runs.items():
                with self.subTest(page=page, block=name):
                    self.run_of(page, name, *said)

    def test_every_block_is_run_or_says_why_not(self):
        for page in PAGES:
            text = text_of(page)
            self.assertEqual({name for name, _ in blocks(text, "run")}, set(self.RUNS.get(page, {})) | self.BESIDE.get(page, set()), page)
            for before, kind, block in re.findall(r"(^[^\n]*\n)```(\w*)\n(.*?)^```$", text, re.S | re.M):
                if re.search(r"^(\$ )?(\w+=\$\()?stint", block, re.M) and kind in ("", "sh") and not re.match(r"stintd: ", block):
                    self.assertRegex(before, r"<!-- (run|not run|file): .* -->", f"{page}: {block}")

    def test_links_lead_somewhere(self):
        for path in glob.glob(os.path.join(TOP, "docs", "*.md")) + [os.path.join(TOP, "README.md")]:
            with open(path) as file:
                text = file.read()
            for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", text, flags=re.S)):
                if target.startswith(("http:", "https:")):
                    continue
                name, _, anchor = target.partition("#")
                there = os.path.join(os.path.dirname(path), name) if name else path
                with self.subTest(page=os.path.basename(path), link=target):
                    self.assertTrue(os.path.exists(there))
                    if anchor:
                        with open(there) as file:
                            heads = re.findall(r"^#+ (.*)$", file.read(), re.M)
                        self.assertIn(anchor, [re.sub(r"[^\w\- ]", "", head).lower().replace(" ", "-") for head in heads])

    def test_the_terminal_shows_the_same_pages(self):
        topics = self.shell("stint help topics").stdout
        for page in ("index", "concepts", "troubleshooting", "faq", "glossary", "evidence", "migrating", "operations", "agents"):
            with self.subTest(page=page):
                self.assertIn(page, topics)
                shown = re.sub(r"\s+", " ", self.shell(f"stint help {page}").stdout)
                for line in text_of(page).splitlines():
                    if line.startswith("#"):
                        self.assertIn(re.sub(r"[#*]+ ?", "", line).strip(), shown)
                self.assertNotIn("<!--", shown)
                self.assertNotIn("](", shown)
                self.assertEqual(self.shell(f"stint help {page}.md").stdout, self.shell(f"stint help {page}").stdout)

    def test_a_page_that_is_called_like_a_verb_is_reached_by_its_ending(self):
        self.assertIn("worker.md", self.shell("stint help topics").stdout)
        self.assertTrue(self.shell("stint help worker.md").stdout.startswith("The worker\n"))
        self.assertIn("stint worker run", self.shell("stint help worker").stdout)
        self.assertEqual(self.shell("stint help nothing.md").returncode, 2)

    def test_no_line_is_wider_than_the_terminal_but_code(self):
        for line in self.shell("COLUMNS=80 stint help faq").stdout.splitlines():
            self.assertTrue(len(line) <= 80 or line.startswith("    "), line)


class Machines(Manual):
    """The pages about other machines, with this one's names in place of theirs."""

    def page(self, page, wanted, **names):
        script, = (text for name, text in blocks(text_of(page), "run") if name == wanted)
        for name, value in {"/var/lib/stint": os.path.join(self.home, ".local/state/stint"), "queue.example.org:8787": "localhost:%d" % self.port(), **names}.items():
            script = script.replace(name, value)
        ran = self.shell("set -e\n" + script)
        self.assertEqual(ran.returncode, 0, script + ran.stdout + ran.stderr)
        return ran.stdout

    def port(self):
        with open(os.path.join(self.home, ".local/state/stint/url")) as file:
            return int(file.read().strip().rsplit(":", 1)[1])

    def test_a_server_gets_a_certificate_a_command_trusts_it_and_a_machine_joins_works_and_is_turned_away(self):
        printed = self.page("tls", "init")
        config = re.search(r"^```json\n(.*?)^```$", text_of("tls"), re.S | re.M)[1].replace("/var/lib/stint", os.path.join(self.home, ".local/state/stint"))
        self.assertEqual(json.loads("{" + printed + "}")["tls"], json.loads(config)["tls"])
        self.shell("stint down --now")
        self.write(".local/state/stint/config.json", config.replace("0.0.0.0:8787", "127.0.0.1:0"), 0o600)
        self.env.pop("STINT_LISTEN")
        self.assertEqual(self.shell("stint up --detach --no-demo --no-worker").returncode, 0)
        self.assertEqual(self.shell("stint token create --kind operator --out me.token && cp ~/.local/state/stint/tls/ca.crt .").returncode, 0)
        self.page("tls", "client")
        code = re.search(r"stint_join_\w+", self.page("remote-workers", "invite"))[0]
        self.write("machine/worker.json", '{"executors": {"x": {"kind": "command", "argv": ["echo", "from afar"]}}, "queues": {"ci": {"executor": "x"}}}')
        self.env.update(XDG_CONFIG_HOME=os.path.join(self.home, "nowhere"))
        told = self.page("remote-workers", "enroll", **{"stint_join_…": code + " --config ../machine/worker.json --home ../machine/state"})
        self.addCleanup(os.kill, int(re.search(r"as process (\d+)", told)[1]), signal.SIGTERM)
        self.assertIn("from afar", self.shell("stint wait $(stint add hello --queue ci) && stint logs $(stint ls --all --queue ci -o id)").stdout)
        machine, = (token["id"] for token in json.loads(self.shell("stint token ls --json").stdout)["tokens"] if (token["kind"], token.get("name")) == ("worker", "ci-7"))
        self.assertIn("ci-7", self.page("remote-workers", "lost", **{"revoke ID": "revoke " + machine}))

    test_every_command_does_what_the_page_says = test_every_block_is_run_or_says_why_not = test_links_lead_somewhere = None
    test_the_terminal_shows_the_same_pages = test_a_page_that_is_called_like_a_verb_is_reached_by_its_ending = None
    test_no_line_is_wider_than_the_terminal_but_code = None


if __name__ == "__main__":
    unittest.main()
