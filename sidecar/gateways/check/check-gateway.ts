/** `check-gateway`: reads configurations of gateways, and names each setting that leads past the door. */
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { readCaddyfile } from '../read/caddyfile.ts'
import { readNginx } from '../read/nginx.ts'
import { type Source, UnreadableError } from '../read/source.ts'
import type { Tree } from '../read/tree.ts'
import { readToml, readYaml } from '../read/yaml-toml.ts'
import { type Findings, setAccepted } from './accepted.ts'
import { checkCaddyfile } from './caddy/caddyfile.ts'
import { checkCaddyJson, isCaddy } from './caddy/json.ts'
import { checkEnvoy, isEnvoy } from './envoy.ts'
import type { Finding } from './finding.ts'
import { checkGatewayApi, isGatewayApi } from './kubernetes/gateway-api.ts'
import { checkIstio, isIstio } from './kubernetes/istio.ts'
import { kindOfObject, objectsOf } from './kubernetes/objects.ts'
import { checkNginx } from './nginx.ts'
import { checkTraefik, isTraefik } from './traefik.ts'

const BYTES_MAX = 32 * 1024 * 1024

/** Gateways whose configuration is data. A document may be of several, such as Istio's patches of Envoy. */
const GATEWAYS: readonly {
  is(tree: Tree): boolean
  check(trees: readonly Tree[]): readonly Finding[]
}[] = [
  { is: isEnvoy, check: checkEnvoy },
  { is: isIstio, check: checkIstio },
  { is: isGatewayApi, check: checkGatewayApi },
  { is: isTraefik, check: checkTraefik },
  { is: isCaddy, check: (trees) => trees.flatMap(checkCaddyJson) },
]

/** The files are read together: a route in one may have its policy in another. Throws UnreadableError. */
export function checkGateways(sources: readonly Source[]): Findings {
  const findings: Finding[] = []
  const included = new Map<string, Source>()
  const read = (file: string): string => {
    const text = readFileSync(file, 'utf8')
    included.set(file, { file, text })
    return text
  }
  const trees: Tree[] = []
  for (const { file, text } of sources) {
    if (Buffer.byteLength(text) > BYTES_MAX) throw new UnreadableError(`${file}: is larger than ${BYTES_MAX} bytes`)
    if (isCaddyfileName(file)) findings.push(...checkCaddyfile(notEmpty(readCaddyfile({ file, text }, read), file)))
    else if (isNginxName(file)) findings.push(...checkNginx(notEmpty(readNginx({ file, text }, read), file)))
    else trees.push(...known(file, file.endsWith('.toml') ? [readToml(text, file)] : readYaml(text, file)))
  }
  for (const { is, check } of GATEWAYS) {
    const own = trees.filter(is)
    if (own.length > 0) findings.push(...check(own))
  }
  for (const { file } of sources) included.delete(file)
  const sorted = unique(findings).sort((a, b) => a.file.localeCompare(b.file) || a.line - b.line)
  return setAccepted(sorted, [...sources, ...included.values()])
}

const isCaddyfileName = (file: string): boolean => /^caddyfile|\.caddy(file)?$/i.test(basename(file))
const isNginxName = (file: string): boolean => /\.(conf|nginx|vhost)$|^nginx/i.test(basename(file))

function notEmpty<T>(read: readonly T[], file: string): readonly T[] {
  if (read.length > 0) return read
  throw new UnreadableError(`${file}: says nothing`)
}

/** Every file must say something about a gateway; other objects of Kubernetes may lie beside it. */
function known(file: string, documents: readonly Tree[]): readonly Tree[] {
  const objects = documents.flatMap(objectsOf)
  const recognised = objects.filter((tree) => GATEWAYS.some(({ is }) => is(tree)))
  const foreign = objects.find((tree) => !recognised.includes(tree) && kindOfObject(tree) === '')
  if (recognised.length === 0 || foreign !== undefined)
    throw new UnreadableError(
      `${file}:${foreign?.line ?? 1}: is no configuration of Envoy, Istio, Gateway API, Traefik or Caddy that this command knows (nginx: name it *.conf; Caddyfile: *.caddyfile)`,
    )
  return recognised
}

function unique(findings: readonly Finding[]): Finding[] {
  return [...new Map(findings.map((one) => [JSON.stringify(one), one])).values()]
}
