/**
 * Clients without registration, whose id is the URL of a document about them (OAuth Client ID Metadata Document, draft 02). oidc-provider's
 * own feature is not used: it would take our own members, such as the client's scope, from the document.
 */
import { errors, Provider } from 'oidc-provider'
import type { Client, Directory, Queries, StoredClient } from '../../engine/store/directory.ts'
import { messageOf } from '../../shared/base/error-message.ts'
import type { GuardedPost } from '../../shared/base/guarded-post.ts'
import { isJsonObject, type JsonObject } from '../../shared/domain/json.ts'
import { isId } from '../../shared/domain/names.ts'
import type { Log } from '../../shared/process/log.ts'
import type { SharedAttempts } from '../limits/shared-attempts.ts'
import { DAY_SECONDS } from '../oauth/durations.ts'
import { PATHS } from '../oauth/paths.ts'
import { READ_AT, redirectIssue } from './client-metadata.ts'

/** The hosts with accepted documents, and the scopes that such clients may ask for. */
export type ClientDocumentSettings = { readonly hosts: ReadonlySet<string> | 'any'; readonly scope: string }
export type ClientDocuments = {
  /** `stored`: the client of the latest sign-in. Undefined: no such client. Throws InvalidClient when its document cannot be read. */
  find(id: string, stored: StoredClient | null): Promise<(Client & Pick<StoredClient, 'secretHash'>) | undefined>
  /** Stores the client after a person has agreed to it, so that management can see it and end its tokens. */
  register(id: string): Promise<void>
}

const DOCUMENT_BYTES_MAX = 16_384
const DEADLINE_MS = 3_000
const FETCHES_MAX = 20
const KEPT_SECONDS_MIN = 60
const KEPT_SECONDS = 3_600
const NAME_CHARACTERS_MAX = 100
const REDIRECTS_MAX = 50
const GRANTS: ReadonlySet<unknown> = new Set(['authorization_code', 'refresh_token'])
const METHODS: ReadonlySet<unknown> = new Set(['none', 'private_key_jwt'])
const CONTEXT = { actor: 'identity', requestId: '' }
/** Paths where a sign-in begins: only there a document is fetched. */
const BEGINS: ReadonlySet<string> = new Set([PATHS.authorize, PATHS.pushed])

/** For how long a sign-in goes on with its first version of the document: slightly longer than an interaction lives. */
const GOES_ON_SECONDS = 960

// `taken`: a person has the id, or a client that was deleted.
const KEPT = `
  select exists (select 1 from principal where id = $1 and (kind <> 'client' or deleted_at is not null)) as taken,
    (select payload from oidc_record where kind = 'ClientDocument' and id = $1 and expires_at > now() - make_interval(secs => $2::int)) as metadata`
const KEEP = `
  insert into oidc_record (kind, id, payload, expires_at)
  values ('ClientDocument', $1, $2::jsonb, now() + make_interval(secs => $3::int))
  on conflict (kind, id) do update set payload = excluded.payload, expires_at = excluded.expires_at`

type Deps = ClientDocumentSettings & {
  readonly sql: Queries
  readonly directory: Pick<Directory, 'client' | 'putClient'>
  readonly guard: Pick<GuardedPost, 'send'>
  /** Limits fetches for each host, in a window of a minute. */
  readonly turns: Pick<SharedAttempts, 'take'>
  readonly clock: () => number
  readonly log: Log
}

export function createClientDocuments(deps: Deps): ClientDocuments {
  const { hosts, scope, sql, directory, turns, clock } = deps
  const underWay = new Map<string, Promise<JsonObject>>()
  const seconds = (): number => Math.floor(clock() / 1_000)

  async function kept(id: string, lateSeconds: number): Promise<JsonObject | null> {
    const [row] = await sql.query<{ taken: boolean; metadata: JsonObject | null }>(KEPT, [id, lateSeconds])
    if (row?.taken === true) throw refused('a client of this id was removed here, or a person has it')
    return row?.metadata ?? null
  }

  async function fetched(id: string, host: string, isSignedIn: boolean): Promise<JsonObject> {
    const running = underWay.get(id)
    if (running !== undefined) return running
    if (underWay.size >= FETCHES_MAX || !(isSignedIn || (await turns.take(`client document of ${host}`, 1))))
      throw refused('there were too many requests; try again in a minute')
    const work = load(deps, id).then(async ({ members, keptSeconds }) => {
      const metadata = { ...members, [READ_AT]: seconds() }
      await sql.query(KEEP, [id, JSON.stringify(metadata), keptSeconds])
      return metadata
    })
    underWay.set(id, work)
    try {
      return await work
    } finally {
      underWay.delete(id)
    }
  }

  return {
    async find(id, stored) {
      const host = documentHost(id)
      if (host === null || !(hosts === 'any' || hosts.has(host))) return undefined
      const ctx = Provider.ctx
      const begins = ctx !== undefined && BEGINS.has(ctx.path)
      let metadata = await kept(id, begins ? 0 : GOES_ON_SECONDS)
      if (metadata === null && begins) {
        const isSignedIn = ctx.oidc?.session?.accountId !== undefined
        // If strangers use up a host's limit, a client that was here within a day continues with its stored document.
        metadata = await fetched(id, host, isSignedIn).catch((err: unknown) => {
          if (stored !== null && Number(stored.metadata[READ_AT]) > seconds() - DAY_SECONDS) return stored.metadata
          throw err
        })
      }
      metadata ??= begins ? null : (stored?.metadata ?? null)
      if (metadata === null) return undefined
      const known = stored ?? { id, app: null, organization: null, secretHash: null }
      return { ...known, metadata: { ...metadata, scope } }
    },
    async register(id) {
      const [metadata, stored] = await Promise.all([kept(id, GOES_ON_SECONDS), directory.client(id)])
      if (metadata === null || stored?.metadata[READ_AT] === metadata[READ_AT]) return
      await directory.putClient({ id, app: null, organization: null, metadata, secretHash: null }, CONTEXT)
    },
  }
}

/** The host, with a port unless 443, of a client id that is a document's URL (draft, section 3; no query); null: it is none. */
export function documentHost(id: string): string | null {
  const url = isId(id) && id.startsWith('https://') ? URL.parse(id) : null
  if (url === null || url.href !== id || url.pathname === '/' || url.username !== '' || url.password !== '') return null
  return url.search === '' && !/\/(?:%2e){1,2}(?:\/|$)/i.test(url.pathname) ? url.host : null
}

async function load({ guard, log }: Deps, id: string): Promise<{ members: JsonObject; keptSeconds: number }> {
  const headers = { accept: 'application/json' }
  let text: string
  let control: string | undefined
  try {
    const answer = await guard.send({
      method: 'GET',
      url: id,
      headers,
      deadlineMs: DEADLINE_MS,
      bytesMax: DOCUMENT_BYTES_MAX,
    })
    if (answer.status !== 200) throw new Error(`the answer is ${answer.status}`)
    if (answer.body === null) throw new Error(`it has more than ${DOCUMENT_BYTES_MAX} bytes`)
    text = answer.body.toString()
    control = answer.headers['cache-control']
  } catch (err) {
    // The caller does not get the reason, which could tell what this server can reach.
    log.warn({ event: 'client_document_failed', client_id: id, reason: messageOf(err) })
    throw refused('it cannot be read')
  }
  const age = Number(/(?:^|,)\s*max-age=(\d{1,9})\s*(?:,|$)/i.exec(control ?? '')?.[1] ?? KEPT_SECONDS)
  const keptSeconds = /no-store|no-cache/i.test(control ?? '') ? KEPT_SECONDS_MIN : age
  return {
    members: readDocument(id, text),
    keptSeconds: Math.min(Math.max(keptSeconds, KEPT_SECONDS_MIN), DAY_SECONDS),
  }
}

/** The metadata of a document, of which only known members are used. Throws InvalidClient. */
export function readDocument(id: string, text: string): JsonObject {
  const document = objectIn(text)
  if (document.client_id !== id) throw refused('its client_id is not its own URL')
  if ('client_secret' in document || 'client_secret_expires_at' in document) throw refused('it holds a client_secret')
  const {
    token_endpoint_auth_method: method = 'none',
    jwks,
    jwks_uri: uri,
    client_name: name,
    redirect_uris: redirects,
  } = document
  if (!METHODS.has(method)) throw refused('its token_endpoint_auth_method is neither none nor private_key_jwt')
  if (method === 'private_key_jwt' && isJsonObject(jwks) === (typeof uri === 'string'))
    throw refused('it must have one of jwks and jwks_uri')
  if (!isTexts(redirects) || redirects.length === 0 || redirects.length > REDIRECTS_MAX)
    throw refused(`its redirect_uris are not 1 to ${REDIRECTS_MAX} texts`)
  for (const uri of redirects) {
    const issue = redirectIssue(uri)
    if (issue !== null) throw refused(`its redirect_uri ${JSON.stringify(uri)} ${issue}`)
  }
  const grants = (Array.isArray(document.grant_types) ? document.grant_types : ['authorization_code']).filter((grant) =>
    GRANTS.has(grant),
  )
  if (!grants.includes('authorization_code')) throw refused('its grant_types lack authorization_code')
  const isShown = typeof name === 'string' && name.length <= NAME_CHARACTERS_MAX && !/^\s*$|\p{C}/u.test(name)
  return {
    ...(isShown ? { client_name: name } : {}),
    redirect_uris: redirects,
    grant_types: [...new Set(grants)],
    token_endpoint_auth_method: method,
    ...(method === 'private_key_jwt' && jwks !== undefined && { jwks }),
    ...(method === 'private_key_jwt' && uri !== undefined && { jwks_uri: uri }),
    application_type: redirects.every((uri) => uri.startsWith('https:')) ? 'web' : 'native',
  }
}

function objectIn(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text)
    if (isJsonObject(value)) return value
  } catch {
    // A text that is no JSON is refused below.
  }
  throw refused('it is not a JSON object')
}

const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string')

const refused = (why: string): Error =>
  new errors.InvalidClient(`the metadata document of the client is refused: ${why}`)
