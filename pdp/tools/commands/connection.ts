/** Connects client commands to a running PDP: finds its address, and gets an access token. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Command } from 'commander'
import { SERVICE_SCOPES } from '../../identity/oauth/scopes.ts'
import { isJsonObject } from '../../shared/domain/json.ts'
import { didYouMean } from '../../shared/domain/nearest.ts'
import { fileProblem } from '../../shared/process/command/file-problem.ts'
import { isLoopback, urlHost } from '../../shared/process/listen.ts'
import { URL_DEFAULT } from './client-settings.ts'
import { CliError, problemError } from './errors.ts'

const REQUEST_TIMEOUT_MS = 30_000
const RETRIES_MAX = 3
export type ConnectionOptions = {
  readonly url?: string
  readonly tokenFile?: string
  readonly clientId?: string
  readonly clientSecretFile?: string
  readonly organization?: string
  readonly json?: boolean
}
export type Sent = {
  readonly method: string
  /** The path, percent-encoded. */
  readonly path: string
  readonly body?: unknown
  readonly lines?: { readonly stream: AsyncIterable<Uint8Array>; readonly type: string }
  readonly accept?: string
  readonly headers?: { readonly [name: string]: string }
}
export type Connection = {
  readonly organization: string | null
  /** True if the token was given, false if it is requested for a client. */
  readonly hasGivenToken: boolean
  /**
   * Throws CliError with the PDP's message unless the answer is a success. If a write needs more scopes than the command requested, it
   * requests a token with these scopes, and prints a note.
   */
  send(request: Sent): Promise<Response>
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
  { io, scope, bind }: { readonly io: Pick<NodeJS.Process, 'env' | 'stderr'> } & Asked,
): Promise<Connection> {
  if (options.organization === '') throw new CliError('--organization is empty: give the id of an organization')
  const { env } = io
  const url = urlOf(options, env)
  const given = secretOf(env, 'PORTCULLIS_TOKEN', { option: '--token-file', file: options.tokenFile })
  let token = given ?? (await accessToken(options, { env, scope, bind }))
  let held = scope
  const widened = async ({ status, headers }: Response): Promise<boolean> => {
    const more =
      status === 403 && given === null ? namedScopes(headers).filter((one) => !held.split(' ').includes(one)) : []
    if (more.length === 0) return false
    const wider = await clientToken(url, options, { env, scope: [held, ...more].join(' '), bind }).catch(() => null)
    if (wider === null) return false
    io.stderr.write(`This also needs ${more.join(' ')}: asked for a token with it.\n`)
    token = wider
    held = [held, ...more].join(' ')
    return true
  }
  const refused = async (response: Response): Promise<CliError> => {
    const problem: unknown = await response.json().catch(() => null)
    const isUnknown = isJsonObject(problem) && problem.code === 'organization_unknown'
    const meant = isUnknown ? await meantOrganization(url, options, { env, token }) : ''
    const detail = isUnknown ? { detail: `${problem.detail}${meant}` } : {}
    return problemError(response.status, isJsonObject(problem) ? { ...problem, ...detail } : problem)
  }
  return {
    organization: options.organization ?? null,
    hasGivenToken: given !== null,
    async send(request) {
      const response = await send({ ...request, url, token })
      if (response.ok) return response
      const isRepeatable = request.lines === undefined
      if (!isRepeatable || !(await widened(response))) throw await refused(response)
      const again = await send({ ...request, url, token })
      if (again.ok) return again
      throw await refused(again)
    },
  }
}

/** The scopes that a token would need, from the challenge (RFC 6750 section 3). */
const namedScopes = (headers: Headers): readonly string[] =>
  /error="insufficient_scope".* scope="([^"]+)"/.exec(headers.get('www-authenticate') ?? '')?.[1]?.split(' ') ?? []

type Asked = { readonly scope: string; readonly bind: boolean }
type TokenDeps = Asked & { readonly env: NodeJS.ProcessEnv; readonly resource?: string }

/** The URL of the PDP. Throws CliError for a text that is no origin, and for plain text beyond this machine. */
export const urlOf = (options: ConnectionOptions, env: NodeJS.ProcessEnv): string =>
  options.url === undefined
    ? baseUrl('PORTCULLIS_URL', env.PORTCULLIS_URL ?? URL_DEFAULT)
    : baseUrl('--url', options.url)

/** A token of a client. A client with only the write scope gets this scope in order to read, too. */
export async function accessToken(options: ConnectionOptions, deps: TokenDeps): Promise<string> {
  const { env, bind } = deps
  const url = urlOf(options, deps.env)
  try {
    return await clientToken(url, options, deps)
  } catch (err) {
    const wider = deps.scope.replace(/^(?!relationships|decisions|audit|events)([a-z]+):read$/, '$1:write')
    if (!(err instanceof CliError) || !/invalid_scope/.test(err.message) || wider === deps.scope) throw err
    return clientToken(url, options, {
      env,
      bind,
      ...(deps.resource === undefined ? {} : { resource: deps.resource }),
      scope: wider,
    })
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
  const secret = readTextOf(path)
  if (secret === '') throw new CliError(`${from} names an empty file: ${path}`)
  return secret
}

function readTextOf(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (err) {
    throw new CliError(fileProblem(path, err), { cause: err })
  }
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
  const organization = bind && options.organization !== undefined ? { organization: options.organization } : {}
  const form = new URLSearchParams({
    grant_type: 'client_credentials',
    ...(scope === '' ? {} : { scope }),
    ...(resource === undefined ? {} : { resource }),
    ...organization,
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

/** A hint with the organization that was probably meant, among the first that the caller may see; empty if none is similar. */
async function meantOrganization(
  url: string,
  options: ConnectionOptions,
  { env, token }: { readonly env: NodeJS.ProcessEnv; readonly token: string | null },
): Promise<string> {
  const { organization, ...unbound } = options
  if (organization === undefined) return ''
  try {
    const own = await accessToken(unbound, { env, scope: 'directory:read', bind: false }).catch(() => token)
    if (own === null) return ''
    const found = await send({
      url,
      token: own,
      method: 'GET',
      path: `/v1/organizations?page_size=${ORGANIZATIONS_MAX}`,
    })
    const { items } = (await found.json()) as { readonly items: readonly { readonly id: string }[] }
    return didYouMean(
      organization,
      items.map(({ id }) => id),
    )
  } catch {
    // Without the hint, the error that follows says enough.
    return ''
  }
}

/** The advice for an error of the token endpoint. `secretFile`: the file in which we found the secret, if nobody gave one. */
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
  const local = isLoopback(urlHost(new URL(url)))
  const path = localSecretFile(env)
  try {
    if (local && id === 'admin') return readFileSync(path, 'utf8').trim()
  } catch {
    // reported below
  }
  const where =
    local && id === 'admin'
      ? [
          `or run this in the folder in which portcullis-pdp serve was started: ${path} holds the secret there (PORTCULLIS_DATA_DIR names another folder)`,
        ]
      : []
  const lines = [
    `the secret of client ${id} is not known: set PORTCULLIS_CLIENT_SECRET or --client-secret-file`,
    ...where,
  ]
  throw new CliError(lines.join('\n  '))
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

/** The answer to GET; null where nothing is there. Throws CliError. */
export async function find(connection: Connection, path: string): Promise<{ readonly [name: string]: unknown } | null> {
  try {
    const found: unknown = await (await connection.send({ method: 'GET', path })).json()
    return isJsonObject(found) ? found : null
  } catch (err) {
    if (err instanceof CliError && err.status === 404) return null
    throw err
  }
}

/** Throws CliError if there is no answer. Retries an answer of 503, unless the request streams its body. */
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
  // The gRPC port, next to the HTTP port, speaks only HTTP/2.
  if (err.name === 'HTTPParserError')
    return 'what listens there does not speak HTTP/1.1. Is this the gRPC port? Give the HTTP port, which is 8080 by default'
  return err.cause instanceof Error ? reasonOf(err.cause) : err.message || err.name
}
