"""The Python SDK, led by scenarios.py: `driver.py call OPTIONS` makes the calls that it reads, `driver.py worker OPTIONS` is a worker,
`driver.py pool` a worker of a pool. One line of JSON for everything that it says. driver.ts does the same with the other SDK."""
import json
import logging
import os
import re
import signal
import sys
import time

import stint


def say(**words):
    os.write(1, json.dumps(words).encode() + b"\n")  # in one piece: several threads speak


def snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def client_of(options):
    given = {snake(name): value for name, value in options.items()}
    return stint.Client(given.pop("url", None), given.pop("token", None), **given)


def answer(client, request):
    try:
        options = {snake(name): value for name, value in request.get("options", {}).items()}
        say(ok=getattr(client, snake(request["call"]))(*request.get("args", []), **options))
    except stint.Problem as problem:
        say(problem=problem.code, status=problem.status)
    except stint.Unreachable as error:
        say(unreachable=str(error), sent=error.sent)
    except ValueError as error:
        say(error=str(error))


def calls(options):
    try:
        client = client_of(options)
    except ValueError as error:
        say(error=str(error))
        return
    for line in sys.stdin:
        answer(client, json.loads(line))


def work(job):
    wanted = job.payload or {}
    what = wanted.get("do", "echo")
    say(began=job.id, attempt=job.attempt, worker=job.worker_id, fence=job.fence)
    if what == "sleep":
        job.progress("begun", 1)
        job.sleep(wanted["seconds"])
    elif what == "checkpoint":
        if job.saved is None:
            job.checkpoint({"page": 7})
            os.kill(os.getpid(), signal.SIGKILL)
        return job.saved
    elif what == "ask":
        return job.ask("which colour?", ["red", "blue"])
    elif what == "split":
        for n in (1, 2):
            job.add("part-%d" % n, "a part", queue="parts")
        return job.children()
    elif what == "wait":
        while not os.path.exists(wanted["file"]):
            time.sleep(0.01)
    elif what == "told":
        if job.attempt % 3 == 1:
            job.progress("begun", 10)
        if job.attempt % 3 == 2:
            raise RuntimeError("it broke")
        return {"by": job.worker_id, "fence": job.fence}
    elif what == "review":
        return stint.Review("look at this", {"links": ["a"]})
    elif what == "release":
        raise stint.Release("not now", 3_600_000)
    elif what == "block":
        return stint.Block("no such directory", "BAD_WORKDIR")
    elif what == "fail":
        raise stint.Fail("no good", retry=False)
    elif what == "throw":
        raise RuntimeError("it broke")
    elif what == "large":
        return "x" * (2 << 20)
    return wanted.get("value")


def handler(job):
    try:
        return work(job)
    except stint.Stopped as why:
        say(stopped=job.id, why=type(why).__name__)
        raise


def echo(task, progress):
    progress(50, "half way")
    print("this is no frame")
    return task["payload"]


def broken(task, progress):
    raise stint.pool.Failure("no position", "BAD_POSITION", {"at": 3})


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    role, settings = sys.argv[1], json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
    if role == "call":
        calls(settings)
    elif role == "worker":
        stint.Worker(client_of(settings.pop("client")), handler, **{snake(name): value for name, value in settings.items()}).run()
        say(ended=True)
    else:
        stint.pool.serve({"echo": echo, "broken": broken})
