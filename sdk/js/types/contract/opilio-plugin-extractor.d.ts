/// <reference path="./opilio-plugin-documents.d.ts" />
/// <reference path="./opilio-plugin-types.d.ts" />
declare module 'opilio:plugin/extractor@0.2.0' {
  /**
   * Documents of one type: one whole document, or all fragments of that type in a page. Answers stand in the same order.
   */
  export function extract(documents: Array<Document>): Array<Extraction>;
  export type Document = import('opilio:plugin/documents@0.2.0').Document;
  export type Fragment = import('opilio:plugin/types@0.2.0').Fragment;
  export type Link = import('opilio:plugin/types@0.2.0').Link;
  /**
   * What one document gave.
   */
  export interface Extraction {
    /**
     * In document order. At most 6,000 by default are used.
     */
    links: Array<Link>,
    fragments: Array<Fragment>,
    /**
     * The document's base for this and later extractors, where it declares one: a URI reference.
     */
    base?: string,
    /**
     * The document has been understood: extractors that the profile lists as last resort stay out.
     */
    finished: boolean,
    /**
     * What could not be read, for the log. What was found all the same is used.
     */
    problem?: string,
  }
}
