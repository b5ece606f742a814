"""What both SDKs must do, against the real server. A test leads a driver (driver.py, driver.ts), which is a client, a worker or a
worker of a pool and uses the SDK as it was packed and installed."""
import json
import os
import queue
import re
import signal
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))
from between import Between
from hang import HANG_S
import proof
from stintd import Case, Server, environment
from tls import Certificates, Stranger, foreign

LEASE_MS = 60_000


def lines_of_code(folder, generated):
    """Neither blank nor a comment. Texts that describe a Python class or function are comments, too."""
    lines = 0
    for name in os.listdir(folder):
        if not name.endswith((".py", ".ts")) or name == generated:
            continue
        with open(os.path.join(folder, name)) as file:
            text = file.read()
        text = re.sub(r'^ *"""(?s:.*?)"""$' if name.endswith(".py") else r"/\*(?s:.*?)\*/", "", text, flags=re.M)
        lines += len([line for line in text.splitlines() if line.strip() and not line.strip().startswith(("#", "//"))])
    return lines


class Driver:
    """A process that speaks lines of JSON."""

    def __init__(self, command, *arguments, variables=None):
        self.process = subprocess.Popen([*command[0], *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=environment(HOME="/nonexistent", **command[1], **(variables or {})))
        self.said, self.lines = [], queue.Queue()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            self.said.append(json.loads(line))
            self.lines.put(self.said[-1])
        self.lines.put(None)

    def next(self):
        line = self.lines.get(timeout=HANG_S)
        if line is None:
            raise AssertionError("the driver has ended")
        return line

    def until(self, **words):
        while not words.items() <= (line := self.next()).items():
            pass
        return line

    def call(self, name, *arguments, **options):
        self.process.stdin.write(json.dumps({"call": name, "args": arguments, "options": options}).encode() + b"\n")
        self.process.stdin.flush()
        return self.next()

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(HANG_S)
        self.process.stdin.close()
        self.process.stdout.close()


class Scenarios(Case):
    """A subclass has `command`: the words that start its driver, and variables for it."""
    command = None
    flags = ("--set", "restart.graceMs=0", "--set", "worker.leaseMinMs=500", "--set", "retry.baseMs=20", "--set", "retry.maxMs=200")

    def setUp(self):
        super().setUp()
        self.drivers = []
        self.place = "unix:" + os.path.join(self.server.home, "stint.sock")

    def tearDown(self):
        for driver in self.drivers:
            driver.end()
        super().tearDown()

    def drive(self, *arguments, variables=None):
        driver = Driver(self.command, *arguments, variables=variables)
        self.drivers.append(driver)
        return driver

    def caller(self, variables=None, **options):
        return self.drive("call", json.dumps(options), variables=variables)

    def worker(self, url=None, **options):
        client = {"url": url or self.place, "token": self.server.token}
        return self.drive("worker", json.dumps({"client": client, "queues": ["q"], "leaseMs": LEASE_MS, **options}))

    def between(self):
        door = Between(self.server)
        self.addCleanup(door.close)
        return door

    def task(self, id):
        return self.client.get("/api/tasks/" + id).json

    def until_state(self, id, state):
        return self.until(lambda: (task := self.task(id))["state"] == state and task, "%s never was %s" % (id, state))

    def events(self, id):
        return [event["type"] for event in self.client.get("/api/tasks/%s/events?limit=1000" % id).json["events"]]

    # ---- the client ----

    def test_a_create_whose_reply_is_lost_makes_one_task(self):
        door, lost = self.between(), []
        door.after = lambda request, answer: None if lost else lost.append(request) or False
        made = self.caller(url=door.url, token=self.server.token).call("createTask", {"title": "once", "queue": "q"})
        self.assertEqual(made["ok"]["title"], "once")
        self.assertEqual(len(door.requests), 2)
        self.assertEqual([task["id"] for task in self.client.get("/api/tasks").json], [made["ok"]["id"]])

    def test_the_same_key_is_the_same_task_and_another_body_a_conflict(self):
        caller = self.caller(url=self.place, token=self.server.token)
        first = caller.call("createTask", {"title": "a"}, idempotencyKey="k")
        again = caller.call("createTask", {"title": "a"}, idempotencyKey="k")
        self.assertEqual(first["ok"]["id"], again["ok"]["id"])
        self.assertEqual(caller.call("createTask", {"title": "b"}, idempotencyKey="k"), {"problem": "idempotency_conflict", "status": 422})

    def test_a_stale_fence_is_a_problem_and_is_sent_once(self):
        door = self.between()
        self.create(id="t")
        caller = self.caller(url=door.url, token=self.server.token)
        old = caller.call("claimTask", "t", {"workerId": "w"})["ok"]["fence"]
        self.assertNotEqual(caller.call("claimTask", "t", {"workerId": "w", "resumeOwned": True})["ok"]["fence"], old)
        answer = caller.call("completeTask", "t", {"workerId": "w", "fence": old, "result": 1})
        self.assertEqual(answer, {"problem": "stale_claim", "status": 409})
        self.assertEqual(len([request for request in door.requests if request.path.endswith("/complete")]), 1)

    def test_reads_are_repeated_after_a_5xx_and_changes_without_a_key_are_not(self):
        door, answers = self.between(), [(500, {"code": "oops"}), (502, {})]
        door.before = lambda request: answers.pop() if answers else None
        caller = self.caller(url=door.url, token=self.server.token)
        self.assertIn("ok", caller.call("version"))
        self.assertEqual(len(door.requests), 3)
        door.after = lambda request, answer: False
        self.assertEqual(caller.call("createToken", {"kind": "viewer", "name": "v"})["sent"], True)
        self.assertEqual(len([request for request in door.requests if request.path == "/api/tokens"]), 1)

    def test_the_next_address_is_asked_when_the_first_is_away(self):
        self.assertIn("ok", self.caller(url="http://127.0.0.1:1," + self.place, token=self.server.token).call("version"))

    def test_it_finds_its_server_and_token_as_stint_does(self):
        self.assertIn("ok", self.caller(variables={"STINT_HOME": self.server.home}).call("version"))
        file = os.path.join(self.server.home, "admin.token")
        self.assertIn("ok", self.caller(variables={"STINT_URL": self.server.url, "STINT_TOKEN_FILE": file}).call("version"))
        self.assertIn("ok", self.caller(variables={"STINT_URL": self.server.url, "STINT_TOKEN": self.server.token}).call("version"))
        # no token of ours goes to an address that the environment names, unless the environment has one, too
        self.assertEqual(self.caller(variables={"STINT_URL": self.server.url}).call("version"), {"problem": "unauthorized", "status": 401})
        self.assertIn("no server runs in", self.caller(home="/nonexistent").next()["error"])

    def test_no_token_goes_over_plain_http_to_another_computer(self):
        self.assertIn("plain HTTP", self.caller(url="http://192.0.2.1:8787", token="t").next()["error"])

    def test_a_token_file_that_was_replaced_is_read_again(self):
        with tempfile.NamedTemporaryFile("w", suffix=".token") as file:
            print("stint_worker_old", file=file, flush=True)
            caller = self.caller(url=self.place, tokenFile=file.name)
            self.assertEqual(caller.call("version"), {"problem": "unauthorized", "status": 401})
            file.seek(0)
            print(self.server.token, file=file, flush=True)
            self.assertIn("ok", caller.call("version"))

    def test_tls_needs_a_ca_that_is_trusted(self):
        with tempfile.TemporaryDirectory() as home:
            cert, key = os.path.join(home, "cert"), os.path.join(home, "key")
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                            "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert],
                           check=True, capture_output=True)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(cert, key)
            door = self.between()
            door.door.socket = context.wrap_socket(door.door.socket, server_side=True)
            url = door.url.replace("http://127.0.0.1", "https://localhost")
            self.assertIn("ok", self.caller(url=url, token=self.server.token, ca=cert).call("version"))
            self.assertIn("error", self.caller(url=url, token=self.server.token).call("version"))
            self.assertEqual(len(door.requests), 1)

    def test_a_server_of_https(self):
        certificates = Certificates()
        self.addCleanup(certificates.close)
        secure = Server(*self.flags, *certificates.flags())
        self.addCleanup(secure.end)
        client = {"url": secure.url, "token": secure.token, "ca": certificates.ca}
        self.assertIn("ok", self.caller(**client).call("version"))
        self.assertNotIn("ok", self.caller(url=secure.url, token=secure.token).call("version"))
        with tempfile.TemporaryDirectory() as folder:
            cert, key = foreign(folder, "other.example")
            stranger = Stranger(cert, key)
            self.addCleanup(stranger.close)
            elsewhere = "https://127.0.0.1:%d" % stranger.port
            self.assertNotIn("ok", self.caller(url=elsewhere, token=secure.token, ca=cert).call("version"))
            self.assertTrue(stranger.failed.wait(HANG_S))
            self.assertEqual(stranger.heard, b"")
        local = secure.client(local=True)
        self.addCleanup(local.close)
        self.assertEqual(local.post("/api/tasks", {"id": "t", "title": "x", "queue": "q", "payload": {"value": 7}}).status, 201)
        self.drive("worker", json.dumps({"client": client, "queues": ["q"], "leaseMs": LEASE_MS}))
        done = self.until(lambda: (task := local.get("/api/tasks/t").json)["state"] == "done" and task, "it was never done")
        self.assertEqual(done["result"], 7)

    # ---- the worker ----

    def test_a_job_waits_for_its_subtasks_and_goes_on_with_their_results(self):
        self.create(id="whole", executor="split", payload={"do": "split"})
        worker = self.worker(executors=["split"])
        self.assertEqual(worker.until(stopped="whole")["why"], "Waiting")
        self.until_state("whole", "waiting")
        for name in ("part-1", "part-2"):  # each once, though the next attempt adds them again
            claim = self.client.post("/api/claims", {"workerId": "other", "queues": ["parts"]}).json["claims"][0]
            self.assertEqual((claim["task"]["id"], claim["task"]["parent"]), (name, "whole"))
            done = self.client.post("/api/tasks/%s/complete" % name, {"workerId": "other", "fence": claim["fence"], "result": name})
            self.assertEqual(done.status, 200, done.body)
        done = self.until_state("whole", "done")
        self.assertEqual([(each["id"], each["state"], each["result"]) for each in done["result"]],
                         [("part-1", "done", "part-1"), ("part-2", "done", "part-2")])
        self.assertEqual((done["attempt"], done["spent"]), (2, 0))

    def test_a_hundred_tasks_are_each_done_once(self):
        drafts = [{"id": "t%d" % n, "queue": "q", "payload": {"value": n}} for n in range(100)]
        self.assertEqual(self.client.post("/api/tasks/batch", drafts).status, 200)
        worker = self.worker(concurrency=4)
        done = self.until(lambda: len(found := self.client.get("/api/tasks?state=done").json) == 100 and found, "they are not all done")
        self.assertEqual({task["id"]: task["attempt"] for task in done}, {draft["id"]: 1 for draft in drafts})
        self.assertEqual(self.task("t42")["result"], 42)
        self.assertEqual(len([line for line in worker.said if "began" in line]), 100)

    def test_a_claim_whose_reply_is_lost_is_the_same_claim(self):
        door, lost = self.between(), []
        self.create(id="t", payload={"value": 1})
        door.after = lambda request, answer: None if lost or not request.is_claim() else lost.append(1) or False
        self.worker(door.url)
        self.assertEqual(self.until_state("t", "done")["attempt"], 1)
        self.assertEqual(self.events("t").count("task.claimed"), 1)

    def test_a_report_whose_reply_is_lost_counts_once(self):
        door, lost = self.between(), []
        self.create(id="t", payload={"value": 1})
        self.create(id="u", payload={"value": 2})
        door.after = lambda request, answer: None if lost or not request.finishes() else lost.append(1) or False
        self.worker(door.url)
        for id in "tu":
            self.assertEqual(self.until_state(id, "done")["attempt"], 1)
            self.assertEqual(self.events(id).count("task.completed"), 1)
        self.assertTrue(lost)

    def test_the_next_worker_goes_on_where_a_killed_one_stopped(self):
        self.create(id="t", payload={"do": "checkpoint"})
        first = self.worker(leaseMs=1000)
        self.assertEqual(first.process.wait(HANG_S), -signal.SIGKILL)
        self.worker()
        task = self.until_state("t", "done")
        self.assertEqual((task["attempt"], task["result"]), (2, {"page": 7}))

    def test_work_goes_on_while_the_server_is_killed_and_comes_back(self):
        file = os.path.join(self.server.home, "go")
        self.create(id="t", payload={"do": "wait", "file": file, "value": "made it"})
        worker = self.worker()
        worker.until(began="t")
        self.server.kill()
        open(file, "w").close()
        self.client.close()
        self.server.start()
        task = self.until_state("t", "done")
        self.assertEqual((task["attempt"], task["result"]), (1, "made it"))
        self.create(id="u", payload={"value": 2})
        self.until_state("u", "done")

    def produce(self, told, over):
        """Tasks, one after the other, each asked for until it is there; lines of what was acknowledged."""
        caller, number = self.caller(url=self.place, token=self.server.token), 0
        while not over.is_set():
            number += 1
            answer = {}
            while "ok" not in answer and not over.is_set():
                answer = caller.call("createTask", {"title": "told", "queue": "q", "payload": {"do": "told"}}, idempotencyKey="k%d" % number)
            if "ok" in answer:
                told.append("C\tproducer\tok\tenqueue\tt%d\t-\t-\t0\t0" % proof.task_number(answer["ok"]["id"]))

    def test_what_it_acknowledges_is_true_while_the_server_dies_again_and_again(self):
        """Judged as the clients of test_crash.py are: by the checker, which knows nothing of the SDK."""
        told, over = [], threading.Event()
        workers = [self.worker(concurrency=3, leaseMs=2000), self.worker(concurrency=2, leaseMs=2000, beats=False)]
        producer = threading.Thread(target=self.produce, args=(told, over), daemon=True)
        producer.start()
        for round in range(5):
            made, begun = len(told), sum(len(worker.said) for worker in workers)
            self.until(lambda: len(told) > made and sum(len(worker.said) for worker in workers) > begun, "nothing goes on after %d deaths" % round)
            self.server.kill()
            self.client.close()
            self.server.start()
        over.set()
        producer.join(HANG_S)
        self.until(lambda: all(self.client.get("/api/tasks?state=" + state).json == [] for state in ("ready", "claimed", "running", "scheduled")),
                   "not every task came to an end")
        for worker in workers:
            worker.process.terminate()
            while worker.lines.get(timeout=HANG_S) is not None:
                pass
        began = {(line["began"], line["fence"]): line["worker"] for worker in workers for line in worker.said if "began" in line}
        for task in self.client.get("/api/tasks?state=done&limit=1000").json:
            self.assertEqual(began[task["id"], task["result"]["fence"]], task["result"]["by"])
        told += ["C\t%s\tok\tclaim\tt%d\t%s\t-\t0\t0" % (worker, proof.task_number(id), fence) for (id, fence), worker in began.items()]
        self.assertEqual(self.server.stop(), 0)
        self.assertIsNone(proof.verify(self.server.home, told, ("restart_grace_ms=0", "retry_base_ms=20", "retry_max_ms=200")))

    def bound(self, door, id):
        return any(id in (request.json or {}).get("boundTasks", []) for request in door.requests if request.path.endswith("/heartbeat"))

    def test_a_cancel_stops_the_handler(self):
        door = self.between()
        self.create(id="t", payload={"do": "sleep", "seconds": HANG_S})
        worker = self.worker(door.url)
        self.until(lambda: self.bound(door, "t"), "it is never bound")
        worker.until(began="t")
        self.until(lambda: self.client.post("/api/tasks/t/cancel").status in (200, 202), "it cannot be cancelled")
        self.assertIn(worker.until(stopped="t")["why"], ("Cancelled", "Lost"))
        self.until_state("t", "cancelled")

    def test_a_task_out_of_time_has_failed_by_its_clock(self):
        self.create(id="t", payload={"do": "sleep", "seconds": HANG_S}, timeoutMs=1500, maxAttempts=1)
        worker = self.worker(leaseMs=5000)
        self.assertEqual(worker.until(stopped="t")["why"], "Cancelled")
        self.assertEqual(self.until_state("t", "failed")["error"]["code"], "TASK_TIMEOUT")

    def test_a_worker_that_is_given_up_stops_its_work_and_comes_back_under_another_id(self):
        self.create(id="t", payload={"do": "sleep", "seconds": HANG_S})
        worker = self.worker()
        worker.until(began="t")
        first = self.until_state("t", "running")["workerId"]
        self.assertEqual(self.client.call("DELETE", "/api/workers/%s?how=terminated" % first, {}).status, 200)
        self.assertEqual(worker.until(stopped="t")["why"], "Lost")
        worker.until(began="t", attempt=2)
        self.assertNotEqual(self.task("t")["workerId"], first)

    def test_each_way_to_end_has_its_state(self):
        wanted = {"review": "review", "release": "scheduled", "block": "blocked", "fail": "failed", "throw": "scheduled", "large": "scheduled"}
        for what in wanted:
            self.create(id=what, payload={"do": what})
        self.worker()
        tasks = {what: self.until_state(what, state) for what, state in wanted.items()}
        self.assertEqual((tasks["release"]["spent"], tasks["throw"]["spent"]), (0, 1))
        self.assertIn("it broke", json.dumps(tasks["throw"]))
        self.assertIn("refused", json.dumps(tasks["large"]))

    def test_a_task_with_a_gate_goes_to_review(self):
        self.create(id="t", gates=["ci"], payload={"value": 1})
        self.worker()
        self.assertEqual(self.until_state("t", "review")["result"], 1)

    def test_a_question_is_answered_while_the_handler_waits(self):
        self.create(id="t", payload={"do": "ask"})
        self.worker()
        question = self.until_state("t", "asking")["question"]
        self.assertEqual(question["options"], ["red", "blue"])
        self.assertEqual(self.client.post("/api/tasks/t/answer", {"question": question["id"], "text": "blue"}).status, 200)
        self.assertEqual(self.until_state("t", "done")["result"]["text"], "blue")

    def test_a_worker_that_must_end_gives_its_task_back(self):
        self.create(id="t", payload={"do": "sleep", "seconds": HANG_S})
        worker = self.worker(graceS=0)
        worker.until(began="t")
        id = self.until_state("t", "running")["workerId"]
        worker.process.send_signal(signal.SIGTERM)
        worker.until(stopped="t", why="ShuttingDown")
        worker.until(ended=True)
        self.assertEqual(worker.process.wait(HANG_S), 0)
        self.assertEqual((self.task("t")["state"], self.task("t")["spent"]), ("ready", 0))
        self.assertEqual(self.client.get("/api/workers/" + id).json["ended"], "shutdown")

    def test_an_idle_worker_ends_at_once(self):
        worker = self.worker()
        self.until(lambda: self.client.get("/api/workers?state=active").json, "it does not register")
        worker.process.send_signal(signal.SIGINT)
        self.assertEqual(worker.process.wait(HANG_S), 0)

    def test_a_plain_claimant_works_without_a_registration(self):
        self.create(id="t", payload={"value": 1})
        self.create(id="u", payload={"do": "sleep", "seconds": HANG_S})
        worker = self.worker(beats=False)
        self.until_state("t", "done")
        worker.until(began="u")
        self.until_state("u", "running")
        self.assertEqual(self.client.get("/api/workers?state=active").json, [])
        self.assertEqual(self.client.post("/api/tasks/u/cancel").status, 200)
        self.assertEqual(worker.until(stopped="u")["why"], "Lost")

    def test_a_wrong_token_ends_the_worker(self):
        worker = self.drive("worker", json.dumps({"client": {"url": self.place, "token": "stint_worker_wrong"}}))
        self.assertNotEqual(worker.process.wait(HANG_S), 0)

    # ---- the worker of a pool ----

    def test_a_worker_of_a_pool_speaks_frames(self):
        words, variables = self.command
        process = subprocess.Popen([*words, "pool"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   env=environment(AIRI_WORKER_ID="p-1", **variables))

        def frame():
            return json.loads(process.stdout.read(struct.unpack(">I", process.stdout.read(4))[0]))

        def execute(module, **task):
            body = json.dumps({"id": "1", "type": "execute.task", "timestamp": "now", "moduleId": module, "task": task}).encode()
            process.stdin.write(struct.pack(">I", len(body)) + body)
            process.stdin.flush()
            frames = [frame()]
            while frames[-1]["type"] != "worker.ready":
                frames.append(frame())
            return [found for found in frames if found["type"] != "worker.heartbeat"]

        hello = frame()
        self.assertEqual((hello["type"], hello["workerId"], hello["capabilities"]["moduleIds"]), ("worker.hello", "p-1", ["echo", "broken"]))
        said = execute("echo", id="t", payload={"n": "ü"})
        self.assertEqual([found["type"] for found in said], ["task.progress", "task.progress", "task.result", "worker.ready"])
        self.assertEqual(said[2]["result"], {"success": True, "output": {"n": "ü"}})
        failure = execute("broken", id="u")[1]
        self.assertEqual(failure["error"], {"code": "BAD_POSITION", "message": "no position", "details": {"at": 3}})
        self.assertEqual(execute("chess", id="v")[1]["error"]["code"], "EXECUTOR_NOT_FOUND")
        process.stdin.close()
        self.assertEqual(frame()["type"], "worker.shutdown")
        self.assertEqual(process.wait(HANG_S), 0)
        process.stdout.close()
