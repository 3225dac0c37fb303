/** `pages` of `sign_in` in a route file: how the sidecar's pages look, and whom people can ask for access. */
import type { Node } from 'yaml'
import { messageOf } from '../../../pdp/shared/base/error-message.ts'
import { type Branding, checkBranding } from '../../../pdp/shared/pages/brand.ts'
import { type Members, optional, TEXT } from './schema.ts'
import type { YamlReader } from './yaml-reader.ts'

const ASK_CHARACTERS_MAX = 300

export const PAGES = {
  ask: optional(
    { ...TEXT, maxLength: ASK_CHARACTERS_MAX },
    'A line that says whom to ask, such as: The service desk gives access. Default: the people who run the host.',
  ),
  support: optional(TEXT, 'The address to ask at: mailto: or an https URL.'),
  name: optional(TEXT, 'The name of the service or of its operator, above each page.'),
  logo: optional(TEXT, 'The https URL of a picture, above each page.'),
  color: optional(TEXT, 'The colour of buttons and links, such as #0b57d0; pages keep it readable.'),
  terms: optional(TEXT, 'https URL of the terms, below each page.'),
  privacy: optional(TEXT, 'https URL of the privacy statement, below each page.'),
} as const satisfies Members

export type PagesEntry = {
  readonly branding: Branding
  /** The person or team to ask, which pages name; null: no such text. */
  readonly ask: string | null
}

export function readPages(reader: YamlReader, node: Node | null): PagesEntry {
  const members = node === null ? null : reader.members(node, 'pages', PAGES)
  if (members === null) return { branding: {}, ask: null }
  const { ask: askNode, ...rest } = members
  const texts = Object.entries(rest).flatMap(([name, item]) => {
    const text = item === null ? null : reader.text(item, name)
    return text === null ? [] : [[name, text] as const]
  })
  const branding: Branding = Object.fromEntries(texts)
  try {
    checkBranding(branding)
  } catch (err) {
    reader.report(node, `pages ${messageOf(err)}`)
  }
  const ask = askNode === null ? null : reader.text(askNode, 'ask')
  if (ask !== null && (ask.trim() === '' || ask.length > ASK_CHARACTERS_MAX))
    reader.report(askNode, `ask must have 1 to ${ASK_CHARACTERS_MAX} characters`)
  return { branding, ask }
}
