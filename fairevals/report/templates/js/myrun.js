// My run: one run beside the median and the best, the topics that it wins and loses, and what is undefined and why.
{
  const { $, element, number, signed, median, plural, short, options, gain, withValues } = draw;
  const SHOWN = 8;
  const middle = (m, t) => median(withValues.map((r) => data.values[r][m][t]));

  function opener(parent, t) {
    const button = element(parent, "button", { type: "button", class: "topic", title: data.titles[t] || data.topics[t] }, short(data.topics[t], 24));
    button.addEventListener("click", () => {
      state.set({ topic: t, runs: [state.pair()[0], ...state.now.runs.slice(1)] });
      $("#topic").scrollIntoView();
      $("#topic-title").focus({ preventScroll: true });
    });
  }

  // A table with heads, of which those at `texts` are of texts; returns its body.
  function tableWith(table, heads, texts) {
    const head = element(element(table, "thead"), "tr");
    heads.forEach((text, i) => element(head, "th", { scope: "col", ...(texts.includes(i) ? { class: "text" } : {}) }, text));
    return element(table, "tbody");
  }
  function scrolling(parent, label) {
    return element(element(parent, "div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }), "table", { class: "plain" });
  }

  // Of each topic the gain over the median, the largest first; topics without a value are left out.
  function gains(r, m) {
    return state.topics().map((t) => [t, data.values[r][m][t], middle(m, t)])
      .filter(([, own, other]) => own !== null && other !== null)
      .map(([t, own, other]) => ({ t, own, other, gain: gain(data.measures[m], own, other) }))
      .sort((p, q) => q.gain - p.gain || p.t - q.t);
  }

  function showValues(r) {
    const table = $("#mine-values");
    const { means, costs, incomplete } = state.part();
    table.replaceChildren();
    const body = tableWith(table, ["measure", "this run", "median", "best", "by", "place", "topics won", "tied", "lost"], [0, 4]);
    data.measures.forEach((measure, m) => {
      const row = element(body, "tr", { "data-measure": measure.id });
      element(row, "th", { scope: "row", title: measure.id }, `${measure.name} ${measure.arrow}`);
      const order = data.runs.map((_, s) => s).filter((s) => costs[s][m] !== null && !incomplete[s][m]);
      const best = order.reduce((p, s) => (p === null || costs[s][m] < costs[p][m] ? s : p), null);
      element(row, "td", {}, number(means[r][m]));
      element(row, "td", {}, number(median(means.map((row) => row[m]))));
      element(row, "td", {}, best === null ? "–" : number(means[best][m]));
      element(element(row, "td", { class: "text" }), "bdi", {}, best === null ? "" : best === r ? "this run" : data.brief[best]);
      const place = 1 + order.filter((s) => costs[s][m] < costs[r][m]).length;
      element(row, "td", {}, incomplete[r][m] ? "incomplete" : order.includes(r) ? `${place} of ${order.length}` : "–");
      const found = measure.sign && data.values[r] ? gains(r, m) : [];
      [(g) => g > 0, (g) => g === 0, (g) => g < 0].forEach((kind) => element(row, "td", {}, found.length ? found.filter((one) => kind(one.gain)).length : "–"));
    });
  }

  function showTopics(r) {
    const part = $("#mine-topics");
    part.replaceChildren();
    const m = state.now.measure;
    const measure = data.measures[m];
    const found = measure.sign ? gains(r, m) : [];
    const lists = [["won", found.filter((one) => one.gain > 0)], ["lost", found.filter((one) => one.gain < 0).reverse()]];
    lists.forEach(([kind, topics]) => {
      const half = element(part, "div");
      element(half, "h3", {}, `Topics ${kind} against the median, ${measure.name}`);
      if (!topics.length) { element(half, "p", {}, "None."); return; }
      const body = tableWith(scrolling(half, `Topics ${kind}`), ["topic", "this run", "median", "gain"], [0]);
      topics.slice(0, SHOWN).forEach(({ t, own, other, gain: by }) => {
        const row = element(body, "tr");
        opener(element(row, "th", { scope: "row" }), t);
        [number(own), number(other), signed(by)].forEach((text) => element(row, "td", {}, text));
      });
      if (topics.length > SHOWN) element(half, "p", { class: "small" }, `The ${SHOWN} largest of ${topics.length}; the others are in the map of topics.`);
    });
  }

  // Why a value is undefined, as far as the page can tell.
  function reason(r, m, t) {
    if (data.missing[r].includes(t)) return "this run has no documents for the topic";
    const having = withValues.filter((s) => data.values[s][m][t] !== null).length;
    if (having) return `this run's ranking gives no value; ${having} of ${plural(withValues.length, "run")} have one`;
    const other = data.measures[m].attributes.find((name) => data.applies[name] && !data.applies[name][t]);
    if (other !== undefined) return `${other} does not apply to the topic`;
    return "undefined for every run: the judgements allow no value";
  }

  function showUndefined(r) {
    const part = $("#mine-undefined");
    part.replaceChildren();
    const rows = data.measures.flatMap((measure, m) => {
      const values = data.values[r][m];
      if (withValues.every((s) => data.values[s][m].every((value) => value === null))) return [];  // one value for all topics
      const why = new Map();
      state.topics().filter((t) => values[t] === null).forEach((t) => {
        const text = reason(r, m, t);
        why.set(text, [...(why.get(text) ?? []), t]);
      });
      return [...why].map(([text, topics]) => ({ measure, text, topics }));
    });
    const zero = data.missing[r].filter((t) => state.topics().includes(t));
    if (zero.length) element(part, "p", {}, `No documents for ${plural(zero.length, "topic")}: utility, GF and GFR are 0 there.`);
    if (!rows.length) { element(part, "p", {}, "Nothing: every measure has a value on every topic."); return; }
    const body = tableWith(scrolling(part, "Undefined values"), ["measure", "topics", "which", "why"], [0, 2, 3]);
    rows.forEach(({ measure, text, topics }) => {
      const row = element(body, "tr", { "data-measure": measure.id });
      element(row, "th", { scope: "row" }, measure.name);
      element(row, "td", {}, topics.length);
      const some = topics.slice(0, 5).map((t) => short(data.topics[t], 16)).join(", ");
      element(row, "td", { class: "text wrap" }, topics.length > 5 ? `${some} and ${topics.length - 5} more` : some);
      element(row, "td", { class: "text wrap" }, text);
    });
  }

  if (data.runs.length > 1 && data.topics.length && withValues.length) {
    const mine = $("#mine");
    [$("#my-run"), $("nav a[href='#my-run']")].forEach((part) => { part.hidden = false; });
    options(mine, data.order.map((r) => [r, data.runs[r]]));
    mine.addEventListener("change", () => state.set({ runs: [Number(mine.value), ...state.now.runs.slice(1)].filter((r, i, all) => all.indexOf(r) === i) }));
    state.on(["runs", "measure", "group"], () => {
      const [r] = state.pair();
      $("#my-run").classList.toggle("unopened", !state.now.runs.length);
      mine.value = r;
      showValues(r);
      const known = data.values[r] !== null;
      $("#mine-text").textContent = known ? "" : "The values of this run by topic are not in this page; they are in scores.csv.";
      [$("#mine-topics"), $("#mine-undefined")].forEach((part) => part.replaceChildren());
      if (known) { showTopics(r); showUndefined(r); }
    });
  }
}
