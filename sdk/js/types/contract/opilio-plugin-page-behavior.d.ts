/// <reference path="./opilio-plugin-documents.d.ts" />
/// <reference path="./opilio-plugin-types.d.ts" />
declare module 'opilio:plugin/page-behavior@0.3.0' {
  /**
   * Plans the next actions. `memory` is that of the last step on this page; empty at the first.
   */
  export function step(page: Page, visit: Visit, memory: Uint8Array): StepPlan;
  export type Page = import('opilio:plugin/documents@0.3.0').Page;
  export type Visit = import('opilio:plugin/documents@0.3.0').Visit;
  export type Duration = import('opilio:plugin/types@0.3.0').Duration;
  /**
   * A position to scroll the window to.
   */
  export type ScrollTarget = ScrollTargetTop | ScrollTargetBottom | ScrollTargetTo | ScrollTargetBy | ScrollTargetElement | ScrollTargetOther;
  /**
   * The beginning of the page.
   */
  export interface ScrollTargetTop {
    tag: 'top',
  }
  /**
   * The end of the page as it is now.
   */
  export interface ScrollTargetBottom {
    tag: 'bottom',
  }
  /**
   * This number of CSS pixels from the beginning.
   */
  export interface ScrollTargetTo {
    tag: 'to',
    val: number,
  }
  /**
   * This number of CSS pixels further; negative: back.
   */
  export interface ScrollTargetBy {
    tag: 'by',
    val: number,
  }
  /**
   * The first element that matches a CSS selector. Boxes that contain it are scrolled too.
   */
  export interface ScrollTargetElement {
    tag: 'element',
    val: string,
  }
  /**
   * A position of a later contract version. The result is `refused`.
   */
  export interface ScrollTargetOther {
    tag: 'other',
    val: string,
  }
  /**
   * Clicks on elements, in document order. Elements that are not visible are left out.
   */
  export interface Click {
    /**
     * CSS selector. It is applied to the page, its frames and their open shadow roots.
     */
    selector: string,
    /**
     * Regular expression (JavaScript syntax, flags `iu`) that must match somewhere in the element's visible text, its
     * `aria-label` or its `value`, each without outer blanks. None: any element.
     */
    text?: string,
    /**
     * Maximum number of elements to click.
     */
    atMost: number,
    /**
     * Leaves out elements that an earlier action on this page clicked.
     */
    onlyNew: boolean,
  }
  /**
   * A wait for an element.
   */
  export interface SelectorWait {
    /**
     * CSS selector, applied as in `click`.
     */
    selector: string,
    /**
     * Longest wait.
     */
    atMost: Duration,
  }
  /**
   * An action on the page. `page.results` of the next step has its result.
   */
  export type Action = ActionScroll | ActionClick | ActionWaitForSelector | ActionWaitForNetwork | ActionWait | ActionEvaluate | ActionScreenshot | ActionOther;
  /**
   * Scrolls the window. Result: `done`, or `no-element`.
   */
  export interface ActionScroll {
    tag: 'scroll',
    val: ScrollTarget,
  }
  /**
   * Clicks elements. Result: `clicked`, or `no-element`.
   */
  export interface ActionClick {
    tag: 'click',
    val: Click,
  }
  /**
   * Waits until an element matches. Result: `done`, or `no-element` after the longest wait.
   */
  export interface ActionWaitForSelector {
    tag: 'wait-for-selector',
    val: SelectorWait,
  }
  /**
   * Waits until the page has had no request in flight for a moment (500 ms), at most for this time. Result: `done`,
   * or `not-idle` after that time.
   */
  export interface ActionWaitForNetwork {
    tag: 'wait-for-network',
    val: Duration,
  }
  /**
   * Waits for this time. Result: `done`.
   */
  export interface ActionWait {
    tag: 'wait',
    val: Duration,
  }
  /**
   * Runs JavaScript among the page's own scripts: the body of an async function, such as `return document.title`.
   * Result: `value` with the returned value as JSON, or `exception`.
   */
  export interface ActionEvaluate {
    tag: 'evaluate',
    val: string,
  }
  /**
   * Takes a picture of the window. If the profile archives pictures, this one takes the place of the picture after
   * the last step. Result: `done`, or `refused`.
   */
  export interface ActionScreenshot {
    tag: 'screenshot',
  }
  /**
   * An action of a later contract version. Result: `refused`.
   */
  export interface ActionOther {
    tag: 'other',
    val: string,
  }
  /**
   * The answer of a step.
   */
  export interface StepPlan {
    /**
     * Actions in their order, 100 at most; more are a plugin error. An action that fails does not prevent the next one.
     */
    actions: Array<Action>,
    /**
     * CSS selectors whose matches `page.count` returns at the next step. 100 at most; more are a plugin error.
     */
    count: Array<string>,
    /**
     * Data that the host passes to the next step. 1 MiB at most by default; more is a plugin error.
     */
    memory: Uint8Array,
    /**
     * Ends the behaviour after these actions. Otherwise there is a next step.
     */
    finished: boolean,
  }
}
