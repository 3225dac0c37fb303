/** Compiles the OpenFGA language (schema 1.1), and refuses what cannot be evaluated, with line and column. */
import { createRequire } from 'node:module'
import type Openfga from '@openfga/syntax-transformer'
import { PdpError, type ValidationIssue } from '../../../shared/domain/errors.ts'
import { MEMBERSHIP_RELATIONS } from '../../../shared/domain/membership.ts'
import type { ConditionDefinition } from '../conditions/condition.ts'
import { conditionIssues } from '../conditions/issues.ts'
import type { Direct, Expression, Model } from '../model.ts'
import { plainMessage } from './model-messages.ts'

const require = createRequire(import.meta.url)

/** The parser. Loaded when it is first called, because a sixth of the time to load everything is its own. */
export const loadOpenfga = (): typeof Openfga => require('@openfga/syntax-transformer')

/** Types that every model may refer to without declaring them. A model that declares one of them replaces our declaration. */
const BUILT_IN: Readonly<Record<string, string>> = {
  user: '',
  service: '',
  group: '\n  relations\n    define member: [user, service, group#member]',
  organization: `\n  relations${[...MEMBERSHIP_RELATIONS].map((tier) => `\n    define ${tier}: [user]`).join('')}`,
}

type Userset = {
  this?: object
  computedUserset?: { relation?: string }
  tupleToUserset?: { tupleset?: { relation?: string }; computedUserset?: { relation?: string } }
  union?: { child?: readonly Userset[] }
  intersection?: { child?: readonly Userset[] }
  difference?: { base?: Userset; subtract?: Userset }
}
type Reference = { type: string; relation?: string; wildcard?: object; condition?: string }
type TypeDefinition = {
  type: string
  relations?: Record<string, Userset>
  metadata?: { relations?: Record<string, { directly_related_user_types?: readonly Reference[] }> } | null
}
export type ModelDocument = {
  schema_version: string
  type_definitions: readonly TypeDefinition[]
  conditions?: Record<string, ConditionDefinition>
}

/**
 * The types that the text declares; ours are not among them unless it does.
 * @param options `builtIn` false: the text may refer to nothing but what it declares.
 * Throws PdpError `request_invalid` with every issue; its place is `line:column`.
 */
export function compileModel(text: string, options: { readonly builtIn?: boolean } = {}): Model {
  const taken = objectNameIssues(text)
  if (taken.length > 0) throw invalid(taken)
  const declared = parsed(
    () => loadOpenfga().transformer.transformDSLToJSONObject(text) as unknown as ModelDocument,
    text,
  )
  if ((declared.type_definitions ?? []).length === 0) throw invalid([NO_TYPES])
  const ours = options.builtIn === false ? [] : Object.entries(BUILT_IN)
  const missing = ours.filter(([type]) => !declared.type_definitions.some((d) => d.type === type))
  const ourTypes = missing.map(([type, relations]) => `type ${type}${relations}\n`).join('')
  parsed(() => validate(text, ourTypes), text)
  return compileDocument(declared, text)
}

/** Types come before conditions, and `ourTypes` after those of the text, so that its lines keep their numbers. */
function validate(text: string, ourTypes: string): void {
  const conditions = /^[ \t]*condition\b/m.exec(text)?.index ?? text.length
  const types = withoutConditions(text.slice(0, conditions))
  try {
    loadOpenfga().validator.validateDSL(`${types.trimEnd()}\n${ourTypes}${text.slice(conditions)}`)
  } catch (err) {
    // A condition that no relation uses is no fault.
    const { errors } = err as { errors?: readonly { metadata?: { errorType?: string } }[] }
    const others = errors?.filter(({ metadata }) => metadata?.errorType !== 'condition-not-used')
    if (others === undefined || others.length > 0) throw others === undefined ? err : { errors: others }
  }
}

/** As compileModel, for a model that is already parsed and validated. `text`: where it was written, for the places. */
export function compileDocument(document: ModelDocument, text: string | null = null): Model {
  const used = document.type_definitions.flatMap((definition) =>
    Object.values(definition.metadata?.relations ?? {}).flatMap((relation) =>
      (relation.directly_related_user_types ?? []).map(({ condition }) => condition ?? ''),
    ),
  )
  const issues = conditionIssues(document.conditions ?? {}, new Set(used.filter((name) => name !== '')), text)
  if (issues.length > 0) throw invalid(issues)
  return new Map(
    document.type_definitions.map((definition) => {
      const relations = Object.entries(definition.relations ?? {}).map(
        ([relation, rewrite]) => [relation, expressionOf(definition, document, { relation, rewrite })] as const,
      )
      return [definition.type, new Map(relations)] as const
    }),
  )
}

const NO_TYPES = { place: '1:1', message: 'the model declares no type; add one, such as "type doc"' }

/** Turns a refusal of the language's parser or validator into a PdpError `request_invalid` with every issue. */
export function parsed<T>(parse: () => T, text = 'model'): T {
  try {
    return parse()
  } catch (err) {
    throw invalid(issuesOf(err, text))
  }
}

/**
 * The validator takes `folder with c` for the name of a type. Everything keeps its place: what goes becomes spaces. That
 * conditions are defined is checked when they are compiled.
 */
const withoutConditions = (types: string): string =>
  types.replace(/\[[^\]]*\]/g, (list) => {
    const seen = new Map<string, Set<string>>()
    return list.replace(/([[,])([^,\]]*)/g, (_, before: string, item: string) => {
      const plain = item.replace(/\swith\s+[^\s,\]]+/g, blank)
      const forms = seen.get(plain.trim()) ?? new Set<string>()
      const form = item.trim().replace(/\s+/g, ' ')
      // The same subject with another condition is no repetition, and the same form is one.
      const isOther = forms.size > 0 && !forms.has(form)
      seen.set(plain.trim(), forms.add(form))
      return isOther ? blank(before + item) : before + plain
    })
  })

const blank = (text: string): string => text.replace(/[^\n]/g, ' ')

function invalid(issues: readonly ValidationIssue[]): PdpError {
  return new PdpError(
    'request_invalid',
    `the model is not valid: ${issues.map((m) => `${m.place} ${m.message}`).join('; ')}`,
    {
      issues,
    },
  )
}

/** The parser counts lines and columns from 0. Issues in a module of several name its file first. */
function issuesOf(error: unknown, text: string): readonly ValidationIssue[] {
  type SyntaxIssue = { msg?: string; line?: { start?: number }; column?: { start?: number }; file?: string }
  const found = (error as { errors?: readonly SyntaxIssue[] }).errors
  if (!Array.isArray(found) || found.length === 0)
    return [{ place: '1:1', message: 'this is not a model in the OpenFGA language, schema 1.1' }]
  return found.map(({ msg = '', line, column, file }: SyntaxIssue) => {
    const number = (line?.start ?? 0) + 1
    return {
      place: `${file === undefined ? '' : `${file}:`}${number}:${(column?.start ?? 0) + 1}`,
      message: plainMessage(msg, text, number),
    }
  })
}

function referencesOf(definition: TypeDefinition, document: ModelDocument, relation: string): Direct {
  const references = definition.metadata?.relations?.[relation]?.directly_related_user_types ?? []
  const named = references.map((r) => ({
    kind: r.wildcard !== undefined ? ('wildcards' as const) : (r.relation ?? '') !== '' ? 'usersets' : 'types',
    subject: r.wildcard !== undefined ? `${r.type}:*` : (r.relation ?? '') !== '' ? `${r.type}#${r.relation}` : r.type,
    type: r.type,
    condition: r.condition ?? '',
  }))
  const plain = named.filter(({ condition }) => condition === '')
  const conditional = new Map<string, Map<string, ConditionDefinition>>()
  for (const { subject, condition } of named) {
    if (condition === '') continue
    const definition = document.conditions?.[condition]
    if (definition === undefined) throw new TypeError(`condition ${condition} is not defined`)
    const allowed = conditional.get(subject) ?? new Map<string, ConditionDefinition>()
    conditional.set(subject, allowed.set(condition, definition))
  }
  return {
    types: new Set(plain.filter(({ kind }) => kind === 'types').map(({ type }) => type)),
    wildcards: new Set(plain.filter(({ kind }) => kind === 'wildcards').map(({ type }) => type)),
    usersets: new Set(plain.filter(({ kind }) => kind === 'usersets').map(({ subject }) => subject)),
    conditional: conditional.size === 0 ? null : conditional,
  }
}

function expressionOf(
  definition: TypeDefinition,
  document: ModelDocument,
  of: { readonly relation: string; readonly rewrite: Userset },
): Expression {
  const { relation, rewrite } = of
  const nested = (part: Userset): Expression => expressionOf(definition, document, { relation, rewrite: part })
  if (rewrite.this !== undefined) return { kind: 'direct', allowed: referencesOf(definition, document, relation) }
  if (rewrite.computedUserset !== undefined)
    return { kind: 'computed', relation: rewrite.computedUserset.relation ?? '' }
  if (rewrite.union !== undefined) return { kind: 'union', parts: (rewrite.union.child ?? []).map(nested) }
  if (rewrite.intersection !== undefined)
    return { kind: 'intersection', parts: (rewrite.intersection.child ?? []).map(nested) }
  if (rewrite.difference?.base !== undefined && rewrite.difference.subtract !== undefined) {
    return { kind: 'exclusion', base: nested(rewrite.difference.base), subtract: nested(rewrite.difference.subtract) }
  }
  if (rewrite.tupleToUserset !== undefined) {
    const tupleset = rewrite.tupleToUserset.tupleset?.relation ?? ''
    return {
      kind: 'from',
      tupleset,
      relation: rewrite.tupleToUserset.computedUserset?.relation ?? '',
      parents: referencesOf(definition, document, tupleset),
    }
  }
  throw invalid([
    { place: '1:1', message: `relation ${definition.type}#${relation} has a rewrite that this version does not know` },
  ])
}

/**
 * Names that no model may use. The parser of the language keeps what a model declares in plain objects: a type `__proto__` would
 * give its relations to every object of the process.
 */
const TAKEN = new Set(Object.getOwnPropertyNames(Object.prototype))
const WORD = /[\w$-]+/g
const CONDITION = /^[ \t]*condition\b/
/** Within one line, whatever the parser takes for the end of a line: else one could hide a type. */
const LITERAL = /"(?:\\.|[^"\\\r\u2028\u2029])*"|'(?:\\.|[^'\\\r\u2028\u2029])*'/g

/** Every such name outside of comments and of the texts in conditions, with its place. Before anything parses the model. */
function objectNameIssues(text: string): readonly ValidationIssue[] {
  const lines = text.split('\n')
  const found = lines.findIndex((line) => CONDITION.test(line))
  const firstCondition = found < 0 ? lines.length : found
  return lines.flatMap((line, at) =>
    [...(at < firstCondition ? withoutComment(line) : withoutTexts(withoutComment(line))).matchAll(WORD)]
      .filter(([word]) => TAKEN.has(word))
      .map(({ 0: word, index }) => ({
        place: `${at + 1}:${index + 1}`,
        message: `"${word}" is a name that every object of JavaScript has; choose another`,
      })),
  )
}

const withoutTexts = (line: string): string => line.replace(LITERAL, (found) => ' '.repeat(found.length))
/** Exactly as the parser does it, so that nothing is a comment here alone. */
const withoutComment = (line: string): string => (line.trimStart().startsWith('#') ? '' : (line.split(' #')[0] ?? ''))
