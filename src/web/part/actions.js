// Everything that the page can change, with the command that does the same. Tests read this table.
import { post, ask } from "../live/api.js";
import { allows, readRole, refreshAll, toast } from "../live/state.js";
import { Button, html } from "./parts.js";
import { quote } from "./text.js";

/** @typedef {{ label: string, role: "approver" | "operator" | "admin", cli: (...words: string[]) => string,
 *   run: (...words: string[]) => Promise<any>, done: string, key?: string, back?: string }} Action */

const task = (/** @type {string} */ id, /** @type {string} */ verb, /** @type {any} */ body = {}) => post(`/api/tasks/${encodeURIComponent(id)}/${verb}`, body);

/** A number, or a word for one. @param {string} text */
const asPriority = text => /^-?\d+$/.test(text) ? Number(text) : text;

/** A filter as the flags of the command. The states that the change is for need no flag. @param {Record<string, string>} filter @param {string[]} states */
const flags = (filter, states) => Object.entries(filter).filter(([key, value]) => key !== "state" || value !== states.join(","))
  .map(([key, value]) => ` --${key === "q" ? "search" : key} ${quote(value)}`).join("") || " --all";

/** The same change for all tasks that match a filter: the first word is the filter as JSON, the second the value of move and priority.
 * @param {string} verb @param {string} label @returns {Action} */
function bulk(verb, label) {
  const value = (/** @type {string | undefined} */ text) => verb === "move" ? { value: text } : verb === "priority" ? { value: asPriority(text ?? "") } : {};
  return { label, role: "operator", done: "begins",
    cli: (filter, text) => `stint bulk ${verb}${verb === "move" ? " " + quote(text || "QUEUE") : verb === "priority" ? " " + quote(text || "PRIORITY") : ""}${flags(JSON.parse(filter), bulks["bulk" + label].states)}`,
    run: (filter, text, dry) => post("/api/tasks/bulk", { filter: JSON.parse(filter), action: verb, ...value(text), ...(dry ? { dryRun: true } : {}) }) };
}

/** @type {Record<string, Action>} */
export const actions = {
  cancel: { label: "Cancel", role: "operator", cli: id => `stint cancel ${quote(id)}`, run: id => task(id, "cancel"), done: "is being cancelled", back: "retry" },
  retry: { label: "Retry", role: "operator", cli: id => `stint retry ${quote(id)}`, run: id => task(id, "retry"), done: "is opened again", key: "r" },
  park: { label: "Park", role: "operator", cli: id => `stint park ${quote(id)}`, run: id => task(id, "park"), done: "is parked", back: "unpark" },
  unpark: { label: "Unpark", role: "operator", cli: id => `stint unpark ${quote(id)}`, run: id => task(id, "unpark"), done: "is unparked", back: "park" },
  tell: { label: "Send", role: "operator", cli: (id, text) => `stint tell ${quote(id)} ${quote(text || "…")}`, run: (id, text) => task(id, "tell", { text }), done: "will read it" },
  allow: { label: "Allow once", role: "approver", key: "a", cli: (id, q) => `stint approve ${quote(id)} --question ${q}`,
    run: (id, q) => task(id, "answer", { question: q, allow: "once" }), done: "may do it, once" },
  allowTask: { label: "Allow for this task", role: "approver", key: "A", cli: (id, q) => `stint approve ${quote(id)} --for-task --question ${q}`,
    run: (id, q) => task(id, "answer", { question: q, allow: "task" }), done: "may do it until it ends" },
  deny: { label: "Deny", role: "approver", key: "d", cli: (id, q, text) => `stint deny ${quote(id)}${text ? " " + quote(text) : ""} --question ${q}`,
    run: (id, q, text) => task(id, "answer", { question: q, deny: true, ...(text ? { text } : {}) }), done: "was told no" },
  answer: { label: "Answer", role: "approver", cli: (id, q, text) => `stint answer ${quote(id)} ${quote(text || "…")} --question ${q}`,
    run: (id, q, text) => task(id, "answer", { question: q, text }), done: "has its answer" },
  pass: { label: "Pass", role: "approver", key: "a", cli: (id, gate) => `stint approve ${quote(id)} --gate ${quote(gate)}`,
    run: (id, gate) => task(id, `gates/${encodeURIComponent(gate)}`, { verdict: "pass" }), done: "has passed" },
  reject: { label: "Reject", role: "approver", key: "d", cli: (id, gate, text) => `stint deny ${quote(id)}${text ? " " + quote(text) : ""} --gate ${quote(gate)}`,
    run: (id, gate, text) => task(id, `gates/${encodeURIComponent(gate)}`, { verdict: "reject", ...(text ? { reason: text } : {}) }), done: "is rejected" },
  quiet: { label: "Quiet", role: "operator", cli: id => `stint worker quiet ${quote(id)}`,
    run: id => post(`/api/workers/${encodeURIComponent(id)}/quiet`), done: "takes nothing new" },
  stop: { label: "Stop", role: "operator", cli: id => `stint worker stop ${quote(id)}`,
    run: id => post(`/api/workers/${encodeURIComponent(id)}/terminate`), done: "must end" },
  unquarantine: { label: "Let it run", role: "operator", cli: id => `stint slot unquarantine ${quote(id)}`,
    run: id => post(`/api/slots/${encodeURIComponent(id)}/unquarantine`), done: "may run again" },
  pause: { label: "Pause", role: "operator", cli: id => `stint queue pause ${quote(id)}`,
    run: id => post(`/api/queues/${encodeURIComponent(id)}/pause`), done: "is paused", back: "resume" },
  resume: { label: "Resume", role: "operator", cli: id => `stint queue resume ${quote(id)}`,
    run: id => post(`/api/queues/${encodeURIComponent(id)}/resume`), done: "is open", back: "pause" },
  drain: { label: "Drain", role: "operator", cli: id => `stint queue drain ${quote(id)}`,
    run: id => post(`/api/queues/${encodeURIComponent(id)}/drain`), done: "takes no new tasks", back: "resume" },
  limitQueue: { label: "Limit", role: "operator", cli: (id, most) => `stint queue limit ${quote(id)} --concurrency ${quote(most || "none")}`,
    run: (id, most) => ask("PATCH", `/api/queues/${encodeURIComponent(id)}`, { concurrency: most ? Number(most) : null }), done: "has its limit" },
  runSchedule: { label: "Run now", role: "operator", cli: id => `stint schedule run ${quote(id)}`,
    run: id => post(`/api/schedules/${encodeURIComponent(id)}/run`), done: "has made a task" },
  pauseSchedule: { label: "Pause", role: "operator", cli: id => `stint schedule pause ${quote(id)}`,
    run: id => post(`/api/schedules/${encodeURIComponent(id)}/pause`), done: "makes no more tasks", back: "resumeSchedule" },
  resumeSchedule: { label: "Resume", role: "operator", cli: id => `stint schedule resume ${quote(id)}`,
    run: id => post(`/api/schedules/${encodeURIComponent(id)}/resume`), done: "goes on from now", back: "pauseSchedule" },
  addSchedule: { label: "Add a schedule", role: "operator",
    cli: (id, kind, when, tz, title, queue) => `stint schedule add ${quote(id || "NAME")} ${quote(title || "TITLE")} --${kind} ${quote(when || "WHEN")}${tz ? " --tz " + quote(tz) : ""}${queue ? " --queue " + quote(queue) : ""}`,
    run: (id, kind, when, tz, title, queue) => post("/api/schedules", { id, [kind]: when, ...(tz ? { tz } : {}), task: { title, ...(queue ? { queue } : {}) } }), done: "is planned" },
  closeGroup: { label: "Close", role: "operator", cli: name => `stint group close ${quote(name)}`,
    run: name => post(`/api/groups/${encodeURIComponent(name)}/close`), done: "takes no more tasks" },
  removeGroup: { label: "Remove", role: "operator", cli: name => `stint group rm ${quote(name)}`,
    run: name => ask("DELETE", `/api/groups/${encodeURIComponent(name)}`, {}), done: "is removed; its tasks stay" },
  lift: { label: "Lift now", role: "operator", cli: id => `stint hold rm ${quote(id)}`,
    run: id => ask("DELETE", `/api/holds/${encodeURIComponent(id)}`, {}), done: "is no longer held" },
  addTask: { label: "Add a task", role: "admin",
    cli: (title, queue, agent, dir, text) => `stint add ${quote(title || "TITLE")}${agent ? " --executor " + quote(agent) : ""}${dir ? " --cwd " + quote(dir) : ""}${queue ? " --queue " + quote(queue) : ""}${text ? " --file -" : ""}`,
    run: (title, queue, agent, dir, text) => post("/api/tasks", { title, ...(queue ? { queue } : {}), ...(agent ? { executor: agent } : {}), ...(dir ? { workingDir: dir } : {}), ...(text ? { instructions: text } : {}) }), done: "is queued" },
  moveTask: { label: "Move", role: "operator", cli: (id, queue) => `stint edit ${quote(id)} --queue ${quote(queue || "QUEUE")}`,
    run: (id, queue) => ask("PATCH", `/api/tasks/${encodeURIComponent(id)}`, { queue }), done: "is in another queue" },
  setPriority: { label: "Priority", role: "operator", cli: (id, priority) => `stint edit ${quote(id)} --priority ${quote(priority || "PRIORITY")}`,
    run: (id, priority) => ask("PATCH", `/api/tasks/${encodeURIComponent(id)}`, { priority: asPriority(priority) }), done: "has another priority" },
  bulkRetry: bulk("retry", "Retry"), bulkCancel: bulk("cancel", "Cancel"), bulkPark: bulk("park", "Park"), bulkUnpark: bulk("unpark", "Unpark"),
  bulkMove: bulk("move", "Move"), bulkPriority: bulk("priority", "Priority"), bulkPurge: bulk("purge", "Purge"),
  stopBulk: { label: "Stop", role: "operator", cli: id => `stint bulk stop ${quote(id)}`, run: id => ask("DELETE", `/api/bulk/${encodeURIComponent(id)}`, {}), done: "is stopped" },
  disarm: { label: "Disarm", role: "operator", cli: () => "stint disarm", run: () => post("/api/execution", { armed: false }), done: "Nothing is handed out any more", back: "arm" },
  arm: { label: "Arm", role: "operator", cli: () => "stint arm", run: () => post("/api/execution", { armed: true }), done: "Work is handed out again", back: "disarm" },
  stopSession: { label: "Stop", role: "operator", cli: id => `stint session stop ${quote(id)}`,
    run: id => ask("DELETE", `/api/sessions/${encodeURIComponent(id)}`, {}), done: "is stopped" },
  endLogin: { label: "End", role: "operator", cli: id => `stint dashboard   # session ${id}`,
    run: id => ask("DELETE", `/api/logins/${encodeURIComponent(id)}`, {}), done: "has ended" },
  revokeToken: { label: "Revoke", role: "admin", cli: id => `stint token revoke ${quote(id)}`, run: id => ask("DELETE", `/api/tokens/${encodeURIComponent(id)}`, {}), done: "is revoked" },
  backup: { label: "Back up now", role: "admin", cli: () => "stint backup", run: () => post("/api/backup"), done: "The backup is complete" },
};

/** @param {string} name @param {string[]} words */
export async function act(name, ...words) {
  const action = actions[name];
  if (!allows(action.role)) return toast(`This needs the role ${action.role}.`, { bad: true });
  try {
    const came = await action.run(...words), back = action.back;
    toast(action.done[0] === action.done[0].toUpperCase() ? action.done + "." : `${words[0]} ${action.done}.`,
      back && !came?.stopping ? { undo: () => act(back, words[0]) } : undefined); // what has begun to stop cannot be called back
    refreshAll();
    return true;
  } catch (fault) {
    if (/** @type {any} */ (fault).status === 403) readRole(); // an admin's page is an operator's after a quarter of an hour
    toast(/** @type {Error} */ (fault).message, { bad: true });
    return false;
  }
}

/** @param {{ name: string, words: string[], primary?: boolean, bare?: boolean, label?: string, after?: () => void }} props */
export function Act({ name, words, primary, bare, label, after }) {
  const action = actions[name], may = allows(action.role);
  return html`<${Button} primary=${primary} bare=${bare} cli=${action.cli(...words)} disabled=${!may}
    reason=${`this needs the role ${action.role}`} data-act=${name}
    onClick=${async () => { if (await act(name, ...words)) after?.(); }}>${label ?? action.label}<//>`;
}

/** What may be done to a task in that state, by the rules of the server. @param {any} task */
export function actionsOf(task) {
  const open = !["done", "failed", "cancelled"].includes(task.state);
  const names = [];
  if (["done", "failed", "cancelled", "blocked"].includes(task.state)) names.push("retry");
  if (task.state === "pending") names.push("unpark");
  if (["ready", "scheduled", "waiting"].includes(task.state)) names.push("park");
  if (open) names.push("cancel");
  return names;
}

/** What a bulk action may change, and the words for it. The same lists as `stint bulk`. */
export const bulks = /** @type {Record<string, { states: string[], done: string, one: string, value?: string, hint?: string }>} */ ({
  bulkRetry: { states: ["failed", "blocked"], done: "opened again", one: "retry" },
  bulkCancel: { states: ["pending", "scheduled", "waiting", "ready", "claimed", "running", "asking", "review", "blocked"], done: "cancelled", one: "cancel" },
  bulkPark: { states: ["scheduled", "waiting", "ready"], done: "parked", one: "park" },
  bulkUnpark: { states: ["pending"], done: "unparked", one: "unpark" },
  bulkMove: { states: ["pending", "scheduled", "waiting", "ready", "claimed", "running", "asking", "review", "blocked"], done: "moved", one: "moveTask", value: "Queue", hint: "ci" },
  bulkPriority: { states: ["pending", "scheduled", "waiting", "ready", "claimed", "running", "asking", "review", "blocked"], done: "given another priority", one: "setPriority", value: "Priority", hint: "high, or a number" },
  bulkPurge: { states: ["done", "failed", "cancelled"], done: "purged", one: "" },
});
