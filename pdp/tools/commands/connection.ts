/** Connects client commands to a running PDP: finds its address, and gets an access token. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Command } from 'commander'
import { SERVICE_SCOPES } from '../../identity/oauth/scopes.ts'
import { didYouMean } from '../../shared/base/nearest.ts'
import { isJsonObject } from '../../shared/domain/json.ts'
import { isLoopback, urlHost } from '../../shared/process/listen.ts'
import { CliError, problemError, textOf } from './errors.ts'

const URL_DEFAULT = 'http://127.0.0.1:8080'
const REQUEST_TIMEOUT_MS = 30_000
const RETRIES_MAX = 3

/** The environment variables of commands that connect to a running PDP. */
export const CLIENT_SETTINGS: readonly (readonly [name: string, meaning: string])[] = [
  ['PORTCULLIS_URL', `URL of the PDP (${URL_DEFAULT})`],
  ['PORTCULLIS_TOKEN', 'an access token, also as …_FILE; instead of the client below'],
  ['PORTCULLIS_CLIENT_ID', 'id of a client that has the scope that the command needs (admin)'],
  [
    'PORTCULLIS_CLIENT_SECRET',
    'secret of that client, also as …_FILE; on the machine of the PDP, the generated secret of admin is found',
  ],
]

export type ConnectionOptions = {
  readonly url?: string
  readonly tokenFile?: string
  readonly clientId?: string
  readonly clientSecretFile?: string
  readonly organization?: string
  readonly json?: boolean
}
type Sent = {
  readonly method: string
  /** The path, percent-encoded. */
  readonly path: string
  readonly body?: unknown
  readonly lines?: { readonly stream: AsyncIterable<Uint8Array>; readonly type: string }
  readonly accept?: string
  readonly headers?: { readonly [name: string]: string }
}
export type Connection = {
  /** True for a given token; false: it is requested for a client. */
  readonly hasGivenToken: boolean
  /**
   * Throws CliError with the PDP's message unless the answer is a success. If a write needs more scopes than the command requested, it
   * requests a token with these scopes, and prints a note.
   */
  send(request: Sent): Promise<Response>
  /** The JSON of the answer. Throws as `send` does. */
  ask<T>(request: Sent): Promise<T>
}

export function addConnectionOptions(
  command: Command,
  organization = 'id of the organization; by default the one of the client',
): Command {
  return command
    .option('--url <url>', 'URL of the PDP')
    .option('--token-file <file>', 'file with an access token')
    .option('--client-id <id>', 'id of the client whose token is requested')
    .option('--client-secret-file <file>', 'file with the secret of this client')
    .option('-o, --organization <id>', organization)
    .option('--json', 'print JSON')
}

/** `scope`: the scope that the command needs. Throws CliError. */
export async function connect(
  options: ConnectionOptions,
  { io, ...asked }: { readonly io: Pick<NodeJS.Process, 'env' | 'stderr'> } & Asked,
): Promise<Connection> {
  if (options.organization === '') throw new CliError('--organization is empty: give the id of an organization')
  const { env } = io
  const url = urlOf(options, env)
  const given = secretOf(env, 'PORTCULLIS_TOKEN', { option: '--token-file', file: options.tokenFile })
  let token = given ?? (await accessToken(options, { env, ...asked }))
  let held = asked.scope
  const widened = async ({ status, headers }: Response): Promise<boolean> => {
    const more =
      status === 403 && given === null ? namedScopes(headers).filter((one) => !held.split(' ').includes(one)) : []
    if (more.length === 0) return false
    const scope = [held, ...more].join(' ')
    const wider = await clientToken(url, options, { env, ...asked, scope }).catch(() => null)
    if (wider === null) return false
    io.stderr.write(`This also needs ${more.join(' ')}: asked for a token with it.\n`)
    token = wider
    held = scope
    return true
  }
  const refused = async (response: Response): Promise<CliError> => {
    const problem: unknown = await response.json().catch(() => null)
    const isUnknown = isJsonObject(problem) && problem.code === 'organization_unknown'
    const meant = isUnknown ? await meantOrganization(url, options, { env, token }) : ''
    const detail = isUnknown ? { detail: `${problem.detail}${meant}` } : {}
    return problemError(response.status, isJsonObject(problem) ? { ...problem, ...detail } : problem)
  }
  const sendOrThrow = async (request: Sent): Promise<Response> => {
    const response = await send({ ...request, url, token })
    if (response.ok) return response
    const isRepeatable = request.lines === undefined
    if (!isRepeatable || !(await widened(response))) throw await refused(response)
    const again = await send({ ...request, url, token })
    if (again.ok) return again
    throw await refused(again)
  }
  return {
    hasGivenToken: given !== null,
    send: sendOrThrow,
    async ask<T>(request: Sent) {
      return (await (await sendOrThrow(request)).json()) as T
    },
  }
}

/** The path of an organization, percent-encoded. Throws CliError. */
export function organizationPath({ organization }: ConnectionOptions): string {
  if (organization === undefined) throw new CliError('name the organization with --organization')
  return `/v1/organizations/${encodeURIComponent(organization)}`
}

/** The scopes that the challenge demands (RFC 6750 section 3). */
const namedScopes = (headers: Headers): readonly string[] =>
  /error="insufficient_scope".* scope="([^"]+)"/.exec(headers.get('www-authenticate') ?? '')?.[1]?.split(' ') ?? []

/** `bind`: the token is for the organization of the options alone. */
type Asked = { readonly scope: string; readonly bind?: true }
type TokenDeps = Asked & { readonly env: NodeJS.ProcessEnv; readonly resource?: string }

/** The URL of the PDP. Throws CliError for a text that is no origin, and for plain text beyond this machine. */
export const urlOf = (options: ConnectionOptions, env: NodeJS.ProcessEnv): string =>
  options.url === undefined
    ? baseUrl('PORTCULLIS_URL', env.PORTCULLIS_URL ?? URL_DEFAULT)
    : baseUrl('--url', options.url)

/** A token of a client. A client with only the write scope gets this scope in order to read, too. */
export async function accessToken(options: ConnectionOptions, deps: TokenDeps): Promise<string> {
  const url = urlOf(options, deps.env)
  try {
    return await clientToken(url, options, deps)
  } catch (err) {
    const wider = deps.scope.replace(/^(?!relationships|decisions|audit|events)([a-z]+):read$/, '$1:write')
    if (!(err instanceof CliError) || !/invalid_scope/.test(err.message) || wider === deps.scope) throw err
    return clientToken(url, options, { ...deps, scope: wider })
  }
}

/** `from`: the option or variable of the text, for the message. */
function baseUrl(from: string, text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:') || url.origin !== text.replace(/\/$/, ''))
    throw new CliError(`${from} must be an origin such as https://pdp.example.com, not ${JSON.stringify(text)}`)
  if (url.protocol === 'http:' && !isLoopback(urlHost(url)))
    throw new CliError(
      `${from}: ${url.origin} would send secrets in plain text: use https, or http on a loopback address`,
    )
  return url.origin
}

/** The secret. `file`: the path from `option`. Throws CliError, naming the option or variable, if it is empty or cannot be read. */
function secretOf(
  env: NodeJS.ProcessEnv,
  name: string,
  { option, file }: { readonly option: string; readonly file: string | undefined },
): string | null {
  const path = file ?? env[`${name}_FILE`]
  const from = file === undefined ? `${name}_FILE` : option
  if (path === '') throw new CliError(`${from} is set but empty`)
  if (path === undefined && env[name] === '') throw new CliError(`${name} is set but empty`)
  if (path === undefined) return env[name] ?? null
  const secret = textOf(path).trim()
  if (secret === '') throw new CliError(`${from} names an empty file: ${path}`)
  return secret
}

/** A token by client credentials (RFC 6749 section 4.4). */
async function clientToken(
  url: string,
  options: ConnectionOptions,
  { env, scope, bind, resource }: TokenDeps,
): Promise<string> {
  const id = options.clientId ?? env.PORTCULLIS_CLIENT_ID ?? 'admin'
  const given = secretOf(env, 'PORTCULLIS_CLIENT_SECRET', {
    option: '--client-secret-file',
    file: options.clientSecretFile,
  })
  const secret = given ?? localAdminSecret(url, id, env)
  const form = new URLSearchParams({
    grant_type: 'client_credentials',
    ...(scope === '' ? {} : { scope }),
    ...(resource === undefined ? {} : { resource }),
    ...(bind === true && options.organization !== undefined && { organization: options.organization }),
  })
  // RFC 6749 section 2.3.1: id and secret are form-encoded before they are joined.
  const [user, password] = [id, secret].map((text) => new URLSearchParams({ v: text }).toString().slice(2))
  const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
  const response = await reach(url, '/oauth/token', { method: 'POST', body: form, headers: { authorization } })
  const body: unknown = await response.json().catch(() => null)
  if (response.ok && isJsonObject(body) && typeof body.access_token === 'string') return body.access_token
  if (isJsonObject(body) && String(body.error_description).startsWith('organization is not one'))
    throw new CliError(
      `there is no organization ${options.organization}, or client ${id} may not act in it${await meantOrganization(url, options, { env, token: null })}`,
    )
  const said = isJsonObject(body) ? [body.error, body.error_description].filter((text) => typeof text === 'string') : []
  const hint = isJsonObject(body) ? hintOf(body, { url, secretFile: given === null ? localSecretFile(env) : null }) : ''
  throw new CliError(
    `client ${id} got no token: ${said.join(': ') || `status ${response.status}. Is ${url} a PDP?`}${hint}`,
  )
}

const ORGANIZATIONS_MAX = 1_000

/** A hint at the organization that was probably meant, among the first that the caller may see; empty: none is similar. */
async function meantOrganization(
  url: string,
  options: ConnectionOptions,
  { env, token }: { readonly env: NodeJS.ProcessEnv; readonly token: string | null },
): Promise<string> {
  const { organization, ...unbound } = options
  if (organization === undefined) return ''
  try {
    const own = await accessToken(unbound, { env, scope: 'directory:read' }).catch(() => token)
    if (own === null) return ''
    const path = `/v1/organizations?page_size=${ORGANIZATIONS_MAX}`
    const found = await send({ url, token: own, method: 'GET', path })
    const { items } = (await found.json()) as { readonly items: readonly { readonly id: string }[] }
    const ids = items.map(({ id }) => id)
    return didYouMean(organization, ids)
  } catch {
    // The error that follows is enough without the hint.
    return ''
  }
}

/** Advice about an error of the token endpoint. `secretFile`: the file of the secret that we found, if none was given. */
function hintOf(
  { error, scope }: { readonly [name: string]: unknown },
  { url, secretFile }: { readonly url: string; readonly secretFile: string | null },
): string {
  if (error === 'temporarily_unavailable') return `. The log of the PDP at ${url} says why`
  if (error === 'invalid_scope' && typeof scope === 'string')
    return `, ${JSON.stringify(scope)}${didYouMean(scope, SERVICE_SCOPES)}`
  if (error !== 'invalid_client') return ''
  return secretFile === null
    ? '. Are its id and its secret right?'
    : `. The secret is from ${secretFile}: was this PDP started in another folder? Run this there`
}

const localSecretFile = (env: NodeJS.ProcessEnv): string => join(env.PORTCULLIS_DATA_DIR ?? '.data', 'admin-secret')

/** A PDP on this machine keeps its generated secret in its data directory. */
function localAdminSecret(url: string, id: string, env: NodeJS.ProcessEnv): string {
  const unknown = `the secret of client ${id} is not known: set PORTCULLIS_CLIENT_SECRET or --client-secret-file`
  if (id !== 'admin' || !isLoopback(urlHost(new URL(url)))) throw new CliError(unknown)
  const path = localSecretFile(env)
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    throw new CliError(
      `${unknown}\n  or run this in the folder in which portcullis-pdp serve was started: ${path} holds the secret there (PORTCULLIS_DATA_DIR names another folder)`,
    )
  }
}

async function send(request: Sent & { url: string; token: string }): Promise<Response> {
  const { url, token, method, path, body, lines, accept } = request
  const headers = {
    ...request.headers,
    authorization: `Bearer ${token}`,
    ...(accept === undefined ? {} : { accept }),
    ...(lines === undefined ? {} : { 'content-type': lines.type }),
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  }
  const content = lines === undefined ? (body === undefined ? null : JSON.stringify(body)) : lines.stream
  return reach(url, path, {
    method,
    headers,
    ...(content === null ? {} : { body: content }),
    ...(lines === undefined ? {} : { duplex: 'half' as const }),
  })
}

/** The answer to GET; null: there is nothing. Throws CliError. */
export async function find(connection: Connection, path: string): Promise<{ readonly [name: string]: unknown } | null> {
  try {
    const found = await connection.ask<unknown>({ method: 'GET', path })
    return isJsonObject(found) ? found : null
  } catch (err) {
    if (err instanceof CliError && err.status === 404) return null
    throw err
  }
}

/** Sends a request, again after 503 unless it streams its body. Throws CliError without an answer. */
async function reach(
  url: string,
  path: string,
  init: Parameters<typeof fetch>[1] & { readonly method: string },
): Promise<Response> {
  const streams = 'duplex' in init || init.method === 'GET'
  for (let retries = 0; ; retries += 1) {
    try {
      const signal = streams ? {} : { signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) }
      const response = await fetch(`${url}${path}`, { redirect: 'error', ...init, ...signal })
      if (response.status !== 503 || 'duplex' in init || retries === RETRIES_MAX) return response
      await response.body?.cancel()
    } catch (err) {
      throw new CliError(`${url} cannot be reached: ${reasonOf(err)}`, { cause: err })
    }
    await delay(200 * 2 ** retries)
  }
}

function reasonOf(err: unknown): string {
  if (!(err instanceof Error)) return String(err)
  if ('code' in err && err.code === 'ECONNREFUSED')
    return 'nothing listens there. Is the PDP running? Try: portcullis doctor'
  // The port is probably the gRPC port, next to the HTTP port, which understands only HTTP/2.
  if (err.name === 'HTTPParserError')
    return 'what listens there does not speak HTTP/1.1. Is this the gRPC port? Give the HTTP port, which is 8080 by default'
  return err.cause instanceof Error ? reasonOf(err.cause) : err.message || err.name
}
