// The leaderboard: sorting by a heading, the filter, columns, and the means on the chosen topic group.
{
  const { $, all, number, plural } = draw;
  const table = $("#board");
  const body = table.tBodies[0];
  const heads = all("thead [data-sort]", table);
  const reversed = { ascending: "descending", descending: "ascending", other: "other" };
  const rows = new Map(all("tr", body).map((row) => [Number(row.dataset.run), row]));
  const written = new Map(all("td[data-measure]", body).map((cell) => [cell, Array.from(cell.childNodes)]));

  // The runs in the order of a column. In either direction incomplete runs follow the complete ones, and runs without a
  // value come last.
  function ordered() {
    const turned = state.now.sort.startsWith("-");
    const sign = turned ? -1 : 1;
    const name = turned ? state.now.sort.slice(1) : state.now.sort;
    if (name === "run") return [...data.order].sort((p, q) => sign * data.runs[p].localeCompare(data.runs[q], "en", { numeric: true }));
    if (name === "own" && state.own) {
      const { values, rank } = state.own;
      return [...data.order].sort((p, q) => rank[p] - rank[q] || (rank[p] < 2 ? sign * (values[q] - values[p]) : 0));
    }
    const m = Math.max(0, data.measures.findIndex((one) => one.id === name));
    if (!turned && m === 0 && state.now.group === null) return data.order;
    const { means, costs, incomplete } = state.part();
    const keys = data.runs.map((_, r) => ({
      rank: means[r][m] === null ? 2 : incomplete[r][m],
      key: costs[r][m] ?? -means[r][m],  // a count has no cost
    }));
    return [...data.order].sort((p, q) => keys[p].rank - keys[q].rank || (keys[p].rank < 2 ? sign * (keys[p].key - keys[q].key) : 0));
  }

  function sort() {
    const turned = state.now.sort.startsWith("-");
    const name = (turned ? state.now.sort.slice(1) : state.now.sort) || data.measures[0].id;
    all("thead [data-sort]", table).forEach((head) => {
      const mine = head.dataset.sort === name;
      head.classList.toggle("reversed", mine && turned);
      if (mine) head.setAttribute("aria-sort", turned ? reversed[head.dataset.best] : head.dataset.best);
      else head.removeAttribute("aria-sort");
    });
    body.append(...ordered().map((r) => rows.get(r)));
  }

  function filter() {
    rows.forEach((row, r) => { row.hidden = !state.matches(r); });
    const count = data.runs.filter((_, r) => state.matches(r)).length;
    const topics = state.now.group === null ? "" : ` on ${plural(state.topics().length, "topic")} of ${data.groups[state.now.group].name}`;
    $("#count").textContent = (count < rows.size ? `${count} of ${rows.size} runs` : plural(rows.size, "run")) + topics;
  }

  // On a topic group there are means and intervals, but no tests.
  function fill() {
    const whole = state.now.group === null;
    const { means, low, high, incomplete, best, undefined: counts } = state.part();
    rows.forEach((row, r) => {
      all("td[data-measure]", row).forEach((cell) => {
        const m = Number(cell.dataset.measure);
        cell.classList.toggle("part", !whole);
        if (whole) {
          cell.replaceChildren(...written.get(cell));
          return;
        }
        const value = draw.element(null, "span", { class: "v" }, number(means[r][m]));
        value.classList.toggle("best", Boolean(best[r][m]));
        const parts = incomplete[r][m] ? [draw.element(null, "span", { class: "lacks", title: "incomplete" }, "†"), value] : [value];
        const interval = low[r][m] === null ? "" : `[${number(low[r][m], 3)}, ${number(high[r][m], 3)}]`;
        cell.replaceChildren(...parts, draw.element(null, "span", { class: "ci" }, interval));
      });
      $("td.undefined", row).textContent = counts[r].reduce((sum, count) => sum + count, 0) || "–";
    });
    $("#board-note").classList.toggle("part", !whole);
  }

  function columns() {
    all("[data-measure]", table).forEach((cell) => { cell.hidden = state.now.hide.includes(Number(cell.dataset.measure)); });
    all(".chooser input").forEach((box) => { box.checked = !state.now.hide.includes(Number(box.dataset.column)); });
  }

  table.addEventListener("click", (event) => {
    const head = event.target.closest("thead [data-sort]");
    if (head && event.target.closest("button")) {
      const name = head.dataset.sort;
      const again = head.hasAttribute("aria-sort") && !head.classList.contains("reversed");
      state.set({ sort: again ? `-${name}` : name === data.measures[0].id ? null : name });
      return;
    }
    const row = event.target.closest("tbody tr");
    if (row && !event.target.closest("button, a") && !String(getSelection())) state.choose(Number(row.dataset.run));
  });
  all(".chooser input").forEach((box) => box.addEventListener("change", () => {
    const m = Number(box.dataset.column);
    state.set({ hide: box.checked ? state.now.hide.filter((other) => other !== m) : [...state.now.hide, m] });
  }));
  state.on(["group"], fill);
  state.on(["sort", "group", "weights"], sort);
  state.on(["filter", "group"], filter);
  state.on(["hide"], columns);
}
