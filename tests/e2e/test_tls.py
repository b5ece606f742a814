"""TLS between the real programs: who is spoken to, who hears nothing, and what a certificate does while work goes on."""
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest

from hang import HANG_S
import stintd
from test_worker import WORKER, sh
from tls import STINT, Certificates, Cutter, Stranger, foreign


class Case(stintd.Case):
    more = ("--set", "worker.leaseMinMs=1000", "--set", "sweep.intervalMs=50")

    def setUp(self):
        self.certificates = Certificates("127.0.0.2")
        self.addCleanup(self.certificates.close)
        self.flags = [*self.more, *self.certificates.flags()]
        super().setUp()
        self.server.ca = self.certificates.ca
        self.folder = tempfile.mkdtemp(prefix="stint-tls-")
        self.addCleanup(shutil.rmtree, self.folder, True)

    def stint(self, *words, url=None, ca=True, **variables):
        """A command from another machine: it has no state directory."""
        home = os.path.join(self.folder, "elsewhere")
        flags = ["--url", url or self.server.url, *(["--ca", self.certificates.ca] if ca is True else ["--ca", ca] if ca else [])]
        return subprocess.run([STINT, *words, *flags], capture_output=True, text=True, timeout=HANG_S, stdin=subprocess.DEVNULL,
                              env=stintd.environment(STINT_HOME=home, STINT_TOKEN=self.server.token, **variables))

    def worker(self, executors, *flags, host="localhost", port=None):
        """One of another machine."""
        home = tempfile.mkdtemp(prefix="stint-tls-home-")
        self.addCleanup(shutil.rmtree, home, True)
        token = self.client.post("/api/tokens", {"kind": "worker", "name": "w"}).json["token"]
        config = os.path.join(home, "worker.json")
        with open(config, "w") as file:
            json.dump({"executors": executors, "queues": {"q": {}}}, file)
        log = open(os.path.join(home, "log"), "ab")
        url = "https://%s:%d" % (host, port or self.server.port)
        process = subprocess.Popen([WORKER, "--home", home, "--config", config, "--url", url, "--ca", self.certificates.ca, "--remote", *flags],
                                   stdin=subprocess.DEVNULL, stderr=log, env=stintd.environment(STINT_TOKEN=token), start_new_session=True)

        def end():
            if process.poll() is None:
                process.kill()
                process.wait(HANG_S)
            log.close()

        self.addCleanup(end)
        process.log = log.name
        return process

    def is_in(self, task, state):
        return self.until(lambda: (found := self.client.get("/api/tasks/" + task).json)["state"] == state and found, (task, state))

    def raw(self):
        """A connection of TLS, by Python's own."""
        context = ssl.create_default_context(cafile=self.certificates.ca)
        return context.wrap_socket(socket.create_connection(("127.0.0.1", self.server.port), HANG_S), server_hostname="localhost")

    def refused(self, port, host="127.0.0.1", **options):
        """A command that does not trust what it meets there."""
        ran = self.stint("ls", url="https://%s:%d" % (host, port), **options)
        self.assertEqual(ran.returncode, 7, ran)
        self.assertIn("is not trusted, and nothing was sent", ran.stderr)
        return ran.stderr


class Speaks(Case):
    def test_commands_by_name_and_by_address(self):
        self.assertTrue(self.server.url.startswith("https://127.0.0.1:"))
        for host in ("127.0.0.1", "localhost", "[::1]"):
            ran = self.stint("ls", "--json", url="https://%s:%d" % (host, self.server.port))
            self.assertEqual((ran.returncode, json.loads(ran.stdout)["tasks"]), (0, []), ran)

    def test_the_authority_may_come_from_the_environment_and_from_the_home(self):
        self.assertEqual(self.stint("ls", ca=None, STINT_CA=self.certificates.ca).returncode, 0)
        kept = os.path.join(self.folder, "elsewhere", "tls")
        os.makedirs(kept, 0o700)
        shutil.copy(self.certificates.ca, os.path.join(kept, "ca.crt"))
        self.assertEqual(self.stint("ls", ca=None).returncode, 0)

    def test_a_running_server_leaves_its_authority_in_its_home(self):
        kept = os.path.join(self.server.home, "ca.crt")
        with open(kept, "rb") as here, open(self.certificates.ca, "rb") as there:
            self.assertEqual(here.read(), there.read())
        ran = subprocess.run([STINT, "ls", "--url", self.server.url], capture_output=True, text=True, timeout=HANG_S,
                             stdin=subprocess.DEVNULL, env=stintd.environment(STINT_HOME=self.server.home))
        self.assertEqual(ran.returncode, 0, ran)
        self.server.stop()
        self.assertFalse(os.path.exists(kept))

    def test_long_bodies_in_both_directions(self):
        title = "x" * 500
        client = self.client
        drafts = [{"id": "t%d" % n, "title": title, "queue": "z", "payload": {"text": "é" * 1000}} for n in range(100)]
        self.assertEqual(client.post("/api/tasks/batch", drafts).status, 200)
        listed = client.get("/api/tasks?queue=z&limit=100").json
        self.assertEqual({task["id"] for task in listed}, {draft["id"] for draft in drafts})
        ran = self.stint("ls", "--json", "--queue", "z", "--all")
        self.assertEqual(len(json.loads(ran.stdout)["tasks"]), 100)

    def test_a_client_that_reads_slowly_gets_all_of_it(self):
        drafts = [{"id": "t%d" % n, "title": "x" * 500, "queue": "z"} for n in range(1000)]
        for at in range(0, 1000, 100):
            self.client.post("/api/tasks/batch", drafts[at:at + 100])
        with self.raw() as peer:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 256 << 10)
            head = "GET /api/tasks?limit=500 HTTP/1.1\r\nHost: localhost:%d\r\nAuthorization: Bearer %s\r\n\r\n"
            ask = (head % (self.server.port, self.server.token)).encode()
            peer.sendall(ask * 16)
            got = bytearray()
            seen = 0
            while seen < 16 * 500:  # of a reply in chunks each record holds whole words, or the next block is searched with it
                block = peer.recv(16384)
                self.assertTrue(block, "it ended before its time")
                got += block
                if got.endswith(b"\r\n"):
                    seen += got.count(b'"queue":"z"')
                    got.clear()

    def test_requests_in_one_record_and_in_many(self):
        head = ("GET /api/version HTTP/1.1\r\nHost: localhost:%d\r\nAuthorization: Bearer %s\r\n\r\n" %
                (self.server.port, self.server.token)).encode()
        with self.raw() as peer:
            peer.sendall(head * 20)
            for byte in head:
                peer.sendall(bytes([byte]))
            got = b""
            while got.count(b"HTTP/1.1 200 ") < 21:
                block = peer.recv(65536)
                self.assertTrue(block)
                got += block

    def test_a_stream_and_its_end(self):
        process = subprocess.Popen([STINT, "events", "--follow", "--json", "--url", self.server.url, "--ca", self.certificates.ca],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=stintd.environment(STINT_TOKEN=self.server.token,
                                                                                                          STINT_HOME=self.folder))
        try:
            self.until(lambda: self.client.get("/metrics").body.count(b"stint_event_streams 1"), "it follows")
            self.create(id="seen")
            self.assertIn(b'"seen"', process.stdout.readline())
        finally:
            process.kill()
            process.communicate()

    def test_the_end_of_a_connection_is_said(self):
        with self.raw() as peer:
            peer.sendall(("GET /livez HTTP/1.1\r\nHost: localhost:%d\r\nConnection: close\r\n\r\n" % self.server.port).encode())
            got = b""
            while block := peer.recv(65536):  # Python raises if nobody says goodbye
                got += block
            self.assertIn(b"200 OK", got)

    def test_one_protocol_is_offered_and_old_ones_are_refused(self):
        def shake(**options):
            context = ssl.create_default_context(cafile=self.certificates.ca)
            if "protocols" in options:
                context.set_alpn_protocols(options["protocols"])
            context.maximum_version = options.get("most", ssl.TLSVersion.MAXIMUM_SUPPORTED)
            if "ciphers" in options:
                context.set_ciphers(options["ciphers"])
            with context.wrap_socket(socket.create_connection(("127.0.0.1", self.server.port), HANG_S), server_hostname="localhost") as peer:
                return peer.version(), peer.selected_alpn_protocol()

        self.assertEqual(shake(protocols=["h2", "http/1.1"]), ("TLSv1.3", "http/1.1"))
        self.assertEqual(shake(most=ssl.TLSVersion.TLSv1_2), ("TLSv1.2", None))
        for options in ({"protocols": ["h2"]}, {"most": ssl.TLSVersion.TLSv1_1, "ciphers": "ALL:@SECLEVEL=0"},
                        {"most": ssl.TLSVersion.TLSv1_2, "ciphers": "AES128-SHA256"}):
            with self.assertRaises(OSError):
                shake(**options)

    def test_plain_http_on_this_port_is_told_what_it_should_say(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=HANG_S)
        connection.request("GET", "/api/tasks")
        reply = connection.getresponse()
        self.assertEqual(reply.status, 400)
        self.assertIn("https://", json.loads(reply.read())["detail"])
        connection.close()

    def test_host_and_origin_are_those_of_the_certificate(self):
        port = self.server.port
        for host, status in (("localhost:%d" % port, 200), ("evil.example:%d" % port, 421), ("localhost:1", 421)):
            self.assertEqual(self.client.call("GET", "/api/version", headers={"Host": host}, judged=False).status, status, host)
        for origin, status in (("https://localhost:%d" % port, 200), ("http://localhost:%d" % port, 403), ("https://evil.example", 403)):
            self.assertEqual(self.client.call("GET", "/api/version", headers={"Origin": origin}, judged=False).status, status, origin)

    def test_the_session_of_a_browser_has_a_name_for_https_alone(self):
        code = self.client.post("/api/tokens", {"kind": "login"}).json["code"]
        origin = "https://127.0.0.1:%d" % self.server.port
        reply = self.client.call("POST", "/api/login", {"code": code}, {"Origin": origin})
        cookie = reply.headers["Set-Cookie"]
        self.assertTrue(cookie.startswith("__Host-stint_%d=" % self.server.port), cookie)
        self.assertIn("; Secure", cookie)


class Trust(Case):
    def test_a_stranger_who_answers_for_the_server_hears_nothing(self):
        stranger = Stranger(*foreign(self.folder))
        self.addCleanup(stranger.close)
        self.assertIn("no authority that is trusted here", self.refused(stranger.port))
        self.refused(stranger.port, ca=None)
        self.assertTrue(stranger.failed.wait(HANG_S))
        self.assertEqual(stranger.heard, b"")

    def test_a_worker_tells_a_stranger_nothing(self):
        stranger = Stranger(*foreign(self.folder))
        self.addCleanup(stranger.close)
        process = self.worker({"x": sh("true")}, port=stranger.port)
        self.assertTrue(stranger.failed.wait(HANG_S))
        self.assertIsNone(process.poll())
        self.assertEqual(stranger.heard, b"")

    def test_a_certificate_for_another_name(self):
        other = Stranger(*foreign(self.folder, "other.example"))
        self.addCleanup(other.close)
        said = self.refused(other.port, ca=os.path.join(self.folder, "other.example.crt"))
        self.assertIn("its certificate is for other.example, not for 127.0.0.1", said)
        self.refused(other.port, "localhost", ca=os.path.join(self.folder, "other.example.crt"))
        self.assertEqual(other.heard, b"")

    @unittest.skipUnless(shutil.which("faketime"), "there is no faketime here to make an old certificate (package faketime)")
    def test_a_certificate_whose_time_is_over(self):
        old = Stranger(*foreign(self.folder, when="2021-02-03 00:00:00"))
        self.addCleanup(old.close)
        said = self.refused(old.port, ca=os.path.join(self.folder, "localhost.crt"))
        self.assertIn("its certificate is valid from 2021-02-0", said)
        self.assertIn("and the clock of this machine says 20", said)
        self.assertEqual(old.heard, b"")

    def test_what_is_no_tls_at_all(self):
        with socket.create_server(("127.0.0.1", 0)) as door:
            def answer():
                peer, _ = door.accept()
                with peer:
                    self.heard = peer.recv(65536)
                    peer.sendall(b"HTTP/1.1 200 OK\r\n\r\n")

            thread = threading.Thread(target=answer)
            thread.start()
            ran = self.stint("ls", url="https://127.0.0.1:%d" % door.getsockname()[1])
            thread.join(HANG_S)
        self.assertEqual(ran.returncode, 7)
        self.assertIn("no https is spoken at", ran.stderr)
        self.assertNotIn(self.server.token.encode(), self.heard)

    def test_no_credential_goes_in_the_clear_to_another_machine(self):
        ran = self.stint("ls", url="http://192.0.2.1:9", ca=None)
        self.assertEqual(ran.returncode, 2)
        self.assertIn("sends the credential in the clear", ran.stderr)
        secret = os.path.join(self.folder, "secret")
        with open(secret, "w") as file:
            file.write("whsec_" + "A" * 43 + "=\n")
        os.chmod(secret, 0o600)
        for program in ([WORKER, "run"], [os.path.join(os.path.dirname(WORKER), "stint-notify")]):
            config = os.path.join(self.folder, "some.json")
            with open(config, "w") as file:
                json.dump({"executors": {"x": sh("true")}, "notify": {"targets": {"a": {
                    "url": "https://a.example", "events": ["alerts"], "secretFile": secret}}}}, file)
            ran = subprocess.run([*program, "--url", "http://192.0.2.1:9", "--token", "t", "--home", self.folder, "--config", config],
                                 capture_output=True, text=True, timeout=HANG_S, env=stintd.environment())
            self.assertIn("sends the credential in the clear", ran.stderr, program)

    def test_a_redirect_is_not_followed(self):
        heard = []
        with socket.create_server(("127.0.0.1", 0)) as door, socket.create_server(("127.0.0.1", 0)) as other:
            def answer():
                peer, _ = door.accept()
                with peer:
                    peer.recv(65536)
                    peer.sendall(b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:%d/api/tasks\r\nContent-Length: 0\r\n\r\n" %
                                 other.getsockname()[1])

            thread = threading.Thread(target=answer)
            thread.start()
            ran = self.stint("ls", url="http://127.0.0.1:%d" % door.getsockname()[1], ca=None)
            thread.join(HANG_S)
            other.setblocking(False)
            with self.assertRaises(BlockingIOError):
                heard.append(other.accept())
        self.assertNotEqual(ran.returncode, 0)

    def test_a_file_that_is_no_authority(self):
        path = os.path.join(self.folder, "no.crt")
        with open(path, "w") as file:
            file.write("nothing\n")
        for ca, words in ((path, "there is no certificate in it"), (path + "x", "No such file")):
            ran = self.stint("ls", ca=ca)
            self.assertEqual(ran.returncode, 2)
            self.assertIn(words, ran.stderr)


class Works(Case):
    def test_a_worker_and_its_child_by_https(self):
        script = ("[ -n \"$STINT_TOKEN_FILE\" ] && %s task progress half && " % STINT) + "echo '{\"a\":1}'"
        self.worker({"x": sh(script)})
        self.create(id="t")
        self.assertEqual(self.is_in("t", "done")["result"], {"a": 1})
        self.assertIn("half", [event["data"].get("note") for event in self.client.get("/api/tasks/t/events").json["events"] if event.get("data")])

    def test_a_certificate_is_rotated_while_a_worker_works(self):
        with open(self.certificates.path("server.crt")) as file:
            before = file.read()
        go = os.path.join(self.folder, "go")
        self.worker({"x": sh("while [ ! -e %s ]; do sleep 0.05; done; echo '{\"a\":1}'" % go)})
        self.create(id="t")
        self.is_in("t", "claimed")
        self.certificates.make("new.example")
        self.server.process.send_signal(signal.SIGHUP)
        self.until(lambda: "was read anew" in self.server.said(), "it is taken")
        shown = ssl.get_server_certificate(("127.0.0.1", self.server.port))
        self.assertNotEqual(shown.strip(), before.strip())
        open(go, "w").close()
        self.is_in("t", "done")
        self.create(id="u")
        self.is_in("u", "done")

    def test_a_bad_pair_is_not_taken(self):
        cert, key = foreign(self.folder, "other.example")
        before = ssl.get_server_certificate(("127.0.0.1", self.server.port))
        shutil.copy(cert, self.certificates.path("server.crt"))
        self.server.process.send_signal(signal.SIGHUP)
        self.until(lambda: "do not belong together" in self.server.said(), "it is refused")
        self.assertEqual(ssl.get_server_certificate(("127.0.0.1", self.server.port)), before)
        told = self.client.get("/readyz").json["certificate"]
        self.assertTrue(told["stale"])
        self.assertIn("do not belong together", told["problem"])
        stranger = self.server.client(token="")
        self.addCleanup(stranger.close)
        self.assertNotIn("problem", stranger.get("/readyz").json["certificate"])
        doctor = self.stint("doctor", "--json")
        self.assertIn("the server does not use the newer TLS certificate", doctor.stdout)
        shutil.copy(key, self.certificates.path("server.key"))
        os.chmod(self.certificates.path("server.key"), 0o600)
        self.server.process.send_signal(signal.SIGHUP)
        self.until(lambda: "was read anew" in self.server.said(), "the second half came")

    def test_its_end_is_told_by_readyz_and_doctor(self):
        ends = self.client.get("/readyz").json["certificate"]["endsAt"]
        self.assertEqual(list(self.client.get("/readyz").json["certificate"]), ["endsAt"])
        self.assertIn("the TLS certificate ends in", self.stint("doctor", "--all", "--json").stdout)
        cert, key = foreign(self.folder, "localhost")  # for two days
        shutil.copy(cert, self.certificates.path("server.crt"))
        shutil.copy(key, self.certificates.path("server.key"))
        os.chmod(self.certificates.path("server.key"), 0o600)
        self.server.process.send_signal(signal.SIGHUP)
        self.until(lambda: "the TLS certificate ends soon" in self.server.said(), "it warns")
        self.server.ca = cert
        self.client.close()
        self.assertLess(self.client.get("/readyz").json["certificate"]["endsAt"], ends)
        checks = {check["name"]: check for check in json.loads(self.stint("doctor", "--json", ca=cert).stdout)["checks"]}
        self.assertEqual(checks["certificate"]["verdict"], "warn")

    def test_connections_that_are_cut_lose_nothing(self):
        cutter = Cutter(("127.0.0.1", self.server.port), ("127.0.0.2", self.server.port))
        self.addCleanup(cutter.close)
        self.worker({"x": sh("echo '{\"a\":1}'")}, "--concurrency", "4", host="127.0.0.2")
        for n in range(40):
            self.create(id="t%d" % n)
            if n % 5 == 0:
                cutter.cut()
        for n in range(40):
            self.assertEqual(self.is_in("t%d" % n, "done")["result"], {"a": 1})
        self.assertGreater(cutter.count, 4)


class Looks(Case):
    def test_a_new_certificate_is_found_without_being_told(self):
        with open(self.certificates.path("server.crt")) as file:
            before = file.read()
        self.certificates.make("new.example")
        self.until(lambda: ssl.get_server_certificate(("127.0.0.1", self.server.port)).strip() != before.strip(), "it looks every ten seconds")
        self.assertIn("was read anew", self.server.said())


class Floods(Case):
    def test_those_who_knock_and_say_nothing_keep_nobody_out(self):
        knocks = [socket.create_connection(("127.0.0.1", self.server.port)) for _ in range(300)]
        for knock in knocks[::3]:
            knock.sendall(b"\x16\x03\x01\x02\x00\x01")  # it begins, and goes no further
        for knock in knocks[1::3]:
            knock.sendall(b"\x16\x03\x01\x00\x05xxxxx")  # it is nonsense
        for _ in range(20):
            self.assertEqual(self.stint("ls").returncode, 0)
        for knock in knocks:
            knock.settimeout(HANG_S)
            try:
                while knock.recv(4096):
                    pass
            except ConnectionResetError:
                pass
            knock.close()

    def test_a_connection_that_goes_away_amid_its_handshake(self):
        for size in (1, 5, 60, 200):
            for _ in range(20):
                context = ssl.create_default_context(cafile=self.certificates.ca)
                incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
                end = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
                with self.assertRaises(ssl.SSLWantReadError):
                    end.do_handshake()
                with socket.create_connection(("127.0.0.1", self.server.port)) as peer:
                    peer.sendall(outgoing.read()[:size] if size < 200 else outgoing.read())
        self.assertEqual(self.stint("ls").returncode, 0)


class Namespaces(unittest.TestCase):
    """Two machines as far as the network is concerned, with a cable between them that can be pulled."""
    HERE, THERE = "10.77.0.1", "10.77.0.2"
    LISTENS = HERE

    def setUp(self):
        if os.geteuid() != 0 or not shutil.which("ip"):
            self.skipTest("network namespaces are made by root, with ip (package iproute2)")
        self.near, self.far = ("stint-%s-%d" % (side, os.getpid()) for side in ("near", "far"))
        for name in (self.near, self.far):
            if subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode != 0:
                self.skipTest("no network namespace can be made here")
            self.addCleanup(subprocess.run, ["ip", "netns", "del", name], capture_output=True)
        if self.ip("link", "add", "name", "veth0", "netns", self.near, "type", "veth", "peer", "name", "veth1", "netns", self.far).returncode != 0:
            self.skipTest("this kernel has no veth")
        for name, link, address in ((self.near, "veth0", self.HERE), (self.far, "veth1", self.THERE)):
            self.ip("-n", name, "address", "add", address + "/30", "dev", link)
            self.ip("-n", name, "link", "set", link, "up")
            self.ip("-n", name, "link", "set", "lo", "up")
        self.certificates = Certificates(self.HERE)
        self.addCleanup(self.certificates.close)
        self.folder = tempfile.mkdtemp(prefix="stint-tls-")
        self.addCleanup(shutil.rmtree, self.folder, True)

    def ip(self, *words):
        return subprocess.run(["ip", *words], capture_output=True)

    def serve(self, *flags):
        near, here = self.near, self.LISTENS

        class Far(stintd.Server):
            def command(self):
                return ["ip", "netns", "exec", near, stintd.STINTD, "--home", self.home, "--listen", here + ":0", *self.flags]

        self.server = Far("--set", "worker.leaseMinMs=1000", "--set", "retry.baseMs=10", *flags)
        self.addCleanup(self.server.end)
        self.client = self.server.client(local=True)
        self.addCleanup(self.client.close)

    def there(self, *words, token):
        return subprocess.run(["ip", "netns", "exec", self.far, *words], capture_output=True, text=True, timeout=HANG_S,
                              stdin=subprocess.DEVNULL, env=stintd.environment(STINT_TOKEN=token, STINT_HOME=self.folder))

    def test_a_worker_on_the_other_machine_and_a_cable_that_is_pulled(self):
        self.serve(*self.certificates.flags())
        token = self.client.post("/api/tokens", {"kind": "worker", "name": "w"}).json["token"]
        go, config = os.path.join(self.folder, "go"), os.path.join(self.folder, "worker.json")
        with open(config, "w") as file:
            json.dump({"executors": {"x": sh("while [ ! -e %s ]; do sleep 0.05; done; echo '{\"a\":1}'" % go)}, "queues": {"q": {}}}, file)
        with open(os.path.join(self.folder, "log"), "wb") as log:
            worker = subprocess.Popen(["ip", "netns", "exec", self.far, WORKER, "--home", self.folder, "--config", config, "--url", self.server.url,
                                       "--ca", self.certificates.ca], stdin=subprocess.DEVNULL, stderr=log,
                                      env=stintd.environment(STINT_TOKEN=token), start_new_session=True)
        self.addCleanup(worker.wait, HANG_S)
        self.addCleanup(worker.kill)
        case = stintd.Case()
        case.client = self.client

        def is_in(state):
            return case.until(lambda: (found := self.client.get("/api/tasks/t").json)["state"] == state and found, state)

        self.assertEqual(self.client.post("/api/tasks", {"id": "t", "title": "x", "queue": "q"}).status, 201)
        is_in("claimed")
        self.ip("-n", self.far, "link", "set", "veth1", "down")
        open(go, "w").close()
        self.ip("-n", self.far, "link", "set", "veth1", "up")
        done = is_in("done")
        self.assertEqual((done["result"], done["attempt"]), ({"a": 1}, 1))

    def test_the_clear_needs_a_word_and_a_stranger_gets_nothing(self):
        self.serve("--behind-proxy")
        token = self.server.token
        ran = self.there(STINT, "ls", "--url", self.server.url, token=token)
        self.assertEqual((ran.returncode, self.server.url.split(":")[0]), (2, "http"))
        self.assertIn("sends the credential in the clear", ran.stderr)
        self.assertEqual(self.there(STINT, "ls", "--plain", "--url", self.server.url, token=token).returncode, 0)
        secure = self.server.url.replace("http:", "https:")
        ran = self.there(STINT, "ls", "--url", secure, "--ca", self.certificates.ca, token=token)
        self.assertEqual(ran.returncode, 7)
        self.assertIn("no https is spoken at", ran.stderr)


class Start(unittest.TestCase):
    def setUp(self):
        self.certificates = Certificates()
        self.addCleanup(self.certificates.close)
        self.home = tempfile.mkdtemp(prefix="stint-tls-")
        self.addCleanup(shutil.rmtree, self.home, True)

    def check(self, *sets, listen="127.0.0.1:0"):
        words = [word for text in sets for word in ("--set", text)]
        return subprocess.run([stintd.STINTD, "--home", self.home, "--listen", listen, "--check-config", *words], capture_output=True, text=True,
                              timeout=HANG_S, env=stintd.environment())

    def wrong(self, sentence, *sets, **options):
        ran = self.check(*sets, **options)
        self.assertEqual(ran.returncode, 78, ran)
        self.assertIn(sentence, ran.stderr)

    def test_a_wrong_configuration_says_what_is_wrong(self):
        cert, key = ("tls.%s=%s" % (what, self.certificates.path("server." + file)) for what, file in (("cert", "crt"), ("key", "key")))
        self.assertEqual(self.check(cert, key).returncode, 0)
        self.wrong("tls.cert and tls.key go together: tls.key is not set", cert)
        self.wrong("tls.cert and tls.key go together: tls.cert is not set", key)
        self.wrong("tls.cert must be an absolute path", "tls.cert=server.crt", key)
        self.wrong("tls.cert: cannot read /nowhere/x: No such file", "tls.cert=/nowhere/x", key)
        self.wrong("the key cannot be read", cert, "tls.key=" + self.certificates.ca)
        self.wrong("the certificate cannot be read", "tls.cert=" + self.certificates.path("server.key"), key)
        self.wrong("do not belong together", "tls.cert=" + self.certificates.ca, key)
        self.wrong("is not a certificate in PEM", cert, key, "tls.ca=" + self.certificates.path("ca.key"))
        self.wrong("tls.ca is for a server with", "tls.ca=" + self.certificates.ca)
        os.chmod(self.certificates.path("server.key"), 0o644)
        self.wrong("or others may read it", cert, key)

    def test_an_address_that_is_not_loopback_needs_tls(self):
        self.wrong("listening on 192.0.2.1 needs TLS", listen="192.0.2.1:0")
        sets = ["tls.%s=%s" % (what, self.certificates.path("server." + file)) for what, file in (("cert", "crt"), ("key", "key"))]
        self.assertEqual(self.check(*sets, listen="192.0.2.1:0").returncode, 0)

    @unittest.skipUnless(shutil.which("faketime"), "there is no faketime here to make an old certificate (package faketime)")
    def test_a_certificate_whose_time_is_over_does_not_start(self):
        cert, key = foreign(self.home, when="2021-02-03 00:00:00")
        self.wrong("the certificate is valid from 2021-02-0", "tls.cert=" + cert, "tls.key=" + key)

    def test_tls_on_a_plain_port_is_a_line_in_the_log(self):
        server = stintd.Server()
        self.addCleanup(server.end)
        with self.assertRaises(OSError):
            with socket.create_connection(("127.0.0.1", server.port), HANG_S) as peer:
                ssl.create_default_context().wrap_socket(peer, server_hostname="localhost")
        self.assertIn("a client speaks TLS to a port without TLS", server.said())


if __name__ == "__main__":
    unittest.main()
