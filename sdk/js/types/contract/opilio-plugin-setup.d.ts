/// <reference path="./opilio-plugin-types.d.ts" />
declare module 'opilio:plugin/setup@0.3.0' {
  /**
   * Returns the plugins of this component. The host calls it when it loads the component, before `configure`. The answer
   * must always be the same.
   */
  export function describe(): Array<Description>;
  /**
   * Turns this instance into the plugin `name` with these settings: a JSON object that matches the schema, with defaults
   * filled in. Every call starts from the memory that `configure` left. The host keeps a copy of that memory. If it has no
   * copy, for instance because the component holds a WASI stream, it calls `configure` in a new instance before each call.
   * So `configure` must leave the same memory for the same settings. An error refuses the profile and names each wrong
   * setting.
   */
  export function configure(name: string, settings: string): void;
  export type NamedValue = import('opilio:plugin/types@0.3.0').NamedValue;
  /**
   * A kind of plugin. Each kind has an interface of this package, which the component exports.
   */
  export type Kind = KindExtractor | KindFilter | KindDigestStripper | KindChangeEvaluator | KindWaitEvaluator | KindPrecedence | KindObserver | KindPageBehavior | KindOther;
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
  export interface KindPageBehavior {
    tag: 'page-behavior',
  }
  /**
   * A kind of a later contract version. The host does not load a component with such a plugin.
   */
  export interface KindOther {
    tag: 'other',
    val: string,
  }
  /**
   * The documents that a plugin is called for. The host does not call it for others.
   */
  export interface Handles {
    /**
     * Media types, those of fragments included: `text/html`, `text/*`, `*\/*`, `*+json`. Empty: any.
     */
    mediaTypes: Array<string>,
    /**
     * Regular expressions (RE2 syntax). One of them must match somewhere in the URI. Empty: any URI.
     */
    uris: Array<string>,
  }
  /**
   * The owner of a kept value.
   */
  export type Keeper = KeeperUri | KeeperSite | KeeperOther;
  /**
   * The URI. The value stays from visit to visit.
   */
  export interface KeeperUri {
    tag: 'uri',
  }
  /**
   * The site: a host and port.
   */
  export interface KeeperSite {
    tag: 'site',
  }
  /**
   * An owner of a later contract version. The host does not load a component that declares it.
   */
  export interface KeeperOther {
    tag: 'other',
    val: string,
  }
  /**
   * A value that a plugin keeps. The host keeps declared values only.
   */
  export interface Keep {
    /**
     * Lower-case words joined by hyphens.
     */
    name: string,
    keeper: Keeper,
    /**
     * Version of the value's form. The host returns it with the value, so that a new version of the plugin can read
     * values of an old one.
     */
    version: number,
  }
  /**
   * One plugin of a component. A component may contain several. The profile names them `component#name`.
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
     * JSON Schema (2020-12) of the settings: an object with `additionalProperties: false`. The host checks the profile
     * against it and fills in its defaults. Properties may have `x-opilio-level` (`info`, `warning`, `error`),
     * `x-opilio-expert`, `x-opilio-overridable` and `x-opilio-table` (booleans). `x-opilio-table` marks a name of a
     * table, or a list of such names. The profile must then have these tables.
     */
    settingsSchema: string,
    keeps: Array<Keep>,
    /**
     * Further facts, for later contract versions. The host ignores names that it does not know.
     */
    attributes: Array<NamedValue>,
  }
  /**
   * An error in the settings.
   */
  export interface SettingsFault {
    /**
     * JSON Pointer to the setting (RFC 6901), such as `/patterns/0`. Empty: the settings as a whole.
     */
    pointer: string,
    /**
     * The error and the remedy: a lower-case fragment without a full stop.
     */
    problem: string,
  }
}
