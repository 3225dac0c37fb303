/** Compiles the OpenFGA language (schema 1.1), and refuses what cannot be evaluated, with line and column. */
import openfga from '@openfga/syntax-transformer'
import { PdpError, type ValidationIssue } from '../domain/errors.ts'
import { MEMBERSHIP_RELATIONS } from '../domain/membership.ts'
import { plainMessage } from './language/model-messages.ts'
import type { Direct, Expression, Model } from './model.ts'

/** What every model may refer to without declaring it. A model that declares one of these types replaces our declaration. */
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
  conditions?: Record<string, object>
}

/**
 * The types that the text declares; ours are not among them unless it does.
 * @param options `builtIn` false: the text may refer to nothing but what it declares.
 * Throws PdpError `request_invalid` with every issue; its place is `line:column`.
 */
export function compileModel(text: string, options: { readonly builtIn?: boolean } = {}): Model {
  const declared = parsed(() => openfga.transformer.transformDSLToJSONObject(text) as unknown as ModelDocument, text)
  if ((declared.type_definitions ?? []).length === 0) throw invalid([NO_TYPES])
  const ours = options.builtIn === false ? [] : Object.entries(BUILT_IN)
  const missing = ours.filter(([type]) => !declared.type_definitions.some((d) => d.type === type))
  const whole = `${text.trimEnd()}\n${missing.map(([type, relations]) => `type ${type}${relations}\n`).join('')}`
  refuseConditions(declared) // first, since they may be what the rest of the issues come from
  parsed(() => openfga.validator.validateDSL(whole), text)
  return compileDocument(declared)
}

/** As compileModel, for a model that is already parsed and validated. */
export function compileDocument(document: ModelDocument): Model {
  refuseConditions(document)
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

/** What the parser or the validator of the language refuses, as a PdpError `request_invalid` with every issue. */
export function parsed<T>(parse: () => T, text = 'model'): T {
  try {
    return parse()
  } catch (error) {
    throw invalid(issuesOf(error, text))
  }
}

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
  type Found = { msg?: string; line?: { start?: number }; column?: { start?: number }; file?: string }
  const found = (error as { errors?: readonly Found[] }).errors
  if (!Array.isArray(found) || found.length === 0)
    return [{ place: '1:1', message: 'this is not a model in the OpenFGA language, schema 1.1' }]
  return found.map(({ msg = '', line, column, file }: Found) => {
    const number = (line?.start ?? 0) + 1
    return {
      place: `${file === undefined ? '' : `${file}:`}${number}:${(column?.start ?? 0) + 1}`,
      message: plainMessage(msg, text, number),
    }
  })
}

function refuseConditions(document: ModelDocument): void {
  const names = new Set(Object.keys(document.conditions ?? {}))
  for (const definition of document.type_definitions) {
    for (const { directly_related_user_types: references } of Object.values(definition.metadata?.relations ?? {})) {
      for (const { condition } of references ?? [])
        if (condition !== undefined && condition !== '') names.add(condition)
    }
  }
  if (names.size === 0) return
  const list = [...names].map((name) => `"${name}"`).join(', ')
  throw invalid([
    {
      place: '1:1',
      message: `the model uses ${names.size === 1 ? 'condition' : 'conditions'} ${list}; conditions are not supported yet`,
    },
  ])
}

function referencesOf(definition: TypeDefinition, relation: string): Direct {
  const references = definition.metadata?.relations?.[relation]?.directly_related_user_types ?? []
  const plain = references.filter((r) => r.wildcard === undefined && (r.relation ?? '') === '')
  return {
    types: new Set(plain.map((r) => r.type)),
    wildcards: new Set(references.filter((r) => r.wildcard !== undefined).map((r) => r.type)),
    usersets: new Set(references.filter((r) => (r.relation ?? '') !== '').map((r) => `${r.type}#${r.relation}`)),
  }
}

function expressionOf(
  definition: TypeDefinition,
  document: ModelDocument,
  of: { readonly relation: string; readonly rewrite: Userset },
): Expression {
  const { relation, rewrite } = of
  const nested = (part: Userset): Expression => expressionOf(definition, document, { relation, rewrite: part })
  if (rewrite.this !== undefined) return { kind: 'direct', allowed: referencesOf(definition, relation) }
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
      parents: referencesOf(definition, tupleset),
    }
  }
  throw invalid([
    { place: '1:1', message: `relation ${definition.type}#${relation} has a rewrite that this version does not know` },
  ])
}
