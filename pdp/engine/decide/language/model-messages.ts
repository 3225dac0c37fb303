/** Rewrites error messages of the language's parser: what is wrong, and what to write instead. */

/** The whole source text, and the line with the error. */
type SourceLine = { readonly text: string; readonly line: string }

const NAME = '[`\'"]?([^`\'"]+)[`\'"]?'
const RULES: readonly (readonly [found: RegExp, say: (names: readonly string[], place: SourceLine) => string])[] = [
  [
    /no viable alternative|mismatched input|extraneous input|missing .+ at |token recognition error/,
    (_, place) => notUnderstood(place),
  ],
  [
    new RegExp(`(?:duplicate (?:relationship )?definition ${NAME}|${NAME} is already defined in )`),
    ([first, second]) => `relation "${first ?? second}" is defined twice in one type; remove one`,
  ],
]

const BEFORE_1_1 = /^\s*define\s+\S+\s+as\b/m
const TYPES_OF_PARAMETERS = /^\s*condition\b.*[:<,]\s*(any\b|(?:list|map)\s*<\s*(?:any|list|map)\b)/

function notUnderstood({ text, line }: SourceLine): string {
  if (BEFORE_1_1.test(text))
    return 'this is the language before schema 1.1 ("define viewer as self"); write "model" and "  schema 1.1" first, and "define viewer: [user]", with the types of subjects between brackets'
  const begins = /^\s*(?:#.*\n\s*)*(model|module)\b/.exec(text)?.[1]
  if (begins === undefined) return 'a model begins with the lines "model" and "  schema 1.1"'
  if (begins === 'model' && !/^\s*schema\b/m.test(text)) return 'below "model" the line "  schema 1.1" is missing'
  const said = line === '' ? 'something is missing here' : `"${line}" is not understood`
  if (mixesOperators(line))
    return `${said}; where "or", "and" and "but not" meet, parentheses say what comes first, such as "(a or b) but not c"`
  const type = TYPES_OF_PARAMETERS.exec(line)?.[1]
  if (type !== undefined)
    return `${said}; the language has no parameters of type "${type.replace(/\s/g, '')}", the JSON form of a model has`
  const word = /^define\s+(define|relations|type|model|module|extend|condition|and|or|but|from|with)\s*:/.exec(
    line,
  )?.[1]
  if (word !== undefined)
    return `${said}; "${word}" is a word of the language, and a name only in the JSON form of a model`
  return `${said}; a line is "type <name>", "  relations" or "    define <relation>: <rule>", and a rule is such as "[user] or editor"`
}

/** True if the line mixes two operators within the same parentheses, or has `but not` twice. */
function mixesOperators(line: string): boolean {
  const levels: string[][] = [[]]
  for (const [word] of line.replace(/\[[^\]]*\]/g, '').matchAll(/[()]|\b(?:or|and|but not)\b/g)) {
    if (word === '(') levels.push([])
    else if (word !== ')') {
      const here = levels.at(-1) ?? []
      if (here.length > 0 && (word === 'but not' || here[0] !== word)) return true
      here.push(word)
    } else if (levels.length > 1) levels.pop()
  }
  return false
}

/** The parser's message in users' words. A message that no rule knows is returned unchanged. */
export function syntaxMessage(said: string, text: string, lineNumber: number): string {
  const line = text.split('\n')[lineNumber - 1]?.trim() ?? ''
  for (const [found, say] of RULES) {
    const match = found.exec(said)
    if (match !== null) return say(match.slice(1), { text, line })
  }
  return said.replaceAll('`', '"')
}
