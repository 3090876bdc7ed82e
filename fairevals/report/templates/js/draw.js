// Elements, numbers as text, scales, and movement by keyboard. Names come from strangers: they are set as text only.
const draw = (() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));

  // A new element of HTML or, with svg, of SVG at the end of its parent.
  function element(parent, name, attributes = {}, text = undefined) {
    const made = document.createElement(name);
    return finished(parent, made, attributes, text);
  }
  function svg(parent, name, attributes = {}, text = undefined) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    return finished(parent, made, attributes, text);
  }
  function finished(parent, made, attributes, text) {
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    if (text !== undefined) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  }

  const minus = (text) => text.replace("-", "−");
  const number = (x, places = 4) => (x === null ? "–" : minus(Number(x.toFixed(places)) ? x.toFixed(places) : Math.abs(x).toFixed(places)));
  const signed = (x, places = 4) => (x > 0 && Number(x.toFixed(places)) ? "+" : "") + number(x, places);
  function median(values) {
    const sorted = values.filter((value) => value !== null).sort((a, b) => a - b);
    const half = sorted.length >> 1;
    if (!sorted.length) return null;
    return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  }
  const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

  // Names of runs and topics often differ at their ends only, so a long one loses its middle.
  function short(text, length) {
    const letters = Array.from(text);
    if (letters.length <= length) return text;
    const tail = Math.floor((length - 1) / 2);
    return letters.slice(0, length - 1 - tail).join("") + "…" + letters.slice(letters.length - tail).join("");
  }

  // A name in two parts, of which the style shortens the first where there is no room.
  function name(parent, text, ending = 10) {
    const letters = Array.from(text);
    const at = letters.length > ending + 2 ? letters.length - ending : 0;
    const whole = element(parent, "bdi", { class: "halves", title: text });
    if (at) element(whole, "span", { class: "cut" }, letters.slice(0, at).join(""));
    element(whole, "span", { class: "end" }, letters.slice(at).join(""));
    return whole;
  }

  function ticks(low, high, most = 5) {
    const raw = (high - low) / most || 1;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= raw * 0.999);
    const values = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) values.push(Number((k * step).toPrecision(12)));
    return { values, places: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
  }

  // Tab reaches one item; the arrow keys, Home and End move between items; Enter and the space bar choose.
  function roving(items, show, choose) {
    items.forEach((item, at) => {
      item.setAttribute("tabindex", at ? "-1" : "0");
      item.addEventListener("focus", () => show(item));
      item.addEventListener("pointerenter", () => show(item));
      if (choose) item.addEventListener("click", () => choose(item));
      item.addEventListener("keydown", (event) => {
        if (choose && (event.key === "Enter" || event.key === " ")) {
          event.preventDefault();
          choose(item);
          return;
        }
        const last = items.length - 1;
        const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: last }[event.key];
        if (to === undefined || !items[to]) return;
        event.preventDefault();
        item.setAttribute("tabindex", "-1");
        items[to].setAttribute("tabindex", "0");
        items[to].focus();
      });
    });
  }

  // Fill a select with [value, text] pairs.
  function options(select, pairs, chosen) {
    select.replaceChildren(...pairs.map(([value, text]) => {
      const option = element(null, "option", { value }, text);
      option.selected = value === chosen;
      return option;
    }));
  }

  // Draw a chart in pixels of the screen or of the paper, so that its text has the same size everywhere, and again when
  // its width changes. `render(width, height)` fills it; `shape(width)` gives its height. With `lazy` it is not drawn
  // before it is near the screen, or printed. Returns a function that draws it again.
  const PAPER = 756;  // the largest width of a chart on paper, 20 cm
  function chart(target, shape, render, lazy = false) {
    let last = 0;
    let seen = !lazy;
    function fill(width) {
      last = width;
      const height = Math.round(shape(width));
      target.setAttribute("viewBox", `0 0 ${width} ${height}`);
      target.replaceChildren();
      render(width, height);
    }
    const again = () => { if (seen) fill(target.clientWidth || last || 860); };
    new ResizeObserver(() => { if (target.clientWidth && target.clientWidth !== last) again(); }).observe(target);
    if (lazy) {
      new IntersectionObserver((entries, observer) => {
        if (!entries.some((entry) => entry.isIntersecting)) return;
        seen = true;
        observer.disconnect();
        again();
      }, { rootMargin: "600px" }).observe(target);
    }
    window.addEventListener("beforeprint", () => { seen = true; fill(PAPER); });
    window.addEventListener("afterprint", again);
    return again;
  }

  // Show what needs the script, and close the picture for readers without it.
  function reveal(part) {
    part.hidden = false;
    all(`nav a[href="#${part.id}"]`).forEach((link) => { link.hidden = false; });
    all("details.static", part.closest("section") ?? part).forEach((details) => { details.open = false; });
  }

  // Put a text on the clipboard and say so on the button. A page from a disk may not use the clipboard's interface.
  function copied(button, text) {
    const area = element(document.body, "textarea", { class: "hidden", readonly: "", "aria-hidden": "true" });
    area.value = text;
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    button.focus();
    button.dataset.label ??= button.textContent;
    button.textContent = done ? "Copied" : "Not allowed to copy";
    setTimeout(() => { button.textContent = button.dataset.label; }, 1500);
  }

  const measures = data.measures.map((one, m) => [m, `${one.name} ${one.arrow}`.trim()]);
  // How far a value is from what is wanted, if the measure has a target; its sign says which way is better.
  const compared = (measure, value) => (measure.target === null ? value : Math.abs(value - measure.target));
  // How much better a value is than another; the page has six decimals, so that less is no difference.
  function gain(measure, value, other) {
    const by = measure.sign * (compared(measure, value) - compared(measure, other));
    return Math.abs(by) < 1e-6 ? 0 : by;
  }
  // The runs with values by topic, best first.
  const withValues = data.order.filter((r) => data.values[r] !== null);

  // Groups that share a colour differ by lines across it.
  function area(parent, kind, group, shape) {
    svg(parent, kind, { class: `g${group % 8}`, ...shape });
    if (group >= 8) svg(parent, kind, { fill: "url(#lines)", ...shape });
  }

  // Two selects of runs that follow what is chosen. The baseline is compared with where no second run is chosen.
  function pickers(one, other, runs) {
    const names = runs.map((r) => [r, data.runs[r] + (r === data.baseline ? " (baseline)" : "")]);
    [one, other].forEach((select) => {
      options(select, names);
      select.addEventListener("change", () => {
        const [first, second] = [Number(one.value), Number(other.value)];
        state.set({ runs: second === data.baseline && first !== second ? [first] : [...new Set([first, second])] });
      });
    });
    state.on(["runs"], () => { [one.value, other.value] = state.pair(); });
  }

  return { $, all, element, svg, number, signed, median, plural, short, name, ticks, roving, options, chart, reveal, copied, measures, compared, gain, withValues, area, pickers };
})();
