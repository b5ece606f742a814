"""A worker for a pool that behaves as badly as it can: bad_worker.py FOLDER SEED

What it does with a task is the function that the task's payload names, or one that is drawn from the seed and the task's id. With a
seed it also draws how it starts, from its name and how often it has. Each function says how its task may end: "done", or a code. It leaves
a line in FOLDER/acts for each task, and in FOLDER/trace for all that it draws, with the time that the logs have."""
import json
import os
import random
import signal
import struct
import sys
import threading
import time

ID = os.environ.get("AIRI_WORKER_ID", "")
FRAME_BYTES_MAX = 1 << 20
ACTS, ENDS = {}, {}
lock, beating = threading.RLock(), threading.Event()


def act(*ends):
    def keep(function):
        ACTS[function.__name__], ENDS[function.__name__] = function, ends
        return function
    return keep


def by_a_clock(name):
    """Nothing ends it but time."""
    return "STALLED" in ENDS[name]


# ---- what a worker can say ----

def write(data):
    with lock:
        while data:
            data = data[os.write(1, data):]


def in_pieces(data, draw):
    with lock:
        while data:
            size = draw.choice((1, 1, 2, 3, 4, 5, 7, 64, 4096))
            write(data[:size])
            data = data[size:]


def frame(body):
    return struct.pack(">I", len(body)) + body


def message(kind, **fields):
    return frame(json.dumps({"id": "1", "type": kind, "timestamp": "now", "workerId": ID, **fields}).encode())


def hello():
    return message("worker.hello", capabilities={"moduleIds": ["m"], "maxConcurrent": 1})


def answer(task, output="good"):
    return message("task.result", taskId=task["id"], result={"success": True, "output": output})


def beat():
    while True:
        time.sleep(0.25)
        write(message("worker.heartbeat") if beating.is_set() else b"")


def forever():
    while True:
        time.sleep(60)


def note(folder, name, line):
    """Returns how long the file was before."""
    with open(os.path.join(folder, name), "ab", buffering=0) as file:
        file.write(line.encode() + b"\n")
        return file.tell() - len(line) - 1


def trace(folder, what):
    note(folder, "trace", "%.3f %s %d %s" % (time.time(), ID, os.getpid(), what))


def read(length):
    data = b""
    while len(data) < length:
        more = os.read(0, length - len(data))
        if not more:
            os._exit(0)
        data += more
    return data


# ---- what it does with a task: True, and it says that it is ready ----

@act("done")
def good(task, draw):
    write(answer(task))
    return True


@act("done")
def good_in_pieces(task, draw):
    in_pieces(answer(task), draw)
    return True


@act("done")
def good_after_garbage(task, draw):
    for _ in range(draw.randrange(1, 99)):
        write(frame(draw.choice((b"", b"{", b"[]", b"null", b"\xff", b'{"id":"1"}', b"\0" * 50))))
    return good(task, draw)


@act("done")
def good_after_a_flood_of_progress(task, draw):
    for number in range(1000):
        write(message("task.progress", taskId=task["id"], progress=number % 100, message="m" * draw.randrange(1, 2000)))
    return good(task, draw)


@act("done")
def good_after_a_flood_of_words(task, draw):
    for _ in range(100):
        os.write(2, b"e" * 20000 + b"\n")
    return good(task, draw)


@act("done")
def good_and_deepest(task, draw):
    write(answer(task, json.loads("[" * 30 + "]" * 30)))
    return True


@act("done")
def good_twice(task, draw):
    write(answer(task) + answer(task, "second"))
    return True


@act("done")
def good_and_often_ready(task, draw):
    write(answer(task) + message("worker.ready") * 2)
    return True


@act("done")
def good_after_another_hello(task, draw):
    write(hello())
    return good(task, draw)


@act("done")
def good_and_gone(task, draw):
    write(answer(task))
    os._exit(draw.choice((0, 1)))


@act("done")
def good_and_killed(task, draw):
    write(answer(task))
    os.kill(os.getpid(), signal.SIGKILL)


@act("done")
def good_with_a_goodbye(task, draw):
    write(message("worker.shutdown") + answer(task))
    os._exit(0)


@act("done")
def good_with_its_input_closed(task, draw):
    os.close(0)
    return good(task, draw)


@act("done")
def good_with_a_child_that_stays(task, draw):
    if os.fork() == 0:
        os.setsid()
        forever()
    return good(task, draw)


@act("EXECUTION_ERROR")
def too_long_to_be_kept(task, draw):
    write(answer(task, "x" * (FRAME_BYTES_MAX + 4 - len(answer(task, "")))))
    return True


@act("EXECUTION_ERROR")
def too_deep(task, draw):
    write(answer(task, json.loads("[" * 31 + "]" * 31)))
    return True


@act("EXECUTION_ERROR", "X")
def failure(task, draw):
    write(message("task.failure", taskId=task["id"], error={
        "code": draw.choice(("X", "a b", "", "\0", "x" * 100)), "message": draw.choice(("", "m" * 9000)),
        "details": draw.choice((None, 1, {"a": "b" * 70000}))}))
    return True


@act("EXECUTION_ERROR")
def no_success(task, draw):
    write(message("task.result", taskId=task["id"], result={"success": False, "output": draw.choice((None, "no", {"a": 1}))}))
    return True


@act("EXECUTION_ERROR")
def of_another_task(task, draw):
    write(message("task.result", taskId="nobody", result={"success": True}))
    return True


@act("EXECUTION_ERROR")
def cut_within_its_frame(task, draw):
    write(frame(answer(task)[4:-draw.randrange(1, 9)]))
    return True


@act("EXECUTION_ERROR")
def of_a_type_of_its_own(task, draw):
    write(message("task.done", taskId=task["id"]))
    return True


@act("EXECUTION_ERROR")
def progress_alone(task, draw):
    write(message("task.progress", taskId=task["id"], progress=1))
    return True


@act("PROTOCOL_ERROR")
def half_and_gone(task, draw):
    write(answer(task)[:draw.randrange(1, len(answer(task)))])
    os._exit(draw.choice((0, 3)))


@act("PROTOCOL_ERROR")
def too_long(task, draw):
    write(answer(task, "x" * (FRAME_BYTES_MAX + 5 - len(answer(task, "")))))
    return True


@act("PROTOCOL_ERROR")
def gigantic(task, draw):
    with lock:
        write(struct.pack(">I", draw.choice((FRAME_BYTES_MAX + 1, 1 << 24, 0xffffffff))))
        while True:
            write(b"\0" * 65536)


@act("PROTOCOL_ERROR")
def noise(task, draw):
    with lock:
        while True:
            write(b"\xff" + draw.randbytes(4095))


@act("PROTOCOL_ERROR")
def empty_frames(task, draw):
    with lock:
        while True:
            write(b"\0" * 4096)


@act("WORKER_CRASHED")
def dies(task, draw):
    os.kill(os.getpid(), draw.choice((signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM)))
    forever()


@act("WORKER_CRASHED")
def leaves(task, draw):
    os._exit(draw.randrange(256))


@act("WORKER_CRASHED")
def leaves_with_a_goodbye(task, draw):
    write(message("worker.shutdown"))
    os._exit(0)


@act("WORKER_CRASHED")
def leaves_a_child_behind(task, draw):
    if os.fork() == 0:
        os.setsid()
        forever()
    os._exit(4)


@act("WORKER_CRASHED")
def says_goodbye_and_stays(task, draw):
    write(message("worker.shutdown"))
    forever()


@act("WORKER_CRASHED", "STALLED")
def closes_its_output(task, draw):
    with lock:
        os.close(1)
        forever()


@act("WORKER_CRASHED", "STALLED")
def stops(task, draw):
    os.kill(os.getpid(), signal.SIGSTOP)


@act("WORKER_CRASHED", "STALLED")
def falls_silent(task, draw):
    beating.clear()
    forever()


@act("PROTOCOL_ERROR", "WORKER_CRASHED", "STALLED")
def half_and_silent(task, draw):
    with lock:
        write(answer(task)[:draw.randrange(1, len(answer(task)))])
        forever()


@act("PROTOCOL_ERROR", "WORKER_CRASHED", "STALLED")
def half_and_beats(task, draw):
    write(answer(task)[:draw.randrange(5, len(answer(task)))])
    forever()


@act("WORKER_CRASHED", "STALLED")
def stands_still(task, draw):
    forever()


@act("WORKER_CRASHED", "STALLED")
def stands_still_and_will_not_go(task, draw):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    forever()


@act("WORKER_CRASHED", "STALLED")
def ready_and_nothing_else(task, draw):
    return True


# ---- how it starts ----

STARTS = ("well",) * 12 + ("pieces", "twice", "ready", "unclear", "never", "noise", "leaves", "dies", "half", "half_hang", "no output",
                           "no input", "late", "giant", "words")


def start(how, draw):
    if how in ("never", "no output"):
        os.close(1) if how == "no output" else None
        forever()
    if how in ("leaves", "dies"):
        os.kill(os.getpid(), signal.SIGKILL) if how == "dies" else os._exit(9)
    if how in ("half", "half_hang"):
        write(hello()[:draw.randrange(1, len(hello()))])
        forever() if how == "half_hang" else os._exit(0)
    if how in ("noise", "giant"):
        write(b"Hi there\n" if how == "noise" else struct.pack(">I", FRAME_BYTES_MAX + 1))
        forever()
    if how == "no input":
        os.close(0)
    if how == "late":
        time.sleep(1)
    if how == "words":
        os.write(2, (b"E" * 9000 + b"\n") * 50)
    if how == "pieces":
        in_pieces(hello(), draw)
    write({"twice": hello() * 2, "ready": hello() + message("worker.ready"), "pieces": b"",
           "unclear": frame(b"{}") + message("worker.hello") + hello()}.get(how, hello()))


def serve(folder, seed):
    draw = random.Random("%s %s %d" % (seed, ID, note(folder, "starts-" + ID, "")))
    how = draw.choice(STARTS) if seed != "0" else "well"
    trace(folder, "starts: " + how)
    start(how, draw)
    beating.set()
    threading.Thread(target=beat, daemon=True).start()
    while True:
        length, = struct.unpack(">I", read(4))
        task = json.loads(read(length))["task"]
        draw = random.Random("%s %s" % (seed, task["id"]))
        name = task.get("payload") or draw.choice(sorted(ACTS) + ["good"] * 20)
        note(folder, "acts", "%s %s" % (task["id"], name))
        trace(folder, "%s: %s" % (task["id"], name))
        if ACTS[name](task, draw):
            write(message("worker.ready"))


if __name__ == "__main__":
    serve(*sys.argv[1:])
