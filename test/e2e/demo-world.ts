/** Who and what there is in the demo, set up through the management API as any administrator would. */
import { SERVICE_SCOPES } from '../../pdp/identity/oauth/scopes.ts'
import { clientToken, signIn } from '../support/sign-in.ts'
import { type DemoStack, RESOURCE } from './demo-stack.ts'

export const ORGANIZATION = 'acme'
export const GATE = 'feature.export'
export const ALICE_READS = 'invoice:1#viewer@user:alice'
export const BOB_IN_GROUP = 'group:accounting#member@user:bob'
/** Of everybody in the demo. */
export const PASSWORD = 'correct horse battery staple'
const APP = 'invoices-app'
const REDIRECT_URI = 'https://app.demo.example/callback'
/** All, because Carol gets them for the console, and a client gives only what it has. */
const ADMIN_SCOPES = SERVICE_SCOPES.join(' ')
const USERS = { alice: 'Alice', bob: 'Bob' }
/** Who signs in to the console first. */
export const CONSOLE_PERSON = { id: 'carol', name: 'Carol', email: 'carol@acme.example' }
const MODEL = `model
  schema 1.1
type user
type folder
  relations
    define viewer: [user]
type contract
  relations
    define folder: [folder]
    define signer: [user]
    define viewer: [user] or signer or viewer from folder
`

export type World = {
  readonly tokens: { readonly alice: string; readonly bob: string; readonly admin: string }
  relate(change: { readonly write?: readonly string[]; readonly delete?: readonly string[] }): Promise<void>
  setGate(enabled: boolean): Promise<void>
}

/** Safe to repeat on what an earlier run left. Throws Error with the problem when the PDP refuses. */
export async function createWorld(stack: Pick<DemoStack, 'issuer' | 'adminSecret'>): Promise<World> {
  const { issuer, adminSecret } = stack
  const admin = (await clientToken({ issuer, clientId: 'admin', clientSecret: adminSecret, scope: ADMIN_SCOPES }))
    .access_token
  const manage = (method: string, path: string, body: object): Promise<void> =>
    send(issuer, { token: admin, method, path, body })
  const organization = `/v1/organizations/${ORGANIZATION}`
  await manage('PUT', organization, { name: 'Acme' })
  await manage('PUT', `/v1/organizations/${ORGANIZATION}~europe`, { name: 'Acme Europe', parent: ORGANIZATION })
  await manage('PUT', '/v1/apps/invoices/manifest', { audiences: [RESOURCE] })
  await manage('PUT', '/v1/apps/contracts/manifest', {
    permissions: { 'contracts:archive': 'Archive contracts' },
    roles: { archivist: { name: 'Archivist', permissions: ['contracts:archive'] } },
    model: MODEL,
  })
  await manage('PUT', `/v1/clients/${APP}`, {
    app: 'invoices',
    redirect_uris: [REDIRECT_URI],
    token_endpoint_auth_method: 'none',
    scope: 'openid',
  })
  for (const [id, name] of Object.entries(USERS)) {
    await manage('PUT', `/v1/users/${id}`, { name, email: email(id), email_verified: true, password: PASSWORD })
    await manage('PUT', `${organization}/members/${id}`, { role: 'member', status: 'active' })
  }
  const { id: carol, ...person } = CONSOLE_PERSON
  await manage('PUT', `/v1/users/${carol}`, { ...person, email_verified: true, password: PASSWORD })
  await manage('POST', '/v1/role-grants', { app: 'portcullis', role: 'administrator', subject: `user:${carol}` })
  await manage('POST', `${organization}/role-grants`, { app: 'contracts', role: 'archivist', subject: 'user:bob' })
  const relate: World['relate'] = (change) => manage('POST', `${organization}/relationships`, change)
  const setGate = (enabled: boolean): Promise<void> =>
    manage('PUT', `${organization}/entitlements/${GATE}`, { value: enabled })
  // Bob reads invoice 2 as a member of accounting, which is part of finance.
  const nested = ['invoice:2#viewer@group:finance#member', 'group:finance#member@group:accounting#member', BOB_IN_GROUP]
  const contracts = ['contract:7#folder@folder:legal', 'folder:legal#viewer@user:alice', 'contract:7#signer@user:bob']
  await relate({ write: [ALICE_READS, ...nested, ...contracts] })
  await setGate(true)
  const [alice, bob] = await Promise.all(['alice', 'bob'].map((id) => userToken(issuer, id)))
  return { tokens: { alice: alice ?? '', bob: bob ?? '', admin }, relate, setGate }
}

const email = (user: string): string => `${user}@acme.example`

/** Whose tokens the demo gives out. */
export const PEOPLE: readonly string[] = [...Object.keys(USERS), 'admin']

export async function tokenOf(
  name: string,
  { issuer, adminSecret }: Pick<DemoStack, 'issuer' | 'adminSecret'>,
): Promise<string> {
  if (name !== 'admin') return userToken(issuer, name)
  return (await clientToken({ issuer, clientId: 'admin', clientSecret: adminSecret, scope: ADMIN_SCOPES })).access_token
}

/** As an application gets it: authorization code with PKCE, through the sign-in page. */
async function userToken(issuer: string, user: string): Promise<string> {
  const { tokens } = await signIn({
    issuer,
    clientId: APP,
    redirectUri: REDIRECT_URI,
    email: email(user),
    password: PASSWORD,
    resource: RESOURCE,
    organization: ORGANIZATION,
  })
  return tokens.access_token
}

async function send(
  origin: string,
  request: { token: string; method: string; path: string; body: object },
): Promise<void> {
  const { token, method, path, body } = request
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const response = await fetch(`${origin}${path}`, { method, headers, body: JSON.stringify(body) })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
}
