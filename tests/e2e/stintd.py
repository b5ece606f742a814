"""A real stintd for a test: its own home, a free port, ended by pid. Every reply that a Client gets is compared with
spec/openapi.json."""
import functools
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

from hang import HANG_S

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools"))
import openapi

STINTD = os.environ.get("STINTD", "build/stintd")


def environment(**variables):
    """Ours, without what would configure the server behind the test's back."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("STINT_", "CLAWNSOLE_"))}
    return {**kept, "XDG_CONFIG_HOME": "/nonexistent", "PAGER": "cat", **variables}


def tell_skips():
    """What is skipped says why, on a line of its own: ./dev check collects them."""
    usual = unittest.TextTestResult.addSkip

    def add_skip(result, test, reason):
        usual(result, test, reason)
        print("\nskipped: %s: %s" % (test.id().partition(".")[2], " ".join(reason.split())), flush=True)

    unittest.TextTestResult.addSkip = add_skip


tell_skips()


@functools.cache
def crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


def seal(*columns):
    """The checksum that a row of the store has behind these columns: see src/store/sqlite/seal.c, written a second time."""
    crc, table = 0xFFFFFFFF, crc32c_table()
    for column in columns:
        if isinstance(column, int):
            data = column.to_bytes(8, "little", signed=True)
        else:
            data = column.encode() if isinstance(column, str) else column
            data = len(data).to_bytes(8, "little") + data
        for byte in data:
            crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return int.from_bytes((crc ^ 0xFFFFFFFF).to_bytes(4, "little"), "little", signed=True)


@functools.cache
def contract():
    return openapi.Contract()


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)


class LocalConnection(http.client.HTTPConnection):
    """HTTP over the Unix socket."""

    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Client:
    """One connection that is kept alive."""

    def __init__(self, server, token=None, local=False):
        self.server, self.local = server, local
        self.token = server.token if token is None else token
        self.connection = self.asked = None

    def open(self):
        if self.local:
            return LocalConnection(os.path.join(self.server.home, "stint.sock"), timeout=HANG_S)
        if self.server.url.startswith("https:"):
            context = ssl.create_default_context(cafile=self.server.ca)
            return http.client.HTTPSConnection("127.0.0.1", self.server.port, timeout=HANG_S, context=context)
        return http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=HANG_S)

    def call(self, method, path, body=None, headers=None, judged=True):
        self.send(method, path, body, headers)
        return self.receive(judged)

    def send(self, method, path, body=None, headers=None):
        sent = {"Authorization": "Bearer " + self.token} if self.token else {}
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        sent.update(headers or {})
        if self.connection is None:
            self.connection = self.open()
        self.asked = method, path, data
        self.connection.request(method, path, body=data, headers=sent)

    def receive(self, judged=True):
        """The reply to what was sent last."""
        method, path, data = self.asked
        answer = self.connection.getresponse()
        reply = Reply(answer.status, dict(answer.getheaders()), answer.read())
        if judged:
            contract().judge(method, path, reply.status, reply.headers, reply.body, data)
        return reply

    def post(self, path, body=None, headers=None, judged=True):
        return self.call("POST", path, {} if body is None else body, headers, judged)

    def get(self, path):
        return self.call("GET", path)

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None


class Server:
    def __init__(self, *flags, log=None, **variables):
        """`log` is a descriptor for its stderr; without one there is a file, for said(). `variables` are of its environment."""
        self.log_to = log
        self.ca = None  # of a server with TLS: the file that clients trust
        self.variables = variables
        self.home = tempfile.mkdtemp(prefix="stint-e2e-")
        self.flags = list(flags)
        self.process = None
        self.store = None  # in PostgreSQL, where the long check runs these tests there
        if "STINT_E2E_POSTGRES" in os.environ and "--store" not in flags:
            self.store = "%s&schema=e2e_%s" % (os.environ["STINT_E2E_POSTGRES"], os.path.basename(self.home).replace("-", "_"))
        self.start()

    def command(self):
        return [STINTD, "--home", self.home, "--listen", "127.0.0.1:0", *(["--store", self.store] if self.store else []), *self.flags]

    def start(self):
        if self.process is not None:
            self.log.close()
        self.log = open(os.path.join(self.home, "log"), "ab")
        url = os.path.join(self.home, "url")
        if os.path.exists(url):
            os.unlink(url)
        self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, env=environment(**self.variables),
                                        stderr=self.log if self.log_to is None else self.log_to)
        until = time.monotonic() + HANG_S
        while not os.path.exists(url):
            if self.process.poll() is not None:
                raise RuntimeError("stintd ended: " + self.said())
            if time.monotonic() > until:
                raise RuntimeError("stintd does not start: " + self.said())
            time.sleep(0.005)
        with open(url) as file:
            self.url = file.read().strip()
        self.port = int(self.url.rsplit(":", 1)[1])
        with open(os.path.join(self.home, "admin.token")) as file:
            self.token = file.read().strip()

    def said(self):
        with open(os.path.join(self.home, "log")) as file:
            return file.read()

    def client(self, **options):
        return Client(self, **options)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(HANG_S)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(HANG_S)

    def end(self):
        if self.process.poll() is None:
            self.stop() if "STINT_COVERED" in os.environ else self.kill()  # a killed program does not say what it reached
        self.log.close()
        shutil.rmtree(self.home, ignore_errors=True)


def last_change(client):
    """The number of the last event that somebody caused: the server tells news of queues by itself."""
    after, last = "0", 0
    while True:
        page = client.get("/api/events?limit=1000&after=" + after).json
        last = max([last, *(event["seq"] for event in page["events"] if event["type"] not in ("queue.idle", "queue.limited"))])
        if page["next"] == after or not page["events"]:
            return last
        after = page["next"]


class Case(unittest.TestCase):
    """A test with a server of its own and one client of it."""
    flags = ()
    patience_s = HANG_S

    def setUp(self):
        self.server = Server(*self.flags)
        self.client = self.server.client()

    def tearDown(self):
        self.client.close()
        self.server.end()

    def until(self, question, what):
        """Its answer, once that is true."""
        deadline = time.monotonic() + self.patience_s
        while not (found := question()):
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.02)
        return found

    def last_change(self):
        return last_change(self.client)

    def create(self, **fields):
        reply = self.client.post("/api/tasks", {"title": "a task", "queue": "q", **fields})
        self.assertEqual(reply.status, 201, reply.body)
        return reply.json
