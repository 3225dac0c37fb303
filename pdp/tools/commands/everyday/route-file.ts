/** The parts of a sidecar's route file that commands of the PDP read. `portcullis-sidecar check` checks the rest. */
import { readFileSync } from 'node:fs'
import { parseYaml } from '../../../engine/worker/yaml.ts'
import { isJsonObject } from '../../../shared/domain/json.ts'
import { doesNotExist, fileProblem } from '../../../shared/process/command/file-problem.ts'
import { sidecarAddress } from '../../../shared/token/sign-in-refusal.ts'
import { CliError } from '../errors.ts'

const INIT = '\nWrite a first one with: portcullis-sidecar init'

/** An entry of `sign_in`. */
export type SignInProvider = {
  readonly issuer: string
  readonly clientId: string
  /** The file of the provider's secret; null: no secret. */
  readonly secretFile: string | null
  readonly keyFile: string | null
  /** The name in the callback's path; empty for a single provider, whose path has none. */
  readonly name: string
  readonly scope: string
}
export type RouteFile = {
  readonly publicUrl: string
  readonly signIn: readonly SignInProvider[]
  readonly resources: readonly [string, ...string[]]
  readonly issuers: readonly unknown[]
  readonly pdp: { readonly [member: string]: unknown }
  /** The addresses of the PDPs, each `host:port`. */
  readonly pdps: readonly string[]
  readonly upstream: unknown
}

/** Throws CliError. */
export function readRouteFile(file: string): RouteFile {
  let found: unknown
  try {
    found = parseYaml(readFileSync(file, 'utf8'))
  } catch (err) {
    throw new CliError(`${fileProblem(file, err)}${doesNotExist(err) ? INIT : ''}`, { cause: err })
  }
  const [resource, ...others] = isJsonObject(found) ? [found.resource].flat() : []
  if (!isJsonObject(found) || !isText(resource) || !others.every(isText) || !Array.isArray(found.issuers))
    throw new CliError(
      `${file} is not a route file: it has no resource and issuers. Try: portcullis-sidecar check ${file}`,
    )
  const { issuers, upstream } = found
  const pdp = isJsonObject(found.pdp) ? found.pdp : {}
  const publicUrl = isText(found.public_url) ? found.public_url : resource
  const signIn = providersOf(found.sign_in)
  return { resources: [resource, ...others], issuers, publicUrl, signIn, pdp, pdps: addressesOf(pdp), upstream }
}

const isText = (value: unknown): value is string => typeof value === 'string'

function addressesOf(pdp: RouteFile['pdp']): readonly string[] {
  const all = Array.isArray(pdp.addresses) ? pdp.addresses : [pdp.address]
  return all.filter((address) => typeof address === 'string')
}

function providersOf(signIn: unknown): readonly SignInProvider[] {
  const entries = isJsonObject(signIn) && Array.isArray(signIn.providers) ? signIn.providers.filter(isJsonObject) : []
  return entries.flatMap((entry) => {
    const { issuer, client_id: clientId, client_secret_file: secret, client_key_file: key, name, scope } = entry
    if (!isText(issuer) || !isText(clientId)) return []
    const [secretFile, keyFile] = [isText(secret) ? secret : null, isText(key) ? key : null]
    return [
      {
        issuer,
        clientId,
        secretFile,
        keyFile,
        name: isText(name) ? name : '',
        scope: isText(scope) ? scope : 'openid',
      },
    ]
  })
}

/** The addresses at which issuer and browsers reach the sidecar of this file. */
export function signInAddresses({ publicUrl }: Pick<RouteFile, 'publicUrl'>, { name }: SignInProvider) {
  const at = (path: string, of = name): string => sidecarAddress(publicUrl, path, of)
  return { callback: at('callback'), signedOut: at('signed-out', ''), backChannel: at('backchannel-logout') }
}
