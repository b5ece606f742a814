"""Readers of long lists: they get what is true, and claims go on as if they were not there."""
import json
import multiprocessing
import socket
import time
import unittest

from figures import MIB, figure
from hang import HANG_S
from test_hostile import HostileCase as Hostile

TASKS, CLAIMED = 100000, 10000
fork = multiprocessing.get_context("fork")


class Reply:
    """The reply to a GET, read as slowly as its reader likes."""

    def __init__(self, case, path, receive_bytes=None, token=None, version="1.1", method="GET"):
        self.wire = socket.socket()
        case.addCleanup(self.wire.close)
        if receive_bytes:
            self.wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.wire.settimeout(HANG_S)
        self.wire.connect(("127.0.0.1", case.server.port))
        self.wire.sendall(("%s %s HTTP/%s\r\nHost: localhost:%d\r\nAuthorization: Bearer %s\r\n\r\n" % (
            method, path, version, case.server.port, token or case.server.token)).encode())
        self.bytes, self.head = b"", None

    def more(self):
        got = self.wire.recv(65536)
        self.bytes += got
        return got

    def begin(self):
        """The head, and at least one byte of the body."""
        while self.head is None or not self.bytes:
            if not self.more():
                raise EOFError(self.head)
            if self.head is None and b"\r\n\r\n" in self.bytes:
                head, self.bytes = self.bytes.split(b"\r\n\r\n", 1)
                lines = head.decode().split("\r\n")
                self.status = int(lines[0].split(" ")[1])
                self.head = dict(line.split(": ", 1) for line in lines[1:])
        return self

    def chunk(self):
        while b"\r\n" not in self.bytes:
            if not self.more():
                raise EOFError
        size, self.bytes = self.bytes.split(b"\r\n", 1)
        size = int(size, 16) + 2
        while len(self.bytes) < size:
            if not self.more():
                raise EOFError
        chunk, self.bytes = self.bytes[:size - 2], self.bytes[size:]
        return chunk

    def body(self):
        """All of it; EOFError if it was broken off."""
        if self.head is None:
            self.begin()
        if self.head.get("Transfer-Encoding") == "chunked":
            chunks = []
            while not chunks or chunks[-1]:
                chunks.append(self.chunk())
            return b"".join(chunks)
        while len(self.bytes) < int(self.head.get("Content-Length", 1 << 40)) and self.more():
            pass
        return self.bytes

    @property
    def json(self):
        return json.loads(self.body())

    @property
    def next(self):
        link = self.head.get("Link")
        return link[1:link.index(">")] if link else None


def claim_and_complete(server, name, done, stopping, failures):
    """A worker: for every task it takes it makes a new one, so each of its requests must be granted."""
    client, finish = server.client(), []
    while not stopping.is_set():
        reply = client.post("/api/claims", {"workerId": name, "queues": ["q"], "finish": finish})
        claims = reply.json["claims"] if reply.status == 200 else []
        if len(claims) != 1 or any(not item["ok"] for item in reply.json.get("finished", [])):
            failures.put((name, reply.status, reply.body))
            break
        with done.get_lock():
            done.value += len(finish)
        finish = [{"id": claims[0]["task"]["id"], "fence": claims[0]["fence"], "outcome": "complete"}]
        client.post("/api/tasks", {"title": "new", "queue": "q"})
    client.close()


class ReaderCase(Hostile):
    def fill(self, count, text="", **fields):
        ids, step = [], 400 if text else 1000
        for at in range(0, count, step):
            tasks = [{"title": "x", "description": text, "priority": i % 5, **fields}
                     for i in range(at, min(at + step, count))]
            # To judge them takes ten times as long as to make them; those behind the first are like it.
            reply = self.client.post("/api/tasks/batch", {"tasks": tasks}, judged=at == 0)
            self.assertEqual(reply.status, 200, reply.body)
            ids += [item["task"]["id"] for item in reply.json["results"]]
        return ids

    def start_claimers(self, count=4):
        self.done, self.stopping, self.failures = fork.Value("l", 0), fork.Event(), fork.SimpleQueue()
        claimers = [fork.Process(target=claim_and_complete, args=(
            self.server, "w%d" % i, self.done, self.stopping, self.failures)) for i in range(count)]
        for claimer in claimers:
            claimer.start()
        self.addCleanup(self.stop_claimers, claimers)
        return claimers

    def stop_claimers(self, claimers):
        self.stopping.set()
        for claimer in claimers:
            claimer.join(HANG_S)
            self.assertEqual(claimer.exitcode, 0)
        if not self.failures.empty():
            self.fail(self.failures.get())

    def wait_for_claims(self, count=10):
        before = self.done.value
        self.wait_until(lambda: self.done.value >= before + count)

    def reads(self):
        return self.metric("stint_reads")


def place(task):
    """Where a task stands in claim order."""
    return -task["priority"], task["createdAt"], int(task["id"][2:], 36)


class Lists(ReaderCase):
    def test_a_list_of_all_tasks_is_right_while_they_are_claimed_and_created(self):
        stay = self.fill(TASKS - CLAIMED, queue="stay")
        self.fill(CLAIMED, queue="q")
        claimers = self.start_claimers()
        seen, pages, url = [], 0, "/api/tasks"
        while url:
            reply = Reply(self, url, receive_bytes=4096).begin()
            if reply.next:
                self.wait_for_claims()  # amid the reply: what is left of it does not fit into any buffer
            tasks = reply.json
            self.assertLessEqual(len(tasks), 10000)
            seen, pages, url = seen + tasks, pages + 1, reply.next
        self.stop_claimers(claimers)
        self.assertGreaterEqual(pages, TASKS // 10000)
        final = [task["state"] in ("done", "failed", "cancelled") for task in seen]
        self.assertEqual(final, sorted(final))  # open ones first
        places = [place(task) for task in seen if task["state"] == "ready"]
        self.assertEqual(places, sorted(places))
        kept = [task["id"] for task in seen if task["queue"] == "stay"]
        self.assertEqual(len(kept), len(stay))
        self.assertEqual(set(kept), set(stay))

    def test_filters_find_what_is_far_behind(self):
        old = self.fill(3, queue="old", labels=["deep"], owner="slot-1")
        self.client.post("/api/tasks/%s/cancel" % old[0])
        self.fill(25000, queue="new")
        for query, ids in (("queue=old", [old[2], old[1], old[0]]), ("state=cancelled", [old[0]]),
                           ("owner=slot-1&status=todo", [old[2], old[1]]), ("queue=none", [])):
            reply = self.client.get("/api/tasks?" + query)
            self.assertEqual([task["id"] for task in reply.json], ids, query)
            self.assertNotIn("Link", reply.headers)
        found, url = [], "/api/tasks?label=deep&q=X"
        while url:  # each looks at the texts of ten thousand
            reply = Reply(self, url)
            found, url = found + [task["id"] for task in reply.json], reply.next
        self.assertEqual(found, [old[2], old[1], old[0]])

    def test_those_who_take_no_chunks_get_the_list_as_well(self):
        self.fill(2000, queue="q")
        old = Reply(self, "/api/tasks", version="1.0")
        self.assertEqual(len(old.json), 2000)
        self.assertNotIn("Transfer-Encoding", old.head)
        head = Reply(self, "/api/tasks", method="HEAD")
        while b"\r\n\r\n" not in head.bytes:
            head.more()
        self.assertTrue(head.bytes.startswith(b"HTTP/1.1 200 "))
        self.assertTrue(head.bytes.endswith(b"\r\n\r\n"))
        self.assertEqual(len(self.client.get("/api/tasks").json), 2000)  # the connection goes on behind such a reply
        self.assertEqual(len(self.client.get("/api/tasks?limit=3").json), 3)

    def test_the_history_of_a_task_is_read_page_by_page(self):
        self.fill(1, queue="q")
        claim, = self.client.post("/api/claims", {"workerId": "w", "queues": ["q"]}).json["claims"]
        for i in range(250):
            self.fill(1, queue="noise")
            self.client.post("/api/tasks/t-1/progress", {"workerId": "w", "fence": claim["fence"], "note": str(i)})
        events, after = [], 0
        while True:
            page = self.client.get("/api/tasks/t-1/events?after=%s&limit=100" % after).json
            if not page["events"]:
                break
            events, after = events + page["events"], page["next"]
        self.assertEqual([event["task"] for event in events], ["t-1"] * 252)
        self.assertEqual([event["data"]["note"] for event in events[2:]], [str(i) for i in range(250)])
        self.assertEqual(self.client.get("/api/tasks/t-1/events?limit=1").json["events"][0]["type"], "task.created")
        self.assertEqual(self.client.get("/api/tasks/t-1/events?after=1000000").status, 410)

    def test_many_workers_are_all_listed(self):
        for i in range(700):
            self.assertEqual(self.client.post("/api/workers/register", {"workerId": "w%d" % i}).status, 200)
        workers = self.client.get("/api/workers").json
        self.assertEqual({worker["workerId"] for worker in workers}, {"w%d" % i for i in range(700)})
        self.assertEqual(len(workers), 700)
        self.assertEqual(self.client.get("/api/workers/w699").json["state"], "active")


class StuckReaders(ReaderCase):
    def setUp(self):
        super().setUp()
        self.fill(10000, text="long " * 400, queue="q")  # 22 MB as a list

    def test_readers_that_do_not_read_give_way(self):
        self.fill(1000, queue="stay")
        before = self.resident_bytes()
        stuck = [Reply(self, "/api/tasks", receive_bytes=4096).begin() for _ in range(16)]
        late = [Reply(self, "/api/tasks", receive_bytes=4096) for _ in range(8)]  # in line behind them
        viewer = self.client.post("/api/tokens", {"kind": "viewer", "name": "other"}).json["token"]
        self.start_claimers()
        self.wait_for_claims(50)
        self.assertEqual(len(Reply(self, "/api/tasks?queue=stay", token=viewer).json), 1000)
        self.assertEqual(self.client.get("/api/tasks/t-1").status, 200)  # what is short does not stand in line
        figure("24 readers who do not read", (self.resident_bytes() - before) / MIB, "MiB", 40)
        for reply in late:  # those who wait have precedence over those who do not read
            reply.begin()
        self.assertEqual(self.reads(), len(stuck))
        self.wait_for_claims(50)

    def test_a_reader_that_disappears_leaves_nothing_behind(self):
        for _ in range(5):
            gone = [Reply(self, "/api/tasks", receive_bytes=4096) for _ in range(10)]
            gone[0].begin()
            for reply in gone:
                reply.wire.close()
        self.wait_until(lambda: self.reads() == 0)
        self.assertEqual(self.metric("stint_connections"), 1)

    def test_a_reader_whose_credential_is_revoked_gets_no_more(self):
        token = self.client.post("/api/tokens", {"kind": "viewer", "name": "guest"}).json
        reply = Reply(self, "/api/tasks", receive_bytes=4096, token=token["token"]).begin()
        self.assertEqual(self.client.call("DELETE", "/api/tokens/" + token["id"]).status, 200)
        with self.assertRaises((EOFError, ConnectionError)):
            reply.body()

    def test_a_server_that_stops_does_not_wait_for_readers(self):
        stuck = Reply(self, "/api/tasks", receive_bytes=4096).begin()
        began = time.monotonic()
        self.assertEqual(self.server.stop(), 0)
        figure("stop beside a reader who does not read", time.monotonic() - began, "s", 5)
        with self.assertRaises((EOFError, ConnectionError)):
            stuck.body()


if __name__ == "__main__":
    unittest.main()
