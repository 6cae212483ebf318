"use strict";
// Payload -> numbers and texts; small helpers that make elements. Data is only ever written as text.

const DATA = JSON.parse(document.getElementById("payload").textContent);
const R = DATA.rows, P = DATA.players.length, M = DATA.features.length;
const SURE = 1.959963984540054; // standard errors on each side of a 95 % interval
const WORDS = DATA.words; // what numbers are called; sign: from the base value to the prediction
const MINUS = "\u2212";

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

/** A number with `digits` significant digits, without trailing zeros, with a proper minus sign. */
function format(x, digits = 4) {
  if (Number.isNaN(x)) return "missing";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : MINUS + "∞";
  if (x === 0) return "0";
  const size = Math.abs(x);
  let text;
  if (size >= 1e7 || size < 1e-4) text = size.toExponential(digits - 1).replace(/(\.\d*?)0+e/, "$1e").replace(".e", "e").replace("e+", "e");
  else if (size >= 10 ** digits) text = String(Math.round(size));
  else text = String(Number(size.toPrecision(digits)));
  return (x < 0 ? MINUS : "") + text.replace("e-", "e" + MINUS);
}

/** A number with its sign and as many decimals as its partner of the same scale. */
function signed(x, step) {
  return (x < 0 ? MINUS : "+") + fixed(Math.abs(x), step);
}

function fixed(x, step) {
  if (step === undefined || !(step > 0) || x === 0) return format(x);
  const digits = Math.floor(Math.log10(Math.abs(x))) - Math.floor(Math.log10(step)) + 1;
  if (step >= 1e7 || step < 1e-6 || Math.abs(x) >= 1e9) return format(x, Math.min(12, Math.max(1, digits)));
  return x.toFixed(Math.max(0, -Math.floor(Math.log10(step)))).replace("-", MINUS);
}

/** Decimals that a column needs: `digits` significant ones of its largest number, fewer where they would all be zeros. */
function decimalsOf(numbers, digits) {
  let most = 0;
  for (const x of numbers) if (Number.isFinite(x)) most = Math.max(most, Math.abs(x));
  if (most === 0) return 0;
  if (most < 1e-3) return null; // these are written with powers of ten
  let decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(most)));
  const some = numbers.slice(0, 1000).filter(Number.isFinite);
  while (decimals > 0 && some.every((x) => Number(x.toFixed(decimals)) === Number(x.toFixed(decimals - 1)))) decimals--;
  return decimals;
}

/** A number with the decimals of its column, so that points stand below each other. */
function aligned(x, decimals) {
  if (decimals === null || !Number.isFinite(x) || Math.abs(x) >= 1e15) return Number.isInteger(x) && Math.abs(x) < 1e15 ? String(x).replace("-", MINUS) : format(x, 5);
  const text = x.toFixed(decimals);
  return Number(text) === 0 ? (x === 0 ? text : format(x, 2)) : text.replace("-", MINUS);
}

const decimals = new Map();

function decimalsFor(key, numbers, digits) {
  if (!decimals.has(key)) decimals.set(key, decimalsOf(numbers(), digits));
  return decimals.get(key);
}

/** Text of a feature's value. */
function valueText(j, r) {
  const x = column(j)[r], levels = DATA.features[j].levels;
  if (levels) return x < 0 ? "missing" : levels[x];
  return aligned(x, decimalsFor("f" + j, () => column(j), 5));
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

/** Round numbers between low and high, about `n` of them. */
function ticks(low, high, n) {
  const raw = (high - low) / Math.max(1, n), power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= raw * 0.999);
  const found = [];
  if (!(step > 0)) return { at: [low], step: 1 };
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(i * step || 0);
  return found.length < 2 && n < 40 ? ticks(low, high, 2 * n) : { at: found, step };
}
