/** The e-mail addresses that accounts may have, by whichever way they come. */

/** Characters that cannot be seen or turn the order of others: an address would look like somebody else's. */
const UNSEEN =
  '\\s@\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\uffa0'
export const ADDRESS_PATTERN = `^[^${UNSEEN}]+@[^${UNSEEN}]+$`
export const ADDRESS_CHARACTERS_MAX = 254

const FORM = new RegExp(ADDRESS_PATTERN)
export const isAddress = (text: string): boolean =>
  text.length <= ADDRESS_CHARACTERS_MAX && FORM.test(text) && text.isWellFormed()
