"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (selector) => document.querySelector(selector);
  const all = (selector, root) => Array.from((root || document).querySelectorAll(selector));

  // The leaderboard: sorting by a heading, filtering by name, choosing columns.
  const table = $("#board");
  const body = table.tBodies[0];
  const heads = all("thead th", table);
  const reversed = { ascending: "descending", descending: "ascending", other: "other" };

  function sortBy(column) {
    const head = heads[column];
    const again = head.hasAttribute("aria-sort") && !head.classList.contains("reversed");
    heads.forEach((other) => { other.removeAttribute("aria-sort"); other.classList.remove("reversed"); });
    head.setAttribute("aria-sort", again ? reversed[head.dataset.best] : head.dataset.best);
    head.classList.toggle("reversed", again);
    const sign = again ? -1 : 1;
    // In either order incomplete runs follow the complete ones, and runs without a value come last.
    const rank = (cell) => (cell.dataset.value === undefined ? 2 : cell.dataset.incomplete === undefined ? 0 : 1);
    const key = (cell) => Number(cell.dataset.cost ?? -cell.dataset.value);  // a count has no cost
    const rows = Array.from(body.rows).sort((a, b) => {
      if (!column) return sign * a.dataset.name.localeCompare(b.dataset.name, "en", { numeric: true });
      const [x, y] = [a.cells[column], b.cells[column]];
      return rank(x) - rank(y) || (rank(x) < 2 ? sign * (key(x) - key(y)) : 0);
    });
    body.append(...rows);
  }
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => sortBy(column)));

  function filter() {
    const wanted = $("#filter").value.trim().toLowerCase();
    const rows = Array.from(body.rows);
    rows.forEach((row) => { row.hidden = !row.dataset.name.toLowerCase().includes(wanted); });
    const count = rows.filter((row) => !row.hidden).length;
    $("#count").textContent = wanted ? `${count} of ${rows.length} runs` : `${rows.length} run${rows.length === 1 ? "" : "s"}`;
  }
  $("#filter").addEventListener("input", filter);

  all(".chooser input").forEach((box) => box.addEventListener("change", () => {
    all("tr", table).forEach((row) => { row.cells[Number(box.dataset.column)].hidden = !box.checked; });
  }));

  // Drawing uses createElementNS and textContent only, so that a name is always text.
  function make(parent, name, attributes, text) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.entries(attributes || {}).forEach(([key, value]) => element.setAttribute(key, value));
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  }
  const minus = (text) => text.replace("-", "−");
  const number = (x, places = 4) => (x === null ? "–" : minus(Number(x.toFixed(places)) ? x.toFixed(places) : Math.abs(x).toFixed(places)));
  const signed = (x, places = 4) => (x > 0 && Number(x.toFixed(places)) ? "+" : "") + number(x, places);
  const short = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);

  function ticks(low, high) {
    const raw = (high - low) / 5 || 1;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= raw * 0.999);
    const values = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) values.push(Number((k * step).toPrecision(12)));
    return { values, places: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
  }

  // Tab reaches one item; the arrow keys, Home and End move between items.
  function roving(items, show) {
    items.forEach((item, place) => {
      item.setAttribute("tabindex", place ? "-1" : "0");
      item.addEventListener("focus", () => show(item));
      item.addEventListener("pointerenter", () => show(item));
      item.addEventListener("keydown", (event) => {
        const last = items.length - 1;
        const to = { ArrowRight: place + 1, ArrowDown: place + 1, ArrowLeft: place - 1, ArrowUp: place - 1, Home: 0, End: last }[event.key];
        if (to === undefined || !items[to]) return;
        event.preventDefault();
        item.setAttribute("tabindex", "-1");
        items[to].setAttribute("tabindex", "0");
        items[to].focus();
      });
    });
  }

  function options(select, texts, chosen) {
    texts.forEach(([value, text]) => {
      const option = document.createElement("option");
      option.value = value;
      option.textContent = text;
      option.selected = value === chosen;
      select.append(option);
    });
  }
  const measureNames = data.measures.map((m, i) => [i, `${m.name} ${m.arrow}`]);
  const compared = (measure, value) => (measure.target === null ? value : Math.abs(value - measure.target));
  const hasBest = (measure) => measure.sign !== 0;  // counts have no better and worse

  // The plane of two measures.
  const plane = $("#plane");
  function drawPlane() {
    const [mx, my] = [Number($("#plane-x").value), Number($("#plane-y").value)];
    const [a, b] = [data.measures[mx], data.measures[my]];
    const points = data.runs.map((name, r) => ({
      r, name, x: data.means[r][mx], y: data.means[r][my],
      costs: [data.costs[r][mx], data.costs[r][my]],
      xs: [data.low[r][mx], data.high[r][mx]], ys: [data.low[r][my], data.high[r][my]],
      incomplete: data.incomplete[r][mx] || data.incomplete[r][my],
    })).filter((p) => p.x !== null && p.y !== null);
    plane.replaceChildren();
    if (!points.length) { make(plane, "text", { x: 30, y: 40 }, "No run has a value on both measures."); return; }
    points.forEach((p) => {
      p.front = hasBest(a) && hasBest(b) && !p.incomplete && !points.some((q) => {
        if (q.incomplete) return false;
        const [dx, dy] = [q.costs[0] - p.costs[0], q.costs[1] - p.costs[1]];
        return dx <= 0 && dy <= 0 && (dx < 0 || dy < 0);
      });
    });
    const range = (values) => {
      const known = values.filter((v) => v !== null);
      const [low, high] = [Math.min(...known), Math.max(...known)];
      const pad = (high - low) * 0.06 || 0.05;
      return [low - pad, high + pad];
    };
    const [x0, x1] = range(points.flatMap((p) => [p.x, ...p.xs]));
    const [y0, y1] = range(points.flatMap((p) => [p.y, ...p.ys]));
    const box = { left: 62, right: 846, top: 14, bottom: 412 };
    const px = (v) => box.left + (v - x0) / (x1 - x0) * (box.right - box.left);
    const py = (v) => box.bottom - (v - y0) / (y1 - y0) * (box.bottom - box.top);
    const across = ticks(x0, x1);
    const up = ticks(y0, y1);
    across.values.forEach((v) => {
      make(plane, "line", { class: "grid", x1: px(v), x2: px(v), y1: box.top, y2: box.bottom });
      make(plane, "text", { class: "tick", x: px(v), y: box.bottom + 16, "text-anchor": "middle" }, number(v, across.places));
    });
    up.values.forEach((v) => {
      make(plane, "line", { class: "grid", x1: box.left, x2: box.right, y1: py(v), y2: py(v) });
      make(plane, "text", { class: "tick", x: box.left - 6, y: py(v) + 4, "text-anchor": "end" }, number(v, up.places));
    });
    make(plane, "text", { x: (box.left + box.right) / 2, y: 450, "text-anchor": "middle" }, `${a.name} ${a.arrow}`);
    make(plane, "text", { x: 0, y: 0, "text-anchor": "middle", transform: `translate(15 ${(box.top + box.bottom) / 2}) rotate(-90)` }, short(`${b.name} ${b.arrow}`, 60));
    points.forEach((p) => {
      if (p.xs[0] !== null) make(plane, "line", { class: "cross", x1: px(p.xs[0]), x2: px(p.xs[1]), y1: py(p.y), y2: py(p.y) });
      if (p.ys[0] !== null) make(plane, "line", { class: "cross", x1: px(p.x), x2: px(p.x), y1: py(p.ys[0]), y2: py(p.ys[1]) });
    });
    const front = points.filter((p) => p.front).sort((p, q) => p.costs[0] - q.costs[0]);
    make(plane, "polyline", { class: "front", points: front.map((p) => `${px(p.x)},${py(p.y)}`).join(" ") });
    const taken = points.map((p) => [px(p.x) - 6, py(p.y) - 6, px(p.x) + 6, py(p.y) + 6]);
    const overlap = (s, t) => Math.max(0, Math.min(s[2], t[2]) - Math.max(s[0], t[0])) * Math.max(0, Math.min(s[3], t[3]) - Math.max(s[1], t[1]));
    const named = (p) => points.length <= 14 || p.front || p.r === data.baseline || data.references.includes(p.r);
    const items = [...points].sort((p, q) => p.x - q.x).map((p) => {
      const kind = p.r === data.baseline ? "base" : data.references.includes(p.r) ? "ref" : "run";
      const text = `${p.name}${kind === "base" ? " (baseline)" : kind === "ref" ? " (reference policy)" : ""}: ${a.name} ${number(p.x)}, ${b.name} ${number(p.y)}${p.front ? "; on the Pareto front" : ""}${p.incomplete ? "; incomplete" : ""}`;
      const item = make(plane, "g", { class: p.incomplete ? `${kind} hollow` : kind, role: "img", "aria-label": text, "data-run": p.r, "data-front": p.front });
      make(item, "title", {}, text);
      const [x, y] = [px(p.x), py(p.y)];
      if (kind === "base") make(item, "rect", { class: "point", x: x - 5, y: y - 5, width: 10, height: 10 });
      else if (kind === "ref") make(item, "path", { class: "point", d: `M${x} ${y - 7}L${x + 7} ${y}L${x} ${y + 7}L${x - 7} ${y}Z` });
      else make(item, "circle", { class: "point", cx: x, cy: y, r: 5.5 });
      if (named(p)) {
        const label = short(p.name, 26);
        const width = 6.6 * label.length;
        const places = [[9, -5, "start"], [9, 14, "start"], [-9, -5, "end"], [-9, 14, "end"], [0, -11, "middle"], [0, 21, "middle"]].map(([dx, dy, anchor]) => {
          const left = x + dx - (anchor === "end" ? width : anchor === "middle" ? width / 2 : 0);
          const spot = [left, y + dy - 10, left + width, y + dy + 3];
          const out = Math.max(0, box.left - spot[0]) + Math.max(0, spot[2] - box.right) + Math.max(0, spot[3] - box.bottom);
          return { dx, dy, anchor, spot, bad: taken.reduce((sum, other) => sum + overlap(spot, other), 0) + 40 * out };
        });
        const best = places.reduce((p1, p2) => (p2.bad < p1.bad ? p2 : p1));
        if (best.bad < 0.3 * width * 13) {  // a name that would cover others is left out: it is shown when the run is pointed at
          taken.push(best.spot);
          make(item, "text", { x: x + best.dx, y: y + best.dy, "text-anchor": best.anchor }, label);
        }
      }
      return item;
    });
    roving(items, (item) => { $("#plane-readout").textContent = item.getAttribute("aria-label"); });
  }
  if (plane && data.across !== null && data.up !== null) {
    options($("#plane-x"), measureNames, data.across);
    options($("#plane-y"), measureNames, data.up);
    ["#plane-x", "#plane-y"].forEach((select) => $(select).addEventListener("change", drawPlane));
    reveal(plane);
    drawPlane();
  }

  // Close the static picture, which is for readers without JavaScript.
  function reveal(chart) {
    const part = chart.closest(".interactive");
    part.hidden = false;
    part.closest("section").querySelectorAll("details.static").forEach((details) => { details.open = false; });
  }

  // Gains over the baseline, topic by topic.
  const bars = $("#bars");
  function drawBars() {
    const [r, m] = [Number($("#bars-run").value), Number($("#bars-measure").value)];
    const measure = data.measures[m];
    const [mine, base] = [data.values[r][m], data.values[data.baseline][m]];
    const topics = data.topics.map((topic, t) => {
      if (mine[t] === null || base[t] === null) return null;
      const gain = measure.sign * (compared(measure, mine[t]) - compared(measure, base[t]));
      return { topic, value: mine[t], base: base[t], gain: Math.abs(gain) < 1e-6 ? 0 : gain };
    }).filter((item) => item !== null);
    const sorted = [...topics].sort((p, q) => q.gain - p.gain);
    const total = topics.reduce((sum, item) => sum + item.gain, 0);
    const mean = topics.length ? total / topics.length : null;
    bars.replaceChildren();
    const low = Math.min(0, ...sorted.map((item) => item.gain));
    const high = Math.max(0, ...sorted.map((item) => item.gain));
    const box = { left: 62, right: 850, top: 12, bottom: 232 };
    const span = high - low || 1;
    const py = (v) => box.bottom - (v - low + 0.03 * span) / (1.06 * span) * (box.bottom - box.top);
    const scale = ticks(low, high);
    scale.values.forEach((v) => {
      make(bars, "line", { class: "grid", x1: box.left, x2: box.right, y1: py(v), y2: py(v) });
      make(bars, "text", { class: "tick", x: box.left - 6, y: py(v) + 4, "text-anchor": "end" }, signed(v, scale.places));
    });
    const step = (box.right - box.left) / Math.max(1, sorted.length);
    const items = sorted.map((item, place) => {
      const text = `${item.topic}: gain ${signed(item.gain)} (${number(item.value)}, baseline ${number(item.base)})`;
      const top = Math.min(py(item.gain), py(0));
      const bar = make(bars, "rect", {
        class: `bar ${item.gain < 0 ? "down" : "up"}`, role: "img", "aria-label": text,
        x: box.left + place * step + step * 0.1, width: step * 0.8, y: top, height: Math.max(1.5, Math.abs(py(item.gain) - py(0))),
      });
      make(bar, "title", {}, text);
      return bar;
    });
    make(bars, "line", { class: "zero", x1: box.left, x2: box.right, y1: py(0), y2: py(0) });
    if (mean !== null) make(bars, "line", { class: "mean", x1: box.left, x2: box.right, y1: py(mean), y2: py(mean) });
    make(bars, "text", { class: "tick", x: box.left, y: 250 }, `${topics.length} topics, the largest gain first; dotted: mean gain ${mean === null ? "–" : signed(mean)}`);
    roving(items, (item) => { $("#bars-readout").textContent = item.getAttribute("aria-label"); });
    showDrivers(r, measure, topics, total);
    all("#tests tbody tr").forEach((row) => { row.hidden = row.dataset.measure !== measure.name; });
  }

  function tipping(gains, total) {
    if (!gains.length || total === 0) return null;
    const pulling = gains.map((gain) => gain * Math.sign(total)).sort((p, q) => q - p);
    let [rest, count] = [Math.abs(total), 0];
    for (const gain of pulling) {
      if (rest <= 1e-9 || gain <= 0) break;
      rest -= gain;
      count += 1;
    }
    return count;
  }

  function showDrivers(r, measure, topics, total) {
    const counts = [topics.filter((i) => i.gain > 0).length, topics.filter((i) => i.gain === 0).length, topics.filter((i) => i.gain < 0).length];
    const few = tipping(topics.map((item) => item.gain), total);
    const count = (n) => `${n} topic${n === 1 ? "" : "s"}`;
    $("#drivers-text").textContent = `${data.runs[r]}, ${measure.name}: mean gain ${topics.length ? signed(total / topics.length) : "–"}; `
      + `better on ${counts[0]}, same on ${counts[1]}, worse on ${counts[2]} of ${count(topics.length)}.`
      + (few === null ? "" : ` Without the ${count(few)} with the largest effect, the sign of the mean gain would change.`);
    const largest = topics.filter((item) => item.gain).sort((p, q) => Math.abs(q.gain) - Math.abs(p.gain)).slice(0, 8);
    const rows = largest.map((item) => {
      const row = document.createElement("tr");
      const head = document.createElement("th");
      head.scope = "row";
      const name = document.createElement("bdi");
      name.textContent = short(item.topic, 60);
      head.append(name);
      row.append(head);
      const rest = topics.length > 1 ? signed((total - item.gain) / (topics.length - 1)) : "–";
      [number(item.value), number(item.base), signed(item.gain), rest].forEach((text) => { row.insertCell().textContent = text; });
      return row;
    });
    $("#drivers").tBodies[0].replaceChildren(...rows);
  }

  const withValues = data.order.filter((r) => data.values[r] !== null && r !== data.baseline);
  if (bars && withValues.length) {
    options($("#bars-run"), withValues.map((r) => [r, data.runs[r]]), data.focus);
    options($("#bars-measure"), measureNames, data.byTopic);
    ["#bars-run", "#bars-measure"].forEach((select) => $(select).addEventListener("change", drawBars));
    reveal(bars);
    drawBars();
  }

  // Everything is open on paper.
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = all("details:not([open])").filter((details) => !details.matches(".chooser, .static"));
    closed.forEach((details) => { details.open = true; });
  });
  window.addEventListener("afterprint", () => closed.forEach((details) => { details.open = false; }));
})();
