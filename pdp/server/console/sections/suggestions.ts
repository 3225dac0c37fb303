/** Suggestions for fields that ask for a name: names that begin with the typed text, and people who are found by it. */
import { resourceTypes } from '../../../engine/reach/reach.ts'
import { nameBefore } from '../../../shared/domain/names.ts'
import type { ConsoleVisit } from '../visit.ts'

export const SUGGESTED_MAX = 20
const SUBJECT_TYPES = ['user', 'service', 'group']
/** The longest text for which suggestions are made. */
const TEXT_MAX = 512

/** Suggestions that the person may read: `type:id` for `subject` and `resource`, an id for `person`. */
export async function suggestionsFor(visit: ConsoleVisit, kind: string, typed: string): Promise<readonly string[]> {
  const text = typed.trim()
  if (text.length > TEXT_MAX || visit.organization === null) return []
  if (kind === 'person') return people(visit, text)
  if (kind !== 'subject' && kind !== 'resource') return []
  const colon = text.indexOf(':')
  if (colon !== -1) return named(visit, text)
  const types = await typesFor(visit, kind)
  const begun = types.filter((type) => type.startsWith(text)).map((type) => `${type}:`)
  const found = kind === 'subject' && text !== '' ? (await people(visit, text)).map((id) => `user:${id}`) : []
  return [...begun, ...found].slice(0, SUGGESTED_MAX)
}

/** Types that a question can name. */
export async function typesFor(
  { deps, organization }: Pick<ConsoleVisit, 'deps' | 'organization'>,
  kind: 'subject' | 'resource',
): Promise<readonly string[]> {
  const types = organization === null ? [] : await deps.management.pdp.types(organization)
  return kind === 'resource' ? resourceTypes(types) : [...new Set([...SUBJECT_TYPES, ...types])]
}

/** Objects and subjects of stored relationships whose names begin with the text. */
export async function named(visit: ConsoleVisit, text: string): Promise<readonly string[]> {
  const { organization: org, deps } = visit
  if (org === null || !visit.may('relationships:read')) return []
  const type = text.slice(0, text.indexOf(':'))
  const { store } = deps.management
  const found = await store.snapshot((at) =>
    Promise.all(
      (['objects', 'subjects'] as const).map((kind) =>
        at.names(org, { kind, type }, { after: nameBefore(text), countMax: SUGGESTED_MAX + 1 }),
      ),
    ),
  )
  const names = found.flat().filter((one) => one.startsWith(text))
  return [...new Set(names)].sort().slice(0, SUGGESTED_MAX)
}

type Person = { readonly id?: string; readonly user?: string }

/** Ids of people that contain the text, or whose name or address does. Without rights everywhere: ids of the organization's members. */
export async function people(visit: ConsoleVisit, text: string): Promise<readonly string[]> {
  const { organization: org } = visit
  if (!visit.may('directory:read')) return []
  const page = new URLSearchParams({ page_size: String(SUGGESTED_MAX) })
  if (visit.mayEverywhere('directory:read')) {
    if (text !== '') page.set('search', text)
    const { items } = await visit.api<{ readonly items: readonly Person[] }>('GET', `/v1/users?${page}`)
    return items.flatMap(({ id }) => (id === undefined ? [] : [id]))
  }
  if (org === null) return []
  const { store } = visit.deps.management
  const found = await store.members(org, { after: null, countMax: 1_000 })
  return found
    .map(({ user }) => user)
    .filter((id) => id.toLowerCase().includes(text.toLowerCase()))
    .slice(0, SUGGESTED_MAX)
}
