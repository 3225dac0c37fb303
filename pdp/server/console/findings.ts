/** Problems that the start page names, each with what to do, as a link to the screen where it is done. */
import { knownModel } from '../../engine/decide/models/known-models.ts'
import { withModels } from '../../engine/worker/worker.ts'
import { createRestrictions } from '../../engine/writes/restrictions.ts'
import { EMPTY, type Html, html } from '../../shared/base/html.ts'
import { ENVIRONMENT } from '../../shared/domain/journal.ts'
import type { StoredManifest } from '../../shared/domain/manifest.ts'
import type { Tuple } from '../../shared/domain/tuple.ts'
import { writableRelations } from './graph.ts'
import { type Finding, ofConditions, ofIdentity, ofStreams } from './operations.ts'
import { address, link, name } from './parts.ts'
import { table } from './sections/table.ts'
import type { ConsoleVisit } from './visit.ts'

const TUPLES_READ_MAX = 300
const MEMBERS_READ_MAX = 200
/** How many problems of one kind are shown. */
const SHOWN_MAX = 20

type Member = { readonly user: string; readonly role: string; readonly status: string }

export async function findings(visit: ConsoleVisit): Promise<Html> {
  const kinds = await Promise.all([
    wideGrants(visit),
    ofTuples(visit),
    ofMembers(visit),
    Promise.resolve(ofSidecars(visit)),
    Promise.resolve(ofConditions(visit)),
    ofStreams(visit),
    ofIdentity(visit),
  ])
  const rows = kinds.flatMap((found) => found.slice(0, SHOWN_MAX).map(({ what, todo }) => [what, todo]))
  const isCut = kinds.some((found) => found.length >= SHOWN_MAX)
  const note = isCut
    ? html`<p class="note">Of each kind the first ${String(SHOWN_MAX)} are shown: there may be more.</p>`
    : EMPTY
  return html`${table(visit, {
    id: 'problems',
    caption: 'Problems found',
    columns: ['What', 'Do'],
    rows,
    empty: html`<p>No problem found: no role is granted everywhere to a person or client, the organization has an owner, nothing expired is stored, each of the first ${String(TUPLES_READ_MAX)} relationships counts, no connected sidecar is in shadow mode, no kept question lacked a value of a condition, no receiver of security events lags, every trusted issuer answers, and the signing key is younger than a year.</p>`,
  })}${note}`
}

async function wideGrants({ deps, organization: org, mayEverywhere }: ConsoleVisit): Promise<readonly Finding[]> {
  if (!mayEverywhere('roles:read')) return []
  const grants = await deps.management.store.roleGrants({ log: ENVIRONMENT }, { after: null, countMax: SHOWN_MAX })
  return grants.map(({ app, role, subject }) => ({
    what: html`${name(subject)} holds ${app === null ? EMPTY : html`${name(app)} / `}${name(role)} in every organization`,
    todo: subject.startsWith('user:')
      ? link(address('people', { org, user: subject.slice('user:'.length) }), 'See whether it must be everywhere')
      : link(address('organization', { org }), 'See whether it must be everywhere'),
  }))
}

async function ofTuples(visit: ConsoleVisit): Promise<readonly Finding[]> {
  const { deps, organization: org } = visit
  if (org === null || !visit.may('relationships:read')) return []
  const { store } = deps.management
  const restriction = await createRestrictions()(store)
  const nowMs = deps.clock()
  const tuples = await store.tuples(org, {}, { after: null, countMax: TUPLES_READ_MAX })
  const found: Finding[] = []
  for (const tuple of tuples) {
    const { object, relation, subject, expiresAtMs } = tuple
    const issue = expiresAtMs !== null && expiresAtMs <= nowMs ? 'it has expired' : restriction(tuple)
    if (issue === null) continue
    found.push({
      what: html`${name(`${object}#${relation}@${subject}`)} does not count: ${issue}`,
      todo: link(address('relationships', { org, object, relation, subject }), 'Delete or write it again'),
    })
    if (found.length === SHOWN_MAX) break
  }
  const isWhole = tuples.length > 0 && tuples.length < TUPLES_READ_MAX
  return isWhole && visit.mayEverywhere('manifest:read') ? [...found, ...(await unused(visit, tuples))] : found
}

/** Relations that no relationship names, although their type is used: perhaps nobody knows them, or they are no longer needed. */
async function unused(visit: ConsoleVisit, tuples: readonly Tuple[]): Promise<readonly Finding[]> {
  const named = new Set(tuples.map(({ object, relation }) => `${typeIn(object)}#${relation}`))
  const types = new Set(tuples.map(({ object }) => typeIn(object)))
  const { organization: org } = visit
  const { items: manifests } = await visit.api<{ readonly items: readonly StoredManifest[] }>(
    'GET',
    '/v1/apps?page_size=100',
  )
  const found: Finding[] = []
  for (const { app, model } of manifests) {
    if (model === null) continue
    const relations = writableRelations(await withModels(() => knownModel(model)))
    for (const { type, relation } of relations) {
      if (!types.has(type) || named.has(`${type}#${relation}`)) continue
      found.push({
        what: html`No relationship here names ${name(`${type}#${relation}`)}, which the model of ${name(app)} declares`,
        todo: link(address('model', { org, app }), 'Grant it, or leave it out'),
      })
    }
  }
  return found
}

const typeIn = (object: string): string => object.slice(0, object.indexOf(':'))

async function ofMembers(visit: ConsoleVisit): Promise<readonly Finding[]> {
  const { organization: org, deps } = visit
  if (org === null || !visit.may('directory:read')) return []
  const path = `/v1/organizations/${encodeURIComponent(org)}/members?page_size=${MEMBERS_READ_MAX}`
  const { items } = await visit.api<{ readonly items: readonly Member[] }>('GET', path)
  const found: Finding[] = []
  const isWhole = items.length < MEMBERS_READ_MAX
  if (isWhole && !items.some(({ role, status }) => role === 'owner' && status === 'active'))
    found.push({
      what: html`${name(org)} has no active owner`,
      todo: link(address('organization', { org }), 'Make somebody the owner'),
    })
  if (!visit.may('roles:read')) return found
  const grants = await deps.management.store.roleGrants({ log: org }, { after: null, countMax: TUPLES_READ_MAX })
  const holders = new Set(grants.map(({ subject }) => subject))
  for (const { user, status } of items)
    if (status !== 'active' && holders.has(`user:${user}`))
      found.push({
        what: html`${name(user)} is ${status}, so that roles granted here do not count, and holds some`,
        todo: link(address('people', { org, user }), 'Activate, or take away'),
      })
  return found
}

function ofSidecars({ deps, organization: org, mayEverywhere }: ConsoleVisit): readonly Finding[] {
  if (!mayEverywhere('decisions:read')) return []
  const all = deps.routes.all()
  const shadowed = all.flatMap(({ name: sidecar, routes }) => {
    const count = routes.filter(({ shadow }) => shadow).length
    const todo = link(address('routes', { org, sidecar, show: 'shadow' }), 'See what they would deny')
    return count === 0
      ? []
      : [
          {
            what: html`Sidecar ${name(sidecar)} has ${count === 1 ? '1 route' : `${count} routes`} in shadow mode`,
            todo,
          },
        ]
  })
  const files = Map.groupBy(all, ({ resource }) => resource)
  const differing = [...files].flatMap(([resource, of]) =>
    new Set(of.map(({ fileHash }) => fileHash)).size < 2
      ? []
      : [
          {
            what: html`Sidecars of ${name(resource)} enforce different route files`,
            todo: link(address('routes', { org }), 'See the difference'),
          },
        ],
  )
  return [...shadowed, ...differing]
}
