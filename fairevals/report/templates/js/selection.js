// What is chosen: the bar at the top, and every element that names a run with data-choose.
{
  const { $, all, element, options, reveal } = draw;
  document.documentElement.classList.add("js");

  document.addEventListener("click", (event) => {
    const named = event.target.closest("[data-choose]");
    if (named) state.choose(Number(named.dataset.choose));
  });

  function mark() {
    all("[data-run], [data-choose]").forEach((item) => {
      const place = state.place(Number(item.dataset.run ?? item.dataset.choose));
      ["first", "second"].forEach((name) => item.classList.toggle(name, name === place));
      if (item.dataset.choose !== undefined) item.setAttribute("aria-pressed", String(place !== ""));
    });
  }

  function chips() {
    const chosen = state.now.runs.map((run) => {
      const chip = element(null, "button", { type: "button", class: `chip ${state.place(run)}`, "aria-label": `Deselect ${data.runs[run]}` });
      element(chip, "bdi", {}, data.runs[run]);
      const facts = [data.teams[run], data.statuses[run]].filter(Boolean).join(", ");
      if (facts) element(chip, "span", { class: "hint" }, ` ${facts}`);
      element(chip, "span", { "aria-hidden": "true" }, " ×");
      chip.addEventListener("click", () => state.choose(run));
      return chip;
    });
    const hint = element(null, "span", { class: "hint" }, "Choose one or two runs, in the table or in a figure.");
    $("#chosen").replaceChildren(...(chosen.length || data.runs.length < 2 ? chosen : [hint]));
  }

  reveal($("#toolbar"));
  state.on(["runs"], () => { mark(); chips(); });

  const filter = $("#filter");
  filter.addEventListener("input", () => state.set({ filter: filter.value }));
  state.on(["filter"], () => { if (filter.value !== state.now.filter) filter.value = state.now.filter; });

  if (data.groups.length) {
    const group = $("#group");
    options(group, [["", "all"], ...data.groups.map((one, g) => [g, `${one.name} (${one.topics.length})`])], "");
    $("#group-field").hidden = false;
    group.addEventListener("change", () => state.set({ group: group.value === "" ? null : Number(group.value) }));
    state.on(["group"], () => {
      group.value = state.now.group ?? "";
      all(".part-note").forEach((note) => { note.hidden = state.now.group === null; });
    });
  }

  const copy = $("#copy-link");
  copy.addEventListener("click", () => draw.copied(copy, state.address()));
}
