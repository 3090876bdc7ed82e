// The plane of two measures, with the Pareto front.
{
  const { $, svg, number, short, ticks, roving, options, chart, reveal, measures } = draw;
  const plane = $("#plane");
  const REACH = matchMedia("(pointer: coarse)").matches ? 20 : 14;  // of a finger, and of a mouse
  const HINT = "Point at a run, or move to it with Tab and the arrow keys; Enter chooses it.";

  const overlap = (s, t) => Math.max(0, Math.min(s[2], t[2]) - Math.max(s[0], t[0])) * Math.max(0, Math.min(s[3], t[3]) - Math.max(s[1], t[1]));

  // The runs with both values, and whether no complete run is better on both.
  function points() {
    const { x: mx, y: my } = state.now;
    const { means, costs, low, high, incomplete } = state.part();
    const found = data.runs.map((name, r) => ({
      r, name, x: means[r][mx], y: means[r][my],
      costs: [costs[r][mx], costs[r][my]],
      xs: [low[r][mx], high[r][mx]], ys: [low[r][my], high[r][my]],
      incomplete: incomplete[r][mx] || incomplete[r][my],
      chosen: state.now.runs.indexOf(r),
      shown: state.matches(r),
    })).filter((p) => p.x !== null && p.y !== null);
    const directed = [mx, my].every((m) => data.measures[m].sign !== 0);
    found.forEach((p) => {
      p.front = directed && !p.incomplete && !found.some((q) => {
        if (q.incomplete) return false;
        const [dx, dy] = [q.costs[0] - p.costs[0], q.costs[1] - p.costs[1]];
        return dx <= 0 && dy <= 0 && (dx < 0 || dy < 0);
      });
    });
    return found;
  }

  function range(values) {
    const known = values.filter((v) => v !== null);
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const pad = (high - low) * 0.06 || 0.05;
    // A scale that nearly reaches 0 starts there.
    return [low >= 0 && low - pad < 0.15 * high ? 0 : low - pad, high + pad];
  }

  // A line between runs would go through points that no run reaches: the front is a staircase.
  function staircase(front, px, py, box) {
    const [a, b] = [data.measures[state.now.x], data.measures[state.now.y]];
    if (!front.length || a.target !== null || b.target !== null) return;
    const steps = [...front].sort((p, q) => p.costs[0] - q.costs[0]);
    const worst = [a.sign > 0 ? box.left : box.right, b.sign > 0 ? box.bottom : box.top];
    const line = [[px(steps[0].x), worst[1]], [px(steps[0].x), py(steps[0].y)]];
    steps.slice(1).forEach((q, at) => line.push([px(q.x), py(steps[at].y)], [px(q.x), py(q.y)]));
    line.push([worst[0], py(steps.at(-1).y)]);
    svg(plane, "polyline", { class: "front", points: line.map((point) => point.join(",")).join(" ") });
  }

  function axis(name, from) {
    return from === 0 ? name : `${name} (axis from ${number(from, 2)}, not 0)`;
  }

  function render(width, height) {
    const [a, b] = [data.measures[state.now.x], data.measures[state.now.y]];
    const found = points();
    $("#plane-readout").textContent = HINT;
    if (!found.length) { svg(plane, "text", { x: 30, y: 40 }, "No run has a value on both measures."); return; }
    // With many runs, only the intervals of those that the reader has chosen.
    const crossed = (p) => p.chosen >= 0 || (found.length <= 14 && p.shown);
    const [x0, x1] = range(found.flatMap((p) => [p.x, ...(crossed(p) ? p.xs : [])]));
    const [y0, y1] = range(found.flatMap((p) => [p.y, ...(crossed(p) ? p.ys : [])]));
    const box = { left: 58, right: width - 10, top: 10, bottom: height - 44 };
    const px = (v) => box.left + (v - x0) / (x1 - x0) * (box.right - box.left);
    const py = (v) => box.bottom - (v - y0) / (y1 - y0) * (box.bottom - box.top);
    const [across, up] = [ticks(x0, x1, width < 500 ? 4 : 7), ticks(y0, y1)];
    across.values.forEach((v) => {
      svg(plane, "line", { class: "grid", x1: px(v), x2: px(v), y1: box.top, y2: box.bottom });
      svg(plane, "text", { class: "tick", x: px(v), y: box.bottom + 16, "text-anchor": "middle" }, number(v, across.places));
    });
    up.values.forEach((v) => {
      svg(plane, "line", { class: "grid", x1: box.left, x2: box.right, y1: py(v), y2: py(v) });
      svg(plane, "text", { class: "tick", x: box.left - 6, y: py(v) + 4, "text-anchor": "end" }, number(v, up.places));
    });
    const fits = (text, room) => short(text, Math.floor(room / 6.6));
    svg(plane, "text", { x: (box.left + box.right) / 2, y: height - 8, "text-anchor": "middle" }, fits(axis(`${a.name} ${a.arrow}`, x0), width - 60));
    svg(plane, "text", { "text-anchor": "middle", transform: `translate(14 ${(box.top + box.bottom) / 2}) rotate(-90)` }, fits(axis(`${b.name} ${b.arrow}`, y0), height - 40));
    found.filter(crossed).forEach((p) => {
      if (p.xs[0] !== null) svg(plane, "line", { class: "cross", x1: px(p.xs[0]), x2: px(p.xs[1]), y1: py(p.y), y2: py(p.y) });
      if (p.ys[0] !== null) svg(plane, "line", { class: "cross", x1: px(p.x), x2: px(p.x), y1: py(p.ys[0]), y2: py(p.ys[1]) });
    });
    staircase(found.filter((p) => p.front), px, py, box);
    const taken = found.map((p) => [px(p.x) - 6, py(p.y) - 6, px(p.x) + 6, py(p.y) + 6]);
    const many = found.length > 14;
    const named = (p) => p.shown && (!many || p.front || p.chosen >= 0 || p.r === data.baseline || data.references.includes(p.r));
    // Names of chosen runs and of the front have the first choice of a place.
    const first = (p) => (p.chosen >= 0 ? 0 : p.front ? 1 : 2);
    const labels = new Map();
    found.filter(named).sort((p, q) => first(p) - first(q)).forEach((p) => {
      const label = data.brief[p.r];
      const [x, y, room] = [px(p.x), py(p.y), 6.6 * label.length];
      const best = [[9, -5, "start"], [9, 14, "start"], [-9, -5, "end"], [-9, 14, "end"], [0, -11, "middle"], [0, 21, "middle"]].map(([dx, dy, anchor]) => {
        const left = x + dx - (anchor === "end" ? room : anchor === "middle" ? room / 2 : 0);
        const spot = [left, y + dy - 10, left + room, y + dy + 3];
        const out = Math.max(0, box.left - spot[0]) + Math.max(0, spot[2] - width) + Math.max(0, spot[3] - box.bottom);
        return { x: x + dx, y: y + dy, anchor, spot, bad: taken.reduce((sum, other, i) => sum + (i < found.length ? 3 : 1) * overlap(spot, other), 0) + 40 * out };
      }).reduce((one, other) => (other.bad < one.bad ? other : one));
      if (p.chosen < 0 && best.bad >= 0.1 * room * 13) return;  // it would cover others: shown when the run is pointed at
      taken.push(best.spot);
      labels.set(p.r, { label, ...best });
    });
    const items = [...found].sort((p, q) => p.x - q.x).map((p) => {
      const kind = p.r === data.baseline ? "base" : data.references.includes(p.r) ? "ref" : "run";
      const classes = [kind, p.incomplete ? "hollow" : "", p.shown ? "" : "dim", state.place(p.r)];
      const text = `${p.name}${kind === "base" ? " (baseline)" : kind === "ref" ? " (reference policy)" : ""}: ${a.name} ${number(p.x)}, ${b.name} ${number(p.y)}${p.front ? "; on the Pareto front" : ""}${p.incomplete ? "; incomplete" : ""}`;
      const item = svg(plane, "g", { class: classes.filter(Boolean).join(" "), role: "button", "aria-pressed": p.chosen >= 0, "aria-label": text, "data-run": p.r, "data-front": p.front });
      svg(item, "title", {}, text);
      const [x, y] = [px(p.x), py(p.y)];
      svg(item, "circle", { class: "reach", cx: x, cy: y, r: REACH });
      if (kind === "base") svg(item, "rect", { class: "point", x: x - 5, y: y - 5, width: 10, height: 10 });
      else if (kind === "ref") svg(item, "path", { class: "point", d: `M${x} ${y - 7}L${x + 7} ${y}L${x} ${y + 7}L${x - 7} ${y}Z` });
      else svg(item, "circle", { class: "point", cx: x, cy: y, r: 5.5 });
      const place = labels.get(p.r);
      if (place) svg(item, "text", { x: place.x, y: place.y, "text-anchor": place.anchor }, place.label);
      return item;
    });
    roving(items, (item) => { $("#plane-readout").textContent = item.getAttribute("aria-label"); }, (item) => choose(item));
  }

  function choose(item) {
    const run = item.dataset.run;
    const inside = item.contains(document.activeElement);
    state.choose(Number(run));
    if (inside) $(`[data-run="${run}"]`, plane).focus();  // it was drawn again
  }

  if (plane && data.across !== null && data.up !== null) {
    const selects = { x: $("#plane-x"), y: $("#plane-y") };
    Object.entries(selects).forEach(([name, select]) => {
      options(select, measures, state.now[name]);
      select.addEventListener("change", () => state.set({ [name]: Number(select.value) }));
      state.on([name], () => { select.value = state.now[name]; });
    });
    reveal(plane.closest(".interactive"));
    state.on(["x", "y", "runs", "filter", "group"], chart(plane, (width) => Math.min(350, Math.max(310, 0.5 * width)), render));
  }
}
