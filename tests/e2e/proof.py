"""What the long tests share: a server that may be under strange clocks, and proofs about what it left on disk."""
import contextlib
import os
import resource
import shutil
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from hang import HANG_S
import stintd

VERIFY = os.environ.get("STINT_VERIFY", "build/tests/stint-verify")
CHECKER = os.environ.get("STINT_CHECKER", "build/tests/stint-checker")
CLOCKS_SO = os.environ.get("STINT_CLOCKS_SO", "build/tests/e2e/stint-clocks.so")

STEP_MS = 1000  # less than what a server takes for a stall
GONE = (OSError, ValueError, stintd.http.client.HTTPException)  # what a call ends with when the server dies


def settings(**values):
    """Flags from names with _ for the dot: settings(restart_graceMs=500)."""
    return tuple(word for name, value in values.items() for word in ("--set", "%s=%s" % (name.replace("_", ".", 1), value)))


def raise_limits():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def task_number(task_id):
    """The number behind an id that the server gave."""
    return int(task_id[2:], 36)


class Clocks:
    """The wall clock and the clock since boot of a server, to be set by the test."""

    def __init__(self):
        self.file = tempfile.NamedTemporaryFile(prefix="stint-clocks-")
        self.wall_ms = self.boot_ms = self.monotonic_ms = 0
        self.set()

    def set(self, wall_ms=None, boot_ms=None):
        """A jump of the clock since boot alone is a sleep of the machine."""
        self.wall_ms = self.wall_ms if wall_ms is None else wall_ms
        self.boot_ms = self.boot_ms if boot_ms is None else boot_ms
        self.write()

    def advance(self, ms):
        """All of them: what a process sees that was stopped for so long."""
        self.wall_ms, self.boot_ms, self.monotonic_ms = self.wall_ms + ms, self.boot_ms + ms, self.monotonic_ms + ms
        self.write()

    def write(self):
        os.pwrite(self.file.fileno(), struct.pack("=qqq", self.wall_ms, self.boot_ms, self.monotonic_ms), 0)

    def command(self):
        return ["env", "LD_PRELOAD=" + CLOCKS_SO, "STINT_CLOCKS=" + self.file.name]


class Server(stintd.Server):
    def __init__(self, *flags, clocks=None):
        self.clocks = clocks
        super().__init__(*flags)

    def command(self):
        return (self.clocks.command() if self.clocks else []) + super().command()

    def launch(self):
        """Begin to start, and do not wait."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.home, "url"))
        self.process = subprocess.Popen(self.command(), stderr=self.log, stdin=subprocess.DEVNULL)

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    def cpu_seconds(self):
        with open("/proc/%d/stat" % self.process.pid) as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self):
        with open("/proc/%d/statm" % self.process.pid) as file:
            return int(file.read().split()[1]) * resource.getpagesize()


def judge(place, history, said, limits):
    """Ask the checker about a history, with what clients were told. None, or what is wrong."""
    with open(history, "a") as file:
        file.writelines(line + "\n" for line in said)
    flags = [word for limit in limits for word in ("--set", limit)]
    judged = subprocess.run([CHECKER, *flags, history], capture_output=True, text=True)
    if judged.returncode != 0 and "STINT_KEEP" in os.environ:
        shutil.copytree(place, os.environ["STINT_KEEP"], dirs_exist_ok=True)
    return None if judged.returncode == 0 else judged.stdout + judged.stderr


def verify_url(url, said=(), limits=()):
    """The same of a store in PostgreSQL that nobody serves: the store itself is looked at, which is a start."""
    with tempfile.TemporaryDirectory(prefix="stint-verify-") as place:
        history = os.path.join(place, "history")
        found = subprocess.run([VERIFY, url, history], capture_output=True, text=True)
        return judge(place, history, said, limits) if found.returncode == 0 else found.stdout + found.stderr


def verify(home, said=(), limits=()):
    """Prove a copy of the store in `home`; with what clients were told (lines of a history) ask the checker too.
    None, or what is wrong."""
    with tempfile.TemporaryDirectory(prefix="stint-verify-") as place:
        for name in ("stint.db", "stint.db-wal"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copy(os.path.join(home, name), os.path.join(place, name))
        copy, history = os.path.join(place, "stint.db"), os.path.join(place, "history")
        found = subprocess.run([VERIFY, copy, history], capture_output=True, text=True)
        if found.returncode != 0:
            return found.stdout + found.stderr
        with contextlib.closing(sqlite3.connect(copy)) as database:
            sound = [row[0] for row in database.execute("PRAGMA integrity_check")]
        if sound != ["ok"]:
            return "the file: %s" % sound
        return judge(place, history, said, limits)


class ProofCase(unittest.TestCase):
    flags = ()
    clocks = None
    make_server = Server

    def setUp(self):
        self.server = self.make_server(*self.flags, clocks=self.clocks)
        self.addCleanup(self.server.end)
        self.client = self.connect()

    def connect(self, **options):
        client = self.server.client(**options)
        self.addCleanup(client.close)
        return client

    def restart(self, kill=True):
        if kill:
            self.server.kill()
        else:
            self.assertEqual(self.server.stop(), 0)
        self.client.close()
        self.server.start()

    def create(self, **fields):
        reply = self.client.post("/api/tasks", {"title": "a task", "queue": "q", **fields})
        self.assertEqual(reply.status, 201, reply.body)
        return reply.json["id"]

    def claim(self, worker="w", client=None, **fields):
        reply = (client or self.client).post("/api/claims", {"workerId": worker, "queues": ["q"], **fields})
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json["claims"]

    def report(self, verb, claim, worker="w", client=None, **fields):
        path = "/api/tasks/%s/%s" % (claim["task"]["id"], verb)
        return (client or self.client).post(path, {"workerId": worker, "fence": claim["fence"], **fields})

    def beat(self, worker, **fields):
        return self.client.post("/api/workers/heartbeat", {"workerId": worker, **fields})

    def state(self, task):
        return self.client.get("/api/tasks/" + task).json["state"]

    def events(self, after=0):
        events = []
        while True:
            page = self.client.get("/api/events?after=%s&limit=1000" % after).json
            events, after = events + page["events"], page["next"]
            if not page["events"]:
                return events

    def types_of(self, task):
        return [event["type"] for event in self.events() if event.get("task") == task]

    def metrics(self):
        found = {}
        for line in self.client.get("/metrics").body.decode().splitlines():
            if not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                found[name] = float(value)
        return found

    def metric(self, name):
        return self.metrics().get(name)

    def tasks_left(self):
        """How many are not final and wait for no person."""
        return sum(value for name, value in self.metrics().items()
                   if name.startswith("stint_tasks{") and "blocked" not in name)

    def wait_until(self, condition, seconds=HANG_S, what="it never came true"):
        until = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), until, what)
            time.sleep(0.005)

    def pass_time(self, ms):
        """By the server's clocks, in steps that it does not take for a stall."""
        for _ in range(ms // STEP_MS):
            self.clocks.advance(STEP_MS)
            self.claim("somebody", queues=["nothing"])  # a turn sees it

    def pass_time_until(self, condition, at_most_ms=10 * 60 * 1000):
        """How many milliseconds passed until then."""
        since = self.clocks.boot_ms
        while not condition():
            self.assertLess(self.clocks.boot_ms - since, at_most_ms, "it never came true")
            self.pass_time(STEP_MS)
        return self.clocks.boot_ms - since

    def request_bytes(self, method, path, body=b"", *headers):
        """A request as it stands on the wire."""
        lines = ["%s %s HTTP/1.1" % (method, path), "Host: localhost:%d" % self.server.port,
                 "Authorization: Bearer " + self.server.token, *headers]
        if body:
            lines += ["Content-Type: application/json", "Content-Length: %d" % len(body)]
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + body

    def wire(self, data=b"", local=False):
        wire = socket.socket(socket.AF_UNIX if local else socket.AF_INET, socket.SOCK_STREAM)
        self.addCleanup(wire.close)
        wire.settimeout(HANG_S)
        wire.connect(os.path.join(self.server.home, "stint.sock") if local else ("127.0.0.1", self.server.port))
        wire.sendall(data)
        return wire

    def prove(self, said=(), limits=()):
        """What is on disk now, or was when the server died."""
        wrong = verify_url(self.server.store, said, limits) if self.server.store else verify(self.server.home, said, limits)
        self.assertIsNone(wrong, wrong)


def main():
    """Run each class of the file in a process of its own, all at once: these tests wait more than they work."""
    if len(sys.argv) > 1:
        unittest.main()
    names = [name for name, found in vars(sys.modules["__main__"]).items()
             if isinstance(found, type) and issubclass(found, unittest.TestCase)
             and unittest.defaultTestLoader.getTestCaseNames(found)]
    runs = [subprocess.Popen([sys.executable, sys.argv[0], name], stdin=subprocess.DEVNULL) for name in names]
    sys.exit(max([run.wait() for run in runs]))


class Proved:
    """Before a ProofCase: what each test leaves behind is proved. `limits` are the rules that the flags have changed."""
    limits = ()

    def tearDown(self):
        if self.server.process.poll() is None:
            self.assertEqual(self.server.stop(), 0)
        self.prove(limits=self.limits)
        super().tearDown()
