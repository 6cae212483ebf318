// Payload -> numbers and texts; small helpers that make elements. Data is only ever written as text.

const DATA = JSON.parse(document.getElementById("payload").textContent);
const R = DATA.rows, P = DATA.players.length, M = DATA.features.length;
const SURE = 1.959963984540054; // standard errors on each side of a 95 % interval
const WORDS = DATA.words; // what numbers are called; sign: from the base value to the prediction

/** A Shapley value and its 95 % margin, by its standard error. */
const signed = (x, off = NaN) => fixed(x, placesOf([x], [off], 4), true, 4);
const margin = (off) => (Number.isNaN(off) ? "unknown" : "± " + number(SURE * off, 2));

const state = { tab: "overview", output: 0, approach: 0, row: 0, cursor: 0, compare: "none", otherRow: 0, otherApproach: 0, slot: "a", all: false };

function bytes(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text), out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out;
}

const TYPES = { f4: Float32Array, f8: Float64Array, i4: Int32Array, u2: Uint16Array };
const decode = (text, type) => new TYPES[type](bytes(text).buffer);

function widen(halves) { // bfloat16: the upper half of a 32-bit float
  const bits = new Uint32Array(halves.length);
  for (let i = 0; i < bits.length; i++) bits[i] = halves[i] << 16;
  return new Float32Array(bits.buffer);
}

const opened = new Map();

/** Arrays of an explanation, decoded when first asked for: values, errors (O, R, P), base, predictions (O, R). */
function explanation(e) {
  if (!opened.has(e)) {
    const given = DATA.explanations[e], values = decode(given.values, "f4");
    opened.set(e, {
      values,
      errors: given.errors === null ? new Float32Array(values.length) : widen(decode(given.errors, "u2")),
      base: decode(given.base, "f8"),
      predictions: decode(given.predictions, "f8"),
    });
  }
  return opened.get(e);
}

const columns = new Map();

/** Numbers of a feature, NaN where missing, or codes of its levels, -1 where missing. */
function column(j) {
  if (!columns.has(j)) columns.set(j, decode(DATA.features[j].data, DATA.features[j].levels ? "i4" : DATA.features[j].type));
  return columns.get(j);
}

const phi = (e, r, p) => explanation(e).values[(state.output * R + r) * P + p];
const error = (e, r, p) => explanation(e).errors[(state.output * R + r) * P + p];
const base = (e, r) => explanation(e).base[state.output * R + r];
const prediction = (e, r) => explanation(e).predictions[state.output * R + r];
const rowLabel = (r) => (DATA.labels ? DATA.labels[r] : String(r));
const isGrouped = DATA.players.some((player) => player.members.length !== 1);

/**
 * Decimals of a column: `digits` significant ones of its largest number, more where rows would look the same, and fewer where
 * they would all be zeros.
 */
function decimalsOf(numbers, digits) {
  let places = placesOf(numbers, [], digits);
  const some = numbers.slice(0, 1000).filter(Number.isFinite), spread = some.reduce((most, x) => Math.max(most, Math.abs(x - some[0])), 0);
  if (places !== null && spread >= SMALL) places = Math.max(places, placesOf([spread], [], 3));
  while (places > 0 && some.every((x) => Number(x.toFixed(places)) === Number(x.toFixed(places - 1)))) places--;
  return places;
}

const decimals = new Map();

function decimalsFor(key, numbers, digits) {
  if (!decimals.has(key)) decimals.set(key, decimalsOf(numbers(), digits));
  return decimals.get(key);
}

/** A number with the decimals of its column; too small ones get digits of their own. */
function inColumn(x, places, signed = false) {
  const isPower = places === null && x !== 0 && !(Math.abs(x) >= SMALL && Math.abs(x) < LARGE); // mantissas of one length
  const text = isPower ? fixed(x, null, signed, 5) : places === null ? number(x, 5) : fixed(x, Math.max(0, places), signed);
  return x !== 0 && !/[1-9]/.test(text) ? (x > 0 && signed ? "+" : "") + number(x, 2) : text;
}

/** Text of a feature's value. */
function valueText(j, r) {
  const x = column(j)[r], levels = DATA.features[j].levels;
  if (levels) return x < 0 ? "missing" : levels[x];
  const places = decimalsFor("f" + j, () => column(j), 5);
  return Number.isNaN(x) || !places ? featureValue(x, 5) : inColumn(x, places);
}

function playerText(p, r) {
  const members = DATA.players[p].members;
  if (members.length === 1) return valueText(members[0], r);
  return members.map((j) => DATA.features[j].name + " = " + valueText(j, r)).join(", ");
}

const byId = (id) => document.getElementById(id);

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.map((child) => (child instanceof Node ? child : document.createTextNode(String(child)))));
  return node;
}

const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes = {}, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

function options(select, texts, chosen = 0) {
  select.replaceChildren(...texts.map((text, i) => make("option", { value: i, selected: i === chosen }, text)));
}

const pen = document.createElement("canvas").getContext("2d");
const fontFamily = getComputedStyle(document.body).fontFamily;

function textWidth(text, size = 13, weight = 400) {
  pen.font = weight + " " + size + "px " + fontFamily;
  return pen.measureText(text).width;
}

/** Text cut in the middle so that it fits: both ends of long names tell them apart. */
function shorten(text, width, size = 13, weight = 400) {
  if (text.length < 400 && textWidth(text, size, weight) <= width) return text;
  const letters = Array.from(text.length > 600 ? text.slice(0, 300) + text.slice(-300) : text);
  let low = 1, high = letters.length;
  const cut = (n) => letters.slice(0, Math.ceil(n / 2)).join("") + "…" + letters.slice(letters.length - Math.floor(n / 2)).join("");
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (textWidth(cut(middle), size, weight) <= width) low = middle; else high = middle - 1;
  }
  return cut(low);
}

const labels = new Map();

/** Name of a player cut to a width, elsewhere than in the middle where others would look the same. */
function playerLabel(p, width) {
  const key = Math.floor(width);
  if (!labels.has(key)) labels.set(key, distinct(DATA.players.map((player) => player.name), key));
  return labels.get(key)[p];
}

function distinct(names, width) {
  const cut = names.map((name) => shorten(name, width)), alike = new Map();
  cut.forEach((text, i) => { if (!alike.has(text)) alike.set(text, []); alike.get(text).push(names[i]); });
  return names.map((name, i) => (alike.get(cut[i]).length === 1 ? cut[i] : aroundDifference(name, alike.get(cut[i]), width)));
}

/** Begin of a name and what tells it from others that begin the same. */
function aroundDifference(name, others, width) {
  const common = (other) => { let n = 0; while (n < name.length && name[n] === other[n]) n++; return n; };
  const same = Math.max(...others.filter((other) => other !== name).map(common));
  let found = "…" + name.slice(same, same + 1);
  for (let n = 1; n < 60; n++) {
    const from = Math.max(n, same - n), end = same + 1 + n;
    const text = name.slice(0, n) + (from > n ? "…" : "") + name.slice(from, end) + (end < name.length ? "…" : "");
    if (textWidth(text) > width) break;
    found = text;
  }
  return found;
}

/** Round numbers between low and high, about `n` of them. */
function ticks(low, high, n) {
  const raw = (high - low) / Math.max(1, n), power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= raw * 0.999);
  const found = [];
  if (!(step > 0)) return { at: [low], step: 1 };
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(i * step || 0);
  return found.length < 2 && n < 40 ? ticks(low, high, 2 * n) : { at: found, step };
}
