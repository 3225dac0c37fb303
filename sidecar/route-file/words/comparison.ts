/** Reads the checks that compare a value of the request: `equals`, and for claims `starts_with` and `ends_with`. */
import { isScalar, isSeq, type Node } from 'yaml'
import { type Network, parseNetwork } from '../../../pdp/shared/base/addresses.ts'
import { messageOf } from '../../../pdp/shared/base/error-message.ts'
import { type Check, TEXT_PARTS, type TextPart } from '../../routes/checks.ts'
import { describeSource, type Source } from '../../routes/template.ts'
import type { Entry, YamlReader } from './yaml-reader.ts'

type Reading = {
  readonly reader: YamlReader
  /** The source, or an error message. */
  readonly parse: (key: string) => Source | string
  /** Reports a source that cannot be read there. */
  readonly note: (node: Node | null, source: Source) => void
}

/** Null: it has mistakes. Reports errors to the reader. */
export function readComparison({ reader, parse, note }: Reading, { key: how, keyNode, value }: Entry): Check | null {
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
    const issue = part === undefined || typeof source === 'string' ? null : issueOfPart(part, source, text)
    if (issue !== null) reader.report(at, issue)
    if (typeof source === 'string' || text === null || issue !== null) continue
    const network = source.from === 'client' ? readNetwork(reader, expected, text) : undefined
    if (network === null) continue
    const more = {
      ...(network !== undefined && { network }),
      ...(part !== undefined && { part }),
      ...(flag && { flag }),
    }
    of.push({ kind: 'equals', source, value: text, ...more })
  }
  const [first] = of
  if (first === undefined || of.length < entries.length) return null
  return of.length === 1 ? first : { kind: 'all', of }
}

/** The rest of a value that the client chooses could undo what its start says, as `..` does. */
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

/** Only a claim, or a member of a document, can be true or false, and only a claim a number. */
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
  else if (isSeq(node))
    reader.report(expected, `equals compares ${key} with one value: write an equals for each, in any`)
  else return { text: reader.text(expected, `the value for ${key}`), flag }
  return { text: null, flag }
}
