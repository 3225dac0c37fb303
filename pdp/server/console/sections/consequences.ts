/** The effects of a change before it is written: who would gain access, and who would lose it. */

import { answersAfter, type ProposedChange } from '../../../engine/decision-point/supposed-changes.ts'
import { membershipOf } from '../../../engine/writes/memberships.ts'
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import type { ContextualTuple, ListPage } from '../../../shared/domain/decision.ts'
import type { JournalId } from '../../../shared/domain/journal.ts'
import type { Membership } from '../../../shared/domain/membership.ts'
import { compareNames, typeOf } from '../../../shared/domain/names.ts'
import { address, alert, link, name } from '../parts.ts'
import type { ConsoleVisit } from '../visit.ts'
import { table } from './table.ts'

/** How many tuples are supposed, how many resources are compared, and the time for all of it. */
const TUPLES_MAX = 100
const RESOURCES_MAX = 200
const TOGETHER_MS = 3_000
const SUBJECTS_MAX = 1_000

/** `log`: the log that the changes belong to. */
export type Proposal = { readonly log: JournalId; readonly changes: readonly ProposedChange[] }
type Effect = {
  readonly sign: '+ gains' | '− loses'
  readonly subject: string
  readonly relation: string
  readonly resource: string
}
type Consequences = { readonly effects: readonly Effect[]; readonly isWhole: boolean }

/** The effects on people and clients. A person who may not ask about others reads that they are not shown. */
export async function consequencesOf(visit: ConsoleVisit, proposal: Proposal): Promise<Html> {
  if (visit.organization === null) return EMPTY
  if (!visit.may('decisions:read'))
    return html`<p class="note">Who gains and who loses is shown to those with <code>portcullis:decisions:read</code>.</p>`
  const { effects, isWhole } = await compute(visit, visit.organization, proposal)
  const { organization: org } = visit
  const [gains, loses] = ['+ gains', '− loses'].map((sign) => effects.filter((one) => one.sign === sign).length)
  const least = isWhole ? '' : 'at least '
  const rows = effects.map(({ sign, subject, relation, resource }) => [
    html`<span class="${sign === '+ gains' ? 'allowed' : 'denied'}">${sign}</span>`,
    name(subject),
    html`${name(relation)} ${name(resource)}`,
    link(address('ask', { org, subject, relation, resource }), 'Now?'),
  ])
  return html`${isWhole ? EMPTY : alert('Not everything was looked at: more may change than this table says.')}${table(
    visit,
    {
      id: 'effects',
      isWhole: true,
      caption: `Who gains and who loses: ${least}${gains} gained, ${least}${loses} lost`,
      columns: ['Effect', 'Subject', 'Access', 'Ask'],
      rows,
      empty: html`<p>Nobody's access changes${isWhole ? '' : ', as far as was looked at'}: they have it by something else, or the change leads to nobody.</p>`,
    },
  )}`
}

type Computing = {
  readonly organization: string
  readonly proposal: Proposal
  readonly isLate: () => boolean
}

async function compute(visit: ConsoleVisit, organization: string, proposal: Proposal): Promise<Consequences> {
  const startedMs = performance.now()
  const at: Computing = { organization, proposal, isLate: () => performance.now() - startedMs > TOGETHER_MS }
  const byTuples = await ofTuples(visit, at)
  const byMemberships = await ofMemberships(visit, at)
  const byRoles = await ofRoles(visit, at, byTuples.effects)
  const parts = [byTuples, byMemberships, byRoles]
  return {
    effects: parts.flatMap(({ effects }) => effects),
    // A role that is granted above or everywhere also counts in other organizations, which are not compared.
    isWhole: proposal.log === organization && parts.every(({ isWhole }) => isWhole),
  }
}

/** A list that may have been cut: it tells nothing about names after its end. */
type Cut = Pick<ListPage, 'items' | 'complete' | 'nextPageToken'>

const isAll = ({ complete, nextPageToken }: Cut): boolean => complete && nextPageToken === null

/** Names that are in only one of the lists, up to the earlier end of both. */
function differing(was: Cut, will: Cut): readonly (readonly [Effect['sign'], string])[] {
  const ends = [was, will].flatMap(({ items, nextPageToken }) => (nextPageToken === null ? [] : [items.at(-1) ?? '']))
  const isWithin = (one: string): boolean => ends.every((end) => compareNames(one, end) <= 0)
  const [before, then] = [new Set(was.items), new Set(will.items)]
  return [
    ...[...then].filter((one) => !before.has(one)).map((one) => ['+ gains', one] as const),
    ...[...before].filter((one) => !then.has(one)).map((one) => ['− loses', one] as const),
  ].filter(([, one]) => isWithin(one))
}

async function ofTuples(visit: ConsoleVisit, { organization, proposal, isLate }: Computing): Promise<Consequences> {
  const { pdp } = visit.deps.management
  const all = proposal.changes.filter((change) => change.kind === 'tuple')
  const supposed = all.slice(0, TUPLES_MAX)
  const by = (op: 'write' | 'delete') => supposed.filter((one) => one.op === op).map(({ tuple }) => tuple)
  const after = { contextualTuples: by('write'), withoutTuples: by('delete') }
  const tuples = supposed.map(({ tuple }) => tuple)
  const { resources, isWhole: isFound } = await touched(visit, organization, { tuples, isLate })
  let isWhole = isFound && all.length === supposed.length
  const effects: Effect[] = []
  for (const [resource, relations] of resources) {
    for (const relation of relations)
      for (const type of ['user', 'service']) {
        if (isLate()) return { effects, isWhole: false }
        const question = { organization, resource, relation, type, pageSize: SUBJECTS_MAX }
        const [was, will] = await Promise.all([pdp.listSubjects(question), pdp.listSubjects({ ...question, ...after })])
        isWhole &&= isAll(was) && isAll(will)
        effects.push(...differing(was, will).map(([sign, subject]) => ({ sign, subject, relation, resource })))
      }
  }
  return { effects, isWhole }
}

/** Each person's access in the organization, with the membership as it is and as it would be. */
async function ofMemberships(
  visit: ConsoleVisit,
  { organization, proposal, isLate }: Computing,
): Promise<Consequences> {
  const { pdp, store } = visit.deps.management
  const effects: Effect[] = []
  let isWhole = true
  const { log, changes } = proposal
  const [before, then] = [answersAfter(store, log, []), answersAfter(store, log, changes)]
  for (const change of changes) {
    if (change.kind !== 'membership') continue
    const subject = `user:${change.user}`
    effects.push(...(await tierEffects(visit, log, change)))
    // Types that no model declares are found by their relationships only.
    const tuples = await store.tuples(organization, { subject }, { after: null, countMax: RESOURCES_MAX })
    const { resources, isWhole: isFound } = await touched(visit, organization, { tuples, isLate })
    isWhole &&= isFound && tuples.length < RESOURCES_MAX
    const pairs = new Map<string, Set<string>>()
    const add = (type: string, relations: Iterable<string>): void =>
      void pairs.set(type, new Set([...(pairs.get(type) ?? []), ...relations]))
    for (const type of await pdp.types(organization)) add(type, await pdp.relations(organization, type))
    for (const [object, relations] of resources) add(typeOf(object), relations)
    for (const [type, relations] of pairs)
      for (const relation of relations) {
        if (isLate()) return { effects, isWhole: false }
        const one = { type: 'user', id: change.user }
        const question = { organization, subject: one, relation, type, pageSize: SUBJECTS_MAX }
        const [was, will] = [await before.resources(question), await then.resources(question)]
        isWhole &&= isAll(was) && isAll(will)
        effects.push(...differing(was, will).map(([sign, resource]) => ({ sign, subject, relation, resource })))
      }
  }
  return { effects, isWhole }
}

/** Effects on the tier's own relation on the organization. */
async function tierEffects(
  { deps }: ConsoleVisit,
  log: JournalId,
  { user, membership }: ProposedChange & { readonly kind: 'membership' },
): Promise<readonly Effect[]> {
  const stored = await membershipOf(deps.management.store, log, user)
  const tierOf = (one: Membership | null): string | null => (one?.status === 'active' ? one.role : null)
  const [was, will] = [tierOf(stored), tierOf(membership)]
  const effect = (sign: Effect['sign'], relation: string | null): readonly Effect[] =>
    relation === null ? [] : [{ sign, subject: `user:${user}`, relation, resource: `organization:${log}` }]
  return was === will ? [] : [...effect('+ gains', will), ...effect('− loses', was)]
}

/** Effects on permission keys of roles: for subjects whose membership changes or who are granted a role, and for members of groups. */
async function ofRoles(
  visit: ConsoleVisit,
  { organization, proposal, isLate }: Computing,
  byTuples: readonly Effect[],
): Promise<Consequences> {
  const { store } = visit.deps.management
  const { log, changes } = proposal
  const subjects = new Set(byTuples.flatMap(({ subject, resource }) => (typeOf(resource) === 'group' ? [subject] : [])))
  let isWhole = true
  for (const change of changes) {
    if (change.kind === 'membership') subjects.add(`user:${change.user}`)
    if (change.kind !== 'role_grant') continue
    const found = await holdersOf(visit, organization, change.grant.subject)
    for (const one of found.items) subjects.add(one)
    isWhole &&= isAll(found)
  }
  const [before, then] = [answersAfter(store, log, []), answersAfter(store, log, changes)]
  const effects: Effect[] = []
  for (const subject of subjects) {
    if (isLate()) return { effects, isWhole: false }
    const [was, will] = [await before.held(organization, subject), await then.held(organization, subject)]
    const resource = `organization:${organization}`
    const keys = differing(wholeList(was), wholeList(will))
    effects.push(...keys.map(([sign, relation]) => ({ sign, subject, relation, resource })))
  }
  return { effects, isWhole }
}

const wholeList = (items: readonly string[]): Cut => ({ items, complete: true, nextPageToken: null })

async function holdersOf({ deps }: ConsoleVisit, organization: string, subject: string): Promise<Cut> {
  if (typeOf(subject) !== 'group') return wholeList([subject])
  const question = { organization, resource: subject, relation: 'member', pageSize: SUBJECTS_MAX }
  const pages = await Promise.all(
    ['user', 'service'].map((type) => deps.management.pdp.listSubjects({ ...question, type })),
  )
  return { ...wholeList(pages.flatMap(({ items }) => items)), complete: pages.every(isAll) }
}

type Touched = {
  /** Relations by object: those of its model, and those by which tuples name it. */
  readonly resources: ReadonlyMap<string, ReadonlySet<string>>
  readonly isWhole: boolean
}

/** Objects of the tuples, and objects that depend on these: by sets of subjects, or by relations to them. */
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
  for (const [object, relations] of resources) {
    for (const subject of [object, ...[...relations].map((relation) => `${object}#${relation}`)]) {
      if (isLate()) return { resources, isWhole: false }
      const found = await store.tuples(organization, { subject }, { after: null, countMax: RESOURCES_MAX })
      for (const tuple of found) await add(tuple)
      if (found.length === RESOURCES_MAX || resources.size > RESOURCES_MAX) return { resources, isWhole: false }
    }
  }
  return { resources, isWhole: true }
}
