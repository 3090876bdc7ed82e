// One topic: the first ranks of one or two runs with grades and groups, lines between the same documents, and values.
{
  const { $, element, svg, number, signed, median, plural, roving, gain, withValues, area } = draw;

  function stripes(parent, membership, width, height, label) {
    const drawing = svg(parent, "svg", { class: "stripes", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label });
    svg(drawing, "title", {}, label);
    let x = 0;
    membership.forEach(([group, share]) => {
      area(drawing, "rect", group, { x, y: 0, width: share * width, height });
      x += share * width;
    });
    return drawing;
  }

  const percent = (share) => `${Math.round(100 * share)} %`;
  function groupText(attribute, membership) {
    if (!membership.length) return "no known group";
    if (membership.length === 1) return attribute.groups[membership[0][0]];
    return [...membership].sort((p, q) => q[1] - p[1]).map(([group, share]) => `${attribute.groups[group]} ${percent(share)}`).join(", ");
  }

  // Which runs are shown: one if there is no second, or it is compared with the median.
  function shown() {
    const [a, b] = state.pair();
    return state.now.against === "median" || b === null || b === a ? [a] : [a, b];
  }

  function ranking(parent, run, side, topic, attributes, places) {
    const part = element(parent, "div", { class: "ranking" });
    const list = topic.lists.get(run);
    const table = element(part, "table", { class: `plain ranks${attributes.length > 2 ? " many" : ""}`, "data-run": run });
    draw.name(element(table, "caption"), data.runs[run]);
    const head = element(element(table, "thead"), "tr");
    element(head, "th", { scope: "col", class: "rank" }, "#");
    element(head, "th", { scope: "col", class: "grade" }, "grade");
    element(head, "th", { scope: "col", class: "doc text" }, "document");
    if (ranks.policy !== "ranking") element(head, "th", { scope: "col", class: "exposure" }, "exposure");
    attributes.forEach((a) => {
      element(element(head, "th", { scope: "col", class: "group" }), "span", {}, ranks.attributes[a].name);
    });
    const body = element(table, "tbody");
    return list.map(({ doc, rank, exposure }) => {
      const { name, grade, groups } = topic.docs[doc];
      const row = element(body, "tr", { "data-doc": doc });
      element(row, "td", { class: "rank" }, rank);
      const level = grade === null ? "unjudged" : Number(grade) > 0 ? `good${Math.min(3, Math.ceil(3 * Number(grade) / top()))}` : "bad";
      const chip = element(element(row, "td", { class: "grade" }), "span", { class: `mark ${level}` }, grade ?? "–");
      if (grade === null) chip.title = "unjudged";
      const cell = element(row, "th", { scope: "row", class: "doc" });
      draw.name(cell, name, 6);
      if (ranks.policy !== "ranking") element(row, "td", { class: "exposure" }, number(exposure, 4));
      attributes.forEach((a) => {
        const label = `${ranks.attributes[a].name}: ${groupText(ranks.attributes[a], groups[a])}`;
        stripes(element(row, "td", { class: "group" }), groups[a], 40, 12, label);
      });
      const other = places[1 - side] && places[1 - side].get(doc);
      const also = places.length < 2 ? "" : `; ${other ? `rank ${other}` : `not in the first ${ranks.depth}`} of ${data.runs[shown()[1 - side]]}`;
      const known = attributes.map((a) => `${ranks.attributes[a].name}: ${groupText(ranks.attributes[a], groups[a])}`);
      row.dataset.text = [`${name}: ${grade === null ? "unjudged" : `grade ${grade}`}`, ...known].join("; ") + also;
      return row;
    });
  }
  const top = () => Math.max(...ranks.grades.map(Number), 1);

  function lines(parent, places) {
    const depth = ranks.depth;
    const drawing = svg(parent, "svg", { class: "lines", viewBox: `0 0 100 ${10 * depth}`, preserveAspectRatio: "none", "aria-hidden": "true" });
    places[0].forEach((rank, doc) => {
      const other = places[1].get(doc);
      if (other === undefined) return;
      const [y1, y2] = [10 * rank - 5, 10 * other - 5];
      svg(drawing, "path", { class: "link", "data-doc": doc, d: `M0 ${y1}C50 ${y1} 50 ${y2} 100 ${y2}` });
    });
  }

  function showRanks(t) {
    const part = $("#topic-ranks");
    part.replaceChildren();
    const runs = shown();
    const kept = runs.filter((run) => ranks.has(run));
    const lacking = runs.filter((run) => !ranks.has(run)).map((run) => data.runs[run]);
    const notes = [];
    if (lacking.length) notes.push(`The first ranks of ${lacking.join(" and ")} are not in this page.`);
    if (ranks.policy === "pl") notes.push("In the order of the scores, the most likely ranking of each policy; exposure is the expected attention of a document.");
    if (ranks.policy === "samples") notes.push("The first of each run's rankings; exposure is the mean over all of them.");
    $("#topic-readout").textContent = "";
    if (!kept.length) { $("#topic-note").textContent = notes.join(" "); return null; }
    const topic = ranks.topic(t);
    const attributes = ranks.attributes.map((_, a) => a).filter((a) => topic.applies[a]);
    const places = kept.map((run) => new Map(topic.lists.get(run).map(({ doc, rank }) => [doc, rank])));
    const empty = kept.filter((run) => !topic.lists.get(run).length).map((run) => data.runs[run]);
    if (empty.length) notes.push(`${empty.join(" and ")} ${empty.length > 1 ? "have" : "has"} no documents for this topic.`);
    if (kept.length === 2) {
      const both = [...places[0].keys()].filter((doc) => places[1].has(doc)).length;
      notes.push(both ? `${plural(both, "document")} of the first ${ranks.depth} in common, joined by lines.` : `No document of the first ${ranks.depth} in common.`);
    }
    $("#topic-note").textContent = notes.join(" ");
    const frame = element(part, "div", { class: kept.length === 2 ? "pair" : "pair single" });
    frame.style.setProperty("--depth", ranks.depth);
    const rows = [];
    kept.forEach((run, side) => {
      if (side) lines(element(frame, "div", { class: "gutter" }), places);
      rows.push(ranking(frame, run, side, topic, attributes, places));
    });
    const light = (row) => {
      frame.querySelectorAll("[data-doc]").forEach((one) => one.classList.toggle("lit", one.dataset.doc === row.dataset.doc));
      $("#topic-readout").textContent = row.dataset.text;
    };
    rows.forEach((some) => roving(some, light, light));
    return { topic, kept, attributes };
  }

  function bar(parent, name, shares, groups) {
    const row = element(parent, "tr");
    draw.name(element(row, "th", { scope: "row" }), name, 6);
    const cell = element(row, "td", { class: "bar" });
    if (!shares) { cell.textContent = "–"; return; }
    const text = shares.map((share, g) => `${groups[g]} ${share.toFixed(3)}`).join(", ");
    stripes(cell, shares.map((share, g) => [g, share]).filter(([, share]) => share > 0), 200, 14, text);
    element(row, "td", { class: "text shares" }, shares.map((share) => share.toFixed(2).replace(/^0/, "")).join(" "));
  }

  function showGroups(found) {
    const part = $("#topic-shares");
    part.replaceChildren();
    if (!found || !found.attributes.length) return;
    const { topic, kept, attributes } = found;
    const of = ranks.policy === "ranking" ? `exposure in the first ${ranks.depth} ranks` : "the exposure of these documents";
    element(part, "h4", {}, `Shares of ${of}, and the target`);
    attributes.forEach((a) => {
      const { name, groups, total } = ranks.attributes[a];
      const table = element(part, "table", { class: "plain shares", "data-attribute": name });
      const caption = element(table, "caption");
      element(caption, "bdi", {}, name);
      const keys = element(caption, "span", { class: "keys" });
      groups.forEach((group, g) => {
        const key = element(keys, "span", { class: "swatch" });
        const drawing = svg(key, "svg", { viewBox: "0 0 12 12", "aria-hidden": "true" });
        area(drawing, "rect", g, { x: 0, y: 0, width: 12, height: 12 });
        element(key, "bdi", {}, group);
      });
      if (groups.length < total) element(keys, "span", {}, `(${total} groups, summed)`);
      const body = element(table, "tbody");
      kept.forEach((run) => bar(body, data.runs[run], ranks.shares(topic.lists.get(run), topic.docs, a), groups));
      bar(body, "target", topic.targets[a], groups);
    });
  }

  function showValues(t) {
    const table = $("#topic-values");
    table.replaceChildren();
    const runs = shown().filter((run) => data.values[run]);
    const two = runs.length === 2;
    element(table, "caption", {}, "Measures on this topic");
    const head = element(element(table, "thead"), "tr");
    element(head, "th", { scope: "col", class: "text" }, "measure");
    runs.forEach((run) => element(element(head, "th", { scope: "col", title: data.runs[run] }), "bdi", {}, data.brief[run]));
    if (two) element(head, "th", { scope: "col" }, "gain");
    element(head, "th", { scope: "col" }, "median");
    const body = element(table, "tbody");
    data.measures.forEach((measure, m) => {
      const every = withValues.map((run) => data.values[run][m][t]);
      const own = runs.map((run) => data.values[run][m][t]);
      if (every.every((value) => value === null)) return;
      const row = element(body, "tr", { "data-measure": measure.id });
      const name = element(row, "th", { scope: "row", title: measure.id });
      `${measure.name}\u00a0${measure.arrow}`.split(/(?=[(@])/).forEach((part, i) => name.append(...(i ? [element(null, "wbr"), part] : [part])));
      own.forEach((value) => element(row, "td", {}, value === null ? "undefined" : number(value)));
      if (two) {
        const better = own.includes(null) || !measure.sign ? null : gain(measure, own[0], own[1]);
        const kind = !better ? "" : better > 0 ? "better" : "worse";
        element(row, "td", { class: kind }, better === null ? "–" : signed(better));
      }
      element(row, "td", {}, number(median(every)));
    });
    const without = data.measures.filter((_, m) => withValues.every((run) => data.values[run][m][t] === null)).map((measure) => measure.name);
    if (without.length) {
      const row = element(element(table, "tfoot"), "tr");
      element(row, "td", { colspan: runs.length + (two ? 3 : 2), class: "text wrap" }, `undefined here for every run: ${without.join(", ")}`);
    }
  }

  if (data.topics.length && withValues.length && !$("#topic").closest(".needs-script").hidden) {
    state.on(["topic", "runs", "against", "group"], () => {
      const t = state.opened();
      $("#topics .explorer").classList.toggle("unopened", state.now.topic === null);  // paper shows only what was chosen
      $("#topic-title").replaceChildren();
      element($("#topic-title"), "bdi", {}, `Topic ${data.topics[t]}`);
      if (data.titles[t]) $("#topic-title").append(`: ${data.titles[t]}`);
      showGroups(showRanks(t));
      showValues(t);
    });
  }
}
