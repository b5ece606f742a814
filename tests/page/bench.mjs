// What a large server costs the page: 100,000 open tasks, 1,000 workers, 200 events a second. Prints figures beside their bars and judges none
// (./dev bench page). A task of the page is what keeps its thread: the browser tells of each that is longer than 50 ms.
import { createRequire } from "node:module";

const modules = createRequire(process.env.PAGE_MODULES + "/");
const { chromium } = modules("playwright-core");
const { STINT_URL: url, STINT_TOKEN: token, PAGE_BENCH: wanted } = process.env;
const [TASKS, WORKERS, EVENTS_A_SECOND, SECONDS] = (wanted || "100000,1000,200,20").split(",").map(Number);
const BATCH = 1000;

const api = async (method, path, body) => {
  const reply = await fetch(url + path, { method, headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" }, body: body && JSON.stringify(body) });
  const value = await reply.json();
  if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${JSON.stringify(value)}`);
  return value;
};
const nth = (list, share) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * share))] ?? 0;
const say = (what, got, bar) => console.log(`page: ${what.padEnd(44)} ${String(got).padStart(9)}   ${bar}`);

async function fill() {
  for (let at = 0; at < TASKS; at += BATCH) {
    await api("POST", "/api/tasks/batch", { tasks: Array.from({ length: Math.min(BATCH, TASKS - at) }, (_, i) => ({ title: `Port file ${at + i} of the parser`, queue: `queue-${(at + i) % 20}`, labels: ["port"] })) });
  }
  for (let i = 0; i < WORKERS; i++) await api("POST", "/api/workers/register", { workerId: `worker-${i}`, host: `host-${i % 40}`, executors: ["shell"], maxConcurrent: 4, leaseMs: 3600000 });
}

/** Four events for a task: created, claimed, confirmed and completed. */
async function live(until) {
  const pause = 4000 / EVENTS_A_SECOND;
  for (let i = 0, next = Date.now(); Date.now() < until.at; i++, next += pause) {
    const task = await api("POST", "/api/tasks", { title: `Live ${i}`, queue: "live", priority: "high" });
    const { fence } = await api("POST", `/api/tasks/${task.id}/claim`, { workerId: `worker-${i % WORKERS}`, leaseMs: 600000 });
    await api("POST", `/api/tasks/${task.id}/progress`, { workerId: `worker-${i % WORKERS}`, fence, note: `step ${i}` });
    await api("POST", `/api/tasks/${task.id}/complete`, { workerId: `worker-${i % WORKERS}`, fence });
    if (next > Date.now()) await new Promise(resolve => setTimeout(resolve, next - Date.now()));
  }
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage", "--enable-precise-memory-info"] });
try {
  await fill();
  const { code } = await api("POST", "/api/tokens", { kind: "login", name: "bench" });
  const page = await (await browser.newContext({ viewport: { width: 1440, height: 900 } })).newPage();
  await page.addInitScript(() => {
    window.long = []; window.shift = 0; window.moved = new Set(); window.frames = [];
    new PerformanceObserver(list => list.getEntries().forEach(entry => window.long.push(entry.duration))).observe({ type: "longtask", buffered: true });
    new PerformanceObserver(list => list.getEntries().forEach(entry => { if (!entry.hadRecentInput) { window.shift += entry.value; entry.sources.forEach(source => window.moved.add(`${source.node?.nodeName ?? "?"}.${source.node?.className ?? ""}`)); } })).observe({ type: "layout-shift", buffered: true });
  });
  await page.goto(`${url}/#k=${code}`);
  await page.waitForSelector(".four");
  const until = { at: Date.now() + SECONDS * 1000 * 3 + 60000 }, feed = live(until);
  for (const where of ["overview", "tasks", "workers"]) {
    await page.evaluate(hash => { location.hash = "#/" + hash; }, where);
    await page.waitForTimeout(3000);
    await page.evaluate(() => { window.long.length = 0; window.shift = 0; window.moved.clear(); });
    await page.waitForTimeout(SECONDS * 1000);
    const [long, shift] = await page.evaluate(() => [window.long, window.shift]);
    say(`${where}: longest task in ${SECONDS} s, ms`, Math.round(Math.max(0, ...long)), "≤ 200");
    say(`${where}: layout shift`, shift.toFixed(4), shift ? `0; moved: ${(await page.evaluate(() => [...window.moved])).slice(0, 6).join(", ")}` : "0");
  }
  await page.evaluate(() => { location.hash = "#/tasks"; });
  await page.waitForSelector("tr[data-id]");
  const { frames, rows } = await page.evaluate(async seconds => {
    const main = document.getElementById("main"), frames = [], end = performance.now() + seconds * 1000;
    window.long.length = 0;
    for (let last = performance.now(); last < end;) {
      await new Promise(requestAnimationFrame);
      const now = performance.now();
      frames.push(now - last);
      last = now;
      main.scrollTop += 120;
    }
    return { frames, rows: document.querySelectorAll("tr[data-id]").length };
  }, SECONDS);
  say("scrolling: 19 of 20 frames, ms", nth(frames, 0.95).toFixed(1), "≤ 50");
  say("scrolling: longest task, ms", Math.round(Math.max(0, ...await page.evaluate(() => window.long))), "≤ 200");
  say("rows in the table at a time", rows, "");
  await page.evaluate(async () => { // to the end of the list, as fast as it is read
    const main = document.getElementById("main");
    for (let still = 0, last = 0; still < 40;) {
      main.scrollTop = main.scrollHeight;
      await new Promise(resolve => setTimeout(resolve, 50));
      if (main.scrollHeight > last) { last = main.scrollHeight; still = 0; } else still++;
    }
  });
  const reached = await page.evaluate(() => Math.round(document.querySelector("table.t").offsetHeight / 36));
  say("rows that were scrolled through", reached, `${TASKS}`);
  say("longest task meanwhile, ms", Math.round(Math.max(0, ...await page.evaluate(() => window.long))), "≤ 200");
  const client = await page.context().newCDPSession(page);
  await client.send("HeapProfiler.collectGarbage");
  say("heap, MB", Math.round(await page.evaluate(() => performance.memory.usedJSHeapSize) / 1048576), "≤ 150");
  until.at = 0;
  await feed;
} finally {
  await browser.close();
}
