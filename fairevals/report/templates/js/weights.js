// GFR with the reader's own weights: a column of the leaderboard, and which run wins for which share of all weights.
{
  const { $, all, element, svg, number, short, chart, reveal } = draw;
  const given = data.weights;
  const DRAWS = 4000;

  const sums = () => (state.now.group === null ? given.sums : given.groups[state.now.group]);

  // The mean of GFR over the topics where it is defined. A part of weight 0 is left out, also where it is undefined.
  function mean(rows, weights) {
    let [total, count] = [0, 0];
    rows.forEach(([applies, defined, topics, ...parts]) => {
      const active = weights.map((weight, i) => i).filter((i) => weights[i] > 0 && applies >> i & 1);
      if (!active.length || active.some((i) => !(defined >> i & 1))) return;
      const weight = active.reduce((sum, i) => sum + weights[i], 0);
      total += active.reduce((sum, i) => sum + weights[i] * parts[i], 0) / weight;
      count += topics;
    });
    return count ? total / count : null;
  }

  const complete = (r) => !state.part().incomplete[r][given.measure];
  function ranking(weights) {
    const values = sums().map((rows) => mean(rows, weights));
    const rank = values.map((value, r) => (value === null ? 2 : complete(r) ? 0 : 1));
    return { values, rank };
  }

  const table = $("#board");
  function column() {
    all(".own", table).forEach((cell) => cell.remove());
    state.own = state.now.weights && ranking(state.now.weights);
    if (!state.own) return;
    const head = element(null, "th", { scope: "col", class: "own", "data-sort": "own", "data-best": "descending" });
    const button = element(head, "button", { type: "button", title: "GFR with your own weights: higher is better" }, "your GFR\u00a0");
    element(button, "span", { class: "arrow" }, "↑");
    element(head, "span", { class: "on-paper" }, "your GFR ↑");
    $("thead th.undefined", table).before(head);
    all("tbody tr", table).forEach((row) => {
      const cell = element(null, "td", { class: "own" });
      element(cell, "span", { class: "v" }, number(state.own.values[Number(row.dataset.run)]));
      $("td.undefined", row).before(cell);
    });
    all("tfoot td.undefined", table).forEach((cell) => cell.before(element(null, "td", { class: "own" })));
  }

  // Weights drawn evenly from all that sum to 1, always the same ones.
  function drawn() {
    let seed = 1;
    const uniform = () => {
      seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
      return (seed + 1) / 4294967297;
    };
    return Array.from({ length: DRAWS }, () => given.weights.map(() => -Math.log(uniform())));
  }
  let counted = null;
  function winners() {
    const draws = drawn();
    const eligible = data.order.filter(complete);
    const wins = new Map();
    draws.forEach((weights) => {
      let [best, most] = [null, -Infinity];
      eligible.forEach((r) => {
        const value = mean(sums()[r], weights);
        if (value !== null && value > most) [best, most] = [r, value];
      });
      if (best !== null) wins.set(best, (wins.get(best) ?? 0) + 1);
    });
    return [...wins].sort((p, q) => q[1] - p[1]);
  }

  const strip = $("#strip");
  const share = (count) => (count / DRAWS < 0.01 ? "less than 1 %" : `${Math.round(100 * count / DRAWS)} %`);
  function render(width, height) {
    counted ??= winners();
    let x = 0;
    counted.forEach(([r, count], place) => {
      const room = width * count / DRAWS;
      const item = svg(strip, "g", { class: `win s${place % 8} ${state.place(r)}`, "data-run": r });
      svg(item, "rect", { x, y: 0, width: Math.max(0.5, room), height });
      svg(item, "title", {}, `${data.runs[r]}: ${share(count)}`);
      if (room > 60) svg(item, "text", { x: x + 8, y: height / 2 + 4 }, short(data.brief[r], Math.floor((room - 12) / 8)));
      x += room;
    });
    const names = counted.slice(0, 8).map(([r, count]) => `${data.runs[r]} for ${share(count)}`).join(", ");
    const rest = counted.length > 8 ? ` and ${counted.length - 8} more runs` : "";
    $("#strip-text").textContent = counted.length
      ? `The run with the highest GFR, over ${DRAWS.toLocaleString("en")} sets of weights drawn evenly from all: ${names}${rest}.`
      : "No complete run has a value.";
  }

  function show() {
    const weights = state.now.weights ?? given.weights;
    all("[data-weight]").forEach((slider, i) => {
      slider.value = weights[i];
      slider.nextElementSibling.value = Number(weights[i].toFixed(2));
    });
    if (!state.now.weights) { $("#weights-text").textContent = ""; return; }
    const { values, rank } = state.own;
    const best = data.order.filter((r) => !rank[r]).sort((p, q) => values[q] - values[p])[0];
    $("#weights-text").textContent = best === undefined ? "No complete run has a value with these weights."
      : `With your weights ${data.runs[best]} is first, ${number(values[best])}${state.now.sort === "own" ? "; the leaderboard is sorted by your GFR" : ""}.`;
  }

  if (given && strip) {
    reveal($("#weights"));
    all("[data-weight]").forEach((slider, moved) => slider.addEventListener("input", () => {
      const weights = (state.now.weights ?? given.weights).map((weight, i) => (i === moved ? Number(slider.value) : weight));
      state.set(same(weights) ? { weights: null, sort: null } : { weights, sort: "own" });
    }));
    $("#weights-reset").addEventListener("click", () => state.set({ weights: null, sort: state.now.sort.endsWith("own") ? null : state.now.sort }));
    state.on(["weights", "group"], column);
    state.on(["weights", "group", "sort"], show);
    state.on(["group"], () => { counted = null; });
    state.on(["group", "runs"], chart(strip, () => 44, render, true));  // lazy: thousands of rankings
  }
  function same(weights) {
    return weights.every((weight, i) => weight === given.weights[i]);
  }
}
