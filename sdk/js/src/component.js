// The exports of a component: they call the configured plugin and convert its answers. The host calls them through the
// bindings, and native tests call them with the handles of double.js. The module that the build writes exports them.

import { StripProblem } from "./answers.js";
import * as contract from "./contract.js";
import { connect, error } from "./host.js";
import { describe } from "./plugin.js";
import { SettingsFault, withDefaults } from "./settings.js";
import { Candidates, Document, Page, Queue, Visit } from "./views.js";
import { plain, use64BitNumbers } from "./wire.js";

/**
 * Returns the exports of a component of these plugins.
 *
 * @param exported the default export of the plugin's module
 * @param host the contract's imports: `log`, `counters`, `tables`, and `u64`, which makes the engine's 64-bit numbers
 * @param package the package's `version`, and `place`, which maps a stack to the author's lines
 */
export function component(exported, host, { version = "0.0.0", place = (stack) => stack } = {}) {
  const plugins = [exported].flat().map((plugin) => ({ version, ...plugin }));
  connect(host);
  use64BitNumbers(host.u64 ?? ((number) => number));
  let configured;

  /** Calls the plugin. An exception is logged, because the engine's message has less detail, and then ends the call. */
  const callPlugin = (name, work) => {
    if (!configured) throw new Error("called before `configure`");
    try {
      return work(configured.plugin, configured.state);
    } catch (problem) {
      error(`${configured.plugin.name} ${configured.plugin.version}, ${name}: ${describeError(problem, place)}`);
      throw problem;
    }
  };
  const each = (handle, answer) => Array.from(new Candidates(handle), answer);
  const document = (handle) => new Document(handle);

  return {
    setup: {
      describe: () => contract.descriptions(plugins.map(describe), "description"),
      configure(name, settings) {
        const plugin = plugins.find((plugin) => plugin.name === name);
        if (!plugin) {
          const names = plugins.map((plugin) => plugin.name).join(", ");
          throw faults(new SettingsFault("", `the component has no plugin \`${name}\`; it has: ${names}`));
        }
        try {
          const values = withDefaults(plugin.settings ?? {}, JSON.parse(settings));
          configured = { plugin, state: plugin.configure ? plugin.configure(values) : values };
        } catch (problem) {
          if (problem instanceof SettingsFault) throw faults(problem);
          error(`${plugin.name} ${plugin.version}, configure: ${describeError(problem, place)}`);
          throw problem;
        }
      },
    },
    extractor: {
      extract: (handles) =>
        callPlugin("extract", (plugin, state) =>
          handles.map((handle, index) => {
            const answer = plugin.extract(document(handle), state);
            return contract.extraction(answer, handles.length > 1 ? `extraction ${index}` : "");
          }),
        ),
    },
    filter: {
      judgeCandidates: (stage, handle) =>
        callPlugin("judgeCandidates", (plugin, state) => {
          const answers = plugin.judgeCandidates
            ? plugin.judgeCandidates(new Candidates(handle), plain(stage), state)
            : each(handle, (candidate) => plugin.judgeCandidate?.(candidate, plain(stage), state));
          return Array.from(answers, (answer, index) => contract.ruling(answer, `ruling ${index}`));
        }),
      // A filter without judgeDocument judges a response by its candidate.
      judgeDocument: (stage, handle, visit) =>
        callPlugin("judgeDocument", (plugin, state) => {
          const view = new Visit(visit);
          const answer = plugin.judgeDocument
            ? plugin.judgeDocument(document(handle), view, plain(stage), state)
            : plugin.judgeCandidate?.(view.candidate, plain(stage), state);
          return contract.ruling(answer, "ruling");
        }),
    },
    digestStripper: {
      strip(handle) {
        let spans;
        callPlugin("strip", (plugin, state) => {
          try {
            spans = { ok: contract.spans(plugin.strip(document(handle), state), "spans") };
          } catch (problem) {
            if (!(problem instanceof StripProblem)) throw problem;
            spans = { error: contract.stripProblem(problem.problem, "problem") };
          }
        });
        if (spans.error) throw spans.error;
        return spans.ok;
      },
    },
    changeEvaluator: {
      compare: (handle, visit, last) =>
        callPlugin("compare", (plugin, state) => {
          const answer = plugin.compare(document(handle), new Visit(visit), last ?? undefined, state);
          return contract.comparison(answer, "comparison");
        }),
    },
    waitEvaluator: {
      evaluate: (visit) =>
        callPlugin("evaluate", (plugin, state) => contract.wait(plugin.evaluate(new Visit(visit), state), "wait")),
    },
    precedence: {
      rankCandidates: (handle, page) =>
        callPlugin("rankCandidates", (plugin, state) => {
          const view = page ? document(page) : undefined;
          const answers = plugin.rankCandidates
            ? plugin.rankCandidates(new Candidates(handle), view, state)
            : each(handle, (candidate) => plugin.rankCandidate?.(candidate, view, state));
          return Array.from(answers, (answer, index) => contract.rank(answer, `rank ${index}`));
        }),
      rankQueue: (queue) =>
        callPlugin("rankQueue", (plugin, state) => contract.rank(plugin.rankQueue?.(new Queue(queue), state), "rank")),
    },
    observer: {
      observe: (memory, events) =>
        callPlugin("observe", (plugin, state) => {
          // A plugin without `observe` keeps its memory.
          const answer = plugin.observe ? plugin.observe(memory, plain(events), state) : { memory };
          return contract.observation(answer ?? { memory }, "observation");
        }),
      report: (memory, now) =>
        callPlugin("report", (plugin, state) => contract.reports(plugin.report?.(memory, Number(now), state) ?? [], "reports")),
    },
    pageBehavior: {
      step: (page, visit, memory) =>
        callPlugin("step", (plugin, state) =>
          contract.stepPlan(plugin.step(new Page(page), new Visit(visit), memory, state), "")),
    },
  };
}

const faults = (fault) => contract.settingsFaults(fault.faults, "faults");

/** Describes an exception, with its stack in the author's files. */
function describeError(problem, place) {
  if (!(problem instanceof Error)) return `thrown: ${String(problem)}`;
  const message = `${problem.name}: ${problem.message}`;
  const stack = String(problem.stack ?? "");
  // Some engines begin the stack with the message.
  const frames = place(stack.startsWith(message) ? stack.slice(message.length + 1) : stack);
  return `${message}\n${frames}`.trimEnd();
}
