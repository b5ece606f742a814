#!/usr/bin/env python3
"""The first ten minutes of a new user, typed: ./dev newcomer

A home as people have it (pyenv, nvm and cargo below dot directories, scripts, a git repository), `stint up` in it, then what people
type first. Once as whoever runs this, and as root a second time as an ordinary user; on terminals of 80 and 120 columns if tmux is
there. Prints a line per step and "N passed, N failed" at the end."""
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, "build")
PROGRAMS = ("stint", "stintd", "stint-worker", "stint-notify", "stint-shim")
STEP_S = 60

# What a version manager leaves in a home: a shim in the PATH that runs the real thing from a dot directory.
FILES = {
    ".pyenv/shims/python3": '#!/bin/sh\nexec "HOME/.pyenv/libexec/pyenv" exec python3 "$@"\n',
    ".pyenv/libexec/pyenv": '#!/bin/sh\nshift 2; exec "HOME/.pyenv/versions/3.99/bin/python3" "$@"\n',
    ".pyenv/versions/3.99/bin/python3": "#!/bin/sh\necho 'python 3.99 of pyenv'; exec /usr/bin/python3 \"$@\"\n",
    ".nvm/versions/node/v99/bin/node": "#!/bin/sh\necho node v99 of nvm; cat \"$1\"\n",
    ".cargo/bin/cargo": "#!/bin/sh\necho cargo 1.99 of rustup\n",
    "work/x.py": "print('x.py ran')\n",
    "work/Makefile": "test:\n\t@echo all tests passed\n",
    "scripts/job.js": "// job.js was read\n",
    "repo/sub/file": "x\n",
    "x.sh": "#!/bin/sh\necho x.sh ran\n",
}

# What is typed, where, the status that is right, and what must be said: in standard output, or behind ! in what goes to standard error.
TYPED = (
    ("a first command", "work", "stint run -- echo hello", 0, "^hello$"),
    ("the Python of pyenv", "work", "stint run -- python3 x.py", 0, "3.99 of pyenv\nx.py ran"),
    ("the Node of nvm and a script in the home", "work", "stint run -- node ~/scripts/job.js", 0, "v99 of nvm\n// job.js was read"),
    ("cargo", "work", "stint run -- cargo --version", 0, "1.99 of rustup"),
    ("git below the top of a repository", "repo/sub", "stint run -- git status --short", 0, None),
    ("a script in the home itself", ".", "stint run -- ./x.sh", 2, "!cannot run in .*stint's own data is inside it"),
    ("input by a pipe", "work", "echo data | stint run -- cat", None, None),
    ("a variable", "work", "FOO=1 stint run --env FOO -- sh -c 'echo FOO is $FOO'", 0, "FOO is 1"),
    ("two streams", "work", "stint run -- sh -c 'echo out; echo err >&2' 2>/dev/null", 0, "^out$"),
    ("a secret stays one", "work", "stint run -- sh -c 'cat ~/.ssh/id_ed25519'", None, "!(?i)denied|no such file"),
    ("the exit status", "work", "stint run -- sh -c 'exit 3'", 3, None),
    ("a command for later", "work", "stint wait --timeout 1m $(stint add 'tests' --max-attempts 2 -- make test)", 0, "done"),
    ("a failure says why", "work", "stint run -- sh -c 'echo no disk >&2; exit 4'", 4, "!no disk"),
    ("the list", "work", "stint ls --all", 0, "tests"),
    ("a wrong verb", "work", "stint rm t-1", 2, "!try +stint cancel t-1"),
    ("help", "work", "stint help", 0, "server and worker, here"),
    ("doctor", "work", "stint doctor", None, "!passed"),
    ("a second up", "work", "stint up", 0, "already up"),
)


class Walk:
    def __init__(self, user):
        self.user = user
        self.home = tempfile.mkdtemp(prefix="new-")
        self.passed = self.failed = self.screens = 0
        for name, text in FILES.items():
            path = os.path.join(self.home, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(text.replace('"HOME/', f'"{self.home}/'))
            os.chmod(path, 0o755)
        os.mkdir(os.path.join(self.home, ".ssh"), 0o700)
        with open(os.path.join(self.home, ".ssh/id_ed25519"), "w") as file:
            file.write("a secret\n")
        programs = os.path.join(self.home, "bin")
        os.mkdir(programs)
        for name in PROGRAMS:
            shutil.copy(os.path.join(BUILD, name), programs)
        self.path = os.pathsep.join([programs] + [os.path.join(self.home, name) for name in (
            ".pyenv/shims", ".nvm/versions/node/v99/bin", ".cargo/bin")] + ["/usr/local/bin", "/usr/bin", "/bin"])
        self.become = []
        if user:
            for folder, _, names in os.walk(self.home):
                for path in [folder] + [os.path.join(folder, name) for name in names]:
                    os.chown(path, user.pw_uid, user.pw_gid)
            self.become = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]

    def type(self, line, where=".", **more):
        env = {"HOME": self.home, "PATH": self.path, "LANG": "C.UTF-8", "TERM": "xterm", "PAGER": "cat", "SHELL": "/bin/bash", **more}
        return subprocess.run([*self.become, "bash", "-c", line], cwd=os.path.join(self.home, where), env=env, capture_output=True, text=True,
                              timeout=STEP_S, stdin=subprocess.DEVNULL)

    def tell(self, title, good, why=""):
        self.passed, self.failed = self.passed + good, self.failed + (not good)
        print(f"{'ok    ' if good else 'FAILED'} {self.user.pw_name if self.user else pwd.getpwuid(os.geteuid()).pw_name}: {title}")
        if not good:
            print("       " + why.strip().replace("\n", "\n       "))

    def step(self, title, where, line, status, wanted):
        try:
            ran = self.type(line, where)
        except subprocess.TimeoutExpired:
            return self.tell(title, False, f"$ {line}\nit does not end")
        text, pattern = (ran.stderr, wanted[1:]) if wanted and wanted.startswith("!") else (ran.stdout, wanted)
        good = (status is None or ran.returncode == status) and (not pattern or re.search(pattern, text.strip()))
        self.tell(title, bool(good), f"$ {line}   # exits {ran.returncode}\n{ran.stdout}{ran.stderr}")

    def screen(self, line, columns):
        """What stands on a terminal of that width when the command has ended."""
        self.screens += 1
        env = {"HOME": self.home, "PATH": self.path, "LANG": "C.UTF-8", "TERM": "xterm", "PAGER": "cat", "SHELL": "/bin/sh"}
        tmux = [*self.become, "tmux", "-S", os.path.join(self.home, f"tmux-{self.screens}"), "-f", "/dev/null"]

        def run(*args):
            return subprocess.run([*tmux, *args], env=env, capture_output=True, text=True, timeout=STEP_S, cwd=self.home).stdout

        run("new-session", "-d", "-x", str(columns), "-y", "90", f"{line}; echo THE-END; sleep 60")
        until, screen = time.monotonic() + STEP_S, ""
        while "THE-END" not in screen and time.monotonic() < until:
            screen = run("capture-pane", "-p")
        run("kill-server")
        return screen

    def look(self, columns):
        """On a terminal no word is broken and no line is wider than it."""
        for line in ("stint help", "stint help up", "stint ls --all", "stint doctor --all"):
            screen = self.screen(line, columns)
            ran = self.type(line)
            known = set(re.findall(r"[A-Za-z]{3,}", self.screen(line, 200) + ran.stdout + ran.stderr))
            broken = [word for word in re.findall(r"(?m)(?<=\s)[A-Za-z]{3,}$", screen) if word not in known]
            good = "THE-END" in screen and all(len(text.rstrip()) <= columns for text in screen.splitlines()) and not broken
            self.tell(f"{line} at {columns} columns", good, f"{broken}\n{screen}")

    def walk(self):
        self.type("git init -q repo; cd repo; git add .; git -c user.name=me -c user.email=me@example.org commit -qm begin")
        self.step("stint up --detach", ".", "stint up --detach --listen 127.0.0.1:0", 0, "worker +ready")
        try:
            for step in TYPED:
                self.step(*step)
            if shutil.which("tmux"):
                for columns in (80, 120):
                    self.look(columns)
            else:
                print("skipped: there is no tmux here (package tmux)")
        finally:
            self.step("stint down", ".", "stint down --now", 0, "Stopped")
            shutil.rmtree(self.home, True)


def main():
    users = [None]
    if os.geteuid() == 0 and shutil.which("setpriv"):
        users.append(pwd.getpwnam("nobody"))
    passed = failed = 0
    for user in users:
        walk = Walk(user)
        walk.walk()
        passed, failed = passed + walk.passed, failed + walk.failed
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
