/**
 * `npm run bench -- pdp [SECONDS]`: a PDP that gets ten times what it can answer, most of it from one organization and one
 * client among fifty normal clients; and how long its callers wait while PostgreSQL is frozen.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { grpcClient } from '../../consistency/history/grpc.ts'
import { clientToken } from '../../support/sign-in.ts'
import { type BenchPdp, patiently, startBenchPdp } from '../sidecar/pdp.ts'
import { besides, figures, floodApart, type Measured, PERMISSIONS, rate, type Token } from './load.ts'

const ORGANIZATIONS = 25
const CLIENTS_PER_ORGANIZATION = 2
const SECRET = 'bench-client-secret-of-no-value-anywhere'
const NORMAL_PAUSE_MS = 100
/** Questions that are open all the time: enough to keep the PDP busy, and ten times what it has room for. */
export const ENOUGH = 512
export const TEN_FOLD = 20_480
const ROUNDS = 3
const FROZEN_MS = 10_000
/** Until the flood is under way. */
const HTTP_AFTER_MS = 1_000

export async function bench([seconds = '4']: readonly string[]): Promise<void> {
  const pdp = await startBenchPdp()
  const client = grpcClient(pdp.grpcAddress)
  try {
    const ms = Number(seconds) * 1_000
    const { greedy, normal } = await seed(pdp)
    const askers = normal.map((token) => ({ ...token, client }))
    const normally = (): Promise<Measured> => besides(askers, { ms, pauseMs: NORMAL_PAUSE_MS })
    const flood = (open: number): Promise<Measured> =>
      floodApart({ address: pdp.grpcAddress, tokens: greedy, open, ms })
    await flood(ENOUGH)
    for (let round = 0; round < ROUNDS; round += 1) {
      const alone = await normally()
      const enough = await flood(ENOUGH)
      const [many, others, http] = await Promise.all([flood(TEN_FOLD), normally(), besideHttp(pdp, greedy)])
      console.log(
        [
          `greedy with ${ENOUGH} open: ${rate(enough, ms)}`,
          `  with ${TEN_FOLD}: ${rate(many, ms)}`,
          `  the greedy client over HTTP meanwhile: ${http}`,
          `  ${askers.length} normal clients alone: ${figures(alone)}`,
          `  beside the greedy: ${figures(others)}`,
        ].join('\n'),
      )
    }
    await freeze(pdp, normal[0]?.token ?? '')
  } finally {
    client.close()
    await pdp.stop()
  }
}

const idOf = (organization: number, client: number): string => `bench-${organization}-${client}`

/** `greedy`: a client of an organization of its own, and one among the clients of another. */
export async function seed(
  pdp: BenchPdp,
): Promise<{ readonly greedy: readonly Token[]; readonly normal: readonly Token[] }> {
  const tokens: Token[] = []
  for (let o = 0; o <= ORGANIZATIONS; o += 1) {
    const organization = `org${o}`
    await pdp.manage('PUT', `/v1/organizations/${organization}`, { name: organization })
    for (let c = 0; c < (o === 1 ? CLIENTS_PER_ORGANIZATION + 1 : CLIENTS_PER_ORGANIZATION); c += 1) {
      const body = { organization, grant_types: ['client_credentials'], client_secret: SECRET }
      await pdp.manage('PUT', `/v1/clients/${idOf(o, c)}`, body)
      const grant = await patiently(() =>
        clientToken({ issuer: pdp.issuer, clientId: idOf(o, c), clientSecret: SECRET }),
      )
      tokens.push({ organization, token: grant.access_token })
    }
    const write = [`invoice:1#viewer@service:${idOf(o, 0)}`]
    await pdp.manage('POST', `/v1/organizations/${organization}/relationships`, { write })
  }
  // The clients of org0 and the first of org1; the second of org0 does not ask.
  return { greedy: [tokens[0], tokens[2]].filter((one) => one !== undefined), normal: tokens.slice(3) }
}

export type Reply = { readonly status: number; readonly retryAfter: string | null; readonly ms: number }

export async function decideByHttp({ issuer }: BenchPdp, token: string): Promise<Reply> {
  return timed(() =>
    fetch(`${issuer}/oauth/decisions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ permissions: PERMISSIONS }),
    }),
  )
}

async function timed(send: () => Promise<Response>): Promise<Reply> {
  const startedMs = performance.now()
  const response = await send()
  await response.arrayBuffer()
  const retryAfter = response.headers.get('retry-after')
  return { status: response.status, retryAfter, ms: performance.now() - startedMs }
}

async function besideHttp(pdp: BenchPdp, [greedy]: readonly Token[]): Promise<string> {
  await delay(HTTP_AFTER_MS)
  const replies = await Promise.all(Array.from({ length: 100 }, () => decideByHttp(pdp, greedy?.token ?? '')))
  return describe(replies)
}

function describe(replies: readonly Reply[]): string {
  const kinds = Map.groupBy(
    replies,
    ({ status, retryAfter }) => `${status}${retryAfter === null ? '' : ' Retry-After'}`,
  )
  return [...kinds]
    .map(([kind, all]) => `${all.length} × ${kind}, longest ${Math.max(...all.map(({ ms }) => ms)).toFixed(0)} ms`)
    .join('; ')
}

/** SIGSTOP for the postmaster and all its processes, as a frozen machine would look. */
async function freeze(pdp: BenchPdp, token: string): Promise<void> {
  const [first = ''] = readFileSync(join(pdp.dataDirectory, 'postgres', 'postmaster.pid'), 'utf8').split('\n')
  const children = execFileSync('ps', ['--ppid', first, '-o', 'pid='], { encoding: 'utf8' }).trim().split(/\s+/)
  const pids = [first, ...children].map(Number)
  const asked: readonly (readonly [string, () => Promise<Reply>])[] = [
    ['a decision', () => decideByHttp(pdp, token)],
    ['readiness', () => timed(() => fetch(`${pdp.operationsUrl}/readyz`))],
    [
      'a token',
      () =>
        timed(() =>
          fetch(`${pdp.issuer}/oauth/token`, {
            method: 'POST',
            body: new URLSearchParams({
              grant_type: 'client_credentials',
              client_id: idOf(2, 0),
              client_secret: SECRET,
            }),
          }),
        ),
    ],
    ['a read of management', () => timed(() => fetch(`${pdp.issuer}/v1/organizations`, { headers: bearer(token) }))],
  ]
  for (const pid of pids) process.kill(pid, 'SIGSTOP')
  try {
    const endMs = performance.now() + FROZEN_MS
    const lines = await Promise.all(
      asked.map(async ([name, send]) => {
        const replies: Reply[] = []
        while (performance.now() < endMs) {
          replies.push(await send())
          await delay(NORMAL_PAUSE_MS)
        }
        return `  ${name}: first after ${replies[0]?.ms.toFixed(0)} ms; ${describe(replies)}`
      }),
    )
    console.log(['PostgreSQL frozen:', ...lines].join('\n'))
  } finally {
    for (const pid of pids) process.kill(pid, 'SIGCONT')
  }
  const startedMs = performance.now()
  while ((await decideByHttp(pdp, token)).status !== 200) await delay(10)
  console.log(`  thawed: a decision again after ${(performance.now() - startedMs).toFixed(0)} ms`)
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
