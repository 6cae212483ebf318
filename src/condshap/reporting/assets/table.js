// Rows -> a table that only holds the lines in sight: search, sort, filter, choose.

const LINE = 32, HEAD = 36, SPARE = 6;
const grid = byId("scroller"), body = grid.querySelector("tbody"), head = grid.querySelector("thead");
const spacer = () => make("tr", { class: "spacer", "aria-hidden": "true" }, make("td"));
const above = spacer(), below = spacer();
const filters = new Map(); // feature -> {low, high} or {levels: Set}; -1 -> rows outside the training data
let view = Array.from({ length: R }, (_, r) => r); // rows as sorted and filtered
let lines = []; // tr elements, reused
let first = 0; // position in the view of the first of them
let haystack = null; // text of every row, for the search
const sorting = { by: "row", down: false };

/** Columns of the table: key, title, how to sort, what to write. */
function columnsShown() {
  const e = state.approach, o = state.output, places = decimalsFor(`y${e}-${o}`, () => explanation(e).predictions.subarray(o * R, (o + 1) * R), 5);
  const fixedOnes = [
    { key: "row", title: "Row", text: rowLabel, number: (r) => r, isText: true },
    { key: "prediction", title: WORDS.prediction, text: (r) => inColumn(prediction(e, r), places), number: (r) => prediction(e, r) },
  ];
  if (byId("shown").value === "shapley") return fixedOnes.concat(DATA.players.map((player, p) => shapleyColumn(e, player, p)));
  const sorted = DATA.players.findIndex((_, p) => sorting.by === "p" + p); // what rows are sorted by is in sight
  if (sorted >= 0) fixedOnes.push({ ...shapleyColumn(e, DATA.players[sorted], sorted), title: WORDS.value + " of " + DATA.players[sorted].name });
  return fixedOnes.concat(DATA.features.map((feature, j) => ({
    key: "f" + j, title: feature.name, text: (r) => valueText(j, r), isText: Boolean(feature.levels),
    number: (r) => (feature.levels && column(j)[r] < 0 ? NaN : column(j)[r]),
  })));
}

function shapleyColumn(e, player, p) {
  const places = decimalsFor(`p${e}-${state.output}`, () => explanation(e).values.subarray(state.output * R * P, (state.output + 1) * R * P), 4);
  return {
    key: "p" + p, title: player.name, text: (r) => inColumn(phi(e, r, p), places, true), number: (r) => phi(e, r, p),
    sign: (r) => (phi(e, r, p) < 0 ? "negative" : "positive"),
  };
}

let shownColumns = [];

function buildTable() {
  const top = grid.scrollTop, left = grid.scrollLeft;
  shownColumns = columnsShown();
  const some = Array.from({ length: Math.min(R, 100) }, (_, i) => Math.floor((i * R) / Math.min(R, 100)));
  const widths = shownColumns.map((one) => {
    const inside = some.reduce((most, r) => Math.max(most, textWidth(one.text(r), 13, 600)), 0);
    return Math.min(one.isText ? 200 : 260, Math.max(84, inside + (one.key === "row" ? 56 : 26), Math.min(200, textWidth(one.title, 13, 600) + 36)));
  });
  const cols = widths.map((width) => { const col = make("col"); col.style.width = width + "px"; return col; });
  grid.querySelector("colgroup").replaceChildren(...cols);
  grid.querySelector("table").style.width = widths.reduce((a, b) => a + b, 0) + "px";
  head.replaceChildren(make("tr", { role: "row", "aria-rowindex": 1 }, ...shownColumns.map(headCell)));
  grid.setAttribute("aria-colcount", shownColumns.length);
  lines = [];
  body.replaceChildren(above, below);
  byId("sort").replaceChildren(...sortable().map((one) => make("option", { value: one.key, selected: one.key === sorting.by }, one.title)));
  arrange(true);
  grid.scrollTop = top;
  grid.scrollLeft = left;
}

function sortable() {
  const extra = byId("shown").value === "shapley" ? [] : DATA.players.map((player, p) => ({ ...shapleyColumn(state.approach, player, p), title: WORDS.value + " of " + player.name }));
  return shownColumns.concat(extra.filter((one) => shownColumns.every((shown) => shown.key !== one.key)));
}

function headCell(one) {
  const button = make("button", { type: "button", tabindex: -1, class: one.isText ? "text" : "", title: one.title, onclick: () => sortBy(one.key) }, one.title);
  return make("th", { role: "columnheader", scope: "col", "data-key": one.key }, button);
}

function sortBy(key) {
  sorting.down = sorting.by === key && !sorting.down;
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
  const wanted = byId("search").value.trim().toLowerCase();
  if (!wanted) return () => true;
  haystack ||= Array.from({ length: R }, (_, r) => [rowLabel(r), ...DATA.features.map((_, j) => valueText(j, r))].join("\n").toLowerCase());
  return (r) => haystack[r].includes(wanted);
}

/** Filter and sort anew, and show the first rows, or stay where we were; missing values go last either way. */
function arrange(stay = false) {
  const found = search(), by = sortable().find((one) => one.key === sorting.by) || shownColumns[0];
  sorting.by = by.key;
  view = [];
  for (let r = 0; r < R; r++) if (keeps(r) && found(r)) view.push(r);
  const number = new Float64Array(R), turn = sorting.down ? -1 : 1;
  for (const r of view) number[r] = by.number(r);
  view.sort((a, b) => (Number.isNaN(number[a]) - Number.isNaN(number[b])) || turn * (number[a] - number[b]) || a - b);
  byId("sort").value = by.key;
  byId("direction").textContent = sorting.down ? "↓" : "↑";
  byId("direction").setAttribute("aria-label", sorting.down ? "Largest first; reverse the order" : "Smallest first; reverse the order");
  for (const cell of head.querySelectorAll("th")) {
    const mine = cell.dataset.key === by.key;
    cell.setAttribute("aria-sort", mine ? (sorting.down ? "descending" : "ascending") : "none");
    cell.firstChild.textContent = shownColumns.find((one) => one.key === cell.dataset.key).title + (mine ? (sorting.down ? " ↓" : " ↑") : "");
  }
  if (!stay) showSorted(by.key);
  if (view.length && !view.includes(state.row)) state.row = view[0]; // a row that is filtered out is not shown
  if (view.length && !view.includes(state.otherRow)) state.otherRow = view[1] ?? view[0];
  if (!byId("rows").hidden && document.documentElement.dataset.ready === "") showRows();
  const all = R.toLocaleString("en"), n = view.length.toLocaleString("en");
  byId("count").textContent = view.length === R ? `${all} row${R === 1 ? "" : "s"}` : `${n} of ${all} rows`;
  grid.setAttribute("aria-rowcount", view.length + 1);
  if (!stay) state.cursor = grid.scrollTop = 0;
  state.cursor = Math.min(state.cursor, Math.max(0, view.length - 1));
  paint();
}

/** Scroll sideways until the column that rows are sorted by is in sight, beside the labels of the rows. */
function showSorted(key) {
  const cell = head.querySelector(`th[data-key="${key}"]`), labels = head.querySelector("th").offsetWidth;
  if (!cell || key === "row") return;
  const left = cell.offsetLeft - labels, right = cell.offsetLeft + cell.offsetWidth - grid.clientWidth;
  if (left < grid.scrollLeft || right > grid.scrollLeft) grid.scrollLeft = Math.min(left, Math.max(0, right));
}

/** Put the lines in sight in place. Those that stay in sight are moved, not written again, so that scrolling is smooth. */
function paint() {
  const room = Math.ceil((grid.clientHeight || 620) / LINE) + 2 * SPARE, n = Math.min(room, view.length);
  const start = Math.max(0, Math.min(Math.floor(grid.scrollTop / LINE) - SPARE, view.length - n));
  while (lines.length < n) {
    const tr = make("tr", { role: "row", id: "line-" + lines.length }, ...shownColumns.map((one) => make("td", { role: "gridcell", class: one.isText ? "text" : "" })));
    lines.push(tr);
    below.before(tr);
  }
  while (lines.length > n) lines.pop().remove();
  if (Math.abs(start - first) < n) {
    for (; first < start; first++) { const tr = lines.shift(); lines.push(tr); below.before(tr); }
    for (; first > start; first--) { const tr = lines.pop(); lines.unshift(tr); above.after(tr); }
  }
  first = start;
  above.firstChild.style.height = start * LINE + "px";
  below.firstChild.style.height = (view.length - start - n) * LINE + "px";
  above.hidden = start === 0;
  below.hidden = start + n >= view.length;
  grid.removeAttribute("aria-activedescendant");
  lines.forEach((tr, k) => mark(tr, start + k));
}

/** Make a line show the row at position `i` of the view. */
function mark(tr, i) {
  const r = view[i], slots = (r === state.row ? "A" : "") + (state.compare === "row" && r === state.otherRow ? "B" : "");
  tr.classList.toggle("cursor", i === state.cursor);
  if (i === state.cursor) grid.setAttribute("aria-activedescendant", tr.id);
  tr.setAttribute("aria-selected", slots !== "");
  tr.setAttribute("aria-rowindex", i + 2);
  if (slots && state.compare === "row") tr.firstChild.dataset.slot = slots; else delete tr.firstChild.dataset.slot;
  if (tr.dataset.row === String(r)) return;
  tr.dataset.row = r;
  tr.classList.toggle("outside", Boolean((DATA.outside && DATA.outside[r]) || DATA.explanations.some((one) => one.unlike.includes(r))));
  shownColumns.forEach((one, c) => {
    tr.children[c].textContent = one.text(r);
    if (one.sign) tr.children[c].className = one.sign(r);
  });
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
