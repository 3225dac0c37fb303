/** Shows invisible characters of a text as visible ones. */

// Control characters, and characters that change or hide their neighbours: directions, joiners, variation selectors, tags and
// unusual spaces. Joiners and selectors within emoji are left, because their effect is visible.
export const INVISIBLE =
  /(?!(?<=\p{Extended_Pictographic}\u{fe0f}?|\p{Emoji_Modifier})\u{200d}\p{Extended_Pictographic}|(?<=\p{Extended_Pictographic})\u{fe0f})(?:\p{Cc}|\p{Cf}|\p{Zl}|\p{Zp}|\p{Cs}|\p{Variation_Selector}|[\u{115f}\u{1160}\u{3164}\u{ffa0}]|(?! )\p{Zs})/gu

export const codePoint = (found: string): string =>
  `U+${(found.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`

/** The text with each invisible character replaced by its code point. */
export const visible = (text: string): string => text.replaceAll(INVISIBLE, codePoint)
