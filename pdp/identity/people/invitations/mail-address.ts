/** The form of the e-mail addresses that accounts may have, wherever an address comes from. */

/** Characters that are invisible or change the order of others: an address with them could look like another person's. */
const UNSEEN =
  '\\s@\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ufe00-\\ufe0f\\uffa0\\ufff0-\\ufffb'
/** Invisible characters beyond U+FFFF, which regular expression engines do not all escape alike. */
const UNSEEN_BEYOND =
  /[\u{110bd}\u{110cd}\u{13430}-\u{1345f}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/u
/** The pattern in descriptions, which all regular expression engines understand. `isAddress` is stricter. */
export const ADDRESS_PATTERN = `^[^${UNSEEN}]+@[^${UNSEEN}]+$`
export const ADDRESS_FORM = 'an e-mail address'
export const ADDRESS_CHARACTERS_MAX = 254

const FORM = new RegExp(ADDRESS_PATTERN, 'u')
export const isAddress = (text: string): boolean =>
  text.length <= ADDRESS_CHARACTERS_MAX && FORM.test(text) && !UNSEEN_BEYOND.test(text) && text.isWellFormed()
