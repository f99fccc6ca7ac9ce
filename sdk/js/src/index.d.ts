// The types that a plugin imports. Records are those of the contract, generated into `types/contract`, with plain values:
// variants are `"name"` or `{ name: value }`, 64-bit numbers are numbers, and optional fields may be left out.

/// <reference path="../types/contract/opilio-plugin-documents.d.ts" />
/// <reference path="../types/contract/opilio-plugin-types.d.ts" />
/// <reference path="../types/contract/opilio-plugin-setup.d.ts" />
/// <reference path="../types/contract/opilio-plugin-extractor.d.ts" />
/// <reference path="../types/contract/opilio-plugin-filter.d.ts" />
/// <reference path="../types/contract/opilio-plugin-digest-stripper.d.ts" />
/// <reference path="../types/contract/opilio-plugin-change-evaluator.d.ts" />
/// <reference path="../types/contract/opilio-plugin-wait-evaluator.d.ts" />
/// <reference path="../types/contract/opilio-plugin-observer.d.ts" />
/// <reference path="../types/contract/opilio-plugin-page-behavior.d.ts" />
/// <reference path="../types/contract/opilio-plugin-tables.d.ts" />

import type * as change from "opilio:plugin/change-evaluator@0.3.0";
import type * as documents from "opilio:plugin/documents@0.3.0";
import type * as stripper from "opilio:plugin/digest-stripper@0.3.0";
import type * as extractor from "opilio:plugin/extractor@0.3.0";
import type * as filter from "opilio:plugin/filter@0.3.0";
import type * as observer from "opilio:plugin/observer@0.3.0";
import type * as setup from "opilio:plugin/setup@0.3.0";
import type * as tables from "opilio:plugin/tables@0.3.0";
import type * as behavior from "opilio:plugin/page-behavior@0.3.0";
import type * as wire from "opilio:plugin/types@0.3.0";
import type * as waiting from "opilio:plugin/wait-evaluator@0.3.0";

/** A value of the contract in the form that plugins read. */
export type Plain<T> = T extends bigint
  ? number
  : T extends Uint8Array
    ? Uint8Array
    : T extends { tag: "other"; val: infer V }
      ? V & {}
      : T extends { tag: infer Name extends string; val: infer V }
        ? { [K in Name]: Plain<V> }
        : T extends { tag: infer Name }
          ? Name
          : T extends (infer Item)[]
            ? Plain<Item>[]
            : T extends object
              ? { [K in keyof T]: Plain<T[K]> }
              : T;

/** A record in the form that plugins write. These fields are required, the others have defaults. */
type Written<T, Required extends keyof T> = Pick<Plain<T>, Required & keyof Plain<T>> & Partial<Plain<T>>;

export type Instant = number;
export type Duration = number;
export type NamedValue = Plain<wire.NamedValue>;
export type Header = Plain<wire.Header>;
export type Span = Plain<wire.Span>;
export type Hop = Plain<wire.Hop>;
export type ContentState = Plain<wire.ContentState>;
export type PastVisit = Plain<wire.PastVisit>;
export type KeptValue = Plain<wire.KeptValue>;
export type Signal = Plain<wire.Signal>;
export type Neighbourhood = Plain<wire.Neighbourhood>;
export type DateSignal = Plain<wire.DateSignal>;
export type Stage = Plain<filter.Stage>;
export type Finished = Plain<observer.Finished>;
export type Keep = Plain<setup.Keep>;
export type Row = Plain<tables.Row>;
export type TableKind = Plain<tables.Kind>;

/** Details that few links have. */
export interface LinkDetails {
  submission?: Written<wire.Submission, "method"> | undefined;
  dates?: DateSignal | undefined;
  attributes?: NamedValue[] | undefined;
}
/** A reference in a document, as written. The default of the hop is `link`. */
export type Link = Omit<Written<wire.Link, "uri">, "details"> & { details?: LinkDetails | undefined };
export type Fragment = Written<wire.Fragment, "mediaType" | "content">;
/** The results for one document. */
export type Extraction = Omit<Partial<Plain<extractor.Extraction>>, "links" | "fragments"> & {
  links?: Iterable<Link>;
  fragments?: Iterable<Fragment>;
};
export type Verdict = Plain<filter.Verdict>;
/** A verdict with its reason. In a stack the last verdict other than `pass` decides. */
export type Ruling = Written<filter.Ruling, "verdict">;
export type Comparison = Partial<Plain<change.Comparison>>;
export type Wait = Written<waiting.Wait, "nextVisit">;
export type Line = Plain<observer.Line>;
export type Report = Plain<observer.ReportFile>;
/** The answer of an observer. Without `memory`, the next call gets an empty one. */
export type Observation = { memory?: Uint8Array | number[]; lines?: Iterable<Line> };

/** The result of an action on a page. */
export type ActionResult = Plain<documents.ActionResult>;
/** A position to scroll the window to. */
export type ScrollTarget = Plain<Exclude<behavior.ScrollTarget, { tag: "other" }>>;
/** An action on a page. The functions `scroll`, `click` and so on make actions. */
export type Action =
  | { scroll: ScrollTarget }
  | { click: Written<behavior.Click, "selector"> }
  | Plain<Exclude<behavior.Action, { tag: "other" } | { tag: "scroll" } | { tag: "click" }>>;
/** The answer of a step. Without `memory`, the next step gets an empty one. Without `finished`, there is a next step. */
export interface StepPlan {
  actions?: Iterable<Action>;
  /** CSS selectors for `page.count` at the next step. */
  count?: Iterable<string>;
  memory?: Uint8Array | number[];
  finished?: boolean;
}

/** The properties of a resource: its methods without arguments. */
type Facts<R, Names extends keyof R> = {
  readonly [K in Names]: R[K] extends () => infer T ? Plain<T> : never;
};
/** Methods of a resource. */
type Methods<R, Names extends keyof R> = {
  [K in Names]: R[K] extends (...args: infer A) => infer T ? (...args: Extract<Plain<A>, any[]>) => Plain<T> : never;
};
type Keeping = "attribute" | "setAttribute" | "siteValue" | "setSiteValue" | "note";

/** A response, or a fragment of one. */
export interface Document
  extends Facts<
      documents.Document,
      "uri" | "base" | "status" | "headers" | "mediaType" | "charset" | "fragment" | "length"
    >,
    Methods<documents.Document, "header" | "read" | "text" | "setNote" | "annotate" | Keeping> {
  /** Returns the whole content, without transfer and content codings. */
  content(): Uint8Array;
  /** Returns the whole content with one character for each byte, so that indexes are byte offsets. */
  latin1(): string;
}

/** The facts about a URI at this visit. */
export interface Visit
  extends Facts<
      documents.Visit,
      | "now" | "status" | "mediaType" | "state" | "size" | "lastWait" | "overdue" | "visits" | "versions" | "history"
      | "outlinks" | "inlinks" | "signals" | "neighbourhood"
    >,
    Methods<documents.Visit, "validator" | "measure" | Keeping> {
  /** The candidate as filters saw it at discovery. */
  readonly candidate: Candidate;
}

/** A queue to rank. */
export interface Queue
  extends Facts<documents.Queue, "name" | "queued" | "succeeded" | "failed" | "bytes" | "best" | "base" | "now"> {}

/** A page in a browser, as it was just before the call. Lengths are CSS pixels, times are milliseconds. */
export interface Page
  extends Facts<
      documents.Page,
      | "uri" | "title" | "elements" | "textLength" | "scrollHeight" | "scrollTop" | "windowHeight" | "results"
      | "requestsInFlight" | "timeUsed" | "timeLeft" | "step" | "stepsLeft"
    >,
    Methods<documents.Page, "count"> {}

/** A URI that the crawl has found. Values are copied when they are read. */
export type Candidate = Readonly<Plain<wire.Candidate>> & {
  /** Looks the candidate up in a table: its SURT form in a table of SURT prefixes, its URI in others. */
  isInTable(name: string): boolean;
};

/** The candidates of a call, in the order found. */
export interface Candidates extends Iterable<Candidate> {
  readonly length: number;
  /** Returns true for each candidate that has a row in the table. */
  inTable(name: string): boolean[];
}

/** Further properties of a setting. */
export interface About {
  /** Overrides may change the setting. */
  overridable?: boolean;
  /** Few operators need the setting. */
  expert?: boolean;
  /** The effect of a value outside the schema. */
  level?: "info" | "warning" | "error";
  /** The value is the name of a table, which the profile must have. */
  table?: boolean;
  /** Any keyword of JSON Schema, such as `minimum` or `pattern`. */
  [keyword: string]: unknown;
}
/** A setting whose values are of this type. */
export interface Setting<T> {
  readonly type: string;
  readonly default?: T;
}
type Make<T> = (fallback?: T, description?: string, about?: About) => Setting<T>;

/** A text. Without a default it is required in the profile. */
export const text: Make<string>;
/** True or false. */
export const flag: Make<boolean>;
/** A whole number. */
export const integer: Make<number>;
/** Any number. */
export const number: Make<number>;
/** A list of values of one type. */
export function list<T>(items: Setting<T>, fallback?: T[], description?: string, about?: About): Setting<T[]>;
/** Values of one type by name. */
export function map<T>(
  values: Setting<T>,
  fallback?: Record<string, T>,
  description?: string,
  about?: About,
): Setting<Record<string, T>>;
/** One of these texts. */
export function choice<const T extends string>(
  texts: readonly T[],
  fallback?: NoInfer<T>,
  description?: string,
  about?: About,
): Setting<T>;

/** Values of settings by name. */
export type Values<S> = { [K in keyof S]: S[K] extends Setting<infer T> ? T : never };

/** An error in a setting, thrown by `configure`. */
export class SettingsFault extends Error {
  /** @param pointer JSON Pointer such as `/patterns/0` @param problem the error and the remedy: a lower-case fragment */
  constructor(pointer: string, problem: string);
  /** Joins several errors into one. */
  static all(faults: SettingsFault[]): SettingsFault;
}

/** A missing value. */
type None = undefined | void | null;

/**
 * A plugin. Its functions determine its kinds. The last argument of each is the result of `configure`. Without `configure`, it
 * is the settings.
 */
export interface Definition<S, State> {
  /** Lower-case words joined by hyphens. */
  name: string;
  /** Semantic version. Default: the version of the package. */
  version?: string;
  /** One sentence for operators. */
  summary: string;
  /** The documents that the plugin is called for. Default: all. */
  handles?: { mediaTypes?: string[]; uris?: string[] };
  settings?: S;
  /** Values that the plugin keeps with URIs and sites. */
  keeps?: Keep[];
  attributes?: NamedValue[];
  /** Called before all other functions, perhaps more than once. Throws `SettingsFault`. Calls do not change its result. */
  configure?(settings: Values<S>): State;

  /** Extractor: returns links, or links with further results. */
  extract?(document: Document, state: State): Iterable<Link> | Extraction | None;
  /** Filter: judges one candidate, and responses if there is no `judgeDocument`. A missing value means `pass`. */
  judgeCandidate?(candidate: Candidate, stage: Stage, state: State): Ruling | None;
  /** Filter: judges all outlinks of a page, in their order. */
  judgeCandidates?(candidates: Candidates, stage: Stage, state: State): Iterable<Ruling | None>;
  /** Filter: judges a response. */
  judgeDocument?(document: Document, visit: Visit, stage: Stage, state: State): Ruling | None;
  /** Digest stripper: returns spans of bytes that do not count. Throws `StripProblem`. */
  strip?(document: Document, state: State): Iterable<Span>;
  /** Change evaluator: `last` is the fingerprint of the last archived version. */
  compare?(document: Document, visit: Visit, last: Uint8Array | undefined, state: State): Comparison | None;
  /** Wait evaluator: returns milliseconds, or a wait. A missing value leaves the answer to the next evaluator. */
  evaluate?(visit: Visit, state: State): Duration | Wait | None;
  /** Precedence: returns 1, the highest, to 255. A missing value leaves the answer to the next plugin. */
  rankCandidate?(candidate: Candidate, document: Document | undefined, state: State): number | None;
  /** Precedence: ranks all outlinks of a page, in their order. */
  rankCandidates?(candidates: Candidates, document: Document | undefined, state: State): Iterable<number | None>;
  rankQueue?(queue: Queue, state: State): number | None;
  /** Observer: `memory` is that of the last observation. A missing value does not change it. */
  observe?(memory: Uint8Array, events: Finished[], state: State): Observation | None;
  /** Observer: returns reports on the results so far. */
  report?(memory: Uint8Array, now: Instant, state: State): Iterable<Report>;
  /**
   * Page behaviour: plans the next actions on a page. A list of actions is the last step. A missing value is a last step
   * without actions. `memory` is that of the last step.
   */
  step?(page: Page, visit: Visit, memory: Uint8Array, state: State): Iterable<Action> | StepPlan | None;
}

/** A plugin. The default export of a module is one plugin or a list. */
export interface Plugin {
  readonly name: string;
}
export function plugin<S extends Record<string, Setting<any>> = {}, State = Values<S>>(
  definition: Definition<S, State>,
): Plugin & Definition<S, State>;

/** Makes a ruling that accepts. */
export function accept(reason?: string): Ruling;
/** Makes a ruling that rejects. */
export function reject(reason?: string): Ruling;
/** Makes a ruling that leaves the decision to other filters. */
export function pass(): Ruling;
/** Makes a ruling for stage mid-fetch: the headers show that nothing has changed. */
export function unchanged(reason?: string): Ruling;
/** Makes a ruling for stage post-fetch: the URI is fetched again after `wait` milliseconds. */
export function retry(wait: Duration, reason?: string): Ruling;
/** The reason why a document cannot be stripped, thrown by `strip`. */
export class StripProblem extends Error {
  constructor(problem: Plain<stripper.StripProblem>);
}

/** Scrolls the window. Default: to the end of the page. */
export function scroll(target?: ScrollTarget): Action;
/** Clicks visible elements that match a CSS selector: one, unless `atMost` is larger. */
export function click(selector: string, options?: Partial<Omit<Plain<behavior.Click>, "selector">>): Action;
/** Waits until an element matches a CSS selector, for at most `atMost` milliseconds. Default: 5000. */
export function waitForSelector(selector: string, atMost?: Duration): Action;
/** Waits until the page has no requests in flight, for at most `atMost` milliseconds. Default: 5000. */
export function waitForNetwork(atMost?: Duration): Action;
/** Waits for `time` milliseconds. */
export function pause(time: Duration): Action;
/** Runs the body of an async function in the page. The result is `value` with the returned value as JSON. */
export function evaluate(script: string): Action;
/** Takes a screenshot of the window. */
export function screenshot(): Action;

/** Returns the UTF-8 of a text. */
export function encode(text: string): Uint8Array;
/** Decodes UTF-8. Throws an error if it is invalid. */
export function decode(bytes: Uint8Array): string;
/** Returns a function from an index of the string to the offset in its UTF-8, for fragments in a document's text. */
export function bytesAt(text: string): (index: number) => number;

/** Writes a log line. The host logs it with the URI of the call. */
export function debug(message: unknown): void;
export function info(message: unknown): void;
export function warn(message: unknown): void;
export function error(message: unknown): void;
/** Adds to the plugin's counter of this name (lower-case words joined by hyphens). */
export function count(name: string, n?: number): void;
/** Returns a table of the host. If the profile has no table of this name, look-ups find nothing. */
export function table(name: string): { readonly kind: TableKind | undefined; find(key: string): Row | undefined };
