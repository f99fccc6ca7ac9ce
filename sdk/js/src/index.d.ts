// The types of what a plugin's file imports. Records are the contract's own, generated into `types/contract`, with plain
// values: variants are `"name"` or `{ name: value }`, numbers are numbers, what may be none may be left out.

/// <reference path="../types/contract/opilio-plugin-documents.d.ts" />
/// <reference path="../types/contract/opilio-plugin-types.d.ts" />
/// <reference path="../types/contract/opilio-plugin-setup.d.ts" />
/// <reference path="../types/contract/opilio-plugin-extractor.d.ts" />
/// <reference path="../types/contract/opilio-plugin-filter.d.ts" />
/// <reference path="../types/contract/opilio-plugin-digest-stripper.d.ts" />
/// <reference path="../types/contract/opilio-plugin-change-evaluator.d.ts" />
/// <reference path="../types/contract/opilio-plugin-wait-evaluator.d.ts" />
/// <reference path="../types/contract/opilio-plugin-observer.d.ts" />
/// <reference path="../types/contract/opilio-plugin-tables.d.ts" />

import type * as change from "opilio:plugin/change-evaluator@0.2.0";
import type * as documents from "opilio:plugin/documents@0.2.0";
import type * as stripper from "opilio:plugin/digest-stripper@0.2.0";
import type * as extractor from "opilio:plugin/extractor@0.2.0";
import type * as filter from "opilio:plugin/filter@0.2.0";
import type * as observer from "opilio:plugin/observer@0.2.0";
import type * as setup from "opilio:plugin/setup@0.2.0";
import type * as tables from "opilio:plugin/tables@0.2.0";
import type * as wire from "opilio:plugin/types@0.2.0";
import type * as waiting from "opilio:plugin/wait-evaluator@0.2.0";

/** A value of the contract as plugins read it. */
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

/** A record as plugins write it: these fields must be there, the others have defaults. */
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

/** What few links have. */
export interface LinkDetails {
  submission?: Written<wire.Submission, "method"> | undefined;
  dates?: DateSignal | undefined;
  attributes?: NamedValue[] | undefined;
}
/** A reference found in a document, as written. The hop is `link` unless said otherwise. */
export type Link = Omit<Written<wire.Link, "uri">, "details"> & { details?: LinkDetails | undefined };
export type Fragment = Written<wire.Fragment, "mediaType" | "content">;
/** What one document gave. */
export type Extraction = Omit<Partial<Plain<extractor.Extraction>>, "links" | "fragments"> & {
  links?: Iterable<Link>;
  fragments?: Iterable<Fragment>;
};
export type Verdict = Plain<filter.Verdict>;
/** In a stack the last ruling that is not `pass` decides. */
export type Ruling = Written<filter.Ruling, "verdict">;
export type Comparison = Partial<Plain<change.Comparison>>;
export type Wait = Written<waiting.Wait, "nextVisit">;
export type Line = Plain<observer.Line>;
export type Report = Plain<observer.ReportFile>;
/** Left out, the memory is empty from then on. */
export type Observation = { memory?: Uint8Array | number[]; lines?: Iterable<Line> };

/** The properties of a resource: what its methods answer without being asked anything. */
type Facts<R, Names extends keyof R> = {
  readonly [K in Names]: R[K] extends () => infer T ? Plain<T> : never;
};
/** Methods as the contract has them. */
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
  /** The whole content, transfer and content codings removed. */
  content(): Uint8Array;
  /** The whole content with one character for each byte: indexes are offsets of bytes. */
  latin1(): string;
}

/** The URI's standing in the crawl at this visit. */
export interface Visit
  extends Facts<
      documents.Visit,
      | "now" | "status" | "mediaType" | "state" | "size" | "lastWait" | "overdue" | "visits" | "versions" | "history"
      | "outlinks" | "inlinks" | "signals" | "neighbourhood"
    >,
    Methods<documents.Visit, "validator" | "measure" | Keeping> {
  /** What was asked for, as filters saw it at discovery. */
  readonly candidate: Candidate;
}

/** A queue that is to be ranked. */
export interface Queue
  extends Facts<documents.Queue, "name" | "queued" | "succeeded" | "failed" | "bytes" | "best" | "base" | "now"> {}

/** A URI that may become part of the crawl, or has. What is not read of it costs nothing. */
export type Candidate = Readonly<Plain<wire.Candidate>> & {
  /** It has a row in this table: by its SURT form in a table of SURT prefixes, by its URI in others. */
  isInTable(name: string): boolean;
};

/** Candidates that are asked about together, in the order found. */
export interface Candidates extends Iterable<Candidate> {
  readonly length: number;
  /** Which of them have a row in a table. */
  inTable(name: string): boolean[];
}

/** What may be said of a setting besides its type, default and description. */
export interface About {
  /** May differ for parts of a crawl. */
  overridable?: boolean;
  /** For those who know why. */
  expert?: boolean;
  /** How the operator is told of a value that does not fit. */
  level?: "info" | "warning" | "error";
  /** It names a table, which the profile must have. */
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

/** A text. Without a default the profile must give it. */
export const text: Make<string>;
/** Yes or no. */
export const flag: Make<boolean>;
/** A whole number. */
export const integer: Make<number>;
/** Any number. */
export const number: Make<number>;
/** Several of one sort. */
export function list<T>(items: Setting<T>, fallback?: T[], description?: string, about?: About): Setting<T[]>;
/** Values of one sort by name. */
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

/** Settings by name, as `configure` gets them. */
export type Values<S> = { [K in keyof S]: S[K] extends Setting<infer T> ? T : never };

/** Thrown by `configure`: what is wrong with a setting. */
export class SettingsFault extends Error {
  /** @param pointer JSON Pointer such as `/patterns/0` @param problem a lower-case fragment that says what would be right */
  constructor(pointer: string, problem: string);
  /** Several at once. */
  static all(faults: SettingsFault[]): SettingsFault;
}

type None = undefined | void | null;

/**
 * A plugin. Its kinds are those of the functions that it has, each of which gets as its last argument what `configure`
 * returned, or else the settings.
 */
export interface Definition<S, State> {
  /** Lower-case words joined by hyphens. */
  name: string;
  /** Semantic version; that of the package unless given. */
  version?: string;
  /** One sentence for the operator. */
  summary: string;
  /** What it wants to be called for; anything, unless given. */
  handles?: { mediaTypes?: string[]; uris?: string[] };
  settings?: S;
  /** Values that it keeps with URIs and sites. */
  keeps?: Keep[];
  attributes?: NamedValue[];
  /** Called once, before any other; throws `SettingsFault`. What it returns must not change in calls: nothing does. */
  configure?(settings: Values<S>): State;

  /** Extractor: links alone, or whatever else the document gave. */
  extract?(document: Document, state: State): Iterable<Link> | Extraction | None;
  /** Filter: rules on one candidate, and on responses unless there is `judgeDocument`. Nothing is no opinion. */
  judgeCandidate?(candidate: Candidate, stage: Stage, state: State): Ruling | None;
  /** Filter: rules on all outlinks of a page at once, in their order. */
  judgeCandidates?(candidates: Candidates, stage: Stage, state: State): Iterable<Ruling | None>;
  /** Filter: rules on a response. */
  judgeDocument?(document: Document, visit: Visit, stage: Stage, state: State): Ruling | None;
  /** Digest stripper: spans of bytes that do not count; throws `StripProblem`. */
  strip?(document: Document, state: State): Iterable<Span>;
  /** Change evaluator: `last` is the fingerprint of the last archived version. */
  compare?(document: Document, visit: Visit, last: Uint8Array | undefined, state: State): Comparison | None;
  /** Wait evaluator: milliseconds, or a wait; nothing leaves the answer to the next one. */
  evaluate?(visit: Visit, state: State): Duration | Wait | None;
  /** Precedence: 1 is the highest, 255 the lowest; nothing leaves the answer to the next plugin. */
  rankCandidate?(candidate: Candidate, document: Document | undefined, state: State): number | None;
  /** Precedence: all outlinks of a page at once, in their order. */
  rankCandidates?(candidates: Candidates, document: Document | undefined, state: State): Iterable<number | None>;
  rankQueue?(queue: Queue, state: State): number | None;
  /** Observer: `memory` is that of the last observation. Nothing leaves it as it was. */
  observe?(memory: Uint8Array, events: Finished[], state: State): Observation | None;
  /** Observer: what has been seen so far. */
  report?(memory: Uint8Array, now: Instant, state: State): Iterable<Report>;
}

/** A plugin. A module's default export is one, or a list of them. */
export interface Plugin {
  readonly name: string;
}
export function plugin<S extends Record<string, Setting<any>> = {}, State = Values<S>>(
  definition: Definition<S, State>,
): Plugin & Definition<S, State>;

/** Yes, and why. */
export function accept(reason?: string): Ruling;
/** No, and why. */
export function reject(reason?: string): Ruling;
/** No opinion. */
export function pass(): Ruling;
/** At mid-fetch alone: the headers say that nothing has changed. */
export function unchanged(reason?: string): Ruling;
/** At post-fetch alone: no success; fetch it again after so many milliseconds. */
export function retry(wait: Duration, reason?: string): Ruling;
/** Thrown by `strip`. */
export class StripProblem extends Error {
  constructor(problem: Plain<stripper.StripProblem>);
}

/** The UTF-8 of a text. */
export function encode(text: string): Uint8Array;
/** The text of UTF-8. */
export function decode(bytes: Uint8Array): string;
/** From an index of the string to the offset in its UTF-8, for fragments that stand in a document's text. */
export function bytesAt(text: string): (index: number) => number;

/** Lines for the operator, kept with the URI that is being worked on. */
export function debug(message: unknown): void;
export function info(message: unknown): void;
export function warn(message: unknown): void;
export function error(message: unknown): void;
/** Adds to the plugin's counter of that name (lower-case words joined by hyphens). */
export function count(name: string, n?: number): void;
/** A list that the host holds; empty where the profile names no such table. */
export function table(name: string): { readonly kind: TableKind | undefined; find(key: string): Row | undefined };
