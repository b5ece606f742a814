// A plot over time: ink lines, labels at the right, the value under the pointer in the heading. And the same as a table.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { theme } from "../live/state.js";
import { Button, html } from "./parts.js";
import { clock, exact, thousands } from "./text.js";

/** @typedef {{ name: string, words: (value: number | null) => string, kind: "line" | "dashed" | "marks" }} Series */

/** Canvas knows no light-dark(): the colour as the browser computed it. @param {string} name */
function colour(name) {
  const probe = document.createElement("i");
  probe.className = "probe";
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

const HEIGHT = 148;

/** A point between two gaps is no line: it is drawn as a dot. @param {any} u @param {number} index @returns {number[]} */
const alone = (u, index) => u.data[index].flatMap((/** @type {number | null} */ value, /** @type {number} */ i, /** @type {any[]} */ all) =>
  value !== null && (all[i - 1] ?? null) === null && (all[i + 1] ?? null) === null ? [i] : []);

/** @param {number[]} at @param {Series[]} series @param {(value: number) => string} unit @param {number} width @param {(i: number | null) => void} onCursor @returns {any} */
function options(at, series, unit, width, onCursor) {
  const ink = colour("ink"), quiet = colour("ink3"), line = colour("line"), bad = colour("bad-f"), fill = colour("hover");
  const font = `11px ${getComputedStyle(document.body).fontFamily}`;
  const span = at[at.length - 1] - at[0];
  return {
    width, height: HEIGHT, legend: { show: false }, padding: [10, 0, 0, 0],
    cursor: { y: false, points: { show: false }, drag: { setScale: false, x: false, y: false } },
    hooks: { setCursor: [(/** @type {any} */ u) => onCursor(u.cursor.idx ?? null)] },
    scales: { x: { time: false }, y: { range: (/** @type {any} */ _u, /** @type {number} */ _min, /** @type {number} */ max) => [0, Math.max(1, max) * 1.1] } },
    axes: [
      { stroke: quiet, font, size: 24, grid: { show: false }, ticks: { show: false },
        splits: () => [0.04, 0.27, 0.5, 0.73, 0.96].map(share => at[0] + share * span),
        values: (/** @type {any} */ _u, /** @type {number[]} */ all) => all.map(value => span > 86400000 ? new Date(value).toLocaleString("en", { weekday: "short" }) : clock(value).slice(-5)) },
      { side: 1, stroke: quiet, font, size: 52, gap: 8, space: 34, grid: { stroke: line, width: 1 }, ticks: { show: false },
        values: (/** @type {any} */ _u, /** @type {number[]} */ all) => all.map(value => value === 0 ? "" : unit(value)) },
    ],
    series: [{}, ...series.map(one => one.kind === "marks"
      ? { stroke: bad, width: 0, points: { show: false }, paths: marks(bad) }
      : { stroke: one.kind === "line" ? ink : quiet, width: 1.5, dash: one.kind === "dashed" ? [3, 3] : undefined, points: { show: true, size: 4, width: 0, fill: one.kind === "line" ? ink : quiet, filter: alone }, fill: one.kind === "line" && !series.some(s => s.kind === "dashed") ? fill : undefined })],
  };
}

/** What failed: a mark at the base where there was any. @param {string} bad */
const marks = bad => (/** @type {any} */ u, /** @type {number} */ index) => {
  const { ctx } = u, base = u.bbox.top + u.bbox.height, ratio = uPlot.pxRatio;
  ctx.save();
  ctx.fillStyle = bad;
  u.data[index].forEach((/** @type {number | null} */ value, /** @type {number} */ i) => {
    if (value) ctx.fillRect(u.valToPos(u.data[0][i], "x", true) - 1.5 * ratio, base - 9 * ratio, 3 * ratio, 9 * ratio);
  });
  ctx.restore();
  return null;
};

/** @param {{ name: string, at: number[], values: (number | null)[][], series: Series[], unit: (value: number) => string, stands: string, children?: any }} props */
export function Plot({ name, at, values, series, unit, stands, children }) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const plot = useRef(/** @type {any} */ (null));
  const [under, setUnder] = useState(/** @type {number | null} */ (null));
  const [table, setTable] = useState(false);
  const shade = theme.value;
  useLayoutEffect(() => {
    const box = place.current;
    if (!box || table || at.length < 2) return undefined;
    const made = plot.current = new uPlot(options(at, series, unit, box.clientWidth, setUnder), [at, ...values], box);
    const watch = new ResizeObserver(() => { if (box.clientWidth > 0 && box.clientWidth !== made.width) made.setSize({ width: box.clientWidth, height: HEIGHT }); });
    watch.observe(box);
    return () => { watch.disconnect(); plot.current = null; made.destroy(); };
  }, [table, shade, at.length, at[1] - at[0]]);
  useEffect(() => { plot.current?.setData([at, ...values]); }, [at, values]);
  const said = under !== null && at[under] !== undefined ? `${clock(at[under])}: ${series.map((one, i) => one.words(values[i][under])).join(", ")}` : stands;
  const rows = table ? at.map((time, i) => ({ time, i })).filter(({ i }) => values.some(list => list[i])).reverse() : [];
  return html`<section class="c6"><h2 class="h2 plot-h"><span>${name}</span>${series.map(one => html`<span class="key" key=${one.name}><i class=${"k-" + one.kind}></i>${one.name}</span>`)}
      <span class="end q cut" data-said>${said}</span>${children}<${Button} bare class="hs" aria-pressed=${table ? "true" : "false"} onClick=${() => setTable(!table)}>Data<//></h2>
    ${table ? html`<div class="data" tabindex="0"><table class="t"><thead><tr><th>From</th>${series.map(one => html`<th class="num" key=${one.name}>${one.name}</th>`)}</tr></thead><tbody>${rows.map(({ time, i }) =>
      html`<tr key=${time}><td title=${exact(time)}>${clock(time)}</td>${series.map((one, s) => html`<td class="num" key=${one.name}>${values[s][i] === null ? "–" : one.kind === "marks" ? thousands(values[s][i] ?? 0) : unit(values[s][i] ?? 0)}</td>`)}</tr>`)}</tbody></table>${rows.length ? null : html`<p class="q pt">Nothing happened in this time.</p>`}</div>`
    : html`<div class="chart" ref=${place} role="img" aria-label=${`${name}: ${stands}`}></div>`}</section>`;
}
