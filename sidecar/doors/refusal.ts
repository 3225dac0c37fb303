/** Carries a refusal through nginx, which passes on neither its body nor most of its fields, in one field and back. */
import { randomUUID } from 'node:crypto'
import type { DenialAnswer } from '../enforce/denial-response.ts'
import { failure } from './held-request.ts'

const CHARS_MAX = 8_192
const STATUS_MIN = 400
const STATUS_MAX = 599

export const packRefusal = ({ status, fields, body }: DenialAnswer): string =>
  Buffer.from(JSON.stringify([status, fields, body])).toString('base64url')

/** Reads the question's field; a failure of ours when it holds no refusal. */
export function unpackRefusal(raw: readonly string[], name: string): DenialAnswer {
  const values = raw.filter((_, at) => at % 2 === 1 && raw[at - 1]?.toLowerCase() === name)
  const [value = ''] = values
  return (values.length === 1 && value.length <= CHARS_MAX ? parse(value) : null) ?? failure('internal', randomUUID())
}

function parse(text: string): DenialAnswer | null {
  try {
    const read: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    if (!Array.isArray(read)) return null
    const [status, fields, body]: readonly unknown[] = read
    if (typeof status !== 'number' || !(status >= STATUS_MIN && status <= STATUS_MAX)) return null
    if (!Array.isArray(fields) || !fields.every((one) => typeof one === 'string') || typeof body !== 'string')
      return null
    return { status, fields, body }
  } catch {
    return null
  }
}
