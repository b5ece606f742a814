#!/usr/bin/env python3
"""A worker for a pool of stint, in Python's own library. See spec/stdio.md for what is said here and why.

    {"executors": {"python": {"kind": "pool", "argv": ["/usr/bin/python3", "/srv/airi/worker.py"], "read": ["/srv/airi"]}}}

To make it yours, put functions into MODULES: each gets the task and a way to tell of its progress; what it returns is the
result, what it raises is the failure. One task is given at a time. Standard output is the protocol: print to standard error.
"""
import datetime
import json
import os
import struct
import sys
import threading
import time
import uuid

WORKER_ID = os.environ.get("AIRI_WORKER_ID") or os.environ.get("AIRIER_WORKER_ID") or "worker-%d" % os.getpid()
HEARTBEAT_S = 10
FRAME_BYTES_MAX = 1 << 20
output, lock = os.fdopen(os.dup(1), "wb"), threading.Lock()
os.dup2(2, 1)  # whoever prints by mistake prints to the log


def echo(task, progress):
    """Gives back what it got."""
    progress(50, "half way")
    return task.get("payload")


def sleep(task, progress):
    """Takes payload.seconds."""
    seconds = (task.get("payload") or {}).get("seconds", 1)
    for second in range(int(seconds)):
        progress(100 * second / seconds)
        time.sleep(1)
    return {"slept": seconds}


MODULES = {"echo": echo, "sleep": sleep}


def send(kind, **fields):
    message = {"id": str(uuid.uuid4()), "type": kind, "workerId": WORKER_ID, **fields,
               "timestamp": datetime.datetime.now(datetime.timezone.utc).isoformat()}
    body = json.dumps(message, allow_nan=False).encode()
    if len(body) > FRAME_BYTES_MAX:
        raise ValueError("a message has at most %d bytes" % FRAME_BYTES_MAX)
    with lock:  # a heartbeat must not come between the head and the body
        output.write(struct.pack(">I", len(body)) + body)
        output.flush()


def receive():
    """The next message; None when the input has ended, which means: go."""
    head = sys.stdin.buffer.read(4)
    if len(head) < 4:
        return None
    length, = struct.unpack(">I", head)
    return json.loads(sys.stdin.buffer.read(length)) if length <= FRAME_BYTES_MAX else None


def beat():
    while True:
        time.sleep(HEARTBEAT_S)
        send("worker.heartbeat")


def execute(task, module):
    def progress(percent, message=None):
        send("task.progress", taskId=task["id"], progress=percent, **({"message": message} if message else {}))

    progress(0, "starting")
    if module not in MODULES:
        send("task.failure", taskId=task["id"], error={"code": "EXECUTOR_NOT_FOUND", "message": "no module " + module})
        return
    try:
        send("task.result", taskId=task["id"], result={"success": True, "output": MODULES[module](task, progress)})
    except Exception as error:
        send("task.failure", taskId=task["id"], error={"code": "EXECUTION_ERROR", "message": repr(error)[:4096]})


send("worker.hello", capabilities={"moduleIds": list(MODULES), "maxConcurrent": 1})
threading.Thread(target=beat, daemon=True).start()
while (message := receive()) is not None:
    if message.get("type") == "execute.task":
        execute(message["task"], message["moduleId"])
        send("worker.ready")
send("worker.shutdown", reason="stdin closed")
