"""A worker of a pool: `stint worker` starts it, and they talk in frames over standard input and output (spec/stdio.md).

    serve({"echo": lambda task, progress: task["payload"]})
"""
from __future__ import annotations

import datetime
import json
import os
import struct
import sys
import threading
import uuid
from collections.abc import Callable
from typing import Any

HEARTBEAT_S, FRAME_BYTES_MAX, MESSAGE_MAX = 10.0, 1 << 20, 4096
Progress = Callable[..., None]
Module = Callable[[dict[str, Any], Progress], Any]


class Failure(Exception):
    """A failed task with a `code` of its own."""

    def __init__(self, message: str, code: str = "EXECUTION_ERROR", details: Any = None):
        super().__init__(message)
        self.code, self.details = code, details


def serve(modules: dict[str, Module]) -> None:
    """Run tasks, one at a time, until the supervisor closes our input. A module gets the task and progress(percent, message)."""
    name = os.environ.get("AIRI_WORKER_ID") or os.environ.get("AIRIER_WORKER_ID") or "worker-%d" % os.getpid()
    source, output, lock, over = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"), threading.Lock(), threading.Event()
    os.dup2(2, 1)  # what is printed by mistake goes to the log
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def send(kind: str, **fields: Any) -> None:
        message = {"id": str(uuid.uuid4()), "type": kind, "timestamp": datetime.datetime.now(datetime.timezone.utc).isoformat(), "workerId": name, **fields}
        body = json.dumps(message, allow_nan=False).encode()
        if len(body) > FRAME_BYTES_MAX:
            raise ValueError("a message has at most %d bytes" % FRAME_BYTES_MAX)
        with lock:  # a heartbeat must not come between the head and the body
            output.write(struct.pack(">I", len(body)) + body)
            output.flush()

    def beat() -> None:
        while not over.wait(HEARTBEAT_S):
            send("worker.heartbeat")

    send("worker.hello", capabilities={"moduleIds": list(modules), "maxConcurrent": 1})
    threading.Thread(target=beat, daemon=True).start()
    while len(head := source.read(4)) == 4:
        length, = struct.unpack(">I", head)
        if length > FRAME_BYTES_MAX:
            raise ValueError("a frame of %d bytes" % length)
        message = json.loads(source.read(length))
        if message.get("type") == "execute.task":
            _execute(modules, message["task"], message["moduleId"], send)
            send("worker.ready")
    over.set()
    try:
        send("worker.shutdown", reason="end of input")
    except OSError:
        print("the supervisor is gone", file=sys.stderr)


def _execute(modules: dict[str, Module], task: dict[str, Any], module: str, send: Callable[..., None]) -> None:
    def progress(percent: float | None = None, message: str | None = None) -> None:
        said = {"progress": percent, "message": message}
        send("task.progress", taskId=task["id"], **{key: value for key, value in said.items() if value is not None})

    progress(0, "starting")
    try:
        if module not in modules:
            raise Failure("no module " + module, "EXECUTOR_NOT_FOUND")
        send("task.result", taskId=task["id"], result={"success": True, "output": modules[module](task, progress)})
    except Exception as error:
        details = {"details": error.details} if isinstance(error, Failure) and error.details is not None else {}
        send("task.failure", taskId=task["id"], error={"code": getattr(error, "code", None) if isinstance(error, Failure) else "EXECUTION_ERROR",
                                                      "message": (str(error) or type(error).__name__)[:MESSAGE_MAX], **details})
