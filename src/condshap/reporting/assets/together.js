// Interactions -> a heat map of pairs and bars of the largest sets, for all rows or the selected one.

const TOGETHER = DATA.interactions, MOST_CELLS = 14;
let together = null; // values and errors (O, R, K), decoded when first asked for

/** What is drawn: sizes with signs and errors of every set, for the selected row, or mean sizes over all rows. */
function setsShown() {
  together ||= { values: decode(TOGETHER.values, "f4"), errors: TOGETHER.errors === null ? null : widen(decode(TOGETHER.errors, "u2")) };
  const K = TOGETHER.sets.length, isRow = byId("pair-rows").value === "row", start = state.output * R * K;
  const value = new Float64Array(K), off = new Float64Array(K);
  const rows = isRow ? [state.row] : Array.from({ length: R }, (_, r) => r);
  for (const r of rows) for (let k = 0, i = start + r * K; k < K; k++, i++) {
    value[k] += (isRow ? together.values[i] : Math.abs(together.values[i])) / rows.length;
    off[k] += together.errors === null ? 0 : (together.errors[i] || 0) / rows.length;
  }
  return { value, off, isRow };
}

const setName = (k) => TOGETHER.sets[k].map((p) => DATA.players[p].name).join(" × ");

function showTogether() {
  options(byId("pair-rows"), ["all rows: mean size", `row ${rowLabel(state.row)}`], byId("pair-rows").value === "row" ? 1 : 0);
  ["all", "row"].forEach((value, i) => { byId("pair-rows").options[i].value = value; });
  const found = setsShown();
  drawPairs(byId("pair-heat"), found);
  drawSets(byId("pair-bars"), found);
}

function drawPairs(box, { value, isRow }) {
  const cells = new Map(), busy = new Float64Array(P);
  TOGETHER.sets.forEach((members, k) => {
    if (members.length !== 2) return;
    const [a, b] = members;
    cells.set(a * P + b, value[k]).set(b * P + a, value[k]);
    for (const p of members) busy[p] += Math.abs(value[k]);
  });
  const players = Array.from(busy.keys()).sort((a, b) => busy[b] - busy[a] || a - b).slice(0, MOST_CELLS).sort((a, b) => a - b), n = players.length;
  byId("pair-left-out").textContent = P > n ? `${P - n} players with smaller interactions are left out.` : "";
  const line = 32, below = 96, height = n * line + below, { svg, width } = frame(box, height, "Interactions of pairs, the same numbers as in the list beside");
  const gutter = Math.min(200, width * 0.34), wide = (width - gutter) / n, most = Math.max(...Array.from(cells.values(), Math.abs)) || 1;
  const places = placesOf([most], [], 2);
  players.forEach((p, i) => {
    named(svg, DATA.players[p].name, gutter - 8, i * line + 20, gutter - 10, { "text-anchor": "end" }, 13, playerLabel(p, gutter - 10));
    const x = gutter + (i + 0.5) * wide + 4, y = n * line + 8;
    named(svg, DATA.players[p].name, x, y, below - 12, { class: "small", "text-anchor": "end", transform: `rotate(-90 ${x} ${y})` }, 11.5);
    players.forEach((q, j) => {
      const at = { x: gutter + j * wide, y: i * line, width: Math.max(1, wide - 1), height: line - 1 };
      if (p === q) { svg.append(draw("rect", { ...at, class: "cell same" })); return; }
      const x = cells.get(p * P + q), text = fixed(x, places, isRow);
      svg.append(draw("rect", { ...at, class: "cell " + (isRow ? (x < 0 ? "minus" : "plus") : "total"), "fill-opacity": (0.04 + 0.5 * Math.abs(x) / most).toFixed(3), "data-pair": `${p}-${q}` },
        draw("title", {}, `${DATA.players[p].name} × ${DATA.players[q].name}: ${number(x)}`)));
      if (textWidth(text, 11.5) < wide - 4) svg.append(draw("text", { class: "small number", x: at.x + wide / 2, y: at.y + 20, "text-anchor": "middle" }, text));
    });
  });
  box.replaceChildren(svg);
}

function drawSets(box, { value, off, isRow }) {
  const order = Array.from(value.keys()).sort((a, b) => Math.abs(value[b]) - Math.abs(value[a]) || a - b).slice(0, FEW), height = order.length * 30 + 30;
  const { svg, width } = frame(box, height, "The largest interactions: " + order.slice(0, 5).map((k) => `${setName(k)} ${number(value[k])}`).join(", "));
  const ends = order.flatMap((k) => [value[k] - SURE * off[k], value[k] + SURE * off[k]]), low = isRow ? Math.min(0, ...ends) : 0, high = Math.max(0, ...ends, low === 0 ? 1e-300 : 0);
  const places = placesOf(order.map((k) => value[k]), order.map((k) => off[k])), gutter = Math.min(260, width * 0.42), right = Math.max(...order.map((k) => textWidth(fixed(value[k], places, isRow)))) + 18;
  const scale = (x) => gutter + ((x - low) / (high - low)) * (width - gutter - right);
  axis(svg, scale, low, high, 0, height - 24, width < 460 ? 2 : 4);
  order.forEach((k, i) => {
    const y = i * 30, [from, to] = [scale(Math.min(0, value[k])), scale(Math.max(0, value[k]))];
    const members = TOGETHER.sets[k], room = (gutter - 10) / members.length - 16; // every name keeps both of its ends
    const label = members.map((p) => shorten(DATA.players[p].name, room)).join(" × ");
    svg.append(draw("text", { x: gutter - 8, y: y + 19, "text-anchor": "end" }, label, draw("title", {}, setName(k).slice(0, 2000))));
    svg.append(draw("rect", { class: isRow ? (value[k] < 0 ? "minus" : "plus") : "total bar", "data-set": TOGETHER.sets[k].join("-"), x: from, y: y + 6, width: Math.max(0.5, to - from), height: 18, rx: 2 }));
    whisker(svg, Math.max(gutter, scale(value[k] - SURE * off[k])), scale(value[k] + SURE * off[k]), y + 15);
    svg.append(draw("text", { class: "amount", x: width, y: y + 19, "text-anchor": "end" }, fixed(value[k], places, isRow)));
  });
  box.replaceChildren(svg);
}
