// Charts, drawn as SVG at the size of their place on the page. Each is a figure with a title, a sentence that describes its current
// values, a crosshair for pointer and arrow keys, and a table of its numbers on request.

import { h, id, put, s, setText } from "./dom.js";
import { utc } from "./format.js";

const HEIGHT = 168;
const EDGE = { top: 10, right: 12, bottom: 22, left: 52 };

/**
 * Values over time. `series`: their names; `format`: formats a value; `kind`: `line`, `area` (stacked) or `share` (of the sum).
 */
export class TimeChart {
  constructor({ title, series, format, axis = format, kind = "line", step = 1000, describe }) {
    Object.assign(this, { series, format, axis, kind, step, describe, points: [], at: null });
    this.frame = new Frame(title, series.length > 1 ? series : []);
    this.element = this.frame.element;
    this.readout = h("p.readout", { "aria-live": "polite" });
    this.frame.plot.after(this.readout);
    const plot = this.frame.plot;
    plot.tabIndex = 0;
    plot.addEventListener("pointermove", (event) => this.point(event.clientX - plot.getBoundingClientRect().left));
    plot.addEventListener("pointerleave", () => this.mark(null));
    plot.addEventListener("blur", () => this.mark(null));
    plot.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
      if (step === undefined || this.points.length === 0) return;
      event.preventDefault();
      const last = this.points.length - 1;
      this.mark(Math.max(0, Math.min(last, (this.at ?? last) + step)));
    });
    this.frame.redrawOnResize(() => this.draw());
    this.frame.table(() => [
      ["Time (UTC)", ...series],
      this.points.map((point) => [utc(point.time), ...point.values.map((value) => format(value))]),
    ]);
  }

  /** Draws `[{ time, values }]`, times in milliseconds, oldest first. A line has a gap where its value is `null` (not measured). */
  update(points) {
    this.points = points;
    this.draw();
  }

  draw() {
    const { width } = this.frame;
    if (width === 0) return;
    const points = this.points;
    if (points.length < 2) {
      this.frame.nothing("Not enough data yet.");
      return;
    }
    const isStacked = this.kind !== "line";
    const levels = points.map((point) => {
      if (!isStacked || point.values.every((value) => value === null)) return point.values;
      let sum = 0;
      const whole = this.kind === "share" ? point.values.reduce((all, value) => all + (value || 0), 0) || 1 : 1;
      return point.values.map((value) => (sum += (value || 0) / whole));
    });
    const top = axisTicks(Math.max(...levels.flat().filter(Number.isFinite), 0), this.step);
    const from = points[0].time;
    const until = points.at(-1).time;
    this.x = (time) => EDGE.left + ((time - from) / Math.max(1, until - from)) * (width - EDGE.left - EDGE.right);
    const y = (value) => HEIGHT - EDGE.bottom - (value / top.max) * (HEIGHT - EDGE.top - EDGE.bottom);
    const parts = [...grid(top, y, width, this.axis), ...hours(from, until, this.x)];
    this.series.forEach((_, n) => {
      // A layer of zeros would draw its line over the layer below.
      if (isStacked && n > 0 && points.every((point) => !point.values[n])) return;
      for (const run of runs(levels, n)) {
        const at = (i, value) => `${this.x(points[i].time).toFixed(1)} ${y(value).toFixed(1)}`;
        // A single point is drawn as a dot.
        const line = run.map((i) => `L${at(i, levels[i][n])}`).join("").replace("L", "M") + (run.length === 1 ? "h0.1" : "");
        if (isStacked) {
          const floor = run.map((i) => `L${at(i, n === 0 ? 0 : levels[i][n - 1])}`).reverse().join("");
          parts.push(s("path", { class: `fill c${n + 1}`, d: `${line}${floor}Z` }));
        }
        parts.push(s("path", { class: `line c${n + 1}`, d: line }));
      }
    });
    this.cross = s("line", { class: "cross", y1: EDGE.top, y2: HEIGHT - EDGE.bottom, visibility: "hidden" });
    this.frame.show([...parts, this.cross], this.sentence());
    if (this.at !== null) this.mark(Math.min(this.at, points.length - 1));
  }

  sentence() {
    const last = this.points.at(-1);
    const values = last.values.map((value, n) => (this.series.length > 1 ? `${this.series[n]} ${this.format(value)}` : this.format(value)));
    return `${this.describe ? `${this.describe} ` : ""}At ${utc(last.time)}: ${values.join(", ")}.`;
  }

  point(x) {
    if (!this.x || this.points.length < 2) return;
    let nearest = 0;
    this.points.forEach((point, n) => {
      if (Math.abs(this.x(point.time) - x) < Math.abs(this.x(this.points[nearest].time) - x)) nearest = n;
    });
    this.mark(nearest);
  }

  mark(at) {
    this.at = at;
    if (!this.cross) return;
    this.cross.setAttribute("visibility", at === null ? "hidden" : "visible");
    if (at === null || !this.points[at]) {
      setText(this.readout, "");
      return;
    }
    const point = this.points[at];
    this.cross.setAttribute("x1", this.x(point.time));
    this.cross.setAttribute("x2", this.x(point.time));
    const isMeasured = point.values.some((value) => value !== null);
    const values = isMeasured ? point.values.map((value, n) => `${this.series.length > 1 ? `${this.series[n]} ` : ""}${this.format(value)}`) : ["not measured"];
    setText(this.readout, `${utc(point.time).slice(11, 19)} · ${values.join(" · ")}`);
  }
}

/** Vertical bars for ordered classes, such as the delays of visits. */
export class Histogram {
  constructor({ title, format, axis = format, describe }) {
    Object.assign(this, { format, axis, describe, bars: [] });
    this.frame = new Frame(title, []);
    this.element = this.frame.element;
    this.frame.redrawOnResize(() => this.draw());
    this.frame.table(() => [["Class", "Number"], this.bars.map((bar) => [bar.name, format(bar.value)])]);
  }

  /** Draws `[{ name, value }]`. */
  update(bars) {
    this.bars = bars;
    this.draw();
  }

  draw() {
    const { width } = this.frame;
    if (width === 0) return;
    const sum = this.bars.reduce((all, bar) => all + bar.value, 0);
    if (sum === 0) {
      this.frame.nothing("No data yet.");
      return;
    }
    const top = axisTicks(Math.max(...this.bars.map((bar) => bar.value)));
    const y = (value) => HEIGHT - EDGE.bottom - (value / top.max) * (HEIGHT - EDGE.top - EDGE.bottom);
    const step = (width - EDGE.left - EDGE.right) / this.bars.length;
    const parts = grid(top, y, width, this.axis);
    this.bars.forEach((bar, n) => {
      const x = EDGE.left + n * step;
      const height = HEIGHT - EDGE.bottom - y(bar.value);
      parts.push(
        s("rect", { class: "bar c1", x: x + step * 0.12, y: y(bar.value), width: step * 0.76, height }, s("title", {}, `${bar.name}: ${this.format(bar.value)}`)),
        s("text", { class: "tick", x: x + step / 2, y: HEIGHT - (step < 46 && n % 2 === 0 ? 10 : -2), "text-anchor": "middle" }, bar.name),
      );
    });
    const texts = this.bars.filter((bar) => bar.value > 0).map((bar) => `${bar.name}: ${this.format(bar.value)}`);
    this.frame.show(parts, `${this.describe ? `${this.describe} ` : ""}${texts.join(", ")}.`);
  }
}

/** Horizontal bars with names, the longest first. Names and values are text, so no table is needed. */
export class Bars {
  constructor({ title, format, note }) {
    this.format = format;
    this.list = h("ol.bars");
    this.nothing = h("p.nothing", {}, "No data yet.");
    this.element = figure(title, note && h("p.hint", {}, note), this.list, this.nothing);
  }

  /** Shows `[{ name, value, detail, kind, href }]`; `kind` is a CSS class, such as `bad`. */
  update(bars) {
    const most = Math.max(...bars.map((bar) => bar.value), 0);
    this.nothing.hidden = bars.length > 0;
    put(
      this.list,
      bars.map((bar) => {
        const part = most === 0 ? 0 : (bar.value / most) * 100;
        return h(
          "li",
          {},
          h("span.bar-name", {}, bar.href ? h("a", { href: bar.href }, bar.name) : bar.name),
          s(
            "svg",
            { class: "bar-track", viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" },
            s("rect", { class: `bar ${bar.kind ?? "c1"}`, x: 0, y: 0, width: Math.max(part, bar.value > 0 ? 0.8 : 0), height: 6 }),
          ),
          h("span.bar-value", {}, this.format(bar.value), bar.detail && h("span.muted", {}, ` ${bar.detail}`)),
        );
      }),
    );
  }
}

/** A figure with its title. */
export function figure(title, ...content) {
  const name = id("figure");
  return h("figure.card", { "aria-labelledby": name }, h("figcaption", { id: name }, title), content);
}

/** The common parts of charts: title, legend, drawing, table. */
class Frame {
  constructor(title, series) {
    const titleName = id("chart");
    const descriptionName = id("chart");
    this.width = 0;
    this.description = s("desc", { id: descriptionName });
    this.plot = s(
      "svg",
      { class: "plot", height: HEIGHT, role: "img", "aria-labelledby": titleName, "aria-describedby": descriptionName },
      s("title", { id: titleName }, title),
      this.description,
    );
    this.drawing = s("g");
    this.plot.append(this.drawing);
    this.note = h("p.nothing", { hidden: true });
    this.numbers = h("div");
    this.more = h("details.numbers", {}, h("summary", {}, "As a table"), this.numbers);
    const legend =
      series.length > 0 && h("ul.legend", {}, series.map((name, n) => h("li", {}, h(`span.swatch.c${n + 1}`, { "aria-hidden": "true" }), name)));
    this.element = figure(title, legend, this.note, this.plot, this.more);
  }

  redrawOnResize(draw) {
    new ResizeObserver(([entry]) => {
      const width = Math.round(entry.contentRect.width);
      if (width === this.width) return;
      this.width = width;
      this.plot.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
      draw();
    }).observe(this.element.querySelector("svg.plot").parentElement);
  }

  table(numbers) {
    this.more.addEventListener("toggle", () => {
      if (!this.more.open) return void put(this.numbers);
      const [head, rows] = numbers();
      put(
        this.numbers,
        h(
          "div.table",
          { tabindex: "0", role: "region", "aria-label": "Numbers of the chart" },
          h(
            "table",
            {},
            h("thead", {}, h("tr", {}, head.map((name) => h("th", { scope: "col" }, name)))),
            h("tbody", {}, rows.slice(-200).map((row) => h("tr", {}, row.map((value) => h("td", {}, value))))),
          ),
        ),
      );
    });
  }

  show(parts, sentence) {
    this.note.hidden = true;
    this.plot.removeAttribute("hidden");
    setText(this.description, sentence);
    this.drawing.replaceChildren(...parts);
  }

  nothing(text) {
    this.note.hidden = false;
    setText(this.note, text);
    setText(this.description, text);
    this.drawing.replaceChildren();
  }
}

// The indexes of points that were measured, in runs without a gap between them.
function runs(levels, n) {
  const found = [];
  let run = null;
  levels.forEach((values, i) => {
    if (values[n] === null || values[n] === undefined) run = null;
    else if (run) run.push(i);
    else found.push((run = [i]));
  });
  return found;
}

function grid(top, y, width, format) {
  return top.ticks.flatMap((tick) => [
    s("line", { class: "gridline", x1: EDGE.left, x2: width - EDGE.right, y1: y(tick), y2: y(tick) }),
    s("text", { class: "tick", x: EDGE.left - 6, y: y(tick) + 4, "text-anchor": "end" }, format(tick)),
  ]);
}

function hours(from, until, x) {
  const isLong = until - from > 36 * 3600 * 1000;
  const label = (time) => (isLong ? new Date(time).toISOString().slice(5, 16).replace("T", " ") : new Date(time).toISOString().slice(11, until - from > 600000 ? 16 : 19));
  return [
    [from, "start"],
    [(from + until) / 2, "middle"],
    [until, "end"],
  ].map(([time, anchor]) => s("text", { class: "tick", x: x(time), y: HEIGHT - 6, "text-anchor": anchor }, label(time)));
}

/** Round numbers for an axis, up to the first one that is not less than `most`. */
function axisTicks(most, thousand = 1000) {
  const unit = thousand ** Math.max(0, Math.floor(Math.log(Math.max(most, 1)) / Math.log(thousand)));
  const greatest = (most > 0 ? most : 1) / unit;
  const rough = greatest / 3;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * size).find((one) => one >= rough) ?? rough;
  const ticks = [];
  for (let tick = 0; tick < greatest + step * 0.999; tick += step) ticks.push(tick * unit);
  return { max: ticks.at(-1), ticks };
}
