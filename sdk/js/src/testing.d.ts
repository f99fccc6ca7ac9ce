// The types of `@opilio/plugin/testing`. Facts have the contract's names in camelCase, and each may be left out.

import type {
  Candidate, Candidates, Definition, Document, Header, KeptValue, NamedValue, Plugin, Queue, Setting, Visit,
} from "./index.js";

/** What a plugin has kept, by name. */
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

/** `handle` tells what the plugin left: `annotations`, `notes` and what is `kept`. */
export function document(
  facts?: DocumentFacts,
): Document & { handle: { annotations: string[]; notes: Map<string, string>; kept: Required<Kept> } };
export function visit(facts?: VisitFacts): Visit & { handle: { kept: Required<Kept> } };
export function queue(facts?: Partial<Queue>): Queue;
export function candidates(list: CandidateFacts[]): Candidates;

/** What the plugin gets as its last argument, for these settings. Throws what `configure` throws. */
export function configured<S extends Record<string, Setting<any>>, State>(
  plugin: Definition<S, State>,
  settings?: Record<string, unknown>,
): State;

/** Puts a host in place for direct calls: what plugins log and count there, and the tables they find. */
export function host(tables?: Record<string, { kind: string; rows: { key: string; value?: string }[] }>): {
  logged: { level: string; message: string }[];
  counted: Record<string, number>;
};

/** Runs every case of a folder; throws with all that differ, and says how many there are. */
export function checkCases(plugins: Plugin | Plugin[], folder: string): number;
