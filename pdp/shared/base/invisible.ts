/** Characters that nobody sees, written so that people see them. */

// Controls, and what changes or hides its neighbours: directions, joiners, variation selectors, tags, and odd spaces.
// Not what joins or colours emoji, which shows.
export const INVISIBLE =
  /(?!(?<=\p{Extended_Pictographic}\u{fe0f}?|\p{Emoji_Modifier})\u{200d}\p{Extended_Pictographic}|(?<=\p{Extended_Pictographic})\u{fe0f})(?:\p{Cc}|\p{Cf}|\p{Zl}|\p{Zp}|\p{Cs}|\p{Variation_Selector}|[\u{115f}\u{1160}\u{3164}\u{ffa0}]|(?! )\p{Zs})/gu

export const codePoint = (found: string): string =>
  `U+${(found.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`

/** Writes what nobody could see as its code point. */
export const visible = (text: string): string => text.replaceAll(INVISIBLE, codePoint)
