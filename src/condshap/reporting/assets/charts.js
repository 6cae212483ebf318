// Numbers -> bars, waterfall and intervals as SVG.

const FEW = 12; // players shown before the rest are folded

function frame(box, height, label) {
  const width = Math.max(240, Math.floor(box.clientWidth));
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": label });
  return { svg, width };
}

function axis(svg, scale, low, high, top, bottom, n) {
  const at = roundBetween(low, high, n, (scale(high) - scale(low)));
  const texts = tickTexts(at);
  at.forEach((x, i) => {
    svg.append(draw("line", { class: "axis", x1: scale(x), x2: scale(x), y1: top, y2: bottom }));
    svg.append(draw("text", { class: "small", x: scale(x), y: bottom + 15, "text-anchor": "middle" }, texts[i]));
  });
}

/** Round numbers that have room beside each other. */
function roundBetween(low, high, n, width) {
  for (; n > 1; n--) {
    const { at } = ticks(low, high, n), widest = Math.max(...tickTexts(at).map((text) => textWidth(text, 11.5)));
    if (at.length * (widest + 10) < width) return at;
  }
  return ticks(low, high, 1).at.slice(-1);
}

function named(svg, text, x, y, width, attributes = {}, size = 13, shown = shorten(text, width, size)) {
  const node = draw("text", { x, y, ...attributes }, shown);
  if (shown !== text) node.append(draw("title", {}, text.slice(0, 2000)));
  svg.append(node);
}

function whisker(svg, x1, x2, y, half = 4) {
  if (x2 - x1 < 0.75) return;
  const d = `M${x1} ${y}H${x2}M${x1} ${y - half}v${2 * half}M${x2} ${y - half}v${2 * half}`;
  svg.append(draw("path", { class: "halo", fill: "none", d }), draw("path", { class: "whisker", fill: "none", d }));
}

/** Players by mean size of their values, and an upper bound of the standard error of these means. */
function importance(e) {
  const size = new Float64Array(P), off = new Float64Array(P), { values, errors } = explanation(e), start = state.output * R * P;
  for (let r = 0, i = start; r < R; r++) for (let p = 0; p < P; p++, i++) { size[p] += Math.abs(values[i]) / R; off[p] += (errors[i] || 0) / R; }
  const known = DATA.explanations[e].importance; // of losses: means with a sign, and errors that rows are part of
  if (known) for (let p = 0; p < P; p++) { size[p] = known.mean[p]; off[p] = known.error[p] || 0; }
  const order = Array.from(size.keys()).sort((a, b) => size[b] - size[a] || a - b);
  return { size, off, order };
}

/** Lines of bars: the first n players, and the sum of the others with the sum of their errors, which is an upper bound. */
function barLines(found, n) {
  const shown = found.order.slice(0, n), rest = found.order.slice(n), sum = (numbers) => rest.reduce((total, p) => total + numbers[p], 0);
  const lines = shown.map((p) => ({ p, name: DATA.players[p].name, size: found.size[p], off: found.off[p] }));
  return rest.length ? lines.concat({ name: rest.length + " others", size: sum(found.size), off: sum(found.off) }) : lines;
}

function drawBars(box, found, n) {
  const shown = barLines(found, n), height = shown.length * 28 + 30, places = placesOf(shown.map((line) => line.size), shown.map((line) => line.off));
  const top = shown.map((line) => `${line.name} ${fixed(line.size, places)}`).slice(0, 5).join(", ");
  const { svg, width } = frame(box, height, (DATA.explanations[state.approach].importance ? "Mean " : "Mean absolute ") + WORDS.value + ", the largest: " + top);
  const gutter = Math.min(220, width * 0.36), right = Math.max(50, ...shown.map((line) => textWidth(fixed(line.size, places)))) + 14, most = Math.max(...shown.map((line) => line.size + SURE * line.off)) || 1;
  const low = DATA.explanations[state.approach].importance ? Math.min(0, ...shown.map((line) => line.size - SURE * line.off)) : 0;
  const scale = (x) => gutter + ((x - low) / (most - low)) * (width - gutter - right);
  axis(svg, scale, low, most, 0, height - 24, width < 420 ? 3 : 5);
  shown.forEach(({ p, name, size, off: error }, i) => {
    const y = i * 28, off = SURE * error;
    named(svg, name, gutter - 8, y + 18, gutter - 10, { "text-anchor": "end" }, 13, p === undefined ? name : playerLabel(p, gutter - 10));
    svg.append(draw("rect", { class: "total bar", x: scale(Math.min(0, size)), y: y + 5, width: Math.max(0.5, scale(Math.max(0, size)) - scale(Math.min(0, size))), height: 18, rx: 2 }));
    whisker(svg, Math.max(gutter, scale(size - off)), scale(size + off), y + 14);
    svg.append(draw("text", { x: width, y: y + 18, "text-anchor": "end" }, fixed(size, places)));
  });
  box.replaceChildren(svg);
}

/**
 * Steps of a waterfall from the prediction, on top, down to the base value: players by size of their value, small ones folded
 * into one step. Its error is an upper bound: shown players and folded ones together err by nothing, see plots/selection.py.
 */
function stepsOf(e, r, order) {
  const total = (players, of) => players.reduce((sum, p) => sum + of(e, r, p), 0);
  const steps = order.shown.map((p) => ({ p, name: DATA.players[p].name, value: playerText(p, r), phi: WORDS.sign * phi(e, r, p), error: error(e, r, p) }));
  if (order.folded.length) {
    const bound = Math.min(total(order.shown, error), total(order.folded, error));
    steps.push({ p: -1, name: order.folded.length + " others", value: "their sum", phi: WORDS.sign * total(order.folded, phi), error: bound });
  }
  let at = base(e, r);
  for (const step of steps.slice().reverse()) { step.from = at; at += step.phi; step.to = at; step.off = SURE * step.error; }
  return steps;
}

function orderOf(e, r, all) {
  const order = DATA.players.map((_, p) => p).sort((a, b) => Math.abs(phi(e, r, b)) - Math.abs(phi(e, r, a)) || a - b);
  const n = all || order.length <= FEW + 1 ? order.length : FEW;
  return { shown: order.slice(0, n), folded: order.slice(n) };
}

/** Common scale of several waterfalls. */
function extent(falls) {
  const ends = falls.flatMap((fall) => fall.steps.flatMap((step) => [step.from, step.to, step.to - (step.off || 0), step.to + (step.off || 0)]).concat(base(fall.e, fall.r), prediction(fall.e, fall.r)));
  const low = Math.min(...ends), high = Math.max(...ends), pad = (high - low || Math.abs(high) || 1) * 0.04;
  return [low - pad, high + pad];
}

function drawFall(box, fall, [low, high]) {
  const { e, r, steps } = fall, line = 36, height = (steps.length + 2) * line + 26, places = fallPlaces(steps), exact = places && Math.max(0, places);
  const written = steps.map((step) => fixed(step.phi, places, true)), margins = steps.map((step) => (step.error > 0 ? marginOf(step.off, places) : ""));
  const ends = [prediction(e, r), base(e, r)].map((x) => fixed(x, exact));
  const { svg, width } = frame(box, height, `Waterfall of row ${rowLabel(r)}: ${WORDS.prediction} ${ends[0]}, ${steps.slice(0, 3).map((step, i) => `${step.name} ${written[i]}`).join(", ")}, ${WORDS.base} ${ends[1]}`);
  const gutter = Math.min(230, width * 0.34), isNarrow = width < 440, room = Math.max(...margins.map((text) => textWidth(text, isNarrow ? 11.5 : 13))); // margins go below where it is narrow
  const right = Math.max(...written.map((text) => textWidth(text) + (isNarrow || !room ? 0 : room + 6)), isNarrow ? room : 0, ...ends.map((text) => textWidth(text, 13, 650))) + 14;
  const scale = (x) => gutter + 4 + ((x - low) / (high - low)) * (width - gutter - right - 8);
  axis(svg, scale, low, high, 2, height - 24, width < 480 ? 2 : 4);
  const total = (name, value, text, y) => {
    svg.append(draw("text", { class: "strong", x: 0, y: y + 22 }, name));
    svg.append(draw("rect", { class: "total", x: scale(value) - 2, y: y + 8, width: 4, height: 20, rx: 1 }));
    svg.append(draw("text", { class: "strong", x: width, y: y + 22, "text-anchor": "end" }, text));
  };
  const link = (x, y) => svg.append(draw("line", { class: "link", x1: scale(x), x2: scale(x), y1: y - 8, y2: y + 8 }));
  total(WORDS.prediction, prediction(e, r), ends[0], 0);
  steps.forEach((step, i) => {
    const y = (i + 1) * line, [left, end] = [scale(Math.min(step.from, step.to)), scale(Math.max(step.from, step.to))];
    link(step.to, y);
    if (step.p >= 0) named(svg, step.name, 0, y + 16, gutter - 6, {}, 13, playerLabel(step.p, gutter - 6));
    if (step.p >= 0) named(svg, step.value, 0, y + 30, gutter - 6, { class: "small" }, 11.5);
    svg.append(draw("rect", { class: "step " + (step.phi < 0 ? "minus" : step.phi > 0 ? "plus" : "total"), "data-player": step.p, x: left, y: y + 8, width: Math.max(1, end - left), height: 20, rx: 2 }));
    if (step.off > 0) whisker(svg, scale(step.to - step.off), scale(step.to + step.off), y + 18);
    const isBelow = isNarrow && margins[i];
    svg.append(draw("text", { x: isNarrow || !room ? width : width - room - 6, y: y + (isBelow ? 16 : 22), "text-anchor": "end", class: "phi" }, written[i]));
    if (margins[i]) svg.append(draw("text", { x: width, y: y + (isBelow ? 30 : 22), "text-anchor": "end", class: isNarrow ? "small" : "" }, margins[i]));
  });
  const last = (steps.length + 1) * line, folded = steps.findIndex((step) => step.p === -1);
  link(base(e, r), last);
  total(WORDS.base, base(e, r), ends[1], last);
  box.append(make("div", { class: "chart" }, svg, ...(folded < 0 ? [] : [unfold(steps[folded].name, (folded + 1) * line)])));
}

const fallPlaces = (steps) => placesOf(steps.map((step) => step.phi), steps.map((step) => step.error));

/** A margin with the decimals of its value, or with a digit of its own where that would be 0. */
const marginOf = (off, places) => "± " + (places !== null && off >= 10 ** -places ? fixed(off, places) : number(off, 1));

/** A button over the name of the folded players, which shows all of them. */
function unfold(name, y) {
  const button = make("button", { type: "button", class: "unfold", title: "Show all players", onclick: () => { byId("all-players").click(); byId("all-players").focus(); } }, name + " ▸");
  button.style.top = y + 6 + "px";
  return button;
}

/** MSEv of all explanations with 95 % intervals; nothing to see for a single one. */
function drawMsev(box) {
  const lines = DATA.explanations.map((one) => ({ name: one.name, at: one.msev[state.output] })).filter((line) => line.at[0] !== null);
  box.hidden = lines.length < 2;
  if (box.hidden) return;
  const text = (line) => estimate(line.at[0], line.at[3] ?? NaN);
  const height = lines.length * 34 + 28, { svg, width } = frame(box, height, "MSEv of approaches: " + lines.map((line) => `${line.name} ${text(line)}`).join(", "));
  const ends = lines.flatMap((line) => line.at.slice(0, 3).filter((x) => x !== null)), pad = (Math.max(...ends) - Math.min(...ends) || 1) * 0.08;
  const low = Math.min(...ends) - pad, high = Math.max(...ends) + pad, gutter = Math.min(200, width * 0.34), right = Math.max(...lines.map((line) => textWidth(text(line)))) + 16;
  const scale = (x) => gutter + ((x - low) / (high - low)) * (width - gutter - right);
  axis(svg, scale, low, high, 0, height - 24, width < 420 ? 3 : 5);
  lines.forEach((line, i) => {
    const y = i * 34 + 16;
    named(svg, line.name, gutter - 10, y + 5, gutter - 10, { "text-anchor": "end" });
    if (line.at[1] !== null) whisker(svg, scale(line.at[1]), scale(line.at[2]), y, 5);
    svg.append(draw("circle", { class: "point", cx: scale(line.at[0]), cy: y, r: 5 }));
    svg.append(draw("text", { x: width, y: y + 5, "text-anchor": "end" }, text(line)));
  });
  box.replaceChildren(svg);
}
