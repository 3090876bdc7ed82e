// Two runs over topics, or one run against the median of all: one point per topic, and each opens its topic.
{
  const { $, svg, number, signed, median, plural, short, ticks, roving, options, chart, gain, withValues } = draw;
  const plot = $("#two");
  const MEDIAN = "median";
  const POINTS = 2000;

  function render(size) {
    const m = state.now.measure;
    const measure = data.measures[m];
    const [a, b] = state.pair();
    const against = state.now.against === MEDIAN || b === null || b === a || !data.values[b];
    if (!data.values[a]) {
      $("#two-readout").textContent = `The values of ${data.runs[a]} by topic are not in this page; they are in scores.csv.`;
      return;
    }
    const names = [data.runs[a], against ? "median" : data.runs[b]];
    const every = state.topics().map((t) => ({ t, x: against ? median(withValues.map((r) => data.values[r][m][t])) : data.values[b][m][t], y: data.values[a][m][t] }))
      .filter((p) => p.x !== null && p.y !== null)
      .map((p) => ({ ...p, gain: measure.sign ? gain(measure, p.y, p.x) : p.y - p.x }));
    const points = every.length > POINTS ? [...every].sort((p, q) => Math.abs(q.gain) - Math.abs(p.gain)).slice(0, POINTS) : every;
    $("#two-title").textContent = `${names[0]} against ${against ? "the median of all runs" : names[1]}, by topic`;
    if (!points.length) { svg(plot, "text", { x: 20, y: 40 }, "They share no topic with a value."); return; }
    const values = points.flatMap((p) => [p.x, p.y]);  // at most 4,000, which Math.min can take
    const pad = 0.04 * ((Math.max(...values) - Math.min(...values)) || 1);
    const [low, high] = [Math.min(...values) - pad, Math.max(...values) + pad];
    const box = { left: 50, right: size - 10, top: 10, bottom: size - 48 };
    const px = (v) => box.left + (v - low) / (high - low) * (box.right - box.left);
    const py = (v) => box.bottom - (v - low) / (high - low) * (box.bottom - box.top);
    const scale = ticks(low, high);
    scale.values.forEach((v) => {
      svg(plot, "line", { class: "grid", x1: px(v), x2: px(v), y1: box.top, y2: box.bottom });
      svg(plot, "line", { class: "grid", x1: box.left, x2: box.right, y1: py(v), y2: py(v) });
      svg(plot, "text", { class: "tick", x: px(v), y: box.bottom + 16, "text-anchor": "middle" }, number(v, scale.places));
      svg(plot, "text", { class: "tick", x: box.left - 6, y: py(v) + 4, "text-anchor": "end" }, number(v, scale.places));
    });
    svg(plot, "line", { class: "zero", x1: px(low), y1: py(low), x2: px(high), y2: py(high) });
    const most = Math.floor(size / 11);
    svg(plot, "text", { x: (box.left + box.right) / 2, y: size - 10, "text-anchor": "middle" }, short(`${names[1]}, ${measure.name} ${measure.arrow}`, most));
    svg(plot, "text", { x: 0, y: 0, "text-anchor": "middle", transform: `translate(13 ${(box.top + box.bottom) / 2}) rotate(-90)` }, short(`${names[0]}, ${measure.name} ${measure.arrow}`, most));
    const kindOf = (p) => (Math.abs(p.gain) < 1e-6 ? "even" : p.gain > 0 ? "won" : "lost");
    const items = points.map((p) => {
      const text = `${data.topics[p.t]}: ${names[0]} ${number(p.y)}, ${names[1]} ${number(p.x)}, gain ${signed(p.gain)}`;
      const kind = kindOf(p);
      const item = svg(plot, "g", { class: `${kind} opens`, role: "button", "aria-label": text, "data-topic": p.t });
      svg(item, "title", {}, text);
      const [x, y] = [px(p.x), py(p.y)];
      // The shape says it too: triangles point to the run that is better.
      const shape = { won: `M${x - 5} ${y + 4}h10l-5 -9z`, lost: `M${x - 5} ${y - 4}h10l-5 9z`, even: `M${x - 4} ${y - 4}h8v8h-8z` }[kind];
      svg(item, "path", { class: "point", d: shape });
      return item;
    });
    const show = (item) => { $("#two-readout").textContent = item.getAttribute("aria-label"); };
    roving(items, show, (item) => state.set({ topic: Number(item.dataset.topic) }));
    const [more, less] = measure.sign ? ["better", "worse"] : ["larger", "smaller"];
    const count = (kind) => every.filter((p) => kindOf(p) === kind).length;
    const left = points.length < every.length ? ` The ${points.length} with the largest differences are drawn.` : "";
    $("#two-readout").textContent = `${plural(every.length, "topic")}: ${short(names[0], 30)} ${more} on ${count("won")}, the same on ${count("even")}, ${less} on ${count("lost")}.${left} `
      + "Point at a topic, or move to it with Tab and the arrow keys; Enter opens it.";
    mark();
  }

  function mark() {
    const here = state.opened();
    draw.all("[data-topic]", plot).forEach((item) => item.classList.toggle("here", Number(item.dataset.topic) === here));
  }

  if (data.runs.length < 2) [$("#two-controls"), $(".explorer-map")].forEach((part) => { part.hidden = true; });
  else if (data.topics.length && withValues.length && !plot.closest(".needs-script").hidden) {
    const redraw = chart(plot, (width) => width, render);
    const [run, other] = [$("#two-run"), $("#two-other")];
    const names = withValues.map((r) => [r, data.runs[r]]);
    options(run, names);
    options(other, [[MEDIAN, "the median of all runs"], ...names]);
    run.addEventListener("change", () => state.set({ runs: [Number(run.value), ...state.pair().slice(1)].filter((r, i, all) => r !== null && all.indexOf(r) === i) }));
    other.addEventListener("change", () => {
      if (other.value === MEDIAN) state.set({ against: MEDIAN });
      else state.set({ against: "", runs: [...new Set([state.pair()[0], Number(other.value)])] });
    });
    state.on(["runs", "measure", "group", "against"], () => {
      const [a, b] = state.pair();
      run.value = a;
      other.value = state.now.against === MEDIAN || b === null ? MEDIAN : b;
      redraw();
    });
    state.on(["topic"], mark);
  }
}
