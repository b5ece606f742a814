"""Damage that is planted at a known place, drawn from a seed: bits of rows of every table, pages, the file's header, the log, the mark,
cuts, files in another's place. Each is found at its place by the server, when it starts or when the place is read, by doctor and by
stintd --check-store; none ends in an assertion, in silence, or in an empty store.

STINT_SEED and STINT_DAMAGES choose what is drawn and how many; STINT_DAMAGE=N plants the N-th alone. ./dev damage plants 200."""
import json
import os
import random
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from hang import HANG_S
import stintd

SEED = int(os.environ.get("STINT_SEED") or random.SystemRandom().randrange(1_000_000))
COUNT = int(os.environ.get("STINT_DAMAGES") or 26)
ONLY = os.environ.get("STINT_DAMAGE")
PAGE = 2048
FRAME = 24 + PAGE
UNKNOWN = object()

# The key of each table, and what its seal does not cover because it is only shown to people.
TABLES = {
    "task": ("seq", ("claimed_ms", "expires_ms")), "task_body": ("seq", ()), "task_extra": ("seq", ()), "event": ("last", ()),
    "name": ("id", ()), "task_id": ("seq", ()), "task_key": ("seq", ()), "edge": ("child", ()), "worker": ("id", ()),
    "small": ("key", ()), "secret": ("key", ()), "token": ("id", ()), "idem": ("key", ()), "meta": ("key", ()),
}


class Planted:
    """What was done, the words that name the place, and whether nothing is lost by it (`harmless`)."""

    def __init__(self, what, *words, harmless=False, is_key=False):
        self.what, self.words, self.harmless = what, words, harmless
        self.is_key = is_key  # the row stands under another key now: nobody who asks for the old one reads it

    def is_named_in(self, text):
        return all(word in text for word in self.words)


# ---- what is planted: each gets the home of a stopped or a killed server, and dice ----------------------------------------

def flip_bit(path, at, bit):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1 << bit]))


def altered(value, dice):
    """The value with one bit changed."""
    if value is None:
        return dice.randrange(1, 1000)
    if isinstance(value, int):
        return (value ^ 1 << dice.randrange(0, 40)) if abs(value) < 1 << 61 else value - 1
    data = bytearray(value.encode() if isinstance(value, str) else value)
    if not data:
        return "x" if isinstance(value, str) else b"x"
    at = dice.randrange(len(data))
    if isinstance(value, str):
        data[at] = ord("a") if data[at] != ord("a") else ord("b")
        return data.decode()
    data[at] ^= 1 << dice.randrange(8)
    return bytes(data)


def plant_row(table):
    def plant(home, dice):
        key, uncovered = TABLES[table]
        db = sqlite3.connect(os.path.join(home, "stint.db"))
        db.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})") if row[1] not in uncovered]
        primary = [row[1] for row in db.execute(f"PRAGMA table_info({table})") if row[5]]
        rows = db.execute(f"SELECT {', '.join(primary)}, {key} FROM {table}").fetchall()
        *chosen, _ = dice.choice(rows)
        where = " AND ".join(f"{name} = ?" for name in primary)
        done = 0
        while not done:  # a key that another row has cannot be taken
            column = dice.choice(columns)
            value, = db.execute(f"SELECT {column} FROM {table} WHERE {where}", chosen).fetchone()
            changed = altered(value, dice)
            done = changed != 0 and db.execute(f"UPDATE OR IGNORE {table} SET {column} = ? WHERE {where}",
                                               (changed, *chosen)).rowcount
        now = [changed if name == column else old for name, old in zip(primary, chosen)]
        named, = db.execute(f"SELECT {key} FROM {table} WHERE {where}", now).fetchone()
        db.commit()
        db.close()
        what = f"{table}.{column} of {chosen}: {value!r} is {changed!r}"
        is_key = column in primary and table in ("name", "task_body", "task_extra", "event", "task_id", "task_key", "idem")
        if isinstance(named, int):
            place = f"row {named} of table {table}" if named else f"table {table}"  # what hangs on no task has the number 0
            return Planted(what, place, is_key=is_key)
        named = "".join(c if " " <= c <= "~" and c != '"' else "?"
                        for c in (named.decode("latin-1") if isinstance(named, bytes) else named))
        return Planted(what, f'row "{named[:47]}" of table {table}', is_key=is_key)
    return plant


def root_of(home, table):
    db = sqlite3.connect(os.path.join(home, "stint.db"))
    page, = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
    db.close()
    return page


def plant_page(home, dice):
    table = dice.choice([name for name in TABLES if name not in ("secret",)])
    page = root_of(home, table)
    way = dice.choice(("zeros", "noise", "kind"))
    path = os.path.join(home, "stint.db")
    if way == "kind":
        flip_bit(path, (page - 1) * PAGE, dice.choice((0, 1, 2, 3)))
    else:
        with open(path, "r+b") as file:
            file.seek((page - 1) * PAGE)
            file.write(bytes(PAGE) if way == "zeros" else dice.randbytes(PAGE))
    return Planted(f"page {page} of {table}: {way}", "stint.db", f"table {table}")


def plant_schema(home, dice):
    """A page of the schema: page 1 behind the file's header."""
    with open(os.path.join(home, "stint.db"), "r+b") as file:
        file.seek(100)
        file.write(bytes(60) if dice.random() < 0.5 else dice.randbytes(60))
    return Planted("the page of the schema", "stint.db")


def plant_header(home, dice):
    """A bit of the file's header that says what it is: the magic text, the size of a page, our number, the schema's version."""
    at = dice.choice((*range(0, 18), *range(60, 64), *range(68, 72)))
    flip_bit(os.path.join(home, "stint.db"), at, dice.randrange(8))
    return Planted(f"byte {at} of the header", "stint.db")


def plant_cut(home, dice):
    path = os.path.join(home, "stint.db")
    size = os.stat(path).st_size
    length = dice.choice((0, 1, 50, 100, PAGE, PAGE + 1, size // 2, size // PAGE // 2 * PAGE, size - PAGE, size - 1))
    os.truncate(path, length)
    return Planted(f"cut to {length} of {size} bytes", "stint.db")


def plant_mark(home, dice):
    path = os.path.join(home, "store.mark")
    size = os.stat(path).st_size
    if dice.random() < 0.3:
        os.truncate(path, dice.randrange(size))
    else:
        flip_bit(path, dice.randrange(size), dice.randrange(7))
    return Planted("the mark", "store.mark is damaged")


def plant_no_mark(home, dice):
    del dice
    os.unlink(os.path.join(home, "store.mark"))
    return Planted("no mark", harmless=True)


def frames_of(log):
    salts = log[16:24]
    found = []
    for at in range(32, len(log) - FRAME + 1, FRAME):
        page, commit = struct.unpack(">II", log[at:at + 8])
        if page == 0 or log[at + 8:at + 16] != salts:
            break
        found.append((at, commit != 0))
    return found


def plant_frame(home, dice):
    """A bit of a frame with at least two commits behind it."""
    path = os.path.join(home, "stint.db-wal")
    with open(path, "rb") as file:
        frames = frames_of(file.read())
    commits = [i for i, (_, commit) in enumerate(frames) if commit]
    number = dice.randrange(commits[-3] + 1)
    at = frames[number][0] + dice.choice((dice.randrange(24), 24 + dice.randrange(PAGE)))
    flip_bit(path, at, dice.randrange(8))
    return Planted(f"byte {at} of the log", "stint.db-wal is damaged", f"frame {number + 1} ")


def plant_log_header(home, dice):
    at = dice.randrange(32)
    flip_bit(os.path.join(home, "stint.db-wal"), at, dice.randrange(8))
    return Planted(f"byte {at} of the log's header", "stint.db-wal is damaged in its header")


def plant_log_cut(home, dice):
    """Behind the mark of the start a cut cannot be told from an end; before it, it is."""
    path = os.path.join(home, "stint.db-wal")
    os.truncate(path, dice.choice((0, 10, 32, 32 + FRAME // 2)))
    return Planted("the log is cut", "stint.db")


def plant_log_gone(home, dice):
    del dice
    os.unlink(os.path.join(home, "stint.db-wal"))
    return Planted("the log is gone", "stint.db")


def plant_gone(home, dice):
    del dice
    os.unlink(os.path.join(home, "stint.db"))
    return Planted("the store is gone", "stint.db")


def plant_garbage(home, dice):
    with open(os.path.join(home, "stint.db"), "wb") as file:
        file.write(dice.randbytes(dice.choice((10, 100, 5000, 100_000))))
    return Planted("garbage in its place", "stint.db")


def plant_other(home, dice):
    """Another store, an older copy of this one, or a database of somebody else."""
    way = dice.choice(("another", "older", "foreign", "nothing"))
    path = os.path.join(home, "stint.db")
    if way == "another":
        shutil.copy(os.path.join(home, "another.db"), path)
    elif way == "older":
        shutil.copy(os.path.join(home, "older.db"), path)
    else:
        os.unlink(path)
        db = sqlite3.connect(path)
        if way == "foreign":
            db.execute("CREATE TABLE task (a, b)")
        db.execute("PRAGMA user_version = 0")
        db.execute("VACUUM")
        db.close()
    return Planted(f"{way} in its place", "stint.db")


STOPPED = [*(plant_row(table) for table in TABLES), plant_page, plant_schema, plant_header, plant_cut, plant_mark, plant_no_mark,
           plant_gone, plant_garbage, plant_other]
KILLED = [plant_frame, plant_log_header, plant_log_cut, plant_log_gone]
KINDS = [*((plant, "stopped") for plant in STOPPED), *((plant, "killed") for plant in KILLED)]


# ---- a store with a bit of everything ----------------------------------------------------------------------------------------

SESSION = "agent:main:worker-slot-1:1"


def fill(client):
    """Something in every table; returns what reads it again."""
    made = []

    def create(name, **more):
        headers = {"Idempotency-Key": "i-" + name}
        reply = client.call("POST", "/api/tasks", {"id": name, "title": name, **more}, headers=headers)
        assert reply.status == 201, reply.body
        made.append((name, more))

    for i in range(6):
        create(f"t{i}", uniqueKey=f"u{i}", labels=["a", "b"])
    create("child", blockedBy=["t4", "t5"])
    client.post("/api/workers/register", {"workerId": "w1", "slot": "slot-1", "capabilities": ["x", "y"]})
    for i in range(3):
        claim, = client.post("/api/claims", {"workerId": "w1"}).json["claims"]
        name, held = claim["task"]["id"], {"workerId": "w1", "fence": claim["fence"]}
        client.post(f"/api/tasks/{name}/log", {**held, "offset": 0, "data": "hello\n" * 50})
        client.post(f"/api/tasks/{name}/progress", {**held, "note": "half", "checkpoint": {"step": i}})
        if i < 2:
            client.post(f"/api/tasks/{name}/complete", {**held, "result": {"number": i}})
    client.post("/api/tasks/t5/cancel")
    client.post("/api/sessions/spawn", {"sessionLabel": SESSION, "prompt": "do it"})
    client.post("/api/queues/later/pause")
    client.post("/api/slots/slot-2/crash")
    client.post("/api/workqueue/assignments", {"agentId": "slot-2", "queues": ["default", "later"]})
    client.post("/api/tokens", {"kind": "viewer", "name": "v"})
    client.post("/api/tokens", {"kind": "worker", "name": "w"})
    return made


def read_all(client, made):
    """Everything that can be read, and requests that were answered before. Damage answers 503, or ends the server."""
    paths = ["/api/tasks?limit=1000", "/api/events?after=0", "/api/workers", "/api/slots", "/api/queues", "/api/tokens",
             "/api/sessions", "/api/workqueue/assignments", "/api/tasks?state=done,failed,cancelled"]
    for name in [*(name for name, _ in made), SESSION]:
        paths += [f"/api/tasks/{name}", f"/api/tasks/{name}/log", f"/api/tasks/{name}/events", f"/api/tasks/{name}/why"]
    last = 0
    for path in paths:
        client.call("GET", path, judged=False)
    while last < 200:  # behind each pack that is lost there is another
        reply = client.call("GET", f"/api/events?after={last}&limit=1000", judged=False)
        last = int(reply.json["next"]) if "next" in reply.json and int(reply.json["next"]) > last else 200
    for name, more in made:
        body = {"id": name, "title": name, **more}
        client.call("POST", "/api/tasks", body, headers={"Idempotency-Key": "i-" + name}, judged=False)
        client.call("POST", "/api/sessions/spawn", {"sessionLabel": SESSION, "prompt": "do it"},
                    judged=False)
        if "uniqueKey" in more:
            client.call("POST", "/api/tasks", {"title": "again", "uniqueKey": more["uniqueKey"]}, judged=False)
    for verb in ("cancel", "retry"):
        for name, _ in made:
            client.call("POST", f"/api/tasks/{name}/{verb}", {}, judged=False)


class Planting(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.mkdtemp(prefix="stint-planted-")
        other = stintd.Server()
        other.stop()
        server = stintd.Server()
        server.stop()
        shutil.copy(os.path.join(server.home, "stint.db"), os.path.join(server.home, "older.db"))
        shutil.copy(os.path.join(other.home, "stint.db"), os.path.join(server.home, "another.db"))
        other.end()
        server.start()
        client = server.client()
        cls.made = fill(client)
        client.close()
        server.kill()
        cls.keep(server.home, "killed")
        server.start()
        server.stop()
        cls.keep(server.home, "stopped")
        server.end()

    @classmethod
    def keep(cls, home, name):
        shutil.copytree(home, os.path.join(cls.place, name), ignore=lambda _, names: [
            entry for entry in names if entry in ("url", "log", "door", "stint.sock") or entry.endswith(".ballast")])

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.place)

    def files(self):
        found = {}
        for name in os.listdir(self.home):
            if name.startswith(("stint.db", "store.mark")) and os.path.isfile(os.path.join(self.home, name)):
                with open(os.path.join(self.home, name), "rb") as file:
                    found[name] = file.read()
        return found

    def check(self, planted):
        before = self.files()
        done = subprocess.run([stintd.STINTD, "--home", self.home, "--check-store"], capture_output=True, text=True,
                              timeout=HANG_S)
        findings = [json.loads(line) for line in done.stdout.splitlines()]
        said = "\n".join(self.sentence(finding) for finding in findings)
        self.assertEqual(self.files(), before, "the check changes no byte")
        if planted.harmless:
            self.assertEqual((done.returncode, findings), (0, []))
            return
        self.assertIn(done.returncode, (1, 74), said)
        self.assertTrue(planted.is_named_in(said), f"--check-store says: {said}")

    @staticmethod
    def sentence(finding):
        place = ""
        if "table" in finding:
            row = finding.get("row", UNKNOWN)
            row = f'"{finding["key"]}"' if "key" in finding else row
            place = f"row {row} of table {finding['table']}" if row is not UNKNOWN else f"table {finding['table']}"
        return f"{finding['file']}: {place}: {finding['what']}"

    def doctor(self, planted):
        done = subprocess.run([os.environ["STINT"], "--home", self.home, "--json", "doctor"], capture_output=True, text=True,
                              timeout=HANG_S)
        said = "\n".join(check["text"] for check in json.loads(done.stdout)["checks"] if check["name"] == "damage")
        if not planted.harmless:
            self.assertEqual(done.returncode, 1)
            self.assertTrue(planted.is_named_in(said + f" stint.db {self.home}"), f"doctor says: {said}")

    def serve(self, planted):
        """The server until it ends, or has been read through; what it said."""
        log = os.path.join(self.home, "log")
        with open(log, "wb") as file:
            process = subprocess.Popen([stintd.STINTD, "--home", self.home, "--listen", "127.0.0.1:0"], stderr=file,
                                       stdin=subprocess.DEVNULL, env=stintd.environment())
        until = time.monotonic() + HANG_S
        while process.poll() is None and not os.path.exists(os.path.join(self.home, "url")):
            self.assertLess(time.monotonic(), until)
            time.sleep(0.005)
        if process.poll() is None:
            self.read_through(process, planted)
        with open(log, encoding="utf-8", errors="replace") as file:
            return process.returncode, file.read()

    def read_through(self, process, planted):
        server = stintd.Server.__new__(stintd.Server)
        server.home, server.process = self.home, process
        with open(os.path.join(self.home, "url")) as file:
            server.url = file.read().strip()
        server.port = int(server.url.rsplit(":", 1)[1])
        with open(os.path.join(self.home, "admin.token")) as file:
            server.token = file.read().strip()
        client = server.client()
        try:
            read_all(client, self.made)
            ready = client.get("/readyz").json
            tasks = client.call("GET", "/api/tasks?limit=1000", judged=False)
            if planted.is_key:
                self.assertIn(tasks.status, (200, 503))
            elif not planted.harmless:
                self.assertGreater(ready.get("damage", 0), 0, "everything was read, and nothing was found")
                self.assertTrue(planted.is_named_in("stint.db " + ", ".join(ready["places"])), ready)
                self.doctor(planted)
            else:
                self.assertEqual((ready, tasks.status), ({"status": "ready"}, 200))
                self.assertGreaterEqual(len(tasks.json), 5)
        except (ConnectionError, OSError):
            pass  # it ended: its log says why
        finally:
            client.close()
            if process.poll() is None:
                process.terminate()
            process.wait(HANG_S)

    def judge(self, planted):
        self.check(planted)
        self.doctor(planted)
        status, said = self.serve(planted)
        self.assertIn(status, (0, 74), said)
        if status == 74:
            self.assertFalse(planted.harmless, said)
            last = said.strip().splitlines()[-1].replace('\\"', '"')
            self.assertTrue(planted.is_key or planted.is_named_in(last), f"the server says: {last}")
            self.assertIn("stint.db", last)
            self.assertTrue(any(word in last for word in ("restore", "install", "another store", "remove it", "not a stint store")), last)

    def test_each_planted_damage_is_found_at_its_place(self):
        print(f"\nseed {SEED}, {COUNT} damages; one again: STINT_SEED={SEED} STINT_DAMAGE=N", file=sys.stderr)
        numbers = [int(ONLY)] if ONLY else range(COUNT)
        # every kind comes up once before one comes up twice
        order = [random.Random(f"{SEED} order").sample(range(len(KINDS)), len(KINDS)) for _ in range(1)][0]
        for number in numbers:
            dice = random.Random(f"{SEED} {number}")
            plant, kind = KINDS[order[number % len(KINDS)]]
            self.home = os.path.join(self.place, f"home-{number}")
            shutil.copytree(os.path.join(self.place, kind), self.home)
            planted = plant(self.home, dice)
            with self.subTest(number=number, what=planted.what):
                self.judge(planted)
            shutil.rmtree(self.home)


if __name__ == "__main__":
    unittest.main()
