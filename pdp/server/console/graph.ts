/** The types of a model: as a picture that the server lays out, and as a table with the same content. */
import type { Direct, Expression, Model } from '../../engine/decide/model.ts'
import { EMPTY, type Html, html, joined } from '../../shared/base/html.ts'
import { name } from './parts.ts'
import { drawings } from './sections/drawing.ts'
import { type Place, table } from './sections/table.ts'

const NODES_MAX = 150

type Edge = { readonly from: string; readonly to: string; readonly relations: Set<string> }
export type TypeGraph = { readonly types: readonly string[]; readonly edges: readonly Edge[] }

/** The types and their edges. An edge leads from a type to a type that its relations may name. */
export function typeGraph(model: Model): TypeGraph {
  const edges = new Map<string, Edge>()
  const types = new Set(model.keys())
  for (const [type, relations] of model) {
    for (const [relation, expression] of relations) {
      for (const subject of directsOf(expression).flatMap(subjectsOf)) {
        const to = subject.split(/[#:]/, 1)[0] ?? ''
        types.add(to)
        const key = JSON.stringify([type, to])
        const edge = edges.get(key) ?? { from: type, to, relations: new Set<string>() }
        edge.relations.add(relation)
        edges.set(key, edge)
      }
    }
  }
  return { types: [...types].sort(), edges: [...edges.values()] }
}

function directsOf(expression: Expression): readonly Direct[] {
  switch (expression.kind) {
    case 'direct':
      return [expression.allowed]
    case 'union':
    case 'intersection':
      return expression.parts.flatMap(directsOf)
    case 'exclusion':
      return [...directsOf(expression.base), ...directsOf(expression.subtract)]
    default:
      return []
  }
}

export const subjectsOf = ({ types, wildcards, usersets, conditional }: Direct): readonly string[] => [
  ...types,
  ...[...wildcards].map((type) => `${type}:*`),
  ...usersets,
  ...(conditional === null ? [] : conditional.keys()),
]

/** Relations that relationships may name: those that can be granted directly, not only derived. */
export const writableRelations = (model: Model): readonly { readonly type: string; readonly relation: string }[] =>
  [...model].flatMap(([type, relations]) =>
    [...relations].flatMap(([relation, expression]) =>
      directsOf(expression).some((direct) => subjectsOf(direct).length > 0) ? [{ type, relation }] : [],
    ),
  )

/** The picture; of a large model only the first types, while the table has all. */
export function picture({ types, edges }: TypeGraph): Html {
  if (types.length === 0) return EMPTY
  const shown = new Set(types.slice(0, NODES_MAX))
  const loops = new Set(edges.filter(({ from, to }) => from === to).map(({ from }) => from))
  const left = types.length - shown.size
  const drawn = drawings({
    id: 'graph',
    label: 'Picture of the types',
    title: 'Types and which types their relations name; the table below says the same.',
    boxes: [...shown].map((type) => ({
      id: type,
      text: loops.has(type) ? `${type} ↻` : type,
      to: `#type-${type}`,
    })),
    arrows: edges
      .filter(({ from, to }) => shown.has(from) && shown.has(to) && from !== to)
      .map(({ from, to, relations }) => ({ from, to, title: `${from} → ${to}: ${[...relations].join(', ')}` })),
  })
  return html`<figure class="graph">
${drawn}${left > 0 ? html`<figcaption>${String(left)} more types are in the table only.</figcaption>` : EMPTY}</figure>`
}

/** The model in words: each type with its relations, the subjects of each, and the relations that depend on it. */
export function typeTable(visit: Place, model: Model): Html {
  const rows = [...model].flatMap(([type, relations]) =>
    relations.size === 0
      ? [
          [
            html`<span id="type-${type}">${name(type)}</span>`,
            html`<span class="note">no relations</span>`,
            EMPTY,
            EMPTY,
          ],
        ]
      : [...relations].map(([relation, expression], i) => [
          i === 0 ? html`<span id="type-${type}">${name(type)}</span>` : name(type),
          name(relation),
          list(directsOf(expression).flatMap(subjectsOf)),
          list(usersOf(model, type, relation)),
        ]),
  )
  return table(visit, {
    id: 'types',
    caption: 'Types and relations',
    columns: ['Type', 'Relation', 'May be written for', 'Used by'],
    rows,
    empty: html`<p>The model declares no type.</p>`,
  })
}

const list = (names: readonly string[]): Html => joined([...new Set(names)].map(name))

function usersOf(model: Model, type: string, relation: string): readonly string[] {
  return [...model].flatMap(([other, relations]) =>
    [...relations].flatMap(([used, expression]) =>
      uses(expression, { isSame: other === type, relation }) ? [other === type ? used : `${other}#${used}`] : [],
    ),
  )
}

function uses(expression: Expression, at: { readonly isSame: boolean; readonly relation: string }): boolean {
  switch (expression.kind) {
    case 'computed':
      return at.isSame && expression.relation === at.relation
    case 'from':
      return (at.isSame && expression.tupleset === at.relation) || expression.relation === at.relation
    case 'union':
    case 'intersection':
      return expression.parts.some((part) => uses(part, at))
    case 'exclusion':
      return uses(expression.base, at) || uses(expression.subtract, at)
    default:
      return false
  }
}
