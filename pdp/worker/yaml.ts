/** YAML that came from outside, read strictly and in time that grows with its length alone. */
import { type Document, isMap, isScalar, LineCounter, parseDocument, visit } from 'yaml'
import { PdpError, type ValidationIssue } from '../domain/errors.ts'

const ALIASES_MAX = 100
const ISSUES_MAX = 100

/** Throws PdpError `request_invalid` with every issue as line:column. */
export function parseYaml(text: string): unknown {
  const lines = new LineCounter()
  // The parser compares every key of a map with every other.
  const document = parseDocument(text, { uniqueKeys: false, prettyErrors: true, lineCounter: lines })
  const issues: ValidationIssue[] = [...document.errors, ...document.warnings].map((err) => {
    const [start] = err.linePos ?? []
    // The message repeats the place and shows the text around it.
    const message = err.message.split('\n', 1)[0]?.replace(/ at line \d+, column \d+:?$/, '') ?? 'is not valid'
    return { place: `${start?.line ?? 1}:${start?.col ?? 1}`, message }
  })
  issues.push(...repeatedKeys(document, lines))
  if (issues.length > 0)
    throw new PdpError('request_invalid', 'the body is not YAML', { issues: issues.slice(0, ISSUES_MAX) })
  try {
    return document.toJS({ maxAliasCount: ALIASES_MAX })
  } catch (err) {
    throw new PdpError('request_invalid', 'the body is not YAML: it repeats itself too often', { cause: err })
  }
}

function repeatedKeys(document: Document.Parsed, lines: LineCounter): readonly ValidationIssue[] {
  const issues: ValidationIssue[] = []
  visit(document, {
    Map(_, map) {
      const seen = new Set<unknown>()
      for (const { key } of isMap(map) ? map.items : []) {
        if (!isScalar(key)) continue
        if (seen.has(key.value)) {
          const { line, col } = lines.linePos(key.range?.[0] ?? 0)
          issues.push({ place: `${line}:${col}`, message: 'Map keys must be unique' })
        }
        seen.add(key.value)
      }
    },
  })
  return issues
}
