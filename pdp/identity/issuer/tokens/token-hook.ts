/**
 * The token hook: an HTTP service that may add claims while a token is minted. The token is issued even if the hook fails:
 * it has a deadline, a size limit and a circuit breaker, failures are logged and counted, and reserved claims are ignored.
 */
import { createHmac, hash } from 'node:crypto'
import type { Queries, Sql } from '../../../engine/store/directory.ts'
import { lockJournal } from '../../../engine/store/journal-lock.ts'
import { createTenantPlaces } from '../../../engine/store/tenant-places.ts'
import { type Circuit, createCircuit } from '../../../shared/base/circuit-breaker.ts'
import { type MasterKeys, open, seal } from '../../../shared/base/encryption.ts'
import { type PostFetch, postJson } from '../../../shared/base/http-json.ts'
import type { WriteContext } from '../../../shared/domain/change.ts'
import { ENVIRONMENT } from '../../../shared/domain/journal.ts'
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts'
import type { Log } from '../../../shared/process/log.ts'
import type { AppendJournal } from '../append.ts'
import { HOOK_SEALED_AS } from '../keys/sealed-names.ts'

/** Claims that only the identity service may set (ARCHITECTURE.md section 6). */
export const RESERVED_CLAIMS = [
  'iss',
  'sub',
  'client_id',
  'jti',
  'scope',
  'org',
  'org_name',
  'org_role',
  'iat',
  'exp',
  'nbf',
  'aud',
  'cnf',
  'ent',
  'ent_ver',
  'typ',
  'roles',
  'permissions',
] as const
// Claims that are ignored: only the identity service says who acts, or may act, for whom (RFC 8693 sections 4.1 and 4.4).
const IGNORED: ReadonlySet<string> = new Set([...RESERVED_CLAIMS, 'act', 'may_act'])

export const HOOK_DEADLINE_MS = 1_000
export const HOOK_BYTES_MAX = 16_384
/** Resource servers parse what we sign, and not all of them limit the nesting. */
export const HOOK_DEPTH_MAX = 16
/** How many calls may run at once, in total and per tenant: so many tokens of one tenant leave the others their claims. */
const RUNNING_MAX = { all: 64, tenant: 32 }
const FAILURES_MAX = 5
const REST_MS = 10_000
const SETTINGS_AGE_MS = 1_000

export type HookOutcome = 'added' | 'failed' | 'skipped'
/** The request to the hook: facts about the token that is being minted. */
export type HookEvent = {
  readonly jti: string
  readonly client_id: string
  readonly sub: string
  readonly subject_type: 'user' | 'service'
  readonly aud: string
  readonly org: string | null
  readonly scope: string
  readonly grant_type: string
}
export type TokenHook = {
  /** The claims to add, without reserved ones; empty if there is no hook or it failed. Never throws, and ends by a deadline. */
  claims(event: HookEvent): Promise<JsonObject>
  /** The hook's settings. Each `configure` changes `version`. */
  read(over?: Queries): Promise<{ readonly url: string; readonly version: string } | null>
  /** Stores the hook; null removes it. `over`: an open transaction. Throws PdpError `store_unavailable`. */
  configure(hook: Settings | null, context: WriteContext, over?: Pick<Sql, 'transaction'>): Promise<void>
}
type Settings = { readonly url: string; readonly secret: string }

export function createTokenHook(deps: {
  readonly sql: Sql
  readonly appendJournal: AppendJournal
  readonly masterKeys: MasterKeys
  readonly fetch: PostFetch
  readonly clock: () => number
  readonly log: Log
  readonly onOutcome: (outcome: HookOutcome) => void
}): TokenHook {
  const { sql, appendJournal, clock, log, onOutcome } = deps
  const keys = () => deps.masterKeys.derive(HOOK_SEALED_AS)
  let held: { readonly settings: Settings | null; readonly readAtMs: number } | null = null
  let circuit = newCircuit(clock)
  const places = createTenantPlaces({ open: RUNNING_MAX })

  async function settings(): Promise<Settings | null> {
    if (held !== null && Math.abs(clock() - held.readAtMs) < SETTINGS_AGE_MS) return held.settings
    const row = await find(sql)
    const read = row && { url: row.url, secret: open(keys(), HOOK_SEALED_AS, row.sealed) }
    held = { settings: read, readAtMs: clock() }
    return read
  }

  function fail(reason: unknown): JsonObject {
    log.warn({ event: 'token_hook_failed', err: reason })
    onOutcome('failed')
    return {}
  }

  function skip(): JsonObject {
    onOutcome('skipped')
    return {}
  }

  async function asked(hook: Settings, event: HookEvent): Promise<JsonObject> {
    const settle = circuit.begin()
    if (settle === null) return skip()
    try {
      const claims = await ask(deps, hook, event)
      settle(true)
      onOutcome('added')
      return claims
    } catch (err) {
      settle(false)
      return fail(err)
    }
  }

  return {
    async claims(event) {
      try {
        const hook = await settings()
        return hook === null ? {} : await places.run(event.org, () => asked(hook, event)).catch(skip)
      } catch (err) {
        return fail(err)
      }
    },
    async read(over = sql) {
      const row = await find(over)
      return row && { url: row.url, version: hash('sha256', row.sealed) }
    },
    async configure(hook, context, over = sql) {
      const wanted = hook && { url: hook.url, sealed: seal(keys(), HOOK_SEALED_AS, hook.secret) }
      await over.transaction((tx) => store(tx, wanted, { appendJournal, context }))
      held = null
      circuit = newCircuit(clock)
    },
  }
}

const newCircuit = (clock: () => number): Circuit =>
  createCircuit({ failuresMax: FAILURES_MAX, restMs: REST_MS, restMsMax: REST_MS, clock })

type Row = { readonly url: string; readonly sealed: string }

async function find(sql: Queries): Promise<Row | null> {
  const [row] = await sql.query<Row>('select url, secret_sealed as sealed from token_hook')
  return row ?? null
}

async function store(
  tx: Queries,
  wanted: Row | null,
  { appendJournal, context }: { readonly appendJournal: AppendJournal; readonly context: WriteContext },
): Promise<void> {
  await lockJournal(tx, ENVIRONMENT)
  const hook = wanted ?? (await find(tx))
  if (hook === null) return
  const op = wanted === null ? 'delete' : 'write'
  await appendJournal(tx, ENVIRONMENT, [{ kind: 'token_hook', id: placeOf(hook.url), op }], context)
  await tx.query('delete from token_hook')
  if (wanted !== null)
    await tx.query('insert into token_hook (url, secret_sealed) values ($1, $2)', [wanted.url, wanted.sealed])
}

/** The URL for the log, without its query, which may contain a secret. */
function placeOf(text: string): string {
  const url = URL.parse(text)
  return url === null ? '' : url.origin + url.pathname
}

async function ask(
  { fetch, clock }: { readonly fetch: PostFetch; readonly clock: () => number },
  { url, secret }: Settings,
  event: HookEvent,
): Promise<JsonObject> {
  const body = JSON.stringify({ type: 'token.minting', token: event })
  const signedAt = Math.floor(clock() / 1_000)
  const signature = createHmac('sha256', secret).update(`${signedAt}.${body}`).digest('hex')
  const headers = { 'portcullis-signature': `t=${signedAt},v1=${signature}` }
  return parseClaims(
    await postJson({ fetch, url, headers, body, deadlineMs: HOOK_DEADLINE_MS, bytesMax: HOOK_BYTES_MAX }),
  )
}

function parseClaims(answer: unknown): JsonObject {
  const claims = typeof answer === 'object' && answer !== null && 'claims' in answer ? answer.claims : undefined
  if (!isJsonObject(claims)) {
    throw new Error('the token hook answered no object of claims')
  }
  if (isDeeper(claims, HOOK_DEPTH_MAX)) throw new Error(`the token hook answered more than ${HOOK_DEPTH_MAX} levels`)
  return Object.fromEntries(
    Object.entries(claims).filter(([name]) => !IGNORED.has(name) && !(name in Object.prototype)),
  )
}

/** True if the nesting exceeds the limit. It looks no deeper than that. */
function isDeeper(value: unknown, levelsMax: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levelsMax === 0 || Object.values(value).some((member) => isDeeper(member, levelsMax - 1))
}
