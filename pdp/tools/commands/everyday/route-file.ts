/** The parts of a sidecar's route file that the commands of a PDP read; `portcullis-sidecar check` judges the rest of it. */
import { readFileSync } from 'node:fs'
import { parseYaml } from '../../../engine/worker/yaml.ts'
import { isJsonObject } from '../../../shared/domain/json.ts'
import { doesNotExist, fileProblem } from '../../../shared/process/command/file-problem.ts'
import { CliError } from '../errors.ts'

const INIT = '\nWrite a first one with: portcullis-sidecar init'

export type RouteFile = {
  readonly resources: readonly [string, ...string[]]
  readonly issuers: readonly unknown[]
  readonly pdp: { readonly [member: string]: unknown }
  /** host:port of each PDP. */
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
  return { resources: [resource, ...others], issuers, pdp, pdps: addressesOf(pdp), upstream }
}

const isText = (value: unknown): value is string => typeof value === 'string'

function addressesOf(pdp: RouteFile['pdp']): readonly string[] {
  const all = Array.isArray(pdp.addresses) ? pdp.addresses : [pdp.address]
  return all.filter((address) => typeof address === 'string')
}
