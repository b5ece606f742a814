"""`network` of an executor as a list of hosts: reached by name through the worker's proxy, and nothing else is."""
import http.server
import json
import os
import socketserver
import subprocess
import sys
import threading
import unittest

from hang import HANG_S
import stintd
import test_pool
from test_child_socket import Case
from test_walls import needs, rootfs_with_usr
from test_worker import WORKER

PRELUDE = """
import os, socket, sys, threading, urllib.error, urllib.request
port = int(sys.argv[1])

def get(url):
    try:
        with urllib.request.urlopen(url, timeout=%d) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)

def tunnel(host, port):
    place = os.environ["HTTPS_PROXY"].removeprefix("http://").split(":")
    line = socket.create_connection((place[0], int(place[1])), timeout=%d)
    line.sendall(b"CONNECT %%s:%%d HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n" %% (host.encode(), port))
    head = b""
    while not head.endswith(b"\\r\\n\\r\\n"):
        more = line.recv(1)
        if not more:
            break
        head += more
    return line, int(head.split()[1])
""" % (HANG_S, HANG_S)


class Answer(http.server.BaseHTTPRequestHandler):
    """Says what it was asked for."""

    def do_GET(self):
        body = json.dumps({"path": self.path, "headers": dict(self.headers)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(65536):
            self.request.sendall(data)


class EchoServer(socketserver.ThreadingTCPServer):
    request_queue_size = 128
    daemon_threads = True


class Served:
    def serve(self, server):
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        self.addCleanup(thread.join, HANG_S)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server.server_address[1]

    def web(self):
        return self.serve(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer))

    def echo(self):
        return self.serve(EchoServer(("127.0.0.1", 0), Echo))


class Hosts(Case, Served):
    def run_in(self, level, hosts, port, script):
        """The log of a task that ran this with that network."""
        more = {"isolation": level, "network": hosts}
        if level == "container":
            more.update(rootfs=rootfs_with_usr(self), read=["/usr"])
        argv = [sys.executable, "-c", PRELUDE + script, str(port)]
        self.worker({"x": {"kind": "command", "argv": argv, **more}})
        self.create(id="t", maxAttempts=1)
        self.done("t")
        self.until(lambda: not self.runs(), "the run dir is removed")
        return self.log("t")["data"]

    ASK = """
status, body = get("http://127.0.0.1:%d/a?b=c" % port)
print(status, body)
"""

    def is_reached(self, level):
        said = self.run_in(level, ["127.0.0.1"], self.web(), 'os.environ["NO_PROXY"] = os.environ["no_proxy"] = ""' + self.ASK)
        self.assertTrue(said.startswith('200 {"path": "/a?b=c"'), said)
        self.assertNotIn("stint:", said)

    @needs("sandbox")
    def test_a_host_of_the_list_is_reached_from_a_sandbox(self):
        self.is_reached("sandbox")

    @needs("container")
    def test_a_host_of_the_list_is_reached_from_a_container(self):
        self.is_reached("container")

    @needs("sandbox")
    def test_there_is_no_way_around_the_proxy(self):
        said = self.run_in("sandbox", ["127.0.0.1"], self.web(), self.ASK)  # NO_PROXY has this address
        self.assertTrue(said.startswith("0 "), said)
        self.assertIn("refused", said)

    @needs("sandbox")
    def test_a_host_that_is_not_listed_is_refused_and_the_log_has_the_line_to_add(self):
        said = self.run_in("sandbox", ["example.org"], 1, """
for _ in range(2):
    print(get("http://files.example.net/x"))
print("tunnel", tunnel("evil.example", 443)[1])
""")
        self.assertEqual(said.count("(403,"), 2, said)
        self.assertIn("host_not_listed", said)
        self.assertIn("tunnel 403", said)
        self.assertEqual(said.count('stint: files.example.net:80 was refused: "network" of its executor does not list it'), 1, said)
        self.assertRegex(said, r'To allow it add "evil.example" to "network" of executor x in /.*\.json, and restart the worker')

    @needs("sandbox")
    def test_a_name_does_not_lead_to_this_machine_unless_the_address_is_listed(self):
        said = self.run_in("sandbox", ["localhost"], self.web(), """
line, status = tunnel("localhost", port)
print("status", status)
""")
        self.assertIn("status 403", said)
        self.assertRegex(said, r'stint: localhost:\d+ was refused: it has the address (127.0.0.1|::1), which is not public')
        self.assertRegex(said, r'To allow it add "(127.0.0.1|::1)" to "network" of executor x')

    @needs("sandbox")
    def test_a_name_whose_address_is_listed_is_resolved_by_the_worker(self):
        said = self.run_in("sandbox", ["localhost", "127.0.0.1", "::1"], self.web(), """
line, status = tunnel("LocalHost", port)
print("status", status)
""")
        self.assertIn("status 200", said)

    @needs("sandbox")
    def test_many_tunnels_carry_many_bytes_both_ways(self):
        said = self.run_in("sandbox", ["127.0.0.1"], self.echo(), """
data = os.urandom(1 << 20)
right = []

def talk():
    line, status = tunnel("127.0.0.1", port)
    threading.Thread(target=line.sendall, args=(data,)).start()
    heard = b""
    while len(heard) < len(data):
        more = line.recv(65536)
        if not more:
            break
        heard += more
    right.append(status == 200 and heard == data)

threads = [threading.Thread(target=talk) for _ in range(40)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(right.count(True), "of", len(right))
""")
        self.assertEqual(said, "40 of 40\n")

    @needs("sandbox")
    def test_a_host_that_does_not_answer_is_told(self):
        said = self.run_in("sandbox", ["127.0.0.1"], 1, """
print("tunnel", tunnel("127.0.0.1", 1)[1])
os.environ["NO_PROXY"] = os.environ["no_proxy"] = ""
print(get("http://127.0.0.1:1/"))
""")
        self.assertIn("tunnel 502", said)
        self.assertIn("host_not_reached", said)
        self.assertIn("connection refused", said)

    @needs("sandbox")
    def test_what_is_no_request_for_a_proxy_is_refused(self):
        said = self.run_in("sandbox", [], 1, """
for text in (b"GET / HTTP/1.1\\r\\n\\r\\n", b"x" * 20000, b"GET https://a.b/ HTTP/1.1\\r\\n\\r\\n"):
    line = socket.create_connection(("127.0.0.1", 3128), timeout=60)
    line.sendall(text)
    print(line.recv(100).split()[1].decode())
""")
        self.assertEqual(said.split(), ["400", "400", "400"])

    @needs("sandbox")
    def test_the_server_is_reached_beside_it(self):
        port = self.web()
        said = self.run_in("sandbox", ["127.0.0.1"], port, """
line = socket.socket(socket.AF_UNIX)
line.connect(os.environ["STINT_URL"].removeprefix("unix:"))
line.sendall(b"GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
print(line.recv(100).split()[1].decode())
print("strays", len([name for name in os.listdir("/proc") if name.isdigit()]))
""")
        self.assertEqual(said.split()[:3], ["200", "strays", "2"])


@needs("sandbox")
class Pools(test_pool.Case, Served):
    def test_the_workers_of_a_pool_reach_the_hosts_of_its_list(self):
        self.pool("any", isolation="sandbox", network=["127.0.0.1"])
        self.create(id="t", module="fetch", payload="http://127.0.0.1:%d/" % self.web())
        self.assertEqual(self.is_in("t", "done", "failed", "blocked", "scheduled")["result"], 200)


class Mistakes(unittest.TestCase):
    def complaint(self, **executor):
        with stintd.tempfile.TemporaryDirectory() as home:
            path = os.path.join(home, "w.json")
            with open(path, "w") as file:
                json.dump({"executors": {"x": {"kind": "command", "argv": ["true"], **executor}}}, file)
            ran = subprocess.run([WORKER, "--home", home, "--config", path, "--check-config"], capture_output=True, text=True,
                                 timeout=HANG_S, env=stintd.environment())
        return ran.returncode, ran.stderr + ran.stdout

    def test_a_list_of_hosts_needs_a_wall_that_can_hold_it(self):
        for level in ("process", "vm"):
            status, said = self.complaint(isolation=level, network=["a.b"], kernel="/etc/hostname", initrd="/etc/hostname")
            self.assertEqual(status, 78, said)
            self.assertIn('it has a list of hosts in "network", which needs "sandbox" or "container"', said)

    def test_an_entry_that_is_no_host_is_named(self):
        for entry in ("http://a.b", "a:443", "*", "10.0.0.0/8", 7):
            status, said = self.complaint(isolation="sandbox", network=[entry])
            self.assertEqual(status, 78, said)
            self.assertIn("true, false or a list of hosts", said)

    def test_a_list_that_is_good_is_shown(self):
        status, said = self.complaint(isolation="sandbox", network=["a.b", "*.c.d", "10.1.2.3", "::1"])
        self.assertEqual(status, 0, said)
        self.assertIn("sandbox with a list of hosts", said)


if __name__ == "__main__":
    unittest.main()
