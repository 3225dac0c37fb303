/** What a plan of the official AuthZEN runner is made of. */
import type { Json } from '../harness.ts'
import { record, user } from './records.ts'

export type Module = {
  readonly plan: string
  readonly name: string
  /** Below `/access/v1/`. */
  readonly path: string
  readonly body?: Json
  readonly raw?: string
  readonly method?: 'GET' | 'PUT'
  readonly contentType?: string
  readonly credentials?: 'none' | 'wrong'
  /** The runner sends it several times, with an X-Request-ID, or follows the pages. */
  readonly how?: 'again' | 'request-id' | 'pages'
  readonly expected: Expected
  /** Why the answer is not the one that the module wants. */
  readonly deviation?: string
}
export type Expected =
  | { readonly decision: boolean }
  | { readonly decisions: readonly boolean[] }
  /** The results contain these. */
  | { readonly results: readonly Json[] }
  | { readonly status: readonly number[] }

export const BAD = { status: [400] }
export const READERS = { results: [user('alice'), user('bob')] }
export const RECORDS = { results: [record('record-1')] }
export const ACTIONS = { results: [{ name: 'read' }, { name: 'write' }] }
export const TIME = { time: '2025-06-27T18:03-07:00', ip: '192.0.2.1' }
export const WRITE = { action: { name: 'write' } }
export const without = (body: Json, member: string): Json =>
  Object.fromEntries(Object.entries(body).filter(([name]) => name !== member))

export type Rows = readonly (readonly [name: string, about: Omit<Module, 'plan' | 'name' | 'path'>])[]
export type Plan = {
  readonly plan: string
  readonly path: string
  readonly body: Json
  readonly expected: Expected
  readonly rows: Rows
}

export const expecting = (expected: Expected, bodies: { readonly [name: string]: Json }): Rows =>
  Object.entries(bodies).map(([name, body]) => [name, { body, expected }] as const)
