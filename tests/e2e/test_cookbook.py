"""Every block of docs/cookbook.md that is marked <!-- run: NAME -->, pasted into a shell beside `stint up`, as a new user would."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from hang import HANG_S
from test_cli import STINT, TOP, environment

BIN = os.path.dirname(STINT)

# It does what Claude Code does here: reads the task, works in its tree, says one line of JSON.
CLAUDE = """#!/bin/sh
test -n "$ANTHROPIC_API_KEY" || { echo '{"type":"result","is_error":true,"result":"Invalid API key"}'; exit 1; }
cat >/dev/null
echo 'a line' >>NOTES
git add NOTES
git -c user.name=agent -c user.email=agent@example.org commit -qm 'a line in NOTES' || exit 1
stint task progress 'committed' --percent 90 >/dev/null || exit 1
echo '{"type":"result","is_error":false,"result":"NOTES has a line more","total_cost_usd":0.01}'
"""


class Cookbook(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(TOP, "docs", "cookbook.md")) as file:
            cls.text = file.read()
        cls.runs = re.findall(r"^<!-- run: (\w+) -->\n```(\w+)\n(.*?)^```$", cls.text, re.S | re.M)
        cls.files = dict(re.findall(r"^<!-- file: (\S+) -->\n```json\n(.*?)^```$", cls.text, re.S | re.M))

    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="stint-cookbook-")
        self.addCleanup(shutil.rmtree, self.home, True)
        self.env = environment(HOME=self.home, STINT_LISTEN="127.0.0.1:0", PATH=os.pathsep.join(
            (BIN, os.path.join(self.home, ".local/bin"), "/usr/local/bin:/usr/bin:/bin")))
        for name in ("work", "scripts", "pool", ".local/bin"):
            os.makedirs(os.path.join(self.home, name))
        for name, text in self.files.items():
            self.write(name, text, 0o600)
        self.write("work/Makefile", "test:\n\t@echo all tests passed\n")
        self.assertEqual(self.shell("stint up --detach --no-demo").returncode, 0)
        self.addCleanup(self.shell, "stint down --now")

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.home, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)

    def shell(self, script, env=None):
        return subprocess.run(["bash", "-c", script], cwd=self.home, env=env or self.env, capture_output=True, text=True,
                              timeout=HANG_S, stdin=subprocess.DEVNULL)

    def cook(self, name):
        blocks = [text for of, kind, text in self.runs if of == name and kind == "sh"]
        self.assertTrue(blocks, name)
        ran = self.shell("set -e -o pipefail\n" + "\n".join(blocks))
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        return ran.stdout

    def states(self):
        tasks = json.loads(self.shell("stint ls --all --json").stdout)["tasks"]
        return sorted(task["state"] for task in tasks)

    def test_a_nightly_batch(self):
        for name in ("mon", "tue", "wed"):
            self.write(f"work/{name}.log", "x\n" * 100)
        said = self.cook("batch")
        self.assertIn("\n3\n", said)
        self.assertEqual(self.states(), ["done"] * 4)

    def test_lines_of_a_crontab_work_in_the_environment_of_cron(self):
        table, = (text for of, kind, text in self.runs if kind == "crontab")
        lines = re.findall(r"(?m)^(?:[\d*/]+ +){4}[\d*/]+ +(.*)$", table)
        self.assertEqual(len(lines), 2)
        self.shell("stint add 'the report' --queue reports")
        env = {"HOME": self.home, "PATH": self.env["PATH"], "SHELL": "/bin/sh"}
        for line in lines:
            ran = subprocess.run(["/bin/sh", "-c", line], cwd=self.home, env=env, capture_output=True, text=True, timeout=HANG_S)
            self.assertEqual(ran.returncode, 0, line + "\n" + ran.stdout + ran.stderr)
        self.assertTrue(json.loads(ran.stdout)["ok"], ran.stdout)
        self.assertEqual(self.shell("stint wait --timeout 1m $(stint ls --all -o id)").returncode, 0)

    def test_a_queue_for_ci(self):
        said = self.cook("ci")
        self.assertIn("tests passed\n", said)
        self.assertIn("all tests passed\n", said)

    @unittest.skipUnless(shutil.which("node", path="/usr/local/bin:/usr/bin:/bin"), "there is no node here (package nodejs)")
    def test_scripts_in_the_home(self):
        self.write("scripts/report.py", "import os\nprint('report', os.environ.get('LIMIT', 'all'))\n")
        self.write("scripts/job.js", "console.log('job done')\n")
        said = self.cook("scripts")
        self.assertEqual(said.split("\n")[:3], ["report all", "job done", "report 3"])

    def test_a_pool(self):
        shutil.copy(os.path.join(TOP, "examples/pool-worker/worker.py"), os.path.join(self.home, "pool"))
        said = self.cook("pool")
        self.assertIn('"result":{"text":"hello"}', said.replace(" ", ""))

    @unittest.skipUnless(shutil.which("git"), "there is no git here (package git)")
    def test_an_agent_as_a_command(self):
        self.write(".local/bin/claude", CLAUDE, 0o755)
        os.makedirs(os.path.join(self.home, ".local/share/claude"))
        made = self.shell("cd work && git init -q . && git add . && git -c user.name=me -c user.email=me@example.org commit -qm begin")
        self.assertEqual(made.returncode, 0, made.stderr)
        said = self.cook("agent")
        self.assertIn("NOTES has a line more", said)
        self.assertRegex(said, r"(?m)^\W*stint/t-1")
        self.assertEqual(self.states(), ["done"])

    def test_watching(self):
        if not shutil.which("curl"):
            self.skipTest("there is no curl here (package curl)")
        self.shell("stint add x --queue nowhere")
        self.assertIn('state="ready"} 1', self.cook("watching"))

    def test_a_backup_drill(self):
        self.shell("stint add x --queue nowhere; stint run --no-cwd -- true")
        self.assertIn("every task is there\n", self.cook("backup"))

    def test_every_block_is_run_or_is_a_file(self):
        blocks = re.findall(r"(^[^\n]*\n)```\w+\n", self.text, re.M)
        self.assertEqual(len(blocks), len(self.runs) + len(self.files))
        cooked = {name for name in re.findall(r'self\.cook\("(\w+)"\)', open(__file__).read())} | {"cron"}
        self.assertEqual({name for name, _, _ in self.runs}, cooked)


if __name__ == "__main__":
    unittest.main()
