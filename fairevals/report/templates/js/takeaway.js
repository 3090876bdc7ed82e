// Take away: the leaderboard as it is shown, as csv or LaTeX, and figures as svg files.
{
  const { $, all, element, copied } = draw;
  const files = JSON.parse(document.getElementById("tables").textContent);

  const shown = () => all("#board tbody tr:not([hidden])").map((row) => Number(row.dataset.run));
  const kept = (m) => !state.now.hide.includes(m);
  const plain = (x, places) => (x === null ? null : x.toFixed(places));

  // The cells of leaderboard.csv: four facts, then value, low, high and letters of every measure.
  function csv() {
    const [head, ...rows] = files.csv;
    const cells = (row) => row.filter((_, at) => at < 4 || kept(Math.floor((at - 4) / 4)));
    const { means, low, high } = state.part();
    const part = (r) => data.measures.flatMap((_, m) => [means[r][m], low[r][m], high[r][m], null].map((x) => x ?? ""));
    const row = (r) => {
      const whole = rows[data.order.indexOf(r)];
      return cells(state.now.group === null ? whole : [...whole.slice(0, 4), ...part(r)]);
    };
    const quoted = (text) => (/[",\r\n]/.test(text) ? `"${String(text).replaceAll('"', '""')}"` : text);
    return [cells(head), ...shown().map(row)].map((line) => line.map(quoted).join(",")).join("\n") + "\n";
  }

  // The lines of leaderboard.tex: \begin, \toprule, heads, \midrule, one line per run, then what stands below.
  function latex() {
    const lines = files.tex;
    const split = (line) => line.slice(0, -3).split(" & ");
    const first = split(lines[2]).length - data.asked;
    const cells = (row) => row.filter((_, at) => at < first || kept(at - first));
    const joined = (row) => `${cells(row).join(" & ")} \\\\`;
    const columns = /\{([lr]+)\}$/.exec(lines[0])[1];
    const begin = `\\begin{tabular}{${cells([...columns]).join("")}}`;
    const below = lines.slice(4 + data.order.length);
    const whole = state.now.group === null;
    const { means, low, high, incomplete, best } = state.part();
    const value = (r, m) => {
      const text = plain(means[r][m], 4) ?? "--";
      if (incomplete[r][m]) return `${text} †`;
      const bounds = low[r][m] === null ? "" : ` [${plain(low[r][m], 3)}, ${plain(high[r][m], 3)}]`;
      return (best[r][m] ? `\\textbf{${text}}` : text) + bounds;
    };
    const row = (r) => {
      const given = split(lines[4 + data.order.indexOf(r)]);
      return joined(whole ? given : [...given.slice(0, first), ...data.measures.slice(0, data.asked).map((_, m) => value(r, m))]);
    };
    const foot = below.map((line) => (line.endsWith(" \\\\") ? joined(split(line)) : line));
    const rest = whole ? foot : ["\\bottomrule", "\\end{tabular}", `% topics of ${data.groups[state.now.group].name.replace(/\s/g, " ")}; [low, high]: 95 % t intervals over topics`];
    return [begin, lines[1], joined(split(lines[2])), lines[3], ...shown().map(row), ...rest].join("\n") + "\n";
  }

  // A figure with the styles of the page written into it.
  const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "opacity", "font-family", "font-size", "font-weight", "text-anchor", "paint-order"];
  function standalone(chart) {
    const copy = chart.cloneNode(true);
    const parts = [chart, ...all("*", chart)];
    [copy, ...all("*", copy)].forEach((part, at) => {
      const style = getComputedStyle(parts[at]);
      STYLES.forEach((name) => part.setAttribute(name, style.getPropertyValue(name)));
      ["class", "tabindex", "role", "aria-pressed"].forEach((name) => part.removeAttribute(name));
    });
    const [, , width, height] = chart.getAttribute("viewBox").split(" ");
    Object.entries({ xmlns: "http://www.w3.org/2000/svg", width, height }).forEach(([name, text]) => copy.setAttribute(name, text));
    const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    Object.entries({ width, height, fill: getComputedStyle(chart).backgroundColor }).forEach(([name, text]) => ground.setAttribute(name, text));
    copy.prepend(ground);
    return new XMLSerializer().serializeToString(copy);
  }

  function download(name, text) {
    const link = element(document.body, "a", { download: name, href: URL.createObjectURL(new Blob([text], { type: "image/svg+xml" })) });
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  all(".take").forEach((place) => {
    place.hidden = false;
    const button = (text, act) => element(place, "button", { type: "button" }, text).addEventListener("click", (event) => act(event.currentTarget));
    if (place.dataset.table) {
      button("Copy csv", (one) => copied(one, csv()));
      button("Copy LaTeX", (one) => copied(one, latex()));
    } else {
      button("Download svg", () => download(`${place.dataset.name}.svg`, standalone($(`#${place.dataset.chart}`))));
    }
  });
}
