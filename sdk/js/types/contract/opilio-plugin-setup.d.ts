/// <reference path="./opilio-plugin-types.d.ts" />
declare module 'opilio:plugin/setup@0.2.0' {
  /**
   * The plugins of this component. Called at load, before `configure`; must not depend on anything.
   */
  export function describe(): Array<Description>;
  /**
   * Becomes the plugin `name` with these settings (a JSON object, defaults filled in). Called once; the host keeps
   * the memory as it is then and starts every later call from it.
   */
  export function configure(name: string, settings: string): void;
  export type NamedValue = import('opilio:plugin/types@0.2.0').NamedValue;
  /**
   * What a plugin can do: the interfaces of this package that it exports.
   */
  export type Kind = KindExtractor | KindFilter | KindDigestStripper | KindChangeEvaluator | KindWaitEvaluator | KindPrecedence | KindObserver | KindOther;
  export interface KindExtractor {
    tag: 'extractor',
  }
  export interface KindFilter {
    tag: 'filter',
  }
  export interface KindDigestStripper {
    tag: 'digest-stripper',
  }
  export interface KindChangeEvaluator {
    tag: 'change-evaluator',
  }
  export interface KindWaitEvaluator {
    tag: 'wait-evaluator',
  }
  export interface KindPrecedence {
    tag: 'precedence',
  }
  export interface KindObserver {
    tag: 'observer',
  }
  export interface KindOther {
    tag: 'other',
    val: string,
  }
  /**
   * What a plugin wants to be called for. The host does not call it for anything else.
   */
  export interface Handles {
    /**
     * Media types such as `text/html`, `text/*`, `*\/*`, `*+json`, and of fragments. Empty: any.
     */
    mediaTypes: Array<string>,
    /**
     * Regular expressions (RE2 syntax), one of which the URI must match somewhere. Empty: any.
     */
    uris: Array<string>,
  }
  /**
   * Where a plugin keeps a value.
   */
  export type Keeper = KeeperUri | KeeperSite | KeeperOther;
  /**
   * With the URI, from visit to visit.
   */
  export interface KeeperUri {
    tag: 'uri',
  }
  /**
   * With the site: a host and port.
   */
  export interface KeeperSite {
    tag: 'site',
  }
  export interface KeeperOther {
    tag: 'other',
    val: string,
  }
  /**
   * A value that a plugin keeps. Only declared ones are kept.
   */
  export interface Keep {
    /**
     * Lower-case words joined by hyphens.
     */
    name: string,
    keeper: Keeper,
    /**
     * Version of the value's form; it comes back with the value, so that a new version of the plugin can tell.
     */
    version: number,
  }
  /**
   * One plugin of a component. A component may hold several; the profile names them `component#name`.
   */
  export interface Description {
    /**
     * Lower-case words joined by hyphens, such as `repeating-path`.
     */
    name: string,
    /**
     * Semantic version.
     */
    version: string,
    /**
     * One sentence for the operator.
     */
    summary: string,
    kinds: Array<Kind>,
    handles: Handles,
    /**
     * JSON Schema (2020-12) of the settings; an object with `additionalProperties: false`. The host checks
     * the profile against it and fills in its defaults. Properties may carry `x-opilio-level`
     * (`info`, `warning`, `error`), `x-opilio-expert` and `x-opilio-overridable` (booleans).
     */
    settingsSchema: string,
    keeps: Array<Keep>,
    /**
     * Anything more that later versions know how to read.
     */
    attributes: Array<NamedValue>,
  }
  /**
   * One fault of the settings.
   */
  export interface SettingsFault {
    /**
     * JSON Pointer to the setting (RFC 6901), such as `/patterns/0`; empty for the whole.
     */
    pointer: string,
    /**
     * What is wrong and what would be right: a fragment, lower-case, no full stop.
     */
    problem: string,
  }
}
