// A treemap: rectangles whose areas are proportional to values. A table beside it has the numbers, so for screen readers and
// keyboards the treemap is a single image.

import { figure } from "./charts.js";
import { h, id, put, s, setText } from "./dom.js";

const HEIGHT = 320;

export class Treemap {
  /** `legend`: `[class, text]` of the kinds of tiles; `open(tile)` runs when a tile is clicked. */
  constructor({ title, legend, format, open }) {
    Object.assign(this, { format, open, tiles: [], width: 0 });
    const [name, description] = [id("treemap"), id("treemap")];
    this.description = s("desc", { id: description });
    this.drawing = s("g");
    this.plot = s("svg", { class: "treemap", role: "img", "aria-labelledby": name, "aria-describedby": description }, s("title", { id: name }, title), this.description, this.drawing);
    this.nothing = h("p.nothing", { hidden: true }, "No data yet.");
    const kinds = h("ul.legend", {}, legend.map(([kind, text]) => h("li", {}, h(`span.swatch.${kind}`, { "aria-hidden": "true" }), text)));
    this.element = figure(title, kinds, this.nothing, this.plot);
    new ResizeObserver(([entry]) => {
      const width = Math.round(entry.contentRect.width);
      if (width === this.width) return;
      this.width = width;
      this.plot.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
      this.draw();
    }).observe(this.plot.parentElement);
  }

  /** Shows `[{ name, value, kind, detail, href }]`. */
  update(tiles) {
    this.tiles = tiles.filter((tile) => tile.value > 0);
    this.draw();
  }

  draw() {
    const isEmpty = this.tiles.length === 0;
    this.nothing.hidden = !isEmpty;
    this.plot.toggleAttribute("hidden", isEmpty);
    if (this.width === 0) return;
    const places = squarified(this.tiles.map((tile) => tile.value), { x: 0, y: 0, width: this.width, height: HEIGHT });
    put(this.drawing, this.tiles.map((tile, n) => this.tile(tile, places[n], n)));
    const largest = this.tiles.slice(0, 5).map((tile) => `${tile.name} ${this.format(tile.value)}`);
    setText(this.description, isEmpty ? "No data yet." : `The largest: ${largest.join(", ")}.`);
  }

  tile(tile, { x, y, width, height }, n) {
    const clip = `tile-${n}`;
    const hasName = width > 44 && height > 20;
    return s(
      "g",
      { class: tile.kind, onclick: () => tile.href && this.open(tile) },
      s("title", {}, `${tile.name}: ${this.format(tile.value)}${tile.detail ? `, ${tile.detail}` : ""}`),
      s("rect", { x, y, width, height }),
      hasName && s("clipPath", { id: clip }, s("rect", { x, y, width: width - 4, height })),
      hasName && s("text", { x: x + 6, y: y + 16, "clip-path": `url(#${clip})` }, tile.name),
      hasName && height > 38 && s("text", { x: x + 6, y: y + 32, "clip-path": `url(#${clip})` }, this.format(tile.value)),
    );
  }
}

/**
 * Rectangles for values in descending order, as square as they can be: the algorithm of Bruls, Huizing and van Wijk (2000).
 */
export function squarified(values, room) {
  const sum = values.reduce((all, value) => all + value, 0);
  const scale = sum > 0 ? (room.width * room.height) / sum : 0;
  const areas = values.map((value) => value * scale);
  const places = [];
  let { x, y, width, height } = room;
  let begin = 0;
  while (begin < areas.length) {
    const side = Math.min(width, height);
    let end = begin + 1;
    while (end < areas.length && worst(areas.slice(begin, end + 1), side) <= worst(areas.slice(begin, end), side)) end += 1;
    const row = areas.slice(begin, end);
    const area = row.reduce((all, one) => all + one, 0);
    const depth = side > 0 ? area / side : 0;
    let along = 0;
    for (const one of row) {
      const length = depth > 0 ? one / depth : 0;
      places.push(width >= height ? { x, y: y + along, width: depth, height: length } : { x: x + along, y, width: length, height: depth });
      along += length;
    }
    if (width >= height) {
      x += depth;
      width = Math.max(0, width - depth);
    } else {
      y += depth;
      height = Math.max(0, height - depth);
    }
    begin = end;
  }
  return places;
}

// The largest aspect ratio of a rectangle in a row of these areas.
function worst(row, side) {
  const sum = row.reduce((all, one) => all + one, 0);
  const [least, most] = [Math.min(...row), Math.max(...row)];
  if (sum === 0 || least === 0 || side === 0) return Infinity;
  return Math.max((side * side * most) / (sum * sum), (sum * sum) / (side * side * least));
}
