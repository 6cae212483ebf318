// Shapley values of all rows -> beeswarm: axes and names as SVG, dots on a canvas above, a bounded number of them.

const DOTS = 500; // per player: more would neither be seen nor drawn quickly

const mix = (a, b, t) => a.map((x, i) => Math.round(x + (b[i] - x) * t));
const rgb = (text) => [1, 3, 5].map((i) => parseInt(text.trim().slice(i, i + 2), 16));

/** Ranks of a feature's numbers between 0 and 1, NaN for missing ones. */
function ranks(j) {
  const x = column(j), order = Array.from(x.keys()).filter((r) => !Number.isNaN(x[r])).sort((a, b) => x[a] - x[b]);
  const out = new Float32Array(R).fill(NaN);
  for (let i = 0; i < order.length; ) { // equal numbers share the middle of their ranks
    let end = i;
    while (end + 1 < order.length && x[order[end + 1]] === x[order[i]]) end++;
    for (let k = i; k <= end; k++) out[order[k]] = order.length > 1 ? (i + end) / 2 / (order.length - 1) : 0.5;
    i = end + 1;
  }
  return out;
}

function colours(p) {
  const style = getComputedStyle(document.documentElement), members = DATA.players[p].members;
  const grey = style.getPropertyValue("--grey").trim();
  if (members.length !== 1 || DATA.features[members[0]].levels) return () => grey;
  const [low, middle, high] = ["--low", "--middle", "--high"].map((name) => rgb(style.getPropertyValue(name)));
  const rank = ranks(members[0]);
  return (r) => {
    if (Number.isNaN(rank[r])) return grey;
    const t = rank[r], c = t < 0.5 ? mix(low, middle, 2 * t) : mix(middle, high, 2 * t - 1);
    return `rgb(${c[0]} ${c[1]} ${c[2]})`;
  };
}

/** Rows at even steps of the order by value: the shape stays, and both ends do. */
function thinned(p) {
  const order = Array.from({ length: R }, (_, r) => r).sort((a, b) => phi(state.approach, a, p) - phi(state.approach, b, p));
  if (R <= DOTS) return order;
  return Array.from({ length: DOTS }, (_, i) => order[Math.round((i * (R - 1)) / (DOTS - 1))]);
}

function drawSwarm(box, found, n) {
  const shown = found.order.slice(0, n), line = 34, height = shown.length * line + 30;
  const { svg, width } = frame(box, height, WORDS.value + " of the rows, player by player");
  const gutter = Math.min(200, width * 0.34), rows = shown.map(thinned);
  const all = rows.flatMap((some, i) => [phi(state.approach, some[0], shown[i]), phi(state.approach, some[some.length - 1], shown[i])]);
  const low = Math.min(...all, 0), high = Math.max(...all, 0), pad = (high - low || 1) * 0.03;
  const scale = (x) => gutter + 8 + ((x - low + pad) / (high - low + 2 * pad)) * (width - gutter - 20);
  axis(svg, scale, low, high, 0, height - 24, width < 420 ? 3 : 5);
  svg.append(draw("line", { class: "zero", x1: scale(0), x2: scale(0), y1: 0, y2: height - 24 }));
  shown.forEach((p, i) => named(svg, DATA.players[p].name, gutter - 8, i * line + 21, gutter - 10, { "text-anchor": "end" }, 13, playerLabel(p, gutter - 10)));
  const canvas = make("canvas", { "aria-hidden": "true" }), ink = onScreen(canvas, width, height);
  box.replaceChildren(svg, canvas);
  const dots = place(shown, rows, scale, line), paint = shown.map(colours);
  for (const dot of dots) {
    ink.fillStyle = paint[dot.i](dot.r);
    ink.beginPath(); ink.arc(dot.x, dot.y, 2.4, 0, 7); ink.fill();
  }
  listen(canvas, dots, byId("swarm-hint"));
  byId("swarm-text").textContent = `Each dot is a row${R > DOTS ? ` (${DOTS} of ${R.toLocaleString("en")}, spread evenly over the values)` : ""}. Its position is the ${WORDS.value}${isGrouped ? "" : ", its colour the feature's value"}.`;
}

/** Dots side by side where they would cover each other. */
function place(shown, rows, scale, line) {
  const out = [];
  shown.forEach((p, i) => {
    const bins = new Map();
    for (const r of rows[i]) {
      const x = scale(phi(state.approach, r, p)), key = Math.round(x / 4);
      if (!bins.has(key)) bins.set(key, []);
      bins.get(key).push({ x, r, p, i });
    }
    for (const bin of bins.values()) {
      const step = Math.min(4, (line - 8) / Math.max(1, bin.length - 1));
      bin.forEach((dot, k) => { dot.y = i * line + line / 2 + (k % 2 ? 1 : -1) * Math.ceil(k / 2) * step; out.push(dot); });
    }
  });
  return out;
}

/** Context of a canvas of this size in CSS pixels, sharp on any screen. */
function onScreen(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1, ink = canvas.getContext("2d");
  canvas.width = width * ratio; canvas.height = height * ratio;
  canvas.style.width = width + "px"; canvas.style.height = height + "px";
  ink.scale(ratio, ratio);
  return ink;
}

function nearest(dots, { offsetX: x, offsetY: y }) {
  let best = null, least = 100;
  for (const dot of dots) {
    const far = (dot.x - x) ** 2 + (dot.y - y) ** 2;
    if (far < least) { least = far; best = dot; }
  }
  return best;
}

/** Tell about the dot under the pointer, and open its row by a click. */
function listen(canvas, dots, hint) {
  const usual = "Point at a dot to see its row; click to open it.";
  const tell = ({ r, p }) => `Row ${rowLabel(r)}: ${DATA.players[p].name}${isGrouped ? "" : " = " + playerText(p, r)} adds ${signed(phi(state.approach, r, p), error(state.approach, r, p))}`;
  canvas.addEventListener("mousemove", (event) => { const dot = nearest(dots, event); hint.textContent = dot ? tell(dot) : usual; });
  canvas.addEventListener("mouseleave", () => { hint.textContent = usual; });
  canvas.addEventListener("click", (event) => {
    const dot = nearest(dots, event);
    if (dot) { choose(dot.r, "a"); state.cursor = Math.max(0, view.indexOf(dot.r)); showTab("rows"); }
  });
}
