// One feature's values and Shapley values -> dots: numbers along an axis, levels as strips.

const SHAPE_DOTS = 2000;

/** Offer the features by importance, and draw the one that is chosen, at first the most important. */
function showShape(order) {
  if (isGrouped) return;
  byId("shape-box").hidden = false;
  const select = byId("shape-feature"), chosen = select.value === "" ? order[0] : Number(select.value);
  select.replaceChildren(...order.map((p) => make("option", { value: p, selected: p === chosen }, DATA.players[p].name)));
  drawShape(byId("shape"), chosen);
}

/** Where values lie between 0 and 1: numbers by size, levels side by side with their dots spread out evenly. */
function positions(j, rows) {
  const x = column(j), levels = DATA.features[j].levels;
  if (!levels) {
    const known = rows.filter((r) => Number.isFinite(x[r]));
    const low = known.reduce((least, r) => Math.min(least, x[r]), Infinity), high = known.reduce((most, r) => Math.max(most, x[r]), -Infinity);
    return { known, low, high, at: (r) => (high > low ? (x[r] - low) / (high - low) : 0.5) };
  }
  const codes = Array.from(new Set(rows.map((r) => x[r]))).sort((a, b) => (a < 0) - (b < 0) || a - b).slice(0, 40), order = new Map(codes.map((code, i) => [code, i]));
  const jitter = (r) => (((r * 0.618034) % 1) - 0.5) * 0.5;
  return { known: rows.filter((r) => order.has(x[r])), strips: codes.map((code) => (code < 0 ? "missing" : levels[code])), at: (r) => (order.get(x[r]) + 0.5 + jitter(r)) / codes.length };
}

function drawShape(box, p) {
  const j = DATA.players[p].members[0], name = DATA.players[p].name, step = Math.ceil(R / SHAPE_DOTS), height = 300;
  const rows = Array.from({ length: Math.ceil(R / step) }, (_, i) => i * step), { known, low, high, strips, at } = positions(j, rows);
  const { svg, width } = frame(box, height, `${WORDS.value} of ${name} against its value`), e = state.approach;
  byId("shape-text").textContent = `The feature's value on the x-axis, its ${WORDS.value} on the y-axis${step > 1 ? `; only every ${step}th row is drawn` : ""}${known.length < rows.length ? `; ${rows.length - known.length} rows have no value` : ""}.`;
  const all = known.map((r) => phi(e, r, p)), bottom = Math.min(0, ...all), top = Math.max(0, ...all), span = top - bottom || 1;
  const marks = ticks(bottom, top, 5).at, texts = tickTexts(marks), left = Math.max(...texts.map((text) => textWidth(text, 11.5))) + 14;
  const up = (y) => height - 34 - ((y - bottom) / span) * (height - 46), across = (t) => left + 10 + t * (width - left - 24);
  marks.forEach((y, i) => {
    svg.append(draw("line", { class: y === 0 ? "zero" : "axis", x1: left, x2: width, y1: up(y), y2: up(y) }));
    svg.append(draw("text", { class: "small", x: left - 8, y: up(y) + 4, "text-anchor": "end" }, texts[i]));
  });
  if (strips) strips.forEach((text, i) => named(svg, text, across((i + 0.5) / strips.length), height - 10, (width - left) / strips.length - 8, { class: "small", "text-anchor": "middle" }, 11.5));
  else if (high > low) { const at = roundBetween(low, high, width < 480 ? 3 : 7, width - left), below = tickTexts(at, true); at.forEach((t, i) => svg.append(draw("text", { class: "small", x: across((t - low) / (high - low)), y: height - 10, "text-anchor": "middle" }, below[i]))); }
  else if (known.length) svg.append(draw("text", { class: "small", x: across(0.5), y: height - 10, "text-anchor": "middle" }, featureValue(low)));
  box.replaceChildren(svg);
  scatterDots(box, width, height, known.map((r) => ({ x: across(at(r)), y: up(phi(e, r, p)), r, p })));
}

function scatterDots(box, width, height, points) {
  const canvas = make("canvas", { "aria-hidden": "true" }), ink = onScreen(canvas, width, height);
  box.append(canvas);
  ink.globalAlpha = points.length > 400 ? 0.55 : 0.85;
  ink.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--accent");
  for (const dot of points) { ink.beginPath(); ink.arc(dot.x, dot.y, 2.6, 0, 7); ink.fill(); }
  listen(canvas, points, byId("shape-hint"));
}
