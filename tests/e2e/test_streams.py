"""Streams resumed after every kind of break, while somebody goes on writing: no gap, no repeat, the same bytes."""
import random
import signal
import socket
import threading
import time

from figures import MIB, figure
from hang import HANG_S
import proof
from test_hostile import Stream

DAY_MS = 24 * 3600 * 1000


class StreamCase(proof.ProofCase):
    flags = proof.settings(sweep_intervalMs=50, limits_progressPerMinute=0)  # progress is how noise is made

    def setUp(self):
        super().setUp()
        self.seen, self.stopping = [], threading.Event()
        self.writers = [threading.Thread(target=self.write, args=("w%d" % i,)) for i in range(2)]
        self.addCleanup(self.stop_writing)

    def start_writing(self):
        for writer in self.writers:
            writer.start()

    def stop_writing(self):
        self.stopping.set()
        for writer in self.writers:
            if writer.is_alive():
                writer.join(HANG_S)

    def write(self, name):
        """Tasks come, are claimed, progress and end, with notes of different length."""
        dice, client = random.Random(name), self.server.client()
        while not self.stopping.is_set():
            try:
                client.post("/api/tasks", {"title": "x", "queue": "q"})
                for claim in self.claim(name, client):
                    self.report("progress", claim, name, client, note="n" * dice.choice([0, 10, 3000]))
                    self.report("complete", claim, name, client)
            except (AssertionError, KeyError, *proof.GONE):
                client.close()
                time.sleep(0.01)
        client.close()

    def stream(self, by_header=True, **options):
        """One that goes on where the last one ended: by Last-Event-ID, or by after=."""
        last = self.seen[-1]["seq"] if self.seen else 0
        if by_header:
            stream = Stream(self.server, "?after=0", last=last, **options)
        else:
            stream = Stream(self.server, "?after=%d" % last, **options)
            stream.last = last
        self.addCleanup(stream.close)
        return stream

    def read(self, stream, count):
        """So many more events; fewer if it ends before."""
        for _ in range(count):
            event = stream.event()
            if event is None:
                return
            self.seen.append(event)

    def read_to_the_end(self, stream):
        try:
            while (event := stream.event()) is not None:
                self.seen.append(event)
        except OSError:
            pass

    def assert_whole(self):
        """What was seen in pieces is what a list says."""
        self.stop_writing()
        self.client.close()
        listed = self.events()
        self.assertGreater(len(self.seen), 20)
        self.assertEqual([event["seq"] for event in self.seen], list(range(1, len(self.seen) + 1)))
        self.assertEqual(self.seen, listed[:len(self.seen)])


class Breaks(StreamCase):
    def test_the_client_goes_away_and_comes_back(self):
        dice = random.Random(1)
        self.start_writing()
        for number in range(60):
            stream = self.stream(by_header=number % 2 == 0, local=number % 3 == 0)
            self.read(stream, dice.randrange(1, 40))
            if number % 5 == 0:  # without goodbye
                stream.wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            stream.close()
        self.assert_whole()
        self.wait_until(lambda: self.metric("stint_event_streams") == 0)

    def test_the_server_stops_and_starts(self):
        self.break_by(lambda: self.assertEqual(self.server.stop(), 0))

    def test_the_server_is_killed(self):
        self.break_by(self.server.kill)

    def break_by(self, end):
        self.start_writing()
        for number in range(8):
            stream = self.stream(by_header=number % 2 == 0, local=number % 3 == 0)
            self.read(stream, 30)
            end()
            self.read_to_the_end(stream)
            self.client.close()
            self.server.start()
        self.assert_whole()

    def test_the_credential_is_revoked_and_another_one_goes_on(self):
        self.start_writing()
        for number in range(8):
            token = self.client.post("/api/tokens", {"kind": "viewer", "name": "guest"}).json
            stream = self.stream(by_header=number % 2 == 0, token=token["token"])
            self.read(stream, 30)
            self.assertEqual(self.client.call("DELETE", "/api/tokens/" + token["id"]).status, 200)
            self.read_to_the_end(stream)  # it ends by itself
            refused = self.stream(token=token["token"]).begin()
            self.assertEqual(refused.status, 401)
        self.assert_whole()


class Together(StreamCase):
    def test_streams_that_begin_at_once_at_different_places_each_get_their_own(self):
        """They are fed in one go, from pages that streams at the same position share."""
        for _ in range(40):
            self.create()
        places = [0, 7, 0, 31, 7, 12]
        self.server.process.send_signal(signal.SIGSTOP)
        streams = [Stream(self.server, "?after=%d" % place) for place in places]
        self.server.process.send_signal(signal.SIGCONT)
        for place, stream in zip(places, streams):
            self.addCleanup(stream.close)
            stream.last = place  # the next one must be the one behind it
            stream.read_to(41)


class SlowReaders(StreamCase):
    def make_noise(self, events, note_bytes):
        self.create()
        claim, = self.claim()
        for _ in range(events):
            self.assertEqual(self.report("progress", claim, note="n" * note_bytes).status, 200)

    def test_a_reader_that_is_far_behind_is_held_back_and_misses_nothing(self):
        stream, *others = [self.stream(receive_bytes=4096).begin() for _ in range(12)]
        self.read(stream, 1)
        before = self.server.resident_bytes()
        self.make_noise(200, 60000)  # twelve megabytes, of which each has read nothing; the cache takes them once
        figure("twelve streams far behind", (self.server.resident_bytes() - before) / MIB, "MiB", 30)
        for other in others:
            other.close()
        last = self.events()[-1]["seq"]
        self.read(stream, last - 1)
        self.assertEqual(self.seen[-1]["seq"], last)
        self.assert_whole()

    def test_one_that_breaks_off_far_behind_goes_on_from_where_it_was(self):
        self.make_noise(100, 60000)
        self.start_writing()
        for number in range(6):
            stream = self.stream(by_header=number % 2 == 0, receive_bytes=4096)
            self.read(stream, 17)
            if number == 3:
                self.server.kill()
                self.client.close()
                self.server.start()
            stream.close()
        self.assert_whole()


class Compaction(StreamCase):
    """Old events are folded away. A server whose clock was a month and more behind makes old events."""

    def setUp(self):
        self.clocks = proof.Clocks()
        self.addCleanup(self.clocks.file.close)
        self.clocks.set(wall_ms=-40 * DAY_MS)
        super().setUp()

    def wait_for_base(self):
        """The oldest cursor that is good, once everything old is gone."""
        self.wait_until(lambda: self.client.get("/api/events?after=0").status == 410)
        base = None
        while base != (base := int(self.client.get("/api/events?after=0").json["oldest"])):
            time.sleep(0.2)  # some sweeps
        return base

    def test_a_cursor_that_was_folded_away_is_gone_and_never_skipped(self):
        for _ in range(700):  # more than one sweep takes
            self.create()
        old = self.events()[-1]["seq"]
        reading = self.stream(receive_bytes=4096)
        self.read(reading, 3)
        self.clocks.set(wall_ms=0)
        base = self.wait_for_base()
        self.assertEqual(base, old)
        for task in ("new-1", "new-2"):
            self.create(id=task)
        for stream in (self.stream(), self.stream(by_header=False), Stream(self.server, "?after=%d" % (base - 1))):
            self.addCleanup(stream.close)
            self.assertEqual(stream.begin().status, 410)
            self.assertIn(b'"oldest":"%d"' % base, stream.piece(b"}"))
        after = Stream(self.server, "?after=%d" % base)
        self.addCleanup(after.close)
        self.assertEqual([after.event()["task"], after.event()["task"]], ["new-1", "new-2"])
        fresh = Stream(self.server)  # without a cursor it begins with what is kept
        self.addCleanup(fresh.close)
        self.assertEqual(fresh.event()["seq"], base + 1)
        self.assert_no_gap_then_end(reading)
        self.restart()
        self.assertEqual(int(self.client.get("/api/events?after=0").json["oldest"]), base)
        self.assertEqual(len(self.client.get("/api/tasks?limit=1000").json), 702)

    def assert_no_gap_then_end(self, stream):
        """One that was open all the while was told everything, or was ended where it stood."""
        while (event := stream.event()) is not None:  # which insists that each follows the one before
            if event.get("task") == "new-2":
                return


if __name__ == "__main__":
    proof.main()
