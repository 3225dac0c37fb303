/** Reads the checks that compare a value of the request: `equals`, and for claims `starts_with` and `ends_with`. */
import { isMap, isScalar, isSeq, type Node } from 'yaml'
import { type Network, parseNetwork } from '../../../pdp/shared/base/addresses.ts'
import { messageOf } from '../../../pdp/shared/base/error-message.ts'
import { EXTERNAL_MARK } from '../../../pdp/shared/token/issuer-claims.ts'
import { type Check, TEXT_PARTS, type TextPart } from '../../routes/checks.ts'
import type { Route } from '../../routes/route.ts'
import { describeSource, type Source, sourceText } from '../../routes/template.ts'
import type { IssuerEntry } from '../peers.ts'
import type { Entry, YamlReader } from './yaml-reader.ts'

/** Reads a comparison and reports its errors; null: it has errors. */
export function readComparison(
  options: {
    readonly reader: YamlReader
    /** Returns the source, or an error message. */
    readonly parse: (key: string) => Source | string
    /** Reports a source that must not be used in a comparison. */
    readonly note: (node: Node | null, source: Source) => void
  },
  { key: how, keyNode, value }: Entry,
): Check | null {
  const { reader, parse, note } = options
  const part = TEXT_PARTS.find((one) => one === how)
  const entries = reader.entries(value, how)
  if (entries === null) return null
  if (entries.length === 0) reader.report(keyNode, `${how} must compare at least one value`)
  const of: Check[] = []
  for (const { key, keyNode: at, value: expected } of entries) {
    const source = parse(key)
    const { text, flag } =
      part === undefined
        ? readExpected(reader, { source, expected, key })
        : { text: reader.text(expected, `the value for ${key}`), flag: false }
    if (typeof source === 'string') reader.report(at, source)
    else note(at, source)
    if (typeof source === 'string' || text === null) continue
    const named = VALUE.exec(text)?.[1] ?? null
    const as = named === null ? null : parse(named)
    if (typeof as === 'string') reader.report(expected, as)
    else if (as !== null) note(expected, as)
    const issue =
      issueOfValue({ how, source, as, key }) ?? (part === undefined ? null : issueOfPart(part, source, text))
    if (issue !== null) reader.report(at, issue)
    if (issue !== null || typeof as === 'string') continue
    const network = source.from === 'client' && as === null ? readNetwork(reader, expected, text) : undefined
    if (network === null) continue
    const more = {
      ...(network !== undefined && { network }),
      ...(part !== undefined && { part }),
      ...(flag && { flag }),
      ...(as !== null && { as }),
    }
    of.push({ kind: 'equals', source, value: text, ...more })
  }
  const [first] = of
  if (first === undefined || of.length < entries.length) return null
  return of.length === 1 ? first : { kind: 'all', of }
}

/** Matches a value of the request in braces, such as `{id}`. */
const VALUE = /^\{([^{}]+)\}$/

/** The error, or null. A value of the request may only be compared with a claim: two values that a client chooses prove nothing. */
function issueOfValue(of: { how: string; source: Source; as: Source | string | null; key: string }): string | null {
  const { how, source, as, key } = of
  if (as === null || typeof as === 'string') return null
  const pair = `{equals: {claims.sub: "{id}"}}`
  if (how !== 'equals') return `${how} compares with a text alone: a claim that is a value of the request is ${pair}`
  if (source.from === 'claims')
    return as.from === 'claims' ? `${key} is compared with a value of the request, such as ${pair}` : null
  return as.from === 'claims'
    ? `the claim stands first: {equals: {${sourceText(as)}: "{${key}}"}}`
    : `only a claim is compared with a value of the request, such as ${pair}`
}

type Comparison = Extract<Check, { kind: 'equals' }>

export const comparisons = (check: Check): readonly Comparison[] => {
  if (check.kind === 'all' || check.kind === 'any') return check.of.flatMap(comparisons)
  return check.kind === 'equals' ? [check] : []
}

/** One sentence for each comparison that holds more often than its author means, or never. */
export const comparisonWarnings = ({
  routes,
  issuers,
}: {
  readonly routes: readonly Pick<Route, 'id' | 'check'>[]
  readonly issuers: readonly IssuerEntry[]
}): string[] =>
  routes.flatMap(({ id, check }) =>
    (check === null ? [] : comparisons(check)).flatMap((one) => {
      const why = whyOdd(one) ?? whyUnprefixed(one, issuers)
      return why === null ? [] : [`${id}: ${why}`]
    }),
  )

function whyOdd({ part, source, value, as }: Comparison): string | null {
  const says = `a ${describeSource(source)} that ${part}`
  // Names of others can have the same end or start.
  if (part === 'ends_with' && /^[a-z0-9-]+(\.[a-z0-9-]+)+$/i.test(value))
    return `${says} ${value} may be of evil${value}: begin the text with @ or a dot`
  if (part === 'starts_with' && /^https?:\/\/[^/]+$/i.test(value))
    return `${says} ${value} may be of ${value}.evil.example: end the text with a slash`
  return source.from === 'claims' && as === undefined && value.includes('*')
    ? `* of ${value} is no more than this character: starts_with and ends_with compare a part`
    : null
}

/** Warns of names without prefix: a check sees people and clients of another provider under their names with prefix. */
function whyUnprefixed({ source, value, part, as }: Comparison, issuers: readonly IssuerEntry[]): string | null {
  if (source.from !== 'claims' || !['sub', 'client_id'].includes(source.name)) return null
  const known = issuers.find(({ external }) => external !== null)
  const prefix = `${EXTERNAL_MARK}${known?.external?.subject_prefix}`
  if (known === undefined || part === 'ends_with' || (as === undefined && value.startsWith(EXTERNAL_MARK))) return null
  const wanted = as === undefined ? value : `{${sourceText(as)}}`
  return `claims.${source.name} of ${known.issuer} begins with ${prefix}: compare ${as === undefined ? `${prefix}${value}` : `another claim with ${wanted}, or send names with ${prefix}`}`
}

/** The error, if any. Only claims may be compared in part: with other values the client could undo the start, as by `..`. */
function issueOfPart(part: TextPart, source: Source, text: string | null): string | null {
  if (text === '') return `${part} needs a text: every text begins and ends with an empty one`
  if (source.from === 'claims') return null
  return source.from === 'path' || (source.from === 'request' && source.name !== 'method')
    ? `${part} compares claims only; a route says how paths and hosts begin and end: /docs/**, /docs/draft-{id}, *.example.com`
    : `${part} compares claims only: what a client adds to ${describeSource(source)} could lead elsewhere. Compare the whole value with equals`
}

function readNetwork(reader: YamlReader, node: Node | null, text: string): Network | null {
  try {
    return parseNetwork(text)
  } catch (err) {
    reader.report(node, `${JSON.stringify(text)} ${messageOf(err)}`)
    return null
  }
}

/** The expected value. Only a claim or a member of a document can be a boolean, and only a claim a number. */
function readExpected(
  reader: YamlReader,
  { source, expected, key }: { source: Source | string; expected: Node | null; key: string },
): { readonly text: string | null; readonly flag: boolean } {
  const node = reader.resolve(expected)
  const value = isScalar(node) ? node.value : null
  const isPlain = typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))
  const from = typeof source === 'string' ? null : source.from
  const flag = typeof value === 'boolean' && (from === 'body' || from === 'item')
  if (flag || (isPlain && from === 'claims')) return { text: String(value), flag }
  if (isPlain) reader.report(expected, `the value for ${key} must be a string: write "${value}"`)
  else if (isMap(node) && node.items.length === 1)
    reader.report(expected, `put the value for ${key} in quotes: "{${String(node.items[0]?.key)}}"`)
  else if (isSeq(node))
    reader.report(expected, `equals compares ${key} with one value: write an equals for each, in any`)
  else return { text: reader.text(expected, `the value for ${key}`), flag }
  return { text: null, flag }
}
