/** Changes the serialised form of a token as an attack case says in words. */
import { Unknown } from './case-format.ts'

type Leases = { readonly header: string; readonly payload: string; readonly signature: string }
type Part = keyof Leases
type Unsigned = Omit<Leases, 'signature'>
type Options = { readonly prose: string | undefined; readonly sign: (input: string) => Promise<string> }
/** Before: the signature is made over what was changed. */
type Change =
  | { readonly when: 'before'; readonly change: (parts: Unsigned) => Unsigned }
  | { readonly when: 'after'; readonly change: (parts: Leases) => string }

/** Throws Unknown for words that nobody here knows. */
export async function mutated(parts: Unsigned, { prose, sign }: Options): Promise<string> {
  const change = prose === undefined ? null : readChange(prose)
  const given = change?.when === 'before' ? change.change(parts) : parts
  const signed = { ...given, signature: await sign(`${given.header}.${given.payload}`) }
  return change?.when === 'after' ? change.change(signed) : serialised(signed)
}

const serialised = ({ header, payload, signature }: Leases): string => `${header}.${payload}.${signature}`

const PART = '(header|payload|signature)'
const FORMS: readonly (readonly [RegExp, (match: RegExpExecArray) => Change])[] = [
  [
    /^append ('[^']+'(?: and '[^']+')*) to (?:the )?(header|payload|signature|token)$/,
    ([, texts, part]) => appended(quoted(texts), part),
  ],
  [
    new RegExp(
      `^(?:flip|change|corrupt) (?:a|one|the (?:first|last)) (?:bit|byte|character|char) (?:of|in) (?:the )?${PART}$`,
    ),
    ([, part]) => changed(part, flipped),
  ],
  [new RegExp(`^(?:remove|drop|strip|empty) (?:the )?${PART}$`), ([, part]) => changed(part, () => '')],
  [new RegExp(`^truncate (?:the )?${PART}$`), ([, part]) => changed(part, (text) => text.slice(0, -4))],
  [
    new RegExp(`^(?:insert|add) (?:a )?(space|newline|blank|tab) (?:in|into|inside) (?:the )?${PART}$`),
    ([, what, part]) => changed(part, (text) => `${text.slice(0, 4)}${SPACES[what ?? ''] ?? ' '}${text.slice(4)}`),
  ],
  [/^(?:only )?two parts$/, () => ({ when: 'after', change: ({ header, payload }) => `${header}.${payload}` })],
  [
    /^(?:four parts|append (?:a )?fourth part)$/,
    () => ({ when: 'after', change: (parts) => `${serialised(parts)}.AAAA` }),
  ],
  [
    /^(?:append (?:a )?)?trailing (?:dot|period)$/,
    () => ({ when: 'after', change: (parts) => `${serialised(parts)}.` }),
  ],
  [
    /^(?:swap|exchange) (?:the )?header and (?:the )?payload$/,
    () => ({ when: 'after', change: ({ header, payload, signature }) => `${payload}.${header}.${signature}` }),
  ],
]
const SPACES: { readonly [word: string]: string } = { space: ' ', blank: ' ', newline: '\n', tab: '\t' }

function readChange(prose: string): Change {
  for (const [form, read] of FORMS) {
    const match = form.exec(prose)
    if (match !== null) return read(match)
  }
  throw new Unknown(`the mutation ${JSON.stringify(prose)} is not known`)
}

const quoted = (texts = ''): string => [...texts.matchAll(/'([^']+)'/g)].map(([, text]) => text).join('')

function appended(text: string, part = 'token'): Change {
  if (part === 'token') return { when: 'after', change: (parts) => `${serialised(parts)}${text}` }
  // What is signed over is what is sent: only the form of the text is at fault.
  if (part === 'header') return { when: 'before', change: (parts) => ({ ...parts, header: `${parts.header}${text}` }) }
  if (part === 'payload')
    return { when: 'before', change: (parts) => ({ ...parts, payload: `${parts.payload}${text}` }) }
  return changed(part, (signature) => `${signature}${text}`)
}

function changed(part: string | undefined, change: (text: string) => string): Change {
  if (part !== 'header' && part !== 'payload' && part !== 'signature')
    throw new Unknown(`the part ${part} is not known`)
  const name: Part = part
  return { when: 'after', change: (parts) => serialised({ ...parts, [name]: change(parts[name]) }) }
}

/** Another character in the middle, where all its bits count. */
const flipped = (text: string): string => {
  const at = Math.floor(text.length / 2)
  return `${text.slice(0, at)}${text[at] === 'A' ? 'B' : 'A'}${text.slice(at + 1)}`
}
