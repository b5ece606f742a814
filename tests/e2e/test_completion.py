"""Completion in the real shells: bash and zsh on a pseudo-terminal with a real tab, fish by its own `complete -C`."""
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from hang import HANG_S
import stintd

STINT = os.path.abspath(os.environ.get("STINT", "build/stint"))
HOSTILE = "my queue; $(touch pwned) `touch pwned` \"'x"

# Each makes Ctrl-G print the line as it stands between < and >, so that a test knows when the shell is done with a tab.
SETUP = {
    "bash": "PS1=; PS2=; eval \"$(stint completion bash)\"\n"
            "bind 'set enable-bracketed-paste off'; bind 'set bell-style none'; bind 'set page-completions off'\n"
            "bind -x '\"\\C-g\": printf \"<%s>\\n\" \"$READLINE_LINE\"'\n",
    "zsh": "PS1=; unsetopt beep prompt_cr prompt_sp zle_bracketed_paste 2>/dev/null; unset zle_bracketed_paste\n"
           "autoload -Uz compinit; compinit -u -D; source <(stint completion zsh)\n"
           "told() { print -r -- \"<$BUFFER>\" }; zle -N told; bindkey '^G' told\n",
}
COMMAND = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}


class Shell:
    """An interactive shell that is typed at."""

    def __init__(self, name, home, folder, setup=None):
        self.seen = ""
        env = {"PATH": os.path.dirname(STINT) + ":" + os.environ["PATH"], "STINT_HOME": home, "HOME": folder,
               "LANG": "C.UTF-8", "TERM": "dumb"}
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(COMMAND[name][0], COMMAND[name], env)
        self.type((setup or SETUP[name]) + "echo read''y\n")
        self.until("ready")
        self.type("\x07")  # the first prompt after the setup
        self.until("<>")

    def type(self, text):
        data = text.encode()
        while data:
            data = data[os.write(self.fd, data):]

    def until(self, end):
        """What it wrote up to and with `end`, a pattern."""
        deadline = time.monotonic() + HANG_S
        while not (match := re.search(end, self.seen)):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise AssertionError(f"no {end!r} in {self.seen!r}")
            self.seen += os.read(self.fd, 65536).decode(errors="replace")
        found, self.seen = self.seen[:match.end()], self.seen[match.end():]
        return found

    def complete(self, line):
        """The line after a tab."""
        self.type("\x15")  # away with what stands there
        self.type(line + "\t\x07")
        self.until("<")
        text = re.sub(r"\r?\n", "", self.until(r">\r?\n"))
        return text[:-1].rstrip()

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


class Completing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = stintd.Server()
        client = cls.server.client()
        for task in ("unique-task", "other:with.colon", "twin-1", "twin-2"):
            client.post("/api/tasks", {"id": task, "title": f"the {task}", "queue": "builds"})
        client.post("/api/tasks", {"title": "x", "queue": HOSTILE})
        client.post("/api/workers/register", {"workerId": "host-7", "slot": "slot-7", "leaseMs": 60000})
        client.post("/api/sessions/spawn", {"sessionLabel": "agent:main:worker-slot-7:1", "prompt": "x"})
        client.close()

    @classmethod
    def tearDownClass(cls):
        cls.server.end()

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stint-shell-")
        self.addCleanup(shutil.rmtree, self.folder)
        with open(os.path.join(self.folder, "plan.md"), "w"):
            pass

    def shell(self, name):
        if not shutil.which(name):
            self.skipTest(f"{name} is not installed: apt-get install {name}")
        shell = Shell(name, self.server.home, self.folder)
        self.addCleanup(shell.end)
        return shell

    # What is typed, and the line that a tab makes of it; the same in every shell.
    PLAIN = (
        ("stint que", "stint queue"),
        ("stint queue pa", "stint queue pause"),
        ("stint show uni", "stint show unique-task"),
        ("stint wait twin-1 uni", "stint wait twin-1 unique-task"),
        ("stint show other:wi", "stint show other:with.colon"),
        ("stint ls --que", "stint ls --queue"),
        ("stint ls --queue bui", "stint ls --queue builds"),
        ("stint ls --queue=bui", "stint ls --queue=builds"),
        ("stint ls --state=ready,runn", "stint ls --state=ready,running"),
        ("stint add x --after twin-1,uni", "stint add x --after twin-1,unique-task"),
        ("stint add x --isol", "stint add x --isolation"),
        ("stint add x --isolation sa", "stint add x --isolation sandbox"),
        ("stint worker show ho", "stint worker show host-7"),
        ("stint slot unquarantine sl", "stint slot unquarantine slot-7"),
        ("stint session stop age", "stint session stop agent:main:worker-slot-7:1"),
        ("stint claim -o e", "stint claim -o env"),
        ("stint ls -o e", "stint ls -o e"),
        ("stint help que", "stint help queue"),
        ("stint help queue dr", "stint help queue drain"),
        ("stint --color never show uni", "stint --color never show unique-task"),
        ("stint add x --file pl", "stint add x --file plan.md"),
        ("stint show nothing-li", "stint show nothing-li"),
    )

    def all_plain(self, complete):
        for typed, line in self.PLAIN:
            with self.subTest(typed=typed):
                self.assertEqual(complete(typed), line)

    def reads_back(self, shell, line):
        """The words of a line as that shell understands them; nothing else may happen on the way."""
        ran = subprocess.run([shell, "-c", f"printf '%s\\n' {line}"], capture_output=True, text=True, timeout=HANG_S,
                             cwd=self.folder, env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"})
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(os.listdir(self.folder), ["plan.md"])
        return ran.stdout.splitlines()

    def test_bash(self):
        shell = self.shell("bash")
        self.all_plain(shell.complete)
        self.assertEqual(shell.complete("stint show 'uni"), "stint show 'unique-task'")
        line = shell.complete("stint ls --queue my")
        self.assertEqual(self.reads_back("bash", line)[-1], HOSTILE)
        self.assertEqual(shell.complete('stint ls --queue "my'), 'stint ls --queue "my')

    def test_zsh(self):
        shell = self.shell("zsh")
        self.all_plain(shell.complete)
        line = shell.complete("stint ls --queue my")
        self.assertEqual(self.reads_back("zsh", line)[-1], HOSTILE)

    def test_zsh_from_a_file_of_its_own(self):
        """As it is installed: found in $fpath, read at the first tab."""
        if not shutil.which("zsh"):
            self.skipTest("zsh is not installed: apt-get install zsh")
        with open(os.path.join(self.folder, "_stint"), "w") as file:
            subprocess.run([STINT, "completion", "zsh"], stdout=file, check=True, timeout=HANG_S)
        setup = SETUP["zsh"].replace("autoload", "fpath=(~ $fpath); autoload").replace("; source <(stint completion zsh)", "")
        shell = Shell("zsh", self.server.home, self.folder, setup)
        self.addCleanup(shell.end)
        for typed, line in self.PLAIN[:4]:
            self.assertEqual(shell.complete(typed), line)

    def fish(self, typed):
        """What it would make of the line: what all offers have in common."""
        env = {"PATH": os.path.dirname(STINT) + ":" + os.environ["PATH"], "STINT_HOME": self.server.home,
               "HOME": self.folder, "LANG": "C.UTF-8", "TERM": "dumb"}
        ran = subprocess.run(["fish", "--no-config", "-c", "stint completion fish | source; complete -C $argv[1]", typed],
                             capture_output=True, text=True, timeout=HANG_S, cwd=self.folder, env=env)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        offers = [offer.split("\t")[0] for offer in ran.stdout.splitlines()]
        word = typed.split(" ")[-1]
        return typed[:len(typed) - len(word)] + os.path.commonprefix(offers or [word])

    def test_fish(self):
        if not shutil.which("fish"):
            self.skipTest("fish is not installed: apt-get install fish")
        self.all_plain(self.fish)
        self.assertEqual(self.fish("stint ls --queue my"), "stint ls --queue " + HOSTILE)

    def test_without_a_server_verbs_are_completed_all_the_same(self):
        if not shutil.which("bash"):
            self.skipTest("bash is not installed")
        shell = Shell("bash", "/nonexistent", self.folder)
        self.addCleanup(shell.end)
        self.assertEqual(shell.complete("stint que"), "stint queue")
        self.assertEqual(shell.complete("stint show uni"), "stint show uni")


if __name__ == "__main__":
    unittest.main()
