// The types of `@opilio/plugin/testing`. Facts have the contract's names in camelCase. All are optional.

import type {
  Candidate, Candidates, Definition, Document, Header, KeptValue, NamedValue, Page, Plugin, Queue, Setting, Visit,
} from "./index.js";

/** Kept values of a plugin, by name. */
export interface Kept {
  uri?: Record<string, KeptValue>;
  site?: Record<string, KeptValue>;
}
export interface DocumentFacts {
  uri?: string;
  base?: string;
  status?: number;
  headers?: Header[];
  mediaType?: string;
  charset?: string;
  fragment?: string;
  text?: string;
  bytes?: Uint8Array | number[];
  notes?: NamedValue[];
  kept?: Kept;
}
type CandidateFacts = Partial<Omit<Candidate, "isInTable">>;
export type VisitFacts = Partial<
  Omit<Visit, "candidate" | "validator" | "measure" | "attribute" | "setAttribute" | "siteValue" | "setSiteValue" | "note">
> & {
  candidate?: CandidateFacts;
  validators?: NamedValue[];
  measures?: Record<string, number>;
  notes?: NamedValue[];
  kept?: Kept;
};

/** Makes a document. Its `handle` has the plugin's `annotations`, `notes` and `kept` values. */
export function document(
  facts?: DocumentFacts,
): Document & { handle: { annotations: string[]; notes: Map<string, string>; kept: Required<Kept> } };
export function visit(facts?: VisitFacts): Visit & { handle: { kept: Required<Kept> } };
export function queue(facts?: Partial<Queue>): Queue;
/** `counts` has numbers of elements by selector, for `count`. */
export type PageFacts = Partial<Omit<Page, "count">> & { counts?: Record<string, number> };
export function page(facts?: PageFacts): Page;
export function candidates(list: CandidateFacts[]): Candidates;

/** Returns the last argument of the plugin's functions for these settings. Exceptions of `configure` pass through. */
export function configured<S extends Record<string, Setting<any>>, State>(
  plugin: Definition<S, State>,
  settings?: Record<string, unknown>,
): State;

/** Installs a test host for direct calls, with these tables. It collects log lines and counters. */
export function host(tables?: Record<string, { kind: string; rows: { key: string; value?: string }[] }>): {
  logged: { level: string; message: string }[];
  counted: Record<string, number>;
};

/** Runs the cases of a folder and returns their number. Throws an error that lists all failures. */
export function checkCases(plugins: Plugin | Plugin[], folder: string): number;
