"""A fleet of workers in one process. Each has a connection of its own, beats, and follows the protocol as its clients
must: one beat at a time, a token from every answer, deltas that are told again until they are acknowledged, and an end
to its work when nine tenths of its lease have passed without an answer.

What each was told is kept: on the spot it is held against what the others are told, and as lines for the checker."""
import asyncio
import contextlib
import itertools
import json
import random
import time

from hang import HANG_S
import proof
import stintd

JUDGED_ONE_IN = 64  # replies that are compared with spec/openapi.json: it takes longer than all the rest
GONE = (*proof.GONE, EOFError, asyncio.IncompleteReadError)


class Fault(Exception):
    """A worker was told what it must not be told."""


def lease_clock_ms():
    """The server's clock for leases, which is that of the machine."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000000


class Wire:
    """One connection that is kept alive."""

    def __init__(self, server, local):
        self.server, self.local = server, local
        self.reader = self.writer = self.host = None
        self.count = 0

    async def open(self):
        if self.local:
            self.reader, self.writer = await asyncio.open_unix_connection(self.server.home + "/stint.sock")
            self.host = "localhost"
        else:
            port = self.server.port  # another one after each start
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port)
            self.host = "localhost:%d" % port

    def close(self):
        if self.writer is not None:
            self.writer.transport.abort()
        self.reader = self.writer = None

    async def read(self):
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in head[1:] if line)
        length = next((int(value) for name, value in headers.items() if name.lower() == "content-length"), 0)
        return stintd.Reply(int(head[0].split(" ")[1]), headers, await self.reader.readexactly(length))

    async def post(self, path, body, headers=(), lose=False):
        """The reply; None when there is none, because the server is away, or because this one gets lost."""
        data = json.dumps(body).encode()
        try:
            if self.writer is None:
                await self.open()
            lines = ["POST %s HTTP/1.1" % path, "Host: " + self.host, "Authorization: Bearer " + self.server.token,
                     "Content-Type: application/json", "Content-Length: %d" % len(data), *headers]
            self.writer.write(("\r\n".join(lines) + "\r\n\r\n").encode() + data)
            if lose:
                await self.writer.drain()
                self.close()
                return None
            reply = await asyncio.wait_for(self.read(), 20)
        except (*GONE, asyncio.TimeoutError):
            self.close()
            return None
        self.count += 1
        if self.count % JUDGED_ONE_IN == 1:
            stintd.contract().judge("POST", path, reply.status, reply.headers, reply.body, data)
        if reply.status == 503 or reply.headers.get("Connection") == "close":
            self.close()
        return None if reply.status == 503 else reply


class Life:
    """A worker under one key."""

    def __init__(self, key):
        self.key, self.token = key, None
        self.renewed_until_ms = self.stop_at_ms = 0  # by the server's own answers, counted from before asking


class Hold:
    def __init__(self, life, claim, until_ms):
        self.life, self.task, self.fence = life, claim["task"]["id"], claim["fence"]
        self.claimed_until_ms = until_ms  # by its own lease, as long as it is not bound
        self.bound = self.unbinds = self.ends = False

    def until_ms(self):
        """When others may have it. A worker that is lost loses all it holds, also what it has not bound yet: a claim that was
        asked for long after the last beat ends with the lease of that beat, before its own."""
        renewed_ms = self.life.renewed_until_ms
        return renewed_ms if self.bound else min(self.claimed_until_ms, renewed_ms)

    def is_safe(self):
        """By what the server said, nobody else can have it now."""
        return not self.unbinds and not self.ends and lease_clock_ms() < self.until_ms()


class Member:
    """What producers and workers share: they insist until they are answered."""

    def __init__(self, fleet, name):
        self.fleet, self.name = fleet, name
        self.dice = random.Random("%s/%s" % (fleet.seed, name))
        self.wire = Wire(fleet.server, local=self.dice.random() < 0.5)

    async def run(self):
        try:
            while await self.act():
                pass
        except Exception as fault:  # told by the test
            self.fleet.faults.append("%s: %r" % (self.name, fault))
        finally:
            self.wire.close()

    async def ask(self, path, body, headers=(), lose=False):
        self.fleet.counts["requests"] += 1
        reply = await self.wire.post(path, body, headers, lose)
        if reply is not None and reply.status == 429:
            self.fleet.counts["asked to wait"] += 1
            await asyncio.sleep(min(float(reply.headers.get("Retry-After", "1")), 2))
            return None
        return reply

    async def insist(self, path, body, headers=()):
        while (reply := await self.ask(path, body, headers)) is None:
            if self.fleet.over:
                raise Fault("nobody answers " + path)
            await asyncio.sleep(self.dice.uniform(0.005, 0.05))
        return reply

    def tell(self, phase, op, key, task="-", fence="-", asked_ms=0, **more):
        number = "-" if task == "-" else "t%d" % proof.task_number(task)
        fields = ["C", key, phase, op, number, fence, "-", str(asked_ms), str(lease_clock_ms())]
        self.fleet.told.append("\t".join(fields + ["%s=%s" % item for item in more.items()]))


class Producer(Member):
    def __init__(self, fleet, name):
        super().__init__(fleet, name)
        self.count = 0

    async def act(self):
        fleet = self.fleet
        if fleet.closed:
            return False
        if len(fleet.open_tasks) > fleet.backlog:
            await asyncio.sleep(0.02)
            return True
        bodies = [{"title": "%s-%d" % (self.name, self.count + i), "queue": "q", "maxAttempts": 20} for i in range(8)]
        self.count += len(bodies)
        key = "Idempotency-Key: %s-%d" % (self.name, self.count)
        reply = await self.insist("/api/tasks/batch", {"tasks": bodies}, [key])
        for item in reply.json["results"]:
            task = item["task"]["id"]
            self.tell("ok", "enqueue", self.name, task)
            fleet.open_tasks.add(task)
        return True


class Worker(Member):
    """Chances are per beat."""
    LOSES, SLEEPS, NAPS, DIES, UNBINDS = 0.05, 0.02, 0.03, 0.01, 0.03

    def __init__(self, fleet, name):
        super().__init__(fleet, name)
        self.lives, self.requests = itertools.count(1), itertools.count(1)
        self.faithful = self.dice.random() < fleet.faithful  # never silent, and its network is sound
        self.claims = self.dice.random() < fleet.claimants
        self.reborn()

    def reborn(self):
        self.life = Life("%s.%d" % (self.name, next(self.lives)))
        self.holds, self.unbinds, self.asking = {}, {}, None

    def chance(self, of):
        return not self.faithful and not self.fleet.closed and self.dice.random() < of

    async def act(self):
        if self.fleet.over:
            return False
        began = time.monotonic()
        if await self.beat():
            await self.work()
        if self.chance(self.DIES):
            self.fleet.counts["died"] += 1
            self.reborn()  # nobody hears of the old one again
        elif self.chance(self.SLEEPS):
            await self.sleep_past_the_lease()
        elif self.chance(self.NAPS):  # too long for a claim that waits to be bound
            await asyncio.sleep(self.fleet.lease_ms / 1000 * self.dice.uniform(0.8, 0.9))
        rest = self.fleet.beat_ms / 1000 * self.dice.uniform(0.8, 1.2) if self.life.token else 0.05
        await asyncio.sleep(max(0.005, rest - (time.monotonic() - began)))
        return True

    async def sleep_past_the_lease(self):
        self.fleet.counts["slept"] += 1
        await asyncio.sleep(self.fleet.lease_ms / 1000 * self.dice.uniform(1.1, 3))
        if self.dice.random() < 0.5:  # it does not know, and reports what it has
            for hold in list(self.holds.values()):
                await self.end(hold)

    def stop(self):
        """It may be lost by now: it runs nothing any more, and says so when it is heard again."""
        self.fleet.counts["stopped itself"] += bool(self.holds)
        for hold in list(self.holds.values()):
            self.unbind(hold)

    def unbind(self, hold):
        self.unbinds[hold.task] = hold
        hold.unbinds = True
        del self.holds[hold.task]

    # ---- the heartbeat ----

    async def beat(self):
        """True: it is alive by the answer."""
        life, fleet = self.life, self.fleet
        if life.token is not None and lease_clock_ms() > life.stop_at_ms:
            self.stop()
        bound = [hold for hold in self.holds.values() if not hold.bound]
        unbound = list(self.unbinds.values())
        body = {"workerId": life.key, "leaseMs": fleet.lease_ms}
        if life.token is not None:
            body["token"] = life.token
        if bound:
            body["boundTasks"] = [hold.task for hold in bound]
        if unbound:
            body["unboundTasks"] = [hold.task for hold in unbound]
        for hold in unbound:
            self.tell("info", "unbind", life.key, hold.task, hold.fence)
        asked_ms = lease_clock_ms()
        late = asked_ms >= max(life.renewed_until_ms, fleet.server_woke_ms + fleet.lease_ms)
        fleet.counts["too late to beat"] += life.token is not None and late
        reply = await self.ask("/api/workers/heartbeat", body, lose=self.chance(self.LOSES))
        if reply is None:
            await asyncio.sleep(self.dice.uniform(0.005, 0.05))
            return False
        if reply.status == 409 and reply.json["code"] == "TOKEN_MISMATCH":
            fleet.counts["mismatches"] += 1
            life.token = reply.json["token"]
            return await self.beat()
        if reply.status == 410:
            self.told_inactive(reply)
            return False
        if reply.status != 200:
            raise Fault("a beat: %d %s" % (reply.status, reply.body))
        self.accepted(reply.json, asked_ms, bound, unbound)
        return True

    def accepted(self, found, asked_ms, bound, unbound):
        life, fleet = self.life, self.fleet
        fleet.counts["renewals"] += 1
        life.token = found["token"]
        life.renewed_until_ms = asked_ms + found["leaseMs"]
        life.stop_at_ms = asked_ms + found["leaseMs"] * 9 // 10
        self.tell("ok", "beat", life.key, asked_ms=asked_ms, lease=found["leaseMs"])
        if not set(found["lost"]) <= {hold.task for hold in bound}:
            raise Fault("lost, but never asked for: %s" % found["lost"])
        for hold in bound:
            if hold.task in found["lost"]:
                fleet.counts["told lost"] += 1
                self.tell("ok", "lost", life.key, hold.task, hold.fence)
                self.holds.pop(hold.task, None)
            else:
                hold.bound = True
                self.tell("ok", "bind", life.key, hold.task, hold.fence)
        for hold in unbound:
            self.unbinds.pop(hold.task, None)

    def told_inactive(self, reply):
        if reply.json["code"] != "WORKER_INACTIVE":
            raise Fault("%s" % reply.body)
        if lease_clock_ms() < self.life.renewed_until_ms:
            raise Fault("%s is called inactive and was renewed until %d" % (self.life.key, self.life.renewed_until_ms))
        self.fleet.counts["told inactive"] += 1
        self.fleet.counts["told inactive though faithful"] += self.faithful
        self.tell("fail", "beat", self.life.key)
        self.reborn()

    # ---- the work ----

    async def work(self):
        life = self.life
        if self.claims and len(self.holds) < 2:
            await self.claim()
        for hold in list(self.holds.values()):
            if self.life is not life or not hold.bound:
                continue
            if self.dice.random() < 0.4:
                await self.end(hold)
            elif self.chance(self.UNBINDS):
                self.unbind(hold)

    async def claim(self):
        """With a name for it, it may be asked again; without, what is lost is lost."""
        if self.asking is None:
            self.asking_since_ms = lease_clock_ms()
            self.asking = {"workerId": self.life.key, "queues": ["q"], "max": self.dice.randint(1, 2),
                           "leaseMs": self.fleet.lease_ms}
            if self.dice.random() < 0.5:
                self.asking["requestId"] = "r%d" % next(self.requests)
        body, since_ms = self.asking, self.asking_since_ms
        reply = await self.ask("/api/claims", body, lose=self.chance(self.LOSES))
        if reply is not None or "requestId" not in body:
            self.asking = None
        if reply is None:
            return
        if reply.status == 410:
            self.told_inactive(reply)
            return
        if reply.status != 200:
            raise Fault("a claim: %d %s" % (reply.status, reply.body))
        for claim in reply.json["claims"]:
            self.got(claim, since_ms)

    def got(self, claim, since_ms):
        fleet, life = self.fleet, self.life
        hold = Hold(life, claim, since_ms + min(fleet.lease_ms, fleet.verify_ms))
        before = fleet.holds.get(hold.task)
        if before is not None and before.fence == hold.fence:
            if before.life is not life:
                raise Fault("%s has one fence for %s and %s" % (hold.task, before.life.key, life.key))
            return  # asked again, answered again
        if before is not None and int(before.fence) > int(hold.fence) and not hold.is_safe():
            fleet.counts["claims heard of too late"] += 1  # this process was busy, and somebody else has it by now
            return
        if before is not None and (int(before.fence) > int(hold.fence) or before.is_safe()):
            raise Fault("%s was given to %s under %s at %d; %s holds it under %s, %s until %d" % (
                hold.task, life.key, hold.fence, lease_clock_ms(), before.life.key, before.fence,
                "bound" if before.bound else "unconfirmed", before.until_ms()))
        fleet.counts["claims"] += 1
        fleet.counts["changed hands"] += before is not None
        fleet.holds[hold.task] = self.holds[hold.task] = hold
        self.tell("ok", "claim", life.key, hold.task, hold.fence)

    async def end(self, hold):
        how = "complete" if self.dice.random() < 0.85 else "release"
        self.holds.pop(hold.task, None)
        safe, hold.ends = hold.is_safe(), True
        path, body = "/api/tasks/%s/%s" % (hold.task, how), {"workerId": hold.life.key, "fence": hold.fence}
        reply = await self.ask(path, body)
        if reply is None:  # it may have happened, and much more since
            reply, safe = await self.insist(path, body), False
        if reply.status == 200:
            self.tell("ok", how, hold.life.key, hold.task, hold.fence)
            if how == "complete":
                self.fleet.open_tasks.discard(hold.task)
                self.fleet.counts["completed"] += 1
            return
        if reply.status not in (409, 410) or reply.json["code"] not in ("stale_claim", "not_claimed", "WORKER_INACTIVE"):
            raise Fault("%s: %d %s" % (path, reply.status, reply.body))
        if safe and lease_clock_ms() < hold.until_ms():
            raise Fault("%s of %s is refused (%s) while its lease runs" % (how, hold.task, reply.json["code"]))
        self.fleet.counts["late results"] += 1


class Fleet:
    def __init__(self, server, size, seed, lease_ms, beat_ms, verify_ms, faithful=0.5, claimants=1.0):
        self.server, self.seed = server, seed
        self.lease_ms, self.beat_ms, self.verify_ms = lease_ms, beat_ms, verify_ms
        self.faithful, self.claimants, self.backlog = faithful, claimants, size * claimants
        self.closed = self.over = False  # no new work and no more mischief; everybody goes home
        self.server_woke_ms = 0  # it was stopped until then, and renews from then on
        self.told, self.faults, self.holds, self.open_tasks = [], [], {}, set()
        self.counts = dict.fromkeys((
            "requests", "renewals", "mismatches", "claims", "completed", "changed hands", "late results", "told lost",
            "told inactive", "told inactive though faithful", "claims heard of too late", "slept", "died", "stopped itself",
            "too late to beat", "asked to wait"), 0)
        self.members = [Producer(self, "p%d" % i) for i in range(2)] + [Worker(self, "w%d" % i) for i in range(size)]

    def alive(self):
        """How many were answered."""
        return sum(isinstance(member, Worker) and member.life.token is not None for member in self.members)

    async def was_late(self, expired):
        """Have at least so many workers found, by their own clock, that they beat too late? They find it out when
        they beat again."""
        until = time.monotonic() + self.lease_ms / 1000
        while self.counts["too late to beat"] < expired and time.monotonic() < until:
            await asyncio.sleep(0.05)
        return self.counts["too late to beat"] >= expired

    @contextlib.asynccontextmanager
    async def at_work(self, spread_s=0.0):
        """The fleet works while the block runs; its members begin one after the other."""
        async def begin(member, after_s):
            await asyncio.sleep(after_s)
            await member.run()

        running = [asyncio.create_task(begin(member, spread_s * i / len(self.members)))
                   for i, member in enumerate(self.members)]
        try:
            yield
        finally:
            self.closed = self.over = True
            await asyncio.wait(running, timeout=HANG_S)
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
