/** Two tenants, and what a client of one is told about names of the other, beside names that nobody has. */
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import { grant, member, organization, put } from '../../../support/tuples.ts'
import { CONTEXT, type Json, type Served, seedAcme, serve } from './harness.ts'

export type Names = { readonly [name in keyof typeof THEIRS]: string }

/** What acme has. A template names them as `{user}`. */
export const THEIRS = {
  organization: 'acme',
  user: 'alice',
  client: 'acme-robot',
  invoice: 'invoice:theirs',
  number: 'theirs',
  group: 'accounting',
  entitlement: 'feature.invoicing',
}
/** In the same forms. */
export const NOBODYS: Names = {
  organization: 'nobody-o',
  user: 'nobody-u',
  client: 'nobody-c',
  invoice: 'invoice:nobody-i',
  number: 'nobody-i',
  group: 'nobody-g',
  entitlement: 'feature.nobody',
}

export type ForeignWorld = Served & {
  /** A service of beta with every scope. */
  readonly stranger: string
  /** A person of beta. */
  readonly person: string
}

/** Beside acme: beta, with Dora as its member, who may view what is beta's through a tuple and a group. */
export async function openForeign(): Promise<ForeignWorld> {
  const served = await serve()
  await seedAcme(served)
  const { store, directory } = served
  const options = { context: CONTEXT }
  const roles = { approver: { name: 'A', permissions: ['invoices:approve'] } }
  const manifest = { app: 'billing', audiences: [], permissions: { 'invoices:approve': 'x' }, roles, model: null }
  await store.write(ENVIRONMENT, [organization('beta'), { kind: 'manifest', manifest }], options)
  await directory.putUser({ id: 'dora', email: null, emailVerified: false, name: null }, CONTEXT)
  await directory.putClient({ id: THEIRS.client, app: null, organization: 'acme', metadata: {} }, CONTEXT)
  const granted = [
    grant('g1', 'approver', `user:${THEIRS.user}`, 'billing'),
    put(`${THEIRS.invoice}#viewer@service:${THEIRS.client}`),
    put(`${THEIRS.invoice}#viewer@user:${THEIRS.user}`),
  ]
  await store.write('acme', granted, options)
  const own = [
    member('dora', 'member'),
    put('invoice:own#viewer@user:dora'),
    put('invoice:own#viewer@group:own#member'),
  ]
  await store.write('beta', own, options)
  const stranger = await served.manager({ client: 'beta-admin', organization: 'beta' })
  const person = served.token({ subject: { type: 'user', id: 'dora' }, organization: 'beta' })
  return { ...served, stranger, person }
}

/** The template with the names in place of their placeholders, at any depth. */
export function named<T>(template: T, names: Names): T {
  const text = JSON.stringify(template).replaceAll(/\{(\w+)\}/g, (whole, name: string) =>
    name in names ? names[name as keyof Names] : whole,
  )
  return JSON.parse(text)
}

/** What is different in each answer, and means nothing. */
const VOLATILE = /"(?:request_id|decision_id|decisionId)":"[^"]*"/g
const OWN_HEADERS = new Set(['date', 'x-request-id', 'content-length', 'portcullis-decision-id'])

/** A text without the names that were asked about. */
export function hidden(names: readonly string[], text: string): string {
  const forms = names.toSorted((a, b) => b.length - a.length).flatMap((name) => [name, encodeURIComponent(name)])
  return forms.reduce((shown, name) => shown.replaceAll(name, '…'), text).replaceAll(VOLATILE, '')
}
export const without = (names: Names, text: string): string => hidden(Object.values(names), text)

export const headersOf = (headers: Headers): readonly (readonly [string, string])[] =>
  [...headers].filter(([name]) => !OWN_HEADERS.has(name))

export type Sent = {
  readonly token: string
  readonly method?: string
  readonly path: string
  readonly body?: unknown
  readonly type?: string
}

/** What the caller is told: status, text and headers. */
export async function toldOver({ url }: Served, names: Names, { token, ...call }: Sent) {
  const { method = 'POST', path, body, type = 'application/json' } = named(call, names)
  const answer = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': type }) },
    body: body === undefined ? null : JSON.stringify(body),
  })
  const text = await answer.text()
  return { status: answer.status, text: without(names, text), headers: headersOf(answer.headers) }
}

/** A schema of the description, with what it refers to in place of each reference. */
export function inlined(description: Json, schema: Json): Json {
  if (Array.isArray(schema)) return schema.map((one) => inlined(description, one))
  if (typeof schema !== 'object' || schema === null) return schema
  if (typeof schema.$ref === 'string') {
    const parts: readonly string[] = schema.$ref.split('/').slice(1)
    return inlined(
      description,
      parts.reduce((at: Json, name) => at[name], description),
    )
  }
  return Object.fromEntries(Object.entries(schema).map(([name, member]) => [name, inlined(description, member)]))
}
