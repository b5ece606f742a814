// What a person does with the page, in a real browser. Each check is a sentence; the first that does not hold ends the run.
import { createRequire } from "node:module";
import { execFileSync, spawn } from "node:child_process";
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, readSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createListener } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import assert from "node:assert/strict";

const modules = createRequire(process.env.PAGE_MODULES + "/");
const { chromium } = modules("playwright-core");
const axe = readFileSync(modules.resolve("axe-core/axe.min.js"), "utf8");
const { STINT_URL: url, STINT_TOKEN: token, PAGE_SHOTS: shots, PAGE_LONG: long, PAGE_ONLY: only = "", PAGE_FAILED: failed = "" } = process.env;
const PATIENCE_MS = 20000;
const hostile = `<img src=x onerror="window.pwned=1">"'><script>window.pwned=1</script>\u001b[31mred\u0007\u202egnirts`;

const api = async (method, path, body, as = token) => {
  const reply = await fetch(url + path, { method, headers: { Authorization: `Bearer ${as}`, "Content-Type": "application/json" }, body: body && JSON.stringify(body) });
  const value = await reply.json();
  if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${JSON.stringify(value)}`);
  return value;
};
const code = async (more = {}) => (await api("POST", "/api/tokens", { kind: "login", name: "mara", ...more })).code;

/** For pictures: the server's wall clock goes on by so much, until it is the real one. */
function pass(minutes) {
  if (!process.env.PAGE_CLOCKS) return;
  const file = openSync(process.env.PAGE_CLOCKS, "r+"), eight = Buffer.alloc(8);
  readSync(file, eight, 0, 8, 0);
  const late = Number(eight.readBigInt64LE());
  eight.writeBigInt64LE(BigInt(Math.min(0, Math.round(late + minutes * 60000))));
  writeSync(file, eight, 0, 8, 0);
  closeSync(file);
}

/** For pictures: an hour's work of a small fleet, and what it does now. */
async function furnish() {
  const add = body => api("POST", "/api/tasks", body);
  const claim = async (id, worker) => (await api("POST", `/api/tasks/${id}/claim`, { workerId: worker, leaseMs: 900000 })).fence;
  const agents = ["claude", "codex", "gemini"], doing = [["Write a fuzz target for chunked bodies", "building the corpus from captured requests"], ["Measure claims with one million waiting", "round 7 of 12, 41 208 claims per second"],
    ["Translate the first chapter of the manual", "section 4 of 9: leases in plain words"], ["Split sweep.c by concern", "moved expiry into its own file, running the tests"], ["Run the suite under valgrind", "317 of 902 tests, no leak so far"], ["Audit the dependencies", "reading 14 changelogs"]];
  let number = 0;
  for (let minute = 0; minute < 36; minute++) {
    for (let i = 0; i < 3 + Math.round(3 + 3 * Math.sin(minute / 4) + (minute * 7) % 3); i++) {
      const id = `t-${(1200 + ++number).toString(36)}`, agent = agents[number % 3];
      await add({ id, title: `Check pull request ${300 + number}`, queue: number % 2 ? "default" : "ci", executor: agent, maxAttempts: 1 });
      const fence = await claim(id, "runner-1");
      await api("POST", `/api/tasks/${id}/progress`, { workerId: "runner-1", fence, note: "reading", usage: { inputTokens: 21000, outputTokens: 900, usd: agent === "gemini" ? 0.01 : 0.04, turns: 4 } });
      await api("POST", `/api/tasks/${id}/${number % 61 ? "complete" : "fail"}`, number % 61 ? { workerId: "runner-1", fence, result: "approved" } : { workerId: "runner-1", fence, error: { code: "CHECK_FAILED", message: "make test: 2 failed (tls_resume.c:141)", retry: false } });
    }
    await new Promise(resolve => setTimeout(resolve, 40)); // the server looks at its clock
    pass(1);
  }
  for (const [i, [title, note]] of doing.entries()) {
    const worker = `slot-${i + 1}`, id = `t-9s${i + 1}`;
    await api("POST", "/api/workers/register", { workerId: `vm-${i + 1}`, slot: worker, executors: [agents[i % 3], "shell"], maxConcurrent: 1, host: i < 4 ? "atlas" : "juno", leaseMs: 300000 });
    await add({ id, title, queue: i % 3 ? "default" : "ci", executor: agents[i % 3], labels: i % 2 ? [] : ["perf"] });
    const fence = await claim(id, `vm-${i + 1}`);
    await api("POST", "/api/workers/heartbeat", { workerId: `vm-${i + 1}`, leaseMs: 300000 }).catch(() => {});
    await api("POST", `/api/tasks/${id}/progress`, { workerId: `vm-${i + 1}`, fence, note, percent: undefined, session: `s-4${i}c`, usage: { inputTokens: 412000, cacheReadTokens: 300000, outputTokens: 11000, usd: 0.4 + i / 9, turns: 22 + i } });
  }
  for (let i = 0; i < 9; i++) await add({ title: ["Port the reload handler to pidfd", "Replace strtol in the config reader", "Backfill usage for October", "Name the flaky tests of last week", "Publish 2.4 to the package mirror", "Profile the idle worker path", "Describe the wire format of claims", "Mirror the crash corpus", "Upgrade the TLS vectors"][i], queue: i % 3 ? "default" : "release", executor: agents[i % 3], ...(i > 5 ? { requires: ["perf"] } : {}) });
}

/** A server with a bit of everything, and nothing that the page may believe. */
async function fill() {
  const add = body => api("POST", "/api/tasks", { queue: "ci", ...body });
  await add({ id: "wait-1", title: "Refuse folded headers in the request parser", labels: ["http"], priority: "high" });
  await add({ id: "wait-2", title: "Port the header parser to the arena", blockedBy: ["wait-1"] });
  await add({ id: "park-1", title: "Rebuild the documentation site", queue: "docs", state: "pending" });
  const claim = async (id, worker) => (await api("POST", `/api/tasks/${id}/claim`, { workerId: worker, leaseMs: 600000 })).fence;
  const log = (id, worker, fence, data) => api("POST", `/api/tasks/${id}/log`, { workerId: worker, fence, offset: 0, data });
  await add({ id: "run-1", title: "Move the retry table to STRICT", payload: { dir: "/srv/app", deep: [1, 2, { three: true }] }, instructions: "Make the table STRICT.\nKeep the old rows." });
  const run = await claim("run-1", "slot-1");
  await log("run-1", "slot-1", run, "\u001b[32mok\u001b[0m   suite http_parse 212 passed\n\u001b[1;31mFAIL\u001b[0m suite tls_resume\n\u001b]0;title\u0007plain line\n");
  await api("POST", "/api/tasks/run-1/progress", { workerId: "slot-1", fence: run, note: "compiling store.c", percent: 40 });
  await add({ id: "ask-1", title: "Cut the 2.4 release branch" });
  const ask = await claim("ask-1", "slot-2");
  await api("POST", "/api/tasks/ask-1/ask", { workerId: "slot-2", fence: ask, question: "Push the release branch?", data: { tool: "Bash", input: { command: "git push origin release-2.4" } } });
  await add({ id: "ask-2", title: "Choose a time source for the lease tests" });
  const other = await claim("ask-2", "slot-3");
  await api("POST", "/api/tasks/ask-2/ask", { workerId: "slot-3", fence: other, question: "Which clock should the tests use?", options: ["boot time", "monotonic"] });
  await add({ id: "rev-1", title: "Describe the wire format", gates: ["review"] });
  const rev = await claim("rev-1", "slot-4");
  await api("POST", "/api/tasks/rev-1/review", { workerId: "slot-4", fence: rev, result: "4 files, +128 −31" });
  await add({ id: "done-1", title: "Answer health checks before the store is open" });
  await api("POST", "/api/tasks/done-1/complete", { workerId: "slot-5", fence: await claim("done-1", "slot-5"), result: { files: 4, added: 128 } });
  await add({ id: "fail-1", title: "Bisect the flaky resume test", maxAttempts: 1 });
  await api("POST", "/api/tasks/fail-1/fail", { workerId: "slot-5", fence: await claim("fail-1", "slot-5"), error: { code: "EXECUTION_ERROR", message: "make test: 2 failed (tls_resume.c:141)", retry: false } });
  await add({ id: "block-1", title: "Publish the crate" });
  await api("POST", "/api/tasks/block-1/block", { workerId: "slot-5", fence: await claim("block-1", "slot-5"), error: { code: "BAD_WORKDIR", message: "work directory /srv/docs is outside every worker's roots", class: "policy" } });
  for (const [id, slot] of shots ? [["hut", null]] : [["vm-1", "slot-1"], ["vm-2", "slot-2"], ["hut", null]]) await api("POST", "/api/workers/register", { workerId: id, slot, capabilities: ["git"], executors: ["shell"], maxConcurrent: 2, host: "atlas", leaseMs: 300000 });
  await api("POST", "/api/sessions/spawn", { prompt: "look at the parser", sessionLabel: "s-41d" });
  await api("POST", "/api/queues/docs/pause", {});
  await api("POST", "/api/schedules", { id: "nightly", cron: "30 2 * * *", tz: "Europe/Berlin", task: { title: "nightly tests", queue: "planned" } });
  await api("POST", "/api/schedules", { id: "sweep", every: "15m", overlap: "allow", task: { title: "sweep", queue: "planned" } });
  await api("POST", "/api/schedules/sweep/run", {});
  await api("POST", "/api/schedules", { id: "trim", cron: "0 5 * * SUN", paused: true, task: { title: "trim the corpus", queue: "planned" } });
  for (const [id, end] of [["port-1", "complete"], ["port-2", "complete"], ["port-3", "fail"], ["port-4", ""], ["port-5", ""], ["port-6", null], ["port-7", null]]) {
    await add({ id, title: `Port file ${id.slice(5)}`, group: "port", maxAttempts: 1, queue: "porting" });
    if (end === null) continue;
    const fence = await claim(id, "slot-6");
    if (end === "complete") await api("POST", `/api/tasks/${id}/complete`, { workerId: "slot-6", fence });
    if (end === "fail") await api("POST", `/api/tasks/${id}/fail`, { workerId: "slot-6", fence, error: { code: "EXECUTION_ERROR", message: "does not compile", retry: false } });
  }
  // A life with everything in it: a crash, a question, a check that failed and one that passed, money, and subtasks.
  await add({ id: "life-1", title: "Refuse folded headers in both entry points", labels: ["http"], blockedBy: ["done-1"], budget: { usd: 5 }, gates: ["taste"] });
  pass(0.3);
  let life = await claim("life-1", "slot-7");
  pass(2.4);
  const say = (usage, note) => api("POST", "/api/tasks/life-1/progress", { workerId: "slot-7", fence: life, note, session: "s-41c", usage });
  await say({ inputTokens: 38200, outputTokens: 1200, usd: 0.62, turns: 9 }, "reading");
  await api("POST", "/api/tasks/life-1/fail", { workerId: "slot-7", fence: life, error: { code: "WORKER_CRASHED", message: "killed at 6.0 GB", signal: 9 } }).catch(() => api("POST", "/api/tasks/life-1/fail", { workerId: "slot-7", fence: life, error: { code: "WORKER_CRASHED", message: "killed at 6.0 GB" } }));
  life = await claim("life-1", "slot-7");
  pass(1.6);
  await api("POST", "/api/tasks/life-1/ask", { workerId: "slot-7", fence: life, question: "The old parser lets tabs through. Keep that or refuse it?" });
  pass(0.9);
  await api("POST", "/api/tasks/life-1/answer", { text: "Refuse them, and say so in CHANGES." });
  pass(1.2);
  await api("POST", "/api/tasks/life-1/tell", { text: "the vectors are in tests/fold" });
  await log("life-1", "slot-7", life, "00:00  stint: attempt 2, same session\n00:06  The failure is in test_header_fold: a folded value after\n       an empty line reached the old branch.\n00:09  ▸ Read src/http/parse.c\n00:58  ▸ Edit src/http/parse.c\n01:10  stint: the agent is done; its checks start\n01:52  ✓ check build, 41 s\n02:20  ✗ check test, 28 s\n");
  await api("POST", "/api/tasks/life-1/fail", { workerId: "slot-7", fence: life, error: { code: "CHECK_FAILED", message: "test_header_fold: expected 400, got 200" }, evidence: { checks: [{ name: "build", passed: true, ms: 41000 }, { name: "test", passed: false, ms: 28000 }] } });
  life = await claim("life-1", "slot-7");
  pass(2.6);
  await say({ inputTokens: 1240000, cacheReadTokens: 1090000, outputTokens: 38200, usd: 1.87, turns: 61, toolCalls: 140 }, "checks are running");
  await api("POST", "/api/tasks/life-1/review", { workerId: "slot-7", fence: life, result: "Folded headers are refused with 400 in both entry points.", evidence: { files: ["src/http/parse.c", "tests/http_fold.c", "CHANGES"], branch: "stint/life-1", commits: ["b8cc75f5e0d1"], links: ["https://forge.example/pull/12"], checks: [{ name: "build", passed: true, ms: 41000 }, { name: "test", passed: true, ms: 63000 }] } });
  for (const [id, title, told] of [["flow-1", "Add a rate limit to the gateway", []], ["flow-2", "Cache the price list", ["building"]], ["flow-3", "Drop the old login", ["building", "pr.created"]]]) {
    await add({ id, title, workflow: "autopilot", queue: "flows" });
    if (told.length) await claim(id, "slot-8");
    for (const type of told) await api("POST", `/api/tasks/${id}/events`, { type, data: {} });
  }
  await add({ id: "tidy-1", title: "Tidy up", group: "tidy", queue: "porting" });
  await api("POST", "/api/tasks/tidy-1/complete", { workerId: "slot-6", fence: await claim("tidy-1", "slot-6") });
  await api("POST", "/api/holds", { credential: "team-account", until: Date.now() + 48 * 60000, reason: "invoice is late" });
  await api("POST", "/api/holds", { credential: "openai-mara" });
}

/** Hostile strings in every field that the page shows. */
async function poison() {
  const bad = { title: hostile, description: hostile, instructions: hostile, labels: [hostile.replace(/[\u0000-\u001f\u007f-\u009f]/g, "").slice(0, 60)], payload: { [hostile]: hostile }, metadata: { x: hostile } };
  const name = "<img src=x onerror=window.pwned=1>";
  await api("POST", "/api/tasks", { id: "evil-1", queue: name, ...bad });
  const { fence } = await api("POST", "/api/tasks/evil-1/claim", { workerId: name, leaseMs: 600000 });
  await api("POST", "/api/tasks/evil-1/log", { workerId: name, fence, offset: 0, data: hostile + "\n\u001b[2J\u001b[Hgone\n" });
  await api("POST", "/api/tasks/evil-1/progress", { workerId: name, fence, note: hostile.replace(/[\u0000-\u001f]/g, ""), percent: 1 });
  await api("POST", "/api/tasks/evil-1/ask", { workerId: name, fence, question: hostile, options: [hostile.slice(0, 100)] });
  await api("POST", "/api/tasks", { id: "evil-2", queue: "ci", maxAttempts: 1, title: hostile });
  const two = await api("POST", "/api/tasks/evil-2/claim", { workerId: name, leaseMs: 600000 });
  await api("POST", "/api/tasks/evil-2/fail", { workerId: name, fence: two.fence, error: { code: "EXECUTION_ERROR", message: hostile, retry: false } });
  await api("POST", "/api/workers/register", { workerId: name, slot: name, capabilities: [name], executors: [name], host: name, leaseMs: 300000 });
  await api("POST", "/api/schedules", { id: "evil", every: "1h", task: { title: hostile, queue: name } });
  await api("POST", "/api/schedules/evil/run", {});
  await api("POST", "/api/holds", { credential: name });
  await api("PATCH", `/api/credentials/${encodeURIComponent(name)}`, { budget: { usd: 1 } });
  const plain = hostile.replace(/[\u0000-\u001f\u007f-\u009f]/g, "").slice(0, 60);
  await api("POST", "/api/deliveries", { target: "evil", url: plain, last: [{ id: plain, type: plain, at: Date.now(), outcome: "given-up", tries: 9, error: hostile }] });
  await api("POST", "/api/tasks", { id: "evil-3", queue: name, title: hostile, group: name });
  return code({ name: name.slice(0, 60), role: "viewer" });
}

const pages = ["overview", "inbox", "tasks", "board", "task/run-1", "task/done-1", "task/life-1", "workers", "sessions", "queues", "schedules", "schedules/sweep", "groups", "holds", "workflows", "events", "settings", "dead"];

/** Those that a check has started and, if it failed, not ended. */
const servers = new Set();

/** A server of our own, which a check may stop and start again. */
async function serve(flags = [], home = mkdtempSync(join(tmpdir(), "stint-page-")), port = 0) {
  const [program, ...more] = process.env.PAGE_STINTD.split(" ");
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("STINT_")));
  rmSync(join(home, "url"), { force: true });
  const child = spawn(program, ["--home", home, "--listen", `127.0.0.1:${port}`, ...more, ...flags], { stdio: "ignore", env });
  while (!existsSync(join(home, "url"))) {
    assert.equal(child.exitCode, null, "the server starts");
    await new Promise(resolve => setTimeout(resolve, 20));
  }
  const at = readFileSync(join(home, "url"), "utf8").trim(), secret = readFileSync(join(home, "admin.token"), "utf8").trim();
  const call = async (method, path, body) => (await fetch(at + path, { method, headers: { Authorization: `Bearer ${secret}`, "Content-Type": "application/json" }, body: body && JSON.stringify(body) })).json();
  const stop = async signal => { const gone = new Promise(resolve => child.once("exit", resolve)); child.kill(signal ?? "SIGTERM"); await gone; };
  const server = { home, url: at, port: Number(new URL(at).port), call, stop, end: async () => { if (child.exitCode === null && child.signalCode === null) await stop("SIGKILL"); rmSync(home, { recursive: true, force: true }); },
    code: async (more = {}) => (await call("POST", "/api/tokens", { kind: "login", name: "mara", ...more })).code };
  servers.add(server);
  return server;
}

const freePort = () => new Promise(resolve => { const probe = createListener().listen(0, "127.0.0.1", () => { const { port } = probe.address(); probe.close(() => resolve(port)); }); });

/** The actions that a button of some check was pressed for. */
const pressed = new Set();

/** A page that notes what it should never have. */
async function open(browser, link, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  page.faults = [];
  page.on("console", message => { if (message.type() === "error") page.faults.push(`console: ${message.text()} ${message.location().url}`); });
  page.on("pageerror", fault => page.faults.push(`error: ${fault.message}`));
  const home = options.at ?? url;
  page.on("request", request => { if (!request.url().startsWith(home)) page.faults.push(`a request to ${request.url()}`); });
  await page.exposeBinding("notePress", (_, name) => { pressed.add(name); });
  await page.addInitScript(() => addEventListener("click", e => { const name = e.target.closest?.("[data-act]")?.dataset.act; if (name) window.notePress(name); }, true));
  await page.addInitScript(() => addEventListener("securitypolicyviolation", e => console.error("CSP: " + e.violatedDirective + " " + e.blockedURI)));
  await page.goto(link);
  return page;
}

const visit = async (page, where) => {
  await page.evaluate(hash => { location.hash = "#/" + hash; }, where);
  await page.waitForSelector("main h1");
};

const clear = page => assert.deepEqual(page.faults.filter(fault => !/404 .*\/api\/sessions\//.test(fault)), [], // of a session that no supervisor told of
  "no error in the console, no violation of the policy, no request elsewhere");

async function axeFinds(page, rules) {
  if (!await page.evaluate(() => "axe" in window)) await page.evaluate(axe); // by the debugger: the policy of the page stays as it is
  const { violations } = await page.evaluate(only => window.axe.run(document, { resultTypes: ["violations"], ...(only ? { runOnly: only } : {}) }), rules);
  return violations.map(v => `${v.id}: ${v.nodes.map(n => n.target.join(" ")).slice(0, 3).join(", ")}`);
}

const checks = {
  async "a code opens the page once, and is gone from the address"(browser) {
    const link = `${url}/#k=${await code()}`, page = await open(browser, link);
    await page.waitForSelector(".four");
    assert.ok(!page.url().includes("stint_login"), "the code is gone");
    assert.equal(await page.evaluate(() => document.cookie), "", "no script reads the cookie");
    clear(page);
    const second = await open(browser, link);
    await second.waitForSelector(".login");
    assert.match(await second.textContent(".login"), /used before/);
    await page.waitForSelector(".login"); // the first session has ended, too
    await page.context().close();
    await second.context().close();
  },
  async "every page is there, without an error, and axe finds nothing"(browser) {
    const found = [], rest = [...pages], dark = ["overview", "inbox", "tasks", "task/life-1"];
    const walk = async () => { // two browsers walk at once: what takes the time is axe, on one processor each
      const page = await open(browser, `${url}/#k=${await code({ role: "admin" })}`);
      await page.waitForSelector(".four");
      for (let where; (where = rest.shift());) {
        await visit(page, where);
        await page.waitForTimeout(250);
        if (["task/done-1", "task/run-1", "schedules/sweep"].includes(where)) continue; // the parts of others
        found.push(...(await axeFinds(page)).map(each => `${where}: ${each}`));
      }
      await page.emulateMedia({ colorScheme: "dark" });
      for (let where; (where = dark.shift());) {
        await visit(page, where);
        await page.waitForTimeout(250);
        found.push(...(await axeFinds(page, ["color-contrast"])).map(each => `${where} dark: ${each}`));
      }
      clear(page);
      await page.context().close();
    };
    await Promise.all([walk(), walk()]);
    assert.deepEqual(found, []);
  },
  async "a task that is created appears without a reload, and changes in place"(browser) {
    const page = await open(browser, `${url}/#k=${await code()}`);
    await page.waitForSelector(".four");
    await visit(page, "tasks");
    await page.waitForSelector('tr[data-id="wait-1"]');
    await page.evaluate(() => { window.stayed = true; });
    await api("POST", "/api/tasks", { id: "live-1", queue: "ci", title: "Made while you look" });
    await page.waitForSelector('.pill.on .btn:has-text("Show 1 new")');
    await page.keyboard.press(".");
    await page.waitForSelector('tr[data-id="live-1"] .s-ready');
    await api("POST", "/api/tasks/live-1/cancel", {});
    await page.waitForSelector('tr[data-id="live-1"] .s-cancelled', { state: "attached" });
    assert.equal(await page.evaluate(() => window.stayed), true, "the page was not loaded again");
    clear(page);
    await page.context().close();
  },
  async "many tasks are selected, counted, changed, and the change is stopped or told"(browser) {
    for (let i = 1; i <= 12; i++) await api("POST", "/api/tasks", { id: `many-${i}`, queue: "many", title: `One of many, ${i}`, state: i > 10 ? "pending" : undefined });
    const page = await open(browser, `${url}/#k=${await code({ role: "operator" })}`);
    await page.waitForSelector(".four");
    await visit(page, "tasks?queue=many");
    await page.waitForSelector('tr[data-id="many-1"]');
    for (const key of ["j", "x", "j", "j", "X"]) await page.keyboard.press(key);
    await page.waitForSelector('.bulk:has-text("3 selected")');
    assert.equal(await page.textContent('.bulk [data-act="park"]'), "Park 3", "the button says how many");
    await page.hover('.bulk [data-act="park"]');
    assert.match(await page.textContent(".foot code"), /^stint park many-\d+ many-\d+ many-\d+$/);
    await page.click('.bulk [data-act="park"]');
    await page.waitForSelector('[data-bulk="done"]:has-text("3 of 3 parked")');
    assert.equal((await api("GET", "/api/tasks?queue=many&state=pending")).length, 5);
    await page.click('.bulk .btn:has-text("Close")');
    await page.click('tr[data-id="many-10"] input');
    await page.click(".bulk [data-all]");
    await page.click('[data-bulk-act="bulkMove"]');
    await page.fill('.bulk [name="value"]', "moved");
    await page.keyboard.press("Enter");
    await page.waitForSelector('[data-bulk="asks"]:has-text("12 tasks will be moved")');
    assert.deepEqual(await axeFinds(page), []);
    await page.hover('.bulk [data-act="bulkMove"]');
    assert.equal(await page.textContent(".foot code"), "stint bulk move moved --queue many");
    assert.equal((await api("GET", "/api/tasks?queue=moved")).length, 0, "a count changes nothing");
    await page.click('.bulk [data-act="bulkMove"]');
    await page.waitForSelector('[data-bulk="done"]:has-text("12 of 12 moved")');
    assert.equal((await api("GET", "/api/tasks?queue=moved")).length, 12);
    await visit(page, "tasks?queue=moved&state=ready");
    await page.waitForSelector('tr[data-id="many-10"]');
    await page.click('tr[data-id="many-10"] input');
    await page.click(".bulk [data-all]");
    await page.click('[data-bulk-act="bulkCancel"]');
    await page.waitForSelector('[data-bulk="asks"]:has-text("7 tasks will be cancelled")');
    await page.click('.bulk [data-act="bulkCancel"]');
    await page.waitForSelector('[data-bulk="done"]:has-text("7 of 7 cancelled")');
    assert.equal((await api("GET", "/api/tasks?queue=moved&state=pending")).length, 5, "only those that the filter shows");
    clear(page);
    await page.context().close();
  },
  async "a card is dropped only where the move is legal, and its buttons do the same"(browser) {
    await api("POST", "/api/tasks", { id: "drop-1", queue: "cards", title: "Failed card", maxAttempts: 1 });
    const { fence } = await api("POST", "/api/tasks/drop-1/claim", { workerId: "slot-9", leaseMs: 600000 });
    await api("POST", "/api/tasks/drop-1/fail", { workerId: "slot-9", fence, error: { code: "EXECUTION_ERROR", message: "no luck", retry: false } });
    await api("POST", "/api/tasks", { id: "drop-2", queue: "cards", title: "Waiting card" });
    await api("POST", "/api/tasks", { id: "drop-3", queue: "cards", title: "Reported card", gates: ["taste"] });
    const { token: other } = await api("POST", "/api/tokens", { kind: "worker", name: "cards", queues: ["cards"] }); // who did the work does not judge it
    const three = await api("POST", "/api/tasks/drop-3/claim", { workerId: "cards-1", leaseMs: 600000 }, other);
    await api("POST", "/api/tasks/drop-3/review", { workerId: "cards-1", fence: three.fence, result: "done so far" }, other);
    const page = await open(browser, `${url}/#k=${await code({ role: "operator" })}`);
    await page.waitForSelector(".four");
    await visit(page, "board?queue=cards");
    await page.waitForSelector('[data-lane="blocked"] [data-id="drop-1"]');
    const drag = async (id, lane, seen) => {
      const from = await page.locator(`[data-id="${id}"] h3`).boundingBox(), to = await page.locator(`[data-lane="${lane}"] ul`).boundingBox();
      await page.mouse.move(from.x + 20, from.y + 8);
      await page.mouse.down();
      await page.mouse.move(from.x + 40, from.y + 20, { steps: 3 });
      await page.mouse.move(to.x + 40, to.y + 60, { steps: 4 });
      await page.waitForSelector(seen);
      await page.mouse.up();
    };
    await drag("drop-2", "done", '[data-lane="done"].no:has-text("Only finished work gets here")');
    await drag("drop-1", "in-progress", '[data-lane="in-progress"].no:has-text("Only a worker can start work")');
    assert.equal((await api("GET", "/api/tasks/drop-1")).state, "failed");
    await drag("drop-1", "todo", '[data-lane="todo"].yes:has-text("Drop to retry it")');
    await page.waitForSelector('[data-lane="todo"] [data-id="drop-1"]');
    await drag("drop-3", "done", '[data-lane="done"].yes:has-text("Drop to pass gate taste")');
    await page.waitForSelector('[data-lane="done"] [data-id="drop-3"]');
    await drag("drop-3", "todo", '[data-lane="todo"].yes:has-text("Drop to retry it")');
    await page.click('[data-id="drop-3"] a >> nth=1');
    await page.waitForSelector('.ttl [data-act="cancel"]');
    await api("POST", "/api/tasks/bulk", { filter: { queue: "cards" }, action: "cancel" });
    clear(page);
    await page.context().close();
  },
  async "the dead letter is counted by cause, and one cause is redriven"(browser) {
    for (let i = 1; i <= 3; i++) {
      await api("POST", "/api/tasks", { id: `dead-${i}`, queue: "dead", title: `Dead ${i}`, maxAttempts: 1 });
      const { fence } = await api("POST", `/api/tasks/dead-${i}/claim`, { workerId: "slot-9", leaseMs: 600000 });
      await api("POST", `/api/tasks/dead-${i}/fail`, { workerId: "slot-9", fence, error: { code: "EXECUTION_ERROR", message: `line ${i}: not understood`, retry: false } });
    }
    const page = await open(browser, `${url}/#k=${await code({ role: "operator" })}`);
    await page.waitForSelector(".four");
    await visit(page, "dead");
    const cause = page.locator('tr:has-text("line N: not understood")');
    assert.match(await cause.textContent(), /^3.*3 failed/);
    await cause.locator("[data-redrive]").click();
    await page.waitForSelector('[data-bulk="asks"]:has-text("3 tasks will be opened again")');
    assert.match(await page.textContent(".foot code"), /^stint bulk retry --error EXECUTION_ERROR:[0-9a-f]+/);
    await page.keyboard.press("Enter");
    await page.waitForSelector('[data-bulk="done"]:has-text("3 of 3 opened again")');
    await cause.waitFor({ state: "detached" });
    assert.deepEqual((await api("GET", "/api/tasks?queue=dead")).map(task => task.state), ["ready", "ready", "ready"]);
    await api("POST", "/api/tasks/bulk", { filter: { queue: "dead" }, action: "cancel" });
    clear(page);
    await page.context().close();
  },
  async "a task is added by keyboard"(browser) {
    const page = await open(browser, `${url}/#k=${await code({ role: "admin" })}`);
    await page.waitForSelector(".four");
    await visit(page, "tasks");
    await page.keyboard.press("n");
    await page.waitForSelector("dialog[open] form");
    await page.keyboard.type("Written by hand");
    await page.fill('dialog [name="queue"]', "hand");
    assert.equal(await page.textContent("dialog code"), "stint add 'Written by hand' --queue hand");
    await page.focus('dialog [name="queue"]');
    await page.keyboard.press("Enter");
    await page.waitForSelector('.ttl h1:has-text("Written by hand")');
    const [made] = await api("GET", "/api/tasks?queue=hand");
    assert.equal(made.title, "Written by hand");
    await api("POST", `/api/tasks/${made.id}/cancel`, {});
    clear(page);
    await page.context().close();
  },
  async "a task tells its life: attempts, people, checks, money, evidence, subtasks, and what its log says"(browser) {
    await api("POST", "/api/tasks", { id: "root-1", queue: "tree", title: "Port the parser" });
    const root = await api("POST", "/api/tasks/root-1/claim", { workerId: "slot-8", leaseMs: 600000 });
    const { token: inner } = await api("POST", "/api/tokens", { kind: "claim", task: "root-1", fence: root.fence });
    await api("POST", "/api/tasks", { id: "leaf-1", parent: "root-1", title: "Port one file" }, inner);
    const page = await open(browser, `${url}/#k=${await code({ role: "operator" })}`);
    await page.waitForSelector(".four");
    await visit(page, "task/life-1");
    await page.waitForSelector(".ln >> nth=2");
    const lanes = await page.locator(".ln").allTextContents();
    assert.match(lanes[0], /^1 slot-7.*\$0\.62.*Crashed|Killed by signal 9/);
    assert.match(lanes[1], /asked, admin answered in .*Check failed: test/);
    assert.match(lanes[2], /\$1\.87.*Reported for review/);
    assert.equal(await page.locator(".ln >> nth=1 >> .tr .chk").count(), 1, "its checks are hatched");
    assert.match(await page.textContent("[data-money]"), /\$2\.49 of \$5\.00.*Turns70/s);
    assert.match(await page.textContent("[data-checks]"), /buildpassed.41.s.*testpassed.1.min/su);
    assert.match(await page.textContent("[data-evidence]"), /3 files.*CHANGES.*stint\/life-1.*forge\.example/s);
    assert.match(await page.textContent("[data-session]"), /s-41c/);
    assert.match(await page.textContent("[data-around]"), /done-1.*ci/s);
    const story = await page.textContent(".story");
    for (const words of ["Created by admin", "Attempt 2 asked", "“The old parser lets tabs through. Keep that or refuse it?”", "admin answered", "Attempt 2 failed its check", "test_header_fold: expected 400"]) assert.ok(story.includes(words), `${words} in ${story}`);
    await page.click('.log .seg [aria-label="Attempt 2"]');
    await page.waitForSelector('.log .tool:has-text("Edit src/http/parse.c")');
    assert.deepEqual(await page.locator(".log ol li").evaluateAll(lines => lines.map(line => line.className)), ["sys", "say", "say", "tool", "tool", "sys", "good", "err"], "a second line is of the same voice");
    await page.keyboard.press("f");
    await page.keyboard.type("parse.c");
    await page.waitForSelector('[data-hits]:has-text("1 of 2")');
    await page.keyboard.press("Enter");
    await page.waitForSelector('[data-hits]:has-text("2 of 2")');
    assert.equal(await page.locator(".log mark").count(), 2);
    await page.keyboard.press("Escape");
    assert.match(await page.textContent(".log code"), /^stint logs life-1 --attempt 2$/);
    await visit(page, "task/root-1");
    await page.waitForSelector('.subs:has-text("Port one file")');
    await page.fill('[name="tell"]', "begin with the header");
    await page.hover('[data-act="tell"]');
    assert.equal(await page.textContent(".foot code"), "stint tell root-1 'begin with the header'");
    await page.click('[data-act="tell"]');
    await page.waitForSelector('[data-tell] .li:has-text("begin with the header")');
    await api("POST", "/api/tasks/root-1/cancel", {});
    clear(page);
    await page.context().close();
  },
  async "a log is followed, let go, counted, and read backwards"(browser) {
    await api("POST", "/api/tasks", { id: "loud-1", queue: "tree", title: "Says a lot" });
    const { fence } = await api("POST", "/api/tasks/loud-1/claim", { workerId: "slot-8", leaseMs: 600000 });
    let offset = 0, line = 0;
    const write = async many => { const data = Array.from({ length: many }, () => `line ${++line} of the work\n`).join(""); await api("POST", "/api/tasks/loud-1/log", { workerId: "slot-8", fence, offset, data }); offset += data.length; };
    for (let i = 0; i < 8; i++) await write(2000);
    const page = await open(browser, `${url}/#k=${await code({ role: "viewer" })}`);
    await page.waitForSelector(".four");
    await visit(page, "task/loud-1");
    await page.waitForSelector('.log li:has-text("line 16000 of the work")');
    assert.equal(await page.locator(".log li:has-text('line 1 of the work')").count(), 0, "it is read from near its end");
    const atEnd = () => page.locator(".log ol").evaluate(el => el.scrollHeight - el.scrollTop - el.clientHeight < 8);
    await write(3);
    await page.waitForSelector('.log li:has-text("line 16003 of the work")');
    assert.ok(await atEnd(), "it follows");
    await page.locator(".log ol").evaluate(el => { el.scrollTop = 3000; });
    await page.waitForSelector('[data-follow]:has-text("Follow")');
    await write(5);
    await page.waitForSelector('[data-follow]:has-text("5 new lines")');
    assert.ok(!await atEnd(), "who reads stays where they are");
    await page.click("[data-follow]");
    await page.waitForSelector('[data-follow]:has-text("Following")');
    assert.ok(await atEnd());
    await page.click("[data-earlier]");
    await page.waitForSelector("[data-earlier]", { state: "detached" });
    assert.match(await page.textContent(".log .bar >> nth=1"), /^16.008 lines shown of/);
    await api("POST", "/api/tasks/loud-1/cancel", {});
    clear(page);
    await page.context().close();
  },
  async "a question is allowed by keyboard alone"(browser) {
    const page = await open(browser, `${url}/#k=${await code({ role: "approver" })}`);
    await page.waitForSelector(".four");
    await page.keyboard.press("g");
    await page.keyboard.press("i");
    await page.waitForSelector('.ask.at[data-task="ask-1"]');
    await page.waitForTimeout(600); // a card that is younger takes no key
    await page.keyboard.press("a");
    await page.waitForSelector(".ask.over");
    assert.equal((await api("GET", "/api/tasks/ask-1")).state, "running");
    await page.keyboard.press("j");
    await page.waitForSelector('.ask.at[data-task="ask-2"]');
    await page.keyboard.press("2");
    await page.waitForSelector(".ask.over >> nth=1");
    assert.match(await page.textContent('.ask[data-task="life-1"]'), /Folded headers are refused.*build passed.*test passed.*3 files: src\/http\/parse\.c/s, "who judges sees what was reported");
    assert.equal((await api("GET", "/api/tasks/ask-2")).answer.text, "monotonic");
    clear(page);
    await page.context().close();
  },
  async "the plots show what the server counted, as lines and as a table"(browser) {
    const page = await open(browser, `${url}/#k=${await code({ role: "viewer" })}`);
    await page.waitForSelector(".chart canvas");
    const stats = await api("GET", "/api/stats?span=24h");
    assert.ok(stats.total.done > 0 && stats.total.failed > 0 && stats.total.claims > 0, JSON.stringify(stats.total));
    assert.equal(await page.locator(".chart canvas").count(), 2);
    await page.waitForSelector(`.plot-h:has-text("${stats.total.claims} claims")`);
    assert.match(await page.textContent('.four a:has-text("Failed in 24 h")'), new RegExp(`${stats.total.failed}of ${stats.total.done + stats.total.failed + stats.total.cancelled} finished`));
    await page.click('[data-span="24h"]');
    await page.waitForSelector('.plot-h:has-text("Finished per 10 minutes")');
    const drawn = await page.locator(".chart canvas").first().evaluate(canvas => new Set(new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size);
    assert.ok(drawn > 3, "there is a line on it");
    await page.locator(".plot-h .btn").first().click();
    await page.waitForSelector(".data tbody tr");
    const sums = await page.locator(".data tbody tr").evaluateAll(rows => rows.map(row => [1, 2].map(i => Number(row.cells[i].textContent))).reduce((a, b) => [a[0] + b[0], a[1] + b[1]]));
    assert.deepEqual(sums, [stats.total.done + stats.total.failed + stats.total.cancelled, stats.total.failed]);
    assert.deepEqual(await axeFinds(page), []);
    await page.keyboard.press("t"); // the plot is drawn again in the colours of the other theme
    await page.waitForSelector(".chart canvas");
    clear(page);
    await page.context().close();
  },
  async "tabs share one stream, and another takes it over"(browser) {
    const first = await open(browser, `${url}/#k=${await code({ role: "viewer" })}`);
    const reads = [];
    first.context().on("request", request => { if (request.headers().accept === "text/event-stream") reads.push(request.frame().page() === first ? "first" : "second"); });
    await first.waitForSelector(".four");
    await first.waitForSelector('[data-live]:has-text("Live")');
    const second = await first.context().newPage();
    second.setDefaultTimeout(PATIENCE_MS);
    await second.goto(`${url}/#/tasks`);
    await second.waitForSelector('[data-live]:has-text("Live")');
    await visit(first, "tasks");
    await api("POST", "/api/tasks", { id: "both-1", queue: "shared", title: "Seen in both tabs" });
    for (const page of [first, second]) await page.waitForSelector('tr[data-id="both-1"], .pill.on .btn');
    assert.ok(!reads.includes("second"), "the second tab has no stream of its own");
    await first.close();
    await api("POST", "/api/tasks", { id: "both-2", queue: "shared", title: "Seen by the one that is left" });
    await second.waitForSelector('tr[data-id="both-2"], .pill.on .btn');
    for (let i = 0; !reads.includes("second") && i < 200; i++) await second.waitForTimeout(50); // the pill may be there for the task before
    assert.deepEqual(reads.filter(who => who === "second"), ["second"]);
    await second.context().close();
  },
  async "schedules pause, resume and run, and holds are lifted, by keyboard and by button"(browser) {
    const page = await open(browser, `${url}/#k=${await code({ role: "operator" })}`);
    await page.waitForSelector(".four");
    await page.keyboard.press("g");
    await page.keyboard.press("h");
    await page.waitForSelector('tr[data-id="sweep"]');
    assert.equal(await page.locator('tr[data-id="sweep"] .ticks i.run').count(), 1, "its task is open");
    assert.match(await page.textContent('tr[data-id="nightly"]'), /02:30/);
    await page.keyboard.press("j");
    await page.waitForSelector('tr.at[data-id="sweep"]');
    await page.keyboard.press("p");
    await page.waitForSelector('tr[data-id="sweep"] [data-act="resumeSchedule"]');
    assert.equal((await api("GET", "/api/schedules/sweep")).paused, true);
    assert.equal(await page.locator("tr[data-id] >> nth=0").getAttribute("data-id"), "sweep", "rows stay while one reads");
    await page.waitForSelector('tr.at[data-id="sweep"]');
    await page.click('tr[data-id="sweep"] [data-act="resumeSchedule"]');
    await page.waitForSelector('tr[data-id="sweep"] [data-act="pauseSchedule"]');
    await page.click('tr[data-id="nightly"] [data-act="runSchedule"]');
    await page.waitForSelector('tr[data-id="nightly"] .ticks i.run');
    assert.equal((await api("GET", "/api/schedules/nightly")).openTasks, 1);
    await page.keyboard.press("g");
    await page.keyboard.press("l");
    await page.waitForSelector('tr[data-id="team-account"]');
    assert.match(await page.textContent('tr[data-id="openai-mara"]'), /until a person acts/);
    await page.hover('tr[data-id="team-account"] [data-act="lift"]');
    assert.equal(await page.textContent(".foot code"), "stint hold rm team-account");
    await page.click('tr[data-id="team-account"] [data-act="lift"]');
    await page.waitForSelector('tr[data-id="team-account"]', { state: "detached" });
    assert.deepEqual((await api("GET", "/api/holds")).map(h => h.credential), ["openai-mara"]);
    await api("DELETE", "/api/holds/openai-mara", {});
    await page.waitForSelector('.empty:has-text("No account is on hold.")');
    clear(page);
    await page.context().close();
  },
  async "a schedule is added by keyboard, a wrong line says why, and its own page shows what it makes"(browser) {
    const page = await open(browser, `${url}/#k=${await code({ role: "operator" })}`);
    await page.waitForSelector(".four");
    await visit(page, "schedules");
    await page.waitForSelector('tr[data-id="sweep"]');
    await page.keyboard.press("n");
    await page.waitForSelector("dialog[open] form");
    await page.keyboard.type("weekly");
    await page.fill('[name="when"]', "61 9 * * 1");
    await page.fill('[name="tz"]', "Europe/Berlin");
    await page.fill('[name="title"]', "usage report");
    assert.equal(await page.textContent("dialog code"), "stint schedule add weekly 'usage report' --cron '61 9 * * 1' --tz Europe/Berlin");
    await page.keyboard.press("Enter");
    await page.waitForSelector('dialog [role="alert"]');
    assert.match(await page.textContent('dialog [role="alert"]'), /cron/);
    assert.deepEqual(await axeFinds(page), []);
    await page.fill('[name="when"]', "0 9 * * 1");
    await page.click('dialog [data-act="addSchedule"]');
    await page.waitForSelector('tr[data-id="weekly"]');
    const made = await api("GET", "/api/schedules/weekly");
    assert.deepEqual([made.cron, made.tz, made.task.title], ["0 9 * * 1", "Europe/Berlin", "usage report"]);
    await page.keyboard.press("n");
    await page.waitForSelector("dialog[open] form");
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { state: "detached" });
    await page.click('tr[data-id="weekly"] td >> nth=0 >> a');
    await page.waitForSelector('h1:has-text("weekly")');
    assert.match(await page.textContent(".json"), /usage report/);
    await page.waitForSelector("section .li time");
    assert.equal(await page.textContent(".foot code"), "stint schedule show weekly");
    await page.click('[data-act="runSchedule"]');
    await page.waitForSelector('section:has-text("Last times") .li a[href^="#/task/"]');
    await page.click('a:has-text("Its tasks")');
    await page.waitForSelector('.tok:has-text("schedule")');
    await page.waitForSelector("tr[data-id]");
    assert.deepEqual(await page.locator("tr[data-id]").evaluateAll(rows => rows.length), 1);
    await api("DELETE", "/api/schedules/weekly", {});
    page.faults = page.faults.filter(fault => !/422/.test(fault)); // the refusal that this check provokes
    clear(page);
    await page.context().close();
  },
  async "a group has one bar, is closed, ends, and is removed"(browser) {
    const page = await open(browser, `${url}/#k=${await code({ role: "operator" })}`);
    await page.waitForSelector(".four");
    await page.keyboard.press("g");
    await page.keyboard.press("r");
    await page.waitForSelector('tr[data-id="port"]');
    assert.equal(await page.getAttribute('tr[data-id="port"] .parts', "aria-label"), "2 of 7 done, 1 failed, 2 running, 2 waiting");
    const shares = await page.locator('tr[data-id="port"] .parts').evaluate(bar => [...bar.children].map(part => Math.round(7 * part.clientWidth / bar.clientWidth)));
    assert.deepEqual(shares, [2, 1, 2], "done, failed, running, in sevenths of the bar");
    await page.click('tr[data-id="tidy"] [data-act="closeGroup"]');
    await page.waitForSelector('tr[data-id="tidy"] [data-act="removeGroup"]');
    assert.equal((await api("GET", "/api/groups/tidy")).ended, true);
    await page.hover('tr[data-id="tidy"] [data-act="removeGroup"]');
    assert.equal(await page.textContent(".foot code"), "stint group rm tidy");
    await page.click('tr[data-id="tidy"] [data-act="removeGroup"]');
    await page.waitForSelector('tr[data-id="tidy"]', { state: "detached" });
    await page.keyboard.press("j");
    await page.waitForSelector('tr.at[data-id="port"]');
    await page.keyboard.press("Enter");
    await page.waitForSelector('tr[data-id="port-7"]');
    assert.equal(await page.locator("tr[data-id]").count(), 7);
    assert.equal(await page.textContent(".foot code"), "stint ls --group port");
    clear(page);
    await page.context().close();
  },
  async "a viewer's page changes nothing, and says why"(browser) {
    const page = await open(browser, `${url}/#k=${await code({ role: "viewer" })}`);
    await page.waitForSelector(".four");
    await visit(page, "task/wait-1");
    const button = page.locator('[data-act="cancel"]');
    assert.equal(await button.getAttribute("aria-disabled"), "true");
    await button.click({ force: true });
    assert.match(await page.textContent(".foot code"), /operator/);
    assert.equal((await api("GET", "/api/tasks/wait-1")).state, "ready");
    const asked = [];
    page.on("request", request => { if (request.method() !== "GET") asked.push(`${request.method()} ${request.url()}`); });
    for (const where of pages) {
      await visit(page, where);
      await page.waitForTimeout(150);
      const open = await page.evaluate(() => [...document.querySelectorAll("[data-act], [data-bulk-act], [data-redrive], [data-redrive-all]")].filter(each => each.getAttribute("aria-disabled") !== "true").map(each => each.textContent));
      assert.deepEqual(open, [], `${where}: what a viewer could press`);
      assert.equal(await page.locator('[draggable="true"]').count(), 0, where);
    }
    assert.deepEqual(asked, [], "nothing was asked for that changes anything");
    clear(page); // a refused look (403) would stand in the console
    await page.context().close();
  },
  async "the log has its colours and no escape, and the page shows hostile strings as text"(browser) {
    const page = await open(browser, `${url}/#k=${await poison()}`);
    await page.waitForSelector(".four");
    await visit(page, "task/run-1");
    await page.waitForSelector(".log .a2");
    assert.match(await page.textContent(".log ol"), /plain line/);
    for (const where of [...pages, "task/evil-1", "task/evil-2", "tasks?q=img"]) {
      await visit(page, where);
      await page.waitForTimeout(200);
      assert.equal(await page.evaluate(() => window.pwned), undefined, where);
      assert.equal(await page.evaluate(() => document.querySelectorAll("img, script:not([src])").length), 0, where);
      assert.doesNotMatch(await page.evaluate(() => document.body.innerText), /[\u0007\u001b\u202e]/, where);
    }
    clear(page);
    await page.context().close();
  },
  async "a session that is revoked closes the page"(browser) {
    const page = await open(browser, `${url}/#k=${await code({ name: "goner" })}`);
    await page.waitForSelector(".four");
    const [mine] = (await api("GET", "/api/logins")).filter(row => row.name === "goner" && row.state === "open");
    await api("DELETE", `/api/logins/${mine.id}`, {});
    await page.waitForSelector(".login");
    await page.context().close();
  },
};

/** A button, and what is so afterwards. */
async function press(page, where, name, holds, row = "") {
  await visit(page, where);
  await page.click(`${row}[data-act="${name}"]`);
  for (let i = 0; !(await holds()); i++) {
    assert.ok(i < 200, `${name} does what it says`);
    await page.waitForTimeout(100);
  }
}

const longer = {
  async "every button does what it says"(browser) {
    const page = await open(browser, `${url}/#k=${await code({ role: "admin" })}`);
    await page.waitForSelector(".four");
    const add = (id, more = {}) => api("POST", "/api/tasks", { id, queue: "buttons", title: id, ...more });
    const { token: hand } = await api("POST", "/api/tokens", { kind: "worker", name: "hand", queues: ["buttons"] });
    const claim = async id => (await api("POST", `/api/tasks/${id}/claim`, { workerId: "hand-1", leaseMs: 600000 }, hand)).fence;
    const ask = async (id, tool) => { await add(id); await api("POST", `/api/tasks/${id}/ask`, { workerId: "hand-1", fence: await claim(id), question: "May I?", ...(tool ? { data: { tool: "Bash", input: { command: "make" } } } : { options: ["yes", "no"] }) }, hand); };
    const review = async id => { await add(id, { gates: ["taste"] }); await api("POST", `/api/tasks/${id}/review`, { workerId: "hand-1", fence: await claim(id), result: "done" }, hand); };
    const state = (id, wanted) => async () => (await api("GET", `/api/tasks/${id}`)).state === wanted;
    await add("b-task");
    await press(page, "task/b-task", "park", state("b-task", "pending"));
    await press(page, "task/b-task", "unpark", state("b-task", "ready"));
    await press(page, "task/b-task", "cancel", state("b-task", "cancelled"));
    await press(page, "task/b-task", "retry", state("b-task", "ready"));
    for (const [id, tool, name, answer] of [["b-allow", true, "allow", { allow: "once" }], ["b-all", true, "allowTask", { allow: "task" }], ["b-yes", false, "answer", { text: "yes" }]]) {
      await ask(id, tool);
      await press(page, `task/${id}`, name, async () => Object.entries(answer).every(async ([key, value]) => (await api("GET", `/api/tasks/${id}`)).answer?.[key] === value) && (await api("GET", `/api/tasks/${id}`)).state === "running");
    }
    await ask("b-no", true);
    await visit(page, "task/b-no");
    await page.click('[data-act="deny"]');
    await page.fill(".ask textarea", "not today");
    await page.click('.ask footer .btn:has-text("Deny")');
    await page.waitForSelector(".ask", { state: "detached" }); // a task's page shows what is open
    assert.equal((await api("GET", "/api/tasks/b-no")).answer.text, "not today");
    await review("b-pass");
    await press(page, "task/b-pass", "pass", state("b-pass", "done"));
    await review("b-reject");
    await visit(page, "board?queue=buttons");
    await page.click('[data-id="b-reject"] [data-act="reject"]');
    await page.waitForSelector('[data-lane="todo"] [data-id="b-reject"]');
    for (const [name, wanted] of [["pause", "paused"], ["resume", "open"], ["drain", "draining"], ["resume", "open"]]) {
      await press(page, "queues", name, async () => (await api("GET", "/api/queues")).find(q => q.name === "buttons").state === wanted, 'tr:has-text("buttons") ');
    }
    await add("b-key", { concurrencyKey: "acme" });
    await page.click('tr[data-id="buttons"] [data-limit]');
    await page.waitForSelector('[data-keys]:has-text("acme 0 in work, 1 wait")');
    await page.fill('[name="limit"]', "3");
    await page.hover('tr[data-id="buttons"] [data-act="limitQueue"]');
    assert.equal(await page.textContent(".foot code"), "stint queue limit buttons --concurrency 3");
    await page.click('tr[data-id="buttons"] [data-act="limitQueue"]');
    await page.waitForSelector('tr[data-id="buttons"]:has-text("at most 3 at once")');
    await api("PATCH", "/api/queues/buttons", { concurrency: null });
    await api("POST", "/api/workers/register", { workerId: "b-worker", executors: ["shell"], host: "buttons", leaseMs: 600000 });
    await visit(page, "workers");
    await page.click('tr[data-id="b-worker"] [data-act="quiet"]');
    await page.waitForSelector('tr[data-id="b-worker"]:has-text("Quiet")');
    await page.click('tr[data-id="b-worker"] [data-act="stop"]');
    await page.waitForSelector('tr[data-id="b-worker"]:has-text("Stopping")');
    for (let i = 0; i < 3; i++) await api("POST", "/api/slots/b-slot/crash", {});
    await page.waitForSelector('tr[data-slot="b-slot"]:has-text("Quarantined")');
    await page.click('tr[data-slot="b-slot"] [data-act="unquarantine"]');
    await page.waitForSelector('tr[data-slot="b-slot"]', { state: "detached" });
    await api("POST", "/api/schedules", { id: "b-plan", every: "1h", task: { title: "planned", queue: "buttons" } });
    for (const [name, wanted] of [["pauseSchedule", true], ["resumeSchedule", false]]) await press(page, "schedules/b-plan", name, async () => (await api("GET", "/api/schedules/b-plan")).paused === wanted);
    await visit(page, "overview");
    await api("DELETE", "/api/schedules/b-plan", {});
    await press(page, "settings", "disarm", async () => !(await api("GET", "/api/execution")).armed);
    await press(page, "settings", "arm", async () => (await api("GET", "/api/execution")).armed);
    await press(page, "settings", "backup", async () => await page.locator('.toast:has-text("backup is complete")').count() > 0);
    const made = await api("POST", "/api/tokens", { kind: "viewer", name: "b-token" });
    await visit(page, "settings");
    await page.click('.li:has-text("b-token") [data-sure]');
    await page.click('.li:has-text("b-token") [data-act="revokeToken"]');
    await page.waitForSelector('.li:has-text("b-token"):has-text("revoked")');
    assert.ok((await api("GET", "/api/tokens")).find(t => t.id === made.id).revokedAt);
    const other = await open(browser, `${url}/#k=${await code({ name: "b-login", role: "viewer" })}`);
    await other.waitForSelector(".four");
    await page.click('.li:has-text("b-login") [data-act="endLogin"]');
    await other.waitForSelector(".login");
    await other.context().close();
    await api("POST", "/api/sessions/spawn", { prompt: "sit still", sessionLabel: "b-session" });
    await visit(page, "sessions");
    await page.click('tr:has-text("b-session") [data-act="stopSession"]');
    await page.waitForSelector('tr:has-text("b-session"):has-text("Stopped")');
    for (let i = 1; i <= 4; i++) await add(`b-many-${i}`, { labels: ["b-many"] });
    const bulk = async (name, view, words, value) => {
      await visit(page, "overview");
      await visit(page, `tasks?label=b-many&state=${view}`);
      await page.click('tr[data-id^="b-many"] input >> nth=0');
      await page.click(".bulk [data-all]");
      await page.click(`[data-bulk-act="${name}"]`);
      if (value) { await page.fill('.bulk [name="value"]', value); await page.keyboard.press("Enter"); }
      await page.click(`.bulk [data-act="${name}"]:has-text("4")`);
      await page.waitForSelector(`[data-bulk="done"]:has-text("4 of 4 ${words}")`);
    };
    const many = async holds => (await api("GET", "/api/tasks?label=b-many")).every(holds);
    await bulk("bulkPark", "ready", "parked");
    await bulk("bulkUnpark", "pending", "unparked");
    await bulk("bulkPriority", "ready", "given another priority", "high");
    assert.ok(await many(task => task.priority === 50));
    await bulk("bulkMove", "ready", "moved", "b-else");
    assert.ok(await many(task => task.queue === "b-else"));
    await visit(page, "tasks?label=b-many");
    for (const [name, value, holds] of [["moveTask", "buttons", task => task.queue === "buttons"], ["setPriority", "7", task => task.priority === 7]]) {
      await page.click('tr[data-id="b-many-1"] input');
      await page.click(`.bulk [data-act="${name}"]`);
      await page.fill('.bulk [name="value"]', value);
      await page.keyboard.press("Enter");
      await page.click('.bulk .btn:has-text("Close")');
      assert.ok(holds(await api("GET", "/api/tasks/b-many-1")), name);
    }
    // The last of a large one is not waited for: the page is told that it still runs, and the server is asked to stop it.
    await page.route("**/api/bulk/*", route => route.request().method() === "GET" ? route.fulfill({ json: { id: "b", state: "running", action: "cancel", filter: {}, matched: 4, done: 1, skipped: {}, actor: "mara", createdAt: 1 } }) : route.continue());
    const stopped = page.waitForRequest(request => request.method() === "DELETE" && request.url().includes("/api/bulk/"));
    await page.click('tr[data-id="b-many-1"] input');
    await page.click(".bulk [data-all]");
    await page.click('[data-bulk-act="bulkCancel"]');
    await page.click('.bulk [data-act="bulkCancel"]');
    await page.click('.bulk [data-act="stopBulk"]');
    await stopped;
    await page.unroute("**/api/bulk/*");
    await page.click('.bulk .btn:has-text("Close")');
    await api("POST", "/api/tasks/bulk", { filter: { label: "b-many" }, action: "cancel" });
    for (let i = 0; !(await many(task => task.state === "cancelled")); i++) { assert.ok(i < 100); await page.waitForTimeout(50); }
    await bulk("bulkPurge", "cancelled", "purged");
    assert.equal((await api("GET", "/api/tasks?label=b-many")).length, 0);
    await api("POST", "/api/tasks/bulk", { filter: { queue: "buttons" }, action: "cancel" });
    clear(page);
    await page.context().close();
  },
  async "what was done last is called back for ten seconds, by its button and by key"(browser) {
    await api("POST", "/api/tasks", { id: "back-1", queue: "backs", title: "Called back" });
    const page = await open(browser, `${url}/#k=${await code({ role: "operator" })}`), is = async wanted => { for (let i = 0; (await api("GET", "/api/tasks/back-1")).state !== wanted; i++) { assert.ok(i < 100, wanted); await page.waitForTimeout(50); } };
    await page.waitForSelector(".four");
    await visit(page, "task/back-1");
    await page.click('[data-act="park"]');
    await page.click("[data-undo]");
    await is("ready");
    await page.waitForSelector('.toast:has-text("is unparked")');
    await page.click('[data-act="cancel"]');
    await page.waitForSelector('.toast:has-text("is being cancelled") [data-undo]');
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press("u");
    await is("ready");
    await page.waitForSelector(".ttl .s-ready");
    clear(page);
    await page.context().close();
  },
  async "a click that comes as a card comes, or as cards move, lands on none"(browser) {
    for (const id of ["arm-1", "arm-2"]) {
      await api("POST", "/api/tasks", { id, queue: "arms", title: id });
      const { fence } = await api("POST", `/api/tasks/${id}/claim`, { workerId: "armer", leaseMs: 600000 });
      await api("POST", `/api/tasks/${id}/ask`, { workerId: "armer", fence, question: "May I?", data: { tool: "Bash", input: { command: "make" } } });
    }
    const page = await open(browser, `${url}/#k=${await code({ role: "approver" })}`);
    await page.waitForSelector(".four");
    await visit(page, "inbox/arm-1");
    await page.waitForSelector('[data-task="arm-1"]');
    const hit = () => page.evaluate(() => { const one = document.querySelector('[data-task="arm-2"] [data-act="allow"]'), box = one.getBoundingClientRect(); one.scrollIntoView(); const at = one.getBoundingClientRect(); return document.elementFromPoint(at.x + 4, at.y + 4)?.closest("[data-act]") === one; });
    await page.waitForSelector('[data-task="arm-2"]:not(.fresh)');
    assert.equal(await hit(), true, "after a while it takes clicks");
    await page.click('[data-task="arm-1"] [data-act="allow"]');
    await page.waitForSelector('[data-task="arm-2"].fresh');
    assert.equal(await hit(), false, "the card above was folded: nothing beneath it takes a click at once");
    await page.waitForSelector('[data-task="arm-2"]:not(.fresh)');
    assert.equal((await api("GET", "/api/tasks/arm-2")).state, "asking");
    await api("POST", "/api/tasks/bulk", { filter: { queue: "arms" }, action: "cancel" });
    await page.context().close();
  },
  async "one letter is no command where that is switched off, and stays so"(browser) {
    const page = await open(browser, `${url}/#k=${await code({ role: "viewer" })}`);
    await page.waitForSelector(".four");
    await visit(page, "settings");
    await page.click("[data-keys-of]");
    await page.reload();
    await page.waitForSelector("[data-keys-of]:has-text('off')");
    for (const key of ["g", "t", "?", "/"]) await page.keyboard.press(key);
    await page.waitForTimeout(200);
    assert.equal(await page.locator("dialog").count(), 0);
    assert.match(page.url(), /settings$/);
    await page.keyboard.press("Control+k");
    await page.waitForSelector("dialog.pal");
    await page.keyboard.press("Escape");
    await page.click("[data-keys-of]");
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press("?");
    await page.waitForSelector("dialog.help");
    await page.context().close();
  },
  async "the palette does what an operator may, and says the command"(browser) {
    await api("POST", "/api/tasks", { id: "pal-1", queue: "palette", title: "In a queue" });
    const page = await open(browser, `${url}/#k=${await code({ role: "operator" })}`);
    await page.waitForSelector(".four");
    await page.keyboard.press("Control+k");
    await page.waitForSelector("dialog.pal input:focus");
    await page.keyboard.type("pause queue palette");
    await page.waitForSelector('#found li:has-text("Pause queue palette"):has-text("stint queue pause palette")');
    await page.keyboard.press("Enter");
    await page.waitForSelector('.toast:has-text("palette is paused")');
    assert.equal((await api("GET", "/api/queues/palette")).state, "paused");
    const viewer = await open(browser, `${url}/#k=${await code({ role: "viewer" })}`);
    await viewer.waitForSelector(".four");
    await viewer.keyboard.press("Control+k");
    await viewer.waitForSelector("dialog.pal input:focus");
    await viewer.keyboard.type("queue palette");
    await viewer.waitForTimeout(400);
    assert.equal(await viewer.locator('#found li:has-text("Resume queue")').count(), 0, "a viewer is offered no change");
    await viewer.context().close();
    await page.context().close();
  },
  async "webhooks show their last deliveries, and money is told by day"(browser) {
    const { token: sender } = await api("POST", "/api/tokens", { kind: "viewer", name: "notify" });
    const last = Array.from({ length: 12 }, (_, i) => ({ id: `stint-1-${90 - i}`, type: "task.failed", task: `hook-${i}`, at: Date.now() - i * 60000, tries: i === 1 ? 9 : 1, ...(i === 0 ? { outcome: "retrying", error: "the answer was 500", status: 500, againAt: Date.now() + 60000 } : i === 1 ? { outcome: "given-up", error: hostile.replace(/[^ -~]/g, "") } : { outcome: "delivered", status: 204 }) }));
    await api("POST", "/api/deliveries", { target: "ops", url: "https://example.com/", delivered: 40, givenUp: 1, waiting: 1, last }, sender);
    const page = await open(browser, "about:blank");
    const midnight = new Date().setHours(0, 0, 0, 0), hour = (at, usd) => ({ at, usd, attempts: 1, tokens: 5, unpriced: 0 });
    await page.route("**/api/stats?span=7d", route => route.fulfill({ json: { span: "7d", from: midnight - 6 * 86400000, stepMs: 3600000, steps: 168, points: [], total: { done: 0, failed: 0, cancelled: 0, claims: 0 },
      spent: [{ executor: "claude", attempts: 3, tokens: 15, usd: 7, unpriced: 0, hours: [hour(midnight - 50 * 3600000, 4), hour(midnight - 3600000, 2), hour(midnight, 1)] }] } }));
    await page.goto(`${url}/#k=${await code({ role: "viewer" })}`);
    await page.waitForSelector(".four");
    for (const [day, sum] of [["yesterday", "$2.00"], ["week", "$7.00"], ["today", "$1.00"]]) {
      await page.click(`[data-day="${day}"]`);
      await page.waitForSelector(`[data-sum]:has-text("${sum}")`);
    }
    await visit(page, "settings");
    await page.waitForSelector('[data-target="ops"]:has-text("40 delivered, 1 given up, 1 message waiting")');
    assert.equal(await page.locator('[data-target="ops"] tbody tr').count(), 5);
    await page.click("[data-all-deliveries]");
    assert.equal(await page.locator('[data-target="ops"] tbody tr').count(), 12);
    assert.match(await page.textContent('[data-target="ops"] tbody tr >> nth=0'), /Tries again in .*task\.failed.*hook-0.*the answer was 500/u);
    assert.deepEqual(await axeFinds(page), []);
    clear(page);
    await page.context().close();
  },
  async "the first run shows the three tasks of the demo living their lives, until a task of one's own"(browser) {
    const home = mkdtempSync(join(tmpdir(), "stint-first-")), stint = join(dirname(process.env.PAGE_STINTD.split(" ")[0]), "stint");
    const env = { ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("STINT_") && name !== "DISPLAY")), HOME: home, STINT_HOME: join(home, "state") };
    const up = spawn(stint, ["up", "--listen", "127.0.0.1:0", "--no-open"], { env, stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    for (const out of [up.stdout, up.stderr]) out.on("data", piece => { said += piece; });
    try {
      for (let i = 0; !/\(works once\)/.test(said); i++) { assert.ok(i < 400 && up.exitCode === null, said); await new Promise(resolve => setTimeout(resolve, 50)); }
      const link = /http:\S+#k=\S+/.exec(said)[0], page = await open(browser, link, { at: new URL(link).origin });
      await page.waitForSelector('[data-first]');
      assert.equal(await page.locator("[data-demo]").count(), 3);
      await page.waitForSelector('[data-demo="demo-hello"] .s-done');
      await page.waitForSelector('[data-demo="demo-hello"]:has-text("hello, world")');
      await page.waitForSelector('[data-demo="demo-crash"] .s-done');
      await page.waitForSelector('[data-demo="demo-crash"]:has-text("its process was killed"):has-text("nothing was lost")');
      await page.waitForSelector('[data-demo="demo-ask"]:has-text("tea or coffee?")');
      assert.deepEqual(await axeFinds(page), []);
      if (failed) await page.screenshot({ path: `${failed}-first.png` });
      await page.click('[data-demo="demo-ask"] .btn:has-text("tea")');
      await page.waitForSelector('[data-demo="demo-ask"] .s-done');
      execFileSync(stint, ["add", "mine", "--", "true"], { env, stdio: "ignore" });
      await page.waitForSelector(".four");
      await page.reload();
      await page.waitForSelector(".four");
      assert.equal(await page.locator("[data-first]").count(), 0, "the demo is over");
      clear(page);
      await page.context().close();
    } finally {
      const gone = new Promise(resolve => up.once("exit", resolve));
      if (up.exitCode === null && up.signalCode === null) { up.kill("SIGTERM"); await gone; }
      rmSync(home, { recursive: true, force: true });
    }
  },
  async "a workflow is drawn with where its tasks are"(browser) {
    const page = await open(browser, `${url}/#k=${await code({ role: "viewer" })}`);
    await page.waitForSelector(".four");
    await visit(page, "workflows");
    const flow = '[data-flow="autopilot"]';
    await page.waitForSelector(`${flow} [data-stage="building"]:has-text("1 running")`);
    assert.equal(await page.locator(`${flow} [data-stage]`).count(), 7, "from allocated to merged, which is done");
    assert.ok(await page.locator(`${flow} path`).count() > 6);
    await page.click(`${flow} .btn:has-text("What moves a task")`);
    await page.waitForSelector(`${flow} tr:has-text("validation.failed"):has-text("or back to in_progress")`);
    await page.click(`${flow} [data-stage="building"]`);
    await page.waitForSelector('tr[data-id="flow-2"]');
    clear(page);
    await page.context().close();
  },
  async "older events are read on demand, and looked through for words"(browser) {
    const server = await serve();
    for (let i = 0; i < 3; i++) await server.call("POST", "/api/tasks/batch", { tasks: Array.from({ length: 300 }, (_, j) => ({ id: `old-${i * 300 + j}`, title: "old" })) });
    const page = await open(browser, `${server.url}/#k=${await server.code()}`, { at: server.url });
    await page.waitForSelector('[data-live]:has-text("Live")');
    await visit(page, "events");
    await page.fill("[data-search]", "old-17");
    await page.waitForSelector('.empty:has-text("Nothing like that since")');
    await page.click("[data-older]");
    await page.waitForSelector('.li:has-text("old-17")');
    await page.waitForSelector("text=This is how it began.");
    await page.fill("[data-search]", "");
    await page.waitForSelector('.head:has-text("since")');
    assert.ok(await page.locator(".li").count() > 300);
    await page.context().close();
    await server.end();
  },
  async "the server is stopped and started under an open page, which goes on by itself"(browser) {
    let server = await serve();
    const page = await open(browser, `${server.url}/#k=${await server.code()}`, { at: server.url });
    await page.waitForSelector('[data-live]:has-text("Live")');
    await visit(page, "tasks");
    await page.evaluate(() => { window.stayed = true; });
    await server.stop();
    await page.waitForSelector('[data-live]:has-text("Not live")');
    await page.waitForSelector(".note:visible");
    assert.match(await page.textContent(".note"), /No news from the server for .* This page shows \d\d:\d\d:\d\d/);
    server = await serve([], server.home, server.port);
    await server.call("POST", "/api/tasks", { id: "after-1", title: "Made after the restart" });
    await page.click(".note .btn");
    await page.waitForSelector('[data-live]:has-text("Live")');
    await page.waitForSelector('tr[data-id="after-1"], .pill.on .btn');
    assert.equal(await page.evaluate(() => window.stayed), true, "it was not loaded again: its files are the same");
    await page.context().close();
    await server.end();
  },
  async "two servers on one host have sessions of their own, and neither ends the other's"(browser) {
    const second = await serve(), first = await open(browser, `${url}/#k=${await code({ role: "viewer" })}`);
    await first.waitForSelector(".four");
    const other = await first.context().newPage();
    await other.goto(`${second.url}/#k=${await second.code()}`);
    await other.waitForSelector('[data-live]:has-text("Live")');
    await first.reload();
    await first.waitForSelector(".four");
    await other.reload();
    await other.waitForSelector('[data-live]:has-text("Live")');
    assert.deepEqual((await first.context().cookies()).map(cookie => cookie.name).sort(), [`stint_${new URL(url).port}`, `stint_${second.port}`].sort());
    await first.context().close();
    await second.end();
  },
  async "another port of the same host is sent the cookie, and it opens nothing"(browser) {
    const page = await open(browser, `${url}/#k=${await code()}`);
    await page.waitForSelector(".four");
    let stolen = "";
    const thief = createServer((request, reply) => { stolen = request.headers.cookie ?? stolen; reply.setHeader("Content-Type", "text/html"); reply.end("<title>dev server</title>"); });
    await new Promise(resolve => thief.listen(0, "127.0.0.1", resolve));
    const there = await page.context().newPage();
    await there.goto(`http://127.0.0.1:${thief.address().port}/`);
    assert.match(stolen, /^stint_\d+=/, "cookies know no port");
    for (const more of [{}, { "Stint-Page-Key": "A".repeat(22) }, { Origin: url, "Sec-Fetch-Site": "same-origin" }]) {
      assert.equal((await fetch(`${url}/api/version`, { headers: { Cookie: stolen, ...more } })).status, 401);
      assert.equal((await fetch(`${url}/api/tasks/wait-1/cancel`, { method: "POST", body: "{}", headers: { Cookie: stolen, "Content-Type": "application/json", ...more } })).status, 401);
    }
    const said = await there.evaluate(at => fetch(`${at}/api/version`, { credentials: "include" }).then(reply => reply.status, fault => String(fault)), url);
    assert.match(String(said), /Failed to fetch|401|403/);
    assert.equal((await api("GET", "/api/tasks/wait-1")).state, "ready");
    await page.context().close();
    await new Promise(resolve => thief.close(resolve));
  },
  async "a code that a child has taken says so to the person, and the child's session ends"(browser) {
    const taken = await code({ name: "mara" });
    const reply = await fetch(`${url}/api/login`, { method: "POST", body: JSON.stringify({ code: taken }), headers: { Origin: url, "Content-Type": "application/json" } });
    assert.equal(reply.status, 200);
    const mine = { Cookie: reply.headers.get("Set-Cookie").split(";")[0], "Stint-Page-Key": (await reply.json()).pageKey };
    assert.equal((await fetch(`${url}/api/version`, { headers: mine })).status, 200);
    const page = await open(browser, `${url}/#k=${taken}`);
    await page.waitForSelector(".login");
    assert.match(await page.textContent(".login"), /used before/);
    assert.equal((await fetch(`${url}/api/version`, { headers: mine })).status, 401, "the first session has ended");
    await page.context().close();
  },
  async "a deep link asks for a login, and leads there after it; the back button goes back"(browser) {
    const page = await open(browser, `${url}/#/task/run-1`);
    await page.waitForSelector(".login");
    await page.goto(`${url}/#k=${await code({ role: "viewer" })}`);
    await page.waitForSelector('.ttl:has-text("Move the retry table")');
    await page.click('.nav:has-text("Queues")');
    await page.waitForSelector('h1:has-text("Queues")');
    await page.goBack();
    await page.waitForSelector('.ttl:has-text("Move the retry table")');
    await page.reload();
    await page.waitForSelector('.ttl:has-text("Move the retry table")');
    clear(page);
    await page.context().close();
  },
  async "a browser whose clock is an hour wrong counts by the server's"(browser) {
    for (const wrong of [3600000, -3600000]) {
      const page = await open(browser, "about:blank");
      await page.clock.install({ time: Date.now() + wrong });
      await page.goto(`${url}/#k=${await code({ role: "viewer" })}`);
      await page.clock.runFor(1000);
      await page.waitForSelector(".four");
      const id = `clock-${wrong > 0 ? "ahead" : "behind"}`;
      await api("POST", "/api/tasks", { id, queue: "clocks", title: "Just now" });
      await visit(page, `task/${id}`);
      for (let i = 0; i < 5; i++) await page.clock.runFor(1000);
      await page.waitForSelector('dt:has-text("Created")');
      assert.match(await page.locator('dt:has-text("Created") + dd').textContent(), /^\d+.s ago$/u, "an age in seconds");
      await visit(page, "workers");
      await page.clock.runFor(1000);
      assert.match(await page.textContent('tr[data-id="vm-1"]'), /left of 5:00, (no beat yet|beat \d+.(s|min))/u);
      await page.context().close();
    }
  },
  async "by keyboard alone: from the first tab stop to a task and its button"(browser) {
    await api("POST", "/api/tasks", { id: "key-1", queue: "keys", title: "Reached by keys" });
    const page = await open(browser, `${url}/#k=${await code({ role: "operator" })}`);
    await page.waitForSelector(".four");
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement.id), "main");
    await page.keyboard.press("/");
    await page.waitForSelector("[data-search]");
    await page.keyboard.press("/");
    await page.keyboard.type("queue:keys");
    await page.keyboard.press("Enter");
    await page.waitForSelector('tr[data-id="key-1"]');
    await page.keyboard.press("Escape");
    await page.keyboard.press("j");
    await page.waitForSelector('tr.at[data-id="key-1"]');
    await page.keyboard.press("Enter");
    await page.waitForSelector('.ttl:has-text("Reached by keys")');
    const focused = () => page.evaluate(() => [document.activeElement.dataset.act ?? "", getComputedStyle(document.activeElement).outlineStyle]);
    for (let i = 0; (await focused())[0] !== "cancel"; i++) { assert.ok(i < 60, "Tab comes to every button"); await page.keyboard.press("Tab"); }
    assert.deepEqual(await focused(), ["cancel", "solid"], "and the focus is seen");
    assert.equal(await page.textContent(".foot code"), "stint cancel key-1");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".ttl .s-cancelled");
    await page.keyboard.press("?");
    await page.waitForSelector("dialog.help[open]");
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { state: "detached" });
    await page.keyboard.press("Escape");
    await page.waitForSelector('tr[data-id="key-1"], .empty');
    clear(page);
    await page.context().close();
  },
  async "behind HAProxy, beneath a path, the page works and asks for nothing outside of it"(browser) {
    let haproxy = "";
    for (const each of ["/usr/sbin/haproxy", "/usr/local/sbin/haproxy"]) if (existsSync(each)) haproxy = each;
    if (!haproxy) { console.log("skipped: page: haproxy is not installed"); return; }
    const port = await freePort(), front = `https://localhost:${port}/board/`, server = await serve(["--behind-proxy", "--set", `publicUrl=${front}`, "--set", "proxy.from=127.0.0.1"]);
    const pem = join(server.home, "proxy.pem"), key = join(server.home, "proxy.key"), config = join(server.home, "haproxy.cfg");
    execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", pem], { stdio: "ignore" });
    writeFileSync(pem, readFileSync(pem) + readFileSync(key));
    writeFileSync(config, `defaults\n  mode http\n  timeout connect 5s\n  timeout client 90s\n  timeout server 90s\nfrontend stint\n  bind 127.0.0.1:${port} ssl crt ${pem} alpn h2,http/1.1\n  option forwardfor\n  use_backend stint if { path /board } || { path_beg /board/ }\nbackend stint\n  server stint 127.0.0.1:${server.port}\n`);
    const proxy = spawn(haproxy, ["-db", "-f", config], { stdio: "ignore" });
    try {
      for (let i = 0; !(await new Promise(resolve => { const probe = spawn("openssl", ["s_client", "-connect", `127.0.0.1:${port}`, "-brief"], { stdio: ["ignore", "ignore", "ignore"] }); probe.on("exit", status => resolve(status === 0)); })); i++) assert.ok(i < 100, "HAProxy listens");
      const page = await open(browser, `${front}#k=${await server.code()}`, { at: front, ignoreHTTPSErrors: true });
      await page.waitForSelector('[data-live]:has-text("Live")');
      const [cookie] = await page.context().cookies();
      assert.deepEqual([cookie.name, cookie.path, cookie.secure, cookie.httpOnly, cookie.sameSite], ["__Secure-stint", "/board", true, true, "Strict"]);
      await visit(page, "tasks");
      await server.call("POST", "/api/tasks", { id: "proxied-1", title: "Seen through the proxy" });
      await page.waitForSelector('tr[data-id="proxied-1"], .pill.on .btn');
      await visit(page, "task/proxied-1");
      await page.click('[data-act="cancel"]');
      await page.waitForSelector(".ttl .s-cancelled");
      await page.reload();
      await page.waitForSelector(".ttl .s-cancelled");
      clear(page);
      await page.goto(front.slice(0, -1)); // without the slash
      await page.waitForSelector(".four");
      assert.ok(page.url().startsWith(front), page.url());
      await page.context().close();
    } finally {
      proxy.kill("SIGKILL");
      await server.end();
    }
  },
  async "a tab that is hidden for a minute has no stream, and has one again when it is looked at"(browser) {
    const page = await open(browser, "about:blank");
    await page.clock.install();
    const streams = new Set();
    page.on("request", request => { if (request.headers().accept === "text/event-stream") streams.add(request); });
    page.on("requestfailed", request => streams.delete(request));
    page.on("requestfinished", request => streams.delete(request));
    await page.goto(`${url}/#k=${await code({ role: "viewer" })}`);
    await page.clock.runFor(1000);
    await page.waitForSelector('[data-live]:has-text("Live")');
    const turn = hidden => page.evaluate(is => { Object.defineProperty(document, "hidden", { value: is, configurable: true }); document.dispatchEvent(new Event("visibilitychange")); }, hidden);
    assert.equal(streams.size, 1);
    await turn(true);
    await page.clock.runFor(59000);
    assert.equal(streams.size, 1, "a glance elsewhere ends nothing");
    const ends = page.waitForEvent("requestfailed");
    await page.clock.runFor(2000);
    await ends;
    assert.equal(streams.size, 0);
    const begins = page.waitForRequest(request => request.headers().accept === "text/event-stream");
    await turn(false);
    await begins;
    await page.context().close();
  },
  async "a tab that is older than its server loads itself again, once"(browser) {
    const page = await open(browser, "about:blank");
    let loads = 0, asked = 0, streams = 0;
    await page.route(`${url}/`, async route => {
      const reply = await route.fetch(), text = await reply.text();
      if (route.request().isNavigationRequest()) { loads++; await route.fulfill({ response: reply, body: text }); return; }
      asked++;
      await route.fulfill({ response: reply, body: text.replace(/app-[0-9a-f]+\.js/, "app-0123456789ab.js") });
    });
    // Each load sees its first stream end, as with a server that is updated.
    await page.route("**/api/events?*", route => route.request().headers().accept === "text/event-stream" && ++streams % 2 === 1
      ? route.fulfill({ status: 200, contentType: "text/event-stream", body: ": hello\n\n" }) : route.continue());
    await page.goto(`${url}/#k=${await code({ role: "viewer" })}`);
    for (let i = 0; asked < 2 && i < 100; i++) await page.waitForTimeout(100);
    await page.waitForSelector('[data-live]:has-text("Live")');
    await page.waitForTimeout(500);
    assert.deepEqual([asked, loads], [2, 2], "it asks after each silence, and loads itself again after the first");
    assert.equal(await page.locator(".four").count(), 1, "and it is where it was");
    await page.context().close();
  },
  async "a stream ends within a second when its session is revoked, on every tab"(browser) {
    const page = await open(browser, `${url}/#k=${await code({ name: "leaver", role: "viewer" })}`);
    await page.waitForSelector('[data-live]:has-text("Live")');
    const other = await page.context().newPage();
    await other.goto(`${url}/#/queues`);
    await other.waitForSelector('[data-live]:has-text("Live")');
    const [mine] = (await api("GET", "/api/logins")).filter(row => row.name === "leaver" && row.state === "open");
    await api("DELETE", `/api/logins/${mine.id}`, {});
    const began = Date.now();
    await Promise.all([page, other].map(each => each.waitForSelector(".login")));
    console.log(`page: revoked in ${Date.now() - began} ms`);
    await page.context().close();
  },
  async "every page fits into 360 pixels"(browser) {
    const page = await open(browser, `${url}/#k=${await code()}`, { viewport: { width: 360, height: 740 } });
    await page.waitForSelector(".four");
    for (const where of pages.filter(p => p !== "board")) {
      await visit(page, where);
      await page.waitForTimeout(200);
      const [wide, room] = await page.evaluate(() => { const m = document.getElementById("main"); return [m.scrollWidth, m.clientWidth]; });
      assert.ok(wide <= room, `${where}: ${wide} of ${room}`);
    }
    clear(page);
    await page.context().close();
  },
  async "the palette finds a task and the back button comes back"(browser) {
    const page = await open(browser, `${url}/#k=${await code()}`);
    await page.waitForSelector(".four");
    await page.keyboard.press("Control+k");
    await page.waitForSelector("dialog.pal input:focus"); // keys go to the page until the palette is open
    await page.keyboard.type("folded");
    await page.waitForSelector('#found li:has-text("Refuse folded")');
    await page.keyboard.press("Enter");
    await page.waitForSelector(".ttl");
    await page.goBack();
    await page.waitForSelector(".four");
    clear(page);
    await page.context().close();
  },
};

/** The names of all actions, out of the script that the browser gets. */
async function actionNames() {
  const html = await (await fetch(`${url}/`, { headers: { Accept: "text/html" } })).text();
  const script = await (await fetch(`${url}/${/assets\/app-[0-9a-f]+\.js/.exec(html)[0]}`)).text();
  const names = [...script.matchAll(/([A-Za-z]+):(?:\{label:"[^"]*",role:"|[\w$]+\("[a-z]+","[A-Z][a-z]+"\))/g)].map(found => found[1]);
  assert.ok(names.includes("cancel") && names.includes("bulkPurge") && names.length > 35, `the actions of the script: ${names}`);
  return names;
}

async function takeShots(browser) {
  mkdirSync(shots, { recursive: true });
  for (const theme of ["light", "dark"]) {
    for (const width of [1440, 1024, 390]) {
      const page = await open(browser, `${url}/#k=${await code({ role: "operator" })}`, { viewport: { width, height: width < 500 ? 844 : 900 }, colorScheme: theme });
      await page.waitForSelector(".four");
      for (const where of pages.filter(each => each.includes(only))) {
        await visit(page, where);
        await page.waitForTimeout(400);
        await page.screenshot({ path: `${shots}/${where.replace("/", "-")}-${width}-${theme}.png` });
      }
      await page.context().close();
    }
  }
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
try {
  if (shots) await furnish();
  await fill();
  pass(60);
  if (shots) await takeShots(browser);
  else {
    for (const [name, check] of Object.entries(long ? { ...checks, ...longer } : checks).filter(([each]) => each.includes(only))) {
      const began = Date.now();
      try {
        await check(browser);
      } catch (fault) {
        console.error(`page: ${name}: ${fault.stack ?? fault}`);
        for (const [i, each] of browser.contexts().flatMap(context => context.pages()).entries()) { // what it looked like then
          if (failed) await each.screenshot({ path: `${failed}-${i}.png` }).catch(() => {});
          console.error(`page: then at ${each.url().replace(url, "")}: ${(each.faults ?? []).join("; ")}`);
          await each.context().close();
        }
        process.exitCode = 1;
        continue;
      }
      console.log(`page: ${name} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
    }
    if (long && !only) {
      const missing = (await actionNames()).filter(name => !pressed.has(name));
      if (missing.length) { console.error(`page: no check presses ${missing.join(", ")}`); process.exitCode = 1; }
    }
  }
} finally {
  await browser.close();
  for (const server of servers) await server.end();
}
