"""A worker for a pool that behaves as a test wants it to: pool_worker.py PROGRAM FOLDER [ARGUMENT...]

What it does from the start is the program; what it does with a task is the module. It leaves a line in FOLDER/starts when it
starts and in FOLDER/ends when it is told to go."""
import fcntl
import json
import os
import signal
import struct
import sys
import threading
import time

PROGRAM, FOLDER, ARGUMENTS = sys.argv[1], sys.argv[2], sys.argv[3:]
ID = os.environ["AIRI_WORKER_ID"]
READY_TIMES = 3 if PROGRAM == "eager" else 1  # it says more often than needed that it is there
lock = threading.Lock()
beating = threading.Event()
beating.set()


def mark(name, text):
    with open(os.path.join(FOLDER, name), "a") as file:
        file.write("%s\n" % text)


def write(data):
    while data:
        data = data[os.write(1, data):]


def frame(body):
    return struct.pack(">I", len(body)) + body


def message(kind, **fields):
    return frame(json.dumps({"id": "1", "type": kind, "timestamp": "now", "workerId": ID, **fields}).encode())


def send(kind, **fields):
    with lock:
        write(message(kind, **fields))


def result(task, output=None, success=True):
    send("task.result", taskId=task["id"], result={"success": success, "output": output})


def read(length):
    data = b""
    while len(data) < length:
        more = os.read(0, length - len(data))
        if not more:
            mark("ends", ID)
            send("worker.shutdown", reason="stdin closed")
            sys.exit(0)
        data += more
    return data


def beat():
    while True:
        time.sleep(0.2)
        if beating.is_set():
            send("worker.heartbeat")


def forever():
    while True:
        time.sleep(60)


def wait_for(name):
    while not os.path.exists(os.path.join(FOLDER, name)):
        time.sleep(0.01)


class Modules:
    def echo(self, task):
        result(task, task.get("payload"))

    def whole(self, task):
        result(task, task)

    def env(self, task):
        result(task, dict(os.environ, PWD_IS=os.getcwd()))

    def who(self, task):
        result(task, [ID, os.getpid()])

    def meet(self, task):
        mark("here-" + task["id"], ID)
        wait_for("here-" + task["payload"])
        result(task, ID)

    def hold(self, task):
        mark("held-" + task["id"], os.getpid())
        wait_for("let-go")
        result(task, "held")

    def alone(self, task):
        lock = open(os.path.join(FOLDER, "lock"), "w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mark("journal", "alone")
        except OSError:
            mark("journal", "together")
        wait_for("go")
        result(task, ID)

    def fetch(self, task):
        """Through the proxy: NO_PROXY names what tests can serve."""
        os.environ["NO_PROXY"] = os.environ["no_proxy"] = ""
        import urllib.request
        with urllib.request.urlopen(task["payload"]) as answer:
            result(task, answer.status)

    def fail(self, task):
        send("task.failure", taskId=task["id"], error={"code": "NO_LUCK", "message": "as asked", "details": {"n": 1}})

    def no_success(self, task):
        result(task, "it is broken", success=False)

    def progress(self, task):
        for percent in range(101):
            send("task.progress", taskId=task["id"], progress=percent, message="at %d" % percent)
        time.sleep(1.5)
        result(task)

    def words(self, task):
        sys.stderr.write("of %s\n" % task["id"])
        sys.stderr.flush()
        result(task)

    def crash(self, task):
        sys.stderr.write("the last of %s\n" % task["id"])
        sys.stderr.flush()
        os.kill(os.getpid(), signal.SIGSEGV)

    def leave(self, task):
        os._exit(7)

    def say_goodbye(self, task):
        send("worker.shutdown", reason="tired")
        os._exit(0)

    def answer_and_leave(self, task):
        result(task, "last")
        os._exit(0)

    def burn(self, task):
        until = time.process_time() + task["payload"]
        while time.process_time() < until:
            pass
        result(task)

    def litter(self, task):
        for number in range(3000):
            open(os.path.join(os.environ["TMPDIR"], str(number)), "w").close()
        os._exit(7)

    def eat(self, task):
        result(task, len(b"x" * task["payload"]))

    def shout(self, task):
        sys.stderr.write(task["payload"] * "x")
        sys.stderr.flush()
        result(task, "shouted")

    def hang(self, task):
        mark("hangs", os.getpid())
        forever()

    def stall(self, task):
        forever()

    def silent(self, task):
        beating.clear()
        forever()

    def half(self, task):
        with lock:
            write(message("task.result", taskId=task["id"], result={"success": True})[:-3])
            os._exit(0)

    def close_output(self, task):
        with lock:
            os.close(1)
            forever()

    def close_within_a_frame(self, task):
        with lock:
            write(message("task.result", taskId=task["id"], result={"success": True})[:-3])
            os.close(1)
            forever()

    def half_then_hang(self, task):
        with lock:
            write(message("task.result", taskId=task["id"], result={"success": True})[:-3])
            forever()

    def giant(self, task):
        with lock:
            write(frame(b"x" * (1 << 20) + b"x"))
        forever()

    def four_gib(self, task):
        with lock:
            write(b"\xff\xff\xff\xff")
        while True:
            write(b"\0" * 65536)

    def largest(self, task):
        result(task, "x" * ((1 << 20) - 5000))

    def noise(self, task):
        with lock:
            write(b"Listening on port 3000\n")
        forever()

    def garbage(self, task):
        for body in (b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"id":"1"}',
                     b'{"id":"1","type":"worker.dance","timestamp":"now"}') * 14:
            with lock:
                write(frame(body))
        send("worker.heartbeat")
        result(task, "heard")

    def only_garbage(self, task):
        beating.clear()
        for _ in range(100):
            with lock:
                write(frame(b"{}"))
        forever()

    def twice(self, task):
        result(task, "first")
        result(task, "second")
        send("task.failure", taskId=task["id"], error={"code": "EXECUTION_ERROR", "message": "third"})

    def another(self, task):
        send("task.result", taskId="not-mine", result={"success": True, "output": "stolen"})
        send("task.progress", taskId="not-mine", progress=99, message="stolen")
        result(task, "mine")

    def answer_badly(self, task):
        """The payload says how: a result that is not understood, and then worker.ready as if it had been."""
        answer = {"id": "1", "type": "task.result", "timestamp": "now", "taskId": task["id"], "result": {"success": True, "output": 1}}
        how = task["payload"]
        if how == "shape":
            answer["result"]["success"] = "yes"
        elif how == "type":
            answer["type"] = "task.complete"
        elif how == "id":
            answer["taskId"] = "another"
        elif how == "deep":
            answer["result"]["output"] = json.loads("[" * 40 + "]" * 40)
        elif how == "nan":
            answer["result"]["output"] = float("nan")
        elif how == "none":
            send("task.progress", taskId=task["id"], progress=0, message="starting")
            return
        body = json.dumps(answer).encode()
        body = {"half": body[:-2], "utf8": body.replace(b"now", b"\xff"), "nul": body.replace(b"now", b"\0"),
                "envelope": body.replace(b'"id"', b'"ID"')}.get(how, body)
        with lock:
            write(frame(body))

    def odd_text(self, task):
        with lock:
            write(frame(json.dumps({"id": "1", "type": "task.result", "timestamp": "now", "taskId": task["id"],
                                    "result": {"success": True, "output": "?"}}).encode().replace(b"?", task["payload"].encode())))

    def late(self, task):
        signal.signal(signal.SIGTERM, lambda *_: None)
        while os.read(0, 1):
            pass
        result(task, "too late")
        mark("late", task["id"])
        os._exit(0)

    def stubborn(self, task):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        mark("stubborn", os.getpid())
        forever()

    def split(self, task):
        with lock:
            for byte in message("task.result", taskId=task["id"], result={"success": True, "output": "in pieces"}):
                write(bytes([byte]))

    def never_ready(self, task):
        result(task, "done")
        forever()


def serve(modules):
    for _ in range(READY_TIMES):
        send("worker.hello", capabilities={"moduleIds": modules, "maxConcurrent": 1})
    for _ in range(READY_TIMES - 1):
        send("worker.ready")
    threading.Thread(target=beat, daemon=True).start()
    while True:
        length, = struct.unpack(">I", read(4))
        order = json.loads(read(length))
        getattr(Modules(), order["moduleId"])(order["task"])
        for _ in range(READY_TIMES):
            send("worker.ready")


mark("starts", ID)
if PROGRAM in ("any", "eager"):
    serve([name for name in dir(Modules) if not name.startswith("_")])
elif PROGRAM == "none":
    serve([])
elif PROGRAM == "each":  # one module for each of its names
    serve([ARGUMENTS[int(ID.rsplit("-", 1)[1]) - 1]])
elif PROGRAM == "ready-later":  # it says hello, and loads what it needs
    send("worker.hello", capabilities={"moduleIds": ["echo"]})
    threading.Thread(target=beat, daemon=True).start()
    wait_for("loaded")
    send("worker.ready")
    wait_for("let-go")
    serve(["echo"])
elif PROGRAM == "mute":
    forever()
elif PROGRAM == "exit":
    sys.stderr.write("no configuration\n")
    sys.exit(3)
elif PROGRAM == "banner":
    write(b"Welcome to the worker!\n")
    forever()
elif PROGRAM == "goodbye":
    send("worker.shutdown", reason="no license")
elif PROGRAM == "background":
    if os.fork() == 0:
        forever()
elif PROGRAM == "other-end":  # its lengths begin with the small end
    write(struct.pack("<I", 67) + b"{" * 67)
    forever()
elif PROGRAM == "deaf-at-first":  # the first one closes its input
    if not os.path.exists(os.path.join(FOLDER, "deaf")):
        mark("deaf", ID)
        os.close(0)
        send("worker.hello", capabilities={"moduleIds": ["echo"]})
        beat()
    serve(["echo"])
elif PROGRAM == "three-bad-then-deaf":  # the last place is
    if ID != "p-%s" % ARGUMENTS[0]:
        serve(["echo", "hold"])
    with open(os.path.join(FOLDER, "starts")) as file:
        if file.read().split().count(ID) <= 3:
            sys.exit(3)
    os.close(0)
    send("worker.hello", capabilities={"moduleIds": ["echo"]})
    beat()
elif PROGRAM == "stays":  # whatever it is told
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    send("worker.hello", capabilities={"moduleIds": ["other"]})
    mark("stays", os.getpid())
    beat()
elif PROGRAM == "unread":
    send("worker.hello", capabilities={"moduleIds": ["echo"]})
    beat()
elif PROGRAM == "talks":
    sys.stderr.write("nothing to do\n")
    sys.stderr.flush()
    serve(["echo"])
elif PROGRAM == "recovers":  # crashes until it is let
    if not os.path.exists(os.path.join(FOLDER, "well")):
        sys.exit(3)
    serve(["echo"])
elif PROGRAM == "one-bad":  # the first place is
    if ID.endswith("-1"):
        sys.exit(3)
    serve(["who"])
