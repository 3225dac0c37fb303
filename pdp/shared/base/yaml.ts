/** Parses YAML that people write, such as route files and manifests, with issues in plain words. */
import {
  Composer,
  type CST,
  type Document,
  isScalar,
  Lexer,
  type LineCounter,
  Parser,
  type Scalar,
  visit,
  YAMLParseError,
} from 'yaml'

export type YamlIssue = { readonly offset: number; readonly message: string }

/** Our messages for errors that the library describes in terms of YAML's grammar. */
const PLAIN: { readonly [code: string]: string } = {
  BLOCK_IN_FLOW: 'within { } or [ ], a text with a colon must be in quotes, such as "viewer doc:{id}"',
  BLOCK_AS_IMPLICIT_KEY:
    'a text with a colon and a space must be in quotes; the keys of a map begin on lines of their own, and the key above them ends with a colon',
  BAD_SCALAR_START: 'a text that begins with this character must be in quotes',
}

/** The deepest nesting; no file that people write is half as deep. */
const NESTING_MAX = 100

/**
 * Does what the library's function of this name does, with a bound on the depth, since the library recurses. For a deeper text, the
 * document has only this error. Without `uniqueKeys`, by which the library would compare every key of a map with every other.
 */
export function parseDocument(text: string, lines: LineCounter): Document.Parsed {
  const parser = new Parser(lines.addNewLine)
  lines.addNewLine(0)
  const tokens: CST.Token[] = []
  for (const lexeme of new Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) tokens.push(token)
    if (parser.stack.length > NESTING_MAX)
      return composed([], `lists and maps are nested more than ${NESTING_MAX} levels deep`, parser.offset)
  }
  for (const token of parser.end()) tokens.push(token)
  return composed(tokens, null, text.length)
}

/** `fault`: an error at `offset` that the tokens do not show. */
function composed(tokens: readonly CST.Token[], fault: string | null, offset: number): Document.Parsed {
  const options = { uniqueKeys: false, prettyErrors: false }
  const [document, second] = new Composer(options).compose(tokens, true, offset)
  if (document === undefined) throw new TypeError('a document is composed even of nothing')
  const note = (at: number, message: string) =>
    document.errors.push(new YAMLParseError([at, at + 1], 'IMPOSSIBLE', message))
  if (fault !== null) note(offset, fault)
  if (second !== undefined) note(second.range[0], 'a second document begins here, but the file may hold only one')
  return document
}

/** The issues in a result of `parseDocument`. */
export function yamlIssues(document: Document.Parsed, lines: LineCounter): readonly YamlIssue[] {
  const { errors, warnings } = document
  const [tab, ...tabs] = errors.filter(({ code }) => code === 'TAB_AS_INDENT')
  // A tab causes further errors, which would only confuse the writer.
  if (tab !== undefined) return [{ offset: tab.pos[0], message: tabMessage(tabs.length) }]
  const plain = errors.filter(({ code }) => code !== 'MULTILINE_IMPLICIT_KEY')
  const found = [...(plain.length === 0 ? errors.slice(0, 1) : plain), ...warnings].map(({ code, pos, message }) => ({
    offset: pos[0],
    message: PLAIN[code] ?? message,
  }))
  return errors.length > 0 ? found : [...found, ...repeatedKeys(document, lines)]
}

const tabMessage = (moreCount: number): string =>
  `the line is indented with a tab, but YAML needs spaces${moreCount === 0 ? '' : `; so are ${moreCount} more`}`

function repeatedKeys(document: Document.Parsed, lines: LineCounter): readonly YamlIssue[] {
  const issues: YamlIssue[] = []
  visit(document, {
    Map: (_, { items }) => {
      const firsts = new Map<unknown, Scalar>()
      for (const { key } of items) {
        if (!isScalar(key)) continue
        const first = firsts.get(key.value)
        if (first === undefined) {
          firsts.set(key.value, key)
          continue
        }
        const { line } = lines.linePos(first.range?.[0] ?? 0)
        const message = `the key "${key.value}" is written twice; the first one is in line ${line}`
        issues.push({ offset: key.range?.[0] ?? 0, message })
      }
    },
  })
  return issues
}
