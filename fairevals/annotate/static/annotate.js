// Keys, drafts and saving on an assessor's page. Whatever is typed stays in this browser until the server has saved it.
"use strict";

const form = document.getElementById("form");
const frame = document.getElementById("frame");
const find = document.getElementById("find");
const ask = document.getElementById("ask");
const message = document.getElementById("message");
const discard = document.getElementById("discard");
const { used, messages } = JSON.parse(document.getElementById("known").textContent);
const draftKey = `fairevals ${form.dataset.draft}`;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const TOUCH = Number(form.dataset.touch);
let busy = false, touched = Date.now(), armed = false;

const names = () => Array.from(form.querySelectorAll(".name"));
const show = (text, kind = "") => { message.textContent = text; message.className = kind; message.hidden = !text; };

// Drafts ------------------------------------------------------------------------------------------------------------

const entries = () => [...new FormData(form)].filter(([name]) => !["token", "version"].includes(name));

function fill(pairs) {
  for (const input of form.querySelectorAll("[type=checkbox]")) {
    input.checked = pairs.some(([name, value]) => name === input.name && value === input.value);
  }
  for (const [name, value] of pairs) {
    const input = form.elements[name];
    if (input instanceof HTMLElement && input.type !== "checkbox") input.value = value;
  }
  form.querySelectorAll(".number").forEach(showBin);
}

const store = (act) => { try { return act(localStorage); } catch { return null; } };  // a browser may forbid it
const dropDraft = () => store((s) => s.removeItem(draftKey));
const saved = JSON.stringify(entries());

function keepDraft() {
  const pairs = entries();
  if (JSON.stringify(pairs) === saved) dropDraft();
  else store((s) => s.setItem(draftKey, JSON.stringify([...pairs, ["version", form.elements.version.value]])));
}

// With the version that the entries replace, so that the server notices if another tab has saved since.
function restoreDraft() {
  const pairs = JSON.parse(store((s) => s.getItem(draftKey)) || saved);
  if (JSON.stringify(pairs.filter(([name]) => name !== "version")) === saved) return;
  fill(pairs);
  discard.hidden = false;
  show("These entries were not saved yet. They were kept in this browser.", "note");
}

// Values ------------------------------------------------------------------------------------------------------------

const isFilled = (input) => (input.type === "checkbox" ? input.checked : input.value.trim() !== "");
const isNumber = (text) => NUMBER.test(text) && Number.isFinite(Number(text));
const keyOf = (name) => name.normalize("NFKC").trim().replace(/\s+/g, " ").toLowerCase();

// A number never starts with N: one key writes NA, further letters change nothing, and deleting one deletes both.
function completeUnknown(event) {
  const input = event.target;
  if (/^\s*n/i.test(input.value)) input.value = (event.inputType || "").startsWith("delete") ? "" : "NA";
}

function showBin(input) {
  const text = input.value.trim(), value = Number(text), output = input.parentElement.querySelector(".bin");
  if (text === "" || text === "NA") output.textContent = text && "not known";
  else if (!isNumber(text)) output.textContent = "not a number";
  else {
    const groups = JSON.parse(input.dataset.groups), bins = JSON.parse(input.dataset.bins);
    output.textContent = groups[bins.filter((bin) => value >= bin).length];
  }
}

// The values that the same assessor gave to the same entity before, unless something is entered already.
function fillEarlier(input) {
  const earlier = used.find(([name]) => keyOf(name) === keyOf(input.value));
  const fields = Array.from(form.elements).filter((e) => e.name && e.name.startsWith(`${input.name}f`));
  if (!earlier || fields.some(isFilled)) return;
  for (const element of fields) {
    const value = earlier[1 + Number(element.name.split("f")[1])];
    if (element.type === "checkbox") element.checked = value.split("|").includes(element.value);
    else element.value = value;
  }
  form.querySelectorAll(".number").forEach(showBin);
}

// What is wrong, by the name of the input. The server checks the same again.
function problems() {
  const errors = {}, seen = new Set();
  for (const entity of form.querySelectorAll(".entity")) {
    if (!Array.from(entity.querySelectorAll("input")).some(isFilled)) continue;
    const name = entity.querySelector(".name"), key = keyOf(name.value);
    if (!key) errors[name.name] = messages.name;
    else if (seen.has(key)) errors[name.name] = messages.same;
    seen.add(key);
    for (const input of entity.querySelectorAll(".number")) {
      const text = input.value.trim();
      if (!text) errors[input.name] = messages.missing;
      else if (text !== "NA" && !isNumber(text)) errors[input.name] = messages.number;
    }
    for (const group of entity.querySelectorAll(".choices")) {
      if (!group.querySelector(":checked")) errors[group.dataset.name] = messages.missing;
    }
    for (const input of entity.querySelectorAll("[type=url]")) {
      const text = input.value.trim();
      if (text && text !== "NA" && !/^https?:\/\//.test(text)) errors[input.name] = messages.url;
    }
  }
  return errors;
}

// Saving ------------------------------------------------------------------------------------------------------------

async function send(what) {
  if (busy) return;
  busy = true;
  show(what === "save" || what === "none" ? "Saving …" : "");
  const body = new URLSearchParams([...new FormData(form), ["do", what]]);
  try {
    const answer = await fetch(form.action, { method: "POST", body });
    const data = await answer.json();
    if (answer.ok) {
      if (what === "ask") document.getElementById("question").value = "";
      if (what === "save" || what === "none") dropDraft();
      else keepDraft();
      location.assign(data.next);
      return;
    }
    showErrors(data.errors || {});
    if (data.version) {  // what another tab has saved
      form.elements.version.value = data.version;
      discard.hidden = false;
      keepDraft();
    }
    show(data.message, "wrong");
  } catch {
    show("Not saved: the server does not answer. Your entries are kept in this browser; try again.", "wrong");
  }
  busy = false;
}

function showErrors(errors) {
  for (const place of form.querySelectorAll(".error")) {
    const text = errors[place.dataset.for] || "";
    place.textContent = text;
    const inputs = form.querySelectorAll(`[name="${place.dataset.for}"]`);
    inputs.forEach((input) => input.setAttribute("aria-invalid", text ? "true" : "false"));
  }
  const first = Object.keys(errors)[0];
  if (first) form.querySelector(`[name="${first}"]`).focus();
}

function perform(what) {
  if (what === "question") { ask.hidden = false; document.getElementById("question").focus(); return; }
  if (what === "cancel") { ask.hidden = true; return; }
  if (what === "discard") { dropDraft(); location.reload(); return; }
  if (what === "none" && !armed && Array.from(form.querySelectorAll(".entity input")).some(isFilled)) {
    armed = true;
    show("There are entries in the form. Press 0 again to save “no relevant entity” instead.", "note");
    return;
  }
  const errors = what === "save" ? problems() : {};
  showErrors(errors);
  if (Object.keys(errors).length) show(messages.errors, "wrong");
  else send(what);
}

// Keys --------------------------------------------------------------------------------------------------------------

// Fields in order; a group of choices counts once.
function stops() {
  const seen = new Set();
  return Array.from(form.querySelectorAll(".entity input")).filter((e) => !seen.has(e.name) && seen.add(e.name));
}

function enter(element) {
  if (element.classList.contains("name") && !element.value.trim()) return perform("save");
  const all = stops(), next = all[all.findIndex((e) => e.name === element.name) + 1];
  if (!next) return perform("save");
  if (element.classList.contains("name")) fillEarlier(element);
  next.focus();
  return undefined;
}

function pick(group, digit) {
  const inputs = Array.from(group.querySelectorAll("input"));
  const input = digit === 0 ? inputs.at(-1) : inputs.slice(0, -1)[digit - 1];
  if (!input) return;
  input.focus();
  input.click();
}

// Some layouts have no digits without Shift, others no Latin letters. There, the place of the key counts. It does not for
// a comma and the like, which many layouts have where others have letters.
function keyIn({ key, code, shiftKey }) {
  const isForeign = /^[\p{L}\p{M}]$/u.test(key) && !/\p{Script=Latin}/u.test(key);
  const place = code.match(isForeign ? /^(?:Key|Digit)(.)$/ : /^Digit(.)$/);
  return (shiftKey || !place || /^[a-z0-9/]$/i.test(key) ? key : place[1]).toLowerCase();
}

document.addEventListener("keydown", (event) => {
  tabbed = event.key === "Tab";
  const at = event.target, group = at.closest(".choices"), typing = at.matches("input, textarea") && !group;
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    if (event.repeat) return;
    if (at.id === "question") send("ask");
    else perform("save");
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.key === "Escape") { ask.hidden = true; at.blur(); last = null; return; }
  if (event.key === "Enter") {
    if (at.matches("button, a") || at === find || event.shiftKey) return;
    event.preventDefault();
    if (event.repeat) return;  // a key that is held down must not judge the next pages too
    if (at.id === "question") send("ask");
    else if (form.contains(at) && at.name) enter(at);
    else perform("save");
    return;
  }
  if (typing || event.repeat) return;
  const key = keyIn(event), digit = /^[0-9]$/.test(key) ? Number(key) : -1;
  const act = { s: "skip", q: "question", m: "missing" }[key];
  if (group && digit >= 0) pick(group, digit);
  else if (digit === 0) perform("none");
  else if (digit > 0 && names()[digit - 1]) names()[digit - 1].focus();
  else if (act) perform(act);
  else if (key === "/" && find) find.focus();
  else if (key === "b") document.getElementById("back")?.click();
  else return;
  event.preventDefault();
});

form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("click", (event) => {
  const button = event.target.closest("[data-do]");
  if (button) perform(button.dataset.do);
  const unknown = event.target.closest("[data-na]");
  if (unknown) {
    const input = form.elements[unknown.dataset.na];
    input.value = "NA";
    input.focus();
    input.dispatchEvent(new Event("input", { bubbles: true }));
  }
});
form.addEventListener("input", (event) => {
  armed = false;
  if (event.target.classList.contains("number")) { completeUnknown(event); showBin(event.target); }
  keepDraft();
});
form.addEventListener("change", (event) => {
  const group = event.target.closest(".choices");
  if (group && event.target.checked) {  // "not known" excludes the others, and where one is asked for, each does
    const inputs = Array.from(group.querySelectorAll("input")), unknown = inputs.at(-1);
    const excluded = (other) => group.dataset.kind === "one" || (event.target === unknown) !== (other === unknown);
    for (const other of inputs) if (other !== event.target && excluded(other)) other.checked = false;
  }
  if (event.target.classList.contains("name")) fillEarlier(event.target);
  keepDraft();
});

// Whoever works on a page keeps it.
function touch() {
  if (Date.now() - touched < TOUCH) return;
  touched = Date.now();
  const body = new URLSearchParams([["token", form.elements.token.value], ["do", "touch"]]);
  fetch(form.action, { method: "POST", body }).catch(() => {});
}
for (const kind of ["keydown", "pointerdown", "pointermove", "focusin"]) document.addEventListener(kind, touch);
window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

// The page ----------------------------------------------------------------------------------------------------------

let shown = "", place = 0, count = 0;
document.getElementById("search")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = find.value.trim(), address = `${frame.dataset.address}?find=${encodeURIComponent(text)}`;
  if (text !== shown) {
    try {
      count = Number((await fetch(address, { method: "HEAD" })).headers.get("X-Matches") || 0);
    } catch {
      document.getElementById("matches").textContent = "no connection";
      return;
    }
    shown = text;
    place = 0;
  }
  place = count ? (place % count) + 1 : 0;
  document.getElementById("matches").textContent = text ? (count ? `${place} of ${count}` : "not found") : "";
  frame.src = text ? `${address}#find-${place || 1}` : frame.dataset.address;
});

const asleep = document.getElementById("asleep");
let last = null, tabbed = false, steals = frame && !frame.hasAttribute("sandbox");

function wake() {
  if (frame && document.activeElement === frame) { frame.blur(); window.focus(); }
  asleep.hidden = true;
}

document.addEventListener("focusin", (event) => { if (event.target !== frame) last = event.target; });
window.addEventListener("blur", () => {
  asleep.hidden = document.activeElement !== frame;
  // A viewer that cannot show its PDF takes the focus by itself, and the keys with it. It is given back once.
  if (!asleep.hidden && steals && !tabbed && !frame.matches(":hover")) {
    steals = false;
    setTimeout(() => { wake(); last?.focus(); });
  }
});
form.addEventListener("pointerenter", wake);

form.querySelectorAll(".number").forEach(showBin);
restoreDraft();
