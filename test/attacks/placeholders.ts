/** Expands the `{{…}}` placeholders of attack files. */
import { gzipSync } from 'node:zlib'
import { Skip } from './cases.ts'
import type { Keyring } from './credentials.ts'
import { digestOf, thumbprintOf } from './credentials.ts'

export type Placeholders = {
  readonly keyring: Keyring
  readonly token: (name: string) => Promise<string>
  readonly proof: (name: string) => Promise<string>
  readonly nowSeconds: () => number
  /** One of the sidecar's. */
  readonly nonce: () => string
}

const PLACEHOLDER = /\{\{(\w+)(?::((?:[^{}]|\{[^{}]*\})*))?\}\}/g
const BYTES = { GB: 1024 ** 3, MB: 1024 ** 2, KB: 1024 } as const

/** Text in Latin-1: each character is one byte on the wire. Throws Skip for what this runner does not know. */
export async function expand(text: string, placeholders: Placeholders): Promise<string> {
  let expanded = ''
  let at = 0
  for (const match of text.matchAll(PLACEHOLDER)) {
    expanded += text.slice(at, match.index) + (await textOf(match[1] ?? '', match[2] ?? '', placeholders))
    at = match.index + match[0].length
  }
  return expanded + text.slice(at)
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
    case 'repeat': {
      const colon = argument.lastIndexOf(':')
      return argument.slice(0, colon).repeat(Number(argument.slice(colon + 1)))
    }
    case 'repeatlines': {
      const colon = argument.lastIndexOf(':')
      return `${argument.slice(0, colon)}\r\n`.repeat(Number(argument.slice(colon + 1)))
    }
    case 'stream':
      return 'x'.repeat(Number(argument))
    case 'gzipbomb':
      return gzipBomb(argument)
    case 'utf16':
      return Buffer.from(argument, 'utf16le').toString('latin1')
    case 'nonce':
      // All replicas know each other's.
      return context.nonce()
    case 'now':
      return String(context.nowSeconds())
    case 'rand':
      return Math.random().toString(36).slice(2)
    default:
      throw new Skip(`the placeholder ${name} is not known`)
  }
}

/** Inflates to the given size; at most 16 MB of it is made, which is beyond every bound all the same. */
function gzipBomb(size: string): string {
  const match = /^(\d+)([GMK]B)?$/.exec(size)
  const unit = match?.[2]
  const factor = unit === 'GB' || unit === 'MB' || unit === 'KB' ? BYTES[unit] : 1
  return gzipSync(Buffer.alloc(Math.min(Number(match?.[1] ?? 0) * factor, 16 * BYTES.MB))).toString('latin1')
}
