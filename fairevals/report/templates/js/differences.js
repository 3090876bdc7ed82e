// Gains of one run over another, topic by topic, the topics that drive them, and the tests against the baseline.
{
  const { $, all, element, svg, number, signed, plural, short, ticks, roving, options, chart, reveal, measures, gain, withValues } = draw;
  const bars = $("#bars");

  // The topics on which both runs have a value.
  function gains() {
    const [run, other] = state.pair();
    const m = state.now.measure;
    if (!data.values[run] || !data.values[other]) return [];
    const [mine, theirs] = [data.values[run][m], data.values[other][m]];
    return state.topics().filter((t) => mine[t] !== null && theirs[t] !== null).map((t) => {
      return { t, topic: data.topics[t], value: mine[t], other: theirs[t], gain: gain(data.measures[m], mine[t], theirs[t]) };
    });
  }
  const sum = (items) => items.reduce((total, item) => total + item.gain, 0);

  function render(width, height) {
    const topics = gains();
    const [run, other] = state.pair().map((r) => data.runs[r]);
    const sorted = [...topics].sort((p, q) => q.gain - p.gain);
    const mean = topics.length ? sum(topics) / topics.length : null;
    const [low, high] = [Math.min(0, ...sorted.map((item) => item.gain)), Math.max(0, ...sorted.map((item) => item.gain))];
    const box = { left: 52, right: width - 10, top: 12, bottom: height - 12 };
    const span = high - low || 1;
    const py = (v) => box.bottom - (v - low + 0.03 * span) / (1.06 * span) * (box.bottom - box.top);
    const scale = ticks(low, high);
    scale.values.forEach((v) => {
      svg(bars, "line", { class: "grid", x1: box.left, x2: box.right, y1: py(v), y2: py(v) });
      svg(bars, "text", { class: "tick", x: box.left - 6, y: py(v) + 4, "text-anchor": "end" }, signed(v, scale.places));
    });
    const step = (box.right - box.left) / Math.max(1, sorted.length);
    const items = sorted.map((item, place) => {
      const text = `${item.topic}: gain ${signed(item.gain)} (${number(item.value)}, ${other} ${number(item.other)})`;
      const top = Math.min(py(item.gain), py(0));
      const x = box.left + place * step;
      const kind = `${item.gain < 0 ? "down" : "up"}${item.t === state.now.topic ? " chosen" : ""}`;
      const bar = svg(bars, "g", { class: `bar ${kind}`, role: "button", "aria-label": text, "data-topic": item.t });
      svg(bar, "title", {}, text);
      svg(bar, "rect", { class: "reach", x, width: step, y: box.top, height: box.bottom - box.top });  // a bar may be low
      svg(bar, "rect", { class: "point", x: x + step * 0.1, width: step * 0.8, y: top, height: Math.max(1.5, Math.abs(py(item.gain) - py(0))) });
      return bar;
    });
    svg(bars, "line", { class: "zero", x1: box.left, x2: box.right, y1: py(0), y2: py(0) });
    if (mean !== null) svg(bars, "line", { class: "mean", x1: box.left, x2: box.right, y1: py(mean), y2: py(mean) });
    const { name } = data.measures[state.now.measure];
    $("#bars-caption").textContent = `Gain of ${run} over ${other} in ${name} on ${plural(topics.length, "topic")}, the largest first; dotted: the mean, ${mean === null ? "–" : signed(mean)}.`;
    $("#bars-readout").textContent = "Point at a bar, or move to it with Tab and the arrow keys; Enter chooses the topic.";
    roving(items, (item) => { $("#bars-readout").textContent = item.getAttribute("aria-label"); }, (item) => {
      const { topic } = item.dataset;
      state.set({ topic: Number(topic) === state.now.topic ? null : Number(topic) });
      $(`[data-topic="${topic}"]`, bars)?.focus();
    });
    showDrivers(topics);
  }

  // See `tipping` in gather.py.
  function tipping(values, total) {
    if (!values.length || total === 0) return null;
    const pulling = values.map((value) => value * Math.sign(total)).sort((p, q) => q - p);
    let [rest, count] = [Math.abs(total), 0];
    for (const value of pulling) {
      if (rest <= 1e-9 || value <= 0) break;
      rest -= value;
      count += 1;
    }
    return count;
  }

  function showDrivers(topics) {
    const total = sum(topics);
    const [run, other] = state.pair().map((r) => data.runs[r]);
    const counts = [1, 0, -1].map((sign) => topics.filter((item) => Math.sign(item.gain) === sign).length);
    const few = tipping(topics.map((item) => item.gain), total);
    $("#drivers-text").textContent = `${run} against ${other}, ${data.measures[state.now.measure].name}: mean gain ${topics.length ? signed(total / topics.length) : "–"}; `
      + `better on ${counts[0]}, same on ${counts[1]}, worse on ${counts[2]} of ${plural(topics.length, "topic")}.`
      + (few === null ? "" : ` Without the ${plural(few, "topic")} with the largest effect, the sign of the mean gain would change.`);
    const largest = topics.filter((item) => item.gain).sort((p, q) => Math.abs(q.gain) - Math.abs(p.gain)).slice(0, 8);
    const rows = largest.map((item) => {
      const row = element(null, "tr");
      element(element(row, "th", { scope: "row" }), "bdi", {}, short(item.topic, 60));
      const rest = topics.length > 1 ? signed((total - item.gain) / (topics.length - 1)) : "–";
      [number(item.value), number(item.other), signed(item.gain), rest].forEach((text) => { row.insertCell().textContent = text; });
      return row;
    });
    $("#drivers").tBodies[0].replaceChildren(...rows);
  }

  function showTests() {
    const { id } = data.measures[state.now.measure];
    all("#tests tbody tr").forEach((row) => { row.hidden = row.dataset.measure !== id || !state.matches(Number(row.dataset.run)); });
  }

  if (bars && withValues.length > 1) {
    const [run, other, measure] = ["#bars-run", "#bars-other", "#bars-measure"].map((name) => $(name));
    draw.pickers(run, other, withValues);
    options(measure, measures, state.now.measure);
    measure.addEventListener("change", () => state.set({ measure: Number(measure.value) }));
    const left = data.runs.length - withValues.length;
    $("#bars-note").hidden = !left;
    $("#bars-note").textContent = `To keep the page small, it has the values of single topics of ${withValues.length} of ${data.runs.length} runs; those of the other ${left} are in scores.csv.`;
    reveal(bars.closest(".interactive"));
    const redraw = chart(bars, (width) => Math.min(260, Math.max(200, 0.3 * width)), render);
    state.on(["runs", "measure", "group", "topic"], () => {
      measure.value = state.now.measure;
      redraw();
    });
  }
  if ($("#tests")) state.on(["measure", "filter"], showTests);
}
