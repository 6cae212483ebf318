// Rows -> a table that only holds the lines in sight: search, sort, filter, choose.

const LINE = 32, HEAD = 36, SPARE = 6;
const grid = byId("scroller"), body = grid.querySelector("tbody"), head = grid.querySelector("thead");
const spacer = () => make("tr", { class: "spacer", "aria-hidden": "true" }, make("td"));
const above = spacer(), below = spacer();
const filters = new Map(); // feature -> {low, high} or {levels: Set}; -1 -> rows outside the training data
let view = Array.from({ length: R }, (_, r) => r); // rows as sorted and filtered
let lines = []; // tr elements, reused
let haystack = null; // text of every row, for the search
const sorting = { by: "row", down: false };

/** Columns of the table: key, title, how to sort, what to write. */
function columnsShown() {
  const e = state.approach;
  const first = [
    { key: "row", title: "Row", text: rowLabel, number: (r) => r, width: 96, isText: true },
    { key: "prediction", title: "Prediction", text: (r) => format(prediction(e, r)), number: (r) => prediction(e, r), width: 108 },
  ];
  if (byId("shown").value === "shapley") return first.concat(DATA.players.map((player, p) => shapleyColumn(e, player, p)));
  return first.concat(DATA.features.map((feature, j) => ({
    key: "f" + j, title: feature.name, text: (r) => valueText(j, r), isText: Boolean(feature.levels), width: 108,
    number: (r) => (feature.levels && column(j)[r] < 0 ? NaN : column(j)[r]),
  })));
}

const shapleyColumn = (e, player, p) => ({
  key: "p" + p, title: player.name, text: (r) => signed(phi(e, r, p)), number: (r) => phi(e, r, p), width: 108,
  sign: (r) => (phi(e, r, p) < 0 ? "negative" : "positive"),
});

let shownColumns = [];

function buildTable() {
  shownColumns = columnsShown();
  const widths = shownColumns.map((one) => Math.min(200, Math.max(one.width, textWidth(one.title, 13, 600) + 36)));
  const cols = widths.map((width) => { const col = make("col"); col.style.width = width + "px"; return col; });
  grid.querySelector("colgroup").replaceChildren(...cols);
  grid.querySelector("table").style.width = widths.reduce((a, b) => a + b, 0) + "px";
  head.replaceChildren(make("tr", { role: "row", "aria-rowindex": 1 }, ...shownColumns.map(headCell)));
  grid.setAttribute("aria-colcount", shownColumns.length);
  lines = [];
  body.replaceChildren(above, below);
  byId("sort").replaceChildren(...sortable().map((one) => make("option", { value: one.key, selected: one.key === sorting.by }, one.title)));
  arrange();
}

function sortable() {
  const extra = byId("shown").value === "shapley" ? [] : DATA.players.map((player, p) => ({ ...shapleyColumn(state.approach, player, p), title: "Shapley value of " + player.name }));
  return shownColumns.concat(extra);
}

function headCell(one) {
  const button = make("button", { type: "button", tabindex: -1, class: one.isText ? "text" : "", title: one.title, onclick: () => sortBy(one.key) }, one.title);
  return make("th", { role: "columnheader", scope: "col", "data-key": one.key }, button);
}

function sortBy(key) {
  sorting.down = sorting.by === key ? !sorting.down : key !== "row" && key !== "prediction" ? sorting.down : false;
  sorting.by = key;
  arrange();
}

function keeps(r) {
  for (const [j, filter] of filters) {
    if (j === -1) { if (!DATA.outside[r]) return false; continue; }
    const x = column(j)[r];
    if (filter.levels ? !filter.levels.has(x) : !(x >= filter.low && x <= filter.high)) return false;
  }
  return true;
}

function search() {
  const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return () => true;
  haystack ||= Array.from({ length: R }, (_, r) => [rowLabel(r), ...DATA.features.map((_, j) => valueText(j, r))].join("\n").toLowerCase());
  return (r) => words.every((word) => haystack[r].includes(word));
}

/** Filter and sort anew; missing values go last either way. */
function arrange() {
  const found = search(), by = sortable().find((one) => one.key === sorting.by) || shownColumns[0];
  sorting.by = by.key;
  view = [];
  for (let r = 0; r < R; r++) if (keeps(r) && found(r)) view.push(r);
  const number = new Float64Array(R), turn = sorting.down ? -1 : 1;
  for (const r of view) number[r] = by.number(r);
  view.sort((a, b) => (Number.isNaN(number[a]) - Number.isNaN(number[b])) || turn * (number[a] - number[b]) || a - b);
  byId("sort").value = by.key;
  byId("direction").textContent = sorting.down ? "↓" : "↑";
  byId("direction").setAttribute("aria-label", sorting.down ? "Largest first; turn round" : "Smallest first; turn round");
  for (const cell of head.querySelectorAll("th")) {
    const mine = cell.dataset.key === by.key;
    cell.setAttribute("aria-sort", mine ? (sorting.down ? "descending" : "ascending") : "none");
    cell.firstChild.textContent = shownColumns.find((one) => one.key === cell.dataset.key).title + (mine ? (sorting.down ? " ↓" : " ↑") : "");
  }
  const all = R.toLocaleString("en"), n = view.length.toLocaleString("en");
  byId("count").textContent = view.length === R ? `${all} rows` : `${n} of ${all} rows`;
  grid.setAttribute("aria-rowcount", view.length + 1);
  state.cursor = Math.max(0, view.indexOf(state.row));
  grid.scrollTop = 0;
  if (view.length && view.includes(state.row)) reveal();
  paint();
}

/** Write the lines in sight. */
function paint() {
  const room = Math.ceil((grid.clientHeight || 620) / LINE) + 2 * SPARE;
  const start = Math.max(0, Math.min(Math.floor(grid.scrollTop / LINE) - SPARE, view.length - room));
  const n = Math.min(room, view.length);
  while (lines.length < n) {
    const tr = make("tr", { role: "row", id: "line-" + lines.length }, ...shownColumns.map((one) => make("td", { role: "gridcell", class: one.isText ? "text" : "" })));
    lines.push(tr);
    below.before(tr);
  }
  while (lines.length > n) lines.pop().remove();
  above.firstChild.style.height = start * LINE + "px";
  below.firstChild.style.height = (view.length - start - n) * LINE + "px";
  above.hidden = start === 0;
  below.hidden = start + n >= view.length;
  let active = "";
  lines.forEach((tr, k) => {
    const i = start + k, r = view[i];
    if (i === state.cursor) active = tr.id;
    tr.classList.toggle("cursor", i === state.cursor);
    tr.classList.toggle("outside", Boolean(DATA.outside && DATA.outside[r]));
    tr.setAttribute("aria-selected", r === state.row || (state.compare === "row" && r === state.otherRow));
    tr.setAttribute("aria-rowindex", i + 2);
    tr.dataset.row = r;
    shownColumns.forEach((one, c) => {
      const cell = tr.children[c], text = one.text(r);
      if (cell.textContent !== text) cell.textContent = text;
      if (one.sign) cell.className = one.sign(r);
    });
  });
  if (active) grid.setAttribute("aria-activedescendant", active); else grid.removeAttribute("aria-activedescendant");
}

/** Scroll so that the line of the cursor is in sight. */
function reveal() {
  const top = state.cursor * LINE, room = (grid.clientHeight || 620) - HEAD - 16;
  if (top < grid.scrollTop) grid.scrollTop = top;
  else if (top + LINE > grid.scrollTop + room) grid.scrollTop = top + LINE - room;
}

function move(event) {
  if (event.target !== grid || !view.length) return;
  const page = Math.max(1, Math.floor(grid.clientHeight / LINE) - 2);
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -R, End: R };
  if (event.key in steps && !event.ctrlKey && !event.metaKey) {
    state.cursor = Math.min(view.length - 1, Math.max(0, state.cursor + steps[event.key]));
    reveal();
    paint();
  } else if (event.key === "Enter" || event.key === " ") choose(view[state.cursor]);
  else return;
  event.preventDefault();
}

let waiting = false;
grid.addEventListener("scroll", () => {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; paint(); });
}, { passive: true });
grid.addEventListener("keydown", move);
body.addEventListener("click", (event) => {
  const tr = event.target.closest("tr[role=row]");
  if (!tr) return;
  state.cursor = view.indexOf(Number(tr.dataset.row));
  choose(Number(tr.dataset.row));
});
