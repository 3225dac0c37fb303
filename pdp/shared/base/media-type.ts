/** Reads media types (RFC 9110 section 8.3.1) by one grammar for all callers. */
import { lowerAscii, trimBlanks } from './blanks.ts'

/** The media type in lower case, without parameters; empty: the field has none. */
export function mediaTypeOf(field: string | undefined): string {
  const [type = ''] = (field ?? '').split(';', 1)
  return lowerAscii(trimBlanks(type))
}

const OTHER_CHARSET = /charset(?![ \t]*=[ \t]*(?:"utf-?8"|utf-?8)[ \t]*(?:;|$))/i

/** True when the field names a charset other than UTF-8, or has a part that some parser may take for one. */
export const namesOtherCharset = (field: string): boolean => OTHER_CHARSET.test(field)
