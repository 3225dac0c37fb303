/** Checks for `doctor` a route file, its PDPs and issuers, and whether the PDP trusts these issuers. */
import { spawnSync } from 'node:child_process'
import { dirname, resolve } from 'node:path'
import { messageOf } from '../../../shared/base/error-message.ts'
import type { JsonMembers } from '../../../shared/base/json-text.ts'
import { didYouMean } from '../../../shared/base/nearest.ts'
import { isJsonObject } from '../../../shared/domain/json.ts'
import { signInVerdict } from '../../../shared/token/sign-in-refusal.ts'
import { accessToken } from '../connection.ts'
import { CliError } from '../errors.ts'
import { type Examination, type Finding, failed, get, ok, skipped } from './finding.ts'
import { examineAddress, examineUpstream } from './reached-findings.ts'
import { type RouteFile, readRouteFile, type SignInProvider, signInAddresses } from './route-file.ts'
import { type TrustedIssuer, trustedIssuers } from './trusted-issuers.ts'

export async function examineRouteFile(asked: Examination): Promise<readonly Finding[]> {
  const { routeFile } = asked.options
  if (routeFile === undefined) return [skipped('route file', 'name one by --route-file')]
  const checked = checkRouteFile(routeFile, asked.io)
  if (checked.state === 'failed') return [checked]
  try {
    const read = readRouteFile(routeFile)
    const folder = dirname(resolve(asked.io.cwd(), routeFile))
    const found = await Promise.all([
      Promise.all(read.pdps.map((address) => examineAddress(address, read.pdp, folder))),
      examineUpstream(read.upstream),
      examineIssuers(asked, read),
      examineNames(asked, read),
      examineClients(asked, routeFile, read),
    ])
    return [checked, ...found.flat()]
  } catch (err) {
    if (!(err instanceof CliError)) throw err
    return [failed('route file', err.message)]
  }
}

function checkRouteFile(routeFile: string, io: NodeJS.Process): Finding {
  const check = 'route file'
  const { error, status, stdout, stderr } = spawnSync('portcullis-sidecar', ['check', routeFile], {
    encoding: 'utf8',
    env: io.env,
  })
  if (error !== undefined)
    return skipped(check, 'portcullis-sidecar is not installed here (npm install portcullis-server)')
  if (status === 0) return ok(check, routeFile)
  return failed(check, `${stdout}${stderr}`.trim(), `correct it: portcullis-sidecar check ${routeFile}`)
}

async function examineIssuers(asked: Examination, { resources, issuers }: RouteFile): Promise<readonly Finding[]> {
  const own = issuers
    .filter(isJsonObject)
    .filter(({ issuer, external }) => typeof issuer === 'string' && !isJsonObject(external))
  const found = own.length === 0 ? [] : [await examineOwn(asked, own)]
  for (const entry of issuers) {
    if (!isJsonObject(entry) || !isJsonObject(entry.external) || typeof entry.issuer !== 'string') continue
    found.push(await examineTrusted(asked, entry.issuer, () => trustedIssuers([entry], { resources, fetch })))
  }
  return found
}

/** The items of a list; null: they cannot be read, or do not fit on one page. */
async function listed(
  { url, options, io }: Examination,
  path: string,
  scope: string,
): Promise<readonly JsonMembers[] | null> {
  const token = await accessToken(options, { env: io.env, scope }).catch(() => null)
  if (token === null) return null
  const answer = await get(`${url}${path}?page_size=1000`, { authorization: `Bearer ${token}` })
  const body = 'status' in answer && answer.status === 200 && isJsonObject(answer.body) ? answer.body : {}
  return Array.isArray(body.items) && body.next_page_token == null ? body.items.filter(isJsonObject) : null
}

async function examineClients(
  asked: Examination,
  path: string,
  { signIn, publicUrl }: RouteFile,
): Promise<readonly Finding[]> {
  if (signIn.length === 0) return []
  const clients = (await listed(asked, '/v1/clients', 'clients:read'))?.map((one) => String(one.client_id)) ?? null
  return Promise.all(signIn.map((provider) => examineSignIn({ path, publicUrl }, provider, clients)))
}

/** `clients`: the PDP's clients, to suggest one; null: unknown. */
async function examineSignIn(
  file: { readonly path: string; readonly publicUrl: string },
  provider: SignInProvider,
  clients: readonly string[] | null,
): Promise<Finding> {
  const { issuer, clientId } = provider
  const check = `sign_in client ${clientId}`
  const { callback } = signInAddresses(file, provider)
  const verdict = await signInVerdict({ issuer, clientId, redirectUri: callback })
  if (verdict.kind === 'begins') return ok(check, `${issuer} begins a sign-in`)
  if (verdict.kind === 'unknown') return skipped(check, `${issuer} could not be asked (${verdict.reason})`)
  return failed(
    check,
    `${issuer} does not know the client, or not the redirect URI ${callback} (${verdict.reason})${clients?.includes(clientId) === false ? didYouMean(clientId, clients) : ''}`,
    `correct client_id, or register it: portcullis setup ORGANIZATION ${file.path}`,
  )
}

/** Checks names of apps' resources and of organizations, which only the PDP knows. No finding if the client may not read them. */
async function examineNames(asked: Examination, { resources, issuers }: RouteFile): Promise<readonly Finding[]> {
  const [apps, organizations] = await Promise.all([
    listed(asked, '/v1/apps', 'manifest:read'),
    listed(asked, '/v1/organizations', 'directory:read'),
  ])
  const audiences = apps?.flatMap((app) => (Array.isArray(app.audiences) ? app.audiences.map(String) : [])) ?? []
  const ids = organizations?.map(({ id }) => String(id)) ?? []
  const named = issuers
    .filter(isJsonObject)
    .flatMap(({ external }) =>
      isJsonObject(external) && Array.isArray(external.organizations) ? external.organizations : [],
    )
  return [
    ...(apps === null ? [] : resources.filter((resource) => !audiences.includes(resource))).map((resource) =>
      failed(
        `resource ${resource}`,
        `no app of the PDP declares it${didYouMean(resource, audiences)}, so that roles and permissions of apps do not count in its tokens`,
        'name it in audiences of a manifest: portcullis manifest apply, or portcullis setup',
      ),
    ),
    ...(organizations === null ? [] : [...new Set(named.map(String))].filter((id) => !ids.includes(id))).map((id) =>
      failed(
        `organization ${id}`,
        `the PDP has no such organization${didYouMean(id, ids)}`,
        `correct the name, or make it: portcullis org put ${id}`,
      ),
    ),
  ]
}

/** Checks that an issuer without `external` is the PDP itself. */
async function examineOwn({ url }: Examination, entries: readonly JsonMembers[]): Promise<Finding> {
  const names = entries.map(({ issuer }) => String(issuer))
  const check = `issuer ${names.join(', ')}`
  const metadata = await get(`${url}/.well-known/openid-configuration`)
  if (!('status' in metadata) || !isJsonObject(metadata.body)) return skipped(check, 'the PDP does not say its name')
  const { issuer } = metadata.body
  if (names.includes(String(issuer))) return ok(check, 'this is the PDP')
  const advice = `write issuer: ${issuer}, or add external if it is another identity provider`
  return failed(check, `the PDP is called ${issuer}, so its tokens are refused`, advice)
}

async function examineTrusted(
  asked: Examination,
  issuer: string,
  read: () => Promise<readonly TrustedIssuer[]>,
): Promise<Finding> {
  const check = `issuer ${issuer}`
  try {
    const [trusted] = await read()
    const document = trusted?.document ?? {}
    const keys = typeof document.jwks_uri === 'string' ? await examineKeys(document.jwks_uri) : ''
    return await compare(asked, issuer, document, keys)
  } catch (err) {
    if (!(err instanceof CliError)) throw err
    return failed(check, err.message)
  }
}

/** Checks that the URL has a JWK Set (RFC 7517 section 5). */
async function examineKeys(url: string): Promise<string> {
  const answer = await get(url)
  if (!('status' in answer)) throw new CliError(`its keys at ${url} cannot be read from here (${answer.reason})`)
  const keys = isJsonObject(answer.body) && Array.isArray(answer.body.keys) ? answer.body.keys.length : 0
  if (answer.status !== 200 || keys === 0) throw new CliError(`${url} has no keys (status ${answer.status})`)
  return keys === 1 ? 'its key can be read, ' : `its ${keys} keys can be read, `
}

const UNKNOWN = 'whether the PDP trusts it is not known: '

async function compare(asked: Examination, issuer: string, document: JsonMembers, keys: string): Promise<Finding> {
  const check = `issuer ${issuer}`
  const { url, options, io } = asked
  const advice = `tell the PDP: portcullis setup ORGANIZATION ${options.routeFile}`
  let token: string
  try {
    token = await accessToken(options, { env: io.env, scope: 'issuers:read' })
  } catch (err) {
    return skipped(check, `${keys}${UNKNOWN}${messageOf(err)}`)
  }
  const answer = await get(`${url}/v1/trusted-issuers/${encodeURIComponent(issuer)}`, {
    authorization: `Bearer ${token}`,
  })
  if (!('status' in answer)) return skipped(check, `${keys}${UNKNOWN}${answer.reason}`)
  if (answer.status === 404) return failed(check, `${keys}but the PDP does not trust it`, advice)
  if (answer.status !== 200) return skipped(check, `${keys}${UNKNOWN}status ${answer.status}`)
  const known = isJsonObject(answer.body) ? answer.body : {}
  const differs = Object.keys(document).filter((name) => !includes(known[name], withoutSecret(document[name])))
  if (differs.length === 0) return ok(check, `${keys}and the PDP trusts it`)
  return failed(check, `${keys}but the PDP has other values of ${differs.join(', ')}`, advice)
}

function withoutSecret(value: unknown): unknown {
  if (!isJsonObject(value)) return value
  const { client_secret: _, ...rest } = value
  return rest
}

/** True if `known` has all of `expected`. The PDP adds defaults, and organizations that other route files name. */
function includes(known: unknown, expected: unknown): boolean {
  if (Array.isArray(expected))
    return Array.isArray(known) && expected.every((item) => known.some((other) => includes(other, item)))
  if (isJsonObject(expected))
    return isJsonObject(known) && Object.keys(expected).every((name) => includes(known[name], expected[name]))
  return known === expected
}
