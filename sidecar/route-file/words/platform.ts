/** The PDP and the issuers that the operator of a platform sets for every route file. */
import type { Node } from 'yaml'
import { ROUTE_FILE } from '../format.ts'
import { type IssuerEntry, type PdpEntry, readIssuers, readPdp } from '../peers.ts'
import { listOf, type Member, oneOf, optional } from './schema.ts'
import { YamlReader } from './yaml-reader.ts'

const SHARED = ['issuers', 'pdp'] as const
type Shared = (typeof SHARED)[number]
const PLATFORM = {
  issuers: optional(ROUTE_FILE.issuers.form),
  pdp: optional(ROUTE_FILE.pdp.form),
  overridable: optional(listOf(oneOf(SHARED))),
}
export type Platform = {
  readonly reader: YamlReader
  readonly nodes: { readonly [name in Shared]: Node | null }
  /** Members that a route file may set itself: its own value then replaces the platform's. */
  readonly overridable: readonly Shared[]
}

export function openPlatform(text: string): Platform {
  const reader = new YamlReader(text)
  const members = reader.isBroken ? null : reader.members(reader.root, 'the file', PLATFORM)
  const read = (_: YamlReader, node: Node | null): Shared | null => reader.choice(node, 'overridable', SHARED)
  return {
    reader,
    nodes: { issuers: members?.issuers ?? null, pdp: members?.pdp ?? null },
    overridable: reader.list(members?.overridable ?? null, 'overridable', read) ?? [],
  }
}

/** The errors in a platform's text, each with its line and column. */
export function platformIssues(text: string): readonly string[] {
  const platform = openPlatform(text)
  readShared(platform.reader, { issuers: null, pdp: null }, { platform, resources: null })
  return issuesOf(platform)
}

const issuesOf = ({ reader }: Platform): readonly string[] =>
  reader.issues.map(({ line, column, message }) => `${line}:${column}: ${message}`)

/** The members of a route file. Those that the platform sets are optional. */
export function membersBeside(platform: Platform | null): { readonly [name in keyof typeof ROUTE_FILE]: Member } {
  const given = SHARED.filter((name) => platform !== null && platform.nodes[name] !== null)
  return { ...ROUTE_FILE, ...Object.fromEntries(given.map((name) => [name, optional(ROUTE_FILE[name].form)])) }
}

/** Reads the platform's text, and reports its errors of the route file. */
export function readShared(
  reader: YamlReader,
  own: Platform['nodes'],
  { platform, resources }: { readonly platform: Platform | null; readonly resources: readonly string[] | null },
): { readonly issuers: readonly IssuerEntry[] | null; readonly pdp: PdpEntry | null } {
  const chosen = (name: Shared): readonly [YamlReader, Node | null] => {
    const given = platform?.nodes[name] ?? null
    if (platform === null || given === null) return [reader, own[name]]
    if (own[name] === null) return [platform.reader, given]
    if (!platform.overridable.includes(name))
      reader.report(
        own[name],
        `${name} is for the platform to say: remove it here. Its operator may allow it (overridable)`,
      )
    return [reader, own[name]]
  }
  const [issuersAt, pdpAt] = [chosen('issuers'), chosen('pdp')]
  const found = { issuers: readIssuers(...issuersAt, resources), pdp: readPdp(...pdpAt) }
  if (platform !== null && platform.reader !== reader)
    for (const issue of issuesOf(platform)) reader.report(null, `the settings of the platform: ${issue}`)
  return found
}
