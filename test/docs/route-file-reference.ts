/** The reference of route files in Markdown, made from the table that the reader and the JSON Schema use. */
import { DPOP, EXPECT, LOG, ROUTE, ROUTE_FILE, STEP_UP, TEST } from '../../sidecar/route-file/format.ts'
import { CLAIMS, EXTERNAL, INTROSPECTION, ISSUER } from '../../sidecar/route-file/issuer-format.ts'
import { LIMIT_MEMBERS } from '../../sidecar/route-file/limits.ts'
import { PROVIDER, SIGN_IN } from '../../sidecar/route-file/sign-in-format.ts'
import { CORS } from '../../sidecar/route-file/words/cors.ts'
import { DOOR, PDP, TLS, UPSTREAM } from '../../sidecar/route-file/words/peer-format.ts'
import type { Form, Members } from '../../sidecar/route-file/words/schema.ts'

const LISTS: readonly (readonly [title: string, members: Members])[] = [
  ['The file', ROUTE_FILE],
  ['An issuer (`issuers`)', ISSUER],
  ['An issuer that is not the PDP (`external`)', EXTERNAL],
  ['Names of its claims (`claims`)', CLAIMS],
  ['Questions about its tokens (`introspection`)', INTROSPECTION],
  ['The service (`upstream`, when it is a map)', UPSTREAM],
  ['The PDP (`pdp`)', PDP],
  ['TLS of the data port (`tls`)', TLS],
  ['A door (`doors`); its `tls` is as that of the data port', DOOR],
  ['Signing browsers in (`sign_in`)', SIGN_IN],
  ['Where they sign in (`providers`)', PROVIDER],
  ['Pages of other origins (`cors`)', CORS],
  ['Proof of possession (`dpop`)', DPOP],
  ['The decision log (`log`)', LOG],
  ['A route, when it is a map (`routes`)', ROUTE],
  ['Step-up (`step_up`)', STEP_UP],
  ['A test (`tests`)', TEST],
  ['What must come out (`expect`)', EXPECT],
  ['Limits (`limits`)', LIMIT_MEMBERS],
]

export const routeFileReference = (): string => LISTS.map(([title, members]) => listOf(title, members)).join('\n')

function listOf(title: string, members: Members): string {
  const lines = Object.entries(members).map(([name, { need, form }]) => {
    const key = need === 'required' ? `**\`${name}\`**` : `\`${name}\``
    return `- ${key} (${safe(describeForm(form))}): ${safe(String(form.description ?? ''))}`
  })
  return [`## ${title}`, '', ...lines, ''].join('\n')
}

const safe = (text: string): string => text.replaceAll('<', '&lt;')

function describeForm(form: Form): string {
  const { type, items, enum: choices, const: only, default: usual } = form
  if (typeof only === 'string') return `\`${only}\``
  if (Array.isArray(choices)) return choices.map((choice) => `\`${choice}\``).join(', ')
  if (type === 'integer') return `${form.minimum}–${form.maximum}${usual === undefined ? '' : `, default ${usual}`}`
  if (type === 'boolean') return 'true, false'
  if (type === 'array') return `list of ${describeForm(isForm(items) ? items : {})}`
  if (type === 'string') return 'text'
  if (type === 'object') return 'map'
  if (Array.isArray(form.oneOf)) return form.oneOf.filter(isForm).map(describeForm).join(', or ')
  return typeof form.$ref === 'string' && form.$ref.endsWith('check') ? 'check' : 'map'
}

const isForm = (value: unknown): value is Form => typeof value === 'object' && value !== null
