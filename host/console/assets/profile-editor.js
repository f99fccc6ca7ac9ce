// A profile as a form and as TOML, which are kept equal. For changes in the form the daemon edits the text, so that comments and
// layout are kept. Changes in the text are read into the form.

import { get, send } from "./api.js";
import { h, put } from "./dom.js";
import { Editor } from "./editor.js";
import { failed } from "./notice.js";
import { SettingsForm } from "./settings-form.js";

const PAUSE = 400;

/** The errors of a profile's text. `profile` is the name of the saved profile of which it is a new version, if any. */
export async function checkProfile(toml, profile) {
  const answer = await send("POST", "profiles/check", { toml, profile });
  return answer.faults;
}

// Both stay the same while the daemon runs. After a failure they are asked for again.
let knownSchema;
let knownPlugins;

/** The schema of profiles. */
export function readSchema() {
  knownSchema ??= get("profile-schema");
  knownSchema.catch(() => (knownSchema = undefined));
  return knownSchema;
}

/** The schema of profiles, and a promise of the shipped plugins, which the daemon may have to compile first. */
export async function readKnown() {
  knownPlugins ??= get("plugin-catalogue").then(({ plugins }) => plugins);
  knownPlugins.catch(() => (knownPlugins = undefined));
  const plugins = knownPlugins;
  return { schema: await readSchema(), plugins };
}

/** Form and text of a profile. `profile` is the name of the saved profile, if there is one. */
export class ProfileEditor {
  constructor({ value, profile, isReadOnly = false, onchange, onshow, onfaults }) {
    this.profile = profile;
    this.isReadOnly = isReadOnly;
    this.onshow = onshow;
    this.onfaults = onfaults;
    this.pending = [];
    this.faults = [];
    this.editor = new Editor({
      label: "Profile (TOML)",
      value,
      rows: 34,
      isReadOnly,
      check: (toml) => this.check(toml),
      onchange: (text, isTyped) => {
        onchange?.(text);
        if (isTyped) this.refreshLater();
      },
    });
    this.place = h("div", {}, h("p.muted", { role: "status" }, "Loading …"));
    this.element = h(
      "div.two-ways",
      {},
      h("section", { "aria-label": "Settings as a form" }, this.place),
      h("section.as-text", { "aria-label": "Settings as TOML" }, h("h2", {}, "TOML"), !isReadOnly && h("p.hint", {}, "Ctrl+Space suggests settings."), this.editor.element),
    );
    this.begin();
  }

  get value() {
    return this.editor.value;
  }

  set value(text) {
    this.editor.value = text;
    this.apply([]);
  }

  async begin() {
    try {
      const { schema, plugins } = await readKnown();
      this.editor.schema = schema;
      this.form = new SettingsForm({ schema, plugins, isReadOnly: this.isReadOnly, onchange: (changes) => this.apply(changes) });
      await this.apply([]);
      put(this.place, this.form.element);
      this.form.showFaults(this.faults);
    } catch (problem) {
      put(this.place, h("p.form-error", {}, problem.message));
    }
  }

  /** Has the text checked. A read-only profile is not checked. */
  async check(toml) {
    if (this.isReadOnly) return [];
    const faults = await checkProfile(toml, this.profile);
    // The text has changed meanwhile and is checked again; these errors may be corrected in it.
    if (toml !== this.value) return faults;
    this.faults = faults;
    this.form?.showFaults(faults);
    this.onfaults?.(faults);
    return faults;
  }

  refreshLater() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.apply([]), PAUSE);
  }

  /**
   * Writes changes of the form into the text, one after the other, and then shows the new text in the form. A change that depends
   * on other settings is a function; it gets the form as it is after all earlier changes.
   */
  apply(change) {
    this.pending.push(change);
    if (!this.isBusy && this.form) this.work = this.carryOut();
    return this.work;
  }

  /** Resolves when the text has every change of the form. */
  async settled() {
    while (this.isBusy) await this.work;
  }

  async carryOut() {
    this.isBusy = true;
    try {
      while (this.pending.length > 0) {
        const before = this.editor.value;
        const first = this.pending[0];
        const changes = typeof first !== "function" ? first : this.state?.toml === before ? first(this.state) : [];
        const answer = await this.fill(before, changes);
        // The text was edited meanwhile: try again with the new text.
        if (this.editor.value !== before) continue;
        // Functions that waited for the form can run now.
        if (typeof first !== "function" || this.state?.toml === before) this.pending.shift();
        this.state = answer;
        if (answer.toml !== before) this.editor.replace(answer.toml);
        if (this.pending.length > 0) continue;
        this.form.show(answer);
        this.onshow?.(answer);
      }
    } catch (problem) {
      failed(problem, "The setting was not written");
      this.pending = [];
    } finally {
      this.isBusy = false;
    }
  }

  fill(toml, changes) {
    return send("POST", "profiles/form", { toml, changes, profile: this.profile });
  }
}
