/// <reference path="./opilio-plugin-documents.d.ts" />
/// <reference path="./opilio-plugin-types.d.ts" />
declare module 'opilio:plugin/extractor@0.3.0' {
  /**
   * Extracts from documents of one type: one whole document, or all fragments of that type in a page. Returns one
   * extraction for each document, in the same order. Another number of answers is a plugin error. If a call with several
   * documents fails, the host calls the plugin again for each document alone, until eight of these calls have failed.
   */
  export function extract(documents: Array<Document>): Array<Extraction>;
  export type Document = import('opilio:plugin/documents@0.3.0').Document;
  export type Fragment = import('opilio:plugin/types@0.3.0').Fragment;
  export type Link = import('opilio:plugin/types@0.3.0').Link;
  /**
   * The results for one document.
   */
  export interface Extraction {
    /**
     * Links in document order. By default, the host takes 24,000 from one answer, and 6,000 different ones from all
     * answers about a document and its fragments. It drops and counts the rest.
     */
    links: Array<Link>,
    /**
     * Parts with a media type of their own. The host takes 6,000 from one answer by default; it drops and counts the
     * rest.
     */
    fragments: Array<Fragment>,
    /**
     * The base that the document declares, for this and later extractors: a URI reference.
     */
    base?: string,
    /**
     * Skips the extractors that the profile lists as last resort.
     */
    finished: boolean,
    /**
     * Description of a part that could not be read, for the log. The host still uses the other results.
     */
    problem?: string,
  }
}
