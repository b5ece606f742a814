"""The worker loop: claims tasks, runs a handler for each, keeps them alive beside it, and reports how each ended.

    def greet(job):
        return "hello " + job.payload["name"]

    Worker(Client(), greet, queues=["greetings"]).run()

Threads: one for each place (`concurrency`) claims, runs and reports; one beats; one waits for news, so that a cancel arrives at
once. The end of a task and the claim of the next are one request. A report is sent until the server has answered it.
"""
from __future__ import annotations

import http.client
import logging
import os
import random
import signal
import socket
import threading
import time
import traceback
import uuid
from collections.abc import Callable
from typing import Any

from .api import Answer, Claim, Task
from .client import Client, Problem, Unreachable

log = logging.getLogger("stint")
WAIT_MS, SLACK_S, AWAY_S, BIND_AFTER_S, DELTAS_MAX, MESSAGE_MAX = 30_000, 15.0, 15.0, 1.0, 100, 4096
FATAL = {400, 401, 404, 405, 413, 415, 421, 422}


class Stopped(BaseException):
    """The job must end now. It is no Exception, so that a handler's own `except Exception` lets it pass."""


class Cancelled(Stopped):
    """Somebody cancelled the task, or its time is over."""


class Lost(Stopped):
    """The task is not ours any more: whatever we would report is refused."""


class Parked(Stopped):
    """Nobody has answered for a while: another attempt gets the answer."""


class Waiting(Stopped):
    """Its subtasks have not all ended: another attempt goes on with their results."""


class ShuttingDown(Stopped):
    """The worker ends: the task is given back and spends nothing."""


class Outcome(Exception):
    """How a job ends, where it is not just done: return one from a handler, or raise one."""

    def __init__(self, outcome: str, **fields: Any):
        super().__init__(str(fields))
        self.finish = {"outcome": outcome, **{name: value for name, value in fields.items() if value is not None}}


class Done(Outcome):
    def __init__(self, result: Any = None, evidence: Any = None):
        super().__init__("complete", result=result, evidence=evidence)


class Review(Outcome):
    def __init__(self, result: Any = None, evidence: Any = None):
        super().__init__("review", result=result, evidence=evidence)


class Fail(Outcome):
    """`code` decides what follows. `error` has more members of FailureReport: retry=False, retryAt, details."""

    def __init__(self, message: str, code: str = "EXECUTION_ERROR", evidence: Any = None, **error: Any):
        super().__init__("fail", error={"code": code, "message": message, **error}, evidence=evidence)


class Block(Outcome):
    def __init__(self, message: str, code: str = "NOT_ALLOWED", **error: Any):
        super().__init__("block", error={"code": code, "message": message, **error})


class Release(Outcome):
    def __init__(self, reason: str | None = None, delay_ms: int | None = None):
        super().__init__("release", reason=reason, delayMs=delay_ms)


class Job:
    """One attempt at a task. `stopped` is set when it must end; the methods here then raise why (a Stopped)."""

    def __init__(self, worker: Worker, claim: Claim, worker_id: str):
        self.client, self.claim, self.worker_id = worker.client, claim, worker_id
        self.task: Task = claim["task"]
        self.id, self.fence, self.attempt = self.task["id"], claim["fence"], claim["attempt"]
        self.payload: Any = self.task.get("payload")
        self.saved: Any = claim["checkpoint"]  # what the attempt before left with checkpoint()
        self.stopped, self.woken, self.why = threading.Event(), threading.Event(), Stopped()
        self.since, self.lease_s = _now(), claim["leaseMs"] / 1000
        self._token = ""  # of the claim: subtasks are created with it
        self.bound = False  # the server has acknowledged that it lives under our lease

    def stop(self, why: Stopped) -> None:
        if not self.stopped.is_set():
            self.why = why
            self.stopped.set()
            self.woken.set()

    def check(self) -> None:
        if self.stopped.is_set():
            raise self.why

    def sleep(self, seconds: float) -> None:
        self.stopped.wait(seconds)
        self.check()

    def _report(self, verb: str, body: dict[str, Any]) -> Any:
        return self._post("/api/tasks/%s/%s" % (self.id, verb), {"workerId": self.worker_id, "fence": self.fence, **body})

    def _post(self, path: str, body: dict[str, Any], headers: dict[str, str] | None = None) -> Any:
        self.check()
        try:
            return self.client.call("POST", path, repeatable=True, stop=self.stopped, body=body, headers=headers)
        except Problem as problem:
            if problem.code in ("stale_claim", "not_claimed", "claimed_by_other", "already_terminal"):
                self.stop(Lost(str(problem)))
            self.check()
            raise

    def progress(self, note: str | None = None, percent: float | None = None, **fields: Any) -> None:
        """Say how far it is; `data` is a checkpoint, `event`, `usage` and `session` as in ProgressReport."""
        said = {"note": note, "percent": percent}
        answer = self._report("progress", {**{name: value for name, value in said.items() if value is not None}, **fields})
        self.since, self.lease_s = _now(), answer["leaseMs"] / 1000

    def checkpoint(self, data: Any) -> None:
        """Keep `data` for the next attempt, which finds it in `saved`."""
        self.progress(data=data)
        self.saved = data

    def ask(self, question: str, options: list[Any] | None = None, **fields: Any) -> Answer:
        """Ask a person and wait. When nobody answers for a while Parked is raised: the next attempt asks again and gets the
        answer at once. Members of AskReport: deadline, freeText, data."""
        for earlier in self.claim.get("questions") or []:
            if earlier["text"] == question:
                return earlier["answer"]
        body = {"question": question, **({"options": options} if options is not None else {}), **fields}
        self._report("ask", body)
        while True:
            self.woken.wait(5)
            self.woken.clear()
            self.check()
            task = self.client.read_task(self.id)
            if task.get("fence") != self.fence:
                self.stop(Lost("another claim has the task"))
            elif task["state"] != "asking":
                return task.get("answer") or {}


    def add(self, id: str, title: str, **fields: Any) -> Task:
        """Create a subtask, with no more rights than this task has. The same id again is the same subtask, so another attempt may
        repeat it. `fields` are those of TaskDraft: payload, queue, budget, …"""
        if not self._token:
            self._token = self.claim.get("token") or self._post("/api/tokens", {"kind": "claim", "task": self.id, "fence": self.fence})["token"]
        return self._post("/api/tasks", {"id": id, "title": title, **fields}, {"Authorization": "Bearer " + self._token})

    def children(self) -> list[Any]:
        """Wait until all subtasks have ended: id, state and result of each. While one is open Waiting is raised and the task is given
        up until then; the next attempt gets them at once."""
        task = self._report("wait", {})
        if task["state"] not in ("claimed", "running"):
            self.stop(Waiting("its subtasks have not all ended"))
        self.check()
        return task.get("children") or []


class Worker:
    """`handler(job)` returns the result, or an Outcome; an exception is a failed attempt. run() returns after SIGTERM, SIGINT,
    stop(), or an operator's `stint worker terminate`; it raises what no repetition can mend (a wrong token).

    beats=False: a plain claimant that does not register; its claims are renewed one by one. `options` go into every claim and
    the registration: slot, capabilities, executors; name: the beginning of its id. `grace_s`: how long running work may go on after a stop.
    """

    def __init__(self, client: Client, handler: Callable[[Job], Any], *, queues: list[str] | None = None, concurrency: int = 1,
                 beats: bool = True, lease_ms: int = 60_000, grace_s: float = 300.0, name: str | None = None, **options: Any):
        self.client, self.handler, self.queues, self.concurrency = client, handler, queues, concurrency
        self.beats, self.lease_ms, self.grace_s, self.options = beats, lease_ms, grace_s, options
        self.name = name or socket.gethostname()[:80]
        self.worker_id, self._token, self._hurried, self._quiet = "", "", False, False
        self._heard, self._granted_s = _now(), lease_ms / 1000
        self._held: dict[str, Job] = {}
        self._unbound: set[str] = set()
        self._changed, self._anew = threading.Condition(), threading.Lock()
        self._stopping, self._over = threading.Event(), threading.Event()
        self._polls: set[http.client.HTTPConnection] = set()
        self._failure: BaseException | None = None

    # ---- the life of the worker ----

    def run(self) -> None:
        if threading.current_thread() is threading.main_thread():
            before = {number: signal.signal(number, lambda *_: self._signalled()) for number in (signal.SIGTERM, signal.SIGINT)}
        else:
            before = {}
        try:
            self._register("")
            helpers = [threading.Thread(target=self._guard, args=(loop,), daemon=True)
                       for loop in (self._beat_loop if self.beats else self._renew_loop, self._news_loop)]
            places = [threading.Thread(target=self._guard, args=(self._claim_loop,), daemon=True) for _ in range(self.concurrency)]
            for thread in helpers + places:
                thread.start()
            while not self._stopping.wait(0.5) and any(place.is_alive() for place in places):
                pass
            self._end(places)
        finally:
            self._over.set()
            for number, handler in before.items():
                signal.signal(number, handler)
        if self._failure:
            raise self._failure

    def stop(self) -> None:
        """Claim nothing more and let what runs finish; a second call stops that, too."""
        with self._changed:
            again = self._stopping.is_set()
            self._stopping.set()
            held = list(self._held.values()) if again else []
        for job in held:
            job.stop(ShuttingDown("the worker ends"))
        self._interrupt()

    def _signalled(self) -> None:
        threading.Thread(target=self.stop, daemon=True).start()  # the main thread may hold the lock

    def _interrupt(self) -> None:
        for connection in list(self._polls):
            try:
                if connection.sock is not None:
                    connection.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _guard(self, loop: Callable[[], None]) -> None:
        try:
            loop()
        except BaseException as error:
            self._failure = self._failure or error
            self._stopping.set()

    def _end(self, places: list[threading.Thread]) -> None:
        until = _now() + self.grace_s
        while any(place.is_alive() for place in places) and _now() < until + 10:
            self._interrupt()  # a claim may have begun to wait since
            if _now() >= until:
                for job in list(self._held.values()):
                    job.stop(ShuttingDown("the worker ends"))
            next(place for place in places if place.is_alive() or place is places[-1]).join(0.2)
        self._over.set()
        if self.beats and self.worker_id:
            try:
                self.client.call("DELETE", "/api/workers/%s" % self.worker_id, body={}, retries=0)
            except (Problem, Unreachable) as error:
                log.info("no goodbye: %s", error)

    def _register(self, old_id: str) -> None:
        """Under an id that was never used. All that was held under the old one is lost."""
        with self._anew:
            if self.worker_id != old_id:
                return  # somebody else has done it
            with self._changed:
                for job in self._held.values():
                    job.stop(Lost("the server has given up on this worker"))
                self._held, self._unbound = {}, set()
            worker_id, failures = "%s-%s" % (self.name, uuid.uuid4().hex[:12]), 0
            while self.beats and not self._stopping.is_set():
                body = {"workerId": worker_id, "leaseMs": self.lease_ms, "maxConcurrent": self.concurrency,
                        "host": socket.gethostname()[:255], "pid": os.getpid(), **self.options}
                sent = _now()
                try:
                    answer = self.client.call("POST", "/api/workers/register", body=body, repeatable=True, retries=0)
                    self._token, self._granted_s, self._heard = answer["token"], answer["leaseMs"] / 1000, sent
                    break
                except (Problem, Unreachable) as error:
                    if isinstance(error, Problem) and (error.status in FATAL or error.code in ("forbidden", "slot_taken")):
                        raise
                    failures += 1
                    log.warning("cannot register: %s", error)
                    self._stopping.wait(_delay(failures))
            self.worker_id, self._quiet = worker_id, False

    # ---- heartbeats ----

    def _beat_due(self) -> float:
        part = 4 if self._held else 3
        new = [job.since + BIND_AFTER_S for job in self._held.values() if not job.bound]
        return min([self._heard + self._granted_s / part, *new])

    def _beat_loop(self) -> None:
        failures, again_at = 0, 0.0
        while not self._over.is_set():
            with self._changed:
                due = max(again_at, 0.0 if self._hurried else self._beat_due())
                if due > _now():
                    self._changed.wait(min(due - _now(), 5))
                    self._lapse()
                    continue
                self._hurried = False
            try:
                self._beat()
                failures, again_at = 0, 0.0
            except (Problem, Unreachable) as error:
                failures += 1
                log.warning("heartbeat: %s", error)
                again_at = _now() + min(_delay(failures), self._granted_s / 4)
                self._lapse()

    def _beat(self) -> None:
        worker_id = self.worker_id
        with self._changed:
            sent, held = _now(), dict(self._held)
            bound = [job.id for job in held.values() if not job.bound][:DELTAS_MAX]
            unbound = [id for id in self._unbound if id not in held][:DELTAS_MAX]
        body = {"workerId": worker_id, "token": self._token, "leaseMs": self.lease_ms, "boundTasks": bound, "unboundTasks": unbound}
        try:
            answer = self.client.call("POST", "/api/workers/heartbeat", body=body, repeatable=True, retries=0,
                                      timeout_s=max(1.0, min(10.0, self._granted_s / 4)))
        except Problem as problem:
            if problem.code == "TOKEN_MISMATCH" and problem.body.get("token") != self._token:
                self._token = problem.body["token"]  # the answer to an earlier beat was lost
                return self._beat()
            if problem.code != "WORKER_INACTIVE":
                raise
            log.warning("the server has given up on %s: everything it holds stops", worker_id)
            return self._register(worker_id)
        with self._changed:
            self._token, self._granted_s, self._heard = answer["token"], answer["leaseMs"] / 1000, sent
            self._unbound.difference_update(unbound)
            for id in bound:
                held[id].bound = True
        for id in answer["lost"]:
            # a task that ended, or was claimed again, since the beat was sent is another matter
            if id in held and self._held.get(id) is held[id]:
                held[id].stop(Lost("the server says that the task is not ours"))
        for command in answer["commands"]:
            self._obey(command, held)

    def _obey(self, command: Any, held: dict[str, Job]) -> None:
        job = held.get(command.get("task", ""))
        if command["type"] == "cancel" and job:
            job.stop(Cancelled("cancelled, or out of time"))
        elif command["type"] == "park" and job:
            job.stop(Parked("nobody has answered yet"))
        elif command["type"] == "quiet":
            self._quiet = True
        elif command["type"] == "terminate":
            self._stopping.set()
            self._interrupt()

    def _lapse(self) -> None:
        """Nine tenths of the lease without an answer: stop before another worker gets the tasks. Beside the server, work goes
        on while the server is away: it waits for us when it comes back."""
        if not self.client.is_local and _now() >= self._heard + self._granted_s * 0.9:
            for job in list(self._held.values()):
                if job.bound:
                    job.stop(Lost("no answer from the server for nine tenths of the lease"))

    def _renew_loop(self) -> None:
        """Of a plain claimant: each claim has a lease of its own, renewed by progress."""
        while not self._over.is_set():
            with self._changed:
                now, hurried, self._hurried = _now(), self._hurried, False
                due = [job for job in self._held.values() if not job.stopped.is_set() and (hurried or now >= job.since + job.lease_s / 3)]
                if not due:
                    self._changed.wait(0.5 if self._held else 5)
                    continue
            for job in due:
                try:
                    job.progress(leaseMs=self.lease_ms)
                except Stopped:
                    pass
                except (Problem, Unreachable) as error:
                    log.warning("renewing %s: %s", job.id, error)
                    if _now() >= job.since + job.lease_s * 0.9:
                        job.stop(Lost("its lease could not be renewed"))
                    self._over.wait(1)

    def _news_loop(self) -> None:
        seq, failures = 0, 0
        while not self._over.is_set():
            with self._changed:
                if not self._held:
                    self._changed.wait(5)
                    continue
            try:
                news = self.client.call("GET", "/api/workers/%s/news" % self.worker_id, query={"after": seq, "waitMs": WAIT_MS},
                                        repeatable=True, retries=0, timeout_s=WAIT_MS / 1000 + SLACK_S, stop=self._over)
                failures, seq = 0, news["seq"]
                if news["news"]:
                    self._hurry()
                self._over.wait(0.1)
            except (Problem, Unreachable) as error:
                failures += 1
                if isinstance(error, Problem) and error.status in (401, 410):
                    self._hurry()
                self._over.wait(_delay(failures))

    def _hurry(self) -> None:
        with self._changed:
            self._hurried = True
            self._changed.notify_all()
            for job in self._held.values():
                job.woken.set()

    # ---- one place ----

    def _claim_loop(self) -> None:
        ended: tuple[Job, dict[str, Any]] | None = None
        failures, request_id = 0, uuid.uuid4().hex
        while ended or not self._stopping.is_set():
            wanted = not self._stopping.is_set() and not self._quiet
            worker_id = self.worker_id
            try:
                claims, finished = self._exchange(worker_id, ended, wanted, request_id)
            except Unreachable as error:  # the same request again, until it is answered: nobody knows whether it was done
                failures += 1
                if not (self._stopping.is_set() and failures > 3):
                    if not self._stopping.is_set():
                        log.warning("claim: %s", error)
                    self._stopping.wait(_delay(failures))
                    continue
                claims, finished, wanted = [], [], False
            except Problem as problem:
                failures += 1
                claims, finished = [], problem.body.get("finished") or []
                if ended and not finished and problem.status in (413, 422) and ended[1]["outcome"] != "fail":
                    ended = ended[0], Fail("the result was refused: %s" % problem).finish
                    continue
                self._refused(problem, worker_id, ended if not finished else None)
                if problem.status >= 500:
                    self._over.wait(_delay(failures))
                    continue
            else:
                failures = 0
            ended = self._settle(ended, finished)
            request_id = uuid.uuid4().hex
            if not wanted and not ended and not self._stopping.is_set():
                self._stopping.wait(1)  # quiet
            for claim in claims:
                ended = self._run(Job(self, claim, worker_id))

    def _exchange(self, worker_id: str, ended: tuple[Job, dict[str, Any]] | None, wanted: bool, request_id: str) -> tuple[list[Claim], list[Any]]:
        if not wanted and not ended:
            return [], []
        if not wanted and ended:
            job, finish = ended
            verb, fields = finish["outcome"], {name: value for name, value in finish.items() if name != "outcome"}
            try:
                self.client.call("POST", "/api/tasks/%s/%s" % (job.id, verb), repeatable=True, body={"workerId": job.worker_id, "fence": job.fence, **fields})
            except Problem as problem:
                if problem.status not in (404, 409, 410):
                    raise
                return [], [{"id": job.id, "ok": False, "code": problem.code}]
            return [], [{"id": job.id, "ok": True}]
        body = {"workerId": worker_id, "queues": self.queues, "max": 1, "waitMs": WAIT_MS, "leaseMs": self.lease_ms,
                "requestId": request_id, **self.options}
        if ended:
            body["finish"] = [{"id": ended[0].id, "fence": ended[0].fence, **ended[1]}]
        answer = self.client.call("POST", "/api/claims", body=body, repeatable=True, retries=0, timeout_s=WAIT_MS / 1000 + SLACK_S,
                                  watch=self._polls)
        return answer["claims"], answer.get("finished", [])

    def _refused(self, problem: Problem, worker_id: str, ended: tuple[Job, dict[str, Any]] | None) -> None:
        if problem.code == "WORKER_INACTIVE":
            return self._register(worker_id)
        if problem.status in FATAL and not (ended and problem.status in (413, 422)):
            raise problem
        if problem.status == 403 and problem.code == "forbidden":
            raise problem
        log.warning("claim: %s", problem)
        self._stopping.wait(5)

    def _settle(self, ended: tuple[Job, dict[str, Any]] | None, finished: list[Any]) -> tuple[Job, dict[str, Any]] | None:
        """What became of the report: nothing is left to say, or (a gate is open) it is said in another way."""
        if ended is None:
            return None
        job, finish = ended
        for item in finished:
            if item["id"] == job.id and not item["ok"] and item.get("code") == "gate_required":
                return job, {**finish, "outcome": "review"}
            if item["id"] == job.id and not item["ok"]:
                log.warning("%s: the report was refused: %s", job.id, item.get("code"))
        with self._changed:
            if self._held.get(job.id) is job:
                del self._held[job.id]
                if job.bound and not any(item["id"] == job.id for item in finished):
                    self._unbound.add(job.id)  # no report arrived: the server gives the task to somebody else
        return None

    def _run(self, job: Job) -> tuple[Job, dict[str, Any]] | None:
        with self._changed:
            self._held[job.id] = job
            self._changed.notify_all()
        if self._stopping.is_set():
            return job, Release("the worker ends").finish
        try:
            value = self.handler(job)
            if isinstance(value, Outcome):
                return job, value.finish
            return job, (Review if job.task.get("gates") else Done)(value).finish
        except Outcome as outcome:
            return job, outcome.finish
        except (Lost, Waiting) as why:
            log.log(logging.INFO if isinstance(why, Waiting) else logging.WARNING, "%s: %s", job.id, why)
            with self._changed:
                if self._held.get(job.id) is job:
                    del self._held[job.id]
            return None
        except Cancelled:
            return job, self._cancelled(job).finish
        except Stopped as why:
            return job, Release(str(why)).finish
        except Exception as error:
            trace = traceback.format_exc()[-8192:]
            return job, Fail((str(error) or type(error).__name__)[:MESSAGE_MAX], details={"type": type(error).__name__, "trace": trace}).finish

    def _cancelled(self, job: Job) -> Outcome:
        try:
            if not self.client.read_task(job.id).get("stopping"):
                return Fail("it took longer than timeoutMs", "TASK_TIMEOUT")
        except (Problem, Unreachable) as error:
            log.info("%s: %s", job.id, error)
        return Release("cancelled")


def _now() -> float:
    """The clock of leases: it runs on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def _delay(failures: int) -> float:
    return float(min(2 ** (failures - 1), AWAY_S)) * random.uniform(0.9, 1.1)
