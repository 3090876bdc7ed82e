// Groups along the ranks, and exposure by grade, of the one or two chosen runs; drawn from the first ranks.
{
  const { $, element, svg, plural, short, options, chart, reveal, area } = draw;
  const withRanks = data.order.filter((r) => ranks.has(r));
  const NOTE = { pl: " These are the most likely rankings; the pictures below show means over the policy.", samples: " These are the first rankings of each topic; the pictures below show means over all." }[ranks.policy] ?? "";

  const runs = () => [...new Set(state.pair())].filter((r) => r !== null && ranks.has(r));

  // Higher grades are darker.
  function level(parent, _kind, grade, shape) {
    const strength = 0.15 + 0.85 * (grade / ranks.grades.length);
    svg(parent, "rect", { class: grade ? "grade" : "grade unjudged", "fill-opacity": grade ? strength.toFixed(2) : 1, ...shape });
  }
  function legend(place, names, fill) {
    place.replaceChildren(...names.map((name, group) => {
      const key = element(null, "span", { class: "swatch" });
      const patch = svg(key, "svg", { width: 14, height: 14, "aria-hidden": "true" });
      fill(patch, "rect", group, { width: 14, height: 14 });
      element(key, "bdi", {}, name);
      return key;
    }));
  }

  // The mean over topics of the groups' shares of the first k ranks. As in groups.py, a rank without a known document so
  // far has the share of the nearest one that has, and a ranking that has ended keeps its last.
  function along(run, a) {
    const count = ranks.attributes[a].groups.length;
    const [sums, target] = [Array.from({ length: ranks.depth }, () => Array(count).fill(0)), Array(count).fill(0)];
    let topics = 0;
    state.topics().forEach((t) => {
      const { docs, lists, targets } = ranks.topic(t);
      const list = lists.get(run);
      if (targets[a] === null || !list.some(({ doc }) => docs[doc].groups[a].length)) return;
      const seen = Array(count).fill(0);
      let known = 0;
      const rows = Array.from({ length: ranks.depth }, (_, k) => {
        const membership = k < list.length ? docs[list[k].doc].groups[a] : [];
        if (membership.length) known += 1;
        membership.forEach(([group, share]) => { seen[group] += share; });
        return known ? seen.map((sum) => sum / known) : null;
      });
      const first = rows.find((row) => row !== null);
      rows.forEach((row, k) => (row ?? first).forEach((share, group) => { sums[k][group] += share; }));
      targets[a].forEach((share, group) => { target[group] += share; });
      topics += 1;
    });
    return { topics, rows: sums.map((row) => row.map((sum) => sum / topics)), target: target.map((sum) => sum / topics) };
  }

  const shares = $("#shares");
  const columns = (width) => (width < 560 ? 1 : 2);
  function renderShares(width) {
    const a = state.now.attribute;
    const attribute = ranks.attributes[a];
    const shown = runs();
    const across = Math.min(columns(width), shown.length || 1);
    const [panelWidth, panelHeight] = [width / across, 250];
    const texts = shown.map((run, place) => {
      const { topics, rows, target } = along(run, a);
      const box = { left: (place % across) * panelWidth + 40, right: (place % across + 1) * panelWidth - 12, top: Math.floor(place / across) * panelHeight + 26, bottom: Math.floor(place / across) * panelHeight + 210 };
      svg(svg(shares, "g", { class: state.place(run) }), "text", { x: box.left, y: box.top - 9 }, short(data.runs[run], Math.floor((panelWidth - 60) / 7)));
      if (!topics) { svg(shares, "text", { x: box.left, y: box.top + 20 }, "No document with a known group."); return `${data.runs[run]}: undefined`; }
      const bar = Math.min(30, (box.right - box.left) * 0.12);
      const right = box.right - bar - 20;
      const px = (k) => box.left + (ranks.depth > 1 ? k / (ranks.depth - 1) : 0) * (right - box.left);
      const py = (share) => box.bottom - share * (box.bottom - box.top);
      const below = rows.map(() => 0);
      let floor = 0;
      attribute.groups.forEach((_, group) => {
        const low = rows.map((_row, k) => `${px(k)},${py(below[k])}`);
        rows.forEach((row, k) => { below[k] += row[group]; });
        const high = rows.map((_row, k) => `${px(k)},${py(below[k])}`).reverse();
        area(shares, "polygon", group, { points: [...low, ...high].join(" ") });
        area(shares, "rect", group, { x: box.right - bar, width: bar, y: py(floor + target[group]), height: py(floor) - py(floor + target[group]) });
        floor += target[group];
      });
      [0, 0.5, 1].forEach((share) => svg(shares, "text", { class: "tick", x: box.left - 5, y: py(share) + 4, "text-anchor": "end" }, share));
      const marks = [1, 5, 10, 20, 50, 100].filter((k) => k <= ranks.depth);
      marks.forEach((k) => svg(shares, "text", { class: "tick", x: px(k - 1), y: box.bottom + 15, "text-anchor": "middle" }, k));
      svg(shares, "text", { class: "tick", x: box.right, y: box.bottom + 15, "text-anchor": "end" }, "target");
      const last = attribute.groups.map((group, g) => `${group} ${rows.at(-1)[g].toFixed(2)} (target ${target[g].toFixed(2)})`);
      return `${data.runs[run]}, first ${ranks.depth} ranks, mean over ${plural(topics, "topic")}: ${last.join(", ")}`;
    });
    legend($("#shares-legend"), attribute.groups, area);
    const summed = attribute.groups.length < attribute.total ? ` The ${attribute.total} groups are drawn as ${attribute.groups.length}.` : "";
    $("#shares-text").textContent = `${texts.join(". ")}.${summed}${NOTE}`;
  }

  // Of each run the share of exposure that documents of a grade get, and what the best possible order would give them.
  const merits = $("#merits");
  function byGrade(topics, list) {
    const sums = [0, ...ranks.grades.map(() => 0)];  // unjudged documents first
    topics.forEach((t) => list(t).forEach(([place, exposure]) => { sums[place] += exposure; }));
    const total = sums.reduce((x, y) => x + y, 0);
    return total ? sums.map((sum) => sum / total) : null;
  }
  function ideal(t) {
    const order = data.judged[t].flatMap((count, grade) => Array(count).fill(grade + 1)).reverse();
    return order.slice(0, ranks.depth).map((place, k) => [place, 1 / Math.log2(k + 2)]);
  }
  function renderMerits(width) {
    const topics = state.topics();
    const rows = runs().map((run) => [data.runs[run], state.place(run), byGrade(topics, (t) => {
      const { docs, lists } = ranks.topic(t);
      return lists.get(run).map(({ doc, exposure }) => [1 + ranks.grades.indexOf(docs[doc].grade), exposure]);
    })]);
    if (data.judged) rows.push(["best possible order", "", byGrade(topics, ideal)]);
    const names = ["unjudged", ...ranks.grades.map((grade) => `grade ${grade}`)];
    const texts = rows.map(([name, kind, parts], place) => {
      const y = 12 + place * 62;
      svg(svg(merits, "g", { class: kind }), "text", { x: 10, y: y + 12 }, short(name, Math.floor(width / 7.5)));
      let x = 10;
      (parts ?? []).forEach((share, group) => {
        const room = share * (width - 20);
        level(merits, "rect", group, { x, y: y + 20, width: room, height: 24 });
        x += room;
      });
      return `${name}: ${parts ? parts.map((share, at) => `${names[at]} ${Math.round(100 * share)} %`).join(", ") : "undefined"}`;
    });
    legend($("#merits-legend"), names, level);
    $("#merits-text").textContent = `Shares of the exposure of the first ${plural(ranks.depth, "rank")} (log2 attention). ${texts.join(". ")}.${NOTE}`;
  }

  function pick(section) {
    draw.pickers($(".one-run", section), $(".other-run", section), withRanks);
    const left = data.runs.length - withRanks.length;
    if (left) element($(".fields", section), "span", { class: "hint" }, `To keep the page small, it has the first ranks of ${withRanks.length} of ${data.runs.length} runs.`);
  }

  if (shares && withRanks.length && ranks.attributes.length) {
    const select = $("#attribute");
    options(select, ranks.attributes.map((one, a) => [a, one.name]), state.now.attribute);
    select.addEventListener("change", () => state.set({ attribute: Number(select.value) }));
    state.on(["attribute"], () => { select.value = state.now.attribute; });
    pick($("#groups"));
    reveal(shares.closest(".interactive"));
    // Lazy, because the first ranks take time to decode.
    state.on(["runs", "group", "attribute"], chart(shares, (width) => 250 * Math.ceil(Math.max(1, runs().length) / columns(width)), renderShares, true));
  }
  if (merits && withRanks.length) {
    pick($("#exposure"));
    reveal(merits.closest(".interactive"));
    state.on(["runs", "group"], chart(merits, () => 16 + 62 * (runs().length + (data.judged ? 1 : 0)), renderMerits, true));
  }
}
