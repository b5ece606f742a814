"""Shortage: memory, descriptors, processes, writes and syncs that fail at the n-th call, for every n (./dev shortage).

  run.py [--tenth | --drawn N] [--seconds N] [--deep] [--seed N] [--part NAME]... [--only WORD] [--kind KIND]... [--jobs N]

Parts: programs (every unit and store program), verbs (every verb of stint), server (every story of spec/openapi.json, told to a
server of its own), worker (one attempt). Of calls with the same stack the first is made to fail: most fail alike. --deep fails the
2nd, 4th, 8th, ... as well. --tenth draws a tenth of all by a seed that is printed, --drawn as many calls of each program,
verb, story or attempt. --seconds takes from all parts in turn until the time is over: a busy machine runs fewer calls, not longer.
Then a run that takes longer than a fifth of that time is ended and skipped: only without --seconds is it a finding that one hangs.
The seed draws the same calls in the same order again.

Whatever fails, four things may not happen. A crash: a signal, an assertion, a sanitizer's report. A lie: status 0 with a broken or
different output; a reply of success without its effect; a shortage of ours that is called the caller's mistake. A leak: after its
clean end a server has left more memory than one to which the same story was told without a shortage; so has a verb or a test that
went on to status 0. (One that failed says nothing about leaks: a failed test of cmocka jumps away from what it holds, and a verb
that gives up leaves its memory to the kernel.)
A lost claim: afterwards a fresh client on each listener creates, claims and completes, and a task that was claimed has its end."""
import argparse
import concurrent.futures
import itertools
import json
import math
import mmap
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("STINT_BUILD", TOP / "build"))
sys.path.insert(0, str(TOP / "tests" / "e2e"))
os.environ.setdefault("STINTD", str(BUILD / "stintd"))
from hang import HANG_S
import stintd

LIBRARY = BUILD / "tests" / "stint-shortage.so"
JOB_SHARE = 0.05  # of --seconds, for one program, verb, story or attempt: a slow one leaves time for the others
RUN_SHARE = 0.2  # of --seconds, for one run: with what runs last the whole takes 1.2 times --seconds
KINDS = ["memory", "descriptor", "process", "write", "sync"]  # their numbers begin with 1
CRASH = re.compile(r"shortage: crashed by (\d+) in (?!libuv)\S+ at(.*)")
# libuv ends the program by itself when it cannot widen its table of watchers, or make the pipe that its signals go through: there is
# no error to return. The program is started again, and nothing that was said is lost.
LIBUV_ENDED = re.compile(r"shortage: crashed by 6 in libuv")


class Control:
    """The file that the library shares with us."""
    FIELDS = ("kind", "at", "count", "hits", "blocks")

    def __init__(self, folder):
        self.path = os.path.join(folder, "shortage")
        with open(self.path, "wb") as file:
            file.write(bytes(8 * len(self.FIELDS)))
        with open(self.path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 0)

    def get(self, name):
        return struct.unpack_from("=q", self.map, 8 * self.FIELDS.index(name))[0]

    def put(self, name, value):
        struct.pack_into("=q", self.map, 8 * self.FIELDS.index(name), value)

    def arm(self, kind, at):
        """`at` 0 only counts."""
        self.put("kind", 0)
        self.put("count", 0)
        self.put("hits", 0)
        self.put("at", at)
        self.put("kind", KINDS.index(kind) + 1)

    def disarm(self):
        self.put("kind", 0)

    def close(self):
        self.map.close()


def environment(control, program, record=None):
    variables = {"LD_PRELOAD": str(LIBRARY), "STINT_SHORTAGE": control.path, "STINT_SHORTAGE_PROGRAM": program,
                 "MALLOC_PERTURB_": "165"}
    if record:
        variables["STINT_SHORTAGE_RECORD"] = record
    if "STINT_SHORTAGE_DEEP" in os.environ:
        variables["STINT_SHORTAGE_DEEP"] = "1"
    return variables


class FreshClient(stintd.Client):
    """A connection for each request: a server closes one that is idle, and a run may take long."""

    def call(self, *arguments, **options):
        self.close()
        return super().call(*arguments, **options)


class Places:
    """Where an offset of a program is: file and function, by addr2line."""

    def __init__(self, program):
        self.program, self.known = str(program), {}

    def look_up(self, offsets):
        """For each offset its places, the innermost first: what was inlined has several."""
        wanted = sorted({offset for offset in offsets if offset not in self.known})
        if wanted:
            done = subprocess.run(["addr2line", "-a", "-i", "-f", "-e", self.program, *wanted], capture_output=True, text=True,
                                  check=True)
            groups = re.split(r"^0x[0-9a-f]+\n", done.stdout, flags=re.M)[1:]
            for offset, group in zip(wanted, groups):
                lines = group.splitlines()
                self.known[offset] = list(zip(lines[::2], lines[1::2]))
        return [place for offset in offsets for place in self.known[offset]]

    def ours(self, offsets):
        """The places in our code, the innermost first: ("src" or "tests", what to print)."""
        chain = []
        for function, where in self.look_up(offsets):
            path = re.search(r"/(src|tests)/(\S+)$", os.path.normpath(where.split(" ")[0]))
            if path and not where.startswith("/usr/") and not function.startswith("_sub_"):  # those are gcov's, with a line of ours
                chain.append((path[1], "%s (%s/%s)" % (function, path[1], path[2])))
        return chain

    def room(self, offsets):
        """Where the innermost place is: "src", "tests" or ""."""
        return next((room for room, _ in self.ours(offsets)), "")

    def text(self, offsets):
        return " < ".join(text for _, text in self.ours(offsets)[:4]) or "?"


class Finding(Exception):
    """A rule that was broken."""


class Watch:
    """Ends what a run has started, once the run takes longer than its share. Each thread has one run at a time."""

    def __init__(self):
        self.share, self.runs, self.skipped = None, {}, 0

    def start(self, share):
        """From now on a run may take that many seconds."""
        self.share = share
        subprocess.Popen = WatchedChild  # for the servers of stintd.py, too, and for subprocess.run()
        threading.Thread(target=self.look, daemon=True).start()

    def own(self):
        """Of this thread: until when its run may last, and what it has started and not ended."""
        return self.runs.setdefault(threading.get_ident(), [math.inf, []])

    def begin_run(self):
        run = self.own()
        run[1] = [child for child in run[1] if child.returncode is None]  # a job may have a server for all its runs
        run[0] = math.inf if self.share is None else time.monotonic() + self.share

    def is_late(self):
        return time.monotonic() > self.own()[0]

    def end_run(self):
        """True if it took longer than its share."""
        is_late, self.own()[0] = self.is_late(), math.inf
        self.skipped += is_late
        return is_late

    def check(self):
        """Within a run, while it waits."""
        if self.is_late():
            raise TimeoutError("the run takes longer than its share")

    def look(self):
        while True:
            time.sleep(0.1)
            for until, children in list(self.runs.values()):
                if time.monotonic() > until:
                    for child in list(children):
                        child.end()


class WatchedChild(subprocess.Popen):
    """With all that it starts it is a group of its own: whoever has its pipe must end as well."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options, start_new_session=True)
        WATCH.own()[1].append(self)

    def end(self):
        if self.returncode is None:
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


WATCH = Watch()


def is_over(options):
    return options.until is not None and time.monotonic() > options.until


def draw(lines, options, job):
    """Of the recorded calls those that are to fail, while there is time. Each job has dice of its own: what it draws does not depend
    on what runs beside it."""
    dice, began = random.Random("%d %s" % (options.seed, job)), time.monotonic()
    if options.drawn or options.seconds:
        lines = dice.sample(lines, min(len(lines), options.drawn or len(lines)))
    elif options.tenth:
        lines = [line for line in lines if dice.random() < 0.1]
    for line in lines:
        if is_over(options) or (options.seconds and time.monotonic() - began > options.seconds * JOB_SHARE):
            return
        yield line


def read_record(path):
    """The calls that the library wrote: number, and the places that led to it."""
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [(int(number), offsets) for number, *offsets in map(str.split, file)]


def starve(job, lines, places, run, options):
    """Make each drawn call fail; run(number, offsets) says what is wrong, or None. How many failed, and the findings."""
    count, findings = 0, []
    for number, offsets in draw(lines, options, job):
        fault = wrong = None
        WATCH.begin_run()
        try:
            wrong = run(number, offsets)
        except Finding as finding:
            wrong = finding
        except subprocess.TimeoutExpired:
            wrong = "it hangs"
        except Exception as raised:  # a run that is ended may raise anything
            fault = raised
        if WATCH.end_run():
            break  # its server may be among what was ended
        if fault:
            raise fault
        count += 1
        if wrong:
            findings.append("%s %d, asked for by %s: %s" % (job, number, places.text(offsets), wrong))
    return count, findings


def judge_leak(usual, status, left):
    """usual: (status, blocks) without a shortage."""
    if usual[0] == status == 0 and left > usual[1]:
        return "it leaks: %d pieces of memory at its end, and %d without a shortage" % (left, usual[1])
    return None


# ---- every unit and store program ----------------------------------------------------------------------------------


def tests_of(suites):
    listed = subprocess.run(["meson", "introspect", "--tests", str(BUILD)], capture_output=True, text=True, check=True)
    for test in json.loads(listed.stdout):
        if any(suite.rpartition(":")[2] in suites for suite in test["suite"]):
            yield test["name"], test["cmd"], test["env"]


def run_program(command, env, control, kind, at, record=None):
    program = os.path.basename(command[0])
    control.arm(kind, at)
    control.put("blocks", 0)
    with tempfile.TemporaryDirectory(prefix="stint-short-") as scratch:
        return subprocess.run(command, env={**os.environ, **env, "TMPDIR": scratch, **environment(control, program, record)},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=HANG_S, check=False)


def judge_program(done, places, starved=()):
    """None, or how it crashed in our own code: a test that goes on with what it did not get crashes by itself."""
    if "Sanitizer" in done.stderr:
        return "sanitizer: " + done.stderr[-2000:]
    crash = CRASH.search(done.stderr)
    if crash:
        offsets = crash[2].split()
        if places.room(offsets) == "src" and not test_went_on(places.ours(offsets), places.ours(starved)):
            said = re.findall(r".*Assertion.*", done.stderr)
            return "signal %s in %s %s" % (crash[1], places.text(offsets), " ".join(said[-1:]))
    elif done.returncode < 0:
        return "signal %d" % -done.returncode
    return None


def test_went_on(crash, starved):
    """Did the call that was starved return to the test, and the test use what it did not get? Then the crash is in the function
    that the test called itself, from another line of the test."""
    def caller(chain):
        return next((text for room, text in chain if room == "tests"), None)
    return len(crash) > 1 and crash[1][0] == "tests" and caller(starved) is not None and caller(crash) != caller(starved)


def starve_program(name, command, env, kind, options):
    with tempfile.TemporaryDirectory(prefix="stint-short-") as folder:
        control, places = Control(folder), Places(command[0])
        record = os.path.join(folder, "stacks")
        usual = run_program(command, env, control, kind, 0, record).returncode, control.get("blocks")
        lines = [(number, offsets) for number, offsets in read_record(record) if offsets and places.room(offsets) == "src"]

        def run(number, offsets):
            done = run_program(command, env, control, kind, number)
            return judge_program(done, places, offsets) or judge_leak(usual, done.returncode, control.get("blocks"))
        try:
            return starve("%s: %s" % (name, kind), lines, places, run, options)
        finally:
            control.close()


def jobs_of_programs(options):
    return [(starve_program, name, command, env, kind) for name, command, env in tests_of(("unit", "store"))
            for kind in options.kinds if options.only in name]


# ---- every verb of stint ----------------------------------------------------------------------------------------------


READS = [
    ["version"], ["help"], ["help", "add"], ["completion", "bash"], ["ls", "--queue", "seen"], ["ls", "--queue", "seen", "--json"],
    ["ls", "--queue", "seen", "-o", "jsonl"], ["show", "seen-1"], ["show", "seen-1", "--json"], ["why", "seen-1"],
    ["why", "seen-1", "--json"], ["wait", "seen-4"], ["inbox"], ["inbox", "--json"], ["events", "--task", "seen-1"],
    ["events", "--task", "seen-1", "--json"], ["logs", "seen-3"], ["queue", "ls"], ["queue", "ls", "--json"], ["workflow", "ls"],
    ["skill", "ls"], ["skill", "ls", "--json"], ["skill", "show", "stint-task"], ["skill", "install", "--dry-run", "--json"],
    ["worker", "ls"], ["worker", "ls", "--json"], ["worker", "show", "w"], ["slot", "ls"], ["session", "ls"], ["token", "ls", "--json"],
    ["config", "show"], ["config", "show", "--json"], ["config", "path"], ["config", "schema"], ["doctor"], ["doctor", "--json"],
    ["db", "query", "SELECT * FROM worker_registry"], ["notify", "ls"], ["workqueue", "list", "--queues", "seen"],
]


class Move:
    """A verb that changes something: what is there before, its words, and what is so afterwards."""

    def __init__(self, words, state=None, claimed=False, before=(), effect=None):
        self.words, self.claimed, self.before = words, claimed, before
        self.effect = effect or (lambda client, names: client.get("/api/tasks/" + names["id"]).json.get("state") == state)


def queue_is(state):
    return lambda client, names: [queue["state"] for queue in client.get("/api/queues").json
                                  if queue["name"] == "moved"] == [state]


HELD = ["--task", "{id}", "--fence", "{fence}", "--worker", "w"]
MOVES = [
    Move(["add", "made", "--queue", "made", "--id", "made-{n}"], effect=lambda client, names: client.get(
        "/api/tasks/made-%d" % names["n"]).status == 200),
    Move(["add", "made", "--queue", "made", "--json", "--id", "json-{n}"], effect=lambda client, names: client.get(
        "/api/tasks/json-%d" % names["n"]).status == 200),
    Move(["cancel", "{id}"], "cancelled"), Move(["retry", "{id}"], "ready", before=["cancel"]), Move(["park", "{id}"], "pending"),
    Move(["unpark", "{id}"], "ready", before=["park"]),
    Move(["claim", "--queues", "{queue}", "--worker", "w", "--json"], "claimed"),
    Move(["claim", "--queues", "{queue}", "--worker", "w", "-o", "env"], "claimed"),
    Move(["task", "done", "fine", *HELD], "done", claimed=True), Move(["task", "fail", "no", *HELD], None, claimed=True,
         effect=lambda client, names: client.get("/api/tasks/" + names["id"]).json["state"] != "claimed"),
    Move(["task", "release", *HELD], "ready", claimed=True), Move(["task", "block", "why", *HELD], "blocked", claimed=True),
    Move(["task", "progress", "half", *HELD], "running", claimed=True),
    Move(["queue", "pause", "moved"], effect=queue_is("paused")), Move(["queue", "resume", "moved"], effect=queue_is("open")),
    Move(["token", "create", "--kind", "viewer", "--name", "guest-{n}", "--json"], effect=lambda client, names: any(
        token["name"] == "guest-%d" % names["n"] for token in client.get("/api/tokens").json)),
    Move(["disarm"], effect=lambda client, names: client.get("/api/execution").json["armed"] is False),
    Move(["arm"], effect=lambda client, names: client.get("/api/execution").json["armed"] is True),
    Move(["backup", "copy-{n}"], effect=lambda client, names: True),
]


# What doctor says of the machine while a descriptor, a process or memory is missing: that is its answer, with a warning.
SEEN_BY_DOCTOR = re.compile(r"stint-worker cannot be run")


def normal(text):
    """Without what differs from one run to the next: numbers, ids, times, secrets."""
    text = re.sub(r"stint_[a-z]+_\w+", "SECRET", text)
    text = re.sub(r"[0-9]+(\.[0-9]+)?( ?(ms|s|m|h|d|KiB|MiB|GiB|B|KB|MB|GB|TB))?", "#", text)
    text = re.sub(r"\bnow  \(", "# ago  (", re.sub(r"#+", "#", text))
    return re.sub(r"\s+", " ", text).strip()


class Verbs:
    """A server, and stint under a shortage beside it."""

    def __init__(self, folder):
        self.control, self.places = Control(folder), Places(BUILD / "stint")
        self.server = stintd.Server("--set", "worker.leaseMinMs=100")
        self.client, self.number, self.folder = FreshClient(self.server), 0, folder
        for task in ({"id": "seen-1"}, {"id": "seen-2"}, {"id": "seen-3", "labels": ["x"], "payload": {"text": "y" * 3000}}):
            self.client.post("/api/tasks", {"title": "a title that is long enough to be cut off somewhere", "queue": "seen", **task})
        self.client.post("/api/tasks/seen-2/cancel")
        self.client.post("/api/tasks", {"id": "seen-4", "title": "x", "queue": "ended"})
        claim, = self.client.post("/api/claims", {"workerId": "w", "queues": ["ended"]}).json["claims"]
        self.client.post("/api/tasks/seen-4/complete", {"workerId": "w", "fence": claim["fence"]})
        self.client.post("/api/workers/register", {"workerId": "w", "capabilities": ["gpu"], "slot": "slot-1", "leaseMs": 86400000})
        self.client.post("/api/tasks", {"title": "x", "queue": "moved"})
        self.configure()

    def configure(self):
        """A target, for the verbs of notify."""
        secret = os.path.join(self.server.home, "ops.secret")
        target = {"url": "http://127.0.0.1:9/", "secretFile": secret, "allow": ["127.0.0.1"]}
        for path, text in ((secret, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"),
                           (os.path.join(self.server.home, "config.json"), json.dumps({"notify": {"targets": {"ops": target}}}))):
            with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
                file.write(text)

    def close(self):
        self.client.close()
        self.server.end()
        self.control.close()

    def prepare(self, move):
        self.number += 1
        names = {"n": self.number, "id": "m-%d" % self.number, "queue": "q-%d" % self.number, "fence": "0"}
        if move is None:
            return names
        self.client.post("/api/execution", {"armed": True})
        self.client.post("/api/tasks", {"id": names["id"], "title": "x", "queue": names["queue"], "maxAttempts": 5})
        for verb in move.before:
            self.client.post("/api/tasks/%s/%s" % (names["id"], verb))
        if move.claimed:
            claim, = self.client.post("/api/claims", {"workerId": "w", "queues": [names["queue"]]}).json["claims"]
            names["fence"] = claim["fence"]
        return names

    def run(self, words, move, kind, at, record=None):
        names = self.prepare(move)
        self.control.arm(kind, at)
        self.control.put("blocks", 0)
        env = stintd.environment(STINT_HOME=self.server.home, **environment(self.control, "stint", record))
        done = subprocess.run([BUILD / "stint", *[word.format(**names) for word in words]], env=env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", timeout=HANG_S, check=False)
        return done, names

    def judge(self, done, names, usual, move):
        """None, or the rule that was broken."""
        if wrong := judge_program(done, self.places):
            return wrong
        if done.returncode != 0:
            return None if done.stderr.strip() else "status %d without a word" % done.returncode
        if normal(done.stdout) != usual and not SEEN_BY_DOCTOR.search(done.stdout):
            said = normal(done.stdout)
            at = len(os.path.commonprefix([said, usual]))
            return "status 0 and another output: ...%r in place of ...%r" % (said[max(0, at - 20):at + 80], usual[max(0, at - 20):at + 80])
        if move and not move.effect(self.client, names):
            return "status 0 without effect"
        return None


def starve_verb(words, move, kind, options):
    job = "stint %s: %s" % (" ".join(words), kind)
    with tempfile.TemporaryDirectory(prefix="stint-short-") as folder:
        verbs, record = Verbs(folder), os.path.join(folder, kind)
        try:
            done, names = verbs.run(words, move, kind, 0, record)
            if wrong := done.stderr if done.returncode != 0 else verbs.judge(done, names, normal(done.stdout), move):
                return 0, ["%s: without a shortage: %s" % (job, wrong)]
            output, usual = normal(done.stdout), (0, verbs.control.get("blocks"))

            def run(number, _):
                again, names = verbs.run(words, move, kind, number)
                return verbs.judge(again, names, output, move) or judge_leak(usual, again.returncode, verbs.control.get("blocks"))
            return starve(job, read_record(record), verbs.places, run, options)
        finally:
            verbs.close()


def jobs_of_verbs(options):
    verbs = [(words, None) for words in READS] + [(move.words, move) for move in MOVES]
    return [(starve_verb, words, move, kind) for words, move in verbs for kind in options.kinds if options.only in " ".join(words)]


# ---- the server: every story of the contract ------------------------------------------------------------------------------


STORE_FAULT = 74  # its status


class Interrupted(Exception):
    """The server said that it is short of something, or hung up: the story ends here, and that is no fault."""


class ShortServer(stintd.Server):
    def __init__(self, control, record=None):
        self.control, self.record = control, record
        super().__init__()

    def command(self):
        words = ["%s=%s" % item for item in environment(self.control, "stintd", self.record).items()]
        return ["env", *words, *super().command()]


class ShortClient(stintd.Client):
    def call(self, method, path, body=None, headers=None, judged=True):
        hits = self.server.control.get("hits")
        try:
            self.send(method, path, body, headers)
            reply = self.receive(judged)
        except (OSError, stintd.http.client.HTTPException):
            self.close()
            if self.server.control.get("hits") == 0 or self.server.process.poll() is not None:
                raise
            raise Interrupted from None
        if self.server.control.get("hits") > hits or (hits and reply.status == 503):
            item_is_refused = reply.status == 200 and any(
                words in reply.body for words in (b'"ok":false,"status":503,', b'"error":"unavailable"'))  # of a batch, an import
            if reply.status == 503 or item_is_refused or reply.headers.get("Connection") == "close":
                raise Interrupted
        return reply


def live_on(server, local):
    """A fresh client on a listener creates, claims and completes."""
    client = server.client(local=local)
    try:
        name = "fresh-%s-%d" % (local, time.monotonic_ns())
        client.post("/api/execution", {"armed": True})  # the story may have ended while it was disarmed
        made = client.post("/api/tasks", {"id": name, "title": "x", "queue": name})
        claims = client.post("/api/claims", {"workerId": name, "queues": [name]}).json["claims"]
        done = client.post("/api/tasks/%s/complete" % name, {"workerId": name, "fence": claims[0]["fence"]})
        return (made.status, done.status) == (201, 200)
    finally:
        client.close()


def lives_on(server):
    """On both listeners, at once or within 5 s: a store that refuses to write may need a sweep to find that it can again. A server
    that the disk failed is started again by somebody, and everything is there."""
    until = time.monotonic() + (5 if "STINT_QUIET" in os.environ else HANG_S / 5)
    for local in (False, True):
        while True:
            try:
                if live_on(server, local):
                    break
            except (OSError, KeyError, IndexError, ValueError, stintd.http.client.HTTPException) as fault:
                last = fault
            else:
                last = "refused"
            WATCH.check()
            if server.process.poll() is not None:  # judge_server() has allowed that
                server.start()
            if time.monotonic() > until:
                raise Finding("nobody is served on the %s afterwards: %r" % ("socket" if local else "port", last))
            time.sleep(0.05)


def tell(story, server):
    """True if it was told to its end."""
    import test_openapi
    teller = test_openapi.Story(stintd.contract(), server)
    teller.client = ShortClient(server)
    try:
        for step in story["steps"]:
            try:
                teller.tell(step)
            except Interrupted:
                return False
            except OSError:
                if server.control.get("hits") == 0:
                    raise
                return False
            except (AssertionError, stintd.openapi.Broken) as fault:
                raise Finding("%s: %s" % (step["request"], fault)) from None
        return True
    finally:
        teller.client.close()


def judge_server(server, places):
    crash = CRASH.search(server.said())
    if crash:
        said = re.findall(r".*Assertion.*", server.said())
        raise Finding("signal %s in %s %s" % (crash[1], places.text(crash[2].split()), " ".join(said[-1:])))
    if LIBUV_ENDED.search(server.said()):
        return
    if server.process.poll() is not None and server.process.returncode != STORE_FAULT:
        raise Finding("it ended with %d: %s" % (server.process.returncode, server.said()[-500:]))


def starve_story(story, kind, at, places, record=None):
    """One telling to a server of its own. How many pieces of memory it left at its end; None: it was started more than once."""
    with tempfile.TemporaryDirectory(prefix="stint-short-") as folder:
        control = Control(folder)
        server = ShortServer(control, record)
        try:
            control.arm(kind, at)
            try:
                tell(story, server)
            except Finding:
                judge_server(server, places)  # a crash says more
                raise
            except (OSError, stintd.http.client.HTTPException):
                if server.process.poll() is None:
                    raise
            judge_server(server, places)
            control.disarm()
            first = server.process.pid
            lives_on(server)
            judge_server(server, places)
            last = server.process.pid
            if server.stop() != 0:
                raise Finding("it does not end well")
            return control.get("blocks") if first == last else None
        finally:
            server.end()
            control.close()


def starve_one(story, kind, places, options):
    with tempfile.TemporaryDirectory(prefix="stint-short-") as folder:
        record = os.path.join(folder, "stacks")
        usual = 0, starve_story(story, kind, 0, places, record)

        def run(number, _):
            left = starve_story(story, kind, number, places)
            return None if left is None else judge_leak(usual, 0, left)
        return starve("%s: %s" % (story["story"], kind), read_record(record), places, run, options)


def jobs_of_server(options):
    places = Places(BUILD / "stintd")
    stories = [story for story in stintd.contract().document["x-replay"] if options.only in story["story"]]
    return [(starve_one, story, kind, places) for story in stories for kind in options.kinds]


# ---- one attempt of a worker -------------------------------------------------------------------------------------------------


def attempt(kind, at, places, record=None):
    """A worker that is short of something once: its task has one end, and so has the next one."""
    with tempfile.TemporaryDirectory(prefix="stint-short-") as folder:
        control = Control(folder)
        server = stintd.Server("--set", "worker.leaseMinMs=1000", "--set", "retry.baseMs=10", "--set", "retry.maxMs=100",
                               "--set", "restart.graceMs=1000", "--set", "sweep.intervalMs=50")
        client, workers, config = FreshClient(server), [], os.path.join(server.home, "short.json")

        def start():
            log = open(os.path.join(folder, "log"), "ab")
            env = stintd.environment(**environment(control, "stint-worker", record))
            workers.append(subprocess.Popen(
                [BUILD / "stint-worker", "--home", server.home, "--config", config, "--lease-ms", "2000"], env=env,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log))
            log.close()

        def wait_for_end(task):
            until = time.monotonic() + HANG_S
            while (found := client.get("/api/tasks/" + task).json)["state"] not in ("done", "failed", "cancelled"):
                WATCH.check()
                if time.monotonic() > until:
                    raise Finding("%s is %s for ever: %s" % (task, found["state"], said()[-700:]))
                if workers[-1].poll() is not None:
                    judge()
                    if workers[-1].returncode not in (2, 69, 70, 71, 74, 75, 78) and not LIBUV_ENDED.search(said()):
                        raise Finding("the worker ended with %d: %s" % (workers[-1].returncode, said()[-500:]))
                    start()  # as its supervisor does
                time.sleep(0.02)
            return found

        def said():
            with open(os.path.join(folder, "log"), errors="replace") as file:
                return file.read()

        def judge():
            crash = CRASH.search(said())
            if crash:
                raise Finding("signal %s in %s %s" % (crash[1], places.text(crash[2].split()),
                                                      " ".join(re.findall(r".*Assertion.*", said())[-1:])))

        try:
            with open(config, "w") as file:
                json.dump({"executors": {"x": {"kind": "command", "argv": ["sh", "-c", "echo fine"]}}, "queues": {"q": {}}}, file)
            control.arm(kind, at)
            client.post("/api/tasks", {"id": "one", "title": "x", "queue": "q", "maxAttempts": 5})
            start()
            found = wait_for_end("one")
            lost = client.get("/api/tasks/one/log").json.get("dropped", 0)  # output that no memory was left for is counted
            if found["state"] != "done" or (found["result"] != "fine" and not lost):
                raise Finding("one is %s: %s" % (found["state"], json.dumps([found.get("error"), found.get("result")])))
            control.disarm()
            client.post("/api/tasks", {"id": "two", "title": "x", "queue": "q", "maxAttempts": 5})
            wait_for_end("two")
            workers[-1].send_signal(signal.SIGTERM)
            if workers[-1].wait(HANG_S) != 0:
                raise Finding("the worker ends with %d: %s" % (workers[-1].returncode, said()[-500:]))
            judge()
        finally:
            for worker in workers:
                if worker.poll() is None:
                    worker.kill()
                    worker.wait()
            client.close()
            server.end()
            control.close()


def starve_attempt(kind, places, options):
    with tempfile.TemporaryDirectory(prefix="stint-short-") as folder:
        record = os.path.join(folder, "stacks")
        attempt(kind, 0, places, record)
        return starve("worker: " + kind, read_record(record), places, lambda number, _: attempt(kind, number, places), options)


def jobs_of_worker(options):
    places = Places(BUILD / "stint-worker")
    return [(starve_attempt, kind, places) for kind in options.kinds if options.only in "worker"]


PARTS = {"programs": jobs_of_programs, "verbs": jobs_of_verbs, "server": jobs_of_server, "worker": jobs_of_worker}


def in_turn(options, parts):
    """Jobs as (part, job): all of a part after the other, or drawn from the parts in turn."""
    lists = {part: PARTS[part](options) for part in parts}
    if options.until is None:
        return [(part, job) for part in parts for job in lists[part]]
    dice = random.Random(options.seed)
    for jobs in lists.values():
        dice.shuffle(jobs)
    rounds = itertools.zip_longest(*([(part, job) for job in lists[part]] for part in parts))
    return [entry for entries in rounds for entry in entries if entry]


def run_job(entry, options):
    part, (function, *arguments) = entry
    began = time.monotonic()
    WATCH.begin_run()  # what comes before the first call that fails is one, too
    try:
        count, findings = (0, []) if is_over(options) else function(*arguments, options)
    except Exception:
        if not WATCH.end_run():
            raise
        count, findings = 0, []
    WATCH.end_run()
    for finding in findings:
        print(finding, flush=True)
    return part, count, len(findings), time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip())
    parser.add_argument("--tenth", action="store_true")
    parser.add_argument("--drawn", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--deep", action="store_true")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--part", action="append", choices=list(PARTS))
    parser.add_argument("--only", default="")
    parser.add_argument("--kind", action="append", choices=KINDS, dest="kinds")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    options.kinds = options.kinds or KINDS
    options.until = time.monotonic() + options.seconds if options.seconds else None
    if options.seconds:
        WATCH.start(options.seconds * RUN_SHARE)
    if options.deep:
        os.environ["STINT_SHORTAGE_DEEP"] = "1"
    if options.tenth or options.drawn or options.seconds:
        print("seed %d" % options.seed, flush=True)
    parts = options.part or list(PARTS)
    tally = {part: [0, 0, 0, 0.0] for part in parts}  # jobs, calls, findings, seconds
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for part, *figures in pool.map(lambda entry: run_job(entry, options), in_turn(options, parts)):
            tally[part] = [before + more for before, more in zip(tally[part], [figures[0] > 0, *figures])]
    for part, (jobs, calls, _, seconds) in tally.items():
        print("%s: %d calls failed in %d jobs, %.0f s" % (part, calls, jobs, seconds))
    if WATCH.skipped:
        print("%d runs took too long and were skipped" % WATCH.skipped)
    failures = sum(findings for _, _, findings, _ in tally.values())
    print("%d findings" % failures)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
