// Numbers, times and words as people read them.

/** Control characters become visible: nothing that a task says can move the cursor of a reader. @param {unknown} value */
export const clean = value => String(value ?? "").replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g,
  c => c < "\u0020" ? String.fromCharCode(0x2400 + c.charCodeAt(0)) : "\ufffd");

/** One unit, for tables: "41 min". @param {number} ms */
export function age(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return `${s}\u00a0s`;
  if (s < 3600) return `${Math.floor(s / 60)}\u00a0min`;
  if (s < 86400) return `${Math.floor(s / 3600)}\u00a0h`;
  return `${Math.floor(s / 86400)}\u00a0d`;
}

/** Two units, for sentences: "1 min 26 s". @param {number} ms */
export function span(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return `${s}\u00a0s`;
  if (s < 3600) return `${Math.floor(s / 60)}\u00a0min${s % 60 ? ` ${s % 60}\u00a0s` : ""}`;
  if (s < 86400) return `${Math.floor(s / 3600)}\u00a0h${Math.floor(s % 3600 / 60) ? ` ${Math.floor(s % 3600 / 60)}\u00a0min` : ""}`;
  return `${Math.floor(s / 86400)}\u00a0d ${Math.floor(s % 86400 / 3600)}\u00a0h`;
}

/** A countdown: "4:12". @param {number} ms */
export function countdown(ms) {
  const s = Math.max(0, Math.ceil(ms / 1000));
  return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")}`;
}

const two = (/** @type {number} */ n) => String(n).padStart(2, "0");

/** A clock, with the day where it is another one. @param {number} ms @param {boolean} [seconds] */
export function clock(ms, seconds) {
  const d = new Date(ms), today = new Date();
  const time = `${two(d.getHours())}:${two(d.getMinutes())}${seconds ? ":" + two(d.getSeconds()) : ""}`;
  if (d.toDateString() === today.toDateString()) return time;
  return `${d.getDate()}\u00a0${d.toLocaleString("en", { month: "short" })} ${time}`;
}

/** A moment to come: "tomorrow 02:30", "Mon 09:00", "1 Dec 04:00". @param {number} ms @param {number} now */
export function ahead(ms, now) {
  const d = new Date(ms), day = new Date(now);
  const days = Math.round((new Date(d).setHours(0, 0, 0, 0) - day.setHours(0, 0, 0, 0)) / 86400000);
  const time = `${two(d.getHours())}:${two(d.getMinutes())}`;
  if (days === 0) return time;
  if (days === 1) return `tomorrow ${time}`;
  return days > 1 && days < 7 ? `${d.toLocaleString("en", { weekday: "short" })} ${time}` : `${d.getDate()}\u00a0${d.toLocaleString("en", { month: "short" })} ${time}`;
}

/** The exact moment, for hovering. @param {number} ms */
export const exact = ms => `${new Date(ms).toString().replace(/ \(.*/, "")} · ${ms}`;

/** "3 tasks". @param {number} n @param {string} noun */
export const count = (n, noun) => `${thousands(n)} ${noun}${n === 1 ? "" : "s"}`;

/** @param {number} n */
export const thousands = n => String(n).replace(/\B(?=(\d{3})+$)/g, "\u2009");

/** A length that may be short: "40 ms", "1.4 s", "12 min". @param {number} ms */
export const wait = ms => ms < 1000 ? `${Math.round(ms)}\u00a0ms` : ms < 10000 ? `${Math.round(ms / 100) / 10}\u00a0s` : age(ms);

/** "$1.84". What is not 0 is never shown as 0. @param {number} usd */
export const money = usd => usd > 0 && usd < 0.01 ? "<$0.01" : `$${usd.toFixed(2)}`;

/** Tokens as people say them. @param {number} n */
export const tokens = n => n < 1000 ? String(n) : n < 1e6 ? `${(n / 1e3).toFixed(1)}\u00a0k` : `${(n / 1e6).toFixed(2)}\u00a0M`;

/** Small numbers as words, at the beginning of a sentence. @param {number} n */
export const words = n => ["No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten"][n] ?? thousands(n);

/** A word that a shell takes as it is. @param {string} word */
export const quote = word => /^[A-Za-z0-9._:\/@%+=,-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`;

/** @type {Record<string, string>} */
export const stateWords = {
  pending: "Parked", scheduled: "Scheduled", waiting: "Waiting", ready: "Ready", claimed: "Claimed", running: "Running",
  asking: "Asking", review: "Review", blocked: "Blocked", failed: "Failed", done: "Done", cancelled: "Cancelled",
};

export const lanes = {
  you: ["asking", "review", "blocked"],
  running: ["running", "claimed"],
  waiting: ["ready", "waiting", "scheduled", "pending"],
  finished: ["failed", "done", "cancelled"],
};

/** What an event says, with its parts in place: [..] falls away where a part is missing. The same sentences as `stint events`. */
const sentences = /** @type {Record<string, string>} */ ({
  "task.created": "is created[ by $actor]", "task.updated": "is changed[ by $actor]",
  "task.claimed": "attempt $attempt begins[ on $worker]", "task.confirmed": "is confirmed[ by $worker]",
  "task.progressed": "goes on[, $percent %][: $note]", "task.asked": "asks[: $question]",
  "task.answered": "has its answer[ from $actor]", "task.reviewed": "is reported[ by $worker] and needs a verdict",
  "task.completed": "is done[ by $worker]", "task.failed": "has failed[: $message][ ($code)]",
  "task.blocked": "is blocked[: $message][ ($code)]", "task.released": "is given back[ by $worker][: $reason]",
  "task.suspended": "waits for its subtasks",
  "task.expired": "is lost: the lease[ of $worker] ran out", "task.requeued": "is in line again",
  "task.cancelled": "is cancelled[ by $actor][: $reason]", "task.retried": "is opened again[ by $actor][: $reason]",
  "task.parked": "is parked[ by $actor][: $reason]", "task.unparked": "is unparked[ by $actor][: $reason]",
  "task.orphan_result": "has a result[ of $worker] that came too late and is kept apart",
  "task.purged": "is removed: it ended long ago", "task.stage_changed": "comes to stage $stage[ from $fromStage]",
  "task.noted": "is told[ $event]", "claim.unconfirmed": "is taken back[ from $worker]: nobody confirmed the claim",
  "claim.rebased": "has a new lease[ of $worker][, $leaseMs ms]: the machine rebooted, or the token was revoked", "gate.opened": "needs a verdict on gate $gate",
  "gate.passed": "has passed gate $gate[ by $actor][: $reason]",
  "gate.rejected": "is rejected at gate $gate[ by $actor][: $reason]",
  "worker.registered": "worker $worker is here", "worker.updated": "worker $worker says something new of itself",
  "worker.quiet": "worker $worker takes nothing new[: told by $actor]",
  "worker.terminating": "worker $worker must end[: asked by $actor]", "worker.inactive": "worker $worker is gone[: $ended]",
  "queue.paused": "queue $queue is paused[ by $actor]", "queue.resumed": "queue $queue is open[: set by $actor]",
  "queue.draining": "queue $queue takes no new tasks[: set by $actor]", "queue.drained": "queue $queue has drained: no task in it is open",
  "queue.idle": "queue $queue is idle: none of its tasks is ready or in work", "queue.limited": "a limit of queue $queue ($limit) holds back $waiting ready tasks",
  "slot.quarantined": "slot $slot is quarantined: it crashed too often", "slot.unquarantined": "slot $slot may run again",
  "slot.assigned": "slot $slot has its queues", "execution.armed": "execution is armed[ by $actor][: $reason]",
  "execution.disarmed": "execution is disarmed[ by $actor][: $reason]", "server.started": "the server has started",
  "server.audited": "$actor did something as an admin", "token.created": "a $kind credential is made[ by $actor][ for $name]",
  "token.revoked": "a $kind credential is taken back[ by $actor]",
  "schedule.created": "schedule $schedule is made[ by $actor]", "schedule.updated": "schedule $schedule is changed[ by $actor]",
  "schedule.removed": "schedule $schedule is removed[ by $actor]", "schedule.fired": "schedule $schedule makes a task",
  "schedule.skipped": "schedule $schedule skips a time[: $reason]", "schedule.failing": "schedule $schedule fails again and again",
  "hold.opened": "account $credential is held[: $code]", "hold.extended": "account $credential is held for longer",
  "hold.probing": "one task tries account $credential", "hold.closed": "account $credential is no longer held",
  "budget.near": "most of today's budget of [queue $queue][account $credential] is used: $used of $limit $part",
  "budget.spent": "today's budget of [queue $queue][account $credential] is used up: $used of $limit $part",
  "budget.updated": "[queue $queue][account $credential] has another budget for a day[: set by $actor]",
  "group.closed": "group $group is closed[ by $actor]", "group.ended": "group $group has ended: every member is final",
  "group.removed": "group $group is removed[ by $actor]",
  "inbox.refused": "row $inbox of the inbox cannot become a task of $queue[: $detail]",
  "inbox.dropped": "row $inbox of the inbox is removed[ by $actor]",
  "bulk.started": "bulk action $bulk begins: $change $matched tasks[, by $actor]",
  "bulk.ended": "bulk action $bulk has ended: $done of $matched tasks changed[, $skipped skipped][: $reason]",
  "session.started": "session $session begins", "session.ended": "session $session has ended",
  "session.gone": "session $session is gone with its worker", "session.output": "session $session prints",
  "session.usage": "a turn of session $session has ended",
});

/** @param {any} event */
export function sentence(event) {
  const data = event.data ?? {}, error = data.error ?? {};
  const parts = { ...data, message: error.message ?? data.message, code: error.code ?? data.code, actor: event.actor,
    worker: event.worker, session: event.session, queue: data.queue ?? data.name, slot: data.slot ?? data.name, group: data.group ?? data.name };
  const fill = (/** @type {string} */ text) => {
    let whole = true;
    const out = text.replace(/\$(\w+)/g, (_, name) => {
      const value = parts[name];
      if (value === undefined || value === null || value === "" || typeof value === "object") whole = false;
      return clean(value);
    });
    return { out, whole };
  };
  const form = sentences[event.type] ?? event.type.replace(/[._]/g, " ");
  return fill(form.replace(/\[([^\]]*)\]/g, (_, inner) => { const { out, whole } = fill(inner); return whole ? out : ""; })).out;
}
