// Stacks of plugins, stage by stage, and the settings of each plugin from its own JSON Schema.

import { announce, h, icon, put } from "./dom.js";
import { changesOf, Field, fieldsOf } from "./fields.js";
import { choice, field } from "./notice.js";
import { properties, resolve } from "./schema.js";
import { at, pointer } from "./settings-form.js";

const STAGES = ["scope", "precedence", "pre-fetch", "mid-fetch", "post-fetch", "render", "digest", "change", "pre-extract", "extract", "last-resort", "archive", "behave", "wait", "observe"];
const SHIPPED = "builtin:";
const UNKNOWN = "The plugins of this stage are not known: correct the errors of the stage, and of extended profiles, first.";

/** The section of the form for plugins. */
export class PluginForm {
  constructor({ schema, plugins, isReadOnly, onchange, fields }) {
    this.schema = schema;
    this.catalogue = new Map();
    // The last schemas that were read, by plugin and component: a profile with errors comes without schemas of components in files.
    this.schemas = new Map();
    this.state = h("p.muted", { role: "status" }, "Loading the shipped plugins …");
    plugins.then((found) => this.setCatalogue(found)).catch((problem) => put(this.state, problem.message));
    this.isReadOnly = isReadOnly;
    this.onchange = onchange;
    this.fields = fields;
    this.open = new Set();
    const described = properties(schema, resolve(schema, schema.properties.stacks));
    this.stages = STAGES.filter((stage) => described[stage]).map((stage) => this.stage(stage, described[stage].description ?? ""));
    this.instances = new Map();
    this.list = h("div");
    this.element = h(
      "details.card.section",
      {},
      h("summary", {}, h("span.section-title", {}, "Plugins"), " ", (this.written = h("span.muted"))),
      h("p.hint", {}, "Each stage calls its plugins in this order."),
      this.state,
      this.stages.map((stage) => stage.element),
      h("h3", {}, "Settings of plugins"),
      this.list,
      !isReadOnly && this.adder(),
    );
  }

  /** Sets the shipped plugins when they have been loaded. */
  setCatalogue(plugins) {
    this.catalogue = new Map(plugins.map((plugin) => [plugin.name, plugin]));
    this.state.remove();
    if (this.component) put(this.component, plugins.map((plugin) => h("option", { value: `${SHIPPED}${plugin.name}` }, plugin.name)));
    if (this.form) this.show(this.form);
  }

  /** Component, schema, summary and stages of a plugin, as far as they are known. `name` is its name in the stacks. */
  info(name) {
    const table = this.form?.written.plugins?.[name] ?? this.form?.inherited.plugins?.[name];
    // In a text with errors the table may be a value of another type.
    const component = String(table?.component ?? `${SHIPPED}${name}`);
    const shipped = component.startsWith(SHIPPED) ? this.catalogue.get(component.slice(SHIPPED.length)) : undefined;
    return { component, summary: shipped?.summary ?? component, stages: shipped?.stages, schema: shipped?.schema ?? this.schemas.get(`${name} ${component}`) };
  }

  /** The plugins of a stage in effect; undefined if errors of the profile make them unknown. */
  stackOf(stage, { written, stacks } = this.form) {
    const own = written.stacks?.[stage];
    return Array.isArray(own) ? own : stacks[stage];
  }

  stage(stage, description) {
    const items = h("ol.stack-items");
    const reset = h("button.button.small", { type: "button", hidden: true, "aria-label": `Use default: ${stage}`, onclick: () => this.onchange([{ path: ["stacks", stage], value: null }]) }, "Use default");
    const pick = choice({ "aria-label": `Plugin to add to ${stage}` }, [], "");
    const add = h("button.button.small", { type: "button", "aria-label": `Add to ${stage}` }, icon("plus"), "Add");
    add.addEventListener("click", () => {
      const added = pick.value;
      if (added) this.change(stage, (names) => [...names.filter((name) => name !== added), added], `${added} was added`);
    });
    const [what, rest] = description.replaceAll("`", "").split(/(?<=\.)\s(.*)/s);
    const fault = h("p.form-error", { hidden: true });
    const element = h(
      "div.stage",
      { role: "group", "aria-label": `Stage ${stage}` },
      h("div.stage-head", {}, h("h3", {}, stage), !this.isReadOnly && reset),
      h("p.hint", { title: rest }, what),
      items,
      fault,
      !this.isReadOnly && h("div.actions", {}, pick, add),
    );
    this.fields.set(pointer(["stacks", stage]), {
      fault,
      showFaults: (faults) => {
        put(fault, faults.map((one) => one.problem).join("; "));
        fault.hidden = faults.length === 0;
      },
    });
    return {
      stage,
      element,
      items,
      reset,
      pick,
      add,
      text: `${stage} ${description}`.toLowerCase(),
    };
  }

  /** Changes a stack. `edit` gets the stack as it is when all earlier changes are written. `message` is for screen readers. */
  change(stage, edit, message, focus) {
    this.focus = focus;
    announce(message);
    this.onchange((form) => {
      const now = this.stackOf(stage, form);
      // The stack is unknown, and a guess could lose plugins that its text names.
      return now ? [{ path: ["stacks", stage], value: edit(now) }] : [];
    });
  }

  row({ stage }, name, place, names) {
    const move = (by, word) => {
      const edit = (now) => {
        const from = now.indexOf(name);
        return from < 0 ? now : now.toSpliced(from, 1).toSpliced(Math.max(0, from + by), 0, name);
      };
      const isEnd = place + by === 0 || place + by === names.length - 1;
      this.change(stage, edit, `${name} is now ${place + by + 1} of ${names.length}`, `Move ${isEnd ? (word === "up" ? "down" : "up") : word}: ${name} in ${stage}`);
    };
    const button = (glyph, label, act, isDisabled) => h("button.button.small", { type: "button", "aria-label": `${label}: ${name} in ${stage}`, title: label, disabled: isDisabled, onclick: act }, icon(glyph));
    return h(
      "li",
      {},
      h("code", {}, name),
      h("span.muted.stack-summary", {}, this.info(name).summary),
      !this.isReadOnly &&
        h(
          "span.actions",
          {},
          button("up", "Move up", () => move(-1, "up"), place === 0),
          button("down", "Move down", () => move(1, "down"), place === names.length - 1),
          button("close", "Remove", () => this.change(stage, (now) => now.filter((other) => other !== name), `${name} was removed`, `Add to ${stage}`)),
        ),
    );
  }

  adder() {
    const name = h("input", { autocomplete: "off", spellcheck: "false", autocapitalize: "off", pattern: "[a-z0-9]+(-[a-z0-9]+)*" });
    const component = choice({}, [], "");
    this.component = component;
    const add = h("button.button", { type: "button" }, icon("plus"), "Add plugin");
    add.addEventListener("click", () => {
      if (name.value.trim() === "" || !name.reportValidity()) return name.focus();
      this.open.add(name.value.trim());
      this.onchange([{ path: ["plugins", name.value.trim(), "component"], value: component.value }]);
      announce(`Plugin ${name.value.trim()} was added; add it to a stage`);
      name.value = "";
    });
    return h("div.toolbar.adder", {}, field("Name of a further plugin", name, "Lower-case words joined by hyphens."), field("Shipped plugin that it uses", component), add);
  }

  /** A plugin's settings; the fields are made when the section is opened. */
  instance(name) {
    const body = h("div");
    const written = h("span.muted");
    const element = h(
      "details.plugin-settings",
      { open: this.open.has(name), ontoggle: () => this.toggled(name) },
      h("summary", {}, h("code", {}, name), " ", written),
      body,
    );
    return { name, element, body, written, fields: null };
  }

  toggled(name) {
    const one = this.instances.get(name);
    if (!one) return;
    if (one.element.open) this.open.add(name);
    else this.open.delete(name);
    this.fill(one);
  }

  fill(one) {
    const { name } = one;
    const { schema, summary, component } = this.info(name);
    const table = this.form.written.plugins?.[name] ?? {};
    const others = Object.keys(table).filter((key) => key !== "component" && key !== "settings");
    const setHere = Object.keys(table.settings ?? {}).length + others.length;
    put(one.written, setHere > 0 && `${setHere} set here`);
    if (!one.element.open) return;
    // New fields would lose the focus, so they are made only if the schema has changed: each answer has new schema objects.
    const described = JSON.stringify([component, schema]);
    if (one.described !== described) {
      one.described = described;
      one.fields = schema ? fieldsOf(schema, schema, ["plugins", name, "settings"]).filter((it) => it.name !== "seed-prefixes") : [];
      one.fields = one.fields.map((it) => this.field(name, it));
      const more = h("details.more", {}, h("summary", {}, h("span.section-title", {}, "Limits, errors and component")));
      one.more = this.tableFields(name).map((it) => this.field(name, it, () => (more.open = true)));
      more.append(...one.more.map((made) => made.element));
      put(
        one.body,
        h("p.hint", {}, summary === component ? component : `${component}: ${summary}`),
        one.fields.map((made) => made.element),
        one.fields.length === 0 && h("p.muted", {}, schema ? "No settings." : "Its settings are known only to the component; write them in the TOML."),
        more,
        !this.isReadOnly && (one.remove = h("button.button.small.danger", { type: "button", onclick: () => this.removeTable(one) }, `Remove the table of ${name}`)),
      );
    }
    if (one.remove) one.remove.hidden = !this.form.written.plugins?.[name];
    const inherited = this.form.inherited.plugins?.[name] ?? {};
    for (const made of [...one.fields, ...one.more]) made.show(at(table, made.field.path.slice(2)), at(inherited, made.field.path.slice(2)) ?? made.field.preset);
  }

  removeTable({ name, element }) {
    this.onchange([{ path: ["plugins", name], value: null }]);
    // The button is shown only while there is a table.
    element.querySelector("summary").focus();
  }

  /** The settings of a plugin's table, except `settings` and `component`. */
  tableFields(name) {
    const node = resolve(this.schema, resolve(this.schema, this.schema.properties.plugins).additionalProperties);
    return fieldsOf(this.schema, node, ["plugins", name]).filter(({ path }) => path[2] !== "component" && path[2] !== "settings");
  }

  /** A field in a plugin's table; `onfault` is called when it shows an error. */
  field(name, described, onfault) {
    const made = new Field(described, { isReadOnly: this.isReadOnly, label: described.name, onchange: (value) => this.set(name, described, value) });
    const showFaults = (faults) => {
      made.showFaults(faults);
      if (!made.fault.hidden) onfault?.();
    };
    this.fields.set(pointer(described.path), { fault: made.fault, showFaults });
    return made;
  }

  /** Writes a setting of a plugin. For a shipped plugin without a table, a table is added. */
  set(name, described, value) {
    this.onchange(({ written, inherited }) => {
      const hasTable = written.plugins?.[name]?.component ?? inherited.plugins?.[name]?.component;
      const table = hasTable || value === undefined ? [] : [{ path: ["plugins", name, "component"], value: `${SHIPPED}${name}` }];
      return [...table, ...changesOf(described, at(written, described.path), value)];
    });
  }

  /** Shows a profile as the daemon has parsed it. */
  show(form) {
    this.form = form;
    for (const [name, schema] of Object.entries(form.schemas)) this.schemas.set(`${name} ${this.info(name).component}`, schema);
    const used = new Set();
    for (const one of this.stages) {
      const stack = this.stackOf(one.stage);
      const names = stack ?? [];
      names.forEach((name) => used.add(name));
      put(one.items, names.map((name, place) => this.row(one, name, place, names)));
      if (names.length === 0) put(one.items, h("li.muted", {}, stack ? "No plugins." : UNKNOWN));
      one.reset.hidden = form.written.stacks?.[one.stage] === undefined;
      this.offer(one, names);
      one.pick.disabled = !stack;
      if (!stack) one.add.disabled = true;
    }
    if (this.focus) {
      const label = this.focus;
      this.focus = undefined;
      this.element.querySelector(`[aria-label="${CSS.escape(label)}"]`)?.focus();
    }
    for (const name of [...Object.keys(form.written.plugins ?? {}), ...Object.keys(form.inherited.plugins ?? {})]) used.add(name);
    const names = [...used].sort();
    for (const name of names) if (!this.instances.has(name)) this.instances.set(name, this.instance(name));
    for (const name of [...this.instances.keys()]) if (!used.has(name)) this.instances.delete(name);
    const shown = names.map((name) => this.instances.get(name));
    // Elements are replaced only if they differ, so that the focus is kept.
    if (shown.some((one, n) => this.list.children[n] !== one.element) || this.list.children.length !== shown.length) put(this.list, shown.map((one) => one.element));
    for (const one of shown) this.fill(one);
    const count = Object.keys(form.written.stacks ?? {}).length + Object.keys(form.written.plugins ?? {}).length;
    put(this.written, count > 0 && `${count} set here`);
  }

  /** Offers the plugins that fit a stage and are not in its stack. */
  offer(one, names) {
    const own = [...new Set([...Object.keys(this.form.written.plugins ?? {}), ...Object.keys(this.form.inherited.plugins ?? {})])];
    const stage = one.stage === "last-resort" ? "extract" : one.stage;
    const all = [...new Set([...own, ...this.catalogue.keys()])].filter((name) => {
      const stages = this.info(name).stages;
      return !names.includes(name) && (stages ? stages.includes(stage) : own.includes(name));
    });
    const before = one.pick.value;
    put(one.pick, all.sort().map((name) => h("option", { value: name }, name)));
    if (all.includes(before)) one.pick.value = before;
    one.add.disabled = all.length === 0;
  }

  /** Shows the plugins that match a search; returns whether there are any. */
  applySearch({ text }) {
    let count = 0;
    for (const one of this.stages) {
      one.element.hidden = text !== "" && !`${one.text} ${one.items.textContent}`.toLowerCase().includes(text);
      if (!one.element.hidden) count += 1;
    }
    for (const one of this.instances.values()) {
      one.element.hidden = text !== "" && !`${one.name} ${this.info(one.name).summary}`.toLowerCase().includes(text);
      if (!one.element.hidden) count += 1;
    }
    this.element.hidden = count === 0;
    if (text !== "") this.element.open = count > 0;
    return count > 0;
  }
}
