// The first ranks of runs, as drilldown.py encodes them; read when a topic is first opened, one topic at a time.
//
//   ranks.has(run)          whether the page has the first ranks of a run
//   ranks.policy            "ranking", "pl" or "samples"
//   ranks.grades            all different grades, as texts
//   ranks.attributes        name, groups, total and ordinal of each attribute
//   ranks.topic(t)          { docs, lists, targets }: the documents of a topic, and for each run its ranking
//   ranks.shares(list, docs, a)   the share of each group of attribute a in the exposure of a ranking
const ranks = (() => {
  const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
  const known = new Map();
  let parsed = null;
  function read() {
    if (!parsed) parsed = { runs: [], attributes: [], ...JSON.parse(document.getElementById("ranks").textContent) };
    return parsed;
  }

  // Whole numbers of one or more bytes each, least significant byte first.
  function numbers(text, count) {
    const bytes = atob(text);
    const width = count ? bytes.length / count : 1;
    return Array.from({ length: count }, (_, i) => {
      let value = 0;
      for (let k = width - 1; k >= 0; k -= 1) value = value * 256 + bytes.charCodeAt(i * width + k);
      return value;
    });
  }

  // Each id is what it shares with the one before it, and the rest.
  function names(text) {
    let last = [];
    return text.split("\n").filter(Boolean).map((part) => {
      last = [...last.slice(0, DIGITS.indexOf(part[0])), ...part.slice(1)];
      return last.join("");
    });
  }

  // [[group, share], …] from a code; none for a document without membership.
  function membership(attribute, code) {
    const count = attribute.groups.length;
    if (!code) return [];
    if (code <= count) return [[code - 1, 1]];
    attribute.shares ??= numbers(attribute.soft, attribute.rows * count);
    const start = (code - 1 - count) * count;
    return attribute.groups.map((_, g) => [g, attribute.shares[start + g] / attribute.share]).filter(([, share]) => share);
  }

  function topic(t) {
    if (known.has(t)) return known.get(t);
    const { runs, depth, grades, attributes, topics, share } = read();
    const table = topics[t];
    const ids = names(table.docs);
    const judged = numbers(table.grades, ids.length);
    const groups = table.groups.map((codes) => (codes === null ? null : numbers(codes, ids.length)));
    const docs = ids.map((name, d) => ({
      name,
      grade: judged[d] ? grades[judged[d] - 1] : null,
      groups: groups.map((codes, a) => (codes ? membership(attributes[a], codes[d]) : null)),
    }));
    const order = numbers(table.ranks, runs.length * depth);
    const exposure = table.exposure ? numbers(table.exposure, order.length) : null;
    const lists = new Map(runs.map((run, r) => [run, order.slice(r * depth, (r + 1) * depth).flatMap((d, k) => (d ? [{
      doc: d - 1, rank: k + 1, exposure: exposure ? exposure[r * depth + k] / share : 1 / Math.log2(k + 2),
    }] : []))]));
    const targets = table.targets.map((row, a) => (row === null ? null : attributes[a].targets[row].map((x) => x / share)));
    known.set(t, { docs, lists, targets, applies: groups.map((codes) => codes !== null) });
    return known.get(t);
  }

  function shares(list, docs, a) {
    const sums = read().attributes[a].groups.map(() => 0);
    list.forEach(({ doc, exposure }) => docs[doc].groups[a].forEach(([group, share]) => { sums[group] += share * exposure; }));
    const total = sums.reduce((x, y) => x + y, 0);
    return total ? sums.map((sum) => sum / total) : null;
  }

  return {
    has: (run) => read().runs.includes(run),
    topic,
    shares,
    get grades() { return read().grades; },
    get depth() { return read().depth; },
    get policy() { return read().policy; },
    get attributes() { return read().attributes; },
  };
})();
