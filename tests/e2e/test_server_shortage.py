"""A server that is short of memory for a while: who comes meanwhile is turned away, nobody is told that it was wrong, and as soon
as there is memory again every listener serves."""
import os
import socket
import tempfile
import unittest

import stintd
from hang import HANG_S

SMALL = 400  # nothing of that many bytes is to be had: no connection, which has more


class Case(unittest.TestCase):
    least = SMALL

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="stint-short-")
        self.addCleanup(folder.cleanup)
        self.short = os.path.join(folder.name, "short")
        self.server = stintd.Server(LD_PRELOAD=os.environ["STINT_STARVE_SO"], STINT_STARVE=self.short,
                                    STINT_STARVE_BYTES=str(self.least))
        self.addCleanup(self.server.end)

    def starve(self):
        open(self.short, "w").close()

    def feed(self):
        os.unlink(self.short)

    def create(self, client, name):
        self.addCleanup(client.close)
        self.assertEqual(client.post("/api/tasks", {"id": name, "title": name}).status, 201)


class Listeners(Case):
    def knock(self, family, address, count):
        """So many connections at once, each of which is closed by the server."""
        knocking = [socket.socket(family, socket.SOCK_STREAM) for _ in range(count)]
        for one in knocking:
            one.settimeout(HANG_S)
            one.connect(address)
        for one in knocking:
            try:
                self.assertEqual(one.recv(1), b"")
            except ConnectionResetError:
                pass
            one.close()

    def test_connections_that_find_no_memory_are_closed_and_the_listeners_go_on(self):
        self.starve()
        for _ in range(3):
            self.knock(socket.AF_INET, ("127.0.0.1", self.server.port), 5)
            self.knock(socket.AF_UNIX, os.path.join(self.server.home, "stint.sock"), 5)
        self.feed()
        self.create(self.server.client(), "tcp")
        self.create(stintd.Client(self.server, local=True), "local")
        self.assertIn("no memory", self.server.said())


class Claims(Case):
    least = 640_000  # a text of TEXT bytes can be read, but no reply that has it can be written

    TEXT = 500_000

    def test_a_claim_whose_reply_finds_no_memory_is_given_back(self):
        client = self.server.client()
        self.addCleanup(client.close)
        long = {"id": "t", "title": "t", "description": "x" * self.TEXT}
        self.assertEqual(client.post("/api/tasks", long).status, 201)
        self.starve()
        self.assertEqual(client.post("/api/claims", {"workerId": "v"}).status, 503)
        self.feed()
        claim, = client.post("/api/claims", {"workerId": "w"}).json["claims"]
        self.assertEqual(claim["task"]["id"], "t")


if __name__ == "__main__":
    unittest.main()
