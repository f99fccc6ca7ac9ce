// Conversion between text and bytes, for engines without TextEncoder. The contract counts bytes of UTF-8, strings count units
// of UTF-16.

/** Returns the length of the character at `index` in bytes of UTF-8, and in units of the string. */
function widthAt(text, index) {
  const code = text.codePointAt(index);
  if (code > 0xffff) return [4, 2];
  return [code < 0x80 ? 1 : code < 0x800 ? 2 : 3, 1];
}

/** Returns the UTF-8 of a text. A lone surrogate becomes U+FFFD. */
export function encode(text) {
  const bytes = [];
  for (const character of text) {
    let code = character.codePointAt(0);
    if (code >= 0xd800 && code <= 0xdfff) code = 0xfffd;
    if (code < 0x80) bytes.push(code);
    else if (code < 0x800) bytes.push(0xc0 | (code >> 6), 0x80 | (code & 63));
    else if (code < 0x10000) bytes.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
    else bytes.push(0xf0 | (code >> 18), 0x80 | ((code >> 12) & 63), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
  }
  return Uint8Array.from(bytes);
}

/** Decodes UTF-8. Throws an error if it is invalid. */
export function decode(bytes) {
  // Every engine has `decodeURIComponent`.
  let escaped = "";
  for (const byte of bytes) escaped += "%" + byte.toString(16).padStart(2, "0");
  return decodeURIComponent(escaped);
}

/** Returns one character for each byte, U+0000 to U+00FF, so that indexes of matches are byte offsets. */
export function latin1(bytes) {
  let text = "";
  // Engines limit the number of arguments.
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return text;
}

/**
 * Returns a function from an index of the string to the offset in its UTF-8, for fragments in a document's text. With
 * ascending indexes it reads the text once.
 */
export function bytesAt(text) {
  let known = 0;
  let bytes = 0;
  return (index) => {
    if (index < known) known = bytes = 0;
    while (known < index && known < text.length) {
      const [wide, units] = widthAt(text, known);
      bytes += wide;
      known += units;
    }
    return bytes;
  };
}
