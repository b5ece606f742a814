"""The real server, over real sockets: say this, expect that; then pull the plug."""
import re
import gzip
import json
import os
import signal
import socket
import stat
import struct
import subprocess
import tempfile
import threading
import time
import unittest

from hang import HANG_S
import stintd


class ServerCase(stintd.Case):
    def claim(self, worker, client=None, **fields):
        body = {"workerId": worker, "queues": ["q"], **fields}
        reply = (client or self.client).post("/api/claims", body)
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json["claims"]

    def metric(self, name):
        for line in self.client.get("/metrics").body.decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
        self.fail("there is no metric " + name)


class Life(ServerCase):
    def test_a_task_lives_from_creation_to_done(self):
        task = self.create(title="say hello", payload={"n": 1})
        self.assertEqual((task["id"], task["state"], task["status"]), ("t-1", "ready", "todo"))
        claim, = self.claim("w1")
        self.assertEqual(claim["task"]["payload"], {"n": 1})
        self.assertEqual(claim["fence"], "1000000000001")
        done = self.client.post("/api/tasks/t-1/complete",
                                {"workerId": "w1", "fence": claim["fence"], "result": {"ok": True}})
        self.assertEqual((done.status, done.json["state"], done.json["title"]), (200, "done", "say hello"))
        read = self.client.get("/api/tasks/t-1").json
        self.assertEqual((read["title"], read["result"]), ("say hello", {"ok": True}))
        types = [event["type"] for event in self.client.get("/api/events?after=0&limit=100").json["events"]]
        self.assertEqual(types, ["server.started", "task.created", "task.claimed", "task.completed"])

    def test_a_worker_is_shown_with_what_it_can_do(self):
        reply = self.client.post("/api/workers/register", {
            "workerId": "w1", "capabilities": ["gpu", "big"], "executors": ["claude"], "maxConcurrent": 2})
        self.assertEqual(reply.status, 200, reply.body)
        worker = self.client.get("/api/workers/w1").json
        self.assertEqual((sorted(worker["capabilities"]), worker["executors"]), (["big", "gpu"], ["claude"]))
        token = reply.json["token"]
        beat = self.client.post("/api/workers/heartbeat", {"workerId": "w1", "token": token})
        self.assertEqual(beat.status, 200)
        again = self.client.post("/api/workers/heartbeat", {"workerId": "w1", "token": token})
        self.assertEqual((again.status, again.json["code"], again.json["token"]),
                         (409, "TOKEN_MISMATCH", beat.json["token"]))

    def test_bad_input_is_told_what_and_where_and_changes_nothing(self):
        before = self.client.get("/api/events?after=0").json["next"]
        reply = self.client.post("/api/tasks", {"title": 1, "priority": "soon", "attempt": 3})
        self.assertEqual((reply.status, reply.json["code"]), (422, "invalid"))
        self.assertEqual({error["field"] for error in reply.json["errors"]}, {"title", "priority", "attempt"})
        self.assertEqual(self.client.post("/api/tasks", b"{nonsense").status, 400)
        self.assertEqual(self.client.call("POST", "/api/tasks", b"{}", {"Content-Type": "text/plain"}).status, 415)
        large = self.client.post("/api/tasks", {"title": "x", "description": "y" * (1 << 20)})
        self.assertEqual((large.status, large.json["title"]), (413, "more than a limit allows"))
        self.assertEqual(self.client.get("/api/tasks/nope").status, 404)
        self.assertEqual(self.client.get("/api/nope").status, 404)
        wrong = self.client.call("DELETE", "/api/tasks")
        self.assertEqual((wrong.status, "GET" in wrong.headers["Allow"]), (405, True))
        self.assertEqual(self.client.get("/api/events?after=0").json["next"], before)

    def test_a_stale_fence_is_refused_and_the_refusal_names_no_fence(self):
        self.create()
        claim, = self.claim("w1")
        reply = self.client.post("/api/tasks/t-1/complete", {"workerId": "w1", "fence": "1000000000007"})
        self.assertEqual((reply.status, reply.json["code"]), (409, "stale_claim"))
        self.assertNotIn(claim["fence"].encode(), reply.body)
        self.assertNotIn("restored", reply.json["detail"])

    def test_the_socket_serves_as_well_and_asks_for_a_token_too(self):
        local = self.server.client(local=True)
        self.assertEqual(local.get("/api/tasks").status, 200)
        stranger = self.server.client(local=True, token="")
        self.assertEqual(stranger.get("/api/tasks").status, 401)
        self.assertEqual(stranger.get("/livez").status, 200)
        local.close()
        stranger.close()

    def test_an_admin_token_that_others_can_read_is_said_at_start(self):
        self.assertNotIn("others can read the admin token", self.server.said())
        path = os.path.join(self.server.home, "admin.token")
        os.chmod(path, 0o644)
        self.server.stop()
        self.client.close()
        self.server.start()
        said = [json.loads(line) for line in self.server.said().splitlines() if "others can read the admin token" in line]
        self.assertEqual([(line["level"], line["path"], line["mode"]) for line in said], [("warn", path, "0644")])

    def test_health_is_told_to_everybody_by_both_names(self):
        stranger = self.server.client(token="")
        self.assertEqual([stranger.get(path).body for path in ("/livez", "/readyz", "/healthz")],
                         [b'{"status":"ok"}', b'{"status":"ready"}', b'{"status":"ready"}'])
        stranger.close()

    def test_a_browser_is_told_what_to_do_and_programs_what_they_always_were(self):
        browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
        stranger = self.server.client(token="")
        page = stranger.call("GET", "/", headers={"Accept": browser}, judged=False)
        self.assertEqual((page.status, page.headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        self.assertTrue(page.headers["Content-Security-Policy"].startswith("default-src 'none';"))
        self.assertEqual([page.headers[name] for name in ("Referrer-Policy", "Cross-Origin-Opener-Policy", "X-Content-Type-Options")],
                         ["no-referrer", "same-origin", "nosniff"])
        text = gzip.decompress(page.body) if page.headers.get("Content-Encoding") == "gzip" else page.body
        self.assertNotRegex(text, rb"(?i)https?:|<style|<script(?! type=\"module\" src=\"assets/)")  # nothing inline, nothing from elsewhere
        for name in re.findall(rb'"(assets/[^"]+)"', text):  # what the page loads is there, for ever
            asset = stranger.call("GET", "/" + name.decode(), judged=False)
            self.assertEqual((asset.status, "immutable" in asset.headers["Cache-Control"]), (200, True), name)
        if b"assets/" not in text:  # built without node
            self.assertIn(b"stint inbox", text)
            self.assertIn(b"The dashboard is not part of this build", text)
        for path in ("/assets/", "/assets/nothing.js", "/assets/../admin.token", "/assets/index.html/x"):
            self.assertEqual(stranger.call("GET", path, judged=False).status, 401, path)
        for accept in ("*/*", "application/json", "text/html;q=0"):
            self.assertEqual(stranger.call("GET", "/", headers={"Accept": accept}, judged=False).status, 401)
        self.assertEqual(self.client.call("GET", "/", judged=False).status, 404)
        self.assertEqual(stranger.call("POST", "/", b"{}", headers={"Accept": browser}, judged=False).status, 401)
        stranger.close()

    def test_a_waiting_claim_is_answered_when_work_comes(self):
        got = []
        other = self.server.client()
        waiting = threading.Thread(target=lambda: got.extend(self.claim("w1", other, waitMs=60000)))
        waiting.start()
        self.until(lambda: self.metric("stint_waiting_claims") == 1, "it waits")
        self.create()
        waiting.join(HANG_S)
        self.assertEqual([claim["task"]["id"] for claim in got], ["t-1"])
        other.close()

    def wait_for_work(self, worker, **fields):
        """A claim that waits, and is known to; its claims once they are there."""
        before = self.metric("stint_waiting_claims")
        client, got = self.server.client(), []
        thread = threading.Thread(target=lambda: got.extend(self.claim(worker, client, waitMs=60000, **fields)))
        thread.start()
        self.until(lambda: self.metric("stint_waiting_claims") != before, "it waits")

        def join():
            thread.join(HANG_S)
            client.close()
            return [claim["task"]["id"] for claim in got]
        return join

    def test_work_goes_to_whoever_has_waited_longest_also_after_it_was_asked_in_vain(self):
        first, second = self.wait_for_work("w1"), self.wait_for_work("w2", capabilities=["gpu"])
        self.create(requires=["gpu"])
        self.assertEqual(second(), ["t-1"])
        third = self.wait_for_work("w3")
        self.create()
        self.assertEqual(first(), ["t-2"])
        self.create()
        self.assertEqual(third(), ["t-3"])

    def test_work_goes_to_whoever_has_waited_longest_for_its_queue_among_many_who_wait_for_others(self):
        wires = []
        for i in range(120):
            body = b'{"workerId":"o%d","queues":["other-%d"],"waitMs":60000}' % (i, i % 40)
            wire = socket.create_connection(("127.0.0.1", self.server.port))
            wires.append(wire)
            wire.sendall(b"POST /api/claims HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                         b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                         % (self.server.token.encode(), len(body), body))
        self.until(lambda: self.metric("stint_waiting_claims") == len(wires), "they all wait")
        waiting = [self.wait_for_work("w1"), self.wait_for_work("w2", queues=["p", "q"]),
                   self.wait_for_work("w3", queues=["p"]), self.wait_for_work("w4"),
                   self.wait_for_work("w5", queues=[])]
        for turn, queue in ((0, "q"), (1, "q"), (2, "p"), (3, "q"), (4, "p")):
            task = self.create(queue=queue)
            self.assertEqual(waiting[turn](), [task["id"]], turn)
        self.assertEqual(self.metric("stint_waiting_claims"), len(wires))
        for wire in wires:
            wire.close()

    def test_work_that_is_waited_for_is_created_and_claimed_in_one_commit(self):
        waiting = self.wait_for_work("w1")
        before = self.metric("stint_store_commit_seconds_count")
        self.create()
        self.assertEqual(waiting(), ["t-1"])
        self.assertEqual(self.metric("stint_store_commit_seconds_count"), before + 1)

    def test_finish_and_next_commits_the_finish_and_claims_the_next(self):
        self.create()
        self.create()
        first, = self.claim("w1")
        reply = self.client.post("/api/claims", {
            "workerId": "w1", "queues": ["q"],
            "finish": [{"id": first["task"]["id"], "fence": first["fence"], "outcome": "complete"}]})
        self.assertEqual(reply.json["finished"], [{"id": "t-1", "ok": True, "state": "done"}])
        self.assertEqual(reply.json["claims"][0]["task"]["id"], "t-2")

    def test_a_finish_with_nothing_next_is_committed_at_once_and_only_the_claim_waits(self):
        self.create()
        first, = self.claim("w1")
        other, got = self.server.client(), []
        body = {"workerId": "w1", "queues": ["q"], "waitMs": 60000,
                "finish": [{"id": "t-1", "fence": first["fence"], "outcome": "complete"}]}
        waiting = threading.Thread(target=lambda: got.append(other.post("/api/claims", body).json))
        waiting.start()
        self.until(lambda: self.client.get("/api/tasks/t-1").json["state"] == "done", "it is finished")
        self.create()
        waiting.join(HANG_S)
        self.assertEqual(got[0]["finished"], [{"id": "t-1", "ok": True, "state": "done"}])
        self.assertEqual(got[0]["claims"][0]["task"]["id"], "t-2")
        other.close()

    def test_a_claim_whose_client_hung_up_is_given_back(self):
        body = b'{"workerId":"w1","queues":["q"],"waitMs":60000}'
        head = ("POST /api/claims HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n"
                "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                % (self.server.port, self.server.token, len(body)))
        for _ in range(5):
            hasty = socket.create_connection(("127.0.0.1", self.server.port))
            hasty.sendall(head.encode() + body)
            hasty.close()
        for _ in range(3):  # by then the server has seen that they are gone
            self.client.get("/livez")
        self.create()
        self.until(lambda: self.client.get("/api/tasks/t-1").json["state"] == "ready", "it is given back")

    def test_pipelined_requests_are_answered_in_order(self):
        request = ("GET /api/tasks/%s HTTP/1.1\r\nHost: localhost:%d\r\nAuthorization: Bearer %s\r\n\r\n")
        self.create()
        wire = socket.create_connection(("127.0.0.1", self.server.port))
        wire.settimeout(HANG_S)
        wire.sendall("".join(request % (name, self.server.port, self.server.token)
                             for name in ("t-1", "nope", "t-1")).encode())
        seen = b""
        while seen.count(b"HTTP/1.1 ") < 3:
            seen += wire.recv(65536)
        self.assertEqual([part[:3] for part in seen.split(b"HTTP/1.1 ")[1:]], [b"200", b"404", b"200"])
        wire.close()


class Races(ServerCase):
    def test_of_many_racers_for_one_task_one_wins(self):
        for racers in (16, 100):
            self.create()
            won, clients = [], [self.server.client() for _ in range(racers)]
            start = threading.Barrier(racers)

            def race(client, name):
                start.wait()
                won.extend(self.claim(name, client))

            threads = [threading.Thread(target=race, args=(client, "w%d" % i)) for i, client in enumerate(clients)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(HANG_S)
            for client in clients:
                client.close()
            self.assertEqual(len(won), 1)


class Gate(ServerCase):
    def test_without_a_token_only_health_answers(self):
        stranger = self.server.client(token="")
        self.assertEqual(stranger.get("/livez").status, 200)
        self.assertEqual(stranger.get("/readyz").status, 200)
        for path in ("/api/tasks", "/api/events", "/api/workers", "/api/queues"):
            reply = stranger.get(path)
            self.assertEqual((reply.status, reply.json["code"]), (401, "unauthorized"), path)
        self.assertEqual(stranger.post("/api/tasks", {"title": "x"}).status, 401)
        stranger.close()

    def test_a_wrong_token_is_no_token(self):
        liar = self.server.client(token=self.server.token[:-1] + ("A" if self.server.token[-1] != "A" else "B"))
        self.assertEqual(liar.get("/api/tasks").status, 401)
        liar.close()

    def test_another_host_or_origin_is_turned_away(self):
        reply = self.client.call("GET", "/api/tasks", headers={"Host": "evil.example"})
        self.assertEqual((reply.status, reply.json["code"]), (421, "wrong_host"))
        self.assertEqual(reply.json["title"], "the Host header names no name of this server")
        reply = self.client.call("GET", "/livez", headers={"Origin": "http://evil.example"})
        self.assertEqual(reply.status, 403)
        reply = self.client.call("GET", "/livez", headers={"Origin": "http://127.0.0.1:%d" % self.server.port})
        self.assertEqual(reply.status, 200)

    def test_what_is_not_http_gets_one_answer_and_the_door(self):
        for bytes_sent in (b"GET / HTTP/1.1\nHost: x\n\n", b"\x16\x03\x01\x02\x00", b"GET / HTTP/1.1\r\n\r\n",
                           b"POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n"
                           b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"):
            wire = socket.create_connection(("127.0.0.1", self.server.port))
            wire.settimeout(HANG_S)
            wire.sendall(bytes_sent)
            seen = b""
            while True:
                got = wire.recv(65536)
                if not got:
                    break
                seen += got
            self.assertTrue(seen.startswith(b"HTTP/1.1 400 "), (bytes_sent, seen))
            wire.close()

    def test_secrets_lie_in_files_that_are_ours_alone(self):
        self.assertEqual(stat.S_IMODE(os.stat(self.server.home).st_mode), 0o700)
        for name in ("admin.token", "stint.db", "url"):
            self.assertEqual(stat.S_IMODE(os.stat(os.path.join(self.server.home, name)).st_mode), 0o600, name)
        self.assertNotIn(self.server.token, self.server.said())


class Plug(ServerCase):
    def test_nothing_acknowledged_is_lost_by_kill_9(self):
        for _ in range(5):
            acked, done = [], []
            stopping = threading.Event()

            def work(name):
                client = self.server.client()
                try:
                    while not stopping.is_set():
                        task = client.post("/api/tasks", {"title": "x", "queue": "q"}).json["id"]
                        acked.append(task)
                        for claim in client.post("/api/claims", {"workerId": name, "queues": ["q"]}).json["claims"]:
                            body = {"workerId": name, "fence": claim["fence"]}
                            path = "/api/tasks/%s/complete" % claim["task"]["id"]
                            if client.post(path, body).status == 200:
                                done.append(claim["task"]["id"])
                except (OSError, ValueError, KeyError, stintd.http.client.HTTPException):
                    pass
                finally:
                    client.close()

            threads = [threading.Thread(target=work, args=("w%d" % i,)) for i in range(8)]
            for thread in threads:
                thread.start()
            self.until(lambda: done, "somebody has done something")
            self.server.kill()
            stopping.set()
            for thread in threads:
                thread.join(HANG_S)
            self.client.close()
            self.server.start()
            self.assertGreater(len(done), 0)
            for task in acked:
                self.assertEqual(self.client.get("/api/tasks/" + task).status, 200, task)
            for task in done:
                self.assertEqual(self.client.get("/api/tasks/" + task).json["state"], "done", task)

    def test_a_claim_survives_restarts_and_its_fence_still_counts(self):
        self.create()
        claim, = self.claim("w1")
        for _ in range(2):
            self.server.kill()
            self.client.close()
            self.server.start()
        self.assertEqual(self.client.get("/api/tasks/t-1").json["state"], "claimed")
        reply = self.client.post("/api/tasks/t-1/complete", {"workerId": "w1", "fence": claim["fence"]})
        self.assertEqual(reply.status, 200, reply.body)

    def test_sigterm_answers_those_who_wait_and_ends_with_0(self):
        other, got = self.server.client(), []
        waiting = threading.Thread(target=lambda: got.append(self.claim("w1", other, waitMs=60000)))
        waiting.start()
        self.until(lambda: self.metric("stint_waiting_claims") == 1, "it waits")
        self.assertEqual(self.server.stop(), 0)
        waiting.join(HANG_S)
        self.assertEqual(got, [[]])
        other.close()

    def test_sigterm_waits_for_whoever_reads_its_reply_slowly(self):
        self.create(payload={"text": 900000 * "x"})
        with socket.socket(socket.AF_UNIX) as wire:
            wire.settimeout(HANG_S)
            wire.connect(os.path.join(self.server.home, "stint.sock"))
            wire.sendall(b"GET /api/tasks/t-1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n"
                         % self.server.token.encode())
            got = wire.recv(1)  # the rest does not fit into the socket
            self.server.process.send_signal(signal.SIGTERM)
            while more := wire.recv(32 << 10):
                got += more
                time.sleep(0.03)  # it is slow
        head, _, body = got.partition(b"\r\n\r\n")
        self.assertIn(b"Content-Length: %d" % len(body), head)
        self.assertEqual(len(json.loads(body)["payload"]["text"]), 900000)
        self.assertEqual(self.server.process.wait(HANG_S), 0)

    def test_sigterm_does_not_wait_for_whoever_does_not_read(self):
        self.create(payload={"text": 900000 * "x"})
        with socket.socket(socket.AF_UNIX) as wire:
            wire.settimeout(HANG_S)
            wire.connect(os.path.join(self.server.home, "stint.sock"))
            wire.sendall(b"GET /api/tasks/t-1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n"
                         % self.server.token.encode())
            wire.recv(1)
            self.assertEqual(self.server.stop(), 0)

    def test_a_second_server_on_the_same_store_is_turned_away_at_once(self):
        second = subprocess.run(self.server.command(), capture_output=True, text=True, timeout=HANG_S)
        self.assertEqual(second.returncode, 74)
        self.assertIn("in use", second.stderr)
        self.assertEqual(self.client.get("/livez").status, 200)


class Start(unittest.TestCase):
    def refused(self, *flags):
        run = subprocess.run([stintd.STINTD, *flags], capture_output=True, text=True, timeout=HANG_S)
        return run.returncode, run.stderr

    def test_a_wrong_start_says_what_was_wrong(self):
        cases = [
            (("--listen", "0.0.0.0:0", "--home", "/nonexistent"), 78, "--behind-proxy"),
            (("--listen", "nonsense", "--home", "/nonexistent"), 78, "ADDRESS:PORT"),
            (("--set", "restart.graceMs=soon", "--home", "/nonexistent"), 78, "restart.graceMs"),
            (("--set", "no.such=1", "--home", "/nonexistent"), 78, "no.such"),
            (("--store", "mysql://x", "--home", "/nonexistent"), 78, "sqlite:PATH"),
            (("--store", "postgres://x", "--new-store", "--home", "/nonexistent"), 78, "another schema"),
            (("--frobnicate", "1"), 2, "--help"),
            (("--home",), 2, "value"),
        ]
        for flags, status, words in cases:
            code, said = self.refused(*flags)
            self.assertEqual(code, status, (flags, said))
            self.assertIn(words, said)
            self.assertEqual(said.count("\n"), 1, said)

    def test_a_file_that_holds_half_an_admin_token_is_no_secret(self):
        with tempfile.TemporaryDirectory() as home:
            whole = "stint_admin_0123456789abcdef_" + "A" * 43
            for text in ("", "secret", "stint_admin_", "stint_admin_0123456789abcdef_", whole[:-1]):
                with open(os.path.join(home, "admin.token"), "w") as file:
                    file.write(text)
                code, said = self.refused("--home", home, "--listen", "127.0.0.1:0")
                self.assertEqual(code, 78, said)
                self.assertIn("holds no admin token", said)


class Pipelining(ServerCase):
    """Several requests in one breath, on a bare socket."""

    def setUp(self):
        super().setUp()
        self.wire = socket.create_connection(("127.0.0.1", self.server.port), timeout=HANG_S)
        self.addCleanup(self.wire.close)

    def request(self, method, path, body=None):
        data = b"" if body is None else json.dumps(body).encode()
        head = "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n" % (
            method, path, self.server.port, self.server.token)
        if body is not None:
            head += "Content-Type: application/json\r\nContent-Length: %d\r\n" % len(data)
        return head.encode() + b"\r\n" + data

    def replies(self, count):
        """(status, body) of so many replies, in the order in which they come."""
        file, got = self.wire.makefile("rb"), []
        for _ in range(count):
            status, length = int(file.readline().split()[1]), 0
            while (line := file.readline().strip()):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            got.append((status, json.loads(file.read(length) or b"null")))
        return got

    def commits(self):
        for line in self.client.get("/metrics").body.decode().splitlines():
            if line.startswith("stint_store_commit_seconds_count "):
                return int(line.split()[1])
        return self.fail("there is no such metric")

    def test_requests_in_one_breath_share_a_commit_and_are_answered_in_order(self):
        before = self.commits()
        self.server.process.send_signal(signal.SIGSTOP)  # they all lie before it when it looks
        self.wire.sendall(b"".join(
            self.request("POST", "/api/tasks", {"id": "p-%d" % i, "title": "x", "queue": "q"}) for i in range(40)))
        self.server.process.send_signal(signal.SIGCONT)
        self.assertEqual([(status, body["id"]) for status, body in self.replies(40)],
                         [(201, "p-%d" % i) for i in range(40)])
        self.assertLess(self.commits() - before, 20)

    def test_a_refusal_and_a_read_in_between_keep_their_places(self):
        self.wire.sendall(
            self.request("POST", "/api/tasks", {"id": "a", "title": "x"}) +
            self.request("POST", "/api/tasks", {"title": 7}) +
            self.request("GET", "/api/tasks/a") +
            self.request("POST", "/api/tasks/a/park", {}) +
            self.request("POST", "/api/tasks/a/unpark", {}) +
            self.request("GET", "/api/tasks/a"))
        got = self.replies(6)
        self.assertEqual([status for status, _ in got], [201, 422, 200, 200, 200, 200])
        self.assertEqual([body["state"] for status, body in got if status != 422],
                         ["ready", "ready", "pending", "ready", "ready"])

    def test_what_is_no_http_is_told_after_the_replies_before_it(self):
        self.wire.sendall(self.request("POST", "/api/tasks", {"id": "a", "title": "x"}) +
                          self.request("POST", "/api/tasks", {"id": "b", "title": "x"}) + b"NONSENSE\r\n\r\n")
        self.assertEqual([status for status, _ in self.replies(3)], [201, 201, 400])

    def test_a_claim_that_waits_holds_up_those_behind_it(self):
        self.wire.sendall(self.request("POST", "/api/claims", {"workerId": "w", "queues": ["q"], "waitMs": 60000}) +
                          self.request("POST", "/api/tasks", {"id": "b", "title": "x", "queue": "other"}))
        self.create(id="a")
        (first, claimed), (second, created) = self.replies(2)
        self.assertEqual((first, claimed["claims"][0]["task"]["id"]), (200, "a"))
        self.assertEqual((second, created["id"]), (201, "b"))

    def test_claims_of_a_client_that_hung_up_are_given_back_all_of_them(self):
        for i in range(8):
            self.create(id="h-%d" % i)
        self.wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.server.process.send_signal(signal.SIGSTOP)  # it looks when the client has gone
        self.wire.sendall(b"".join(
            self.request("POST", "/api/claims", {"workerId": "w", "queues": ["q"]}) for _ in range(8)))
        self.wire.close()
        self.server.process.send_signal(signal.SIGCONT)
        self.until(lambda: self.client.get("/api/workers/w").status != 200, "the worker is forgotten")
        self.until(lambda: {self.client.get("/api/tasks/h-%d" % i).json["state"] for i in range(8)} == {"ready"},
                   "they are all given back")

    def comes_back(self, task):
        """It was handed out, and the reply that did so was never written."""
        def types():
            return [event["type"] for event in self.client.get("/api/tasks/%s/events" % task).json["events"]]
        self.until(lambda: types() == ["task.created", "task.claimed", "task.released"], "it is given back")
        self.assertEqual(self.client.get("/api/tasks/" + task).json["state"], "ready")

    def test_a_claim_whose_reply_the_client_does_not_take_is_given_back(self):
        self.create(id="t")
        deaf = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(deaf.close)
        deaf.connect(self.server.home + "/stint.sock")
        self.server.process.send_signal(signal.SIGSTOP)
        deaf.sendall(self.request("POST", "/api/claims", {"workerId": "w", "queues": ["q"]}))
        deaf.shutdown(socket.SHUT_RD)  # to write to it fails, and nothing is read that says so before
        self.server.process.send_signal(signal.SIGCONT)
        self.comes_back("t")

    def test_claims_whose_reply_was_written_half_are_given_back(self):
        tasks = ["big-%d" % i for i in range(4)]
        for task in tasks:
            self.create(id=task, instructions="x" * 700000)
        slow = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)  # which takes far less than that ahead of its reader
        self.addCleanup(slow.close)
        slow.connect(self.server.home + "/stint.sock")
        slow.sendall(self.request("POST", "/api/claims", {"workerId": "w", "queues": ["q"], "max": 4}))
        self.until(lambda: self.client.get("/api/tasks/big-0").json["state"] == "claimed", "it is handed out")
        slow.close()
        for task in tasks:
            if self.client.get("/api/tasks/" + task).json["attempt"] > 0:
                self.comes_back(task)


if __name__ == "__main__":
    unittest.main()
