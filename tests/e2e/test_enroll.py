"""Machines that become workers: codes, credentials that renew themselves, and what strangers and thieves get."""
import hashlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

from hang import HANG_S
import stintd
import test_tls
from test_worker import WORKER, sh
from tls import STINT, Cutter, Stranger, foreign


class Silent:
    """A proxy that hands every request on and keeps the reply to itself."""

    def __init__(self, target):
        self.target, self.count = target, 0
        self.door = socket.create_server(("127.0.0.1", 0))
        self.port = self.door.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                near, _ = self.door.accept()
            except OSError:
                return
            with near, socket.create_connection(self.target) as far:
                request = b""
                while b"\r\n\r\n" not in request or len(request.split(b"\r\n\r\n", 1)[1]) < int(re.search(rb"ength: (\d+)", request)[1]):
                    request += near.recv(65536)
                far.sendall(re.sub(rb"Host: \S+", b"Host: localhost:%d" % self.target[1], request))
                far.recv(65536)
                self.count += 1

    def close(self):
        self.door.shutdown(socket.SHUT_RDWR)
        self.door.close()
        self.thread.join(10)


class Case(test_tls.Case):
    more = ("--set", "worker.leaseMinMs=1000", "--set", "sweep.intervalMs=50")

    def setUp(self):
        super().setUp()
        self.home = os.path.join(self.folder, "machine-home")
        self.config = os.path.join(self.folder, "worker.json")

    def code(self, **more):
        made = self.client.post("/api/tokens", {"kind": "join", **more})
        self.assertEqual(made.status, 201, made.body)
        return made.json["code"]

    def enroll(self, code, *flags, url=None, status=0, start=False, home=None, before=(), **variables):
        words = [*before, STINT, "worker", "enroll", url or self.server.url, code, "--home", home or self.home, *(() if start else ("--no-start",)), *flags]
        ran = subprocess.run(words, capture_output=True, text=True, timeout=HANG_S, stdin=subprocess.DEVNULL,
                             env=stintd.environment(HOME=self.folder, **variables))
        self.assertEqual(ran.returncode, status, ran)
        return ran

    def executors(self, script):
        with open(self.config, "w") as file:
            json.dump({"executors": {"x": sh(script)}, "queues": {"q": {"executor": "x"}}}, file)

    def work(self, script="echo '{\"a\":1}'", *flags):
        self.executors(script)
        log = open(os.path.join(self.folder, "worker-log"), "ab")
        process = subprocess.Popen([WORKER, "--home", self.home, "--config", self.config, *flags], stdin=subprocess.DEVNULL, stderr=log,
                                   env=stintd.environment(), start_new_session=True)

        def end():
            if process.poll() is None:
                process.kill()
                process.wait(HANG_S)
            log.close()

        self.addCleanup(end)
        process.log = log.name
        return process

    def kept(self, name="token", home=None):
        with open(os.path.join(home or self.home, "machine", name)) as file:
            return file.read().strip()

    def tokens(self, kind="worker"):
        return [token for token in self.client.get("/api/tokens").json if token["kind"] == kind]

    def events(self, kind):
        return [event for event in self.client.get("/api/events?limit=100").json["events"] if event["type"] == kind]

    def renew(self, token, body=None):
        return self.client.call("POST", "/api/renew", body or {}, {"Authorization": "Bearer " + token})

    def show(self, code, token, **more):
        """What a machine says, by hand."""
        body = {"code": code, "id": token.split("_")[2], "hash": hashlib.sha256(token.encode()).hexdigest(), **more}
        stranger = self.server.client(token="")
        try:
            return stranger.post("/api/enroll", body)
        finally:
            stranger.close()


def new_token():
    return "stint_worker_%s_%s" % (secrets.token_hex(8), secrets.token_urlsafe(32))


class Codes(Case):
    def test_a_machine_gets_a_credential_of_its_own_and_works_with_it(self):
        ran = self.enroll(self.code(name="ci-7", queues=["q"]))
        self.assertIn("enrolled  ci-7 at https://", ran.stdout)
        token, = self.tokens()
        self.assertEqual((token["name"], token["queues"], token["createdBy"]), ("ci-7", ["q"], "join:ci-7"))
        self.assertEqual(self.kept().split("_")[2], token["id"])
        self.assertEqual(os.stat(os.path.join(self.home, "machine", "token")).st_mode & 0o777, 0o600)
        with open(self.certificates.ca) as file:
            self.assertEqual(self.kept("ca.crt"), file.read().strip())
        event = self.events("token.created")[-1]
        self.assertEqual((event["actor"], event["data"]["address"], event["data"]["host"]), ("join:ci-7", "127.0.0.1", socket.gethostname()))
        self.work()
        self.create(id="t")
        done = self.is_in("t", "done")
        self.assertEqual(done["result"], {"a": 1})
        self.assertEqual({event["actor"] for event in self.client.get("/api/tasks/t/events").json["events"]}, {"admin", "worker:ci-7"})

    def test_a_code_is_used_once_and_the_same_machine_may_ask_again(self):
        code, token, other = self.code(), new_token(), new_token()
        first = self.show(code, token, host="m")
        self.assertEqual(first.status, 200, first.body)
        again = self.show(code, token, host="m")
        self.assertEqual((again.status, again.json["id"]), (200, first.json["id"]))
        self.assertEqual([self.show(code, new).json["code"] for new in (other, token[:-1] + ("A" if token[-1] != "A" else "B"))], ["code_gone"] * 2)
        self.assertEqual(len(self.tokens()), 1)
        used = subprocess.run([STINT, "worker", "enroll", self.server.url, code, "--home", self.home], capture_output=True, text=True,
                              timeout=HANG_S, env=stintd.environment())
        self.assertEqual(used.returncode, 4)
        self.assertIn("stint worker invite makes a new one", used.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.home, "machine", "token")))

    def test_a_code_that_is_old_unknown_revoked_or_half_opens_nothing(self):
        old, revoked = self.code(expiresInMs=1), self.code()
        self.client.call("DELETE", "/api/tokens/" + revoked.split("_")[2])
        self.until(lambda: self.show(old, new_token()).status == 410, "its time is over")
        for code in (revoked, "stint_join_0123456789abcdef_" + 26 * "a" + revoked[-27:]):
            self.enroll(code, status=4)
        for code in (revoked[:-1], "stint_worker_a_b", "x"):
            self.assertIn("is not a whole join code", self.enroll(code, status=2).stderr)
        self.assertEqual(self.tokens(), [])

    def test_a_code_for_several_machines(self):
        code = self.code(uses=2)
        for name in ("a", "b"):
            self.enroll(code, "--name", name, home=os.path.join(self.folder, name))
        self.enroll(code, home=os.path.join(self.folder, "c"), status=4)
        self.assertEqual(sorted(token["name"] for token in self.tokens()), ["a", "b"])
        self.assertEqual(self.tokens("join")[0]["used"], 2)

    def test_a_code_is_no_credential(self):
        code = self.code()
        for route in ("/api/tasks", "/api/workers", "/api/version"):
            self.assertEqual(self.client.call("GET", route, headers={"Authorization": "Bearer " + code}, judged=False).status, 401, route)

    def test_what_is_wrong_with_a_request_is_said(self):
        token = new_token()
        good = {"code": self.code(), "id": token.split("_")[2], "hash": 64 * "0"}
        for bad in ({"id": "ABCDEF0123456789"}, {"hash": 64 * "g"}, {"hash": 63 * "0"}, {"id": "x"}, {"more": 1}):
            reply = self.client.call("POST", "/api/enroll", {**good, **bad}, judged=False)
            self.assertEqual(reply.status, 422, bad)
        admin = self.server.token.split("_")[2]
        self.assertEqual(self.client.call("POST", "/api/enroll", {**good, "id": admin}).status, 410)
        for body in ({"kind": "join", "uses": 0}, {"kind": "join", "expiresInMs": 8 * 24 * 3600 * 1000}, {"kind": "viewer", "name": "a", "uses": 1}):
            self.assertEqual(self.client.call("POST", "/api/tokens", body, judged=False).status, 422, body)

    def test_only_an_admin_invites(self):
        token = self.client.post("/api/tokens", {"kind": "operator", "name": "o"}).json["token"]
        reply = self.client.call("POST", "/api/tokens", {"kind": "join"}, {"Authorization": "Bearer " + token})
        self.assertEqual(reply.status, 403)


class Lost(Case):
    """Without TLS, so that a proxy may read along."""

    def setUp(self):
        super().setUp()
        self.plain = stintd.Server()
        self.addCleanup(self.plain.end)
        self.own = self.plain.client()
        self.addCleanup(self.own.close)

    def test_a_reply_that_is_lost_is_asked_for_again(self):
        silent = Silent(("127.0.0.1", self.plain.port))
        self.addCleanup(silent.close)
        code = self.own.post("/api/tokens", {"kind": "join"}).json["code"]
        ran = self.enroll(code, url="http://127.0.0.1:%d" % silent.port, status=7)
        self.assertIn("the same command can be repeated", ran.stderr)
        self.assertGreaterEqual(silent.count, 1)
        self.enroll(code, url=self.plain.url)
        token, = [token for token in self.own.get("/api/tokens").json if token["kind"] == "worker"]
        self.assertEqual(self.kept().split("_")[2], token["id"])

    def test_a_code_goes_in_the_clear_to_no_other_machine(self):
        code = self.own.post("/api/tokens", {"kind": "join"}).json["code"]
        self.assertIn("sends the code in the clear", self.enroll(code, url="http://192.0.2.1:9", status=2).stderr)
        self.assertIn("this code is for an https server", self.enroll(self.code(), url=self.plain.url, status=2).stderr)


class Strangers(Case):
    def test_who_answers_for_the_server_hears_nothing(self):
        cert, key = foreign(self.folder)
        chain = os.path.join(self.folder, "chain.crt")
        with open(chain, "w") as out:
            for path in (cert, self.certificates.ca):  # it shows the true authority, which has not signed for it
                with open(path) as file:
                    out.write(file.read())
        for shown in (cert, chain):
            stranger = Stranger(shown, key)
            self.addCleanup(stranger.close)
            ran = self.enroll(self.code(), url="https://127.0.0.1:%d" % stranger.port, status=7)
            self.assertIn("is not the one that made this code, and nothing was sent", ran.stderr)
            self.assertTrue(stranger.failed.wait(HANG_S))
            self.assertEqual(stranger.heard, b"")

    def test_a_file_that_holds_another_authority(self):
        cert, _ = foreign(self.folder)
        self.assertIn("is not the authority that the code names", self.enroll(self.code(), "--ca", cert, status=7).stderr)
        self.enroll(self.code(), "--ca", self.certificates.ca)

    def test_a_name_that_the_certificate_lacks(self):
        other = Cutter(("127.0.0.1", self.server.port), ("127.0.0.3", self.server.port))
        self.addCleanup(other.close)
        ran = self.enroll(self.code(), url=self.server.url.replace("127.0.0.1", "127.0.0.3"), status=7)
        self.assertIn("not for 127.0.0.3", ran.stderr)

    @unittest.skipUnless(shutil.which("faketime"), "there is no faketime here for a wrong clock (package faketime)")
    def test_a_clock_that_is_wrong(self):
        slow = self.enroll(self.code(), before=("faketime", "2001-02-03 00:00:00"), status=7)
        self.assertIn("the clock of this machine says 2001-02-0", slow.stderr)
        self.enroll(self.code(), before=("faketime", "2021-02-03 00:00:00"))


class Renewal(Case):
    def test_a_machine_renews_its_credential_while_it_works(self):
        self.enroll(self.code(tokenLivesMs=40000))
        before, go = self.kept(), os.path.join(self.folder, "go")
        self.work("while [ ! -e %s ]; do sleep 0.05; done; echo '{\"a\":1}'" % go)
        self.create(id="t")
        self.is_in("t", "claimed")
        self.until(lambda: self.events("token.settled"), "it is renewed, and the new secret is used")
        after = self.kept()
        self.assertEqual(before.split("_")[:3], after.split("_")[:3])
        self.assertNotEqual(before, after)
        self.assertEqual((self.renew(before).status, self.renew(after).status), (401, 200))
        open(go, "w").close()
        done = self.is_in("t", "done")
        self.assertEqual((done["attempt"], done["result"]), (1, {"a": 1}))

    def test_both_secrets_are_good_until_the_new_one_is_used(self):
        token = new_token()
        self.show(self.code(), token)
        fresh = "_".join(token.split("_")[:3]) + "_" + "A" * 43
        body = {"hash": hashlib.sha256(fresh.encode()).hexdigest()}
        first = self.renew(token, body)
        self.assertEqual(first.status, 200, first.body)
        self.assertGreater(first.json["previousUntil"], first.json["renewedAt"])
        self.assertEqual(self.renew(token, body).json["renewedAt"], first.json["renewedAt"])  # it may ask again
        self.assertEqual(len(self.events("token.renewed")), 1)
        self.assertEqual(self.renew(token).status, 200)
        self.assertEqual(self.renew(fresh).status, 200)
        self.assertEqual(self.renew(token).status, 401)
        self.assertEqual(self.renew(token, {"hash": 64 * "a"}).status, 401)
        self.assertEqual(self.renew(fresh, {"hash": 64 * "a"}).status, 429)
        self.until(lambda: self.events("token.settled"), "it is written down")
        self.server.kill()
        self.server.start()
        self.client.close()
        self.assertEqual((self.renew(token).status, self.renew(fresh).status), (401, 200))

    def test_a_stream_that_was_opened_with_the_old_secret_ends(self):
        token = self.client.post("/api/tokens", {"kind": "viewer", "name": "v"}).json["token"]
        fresh = "_".join(token.split("_")[:3]) + "_" + "B" * 43
        connection = self.client.open()
        connection.request("GET", "/api/events?after=0", headers={"Authorization": "Bearer " + token, "Accept": "text/event-stream"})
        stream = connection.getresponse()
        self.assertEqual(stream.status, 200)
        self.renew(token, {"hash": hashlib.sha256(fresh.encode()).hexdigest()})
        self.assertEqual(self.client.call("GET", "/api/tasks", headers={"Authorization": "Bearer " + fresh}).status, 200)
        while stream.fp.readline():
            pass
        connection.close()

    def test_what_has_no_secret_of_its_own_gets_none(self):
        self.assertEqual(self.renew(self.server.token, {"hash": 64 * "a"}).status, 403)
        worker = self.client.post("/api/tokens", {"kind": "worker", "name": "w"}).json["token"]
        made = self.client.call("POST", "/api/workers/register", {"workerId": "w1"}, {"Authorization": "Bearer " + worker})
        self.assertEqual(self.renew(made.json["credential"], {"hash": 64 * "a"}).status, 403)
        self.assertEqual(self.renew(worker, {"hash": hashlib.sha256(worker.encode()).hexdigest()}).status, 422)

    def test_a_token_is_rotated_in_its_file(self):
        made = self.client.post("/api/tokens", {"kind": "viewer", "name": "v"}).json
        path = os.path.join(self.folder, "v.token")
        with open(path, "w") as file:
            file.write(made["token"] + "\n")
        os.chmod(path, 0o600)

        def stint(*words):
            return subprocess.run([STINT, *words, "--url", self.server.url, "--ca", self.certificates.ca, "--token-file", path],
                                  capture_output=True, text=True, timeout=HANG_S, env=stintd.environment(STINT_HOME=self.folder))

        ran = stint("token", "rotate")
        self.assertEqual((ran.returncode, ran.stdout.strip()), (0, path), ran)
        with open(path) as file:
            after = file.read().strip()
        self.assertEqual(after.split("_")[:3], made["token"].split("_")[:3])
        self.assertNotEqual(after, made["token"])
        self.assertEqual(stint("ls").returncode, 0)
        self.assertEqual(self.renew(made["token"]).status, 401)
        self.assertFalse(os.path.exists(path + ".next"))
        ran = subprocess.run([STINT, "token", "rotate", "--home", self.server.home], capture_output=True, text=True, timeout=HANG_S,
                             env=stintd.environment())
        self.assertEqual(ran.returncode, 2)
        self.assertIn("is replaced by removing it", ran.stderr)

    def test_a_worker_whose_renewal_was_cut_off_takes_the_secret_that_waits(self):
        self.enroll(self.code())
        token = self.kept()
        fresh = "_".join(token.split("_")[:3]) + "_" + "C" * 43
        path = os.path.join(self.home, "machine", "token.next")
        with open(path, "w") as file:
            file.write(fresh + "\n")
        os.chmod(path, 0o600)
        self.renew(token, {"hash": hashlib.sha256(fresh.encode()).hexdigest()})
        self.assertEqual(self.renew(fresh).status, 200)  # somebody used it: the old one is over
        self.work()
        self.create(id="t")
        self.is_in("t", "done")
        self.assertEqual(self.kept(), fresh)


class Restored(Case):
    def test_a_restore_drops_codes_and_brings_no_secret_back_that_was_replaced(self):
        token, code = new_token(), self.code()
        self.show(self.code(), token)
        backup = os.path.join(self.server.home, self.client.post("/api/backup").json["path"])
        fresh = "_".join(token.split("_")[:3]) + "_" + "D" * 43
        self.renew(token, {"hash": hashlib.sha256(fresh.encode()).hexdigest()})
        self.assertEqual((self.renew(fresh).status, self.renew(token).status), (200, 401))
        self.until(lambda: self.events("token.settled"), "it is written down")
        self.server.stop()
        done = subprocess.run([stintd.STINTD, "--home", self.server.home, "--restore", backup], capture_output=True, text=True, timeout=HANG_S,
                              env=stintd.environment())
        self.assertEqual(done.returncode, 0, done)
        self.server.start()
        self.client.close()
        self.assertEqual((self.renew(fresh).status, self.renew(token).status), (200, 401))
        self.assertEqual(self.show(code, new_token()).json["code"], "code_gone")
        self.assertEqual(self.tokens("join"), [])
        self.server.stop()
        checked = subprocess.run([stintd.STINTD, "--check-store", os.path.join(self.server.home, "stint.db")], capture_output=True, text=True,
                                 timeout=HANG_S, env=stintd.environment())
        self.assertEqual((checked.returncode, checked.stdout), (0, ""), checked)


class Revoked(Case):
    def test_a_revoked_machine_is_refused_at_once_and_stops(self):
        self.enroll(self.code())
        process = self.work("exec sleep 1000", "--lease-ms", "3600000")
        self.create(id="t")
        self.is_in("t", "claimed")
        self.client.call("DELETE", "/api/tokens/" + self.tokens()[0]["id"])
        self.assertEqual(self.renew(self.kept()).status, 401)
        self.until(lambda: (lease := self.client.get("/api/workers").json[0]["leaseMs"]) <= 60000, "its lease is cut")
        self.assertEqual(process.wait(HANG_S), 77)
        with open(process.log) as file:
            self.assertIn("the credential of this worker is no longer valid; everything is stopped", file.read())


class Starts(Case):
    def test_a_worker_is_started_and_started_again_when_it_dies(self):
        self.executors("echo '{\"a\":1}'")
        ran = self.enroll(self.code(), "--config", self.config, start=True)
        keeper = int(re.search(r"as process (\d+)", ran.stdout)[1])
        self.addCleanup(self.end, keeper)
        self.create(id="t")
        self.is_in("t", "done")
        first, = self.client.get("/api/workers").json
        with open("/proc/%d/cmdline" % keeper) as file:
            self.assertNotIn("stint_join_", file.read())
        os.kill(first["pid"], signal.SIGKILL)
        self.until(lambda: [worker for worker in self.client.get("/api/workers").json if worker["state"] == "active" and worker["pid"] != first["pid"]],
                   "another one is there")
        self.create(id="u")
        self.is_in("u", "done")
        os.kill(keeper, signal.SIGTERM)
        self.until(lambda: not [worker for worker in self.client.get("/api/workers").json if worker["state"] == "active"], "both are gone")

    def end(self, pid):
        try:
            os.kill(pid, signal.SIGTERM)
        except ProcessLookupError:
            pass

    def test_where_nothing_may_run_that_is_said(self):
        with open(self.config, "w") as file:
            json.dump({"executors": {}}, file)
        ran = self.enroll(self.code(), "--config", self.config, start=True, PATH="/nowhere")
        self.assertIn("no worker was started: nothing says what it may run", ran.stderr)
        self.assertTrue(os.path.exists(os.path.join(self.home, "machine", "token")))

    def test_a_machine_is_enrolled_once_and_a_server_s_home_is_none(self):
        self.enroll(self.code())
        self.assertIn("is enrolled already", self.enroll(self.code(), status=2).stderr)
        self.assertIn("is the state directory of a server", self.enroll(self.code(), home=self.server.home, status=2).stderr)

    def test_json_is_one_object(self):
        ran = self.enroll(self.code(), "--json", "--name", "m")
        told = json.loads(ran.stdout)["machine"]
        self.assertEqual((told["name"], told["url"], told["home"]), ("m", self.server.url, self.home))


class Namespaces(test_tls.Namespaces):
    """The other machine has no file of this one: the code is all that it gets."""

    test_a_worker_on_the_other_machine_and_a_cable_that_is_pulled = None
    test_the_clear_needs_a_word_and_a_stranger_gets_nothing = None

    def test_a_machine_across_the_cable_becomes_a_worker_and_takes_a_new_certificate(self):
        self.serve(*self.certificates.flags())
        made = self.client.post("/api/tokens", {"kind": "join", "name": "far"}).json
        self.assertEqual(made["url"], self.server.url)
        config = os.path.join(self.folder, "worker.json")
        with open(config, "w") as file:
            json.dump({"executors": {"x": sh("echo '{\"a\":1}'")}, "queues": {"q": {"executor": "x"}}}, file)
        ran = self.there(STINT, "worker", "enroll", made["url"], made["code"], "--config", config, token="")
        self.assertEqual(ran.returncode, 0, ran)
        keeper = int(re.search(r"as process (\d+)", ran.stdout)[1])
        self.addCleanup(os.kill, keeper, signal.SIGTERM)
        case = stintd.Case()
        case.client = self.client

        def is_done(task):
            self.assertEqual(self.client.post("/api/tasks", {"id": task, "title": "x", "queue": "q"}).status, 201)
            case.until(lambda: self.client.get("/api/tasks/" + task).json["state"] == "done", task)

        is_done("t")
        event, = [event for event in self.client.get("/api/events?limit=100").json["events"] if event.get("actor") == "join:far"]
        self.assertEqual(event["data"]["address"], self.THERE)
        self.certificates.make(self.HERE)
        self.server.process.send_signal(signal.SIGHUP)
        case.until(lambda: "was read anew" in self.server.said(), "the certificate is taken")
        is_done("u")


if __name__ == "__main__":
    unittest.main()
