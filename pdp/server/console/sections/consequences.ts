/** A change of relationships before it is written: who would gain by it, and who would lose. */
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import type { ContextualTuple } from '../../../shared/domain/decision.ts'
import { typeOf } from '../../../shared/domain/names.ts'
import { address, alert, link, name, table } from '../parts.ts'
import type { ConsoleVisit } from '../visit.ts'

/** Tuples of a question that are supposed, resources that are looked at, and how long that may take together. */
const TUPLES_MAX = 100
const RESOURCES_MAX = 200
const TOGETHER_MS = 3_000
const SUBJECTS_MAX = 1_000
const SHOWN_MAX = 100

export type Proposal = { readonly tuples: readonly ContextualTuple[]; readonly op: 'write' | 'delete' }
type Change = {
  readonly sign: '+ gains' | '− loses'
  readonly subject: string
  readonly relation: string
  readonly resource: string
}
type Consequences = { readonly changes: readonly Change[]; readonly isWhole: boolean }

/** People and clients. Nothing for those who may not ask about others. */
export async function consequencesOf(visit: ConsoleVisit, proposal: Proposal): Promise<Html> {
  if (!visit.may('decisions:read') || visit.organization === null) return EMPTY
  const { changes, isWhole } = await compute(visit, visit.organization, proposal)
  const { organization: org } = visit
  const [gains, loses] = ['+ gains', '− loses'].map((sign) => changes.filter((one) => one.sign === sign).length)
  const least = isWhole ? '' : 'at least '
  const rows = changes
    .slice(0, SHOWN_MAX)
    .map(({ sign, subject, relation, resource }) => [
      html`<span class="${sign === '+ gains' ? 'allowed' : 'denied'}">${sign}</span>`,
      name(subject),
      html`${name(relation)} ${name(resource)}`,
      link(address('ask', { org, subject, relation, resource }), 'Now?'),
    ])
  return html`${isWhole ? EMPTY : alert('Not everything was looked at: more may change than this table says.')}${table({
    caption: `Who gains and who loses: ${least}${gains} gained, ${least}${loses} lost${changes.length > SHOWN_MAX ? `; the first ${SHOWN_MAX}` : ''}`,
    columns: ['', 'Subject', 'Access', 'Ask'],
    rows,
    empty: html`<p>Nobody's access changes${isWhole ? '' : ', as far as was looked at'}: they have it by something else, or the relationship leads to nobody.</p>`,
  })}`
}

async function compute(visit: ConsoleVisit, organization: string, { tuples, op }: Proposal): Promise<Consequences> {
  const { pdp } = visit.deps.management
  const startedMs = performance.now()
  const isLate = (): boolean => performance.now() - startedMs > TOGETHER_MS
  const supposed = tuples.slice(0, TUPLES_MAX)
  const after = op === 'write' ? { contextualTuples: supposed } : { withoutTuples: supposed }
  const { resources, isWhole: isFound } = await touched(visit, organization, { tuples: supposed, isLate })
  let isWhole = isFound && tuples.length === supposed.length
  const changes: Change[] = []
  for (const [resource, relations] of resources) {
    for (const relation of relations)
      for (const type of ['user', 'service']) {
        if (isLate()) return { changes, isWhole: false }
        const question = { organization, resource, relation, type, pageSize: SUBJECTS_MAX }
        const [was, will] = await Promise.all([pdp.listSubjects(question), pdp.listSubjects({ ...question, ...after })])
        isWhole &&= [was, will].every(({ complete, nextPageToken }) => complete && nextPageToken === null)
        const [before, then] = [new Set(was.items), new Set(will.items)]
        for (const subject of then)
          if (!before.has(subject)) changes.push({ sign: '+ gains', subject, relation, resource })
        for (const subject of before)
          if (!then.has(subject)) changes.push({ sign: '− loses', subject, relation, resource })
      }
  }
  return { changes, isWhole }
}

type Touched = {
  /** By object: the relations that its model gives it, and those by which tuples name it. */
  readonly resources: ReadonlyMap<string, ReadonlySet<string>>
  readonly isWhole: boolean
}

/** The objects of the tuples, and those whose answers may lean on them: over sets that name them, and over relations to them. */
async function touched(
  visit: ConsoleVisit,
  organization: string,
  { tuples, isLate }: { readonly tuples: readonly ContextualTuple[]; readonly isLate: () => boolean },
): Promise<Touched> {
  const { pdp, store } = visit.deps.management
  const resources = new Map<string, Set<string>>()
  const add = async ({ object, relation }: Pick<ContextualTuple, 'object' | 'relation'>): Promise<void> => {
    const known = resources.get(object) ?? new Set(await pdp.relations(organization, typeOf(object)))
    resources.set(object, known.add(relation))
  }
  for (const tuple of tuples) await add(tuple)
  let isWhole = true
  for (const [object, relations] of resources) {
    for (const subject of [object, ...[...relations].map((relation) => `${object}#${relation}`)]) {
      if (isLate()) return { resources, isWhole: false }
      const found = await store.tuples(organization, { subject }, { after: null, countMax: RESOURCES_MAX })
      for (const tuple of found) await add(tuple)
      if (found.length === RESOURCES_MAX || resources.size > RESOURCES_MAX) return { resources, isWhole: false }
    }
    // Roles of a group come and go with its members, and no supposed relationship counts for them.
    if (typeOf(object) === 'group')
      isWhole &&= (await store.roleGrants({ subject: object }, { after: null, countMax: 1 })).length === 0
  }
  return { resources, isWhole }
}
