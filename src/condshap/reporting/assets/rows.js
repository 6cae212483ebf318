// Chosen rows -> waterfalls side by side and their numbers; filters of the table and their chips.

function choose(r, slot = state.compare === "row" ? state.slot : "a") {
  if (slot === "b") state.otherRow = r; else state.row = r;
  showRows();
  paint();
  remember();
}

/** What stands side by side: explanation and row of each waterfall. */
function sides() {
  const a = { e: state.approach, r: state.row, slot: "a" };
  if (state.compare === "row") return [a, { e: state.approach, r: state.otherRow, slot: "b" }];
  if (state.compare === "approach") return [a, { e: state.otherApproach, r: state.row, slot: "b" }];
  return [a];
}

/** Where no row passes search and filters, there is nothing to show but a way back. */
function showNothing() {
  byId("nothing").hidden = view.length > 0;
  for (const part of document.querySelectorAll(".detail > :not(#nothing)")) part.classList.toggle("gone", !view.length);
}

function clearFilters() {
  filters.clear();
  byId("search").value = "";
  showFilter();
  refilter();
  byId("search").focus();
}

function showRows() {
  showNothing();
  if (!view.length) return;
  const order = orderOf(state.approach, state.row, state.all), falls = sides();
  for (const fall of falls) fall.steps = stepsOf(fall.e, fall.r, order);
  const box = byId("falls"), range = extent(falls), two = falls.length === 2;
  byId("rows").querySelector(".split").classList.toggle("comparing", two);
  box.classList.toggle("two", two);
  const parts = falls.map((fall) => make("div", { class: "fall", "data-slot": fall.slot, "data-row": fall.r }, ...heading(fall)));
  box.replaceChildren(...parts);
  falls.forEach((fall, i) => drawFall(parts[i], fall, range));
  for (const mode of ["none", "row", "approach"]) byId("compare-" + mode).setAttribute("aria-pressed", state.compare === mode);
  byId("other-box").hidden = state.compare !== "approach";
  byId("all-players").hidden = P <= FEW + 1;
  byId("all-players").setAttribute("aria-pressed", state.all);
  byId("keys").textContent = state.compare === "row"
    ? `Click, or press Enter, to select row ${state.slot.toUpperCase()}; press the heading of A or B to change which one you select.`
    : "Click a row, or move with the arrow keys and select with Enter.";
  if (byId("numbers").open) showNumbers();
}

function heading(fall) {
  const name = (state.compare === "none" ? "" : fall.slot.toUpperCase() + ": ") + "Row " + rowLabel(fall.r) + (DATA.explanations.length > 1 ? ", " + DATA.explanations[fall.e].name : "");
  const places = fallPlaces(fall.steps), text = (x) => fixed(x, places && Math.max(0, places));
  const change = prediction(fall.e, fall.r) - base(fall.e, fall.r);
  const sum = `${WORDS.prediction} ${text(prediction(fall.e, fall.r))} = ${text(base(fall.e, fall.r))} ${change < 0 ? MINUS : "+"} ${text(Math.abs(change))}`;
  const pick = () => { state.slot = fall.slot; showRows(); byId("falls").querySelector(`[data-slot=${fall.slot}] .slot`).focus(); };
  const title = state.compare === "row"
    ? make("button", { type: "button", class: "slot", "aria-pressed": String(state.slot === fall.slot), onclick: pick }, name)
    : make("h2", {}, name);
  const unusual = DATA.outside && DATA.outside[fall.r];
  const alert = unusual ? [make("p", { class: "alert" }, "Outside the training data: " + unusual.map(([j, seen]) => `${DATA.features[j].name} = ${valueText(j, fall.r)} (training: ${seen})`).join("; "))] : [];
  if (DATA.explanations[fall.e].unlike.includes(fall.r)) alert.push(make("p", { class: "alert" }, "Unlike the pool that the network has learned from"));
  return [title, make("p", { class: "sum" }, sum), ...alert];
}

function showNumbers() {
  const falls = sides(), order = orderOf(state.approach, state.row, true).shown, two = falls.length === 2;
  const titles = [isGrouped ? "Group" : "Feature"];
  for (const fall of falls) titles.push(...["Value", WORDS.value, "± 95 %"].map((text) => (two ? fall.slot.toUpperCase() + ": " : "") + text));
  if (two) titles.push("B " + MINUS + " A");
  const cells = (p) => falls.flatMap((fall) => [
    make("td", { class: "text" }, playerText(p, fall.r)), make("td", {}, signed(phi(fall.e, fall.r, p), error(fall.e, fall.r, p))), make("td", {}, margin(error(fall.e, fall.r, p)).replace("± ", "")),
  ]).concat(two ? [make("td", {}, signed(phi(falls[1].e, falls[1].r, p) - phi(falls[0].e, falls[0].r, p), Math.max(error(falls[0].e, falls[0].r, p), error(falls[1].e, falls[1].r, p))))] : []);
  byId("numbers-body").replaceChildren(make("table", { class: "plain" },
    make("thead", {}, make("tr", {}, ...titles.map((text) => make("th", { scope: "col" }, text)))),
    make("tbody", {}, ...order.map((p) => make("tr", {}, make("th", { scope: "row" }, DATA.players[p].name), ...cells(p))))));
}

function compareWith(mode) {
  if (mode === "row" && state.compare !== "row") {
    state.otherRow = view[(view.indexOf(state.row) + 1) % Math.max(1, view.length)] ?? state.row;
    state.slot = "b";
  }
  if (mode === "approach" && state.otherApproach === state.approach) state.otherApproach = (state.approach + 1) % DATA.explanations.length;
  state.compare = mode;
  byId("other").value = state.otherApproach;
  showRows();
  paint();
  remember();
}

// --- filters ---------------------------------------------------------------------------------------------------------

const LEVELS = 300; // offered as boxes; the search finds the others

function showFilter() {
  const j = Number(byId("filter-feature").value), box = byId("filter-body");
  if (j === -1) {
    const set = (event) => { if (event.target.checked) filters.set(-1, {}); else filters.delete(-1); refilter(); };
    box.replaceChildren(make("label", {}, make("input", { type: "checkbox", checked: filters.has(-1), onchange: set }), "only these rows"));
  } else if (DATA.features[j].levels) box.replaceChildren(levelBoxes(j));
  else box.replaceChildren(...rangeInputs(j));
}

function levelBoxes(j) {
  const levels = DATA.features[j].levels, codes = column(j), chosen = filters.get(j)?.levels, counts = new Map();
  for (const code of codes) counts.set(code, (counts.get(code) || 0) + 1);
  const offered = Array.from(counts.keys()).sort((a, b) => (a < 0) - (b < 0) || a - b).slice(0, LEVELS);
  const boxes = offered.map((code) => make("label", {},
    make("input", { type: "checkbox", value: code, checked: Boolean(chosen && chosen.has(code)), onchange: apply }), `${code < 0 ? "missing" : levels[code]} (${counts.get(code)})`));
  const list = make("div", { class: "levels" }, ...boxes);
  function apply() {
    const now = new Set(Array.from(list.querySelectorAll("input:checked"), (input) => Number(input.value)));
    if (now.size) filters.set(j, { levels: now }); else filters.delete(j);
    refilter();
  }
  return list;
}

function rangeInputs(j) {
  const x = column(j), now = filters.get(j);
  let low = Infinity, high = -Infinity;
  for (const value of x) { if (value < low) low = value; if (value > high) high = value; }
  const field = (id, text, end, value) => make("input", { id, type: "number", step: "any", placeholder: Number.isFinite(end) ? Number(end.toPrecision(6)) : "", value: Number.isFinite(value) ? value : null, "aria-label": text, oninput: apply });
  const from = field("filter-low", "from", low, now?.low), to = field("filter-high", "to", high, now?.high);
  function apply() {
    const bounds = { low: from.value === "" ? -Infinity : Number(from.value), high: to.value === "" ? Infinity : Number(to.value) };
    if (from.value === "" && to.value === "") filters.delete(j); else filters.set(j, bounds);
    refilter();
  }
  return [make("label", {}, "from", from), make("label", {}, "to", to)];
}

function filterText(j, filter) {
  if (j === -1) return "outside the training data";
  const name = DATA.features[j].name;
  if (!filter.levels) {
    if (filter.low === -Infinity) return `${name} ≤ ${featureValue(filter.high, 6)}`;
    return filter.high === Infinity ? `${name} ≥ ${featureValue(filter.low, 6)}` : `${name} from ${featureValue(filter.low, 6)} to ${featureValue(filter.high, 6)}`;
  }
  return name + ": " + Array.from(filter.levels, (code) => (code < 0 ? "missing" : DATA.features[j].levels[code])).join(", ");
}

function refilter() {
  const drop = (j) => () => { filters.delete(j); showFilter(); refilter(); byId("filters").querySelector("summary").focus(); };
  byId("chips").replaceChildren(...Array.from(filters, ([j, filter]) => {
    const text = filterText(j, filter);
    return make("li", {}, make("button", { type: "button", "aria-label": "Remove filter " + text, onclick: drop(j) }, shorten(text, 260, 14) + " ✕"));
  }));
  arrange();
}
