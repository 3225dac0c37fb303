/** What a PDP says about the world of `world.ts`, to compare with what another version said. */
import { isDeepStrictEqual } from 'node:util'
import { ask, isOfBearer } from './load.ts'
import {
  adminToken,
  apiOf,
  LOADER,
  ORGANIZATION,
  patiently,
  refreshed,
  SECRET,
  signInAnn,
  type Tokens,
} from './world.ts'

/** Answers by what was asked. */
export type Survey = { readonly [what: string]: unknown }

const organization = `/v1/organizations/${ORGANIZATION}`
const PATHS = [
  organization,
  `${organization}~europe`,
  `${organization}/members`,
  `${organization}/relationships`,
  `${organization}/entitlements`,
  `${organization}/role-grants`,
  `${organization}/changes`,
  '/v1/changes',
  '/v1/events',
  '/v1/users/ann',
  '/v1/users/ben',
  `/v1/clients/${LOADER}`,
  '/v1/clients/documents-app',
  '/v1/apps/documents/manifest',
]
const SUBJECTS = ['ann', 'ben', 'cleo', 'dan'].map((id) => ({ type: 'user', id }))
const QUESTIONS = [
  ...[1, 2, 3, 4].map((id) => ({ relation: 'viewer', resource: `document:${id}` })),
  { relation: 'documents:archive', resource: 'app:documents' },
  { relation: 'member', resource: `organization:${ORGANIZATION}` },
]

export async function survey(issuer: string): Promise<Survey> {
  const api = apiOf(issuer, await adminToken(issuer))
  const asker = apiOf(issuer, await adminToken(issuer, ORGANIZATION))
  const read = PATHS.map(async (path) => [path, withoutOwn(await api('GET', path))] as const)
  const asked = SUBJECTS.map(async (subject) => {
    const question = { subject, permissions: QUESTIONS, entitlements: ['feature.export', 'feature.import', 'seats'] }
    return [`decisions of ${subject.id}`, await asker('POST', '/oauth/decisions', question)] as const
  })
  return Object.fromEntries(await Promise.all([...read, ...asked]))
}

/** A log of changes without those that a PDP makes when it starts. */
function withoutOwn(body: unknown): unknown {
  if (!isRecord(body) || !('gap' in body) || !Array.isArray(body.items)) return body
  return body.items.filter((item) => !isRecord(item) || item.actor !== 'system')
}

/** What is missing or another one than before, in words. A later version may say more. */
export function differences(before: Survey, after: Survey): string[] {
  return Object.entries(before).flatMap(([what, said]) =>
    contains(after[what], said) ? [] : [`${what}: ${text(after[what])} instead of ${text(said)}`],
  )
}

const text = (value: unknown): string => String(JSON.stringify(value)).slice(0, 1_000)

function contains(value: unknown, part: unknown): boolean {
  if (Array.isArray(part))
    return Array.isArray(value) && value.length === part.length && part.every((one, at) => contains(value[at], one))
  if (!isRecord(part)) return isDeepStrictEqual(value, part)
  return isRecord(value) && Object.entries(part).every(([key, one]) => contains(value[key], one))
}

const isRecord = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Whether people and services get in, with what they had. `tokens` null: they have expired meanwhile. */
export async function credentials(issuer: string, tokens: Tokens | null): Promise<string[]> {
  const complaints: string[] = []
  const expect = (what: string, holds: boolean): void => {
    if (!holds) complaints.push(what)
  }
  const { access } = await patiently(() => signInAnn(issuer)).catch(() => ({ access: '' }))
  expect('ann cannot sign in', access !== '' && (await isActive(issuer, access)))
  const secret = Buffer.from(`${LOADER}:${SECRET}`).toString('base64')
  const { status } = await answered(() =>
    fetch(`${issuer}/oauth/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${secret}` },
      body: new URLSearchParams({ grant_type: 'client_credentials' }),
    }),
  )
  expect(`the secret of ${LOADER} gets ${status}`, status === 200)
  if (tokens === null) return complaints
  expect('an access token ended', await isActive(issuer, tokens.access))
  expect('a revoked access token is good again', !(await isActive(issuer, tokens.revokedAccess)))
  expect(
    'a revoked refresh token is good again',
    (await answered(() => refreshed(issuer, tokens.revokedRefresh))).status === 400,
  )
  return complaints
}

async function isActive(origin: string, token: string): Promise<boolean> {
  const { body } = await answered(() => ask(origin, token, 'document:1'))
  return isOfBearer(body)
}

/** Asks again while nobody can say. */
function answered<T extends { readonly status: number }>(send: () => Promise<T>): Promise<T> {
  return patiently(async () => {
    const answer = await send()
    if ([0, 429, 503].includes(answer.status)) throw new Error(`no answer: ${answer.status}`)
    return answer
  })
}
