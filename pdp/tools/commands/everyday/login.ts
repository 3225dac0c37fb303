/** `login`, `logout`, `whoami` and `token`: a person's sign-in by the device flow (RFC 8628), and tokens for other programs. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Command } from 'commander'
import type { JsonMembers } from '../../../shared/base/json-text.ts'
import { jsonOr } from '../command-line.ts'
import { accessToken, addConnectionOptions, type ConnectionOptions, urlOf } from '../connection.ts'
import { CliError, type Run } from '../errors.ts'
import { table } from './print.ts'
import { forgetLogin, loginFile, readLogin, readLogins, type SavedLogin, saveLogin } from './saved-login.ts'

/** The client of `login`, which `setup` makes. */
export const CLIENT = 'portcullis-cli'
export const LOGIN_SCOPES = 'openid profile email offline_access'
const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code'
const REQUEST_TIMEOUT_MS = 30_000
/** A token that expires sooner is renewed first. */
const SPARE_MS = 30_000

type Options = ConnectionOptions & { readonly scope?: string; readonly resource?: string }
type Answered = { readonly ok: boolean; readonly status: number; readonly body: JsonMembers }
type Invocation = { readonly options: Options; readonly io: NodeJS.Process }

export function addLoginCommands(program: Command, io: NodeJS.Process, run: Run): void {
  program
    .command('login')
    .description('Sign in as a person, in a browser on any device.')
    .option('--url <url>', 'URL of the PDP')
    .option('--client-id <id>', `a public client with the device flow (${CLIENT})`)
    .option('--scope <scopes>', `scopes to ask for (${LOGIN_SCOPES})`)
    .option('--resource <uri>', 'the resource that the tokens are for, as in the route file (the PDP itself)')
    .option('-o, --organization <id>', 'the organization; without it, a person in several is asked')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `\nThe client is made once: by portcullis setup, or portcullis client put ${CLIENT} --public --device --scope "${LOGIN_SCOPES}"`,
    )
    .action((options: Options) => run(() => login({ options, io })))
  program
    .command('logout')
    .description('End the sign-in and forget its tokens.')
    .option('--url <url>', 'URL of the PDP; by default that of the last sign-in')
    .option('--json', 'print JSON')
    .action((options: Options) => run(() => logout({ options, io })))
  program
    .command('whoami')
    .description('Print who is signed in.')
    .option('--url <url>', 'URL of the PDP')
    .option('--json', 'print JSON')
    .action((options: Options) => run(() => whoami({ options, io })))
  addConnectionOptions(program.command('token').description('Print an access token: of the sign-in, else of a client.'))
    .option('--scope <scopes>', 'scopes of a client’s token')
    .option('--resource <uri>', 'the resource that a client’s token is for')
    .addHelpText(
      'after',
      '\nExample:\n  curl -H "Authorization: Bearer $(portcullis token --client-id admin --scope directory:read)" http://127.0.0.1:8080/v1/users',
    )
    .action((options: Options) => run(() => token({ options, io })))
}

/** The registration of this client: no secret, but a refresh token. */
export const loginClient = (scope: string): object => ({
  client_name: 'Portcullis command line',
  scope,
  token_endpoint_auth_method: 'none',
  grant_types: [DEVICE, 'refresh_token'],
})

const fileOf = (io: NodeJS.Process): string => loginFile(io.env, io.platform)

async function read(response: Response): Promise<Answered> {
  const body: unknown = await response.json().catch(() => null)
  const { ok, status } = response
  return { ok, status, body: typeof body === 'object' && body !== null ? { ...body } : {} }
}

async function post(url: string, path: string, form: { readonly [name: string]: string }): Promise<Answered> {
  try {
    const response = await fetch(`${url}${path}`, {
      method: 'POST',
      redirect: 'error',
      body: new URLSearchParams(form),
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    })
    return await read(response)
  } catch (err) {
    throw new CliError(`${url} cannot be reached. Is the PDP running? Try: portcullis doctor`, { cause: err })
  }
}

const said = ({ error, error_description }: JsonMembers): string =>
  [error, error_description].filter((text) => typeof text === 'string').join(': ') || 'no answer'

/** The refusal of a request with what was saved: another sign-in is of no use while the PDP is away. */
function refusalOf({ status, body }: Answered): CliError {
  if (status === 401 || body.error === 'invalid_grant')
    return new CliError(`the sign-in has ended (${said(body)}). Sign in again with: portcullis login`)
  return new CliError(
    status >= 500 || status === 429
      ? `the PDP answered with status ${status}. Try again later`
      : `the PDP answered with status ${status} (${said(body)})`,
  )
}

async function login({ options, io }: Invocation): Promise<void> {
  const url = urlOf(options, io.env)
  const { clientId = CLIENT, scope = LOGIN_SCOPES, resource, organization } = options
  const { ok, body } = await post(url, '/oauth/device_authorization', {
    client_id: clientId,
    scope,
    ...(resource === undefined ? {} : { resource }),
    ...(organization === undefined ? {} : { organization }),
  })
  if (!ok || typeof body.device_code !== 'string')
    throw new CliError(
      `the sign-in did not begin: ${said(body)}\n${
        body.error === 'invalid_target' && resource !== undefined
          ? `${resource} is not the audience of an app. Give the resource of your route file; portcullis setup declares it`
          : `make the client with: portcullis client put ${clientId} --public --device --scope "${scope}"`
      }`,
    )
  io.stderr.write(
    `Open ${body.verification_uri_complete ?? body.verification_uri} and confirm the code ${body.user_code}\n`,
  )
  const saved = await poll({ url, clientId, deviceCode: body.device_code, begun: body })
  saveLogin(fileOf(io), saved)
  io.stdout.write(jsonOr(options, { url, client_id: clientId }, `Signed in at ${url}\n`))
}

/** Polls for the token, more slowly when asked to (RFC 8628 section 3.5). */
async function poll({
  url,
  clientId,
  deviceCode,
  begun,
}: {
  url: string
  clientId: string
  deviceCode: string
  begun: JsonMembers
}): Promise<SavedLogin> {
  const endMs = performance.now() + Number(begun.expires_in ?? 600) * 1_000
  let waitMs = Number(begun.interval ?? 5) * 1_000
  while (performance.now() < endMs) {
    await delay(waitMs)
    const { ok, body } = await post(url, '/oauth/token', {
      grant_type: DEVICE,
      device_code: deviceCode,
      client_id: clientId,
    })
    if (ok) return savedOf(body, { url, clientId, refreshToken: null })
    if (body.error === 'slow_down') waitMs += 5_000
    else if (body.error !== 'authorization_pending') throw new CliError(`the sign-in failed: ${said(body)}`)
  }
  throw new CliError('the sign-in was not confirmed in time')
}

function savedOf(body: JsonMembers, before: Pick<SavedLogin, 'url' | 'clientId' | 'refreshToken'>): SavedLogin {
  if (typeof body.access_token !== 'string') throw new CliError('the PDP answered without a token')
  return {
    ...before,
    accessToken: body.access_token,
    expiresAtMs: Date.now() + Number(body.expires_in ?? 0) * 1_000,
    refreshToken: typeof body.refresh_token === 'string' ? body.refresh_token : before.refreshToken,
  }
}

/** The token of one PDP never goes to another. Throws CliError. */
function loginFor({ options, io }: Invocation): SavedLogin | null {
  const isNamed = options.url !== undefined || io.env.PORTCULLIS_URL !== undefined
  const url = isNamed ? urlOf(options, io.env) : null
  const saved = readLogin(fileOf(io), url)
  const others = readLogins(fileOf(io)).map((login) => login.url)
  if (saved !== null || url === null || others.length === 0) return saved
  throw new CliError(
    `the sign-in is for ${others.join(' and ')}, not for ${url}. Sign in there with: portcullis login --url ${url}`,
  )
}

/** The present sign-in, renewed if expired. Throws CliError without a sign-in. */
async function current({ options, io }: Invocation): Promise<SavedLogin> {
  const saved = loginFor({ options, io })
  if (saved === null) throw new CliError('nobody is signed in. Sign in with: portcullis login')
  if (Date.now() < saved.expiresAtMs - SPARE_MS) return saved
  if (saved.refreshToken === null) throw new CliError('the sign-in has expired. Sign in again with: portcullis login')
  const form = { grant_type: 'refresh_token', refresh_token: saved.refreshToken, client_id: saved.clientId }
  const answered = await post(saved.url, '/oauth/token', form)
  if (!answered.ok) throw refusalOf(answered)
  const renewed = savedOf(answered.body, saved)
  saveLogin(fileOf(io), renewed)
  return renewed
}

async function logout({ options, io }: Invocation): Promise<void> {
  const saved = loginFor({ options, io })
  if (saved !== null) forgetLogin(fileOf(io), saved)
  const token = saved?.refreshToken ?? saved?.accessToken
  if (saved !== null && token !== undefined)
    await post(saved.url, '/oauth/revoke', { token, client_id: saved.clientId })
  io.stdout.write(jsonOr(options, {}, 'Signed out\n'))
}

async function whoami({ options, io }: Invocation): Promise<void> {
  const { url, accessToken: bearer } = await current({ options, io })
  const response = await fetch(`${url}/oauth/userinfo`, {
    redirect: 'error',
    headers: { authorization: `Bearer ${bearer}` },
  })
  const answered = await read(response)
  if (!answered.ok) throw refusalOf(answered)
  io.stdout.write(jsonOr(options, answered.body, table([answered.body], ['sub', 'name', 'email', 'org'])))
}

async function token({ options, io }: Invocation): Promise<void> {
  const named = options.clientId ?? io.env.PORTCULLIS_CLIENT_ID
  const { scope = '', resource } = options
  const deps = { env: io.env, scope, bind: true as const, ...(resource === undefined ? {} : { resource }) }
  // Without a sign-in, the command uses the folder's admin secret, like all commands.
  const isSignedIn = named === undefined && loginFor({ options, io }) !== null
  const found = isSignedIn ? (await current({ options, io })).accessToken : await accessToken(options, deps)
  io.stdout.write(jsonOr(options, { access_token: found }, `${found}\n`))
}
