/** Expands the `{{…}}` placeholders of attack files. */
import { gzipSync } from 'node:zlib'
import { Unknown } from './case-format.ts'
import { digestOf, type Keyring, thumbprintOf } from './credentials.ts'

export type Placeholders = {
  readonly keyring: Keyring
  readonly token: (name: string) => Promise<string>
  readonly proof: (name: string) => Promise<string>
  readonly nowSeconds: () => number
  /** One of the sidecar's. */
  readonly nonce: (which: 'current' | 'old') => string
}

/** What is repeated may have braces of its own; other arguments have none, or pairs. */
const PLACEHOLDER = /\{\{(repeat|repeatlines):(.*?:\d+[kM]?)\}\}|\{\{(\w+)(?::((?:[^{}]|\{[^{}]*\})*))?\}\}/gs
/** Two braces and a name, which nobody writes by accident. */
const MEANT = /\{\{\s*[a-z]\w*\s*(?:[:}-])/i
const BYTES = { GB: 1024 ** 3, MB: 1024 ** 2, KB: 1024 } as const

/** Text in Latin-1: each character is one byte on the wire. Throws Unknown for what this runner does not know. */
export async function expand(text: string, placeholders: Placeholders): Promise<string> {
  const given = (from: number, to?: number): string => {
    const plain = text.slice(from, to)
    if (MEANT.test(plain)) throw new Unknown(`the placeholder in ${JSON.stringify(plain.slice(0, 80))} is not known`)
    return plain
  }
  let expanded = ''
  let at = 0
  for (const match of text.matchAll(PLACEHOLDER)) {
    const [whole, repeat, repeated, name, argument] = match
    expanded += given(at, match.index) + (await textOf(repeat ?? name ?? '', repeated ?? argument ?? '', placeholders))
    at = match.index + whole.length
  }
  return expanded + given(at)
}

async function textOf(name: string, argument: string, context: Placeholders): Promise<string> {
  switch (name) {
    case 'tok':
      return context.token(argument)
    case 'proof':
      return context.proof(argument)
    case 'jkt':
      return thumbprintOf(context.keyring, argument)
    case 'ath':
      return digestOf(await context.token(argument))
    case 'repeat':
      return repeated(argument, '')
    case 'repeatlines':
      return repeated(argument, '\r\n')
    case 'stream':
      return 'x'.repeat(countOf(argument))
    case 'gzipbomb':
      return gzipBomb(argument)
    case 'utf16':
      return Buffer.from(argument, 'utf16le').toString('latin1')
    case 'nonce':
      return nonceOf(argument, context)
    case 'now': {
      if (!/^(?:[+-]\d+)?$/.test(argument)) throw new Unknown(`the time ${argument} is not known`)
      return String(context.nowSeconds() + Number(argument))
    }
    case 'rand':
      if (argument !== '') throw new Unknown(`the placeholder rand:${argument} is not known`)
      return Math.random().toString(36).slice(2)
    default:
      throw new Unknown(`the placeholder ${name} is not known`)
  }
}

function repeated(argument: string, end: string): string {
  const colon = argument.lastIndexOf(':')
  return `${argument.slice(0, colon)}${end}`.repeat(countOf(argument.slice(colon + 1)))
}

function countOf(text: string): number {
  const [, count, unit] = /^(\d+)([kM])?$/.exec(text) ?? []
  if (count === undefined) throw new Unknown(`the count ${text} is not known`)
  return Number(count) * (unit === 'M' ? 1_000_000 : unit === 'k' ? 1_000 : 1)
}

/** All replicas know each other's. */
function nonceOf(name: string, { nonce }: Placeholders): string {
  if (/^(?:[A-Z]|current|fresh)?$/.test(name)) return nonce('current')
  if (/^(?:old|expired|stale)$/.test(name)) return nonce('old')
  if (/^(?:bogus|forged|foreign|wrong|random|unknown)$/.test(name)) return 'bm90IG91cnM'
  throw new Unknown(`the nonce ${name} is not known`)
}

/** Inflates to the given size; at most 16 MB of it is made, which is beyond every bound all the same. */
function gzipBomb(size: string): string {
  const match = /^(\d+)([GMK]B)?$/.exec(size)
  if (match === null) throw new Unknown(`the size ${size} is not known`)
  const unit = match[2]
  const factor = unit === 'GB' || unit === 'MB' || unit === 'KB' ? BYTES[unit] : 1
  return gzipSync(Buffer.alloc(Math.min(Number(match[1]) * factor, 16 * BYTES.MB))).toString('latin1')
}
