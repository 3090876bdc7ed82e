// The shared state of the page: what the reader has chosen, kept in the address, so that a link opens the same view.
//
// All modules (the files in this folder, joined in the order of `SCRIPTS` in html.py) are one script with one scope.
// state.js, draw.js and ranks.js declare `data`, `state`, `draw` and `ranks`. Every other module is one block in braces: it fills its own
// section, reads `data`, listens to `state`, and never touches the elements of another section.
//
//   data                 what page.py embeds (page_data); runs, topics, measures and groups are numbers into its lists
//   state.now            the present values of FIELDS: runs (0 to 2, in the order chosen), topic, group, measure, x, y, …
//   state.set({...})     change some values, then tell the listeners of those that changed; null means the default
//   state.on(names, f)   call f() now, and after every change of one of these names
//   state.choose(run)    choose a run, or deselect it if it is chosen; a third run replaces the second
//   state.address()      the address of the present view
//   state.place(run)     "first" or "second" for a chosen run, else ""
//   state.matches(run)   whether the filter shows a run
//   state.part()         the means (see `_means` in data.py) on the chosen topic group, or on all topics
//   state.own            the runs by the reader's own weights, { values, rank }; null without (see weights.js)
//   state.pair()         two runs to compare: the chosen ones, else the best other run and the baseline; null for none
//   state.topics()       the topics of the chosen topic group, or all
//   state.opened()       the topic whose ranks are shown: the chosen one, or the first of these
//
// A new choice is one more line in FIELDS: its default, and how it is read from text and written as text.
const data = JSON.parse(document.getElementById("data").textContent);

const state = (() => {
  const oneOf = (names) => ({
    read: (text) => (names.includes(text) ? names.indexOf(text) : undefined),
    write: (value) => names[value],
  });
  const text = { read: (value) => value, write: (value) => value };
  const numbers = (value) => {
    const found = value.split(",").map(Number);
    return data.weights && found.length === data.weights.names.length && found.every((one) => one >= 0 && Number.isFinite(one)) ? found : undefined;
  };
  const measure = oneOf(data.measures.map((one) => one.id));
  const FIELDS = {
    runs: { first: [], most: 2, ...oneOf(data.runs) },
    topic: { first: null, ...oneOf(data.topics) },
    group: { first: null, ...oneOf(data.groups.map((one) => one.name)) },
    measure: { first: data.byTopic, ...measure },
    x: { first: data.across, ...measure },
    y: { first: data.up, ...measure },
    order: { first: "", ...text },
    against: { first: "", ...text },
    filter: { first: "", ...text },
    sort: { first: "", ...text },
    attribute: { first: 0, read: (value) => (/^\d+$/.test(value) && Number(value) < data.attributes ? Number(value) : undefined), write: String },
    weights: { first: null, read: numbers, write: (values) => values.join(",") },
    hide: { first: [], most: data.measures.length, ...measure },
  };
  const now = {};
  const listeners = [];
  let section = "";

  // The address is #section&name=value&…, with values that differ from the defaults.
  function read() {
    const [first, ...rest] = location.hash.slice(1).split("&");
    const named = first.includes("=") ? [first, ...rest] : rest;
    section = first.includes("=") ? "" : first;
    const given = new URLSearchParams(named.join("&"));
    return Object.fromEntries(Object.entries(FIELDS).map(([name, field]) => {
      const values = given.getAll(name).map(field.read).filter((value) => value !== undefined);
      if (field.most) return [name, [...new Set(values)].slice(0, field.most)];
      return [name, values.length ? values[0] : field.first];
    }));
  }

  function written() {
    const given = new URLSearchParams();
    Object.entries(FIELDS).forEach(([name, field]) => {
      if (field.most) now[name].forEach((value) => given.append(name, field.write(value)));
      else if (now[name] !== field.first) given.append(name, field.write(now[name]));
    });
    const hash = [section, given.toString()].filter(Boolean).join("&");
    return hash ? `#${hash}` : location.pathname + location.search;
  }
  const write = () => history.replaceState(null, "", written());

  // The address of the present view, for a link.
  function address() {
    write();
    return location.href;
  }

  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  let waiting = 0;
  function apply(values) {
    const changed = Object.keys(values).filter((name) => !same(values[name], now[name]));
    if (!changed.length) return;
    Object.assign(now, values);
    // Browsers allow few changes of the address per second, and a slider makes many.
    clearTimeout(waiting);
    waiting = setTimeout(write, 100);
    listeners.forEach(([names, listener]) => { if (names.some((name) => changed.includes(name))) listener(); });
  }

  function set(values) {
    apply(Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value ?? FIELDS[name].first])));
  }

  function on(names, listener) {
    listeners.push([names, listener]);
    listener();
  }

  function choose(run) {
    const { runs } = now;
    set({ runs: runs.includes(run) ? runs.filter((other) => other !== run) : [...runs.slice(0, 1), run] });
  }

  const place = (run) => ["first", "second"][now.runs.indexOf(run)] ?? "";

  // Words that must all occur, in any order; with | between them, several such lists of which one must fit.
  const known = data.runs.map((name, r) => `${name} ${data.teams[r]} ${data.statuses[r]}`.toLowerCase());
  function matches(run) {
    const lists = now.filter.toLowerCase().split("|").map((part) => part.split(/\s+/).filter(Boolean)).filter((words) => words.length);
    return !lists.length || lists.some((words) => words.every((word) => known[run].includes(word)));
  }

  const part = () => (now.group === null ? data : data.groups[now.group]);

  function pair() {
    const [first = data.focus ?? data.baseline, second] = now.runs;
    if (second !== undefined) return [first, second];
    return [first, first === data.baseline ? data.focus : data.baseline];
  }

  function topics() {
    return now.group === null ? data.topics.map((_, t) => t) : data.groups[now.group].topics;
  }

  function opened() {
    const shown = topics();
    return shown.includes(now.topic) ? now.topic : shown[0];
  }

  function jump() {
    const target = section && document.getElementById(section);
    if (target) target.scrollIntoView();
  }

  Object.assign(now, read());
  window.addEventListener("load", jump);
  window.addEventListener("hashchange", () => {
    // A link to a section carries no choices: the browser has moved there, and the choices stay.
    const plain = document.getElementById(location.hash.slice(1));
    if (plain) {
      section = plain.id;
      write();
    } else {
      apply(read());
      jump();
    }
  });
  return { now, own: null, set, on, address, choose, place, matches, part, pair, topics, opened };
})();
