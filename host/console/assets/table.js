// Tables that show one page of rows at a time. Rows have keys: an updated row keeps its element, and so its focus and selection.

import { announce, h, id, put, setText } from "./dom.js";
import { count } from "./format.js";
import { failed } from "./notice.js";

/**
 * `columns`: `{ name, title, cell(row), isNumber, sort, isWide }`; `key(row)`: the key of a row. A column with `sort` has a button
 * in its head that calls `onsort(sort, isDescending)`. `empty`: the text for an empty table, or a function that returns it.
 */
export class Table {
  constructor({ caption, columns, key, onsort, empty = "No entries." }) {
    this.columns = columns;
    this.key = key;
    this.rows = new Map();
    this.empty = empty;
    this.body = h("tbody");
    this.nothing = h("p.nothing", { hidden: true });
    this.heads = new Map();
    const head = h("tr", {}, columns.map((column) => this.head(column, onsort)));
    const name = id("table");
    this.element = h(
      "div.table",
      { role: "region", "aria-labelledby": name, tabindex: "0" },
      h("table", {}, h("caption.unseen", { id: name }, caption), h("thead", {}, head), this.body),
      this.nothing,
    );
  }

  head(column, onsort) {
    const cell = h("th", { scope: "col", class: column.isNumber ? "number" : undefined });
    if (!column.sort || !onsort) return put(cell, column.title);
    const button = h("button.bare", { type: "button" }, column.title, h("span.order", { "aria-hidden": "true" }));
    button.addEventListener("click", () => {
      const was = cell.getAttribute("aria-sort");
      const isDescending = was ? was === "ascending" : Boolean(column.isDescendingFirst);
      this.sorted(column.sort, isDescending);
      onsort(column.sort, isDescending);
    });
    this.heads.set(column.sort, cell);
    return put(cell, button);
  }

  /** Marks the column by which the table is sorted. */
  sorted(sort, isDescending) {
    for (const [name, cell] of this.heads) {
      if (name === sort) cell.setAttribute("aria-sort", isDescending ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
  }

  /** Replaces the rows. */
  show(rows) {
    const before = this.rows;
    this.rows = new Map();
    let place = this.body.firstElementChild;
    for (const row of rows) {
      const key = this.key(row);
      if (this.rows.has(key)) continue;
      const state = JSON.stringify(row);
      let entry = before.get(key);
      if (!entry) {
        entry = { element: h("tr", {}, this.columns.map((column) => this.cell(column))), state: undefined, left: [] };
      }
      before.delete(key);
      this.rows.set(key, entry);
      entry.row = row;
      // Cells with the focus are updated later.
      const columns = entry.state === state ? entry.left : [...this.columns.keys()];
      entry.state = state;
      entry.left = this.fill(entry.element, row, columns);
      if (entry.element === place) place = place.nextElementSibling;
      else this.body.insertBefore(entry.element, place);
    }
    for (const { element } of before.values()) element.remove();
    setText(this.nothing, typeof this.empty === "function" ? this.empty() : this.empty);
    this.nothing.hidden = this.rows.size > 0;
  }

  /** The last data of the row with this key. */
  row(key) {
    return this.rows.get(key)?.row;
  }

  cell(column) {
    const classes = [column.isNumber && "number", column.isWide && "wide"].filter(Boolean).join(" ");
    return column.isHead
      ? h("th", { scope: "row", class: classes })
      : h("td", { class: classes, "data-title": column.title });
  }

  /** Updates the cells of a row in these columns. Returns the columns whose cells were not updated because they have the focus. */
  fill(element, row, columns) {
    return columns.filter((n) => {
      const cell = element.children[n];
      const content = this.columns[n].cell(row);
      const isText = typeof content === "string" || typeof content === "number";
      if (isText && cell.childElementCount === 0 && cell.textContent === String(content)) return false;
      if (cell.contains(document.activeElement)) return true;
      put(cell, content);
      return false;
    });
  }
}

/**
 * Pages through a list with cursors: `load(after)` resolves to `{ rows, next }`, with further fields if needed, and
 * `show(rows, answer)` shows them, unless another page was requested meanwhile. Cursors of earlier pages are kept for “Previous”.
 * `list` is the element with the rows; it is marked busy while a page is loaded.
 */
export class Pages {
  constructor({ load, show, size, list }) {
    this.load = load;
    this.show = show;
    this.size = size;
    this.list = list;
    this.trail = [undefined];
    this.next = null;
    this.position = h("span.position");
    this.previousButton = h("button.button", { type: "button", disabled: true, onclick: () => this.turn(-1) }, "Previous");
    this.nextButton = h("button.button", { type: "button", disabled: true, onclick: () => this.turn(1) }, "Next");
    this.element = h("nav.pages", { "aria-label": "Pages of this table" }, this.previousButton, this.position, this.nextButton);
  }

  /** Loads the first page. */
  async first() {
    this.trail = [undefined];
    await this.reload();
  }

  /** Loads the current page again. */
  async reload() {
    const turn = Symbol("turn");
    this.current = turn;
    this.list.setAttribute("aria-busy", "true");
    let answer;
    try {
      answer = await this.load(this.trail.at(-1));
    } catch (problem) {
      // Another page was requested meanwhile.
      if (this.current !== turn) return;
      throw problem;
    } finally {
      if (this.current === turn) this.list.removeAttribute("aria-busy");
    }
    if (this.current !== turn) return;
    const { rows, next } = answer;
    this.next = next ?? null;
    this.shown = this.trail;
    this.show(rows, answer);
    const page = this.trail.length;
    const first = (page - 1) * this.size + 1;
    put(this.position, rows.length === 0 ? "" : `${count(first)} to ${count(first + rows.length - 1)}`);
    this.previousButton.disabled = page === 1;
    this.nextButton.disabled = this.next === null;
    this.element.hidden = page === 1 && this.next === null;
  }

  async turn(by) {
    // The next cursor belongs to the page that is shown; that of a page being loaded is not known yet.
    if (by > 0 ? this.shown !== this.trail : this.trail.length === 1) return;
    const before = this.trail;
    this.trail = by > 0 ? [...before, this.next] : before.slice(0, -1);
    try {
      await this.reload();
    } catch (problem) {
      this.trail = before;
      return failed(problem);
    }
    announce(`Rows ${this.position.textContent}`);
  }
}

/** A list of names and values. An entry whose third value is true has the full width. */
export function facts(entries) {
  return h(
    "dl.facts",
    {},
    entries
      .filter((entry) => entry && entry[1] !== undefined && entry[1] !== null && entry[1] !== false && entry[1] !== "")
      .map(([name, value, isWide]) => h("div", { class: isWide ? "wide" : undefined }, h("dt", {}, name), h("dd", {}, value))),
  );
}
