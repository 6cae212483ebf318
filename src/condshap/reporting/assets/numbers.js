"use strict";
// Numbers -> texts, by the rule of numerics/readable.py, which has the same functions; a test compares them.

const MINUS = "\u2212", LARGE = 1e9, SMALL = 1e-4, WHOLE = 1e15, YEARS = 10000;
const notFinite = (x) => (Number.isNaN(x) ? "unknown" : (x < 0 ? MINUS : "") + "∞");
const exponentOf = (size) => Number(size.toExponential().split("e")[1]);

/** Decimals of a number above 0; below 0 for tens, hundreds, ...; thousands are separated. */
function rounded(size, places) {
  if (places < 0) size = Math.floor(size / 10 ** -places + 0.5) * 10 ** -places;
  const [whole, rest] = size.toFixed(Math.max(0, places)).split(".");
  return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (rest ? "." + rest : "");
}

function power(size, digits, strip = true) {
  const [mantissa, exponent] = size.toExponential(digits - 1).split("e");
  const raised = Array.from(exponent.replace("+", ""), (x) => (x === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[x])).join("");
  return (strip && mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa) + " × 10" + raised;
}

/** One number: whole ones with all their digits, others with at most `digits` significant ones. */
function number(x, digits = 4) {
  const size = Math.abs(x), sign = x < 0 ? MINUS : "";
  if (!Number.isFinite(x)) return notFinite(x);
  if (Number.isInteger(size) && size < WHOLE) return size ? sign + rounded(size, 0) : "0";
  if (!(size >= SMALL && size < LARGE)) return sign + power(size, digits);
  const text = rounded(size, Math.max(0, digits - 1 - exponentOf(size)));
  return sign + (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
}

/** Value of a feature: like `number`, but whole numbers below 10,000, such as years, have no separator. */
function featureValue(x, digits = 4) {
  if (Number.isNaN(x)) return "missing";
  const text = number(x, digits);
  return Number.isInteger(x) && Math.abs(x) < YEARS ? text.replace(",", "") : text;
}

/** Decimals that numbers side by side share, given their standard errors; null for powers of ten. */
function placesOf(values, errors = [], digits = 3) {
  let largest = 0, smallest = Infinity;
  for (const x of values) if (Number.isFinite(x)) largest = Math.max(largest, Math.abs(x));
  if (largest === 0) return 0;
  if (!(largest >= SMALL && largest < LARGE)) return null;
  for (const x of errors) if (Number.isFinite(x) && x > 0) smallest = Math.min(smallest, x);
  const bySize = Math.max(0, digits - 1 - exponentOf(largest));
  return Number.isFinite(smallest) ? Math.min(bySize, 1 - exponentOf(smallest)) : bySize;
}

/** A number with the given decimals; what rounds to 0 has no sign. */
function fixed(x, places, signed = false, digits = 3) {
  if (!Number.isFinite(x)) return notFinite(x);
  const text = places !== null ? rounded(Math.abs(x), places) : x === 0 ? "0" : power(Math.abs(x), digits, false);
  if (!/[1-9]/.test(text)) return text;
  return (x < 0 ? MINUS : signed ? "+" : "") + text;
}

/** A number with as many digits as its standard error allows. */
function estimate(x, error, digits = 4) {
  const places = placesOf([x], [error], digits);
  if (places === null && Number.isFinite(error) && error > 0) digits = Math.max(1, Math.min(digits, exponentOf(Math.abs(x)) - exponentOf(error) + 2));
  return fixed(x, places, false, digits);
}

/** Round numbers of an axis, with the decimals that they need and no offset; years stay years on that of a feature. */
function tickTexts(at, ofFeature = false) {
  const largest = Math.max(0, ...at.map(Math.abs));
  if (largest && !(largest >= SMALL && largest < LARGE)) return at.map((x) => (Math.abs(x) > 1e-9 * largest ? (x < 0 ? MINUS : "") + power(Math.abs(x), 4) : "0"));
  const gaps = at.slice(1).map((x, i) => x - at[i]).filter((gap) => gap > 0), step = gaps.length ? Math.min(...gaps) : 1e-6 * largest || 1; // a single tick is exact, too
  let places = 0;
  while (places < 12 && !at.every((x) => Math.abs(x - Number(x.toFixed(places))) < 1e-3 * step)) places++;
  const texts = at.map((x) => fixed(x, places));
  return ofFeature && largest < YEARS ? texts.map((text) => text.replace(",", "")) : texts;
}
