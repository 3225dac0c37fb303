/** `setup`: creates in a PDP everything that a route file needs: organization, audience, trusted issuers, clients, a first person. */

import { createPublicKey, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Command } from 'commander'
import type { JsonMembers } from '../../../shared/base/json-text.ts'
import { nearestName } from '../../../shared/base/nearest.ts'
import { isJsonObject } from '../../../shared/domain/json.ts'
import { fileProblem } from '../../../shared/process/command/file-problem.ts'
import { addConnectionOptions, type Connection, type ConnectionOptions, connect, find, urlOf } from '../connection.ts'
import { CliError, type Run } from '../errors.ts'
import { get } from './finding.ts'
import { CLIENT, LOGIN_SCOPES, loginClient } from './login.ts'
import { readRouteFile, type SignInProvider, signInAddresses } from './route-file.ts'
import { trustedIssuers } from './trusted-issuers.ts'

const PASSWORD_BYTES = 12
const HELP = `
The route file says the audience (resource) and, in issuers, which other identity providers are trusted; in sign_in, the
client at which browsers sign in here. The command keeps what exists, but writes the trusted issuers again, so that the PDP reads their tokens as the sidecar does. Run it again
after each change of the route file.

Examples:
  portcullis setup acme                               # for portcullis.yaml
  portcullis setup acme --user alice@example.com      # and a person who can sign in, with a new password`

type Options = ConnectionOptions & { readonly app?: string; readonly user?: string }
type World = { readonly connection: Connection; readonly organization: string; readonly options: Options }
/** `what`, `said`: the thing and its name. `done`: whether it is new. */
type Made = { readonly what: string; readonly said: string; readonly done: 'created' | 'there' | 'written' }

export function addSetupCommand(program: Command, io: NodeJS.Process, run: Run): void {
  addConnectionOptions(
    program
      .command('setup')
      .description('Give a PDP what a route file needs: organization, audience, issuers, sign-in, a first person.')
      .argument('<organization>', 'id of the organization')
      .argument('[file]', 'the route file', 'portcullis.yaml')
      .option(
        '--user <address>',
        'a person who signs in with this e-mail address; the part before the @ becomes the id',
      )
      .option('--app <id>', 'the app whose audience it is; by default the first word of the host name')
      .addHelpText('after', HELP),
  ).action((organization: string, file: string, options: Options) => run(() => setUp(organization, file, options, io)))
}

async function setUp(organization: string, file: string, options: Options, io: NodeJS.Process): Promise<void> {
  const { resources, issuers, signIn, publicUrl } = readRouteFile(file)
  const person = options.user === undefined ? null : parsePerson(options.user)
  const scope = 'directory:write manifest:write issuers:write clients:write'
  const connection = await connect(options, { io, scope })
  const world = { connection, organization, options }
  const made = [await putOrganization(world)]
  for (const resource of resources) made.push(await putAudience(world, resource, resources[0]))
  for (const { issuer, document } of await trustedIssuers(issuers, { resources, fetch }))
    made.push(await putIssuer(world, issuer, document))
  // Only our own issuer: for another one, we cannot make the client there.
  const own = await ownIssuer(urlOf(options, io.env))
  for (const provider of signIn.filter(({ issuer }) => issuer === own))
    made.push(...(await putSignInClient(connection, { path: file, publicUrl }, provider)))
  if (person !== null) made.push(...(await putPerson(world, person)), await putLoginClient(world))
  io.stdout.write(options.json === true ? `${JSON.stringify(made, null, 2)}\n` : made.map(line).join(''))
}

const line = ({ what, said, done }: Made): string => `${what.padEnd(12)}  ${said}${done === 'there' ? ' (kept)' : ''}\n`

function parsePerson(address: string): { readonly id: string; readonly email: string } {
  const [, id] = /^([^@\s]+)@[^@\s]+$/.exec(address) ?? []
  if (id === undefined) throw new CliError(`--user must be an e-mail address, not ${JSON.stringify(address)}`)
  return { id, email: address }
}

const put = async ({ connection }: World, path: string, body: object): Promise<void> =>
  void (await connection.send({ method: 'PUT', path, body }))

async function putOrganization(world: World): Promise<Made> {
  const { organization: id } = world
  const path = `/v1/organizations/${encodeURIComponent(id)}`
  if ((await find(world.connection, path)) !== null) return { what: 'organization', said: id, done: 'there' }
  await put(world, path, { name: id })
  return { what: 'organization', said: id, done: 'created' }
}

/** Adds the resource to the app's manifest, the rest of which stays. `named`: the resource by which the app is named. */
async function putAudience(world: World, resource: string, named: string): Promise<Made> {
  const app = world.options.app ?? appOf(named)
  const path = `/v1/apps/${encodeURIComponent(app)}/manifest`
  const current = await find(world.connection, path)
  const { audiences, permissions, roles, model, actors } = current ?? {}
  const known = Array.isArray(audiences) ? audiences : []
  const said = `${app}, for the audience ${resource}`
  if (known.includes(resource)) return { what: 'app', said, done: 'there' }
  await put(world, path, { audiences: [...known, resource], permissions, roles, model, actors })
  return { what: 'app', said, done: current === null ? 'created' : 'written' }
}

function appOf(resource: string): string {
  const [word = ''] = (URL.parse(resource)?.hostname ?? '').split('.')
  if (!/^[a-z][a-z0-9-]*$/.test(word)) throw new CliError(`the resource ${resource} names no app: give it by --app`)
  return word
}

async function putIssuer(world: World, issuer: string, document: JsonMembers): Promise<Made> {
  const path = `/v1/trusted-issuers/${encodeURIComponent(issuer)}`
  // The route file does not name the issuer's transmitter, so the stored one stays, with its secret, which is not shown.
  const { ssf } = (await find(world.connection, path)) ?? {}
  await put(world, path, ssf === undefined ? document : { ...document, ssf })
  return { what: 'issuer', said: `${issuer}, whose subjects are user:~${document.subject_prefix}…`, done: 'written' }
}

async function putPerson(world: World, { id, email }: { id: string; email: string }): Promise<readonly Made[]> {
  const path = `/v1/users/${encodeURIComponent(id)}`
  const membership = `/v1/organizations/${encodeURIComponent(world.organization)}/members/${encodeURIComponent(id)}`
  const known = await find(world.connection, path)
  if (known !== null && known.email !== email)
    throw new CliError(
      `user ${id} has ${known.email === null ? 'no address' : `the address ${known.email}`}; if that is wrong: portcullis user put ${id} --email ${email} --email-verified\nIf this is another person, give an id of your own: portcullis user put ID --email ${email}`,
    )
  const password = randomBytes(PASSWORD_BYTES).toString('base64url')
  if (known === null) await put(world, path, { email, email_verified: true, password })
  if ((await find(world.connection, membership)) === null)
    await put(world, membership, { role: 'member', status: 'active' })
  const person: Made = {
    what: 'person',
    said: `user:${id}, who signs in as ${email}`,
    done: known ? 'there' : 'created',
  }
  return known === null
    ? [person, { what: 'password', said: `${password} (shown this once)`, done: 'created' }]
    : [person]
}

type SignInFile = { readonly path: string; readonly publicUrl: string }

/** Creates the client, or adds missing addresses to it. Throws CliError for a name that looks misspelt. */
async function putSignInClient(
  connection: Connection,
  file: SignInFile,
  provider: SignInProvider,
): Promise<readonly Made[]> {
  const { clientId } = provider
  const path = `/v1/clients/${encodeURIComponent(clientId)}`
  const { callback, signedOut, backChannel } = signInAddresses(file, provider)
  const said = `${clientId}, at which browsers sign in for ${file.publicUrl}`
  const stored = await find(connection, path)
  const wanted = { redirect_uris: [callback], post_logout_redirect_uris: [signedOut] }
  if (stored !== null) {
    const more = Object.entries(wanted).flatMap(([name, uris]) => {
      const had = textsOf(stored[name])
      return uris.every((uri) => had.includes(uri)) ? [] : [[name, [...new Set([...had, ...uris])]] as const]
    })
    if (more.length === 0) return [{ what: 'client', said, done: 'there' }]
    await connection.send({ method: 'PATCH', path, body: Object.fromEntries(more) })
    return [{ what: 'client', said, done: 'written' }]
  }
  const near = await nearClient(connection, clientId)
  if (near !== null)
    throw new CliError(
      `${file.path}: sign_in names the client ${clientId}, which the PDP does not have; did you mean "${near}"?\nIf this is another client, make it first: portcullis client put ${clientId} --redirect-uri ${callback}`,
    )
  const credential = credentialOf(file, provider)
  const { client_secret: secret } = await connection.ask<JsonMembers>({
    method: 'PUT',
    path,
    body: {
      ...wanted,
      ...credential,
      scope: provider.scope,
      grant_types: ['authorization_code', 'refresh_token'],
      // Only for https: the PDP calls plain http only if configured to.
      ...(backChannel.startsWith('https:') && {
        backchannel_logout_uri: backChannel,
        backchannel_logout_session_required: true,
      }),
    },
  })
  const made: Made = { what: 'client', said, done: 'created' }
  if (typeof secret !== 'string') return [made]
  const shown = `${secret} (shown this once): write it to ${provider.secretFile}`
  return [made, { what: 'secret', said: shown, done: 'created' }]
}

async function nearClient(connection: Connection, id: string): Promise<string | null> {
  const { items } = await connection.ask<JsonMembers>({ method: 'GET', path: '/v1/clients?page_size=1000' })
  const names = Array.isArray(items) ? items.filter(isJsonObject).map((item) => String(item.client_id)) : []
  return nearestName(id, names)
}

/** The client authentication that the route file chooses for the sidecar. */
function credentialOf({ path: from }: SignInFile, { keyFile, secretFile }: SignInProvider): JsonMembers {
  if (keyFile === null) return secretFile === null ? { token_endpoint_auth_method: 'none' } : {}
  const path = resolve(dirname(from), keyFile)
  try {
    const { kid, alg, ...key } = JSON.parse(readFileSync(path, 'utf8'))
    const jwk = { ...createPublicKey({ key, format: 'jwk' }).export({ format: 'jwk' }), kid, alg, use: 'sig' }
    return { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [jwk] } }
  } catch (err) {
    throw new CliError(`sign_in.client_key_file: ${fileProblem(path, err)}`, { cause: err })
  }
}

async function putLoginClient(world: World): Promise<Made> {
  const said = `${CLIENT}, which portcullis login uses`
  const path = `/v1/clients/${CLIENT}`
  if ((await find(world.connection, path)) !== null) return { what: 'client', said, done: 'there' }
  await put(world, path, loginClient(LOGIN_SCOPES))
  return { what: 'client', said, done: 'created' }
}

async function ownIssuer(url: string): Promise<unknown> {
  const metadata = await get(`${url}/.well-known/openid-configuration`)
  return 'body' in metadata && isJsonObject(metadata.body) ? metadata.body.issuer : undefined
}

const textsOf = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
