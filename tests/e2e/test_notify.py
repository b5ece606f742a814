"""stint-notify: what happens is told by signed webhooks. A scripted claimant stands where an agent would run; a receiver in
the test stands where the world would be."""
import contextlib
import base64
import fcntl
import hashlib
import hmac
import http.server
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import threading
import unittest

from hang import HANG_S
import proof
import stintd
import test_sessions

NOTIFY = os.environ.get("STINT_NOTIFY", "build/stint-notify")
STINT = os.environ.get("STINT", "build/stint")
KEY, OLD_KEY = bytes(range(32)), bytes(range(100, 124))


def secret(key):
    return "whsec_" + base64.b64encode(key).decode()


class Message:
    def __init__(self, headers, body):
        self.headers, self.body = headers, body
        self.id = headers["webhook-id"]

    @property
    def json(self):
        return json.loads(self.body)

    def signatures(self, *keys):
        signed = b"%s.%s.%s" % (self.id.encode(), self.headers["webhook-timestamp"].encode(), self.body)
        return " ".join("v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode() for key in keys)


class Receiver:
    """Takes messages; `answers` are the statuses of the next ones, 200 when there are no more. None is no answer until
    let_go()."""

    def __init__(self):
        self.messages, self.answers, self.gone = [], [], threading.Event()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, gone = receiver.answers.pop(0) if receiver.answers else 200, receiver.gone
                receiver.messages.append(Message(self.headers, body))
                if status is None:
                    gone.wait(HANG_S)
                    status = 200
                try:
                    self.send_response(status)
                    if status == 302:
                        self.send_header("Location", "/elsewhere")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                except OSError:
                    pass  # it was killed

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *args: None  # who does not trust us hangs up
        self.url = "http://127.0.0.1:%d/hook" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def let_go(self):
        self.gone.set()
        self.gone = threading.Event()

    def close(self):
        self.let_go()
        self.server.shutdown()
        self.server.server_close()

    def types(self):
        return [message.json["type"] for message in self.messages]


class NotifyCase(test_sessions.SessionCase):
    def setUp(self):
        super().setUp()
        self.receivers, self.process = {}, None
        self.home = self.server.home
        self.write("secret", secret(KEY) + "\n")

    def write(self, name, text):
        path = os.path.join(self.home, name)
        with open(path, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(text)
        return path

    def receiver(self, name="ops"):
        self.receivers[name] = Receiver()
        self.addCleanup(self.receivers[name].close)
        return self.receivers[name]

    def target(self, name="ops", **fields):
        return {"url": self.receivers[name].url, "secretFile": os.path.join(self.home, "secret"),
                "allow": ["127.0.0.1"], **fields}

    def configure(self, targets, **more):
        self.write("config.json", json.dumps({"notify": {"targets": targets, "retryBaseMs": 1, "retryMaxMs": 20, **more}}))

    def command(self, *words):
        return [NOTIFY, *words, "--home", self.home, "--set", "log.format=json"]

    def ask(self, *words):
        return subprocess.run(self.command(*words), capture_output=True, text=True, timeout=HANG_S, env=stintd.environment())

    def start(self):
        """Until it knows where it begins."""
        connected = self.said().count("connected") if self.process else 0
        with open(os.path.join(self.home, "notify.log"), "ab") as log:
            self.process = subprocess.Popen(self.command(), stderr=log, stdin=subprocess.DEVNULL, env=stintd.environment())
        self.addCleanup(self.end, self.process)
        self.wait_until(lambda: self.said().count("connected") > connected, what="it did not connect")

    def end(self, process):
        if process.poll() is None:
            process.kill()
            process.wait(HANG_S)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.process.wait(HANG_S), 0)

    def kill(self):
        self.process.kill()
        self.process.wait(HANG_S)

    def lines(self):
        with open(os.path.join(self.home, "notify.log")) as file:
            return [json.loads(line) for line in file.read().splitlines()]

    def said(self):
        return [line["msg"] for line in self.lines()]

    def finish_session(self, label, channel="ops"):
        self.spawn(sessionLabel=label, channel=channel)
        self.report("complete", self.serve(), "agents", result={"summary": "fine"})

    def cursor(self, name="ops"):
        found = [target for target in json.loads(self.ask("ls", "--json").stdout)["targets"] if target["name"] == name]
        return found[0]

    def wait_for(self, receiver, count):
        self.wait_until(lambda: len(receiver.messages) >= count, what="fewer than %d messages" % count)


class Sessions(NotifyCase):
    def test_the_end_of_a_session_is_told_to_the_target_of_its_channel_once_and_signed(self):
        ops, others = self.receiver(), self.receiver("others")
        self.configure({"ops": self.target(), "others": self.target("others")})
        self.finish_session("before")  # nobody was there to hear of it
        self.start()
        self.finish_session("inner", "internal")
        self.spawn(sessionLabel="outer", channel="ops")
        self.report("release", self.serve(), "agents")  # another attempt follows: that is no end
        self.report("complete", self.serve(), "agents")
        self.finish_session("last", "others")
        self.wait_for(others, 1)
        self.wait_for(ops, 1)
        self.stop()
        message, = ops.messages
        self.assertEqual(message.headers["webhook-signature"], message.signatures(KEY))
        self.assertEqual(message.headers["Content-Type"], "application/cloudevents+json")
        event = [event for event in self.events() if event["data"].get("channel") == "ops"][-1]
        told = message.json
        self.assertEqual((told["specversion"], told["type"], told["id"], told["source"], told["subject"], told["sequence"]),
                         ("1.0", "dev.stint.session.ended", "stint-1-%d" % event["seq"], "stint", "outer", str(event["seq"])))
        self.assertEqual(told["data"].pop("about"), {"title": "outer", "queue": "sessions"})
        self.assertEqual((told["data"], message.id), (event, told["id"]))
        self.assertEqual([other.json["data"]["session"] for other in others.messages], ["last"])

    def test_events_that_a_target_lists_come_to_it_as_well(self):
        ops = self.receiver()
        self.configure({"ops": self.target(events=["alerts", "queue.*"])})
        self.start()
        self.create(id="lost", maxAttempts=1)
        self.report("fail", self.claim()[0], error={"message": "no"})
        self.create(id="again", maxAttempts=2)
        self.report("fail", self.claim()[0], error={"message": "not yet"})
        self.client.post("/api/tasks/again/cancel")
        self.create(id="stuck")
        reply = self.report("block", self.claim()[0], error={"message": "which branch?"})
        self.assertEqual(reply.status, 200, reply.body)
        self.client.post("/api/queues/q/pause")

        def told():  # each time that a queue has nothing left to do is told, too
            told = [(message.json["type"], message.json["subject"]) for message in ops.messages]
            return [one for one in told if one != ("dev.stint.queue.idle", "q")]
        self.wait_until(lambda: len(told()) >= 3, what="fewer than 3 messages")
        self.assertEqual(told(), [
            ("dev.stint.task.failed", "lost"), ("dev.stint.task.blocked", "stuck"), ("dev.stint.queue.paused", "q")])

    def test_an_event_as_deep_as_may_be_sent_holds_up_nothing(self):
        ops = self.receiver()
        self.configure({"ops": self.target(events=["task.*"])})
        self.start()
        self.create(id="deep")
        data = {}
        for _ in range(30):  # with its own braces and those of the request 32: as deep as a request may be
            data = {"d": data}
        reply = self.client.post("/api/tasks/deep/events", {"type": "ci.done", "data": data})
        self.assertEqual(reply.status, 200, reply.body)
        self.client.post("/api/tasks/deep/cancel")
        self.wait_until(lambda: any(message.json["type"] == "dev.stint.task.cancelled" for message in ops.messages),
                        what="what came behind it was not told")

    def test_a_message_says_title_queue_and_labels_of_its_task(self):
        ops, people = self.receiver(), self.receiver("people")
        self.configure({"ops": self.target(events=["task.cancelled"]),
                        "people": {"url": people.url, "allow": ["127.0.0.1"], "format": "slack", "events": ["task.cancelled"]}})
        self.start()
        self.client.post("/api/tasks", {"id": "t", "title": "Fix <login>", "queue": "ci", "labels": ["nightly"]})
        self.client.post("/api/tasks/t/cancel")
        self.wait_for(ops, 1)
        self.wait_for(people, 1)
        self.assertEqual(ops.messages[0].json["data"]["about"], {"title": "Fix <login>", "queue": "ci", "labels": ["nightly"]})
        self.assertEqual(people.messages[0].json["text"], 'task cancelled: t "Fix &lt;login&gt;" in ci (nightly) [cancelled]')

    def test_people_get_a_line(self):
        ops = self.receiver()
        self.configure({"ops": {"url": ops.url, "allow": ["127.0.0.1"], "format": "slack"}})
        self.start()
        self.finish_session("s")
        self.wait_for(ops, 1)
        message, = ops.messages
        self.assertEqual((message.json, message.headers["Content-Type"]),
                         ({"text": 'session ended: s "s" in sessions [done]'}, "application/json"))
        self.assertIsNone(message.headers["webhook-signature"], "there is no secret")

    def test_of_two_secrets_both_sign(self):
        ops = self.receiver()
        self.write("secret", secret(KEY) + "\n" + secret(OLD_KEY) + "\n")
        self.configure({"ops": self.target()})
        self.start()
        self.finish_session("s")
        self.wait_for(ops, 1)
        self.assertEqual(ops.messages[0].headers["webhook-signature"], ops.messages[0].signatures(KEY, OLD_KEY))


class LastDeliveries(NotifyCase):
    def told(self, name="ops", client=None):
        return next((row for row in (client or self.client).get("/api/deliveries").json if row["target"] == name), None)

    def wait_told(self, judge):
        def is_told():
            row = self.told()
            return row is not None and judge(row)
        self.wait_until(is_told, what="the server was not told of it")
        return self.told()

    def test_the_server_is_told_of_the_last_deliveries_with_how_each_went(self):
        ops = self.receiver()
        ops.answers = [500] + [503] * 8  # the first message is given up
        self.configure({"ops": self.target(events=["task.cancelled"])})
        self.start()
        self.wait_told(lambda row: row["last"] == [])
        for task in ("first", "second"):
            self.create(id=task)
            self.client.post("/api/tasks/%s/cancel" % task)
        row = self.wait_told(lambda row: len(row["last"]) == 2 and row["last"][0]["outcome"] == "delivered")
        newest, oldest = row["last"]
        self.assertEqual((newest["task"], newest["type"], newest["outcome"], newest["tries"], newest["status"]),
                         ("second", "task.cancelled", "delivered", 1, 200))
        self.assertEqual((oldest["task"], oldest["outcome"], oldest["tries"], oldest["status"], oldest["error"]),
                         ("first", "given-up", 9, 503, "the answer was 503"))
        self.assertEqual((row["delivered"], row["givenUp"], row["by"]), (1, 1, "admin"))
        self.assertTrue(row["url"].startswith("http://127.0.0.1:"), row["url"])
        self.assertNotIn("/hook", row["url"], "what stands behind the host may be a secret")
        self.assertEqual(self.cursor()["last"], row["last"], "stint notify ls --json has the same")

    def test_a_message_that_is_tried_again_says_when(self):
        ops = self.receiver()
        ops.answers = [500, None]
        self.configure({"ops": self.target(events=["task.cancelled"])}, retryBaseMs=1000 * 3600, retryMaxMs=1000 * 3600)
        self.start()
        self.create(id="t")
        self.client.post("/api/tasks/t/cancel")
        row = self.wait_told(lambda row: row["last"])
        self.assertEqual((row["last"][0]["outcome"], row["last"][0]["tries"], row["waiting"]), ("retrying", 1, 1))
        self.assertGreater(row["last"][0]["againAt"], row["last"][0]["at"])

    def test_fifty_are_kept_and_told_again_to_a_server_that_was_started_anew(self):
        ops = self.receiver()
        self.configure({"ops": self.target(events=["task.created"])})
        self.start()
        self.client.post("/api/tasks/batch", {"tasks": [{"id": "task-%d" % number, "title": "x", "queue": "q"} for number in range(60)]})
        row = self.wait_told(lambda row: row["delivered"] == 60)
        self.assertEqual([one["task"] for one in row["last"]], ["task-%d" % number for number in range(59, 9, -1)])
        self.stop()
        self.restart()
        self.assertIsNone(self.told(), "the server keeps them in memory")
        self.start()
        self.assertEqual(self.wait_told(lambda row: True)["last"], row["last"])

    def test_a_history_that_is_damaged_is_begun_anew(self):
        ops = self.receiver()
        self.configure({"ops": self.target(events=["task.cancelled"])})
        self.start()
        self.stop()
        for text in ("[{", '[7,{"id":5}]', "{}", ""):
            self.write("notify/ops.last", text)
            self.assertEqual(self.cursor()["last"], [], text)
        self.start()
        self.create(id="t")
        self.client.post("/api/tasks/t/cancel")
        self.wait_told(lambda row: [one["task"] for one in row["last"]] == ["t"])

    def test_what_one_credential_told_no_other_replaces_and_one_of_certain_queues_sees_its_own(self):
        admin = self.server.client()
        viewers = [admin.post("/api/tokens", {"kind": "viewer", "name": name, **more}).json["token"]
                   for name, more in (("one", {}), ("two", {}), ("ci", {"queues": ["ci"]}))]
        for number, token in enumerate(viewers):
            client = self.server.client(token=token)
            reply = client.post("/api/deliveries", {"target": "ops", "delivered": number, "last": []})
            self.assertEqual((reply.status, reply.json["by"]), (200, "viewer:" + ("one", "two", "ci")[number]))
            client.close()
        self.assertEqual(sorted(row["delivered"] for row in self.client.get("/api/deliveries").json), [0, 1, 2])
        client = self.server.client(token=viewers[2])
        self.assertEqual([row["delivered"] for row in client.get("/api/deliveries").json], [2])
        for number in range(40):
            client.post("/api/deliveries", {"target": "t-%d" % number, "last": []})
        self.assertEqual(sorted(row["target"] for row in client.get("/api/deliveries").json),
                         sorted("t-%d" % number for number in range(8, 40)), "32 of one credential, the last ones")
        self.assertEqual(len(admin.get("/api/deliveries").json), 34, "nobody else lost one")
        client.close()
        admin.close()

    def test_what_is_wrong_in_them_is_named(self):
        def wrong(body):
            reply = self.client.post("/api/deliveries", body)
            self.assertEqual(reply.status, 422, reply.body)
            return [error["field"] for error in reply.json["errors"]]
        good = {"id": "m", "type": "task.failed", "at": 1, "outcome": "delivered", "tries": 1}
        self.assertEqual(wrong({}), ["target", "last"])
        self.assertEqual(wrong({"target": "ops", "last": 5}), ["last"])
        self.assertEqual(wrong({"target": "ops", "last": [good] * 51}), ["last"])
        self.assertEqual(wrong({"target": "ops", "last": [good, 7, {**good, "outcome": "lost"}, {"colour": 1, **good}]}),
                         ["last[1]", "last[2].outcome", "last[3].colour"])
        self.assertEqual(wrong({"target": "ops", "url": "a\u0085b", "last": [{**good, "id": "a\u0085b"}]}), ["url", "last[0].id"])
        self.assertEqual(self.client.get("/api/deliveries").json, [])
        nothing = {"task": None, "error": None, "status": None, "againAt": None}
        reply = self.client.post("/api/deliveries", {"target": "ops", "url": None, "missed": None, "last": [{**good, **nothing}]})
        self.assertEqual((reply.status, reply.json["last"]), (200, [good]), "a null counts as not given")


class Trouble(NotifyCase):
    def test_what_is_not_taken_is_sent_again_under_the_same_id(self):
        ops = self.receiver()
        ops.answers = [500, 302, 404]
        self.configure({"ops": self.target()})
        self.start()
        self.finish_session("s")
        self.wait_for(ops, 4)
        self.wait_until(lambda: "delivered" in self.said())
        self.assertEqual(len({message.id for message in ops.messages}), 1)
        self.assertEqual({message.body for message in ops.messages}, {ops.messages[0].body})
        self.assertEqual([line["error"] for line in self.lines() if "attempt" in line and "error" in line], [
            "the answer was 500", "the answer was 302; redirects are not followed", "the answer was 404"])
        self.assertEqual(self.cursor()["delivered"], 1)

    def test_after_eight_more_tries_it_is_given_up_and_the_next_one_goes(self):
        ops = self.receiver()
        ops.answers = [503] * 9
        self.configure({"ops": self.target()})
        self.start()
        self.finish_session("first")
        self.finish_session("second")
        self.wait_until(lambda: "delivered" in self.said())
        self.assertEqual([message.json["subject"] for message in ops.messages], ["first"] * 9 + ["second"])
        self.assertEqual((self.cursor()["delivered"], self.cursor()["givenUp"]), (1, 1))
        self.assertIn("given up", self.said())

    def test_one_that_hangs_holds_up_nobody_else(self):
        ops, slow = self.receiver(), self.receiver("slow")
        slow.answers = [None]
        self.configure({"slow": self.target("slow", events=["session.ended"]), "ops": self.target()})
        self.start()
        for number in range(5):
            self.finish_session("s-%d" % number)
        self.wait_for(ops, 5)
        self.assertEqual(len(slow.messages), 1)

    def test_more_than_it_keeps_waits_at_the_server(self):
        ops = self.receiver()
        ops.answers = [None]
        self.configure({"ops": self.target(events=["task.created"])})
        self.start()
        tasks = ["task-%d" % number for number in range(200)]
        self.client.post("/api/tasks/batch", {"tasks": [{"id": task, "title": "x", "queue": "q"} for task in tasks]})
        self.wait_for(ops, 1)
        ops.let_go()
        self.wait_for(ops, 200)
        self.assertEqual([message.json["subject"] for message in ops.messages], tasks)

    def test_killed_at_any_time_it_loses_nothing(self):
        ops = self.receiver()
        self.configure({"ops": self.target()})
        self.start()
        for number in range(4):
            ops.answers = [500, None]
            had = len(ops.messages)
            self.finish_session("s-%d" % number)
            self.wait_for(ops, had + 2)
            self.kill()  # it has arrived, and nobody knows
            ops.let_go()
            self.finish_session("t-%d" % number)
            self.start()
            self.wait_until(lambda: self.said().count("delivered") == 2 * number + 2)
        names = {message.id: message.json["subject"] for message in ops.messages}
        self.assertEqual(list(names.values()), ["%s-%d" % (kind, number) for number in range(4) for kind in "st"])
        self.assertEqual([message.json["subject"] for message in ops.messages].count("s-0"), 3, "the same id again")

    def test_a_server_that_comes_back_is_heard_again(self):
        ops = self.receiver()
        self.configure({"ops": self.target()})
        self.start()
        self.restart()
        self.finish_session("s")
        self.wait_for(ops, 1)
        self.server.kill()
        self.stop()  # while the server is away
        self.client.close()
        self.server.start()

    def test_where_it_may_not_go_it_does_not_go_and_says_so(self):
        ops = self.receiver()
        self.configure({"ops": self.target(allow=["127.0.0.2"])})
        said = self.ask("test", "ops")
        self.assertEqual((said.returncode, said.stdout), (1, ""))
        self.assertRegex(said.stderr, r"^stint-notify: ops did not get the message: 127\.0\.0\.1 may not be reached: this is http, and "
                                      r"notify\.targets\.ops\.allow does not have it\n$")
        secure = ops.url.replace("http:", "https:").replace("127.0.0.1", "localhost")
        self.configure({"ops": self.target(url=secure, allow=[])})
        self.assertIn("may not be reached: it is no public address", self.ask("test", "ops").stderr)
        self.assertEqual(ops.messages, [])

    def test_what_one_may_reach_another_may_not(self):
        ops = self.receiver()
        self.receivers["strict"] = ops
        self.configure({"ops": self.target(events=["task.created"]),
                        "strict": self.target("strict", allow=["127.0.0.2"], events=["task.created"])})
        self.start()
        self.create()
        self.wait_until(lambda: "given up" in self.said())
        self.create()
        self.wait_for(ops, 2)
        self.wait_until(lambda: self.said().count("given up") == 2)
        self.assertEqual((len(ops.messages), self.cursor("strict")["delivered"]), (2, 0))

    @unittest.skipUnless(shutil.which("openssl"), "there is no openssl here to make a certificate (package openssl)")
    def test_a_certificate_must_be_one_that_is_trusted(self):
        ops = self.receiver()
        pem = os.path.join(self.home, "receiver.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-keyout", pem + ".key", "-out", pem, "-subj", "/CN=receiver", "-addext",
                        "subjectAltName=DNS:localhost"], check=True, capture_output=True, timeout=HANG_S)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem, pem + ".key")
        ops.server.socket = context.wrap_socket(ops.server.socket, server_side=True)
        secure = {"url": ops.url.replace("http://127.0.0.1", "https://localhost"), "allow": ["127.0.0.1", "::1"]}
        self.configure({"ops": self.target(**secure)})
        said = self.ask("test", "ops")
        self.assertEqual((said.returncode, ops.messages), (1, []))
        self.assertIn("certificate", said.stderr)
        self.configure({"ops": self.target(caFile=pem, **secure)})
        self.assertEqual(self.ask("test", "ops").stdout, "ops got the message; its answer was 200\n")
        self.assertEqual(ops.messages[0].headers["webhook-signature"], ops.messages[0].signatures(KEY))
        self.configure({"ops": self.target(caFile=pem, **{**secure, "url": secure["url"].replace("localhost", "127.0.0.1")})})
        self.assertIn("did not get the message", self.ask("test", "ops").stderr, "that is not its name")

    def test_a_proxy_of_the_environment_is_not_asked(self):
        ops, proxy = self.receiver(), self.receiver("proxy")
        self.configure({"ops": self.target()})
        said = subprocess.run(self.command("test", "ops"), capture_output=True, timeout=HANG_S,
                              env=stintd.environment(http_proxy=proxy.url, ALL_PROXY=proxy.url))
        self.assertEqual((said.returncode, len(ops.messages), proxy.messages), (0, 1, []), said.stderr)

    def test_a_token_that_may_not_read_ends_it(self):
        self.receiver()
        self.configure({"ops": self.target()})
        said = self.ask("--token", "stint_wrong_0000")
        self.assertEqual(said.returncode, 77)
        self.assertIn("the server does not accept the token", said.stderr)

    def test_two_of_them_in_one_home_are_one_too_many(self):
        self.receiver()
        self.configure({"ops": self.target()})
        self.start()
        said = self.ask()
        self.assertEqual(said.returncode, 75)
        self.assertIn("another stint-notify works in this home", said.stderr)


class Gone(NotifyCase):
    flags = NotifyCase.flags + proof.settings(retention_eventMax=1000, retention_finalMs=1000)

    def test_what_the_server_no_longer_has_is_counted_and_the_rest_told(self):
        ops = self.receiver()
        self.configure({"ops": self.target()})
        self.start()
        self.stop()
        before = int(self.cursor()["cursor"])
        for _ in range(6):
            self.client.post("/api/tasks/batch", {"tasks": [{"title": "x", "queue": "q"}] * 500})
        self.wait_until(lambda: self.client.call("GET", "/api/events?after=%d" % before).status == 410)
        self.finish_session("s")
        self.start()
        self.wait_for(ops, 1)
        self.wait_until(lambda: self.cursor()["delivered"] == 1)
        self.assertGreater(self.cursor()["missed"], 0)

    def test_in_another_store_it_goes_on_from_now(self):
        ops = self.receiver()
        self.configure({"ops": self.target()})
        self.start()
        for number in range(10):
            self.finish_session("s-%d" % number)
        self.wait_for(ops, 10)
        self.server.stop()
        self.client.close()
        for name in os.listdir(self.home):
            if name.startswith(("stint.db", "store.mark")):
                os.unlink(os.path.join(self.home, name))
        self.server.start()
        self.wait_until(lambda: "the store is another one, going on from now" in self.said())
        self.finish_session("new")
        self.wait_until(lambda: ops.messages[-1].json["subject"] == "new")

    def test_after_a_restore_what_is_new_is_told_and_nothing_twice(self):
        ops = self.receiver()
        self.configure({"ops": self.target()})
        self.start()
        self.finish_session("first")
        self.wait_for(ops, 1)
        backup = self.connect(token=self.server.token).post("/api/backup").json["path"]
        self.finish_session("second")
        self.wait_for(ops, 2)
        self.wait_until(lambda: self.cursor()["delivered"] == 2)
        self.server.stop()
        self.client.close()
        restored = subprocess.run([stintd.STINTD, "--home", self.home, "--restore", backup], capture_output=True,
                                  text=True, timeout=HANG_S, env=stintd.environment())
        self.assertEqual(restored.returncode, 0, restored.stderr)
        self.server.start()
        self.finish_session("third")
        self.wait_for(ops, 3)
        self.assertEqual([message.json["subject"] for message in ops.messages], ["first", "second", "third"])
        self.assertRegex(ops.messages[2].id, r"^stint-2-")


class Manual(NotifyCase):
    def test_the_receiver_of_the_manual_takes_what_is_signed_and_nothing_else(self):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/notify.md")) as file:
            code = file.read().partition("```python\n")[2].partition("```")[0]
        made = 'http.server.HTTPServer(("127.0.0.1", 9000), Receiver)'
        self.assertIn(made, code)
        code = code.replace(made + ".serve_forever()", "server = %s; print(server.server_port, flush=True); "
                            "server.serve_forever()" % made.replace("9000", "0"))
        self.write("ops.secret", secret(KEY) + "\n")
        receiver = subprocess.Popen(["python3", "-u", "-c", code], cwd=self.home, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(receiver.stdout.close)
        self.addCleanup(self.end, receiver)
        target = {"url": "http://127.0.0.1:%d/" % int(receiver.stdout.readline()), "allow": ["127.0.0.1"]}
        self.configure({"ops": {**target, "secretFile": os.path.join(self.home, "ops.secret")}})
        self.assertEqual(self.ask("test", "ops").stdout, "ops got the message; its answer was 204\n")
        self.assertIn(b"dev.stint.test", receiver.stdout.readline())
        self.configure({"ops": {**target, "secretFile": self.write("other.secret", secret(OLD_KEY))}})
        self.assertEqual(self.ask("test", "ops").stderr, "stint-notify: ops did not get the message: the answer was 401\n")


class Up(NotifyCase):
    def up(self, **streams):
        """Who is told, and a stint up in the place of the server."""
        ops = self.receiver()
        self.server.stop()
        self.client.close()
        self.configure({"ops": self.target()})
        up = subprocess.Popen([STINT, "up", "--home", self.home, "--listen", "127.0.0.1:0", "--no-worker", "--no-demo"],
                              stdin=subprocess.DEVNULL, text=True, env=stintd.environment(), **streams)
        self.addCleanup(self.end, up)
        return ops, up

    def tells_and_ends(self, ops, up):
        with open(os.path.join(self.home, "url")) as file:
            self.server.port = int(file.read().strip().rsplit(":", 1)[1])
        self.client = self.connect(token=self.server.token)
        self.finish_session("s")
        self.wait_for(ops, 1)
        up.send_signal(signal.SIGTERM)
        self.assertEqual(up.wait(HANG_S), 0)

    def test_stint_up_tells_others_if_there_are_any(self):
        ops, up = self.up(stdout=subprocess.PIPE)
        self.addCleanup(up.stdout.close)
        said = iter(up.stdout.readline, "")
        self.assertTrue(any(re.match("notify +sends webhooks to the targets", line) for line in said))
        self.wait_until(lambda: self.cursor()["cursor"] is not None)
        self.tells_and_ends(ops, up)
        with open(os.path.join(self.home, "notify", ".lock")) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # nobody is left that holds it

    def test_stint_up_starts_it_again_when_it_is_killed(self):
        ops, up = self.up(stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(up.stderr.close)

        def notifier():
            with open("/proc/%d/task/%d/children" % (up.pid, up.pid)) as file:
                children = file.read().split()
            for pid in children:
                with contextlib.suppress(FileNotFoundError, ProcessLookupError), open("/proc/%s/comm" % pid) as comm:
                    if comm.read().strip() == "stint-notify":
                        return int(pid)
            return None
        self.wait_until(lambda: os.path.exists(os.path.join(self.home, "notify", "ops.json")))
        first = notifier()
        os.kill(first, signal.SIGKILL)
        self.assertEqual(up.stderr.readline(), "stint: stint-notify was ended by signal 9; another one is started in 1 s\n")
        self.wait_until(lambda: notifier() not in (None, first))
        self.tells_and_ends(ops, up)


class Words(NotifyCase):
    def wrong(self, told, *lines):
        self.write("config.json", told if isinstance(told, str) else json.dumps(told, indent=1))
        said = self.ask("ls")
        self.assertEqual((said.returncode, said.stdout), (78, ""))
        self.assertEqual(len(said.stderr.splitlines()), len(lines), said.stderr)
        for line in lines:
            self.assertIn(line, said.stderr)

    def test_what_is_wrong_is_said_with_its_place(self):
        self.receiver()
        good = self.target()

        def one(**fields):
            return {"notify": {"targets": {"ops": {**good, **fields}}}}

        place = os.path.join(self.home, "config.json")
        self.wrong({}, "the configuration has no target, so there is nothing to do", '"alerts"')
        self.wrong({"notify": 7}, place + ":2:2: notify must be an object; it is 7")
        self.wrong({"notify": {"target": {}}}, "notify.target is not a known key; did you mean targets?")
        self.wrong({"notify": {"targets": {"a b": {}}}}, "notify.targets.a b cannot be a target: a name has letters, digits and -._:")
        self.wrong({"notify": {"targets": {"ops": {}}}}, place + ":4:4: notify.targets.ops needs url and secretFile")
        self.wrong(one(colour=1), "notify.targets.ops.colour is not a known key; known are url, secretFile, events, format, allow and caFile")
        self.wrong(one(format="html"), 'notify.targets.ops.format must be "cloudevents", "slack", "discord", "ntfy" or "otlp"')
        self.wrong(one(caFile="/nonexistent"), "notify.targets.ops.caFile: /nonexistent cannot be read: No such file")
        self.wrong(one(url="ftp://x"), ":5:5: notify.targets.ops.url must be an address: https://HOST/PATH")
        self.wrong(one(url="https://u:secretword@x/"), "notify.targets.ops.url must be an address")
        self.assertNotIn("secretword", self.ask("ls").stderr)
        self.wrong(one(allow=[]), "notify.targets.ops.url must be https: http is for addresses that \"allow\" has")
        self.wrong(one(allow=["10.0.0.0/33"]), "notify.targets.ops.allow must be a list of addresses and networks")
        self.wrong(one(events=["session.output"]), "the output of processes is not sent")
        self.wrong(one(events=["task.faild"]), ':11:6: notify.targets.ops.events has an event that does not exist: "task.faild"; did you mean task.failed?')
        self.wrong(one(events=["tasks.*"]), 'has an event that does not exist: "tasks.*"; did you mean task.*?')
        self.wrong(one(events=["weather.changed"]), 'has an event that does not exist: "weather.changed"; spec/events.md lists the events')
        self.wrong(one(events="task.failed"), "notify.targets.ops.events must be a list of types of events")
        self.wrong(one(secretFile="secret"), "secretFile must be an absolute path")
        self.wrong(one(secretFile="/nonexistent"), "/nonexistent cannot be read: No such file")
        self.write("weak", "whsec_YWJj\n")
        self.wrong(one(secretFile=os.path.join(self.home, "weak")), "whsec_ and 24 to 64 bytes in base64")
        os.chmod(os.path.join(self.home, "secret"), 0o644)
        self.wrong(one(), "others may read %s (mode 644); fix: chmod o=" % os.path.join(self.home, "secret"))

    def test_secrets_are_in_no_word_of_it(self):
        ops = self.receiver()
        self.configure({"ops": self.target(url=ops.url + "?key=verysecret")})
        self.start()
        self.finish_session("s")
        self.wait_for(ops, 1)
        self.stop()
        listed = self.ask("ls").stdout + self.ask("ls", "--json").stdout
        with open(os.path.join(self.home, "notify.log")) as file:
            everything = listed + file.read() + ops.messages[0].body.decode()
        for word in ("verysecret", secret(KEY)[6:], self.server.token):
            self.assertNotIn(word, everything)

    def test_a_test_message_and_a_list_through_stint(self):
        ops = self.receiver()
        self.configure({"ops": self.target(events=["task.*"])})

        def stint(*words):
            return subprocess.run([STINT, "notify", *words, "--home", self.home], capture_output=True, text=True, timeout=HANG_S,
                                  env=stintd.environment())

        said = stint("test", "ops")
        self.assertEqual((said.returncode, said.stdout), (0, "ops got the message; its answer was 200\n"), said.stderr)
        self.assertEqual(json.loads(stint("test", "ops", "--json").stdout),
                         {"schema": 1, "ok": True, "test": {"target": "ops", "delivered": True, "status": 200}})
        self.assertEqual(ops.types(), ["dev.stint.test"] * 2)
        self.assertEqual(ops.messages[0].headers["webhook-signature"], ops.messages[0].signatures(KEY))
        listed = json.loads(stint("ls", "--json").stdout)
        self.assertEqual((listed["ok"], listed["targets"][0]["events"], listed["targets"][0]["cursor"]), (True, ["task.*"], None))
        self.assertIn("none yet", stint("ls").stdout)
        self.assertEqual(stint("test", "nobody").returncode, 2)
        self.assertEqual(stint("test").returncode, 2)

    def test_help_and_version(self):
        self.assertIn("usage: stint-notify", self.ask("--help").stdout)
        self.assertRegex(self.ask("--version").stdout, r"^stint-notify \d")
        for words in (["send"], ["--colour"], ["ls", "ops"], ["test", "a", "b"], ["--json"]):
            self.assertEqual(self.ask(*words).returncode, 2, words)


if __name__ == "__main__":
    proof.main()
