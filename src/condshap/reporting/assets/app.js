// State <-> address, controls -> drawing.

const TABS = ["overview", "rows", "interactions", "quality", "method"].filter((tab) => byId("tab-" + tab));
let shownPlayers = FEW;

function showTab(name, focus = false) {
  state.tab = TABS.includes(name) ? name : "overview";
  for (const tab of TABS) {
    const button = byId("tab-" + tab), mine = tab === state.tab;
    button.setAttribute("aria-selected", mine);
    button.tabIndex = mine ? 0 : -1;
    byId(tab).hidden = !mine;
    if (mine && focus) button.focus();
  }
  if (state.tab === "rows") reveal();
  redraw();
  remember();
}

/** Draw a part, at first the one in sight; what is hidden has no width to draw in. */
function redraw(tab = state.tab) {
  if (tab === "overview") {
    const found = importance(state.approach);
    for (const cards of document.querySelectorAll(".cards")) cards.hidden = cards.dataset.shown !== `${state.approach}-${state.output}`;
    drawBars(byId("bars"), found, shownPlayers);
    drawSwarm(byId("swarm"), found, shownPlayers);
    byId("more").hidden = P <= FEW;
    byId("more").textContent = shownPlayers < P ? `Show all ${P}` : `Show the first ${FEW}`;
    showShape(found.order);
  } else if (tab === "rows") { showRows(); paint(); }
  else if (tab === "interactions") showTogether();
  else if (tab === "quality") drawMsev(byId("msev"));
}

// --- theme -----------------------------------------------------------------------------------------------------------

const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");

function theme() { return document.documentElement.dataset.theme || (prefersDark.matches ? "dark" : "light"); }

function setTheme(name) {
  if (name === "dark" || name === "light") document.documentElement.dataset.theme = name;
  byId("theme").textContent = theme() === "dark" ? "☀ Light" : "☾ Dark";
}

function stored() { try { return localStorage.getItem("condshap-theme"); } catch { return null; } }

byId("theme").addEventListener("click", () => {
  setTheme(theme() === "dark" ? "light" : "dark");
  try { localStorage.setItem("condshap-theme", theme()); } catch { /* files may have no storage; the address keeps it */ }
  redraw();
  remember();
});
prefersDark.addEventListener("change", () => { setTheme(); redraw(); });

// --- address ---------------------------------------------------------------------------------------------------------

/** Keep tab, rows, output, approach and theme in the address, so that a link or a reload shows the same. */
function remember() {
  const kept = new URLSearchParams({ tab: state.tab, row: state.row });
  if (state.output) kept.set("output", state.output);
  if (state.approach !== DATA.best) kept.set("approach", state.approach);
  if (state.compare === "row") kept.set("with-row", state.otherRow);
  if (state.compare === "approach") kept.set("with-approach", state.otherApproach);
  if (document.documentElement.dataset.theme) kept.set("theme", document.documentElement.dataset.theme);
  try { history.replaceState(null, "", "#" + kept); } catch { /* some viewers forbid it: nothing is lost but the link */ }
}

function recall() {
  const kept = new URLSearchParams(location.hash.slice(1));
  const whole = (name, n) => { const x = Number(kept.get(name)); return kept.has(name) && Number.isInteger(x) && x >= 0 && x < n ? x : null; };
  state.row = whole("row", R) ?? 0;
  state.output = whole("output", DATA.outputs.length) ?? 0;
  state.approach = whole("approach", DATA.explanations.length) ?? DATA.best;
  if (whole("with-row", R) !== null) { state.compare = "row"; state.otherRow = whole("with-row", R); state.slot = "b"; }
  if (whole("with-approach", DATA.explanations.length) !== null) { state.compare = "approach"; state.otherApproach = whole("with-approach", DATA.explanations.length); }
  setTheme(kept.get("theme") || stored());
  return kept.get("tab");
}

// --- controls --------------------------------------------------------------------------------------------------------

function connect() {
  const names = DATA.explanations.map((one) => one.name);
  options(byId("output"), DATA.outputs, state.output);
  options(byId("approach"), names, state.approach);
  options(byId("other"), names, state.otherApproach);
  byId("output-box").hidden = DATA.outputs.length < 2;
  byId("approach-box").hidden = byId("compare-approach").hidden = names.length < 2;
  byId("theme").hidden = false;
  const features = DATA.features.map((feature, j) => make("option", { value: j }, feature.name));
  if (DATA.outside && Object.keys(DATA.outside).length) features.push(make("option", { value: -1 }, "outside the training data"));
  byId("filter-feature").replaceChildren(...features);
  for (const name of ["output", "approach"]) byId(name).addEventListener("change", () => { state[name] = Number(byId(name).value); buildTable(); redraw(); remember(); });
  byId("other").addEventListener("change", () => { state.otherApproach = Number(byId("other").value); showRows(); remember(); });
  byId("search").addEventListener("input", () => arrange());
  byId("shown").addEventListener("change", buildTable);
  byId("sort").addEventListener("change", () => { sorting.by = byId("sort").value; buildTable(); arrange(); });
  byId("clear").addEventListener("click", clearFilters);
  byId("direction").addEventListener("click", () => { sorting.down = !sorting.down; arrange(); });
  byId("filter-feature").addEventListener("change", showFilter);
  byId("numbers").addEventListener("toggle", () => { if (byId("numbers").open) showNumbers(); });
  byId("all-players").addEventListener("click", () => { state.all = !state.all; showRows(); });
  byId("more").addEventListener("click", () => { shownPlayers = shownPlayers < P ? P : FEW; redraw(); });
  for (const mode of ["none", "row", "approach"]) byId("compare-" + mode).addEventListener("click", () => compareWith(mode));
  for (const button of document.querySelectorAll(".see-quality")) button.addEventListener("click", () => showTab("quality", true));
  byId("shape-feature").addEventListener("change", () => drawShape(byId("shape"), Number(byId("shape-feature").value)));
  if (TOGETHER) byId("pair-rows").addEventListener("change", showTogether);
  connectTabs();
}

function connectTabs() {
  for (const tab of TABS) byId("tab-" + tab).addEventListener("click", () => showTab(tab));
  document.querySelector(".tabs").addEventListener("keydown", (event) => {
    const at = TABS.indexOf(state.tab), to = { ArrowRight: at + 1, ArrowLeft: at - 1 + TABS.length, Home: 0, End: TABS.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    showTab(TABS[to % TABS.length], true);
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && byId("filters").open) { byId("filters").open = false; byId("filters").querySelector("summary").focus(); } });
  document.addEventListener("click", (event) => { if (!event.target.closest("#filters")) byId("filters").open = false; });
  let width = document.body.clientWidth;
  new ResizeObserver(() => { if (document.body.clientWidth !== width) { width = document.body.clientWidth; redraw(); } }).observe(document.body);
  window.addEventListener("beforeprint", () => { for (const tab of TABS) { byId(tab).hidden = false; redraw(tab); } });
  window.addEventListener("afterprint", () => showTab(state.tab));
}

const wanted = recall();
connect();
showFilter();
buildTable();
state.cursor = state.row;
document.documentElement.dataset.ready = ""; // lifts what the style hides until now
showTab(wanted);
