"""Who gets as far as the door: Host and Origin on every route; and how much a stranger may try."""
import http.client
import signal
import socket
import time
import unittest

from hang import HANG_S
import stintd
from test_tokens import all_routes

DEADLINE_S = HANG_S


class Case(unittest.TestCase):
    flags = ()

    def setUp(self):
        self.server = stintd.Server(*self.flags)
        self.open = []
        self.admin = self.client()

    def tearDown(self):
        for one in self.open:
            one.close()
        self.server.end()

    def client(self, **options):
        self.open.append(self.server.client(**options))
        return self.open[-1]

    def connect(self):
        self.open.append(socket.create_connection(("127.0.0.1", self.server.port), timeout=DEADLINE_S))
        return self.open[-1]

    def metric(self, client, name):
        for line in client.get("/metrics").body.decode().splitlines():
            if line.startswith(name + " "):
                return int(line.split()[1])
        self.fail(name)

    def until(self, what, true):
        end = time.monotonic() + DEADLINE_S
        while not true():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.02)


class Rebinding(Case):
    def matrix(self):
        port = self.server.port
        hosts = {f"127.0.0.1:{port}": True, f"localhost:{port}": True, f"[::1]:{port}": True, "localhost": True,
                 "127.0.0.1": False, f"127.0.0.1:{port + 1 if port < 65535 else 1}": False, "evil.example": False,
                 f"evil.example:{port}": False, f"127.0.0.1:{port}.evil.example": False, f"0.0.0.0:{port}": False,
                 f"localhost.evil.example:{port}": False, f"127.1:{port}": False}
        origins = {None: True, f"http://127.0.0.1:{port}": True, f"http://localhost:{port}": True,
                   "http://evil.example": False, "null": False, f"https://127.0.0.1:{port}": False,
                   f"http://127.0.0.1:{port}.evil.example": False, "http://localhost": False}
        self.assertEqual((len(hosts), len(origins)), (12, 8))
        return hosts, origins

    def ask(self, connection, verb, path, host, origin):
        connection.putrequest(verb, path, skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", host)
        if origin is not None:
            connection.putheader("Origin", origin)
        connection.putheader("Content-Length", "0")
        connection.endheaders()
        reply = connection.getresponse()
        return reply.status, reply.read(), dict(reply.getheaders())

    def test_on_every_route_host_and_origin_come_first(self):
        hosts, origins = self.matrix()
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=DEADLINE_S)
        self.open.append(connection)
        before = self.admin.get("/api/events?after=0&limit=1000").json["next"]
        for verb, path, scopes in all_routes():
            for host, host_is_ours in hosts.items():
                for origin, origin_is_ours in origins.items():
                    status, body, headers = self.ask(connection, verb, path, host, origin)
                    expected = 421 if not host_is_ours else 403 if not origin_is_ours else \
                        200 if "public" in scopes else 401
                    if path == "/api/login" and expected == 200:  # it comes from the page of this very host
                        expected = 422 if origin == "http://" + host else 403
                    if path == "/api/enroll" and expected == 200:  # what it wants is missing
                        expected = 422
                    self.assertEqual(status, expected, (verb, path, host, origin, body))
                    self.assertFalse([name for name in headers if name.lower().startswith("access-control")])
        self.assertEqual(self.admin.get("/api/events?after=0&limit=1000").json["next"], before)

    def test_localhost_is_either_address(self):
        with socket.socket(socket.AF_INET6) as probe:
            try:
                probe.bind(("::1", 0))
            except OSError as fault:
                self.skipTest("this machine has no ::1: %s" % fault)
        if "another program has this port" in self.server.said():
            self.skipTest("another program has that port of ::1")
        for name, status in (("localhost", 200), ("[::1]", 200), ("elsewhere", 421)):
            connection = http.client.HTTPConnection("::1", self.server.port, timeout=DEADLINE_S)
            self.open.append(connection)
            connection.request("GET", "/livez", headers={"Host": "%s:%d" % (name, self.server.port)})
            self.assertEqual(connection.getresponse().status, status, name)

    def test_a_credential_does_not_make_up_for_it(self):
        for headers, status in (({"Host": "evil.example"}, 421), ({"Origin": "http://evil.example"}, 403),
                                ({"Sec-Fetch-Site": "cross-site"}, 403)):
            self.assertEqual(self.admin.call("POST", "/api/tasks", {"title": "x"}, headers).status, status)
        self.assertEqual(self.admin.get("/api/tasks").json, [])


class Flood(Case):
    flags = ("--set", "limits.authFailuresPerS=1")  # 20 a second from loopback

    def flood(self, count=40, token="stint_admin_0000000000000000_" + "A" * 43):
        """All of them lie before the server when it looks: a slow flood would be let pass."""
        clients = [self.server.client(token=token) for _ in range(count)]
        self.server.process.send_signal(signal.SIGSTOP)
        for client in clients:
            client.send("GET", "/api/tasks")
        self.server.process.send_signal(signal.SIGCONT)
        replies = [client.receive() for client in clients]
        for client in clients:
            client.close()
        return replies

    def flood_until_barred(self, **options):
        """The bar is lifted a little with time."""
        self.until("barred", lambda: self.flood(30, **options)[-1].status == 429)

    def test_whoever_tries_credentials_is_held_up(self):
        replies = self.flood()
        statuses = [reply.status for reply in replies]
        self.assertEqual(set(statuses), {401, 429})
        self.assertGreaterEqual(statuses.count(401), 10)
        barred = next(reply for reply in replies if reply.status == 429)
        self.assertEqual(barred.json["code"], "rate_limited")
        self.assertEqual(barred.headers["Retry-After"], "1")
        local = self.client(local=True)
        self.assertEqual(self.metric(local, "stint_auth_failures_total"), statuses.count(401))
        self.assertEqual(self.metric(local, "stint_auth_barred_total"), statuses.count(429))

    def mint(self, local):
        return local.post("/api/tokens", {"kind": "viewer", "name": "x"}).json["token"]

    def test_while_barred_a_right_credential_that_was_never_seen_comes_in(self):
        local = self.client(local=True)
        tokens = [self.mint(local) for _ in range(5)]
        for token in tokens:
            self.flood_until_barred()
            self.assertEqual(self.flood(1, token)[0].status, 200)

    def test_after_a_restart_a_right_credential_comes_in_before_wrong_ones_are_forgotten(self):
        tokens = [self.mint(self.client(local=True)) for _ in range(3)]
        self.server.stop()
        self.server.start()
        for token in tokens:
            self.flood_until_barred()
            self.assertEqual(self.flood(1, token)[0].status, 200)

    def test_a_connection_that_showed_wrong_ones_may_show_a_right_one(self):
        self.flood_until_barred()
        client = self.client(token="stint_admin_0000000000000000_" + "A" * 43)
        client.get("/api/tasks")
        connection = client.connection
        client.token = self.mint(self.client(local=True))
        self.assertEqual(client.get("/api/tasks").status, 200)
        self.assertIs(client.connection, connection)

    def test_while_barred_a_credential_that_was_right_before_comes_in_on_any_connection(self):
        local = self.client(local=True)
        token = self.mint(local)
        self.assertEqual(self.flood(1, token)[0].status, 200)
        for _ in range(5):
            self.flood_until_barred()
            self.assertEqual([reply.status for reply in self.flood(3, token)], [200] * 3)
            wrong = token[:-1] + ("B" if token[-1] == "A" else "A")
            self.flood_until_barred(token=wrong)

    def test_while_barred_the_token_of_the_file_comes_in_even_if_it_was_never_shown(self):
        self.flood_until_barred()
        self.assertEqual(self.flood(1, self.server.token)[0].status, 200)

    def test_what_was_right_before_and_was_revoked_is_401_and_counts(self):
        local = self.client(local=True)
        token = self.mint(local)
        self.assertEqual(self.flood(1, token)[0].status, 200)
        local.call("DELETE", "/api/tokens/" + token.split("_")[2])
        before = self.metric(local, "stint_auth_failures_total")
        self.assertEqual({reply.status for reply in self.flood(5, token)}, {401})
        self.assertEqual(self.metric(local, "stint_auth_failures_total"), before + 5)

    def test_a_flood_hurts_nobody_else(self):
        local, kept = self.client(local=True), self.client()
        self.assertEqual(kept.get("/api/tasks").status, 200)
        for i in range(5):
            self.flood(20)
            self.assertEqual(local.get("/api/tasks").status, 200, "another source")
            self.assertEqual(kept.post("/api/tasks", {"title": str(i)}).status, 201, "known since before")
            fresh = self.server.client(local=True)
            self.assertEqual(fresh.get("/api/tasks").status, 200)
            fresh.close()

    def test_a_connection_that_tries_wrong_ones_is_held_up_like_any_other(self):
        client = self.client()
        self.assertEqual(client.get("/api/tasks").status, 200)
        client.token = "stint_admin_0000000000000000_" + "A" * 43
        self.until("barred", lambda: client.get("/api/tasks").status == 429)

    def test_without_a_credential_nothing_is_tried(self):
        client = self.client(token="")
        self.assertEqual({client.get("/api/tasks").status for _ in range(60)}, {401})
        self.assertEqual({client.get("/livez").status for _ in range(60)}, {200})


class Shares(Case):
    flags = ("--set", "limits.requestsInFlight=2", "--set", "limits.eventStreams=2")

    def request(self, token, task):
        body = b'{"id":"%s","title":"x","queue":"q"}' % task.encode()
        return (b"POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                % (token.encode(), len(body), body))

    def test_a_crowd_of_one_principal_is_served_beside_others(self):
        tokens = [self.admin.post("/api/tokens", {"kind": "producer", "name": name}).json["token"] for name in "ab"]
        crowd = [(self.connect(), self.request(tokens[0], f"a{i}") + self.request(tokens[0], f"a{i}-more"))
                 for i in range(60)]
        few = [(self.connect(), self.request(tokens[1], f"b{i}")) for i in range(3)]
        for connection, request in crowd + few:
            connection.sendall(request)
        for connection, request in crowd + few:
            got, wanted = b"", request.count(b"POST ")
            while got.count(b"HTTP/1.1 201") < wanted:
                more = connection.recv(65536)
                self.assertTrue(more, got)
                got += more
        self.assertEqual(len(self.admin.get("/api/tasks").json), 123)

    def test_it_stops_with_all_of_them_answered(self):
        crowd = [(self.connect(), self.request(self.server.token, f"a{i}")) for i in range(50)]
        for connection, request in crowd:
            connection.sendall(request)
        self.assertEqual(self.server.stop(), 0)
        answered = 0
        for connection, _ in crowd:
            try:
                answered += b"HTTP/1.1 201" in connection.recv(65536)
            except OSError:
                pass
        self.server.start()
        self.admin = self.client(token=self.server.token)
        self.assertGreaterEqual(len(self.admin.get("/api/tasks").json), answered)

    def test_streams_of_one_principal_are_few(self):
        def stream():
            connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=DEADLINE_S)
            self.open.append(connection)
            connection.request("GET", "/api/events?after=0", headers={
                "Authorization": "Bearer " + self.server.token, "Accept": "text/event-stream"})
            return connection.getresponse()
        streams = [stream() for _ in range(3)]
        self.assertEqual([reply.status for reply in streams], [200, 200, 429])
        self.assertEqual(streams[2].headers["Retry-After"], "5")


if __name__ == "__main__":
    unittest.main()
