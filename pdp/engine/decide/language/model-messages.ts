/** Refusals of the language's parser and validator, in our words: the mistake, and what to write instead. */
import { didYouMean } from '../../../shared/domain/nearest.ts'

/** `line`: the text of the line at fault. */
type SourceLine = { readonly text: string; readonly line: string }
type Rule = readonly [found: RegExp, say: (names: readonly string[], place: SourceLine) => string]

const NAME = '[`\'"]?([^`\'"]+)[`\'"]?'
const RULES: readonly Rule[] = [
  [
    /no viable alternative|mismatched input|extraneous input|missing .+ at |token recognition error/,
    (_, { text, line }) =>
      /^\s*(#.*\n\s*)*model\b/.test(text) || /^\s*(#.*\n\s*)*module\b/.test(text)
        ? `${line === '' ? 'something is missing here' : `"${line}" is not understood`}; a line is "type <name>", "  relations" or "    define <relation>: <rule>", and a rule is such as "[user] or editor"`
        : 'a model begins with the lines "model" and "  schema 1.1"',
  ],
  [
    new RegExp(`${NAME} is an impossible relation for ${NAME} \\((potential loop|no entrypoint)\\)`),
    ([relation, type]) =>
      `nobody can ever have relation "${relation}" of type "${type}", since its rule leads back to itself alone; add the subjects that a tuple may name, such as [user]`,
  ],
  [
    new RegExp(`partial relation definition ${NAME} is a duplicate in the relation ${NAME}`),
    ([operand, relation]) => `"${operand}" occurs twice in the rule of relation "${relation}"; remove one`,
  ],
  [
    new RegExp(`type restriction ${NAME} is a duplicate in the relation ${NAME}`),
    ([type, relation]) => `"${type}" occurs twice between the brackets of relation "${relation}"; remove one`,
  ],
  [
    new RegExp(`the type ${NAME} is a duplicate`),
    ([type]) => `type "${type}" is declared twice; join its relations in one declaration`,
  ],
  [
    new RegExp(`(?:duplicate (?:relationship )?definition ${NAME}|${NAME} is already defined in )`),
    ([first, second]) => `relation "${first ?? second}" is defined twice in one type; remove one`,
  ],
  [
    new RegExp(`${NAME} is not a valid type`),
    ([type = ''], { text }) => `there is no type "${type}"${didYouMean(type, typesOf(text))}`,
  ],
  [
    new RegExp(`the relation ${NAME} does not exist`),
    ([relation = ''], { text }) => `there is no relation "${relation}"${didYouMean(relation, relationsOf(text))}`,
  ],
  [
    new RegExp(`${NAME} is not a valid relation for ${NAME}`),
    ([relation = '', type], { text }) =>
      `type "${type}" has no relation "${relation}"${didYouMean(relation, relationsOf(text))}`,
  ],
  [
    new RegExp(
      `the ${NAME} relation definition on type ${NAME} is not valid: ${NAME} does not exist on ${NAME}, which is of type ${NAME}`,
    ),
    ([relation, , , parent, type]) =>
      `"${relation} from ${parent}" finds nothing: type "${type}", which "${parent}" names, has no relation "${relation}"`,
  ],
  [
    new RegExp(`${NAME} relation used inside from allows only direct relation`),
    ([relation]) => `"${relation}" comes after "from", so its own rule must be a list of types alone, such as [folder]`,
  ],
  [
    /assignable relation .* must have types/,
    () => 'the brackets are empty; name the types of subjects that a tuple may have, such as [user]',
  ],
  [
    new RegExp(`type restriction ${NAME} cannot contain both wildcard and relation`),
    ([type]) => `"${type}" has both * and a relation; write one of them`,
  ],
  [
    /schema version|invalid schema/,
    () => 'the schema is not one that is known here; write "  schema 1.1" below "model"',
  ],
  [
    /does not match naming rule|cannot be named/,
    (_, { line }) => `"${line}" has a name that cannot be one; use letters, digits, _ and -, and neither self nor this`,
  ],
  [
    new RegExp(`${NAME} is not a defined condition`),
    ([condition]) => `there is no condition "${condition}"; define it below the types, or remove "with ${condition}"`,
  ],
]

/** The library's message, as a user can read it; a message that is not known keeps its words. */
export function plainMessage(said: string, text: string, lineNumber: number): string {
  const line = text.split('\n')[lineNumber - 1]?.trim() ?? ''
  for (const [found, say] of RULES) {
    const match = found.exec(said)
    if (match !== null) return say(match.slice(1), { text, line })
  }
  return said.replaceAll('`', '"')
}

const typesOf = (text: string): readonly string[] => namesAfter(text, /^[ \t]*(?:extend[ \t]+)?type[ \t]+(\S+)/gm)
const relationsOf = (text: string): readonly string[] => namesAfter(text, /^[ \t]*define[ \t]+([^\s:]+)/gm)

function namesAfter(text: string, pattern: RegExp): readonly string[] {
  const built = pattern.source.includes('type') ? ['user', 'service', 'group', 'organization'] : []
  return [...built, ...[...text.matchAll(pattern)].map(([, name = '']) => name)]
}
