"""Three servers over two PostgreSQL with streaming replication, with workers and producers behind proxies that cut connections. In each round
something dies, hangs, is parted or promoted; at the end everything that anyone was told is held against what is in the database.

STINT_FAILOVER_ROUNDS says how many rounds (./dev failover --rounds 500), STINT_CRASH_SEED repeats the choices of a run,
STINT_FAILOVER_ONLY does one kind of harm alone."""
import collections
import os
import random
import signal
import sys
import tempfile
import threading
import time
import unittest

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(here, "..", "postgres"), os.path.join(here, "..", "e2e")]
import pair as replicated
import proof
import server as postgres
import stintd
import test_crash

CrashRuns = test_crash.Crash
import test_postgres
from hang import HANG_S

ROUNDS = int(os.environ.get("STINT_FAILOVER_ROUNDS", "6"))
ONLY = os.environ.get("STINT_FAILOVER_ONLY", "").split()
SERVERS = 3
LEASE_MS = 1500
test_crash.ROUNDS = ROUNDS


class Member(test_postgres.SecondServer):
    """One of the servers: it reaches each PostgreSQL through proxies of its own, and clients reach it through another."""

    def __init__(self, cluster, number, token):
        self.cluster, self.number = cluster, number
        self.doors = {}
        place = os.path.join(cluster.place, "s%d" % number)
        for member in cluster.pair.members:
            os.makedirs(os.path.join(place, member.name))
            path = os.path.join(place, member.name, ".s.PGSQL.5432")
            self.doors[member] = replicated.Proxy(os.path.join(member.directory, ".s.PGSQL.5432"), path)
        # libpq goes on with the next host when it is refused, and not when the connection ends behind a door that was opened
        hosts = ",".join(os.path.join(place, member.name) if cluster.has_doors else member.directory for member in cluster.pair.members)
        self.front = None
        self.ends = 0
        super().__init__("postgres://stint@/postgres?host=%s&connect_timeout=2" % hosts, token=token)
        self.flags += cluster.flags

    def start(self):
        super().start()

    def is_up(self):
        return self.process.poll() is None

    def keep_up(self):
        """A service manager: whoever has ended is started again."""
        if not self.is_up():
            self.ends += 1
            if self.process.returncode not in (74, -signal.SIGKILL, 0):
                raise AssertionError("server %d ended with %d: %s" % (self.number, self.process.returncode, self.said()[-2000:]))
            self.log.close()
            self.start()

    def ready(self):
        until = time.monotonic() + HANG_S
        path = os.path.join(self.home, "url")
        while not os.path.exists(path):
            if time.monotonic() > until:
                raise RuntimeError("server %d does not listen: %s" % (self.number, self.said()))
            self.keep_up()
            time.sleep(0.01)
        self.url, self.token = self.read("url"), self.read("admin.token")
        port = int(self.url.rsplit(":", 1)[1])
        if not self.front:
            self.front = replicated.Proxy(("127.0.0.1", port))
        self.front.target, self.port = ("127.0.0.1", port), self.front.port

    def end(self):
        for door in [*self.doors.values(), *([self.front] if self.front else [])]:
            door.close()
        super().end()


class Client(stintd.Client):
    """Goes on with another server when a connection ends. It knows no order."""

    def open(self):
        member = random.choice(self.server.members)
        self.host = "127.0.0.1:%d" % member.front.target[1]  # the server does not know of the proxy
        return stintd.http.client.HTTPConnection("127.0.0.1", member.front.port, timeout=HANG_S)

    def send(self, method, path, body=None, headers=None):
        if self.connection is None:
            self.connection = self.open()
        super().send(method, path, body, {"Host": self.host, **(headers or {})})

    def receive(self, judged=True):
        reply = super().receive(judged)
        if reply.status in (503, 421):
            self.close()
        if reply.status == 421:
            raise ConnectionResetError("behind the proxy is another server by now, with another port")
        return reply


class Cluster:
    """What the crash runs take for a server."""
    synchronous = True
    has_doors = True

    def __init__(self, *flags, clocks=None):
        self.flags = [*flags, *proof.settings(leader_leaseMs=LEASE_MS)]
        self.pair = replicated.Pair(self.synchronous)
        self.place = tempfile.mkdtemp(prefix="stint-doors-")
        os.chmod(self.place, 0o755)
        self.members, self.over = [], threading.Event()
        self.guard = None
        try:
            for number in range(SERVERS):
                member = Member(self, number, self.members[0].token if self.members else None)
                self.members.append(member)
                member.log.close()
                member.process.kill()
                member.process.wait()
                member.start()  # with the flags
                member.ready()
        except BaseException:
            self.end()
            raise
        self.token, self.home = self.members[0].token, self.members[0].home
        self.guard = threading.Thread(target=self.keep_up, daemon=True)
        self.fault = None
        self.guard.start()

    def keep_up(self):
        try:
            while not self.over.wait(0.05):
                for member in self.members:
                    if not member.is_up():
                        member.keep_up()
                        member.ready()
        except Exception as fault:
            self.fault = fault

    def client(self, local=False, token=None):
        return Client(self, token=token)

    def leader(self):
        """The one that has the lead, by the table; None: nobody."""
        pid = self.pair.sql("SELECT split_part(coalesce(holder, ''), 'process ', 2) FROM stint.lead")
        return next((member for member in self.members if str(member.process.pid) == pid), None)

    @property
    def process(self):
        return self.members[0].process

    def said(self):
        return "\n".join(member.said()[-3000:] for member in self.members)

    def stop(self):
        self.over.set()
        if self.guard:
            self.guard.join(HANG_S)
        return max(member.stop() if member.is_up() else 0 for member in self.members)

    def end(self):
        self.over.set()
        for member in self.members:
            if member.is_up():
                member.process.send_signal(signal.SIGCONT)
            member.end()
        self.pair.remove()


class Harm:
    """One of each kind. Each ends with both PostgreSQL in their places and nobody stopped."""

    def __init__(self, cluster, dice):
        self.cluster, self.pair, self.dice = cluster, cluster.pair, dice

    def leader(self):
        return self.cluster.leader() or self.dice.choice(self.cluster.members)

    def the_leader_is_killed(self):
        self.leader().process.send_signal(signal.SIGKILL)

    def everybody_is_killed(self):
        for member in self.cluster.members:
            member.process.send_signal(signal.SIGKILL)

    def the_leader_stops_when_told(self):
        self.leader().process.send_signal(signal.SIGTERM)

    def the_leader_hangs_and_wakes(self):
        process = self.leader().process
        process.send_signal(signal.SIGSTOP)
        time.sleep(self.dice.choice([0.3, 2.0]) * LEASE_MS / 1000)
        process.send_signal(signal.SIGCONT)

    def its_session_is_ended(self):
        self.pair.sql("SELECT pg_terminate_backend(pid) FROM stint.lead")

    def half_a_turn_is_sent(self):
        self.leader().doors[self.pair.primary].half()
        time.sleep(0.1)

    def half_a_turn_is_sent_and_the_leader_hangs(self):
        leader = self.leader()
        leader.doors[self.pair.primary].hold()
        time.sleep(2 * LEASE_MS / 1000)
        leader.doors[self.pair.primary].let_go()

    def the_network_of_all_is_cut(self):
        for member in self.cluster.members:
            member.front.cut()
            for door in member.doors.values():
                door.cut()

    def the_primary_dies_and_the_standby_is_promoted(self):
        self.pair.promote()
        time.sleep(0.3)
        self.pair.rejoin()

    def the_primary_is_killed_and_comes_back(self):
        self.pair.primary.kill()
        self.pair.primary.start()
        self.pair.wait_for_standby()

    def two_primaries(self):
        """The leader sees the old one alone, the others the new one alone."""
        old, leader = self.pair.primary, self.leader()
        for member in self.cluster.members:
            door = member.doors[self.pair.standby if member is leader else old]
            door.hold()
            door.cut()
        self.pair.promote(kill=False)
        time.sleep(2 * LEASE_MS / 1000)
        for member in self.cluster.members:
            for door in member.doors.values():
                door.let_go()
        self.pair.rejoin()

    def the_standby_is_gone(self):
        self.pair.standby.kill()
        time.sleep(self.dice.choice([0.5, 2.5]))
        self.pair.standby.start()
        self.pair.wait_for_standby()

    def the_standby_is_gone_and_the_wait_is_cancelled(self):
        self.pair.standby.kill()
        for _ in range(5):
            time.sleep(0.1)
            self.pair.sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        self.pair.standby.start()
        self.pair.wait_for_standby()

    def the_disk_is_full(self):
        """As PostgreSQL says it."""
        self.pair.sql("""
            CREATE OR REPLACE FUNCTION stint.full() RETURNS trigger LANGUAGE plpgsql AS
            $$BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END$$;
            CREATE TRIGGER full_disk BEFORE INSERT ON stint.event FOR EACH ROW EXECUTE FUNCTION stint.full()""")
        time.sleep(0.5)
        self.pair.sql("DROP TRIGGER full_disk ON stint.event")

    def the_primary_takes_no_writes(self):
        self.pair.sql("ALTER SYSTEM SET default_transaction_read_only = on")
        self.pair.sql("SELECT pg_reload_conf()")
        self.pair.sql("SELECT pg_terminate_backend(pid) FROM stint.lead")
        time.sleep(0.3)
        self.pair.sql("ALTER SYSTEM RESET default_transaction_read_only")
        self.pair.sql("SELECT pg_reload_conf()")

    @classmethod
    def kinds(cls):
        found = [name for name, what in vars(cls).items() if callable(what) and name[0] != "_" and name not in ("leader", "kinds")]
        return [name for name in found if not ONLY or name in ONLY]


@unittest.skipUnless(postgres.programs(), "PostgreSQL is not installed")
class Failover(CrashRuns):
    """With a synchronous standby: nothing that anyone was told is lost, and nothing happens twice."""
    make_server = Cluster

    def setUp(self):
        super().setUp()
        self.done = collections.Counter()
        self.kinds = Harm.kinds()

    def die(self, dice, away, prove):
        if not self.kinds:
            self.kinds = Harm.kinds()
        kind = self.kinds.pop(dice.randrange(len(self.kinds)))
        self.done[kind] += 1
        print("  %s" % kind.replace("_", " "), file=sys.stderr, flush=True)
        getattr(Harm(self.server, dice), kind)()
        began = time.monotonic()
        self.wait_until(self.is_served, 2 * HANG_S, self.server.said())
        away.append(time.monotonic() - began)
        self.assertIsNone(self.server.fault)

    def is_served(self):
        try:
            return self.client.get("/health/leader").status == 200
        except proof.GONE:
            self.client.close()
            return False

    def metrics(self):
        """Those of the leader: a server that stands by has figures of its own."""
        found = super().metrics()
        while found.get("stint_leads") != 1:
            self.client.close()
            found = super().metrics()
        return found

    def wait_until(self, condition, seconds=HANG_S, what="it never came true"):
        def tried():
            try:
                return condition()
            except proof.GONE:
                self.client.close()
                return False
        super().wait_until(tried, seconds, what)

    def tell_people(self, crowd, away):
        super().tell_people(crowd, away)
        print("harm done: %s" % ", ".join("%s %d" % item for item in sorted(self.done.items())), file=sys.stderr)

    def hold_against_the_server(self, crowd):
        super().hold_against_the_server(crowd)
        self.assertEqual([event for event in self.events() if event["type"] == "server.restored"], [])

    def prove(self, said=(), limits=()):
        self.assertIsNone(proof.verify_url(self.server.pair.url, said, limits))


class Loose(Cluster):
    synchronous = False
    has_doors = False


@unittest.skipUnless(postgres.programs(), "PostgreSQL is not installed")
class LostTail(proof.ProofCase):
    """With an asynchronous standby: what a failover loses is told with its exact length."""
    make_server = Loose

    def is_served(self):
        try:
            return self.client.get("/health/leader").status == 200
        except proof.GONE:
            self.client.close()
            return False

    def turns(self, member):
        return int(member.sql("SELECT max(turn) FROM stint.turn"))

    def restored(self):
        return [event["data"].get("lost") for event in self.events() if event["type"] == "server.restored"]

    def test_the_turns_that_are_gone_are_counted(self):
        pair = self.server.pair
        for _ in range(5):
            self.create()
        pair.wait_for_standby()
        behind = pair.standby
        while self.turns(behind) < self.turns(pair.primary):
            time.sleep(0.01)
        behind.kill()  # it hears of nothing that comes now
        lost = [self.create() for _ in range(20)]
        before = self.turns(pair.primary)
        pair.primary.kill()
        behind.start()
        behind.command("pg_ctl", "promote", "-D", behind.data, "-W")
        self.wait_until(behind.is_primary, HANG_S, "it is not promoted")
        pair.primary, pair.standby = pair.standby, pair.primary
        after = self.turns(behind)
        self.wait_until(self.is_served, 2 * HANG_S, self.server.said())
        told = self.restored()
        self.assertEqual(len(told), 1)
        self.assertIsInstance(told[0], int, "the leader lived: it knows the number")
        # signs of life are turns, too, and may have followed the last task; of the turn under way nobody was told
        first = next(int(line.split("has lost ")[1].split()[0]) for line in self.server.said().splitlines() if "has lost " in line)
        self.assertEqual(told[0], first)
        self.assertGreaterEqual(told[0], len(lost))
        self.assertGreaterEqual(told[0] + after, before)
        self.assertEqual({self.client.get("/api/tasks/" + task).status for task in lost}, {404})
        new = self.create()
        self.assertGreater(proof.task_number(new), max(proof.task_number(task) for task in lost))


del CrashRuns  # unittest would run it here, too

if __name__ == "__main__":
    unittest.main(verbosity=1)
