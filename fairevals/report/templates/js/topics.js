// The map of runs and topics: one cell per value, a stronger colour is better. A topic's heading opens it, a run's chooses it.
{
  const { $, all, element, number, median, plural, short, roving, options, measures, compared, gain, withValues } = draw;
  const ROWS = 60;
  const COLUMNS = 200;
  const SHADES = 9;
  const table = $("#map");
  const byTopic = measures.filter(([m]) => withValues.some((r) => data.values[r][m].some((value) => value !== null)));

  // Smaller is worse, whatever the direction of the measure; a measure without direction counts upwards.
  const goodness = (measure, value) => (measure.sign || 1) * compared(measure, value);

  // Two digits after the point fit into a cell: .42, 1.0, −.3, 12.
  function cell(value) {
    if (value === null) return "";
    const text = Math.abs(value) < 0.995 ? value.toFixed(2).replace("0.", ".") : value.toPrecision(2);
    return (Number(text) === 0 ? "0" : Math.abs(value) >= 99.5 ? String(Math.round(value)) : text).replace("-", "−");
  }

  const ORDERS = [["", "hardest first (by the median)"], ["difference", "by the difference of the two runs"], ["given", "as in the qrels"]];
  function sorted(topics, m) {
    const measure = data.measures[m];
    const [a, b] = state.pair();
    const last = (value) => (value === null ? Infinity : value);
    const keys = new Map(topics.map((t) => {
      const every = withValues.map((r) => data.values[r][m][t]);
      if (state.now.order !== "difference") return [t, last(median(every.map((value) => (value === null ? null : goodness(measure, value)))))];
      const [mine, other] = [a, b].map((r) => (r === null || !data.values[r] ? null : data.values[r][m][t]));
      return [t, last(mine === null || other === null ? null : -gain(measure, mine, other))];
    }));
    if (state.now.order === "given") return topics;
    return [...topics].sort((s, t) => keys.get(s) - keys.get(t) || s - t);
  }

  function shades(m, topics) {
    const values = withValues.flatMap((r) => topics.map((t) => data.values[r][m][t])).filter((value) => value !== null);
    const good = (value) => goodness(data.measures[m], value);
    const worst = values.reduce((x, y) => (good(y) < good(x) ? y : x), values[0]);
    const best = values.reduce((x, y) => (good(y) > good(x) ? y : x), values[0]);
    const span = good(best) - good(worst) || 1;
    return {
      shade: (value) => Math.min(SHADES - 1, Math.floor(SHADES * (good(value) - good(worst)) / span)),
      ends: [worst, best],
    };
  }

  function open(t, run) {
    const [a, b] = state.pair();
    state.set({ topic: t, ...(run === undefined || run === a || run === b ? {} : { runs: [run, ...state.now.runs.slice(1)] }) });
    $("#topic").scrollIntoView({ block: "nearest" });
    $("#topic-title").focus({ preventScroll: true });
  }

  let columns = [];
  let drawn = "";
  function redraw() {
    drawn = state.now.filter;
    const m = state.now.measure;
    const measure = data.measures[m];
    columns = sorted(state.topics(), m);
    const topics = columns.slice(0, COLUMNS);
    const matching = withValues.filter((r) => state.matches(r) || state.now.runs.includes(r));
    const runs = matching.filter((r, place) => place < ROWS || state.now.runs.includes(r));
    const { shade, ends } = shades(m, topics);
    const [a, b] = state.pair();
    const differs = measure.sign && a !== null && b !== null && data.values[a] && data.values[b];

    const head = element(null, "tr");
    element(head, "th", { scope: "col", class: "run" }, "run");
    const opens = topics.map((t) => {
      const title = data.titles[t] ? `${data.topics[t]}: ${data.titles[t]}` : data.topics[t];
      const th = element(head, "th", { scope: "col" });
      return element(th, "button", { type: "button", "data-topic": t, title }, short(data.topics[t], 12));
    });
    const body = [];
    if (differs) {
      const row = element(null, "tr", { class: "gains" });
      element(row, "th", { scope: "row", class: "run" }, "gain");
      const gains = topics.map((t) => [data.values[a][m][t], data.values[b][m][t]])
        .map(([mine, other]) => (mine === null || other === null ? null : gain(measure, mine, other)));
      const most = Math.max(1e-9, ...gains.map((value) => Math.abs(value ?? 0)));
      gains.forEach((value, i) => {
        const steps = value === null ? "" : `${value < 0 ? "down" : "up"}${Math.min(3, Math.floor(4 * Math.abs(value) / most))}`;
        element(row, "td", { "data-topic": topics[i], class: value === null ? "none" : value ? steps : "" }, value === null ? "" : cell(value));
      });
      body.push(row);
    }
    const chooses = runs.map((r) => {
      const row = element(null, "tr", { "data-run": r, class: state.place(r) });
      const th = element(row, "th", { scope: "row", class: "run" });
      const button = element(th, "button", { type: "button", "data-run": r, "aria-pressed": state.now.runs.includes(r) });
      draw.name(button, data.runs[r]);
      topics.forEach((t) => {
        const value = data.values[r][m][t];
        element(row, "td", { "data-topic": t, class: value === null ? "none" : `h${shade(value)}` }, cell(value));
      });
      body.push(row);
      return button;
    });
    const held = table.contains(document.activeElement) ? document.activeElement : null;
    table.tHead.replaceChildren(head);
    table.tBodies[0].replaceChildren(...body);
    roving(opens, (button) => describe(Number(button.dataset.topic)), (button) => open(Number(button.dataset.topic)));
    roving(chooses, () => {}, (button) => state.choose(Number(button.dataset.run)));
    // Whoever chooses a run by keyboard stays on it.
    const again = held && chooses.find((button) => button.dataset.run === held.dataset.run);
    if (again) {
      chooses.forEach((button) => button.setAttribute("tabindex", button === again ? "0" : "-1"));
      again.focus({ preventScroll: true });
    }
    legend(measure, ends, differs ? `gain: of ${data.runs[a]} over ${data.runs[b]}` : "", [runs.length, matching.length], topics.length);
    mark();
  }

  function legend(measure, ends, gains, [rows, matching], count) {
    const legend = $("#map-legend");
    legend.replaceChildren();
    const scale = element(legend, "span", { class: "shades" });
    element(scale, "span", {}, ends[0] === undefined ? "no values" : `${cell(ends[0]) || "0"} `);
    if (ends[0] !== undefined) {
      for (let k = 0; k < SHADES; k += 1) element(scale, "i", { class: `h${k}` });
      element(scale, "span", {}, ` ${cell(ends[1])}${measure.sign ? ", stronger is better" : ""}`);
    }
    element(element(legend, "span", { class: "shades" }), "i", { class: "none" });
    legend.lastChild.append(" undefined");
    if (gains) element(legend, "span", {}, gains);
    const all = state.topics().length;
    const left = [];
    if (count < all) left.push(`${count} of ${plural(all, "topic")}, the first in this order`);
    if (rows < matching) left.push(`${rows} of ${plural(matching, "run")}, the best and the chosen`);
    const absent = data.runs.length - withValues.length;
    if (absent) left.push(`no values of ${plural(absent, "run")}, to keep the page small`);
    if (left.length) element(legend, "span", { id: "map-left-out" }, `Shown: ${left.join("; ")}. All values are in scores.csv.`);
  }

  function describe(t, r) {
    const m = state.now.measure;
    const middle = median(withValues.map((run) => data.values[run][m][t]));
    const title = data.titles[t] ? ` (${data.titles[t]})` : "";
    const own = r === undefined ? "" : `${data.runs[r]} ${number(data.values[r][m][t])}, `;
    $("#map-readout").textContent = `${data.topics[t]}${title}, ${data.measures[m].name}: ${own}median ${number(middle)}`;
  }

  function mark() {
    const here = state.opened();
    all("[data-topic]", table).forEach((one) => one.classList.toggle("here", Number(one.dataset.topic) === here));
    all("thead button", table).forEach((one) => one.setAttribute("aria-pressed", Number(one.dataset.topic) === here));
  }

  function step(by) {
    const at = columns.indexOf(state.opened());
    const to = columns[at + by];
    if (to !== undefined) state.set({ topic: to });
  }

  if (byTopic.length && data.topics.length) {
    const [measure, order] = [$("#map-measure"), $("#map-order")];
    const paired = state.pair().every((r) => r !== null);
    options(measure, byTopic, state.now.measure);
    options(order, ORDERS.filter(([name]) => paired || name !== "difference"), state.now.order);
    measure.addEventListener("change", () => state.set({ measure: Number(measure.value) }));
    order.addEventListener("change", () => state.set({ order: order.value }));
    $("#topics").classList.add("explored");
    all("#topics .needs-script").forEach((part) => { part.hidden = false; });
    const at = (event) => event.target.closest("td[data-topic]");
    table.tBodies[0].addEventListener("click", (event) => {
      const td = at(event);
      if (td) open(Number(td.dataset.topic), td.parentNode.dataset.run === undefined ? undefined : Number(td.parentNode.dataset.run));
    });
    table.tBodies[0].addEventListener("pointerover", (event) => {
      const td = at(event);
      if (td && td.parentNode.dataset.run !== undefined) describe(Number(td.dataset.topic), Number(td.parentNode.dataset.run));
    });
    $("#topic-before").addEventListener("click", () => step(-1));
    $("#topic-after").addEventListener("click", () => step(1));
    state.on(["measure", "order", "runs", "group"], () => {
      [measure.value, order.value] = [state.now.measure, state.now.order];
      redraw();
    });
    let typing = 0;
    state.on(["filter"], () => {
      clearTimeout(typing);
      if (state.now.filter !== drawn) typing = setTimeout(redraw, 150);  // a large map takes longer to draw than a key to press
    });
    state.on(["topic"], mark);
  }
}
