/** `check-gateway`: reads configurations of gateways, and names each setting that leads past the door. */
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { readCaddyfile } from '../read/caddyfile.ts'
import { readNginx } from '../read/nginx.ts'
import { type Place, type Source, UnreadableError } from '../read/source.ts'
import type { Tree } from '../read/tree.ts'
import { readToml, readYaml } from '../read/yaml-toml.ts'
import { type Findings, setAccepted } from './accepted.ts'
import { checkCaddyfile } from './caddy/caddyfile.ts'
import { checkCaddyJson, isCaddy } from './caddy/json.ts'
import { checkEnvoy, isEnvoy } from './envoy/envoy.ts'
import type { Finding } from './finding.ts'
import { checkGatewayApi, isGatewayApi } from './kubernetes/gateway-api.ts'
import { checkIstio, isIstio } from './kubernetes/istio.ts'
import { kindOfObject, objectsOf } from './kubernetes/objects.ts'
import { checkOthers, isIngress } from './kubernetes/others.ts'
import { checkNginx } from './nginx/nginx.ts'
import { checkTraefik, isTraefik } from './traefik/traefik.ts'

const BYTES_MAX = 32 * 1024 * 1024

/** Gateways whose configuration is data. A document may be of several, such as Istio's patches of Envoy. */
const GATEWAYS: readonly {
  is(tree: Tree): boolean
  /** `all`: every object of the input, of whatever gateway. */
  check(trees: readonly Tree[], all: readonly Tree[]): readonly Finding[]
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
    if (Buffer.byteLength(text) > BYTES_MAX)
      throw new UnreadableError(`${file}: the file is larger than ${BYTES_MAX} bytes`)
    if (isCaddyfileName(file)) findings.push(...checkCaddyfile(notEmpty(readCaddyfile({ file, text }, read), file)))
    else if (isNginxName(file)) findings.push(...checkNginx(notEmpty(readNginx({ file, text }, read), file)))
    else trees.push(...described(file, readTrees({ file, text })))
  }
  const others = trees.filter((tree) => !GATEWAYS.some(({ is }) => is(tree)))
  if (!trees.some(isKnown) && others[0] !== undefined) throw unknown(others[0])
  for (const { is, check } of GATEWAYS) {
    const own = trees.filter(is)
    if (own.length > 0) findings.push(...check(own, trees))
  }
  findings.push(...checkOthers(others))
  for (const { file } of sources) included.delete(file)
  const sorted = unique(findings).sort((a, b) => a.file.localeCompare(b.file) || a.line - b.line)
  return setAccepted(sorted, [...sources, ...included.values()])
}

function readTrees({ file, text }: Source): readonly Tree[] {
  try {
    return /\.toml$/i.test(file) ? [readToml(text, file)] : readYaml(text, file)
  } catch (err) {
    if (!(err instanceof UnreadableError && text.includes('{{'))) throw err
    throw new UnreadableError(
      `${err.message}. It may be a template: check what it renders to, such as the output of helm template`,
    )
  }
}

const isTree = (file: string): boolean => /\.(ya?ml|json|toml)$/i.test(file)
const isCaddyfileName = (file: string): boolean => !isTree(file) && /^caddyfile|\.caddy(file)?$/i.test(basename(file))
const isNginxName = (file: string): boolean => !isTree(file) && /\.(conf|nginx|vhost)$|^nginx/i.test(basename(file))

function notEmpty<T>(read: readonly T[], file: string): readonly T[] {
  if (read.length > 0) return read
  throw new UnreadableError(`${file}: the file is empty`)
}

const isKnown = (tree: Tree): boolean => isIngress(tree) || GATEWAYS.some(({ is }) => is(tree))

/** A file is of a gateway, or has objects of Kubernetes, which may lie beside those of one. */
function described(file: string, documents: readonly Tree[]): readonly Tree[] {
  const objects = documents.flatMap(objectsOf)
  const foreign = objects.find((tree) => !isKnown(tree) && kindOfObject(tree) === '')
  if (objects.length === 0 || foreign !== undefined) throw unknown(foreign ?? { file, line: 1 })
  return objects
}

const unknown = ({ file, line }: Place): UnreadableError =>
  new UnreadableError(
    `${file}:${line}: this is not a configuration of Envoy, Istio, Gateway API, Traefik or Caddy that this command knows (nginx: name it *.conf; Caddyfile: *.caddyfile)`,
  )

function unique(findings: readonly Finding[]): Finding[] {
  return [...new Map(findings.map((one) => [JSON.stringify(one), one])).values()]
}
