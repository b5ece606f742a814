"""The socket in the run dir of an attempt: its way to the server, at every level, whatever the child, the server and the worker do."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from hang import HANG_S
import stintd
from test_walls import needs, rootfs_with_usr
from test_worker import STINT, Case, Worker, sh

# What the children of these tests share: `connect`, and `ask` for one request on a connection of its own.
PRELUDE = """
import json, os, socket, sys, time
place = os.environ["STINT_URL"].removeprefix("unix:")
with open(os.environ["STINT_TOKEN_FILE"]) as file:
    token = file.read()
here = "/api/tasks/" + os.environ["STINT_TASK_ID"]

def connect():
    line = socket.socket(socket.AF_UNIX)
    line.settimeout(%d)
    line.connect(place)
    return line

def request(method, path, body=None, secret=token):
    data = b"" if body is None else json.dumps(body).encode()
    return (b"%%s %%s HTTP/1.1\\r\\nHost: localhost\\r\\nAuthorization: Bearer %%s\\r\\nContent-Type: application/json\\r\\n"
            b"Content-Length: %%d\\r\\n\\r\\n%%s" %% (method.encode(), path.encode(), secret.encode(), len(data), data))

def answer(line):
    heard = b""
    while b"\\r\\n\\r\\n" not in heard:
        more = line.recv(65536)
        if not more:
            return 0, heard
        heard += more
    head, body = heard.split(b"\\r\\n\\r\\n", 1)
    length = int(next(part.split(b":")[1] for part in head.split(b"\\r\\n") if part.lower().startswith(b"content-length")))
    while len(body) < length:
        body += line.recv(65536)
    return int(head.split()[1]), body

def ask(method, path, body=None, secret=token):
    line = connect()
    line.sendall(request(method, path, body, secret))
    return answer(line)

def note(text):
    return ask("POST", here + "/progress", {"workerId": os.environ["STINT_WORKER_ID"], "fence": os.environ["STINT_FENCE"], "note": text})[0]

def until(name):
    while not os.path.exists(name):
        time.sleep(0.02)

def put(name, text=""):
    with open(name + ".new", "w") as file:
        file.write(text)
    os.rename(name + ".new", name)
""" % HANG_S


def python(script, **more):
    return {"kind": "command", "argv": [sys.executable, "-c", PRELUDE + script], **more}


class Case(Case):
    def put(self, name):
        with open(self.path(name), "w"):
            pass

    def done(self, task):
        found = self.is_in(task, "done", "failed", "blocked", "scheduled")
        self.assertEqual(found["state"], "done", (found["error"], self.log(task)["data"][-2000:]))
        return found

    def child(self, script, *flags, level="process", id="t", **options):
        """A task that runs this, in a work dir of its own."""
        os.makedirs(self.path(id), exist_ok=True)
        more = {"isolation": level}
        if level == "container":
            more.update(rootfs=rootfs_with_usr(self), read=["/usr"])
        worker = self.worker({"x": python(script, **more)}, *flags, roots=[self.folder], **options)
        self.create(id=id, executor="x", workingDir=self.path(id), maxAttempts=1)
        return worker

    def stint(self, *arguments):
        ran = subprocess.run([STINT, *arguments], env=stintd.environment(STINT_HOME=self.server.home), capture_output=True, text=True,
                             timeout=HANG_S)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout

    def noted(self, task):
        """The last note that the server has of it."""
        events = self.client.get("/api/tasks/%s/events" % task).json["events"]
        return [event["data"]["note"] for event in events if "note" in event["data"]][-1]

    def runs(self):
        return os.listdir(os.path.join(self.server.home, "runs"))


class Levels(Case):
    TRY = """
assert place.endswith("/stint.sock"), place
assert os.path.dirname(place) == os.path.dirname(os.environ["STINT_TOKEN_FILE"]), place
print("status", note("from here"))
"""

    def reports(self, level, *flags, **options):
        self.child(self.TRY, *flags, level=level, **options)
        self.done("t")
        self.assertEqual(self.noted("t"), "from here")
        self.assertIn("status 200", self.log("t")["data"])

    def test_a_process_reports_by_the_socket_of_its_run_dir(self):
        self.reports("process")

    @needs("sandbox")
    def test_a_sandbox_reports_by_the_socket_of_its_run_dir(self):
        self.reports("sandbox")

    @needs("container")
    def test_a_container_reports_by_the_socket_of_its_run_dir(self):
        self.reports("container")

    @needs("sandbox")
    def test_a_server_that_is_reached_by_tcp_alone_is_reached_without_a_network(self):
        home = tempfile.mkdtemp(prefix="stint-remote-")
        self.addCleanup(shutil.rmtree, home, True)
        self.reports("sandbox", "--remote", home=home)

    def in_a_long_home(self, level):
        home = os.path.join(tempfile.mkdtemp(prefix="stint-long-"), 100 * "x")
        os.mkdir(home, 0o700)
        self.addCleanup(shutil.rmtree, os.path.dirname(home), True)
        self.child('print(len(place), place); print("status", note("from here"))', level=level, home=home)
        self.done("t")
        self.assertEqual(self.noted("t"), "from here")

    def test_a_path_that_is_too_long_for_an_address_is_shortened_by_a_link(self):
        links = {name for name in os.listdir("/tmp") if name.startswith("stint-way-")}
        self.in_a_long_home("process")
        self.assertLessEqual({name for name in os.listdir("/tmp") if name.startswith("stint-way-")}, links)

    @needs("sandbox")
    def test_and_behind_a_wall_by_a_name_of_its_own(self):
        self.in_a_long_home("sandbox")

    def test_the_socket_adds_no_authority(self):
        self.child("""
for secret in ("", "stint_admin_0000000000000000_" + 43 * "A"):
    print("stranger", ask("GET", here, secret=secret)[0])
print("own", ask("GET", here)[0], "all", ask("GET", "/api/tasks")[0])
""")
        self.done("t")
        self.assertEqual(self.log("t")["data"].splitlines(), ["stranger 401", "stranger 401", "own 200 all 403"])

    def test_the_command_line_reports_by_it(self):
        self.worker({"x": sh(f'echo "$STINT_URL"; {STINT} task progress hello && {STINT} task done --result 7')})
        self.create(id="t")
        self.assertEqual((self.done("t")["result"], self.noted("t")), (7, "hello"))
        self.assertRegex(self.log("t")["data"], "^unix:.*/runs/.*/stint.sock")


class Children(Case):
    def test_of_more_than_eight_connections_the_others_wait_for_their_turn(self):
        self.child("""
lines = [connect() for _ in range(40)]
for line in lines:
    line.sendall(request("GET", here))
statuses = []
for line in lines:
    statuses.append(answer(line)[0])
    line.close()
print(sorted(set(statuses)), len(statuses))
""")
        self.done("t")
        self.assertEqual(self.log("t")["data"], "[200] 40\n")

    def test_one_that_connects_in_a_loop_disturbs_neither_operators_nor_its_sibling(self):
        os.mkdir(self.path("s"))
        self.worker({"loop": python("""
held = []
for number in range(1000):
    try:
        line = connect() if number % 2 else socket.socket(socket.AF_UNIX)
        line.setblocking(False)
        line.connect_ex(place)
        held.append(line)
        if number % 4 == 1:
            line.send(b"GET / HTTP/1.1")
    except OSError:
        pass
    held = held[-300:]
    if number == 100:
        put("begun")
until("stop")
print("looped")
"""), "sibling": python("""
until("go")
for number in range(20):
    print("status", note("number %d" % number))
""")}, "--concurrency", "2", roots=[self.folder])
        os.mkdir(self.path("t"))
        self.create(id="s", executor="sibling", workingDir=self.path("s"), maxAttempts=1)
        self.create(id="t", executor="loop", workingDir=self.path("t"), maxAttempts=1)
        self.read_of("t", "begun")
        self.put("s/go")
        for _ in range(20):
            self.assertIn("t", self.stint("ls"))
        self.done("s")
        self.assertEqual(self.noted("s"), "number 19")
        self.assertEqual(self.log("s")["data"].count("status 200"), 20)
        self.put("t/stop")
        self.assertEqual(self.done("t")["result"], "looped")

    def read_of(self, task, name):
        return self.until(lambda: os.path.exists(self.path(task + "/" + name)), name)

    def test_one_that_says_half_a_request_never_reads_or_floods_is_served_afterwards(self):
        self.child("""
half = connect()
half.sendall(b"POST " + here.encode() + b"/progress HTTP/1.1\\r\\nContent-Length: 100\\r\\n\\r\\n{")
deaf = connect()
deaf.setblocking(False)
try:
    while True:
        deaf.send(request("GET", here))
except OSError:
    pass
flood = connect()
try:
    for _ in range(200):
        flood.sendall(65536 * b"x")
except OSError:
    pass
gone = connect()
gone.sendall(request("GET", here))
gone.close()
print("status", note("all the same"))
""")
        self.done("t")
        self.assertEqual(self.noted("t"), "all the same")
        self.assertIn("status 200", self.log("t")["data"])

    def test_a_body_of_one_mebibyte_comes_through_and_so_does_its_reply(self):
        self.child("""
status, body = ask("PATCH", here, {"metadata": {"x": 900_000 * "y"}})
print(status, len(json.loads(ask("GET", here)[1])["metadata"]["x"]))
""")
        self.done("t")
        self.assertEqual(self.log("t")["data"], "200 900000\n")

    def test_the_refusal_of_a_body_that_is_too_long_arrives(self):
        self.child("""
line = connect()
data = request("PATCH", here, {"metadata": {"x": 3_000_000 * "y"}})
try:
    line.sendall(data)
except OSError:
    pass
print(answer(line)[0])
""")
        self.done("t")
        self.assertEqual(self.log("t")["data"], "413\n")


class Away(Case):
    def test_while_the_server_is_away_a_child_gets_a_sentence_and_then_it_comes_through(self):
        self.child("""
print("first", note("one"))
put("first")
until("killed")
status, body = ask("GET", here)
problem = json.loads(body)
print(status, problem["code"], problem["status"])
print(problem["detail"])
put("second")
while True:
    status = note("two")
    if status != 503:
        break
    time.sleep(0.05)
print("last", status)
""")
        self.until(lambda: os.path.exists(self.path("t/first")), "first")
        self.server.kill()
        self.put("t/killed")
        self.until(lambda: os.path.exists(self.path("t/second")), "second")
        self.server.start()
        self.client.close()
        self.done("t")
        self.assertEqual(self.noted("t"), "two")
        said = self.log("t")["data"]
        self.assertIn("503 server_away 503\n", said)
        self.assertRegex(said, "the worker cannot reach its server .*: nothing was sent; try again")

    def test_the_command_line_waits_for_a_server_that_is_away(self):
        self.worker({"x": sh(f'touch first; while [ ! -e killed ]; do sleep 0.05; done; touch second; {STINT} task progress again && echo told')},
                    roots=[self.folder])
        os.mkdir(self.path("t"))
        self.create(id="t", workingDir=self.path("t"))
        self.until(lambda: os.path.exists(self.path("t/first")), "first")
        self.server.kill()
        self.put("t/killed")
        self.until(lambda: os.path.exists(self.path("t/second")), "second")
        self.server.start()
        self.client.close()
        self.done("t")
        self.assertEqual(self.noted("t"), "again")
        self.assertIn("told", self.log("t")["data"])


class Ends(Case):
    def test_the_run_dir_goes_with_the_attempt(self):
        self.child('print(note("x"))')
        self.done("t")
        self.until(lambda: not self.runs(), "the run dir is removed")

    def test_a_worker_that_is_killed_leaves_a_socket_that_the_next_one_removes(self):
        worker = self.child('print(note("x")); put("begun"); until("never")', "--name", "host")
        self.until(lambda: os.path.exists(self.path("t/begun")), "it has begun")
        run = self.runs()
        self.assertTrue(os.path.exists(os.path.join(self.server.home, "runs", run[0], "stint.sock")))
        worker.process.kill()
        worker.process.wait(HANG_S)
        second = self.worker({"x": sh("echo fine")}, "--name", "host", roots=[self.folder])
        self.until(lambda: not set(self.runs()) & set(run), "the run dir of the dead is removed: " + second.said())
        self.is_in("t", "failed", "done")


if __name__ == "__main__":
    unittest.main()
