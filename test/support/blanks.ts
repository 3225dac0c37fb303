/** Characters that a reader of protocols must not take for a blank. */

/** Every byte, as the character that Node makes of it in a header field. */
export const BYTES: readonly string[] = Array.from({ length: 256 }, (_, byte) => String.fromCharCode(byte))

/** All that `trim()` and `\s` take for blanks, and two that some programs take for one. */
export const BLANKS_OF_SCRIPTS: readonly string[] = [
  ...'\t\v\f \n\r\u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff',
  '\u0085',
  '\u200b',
].concat(Array.from({ length: 11 }, (_, at) => String.fromCharCode(0x2000 + at)))

/** As a header field carries the character: its bytes in UTF-8, each as one character. */
export const asFieldBytes = (text: string): string => Buffer.from(text).toString('latin1')
