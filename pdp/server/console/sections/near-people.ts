/** Messages about subjects that do not exist, and links to the one that was probably meant. */
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import { nearestName } from '../../../shared/base/nearest.ts'
import type { AskedSubject } from '../../../shared/domain/decision.ts'
import { link, name } from '../parts.ts'
import type { ConsoleVisit } from '../visit.ts'

/** How many ids are compared with a mistyped one: the first of all, and those with the same beginning. */
const CANDIDATES_MAX = 1_000
type Members = { readonly items: readonly { readonly user: string }[] }

/** The message about somebody who does not exist, most often because of a typing error. */
export const nobody = ({ type, id }: AskedSubject): Html =>
  html`There is no ${type === 'user' ? 'user' : 'client'} ${name(id)}, and who does not exist may do nothing, whatever relationships say.`

/** A link to the question about a person with a similar id, if the asking person may see one. */
export async function didYouMeanPerson(
  visit: ConsoleVisit,
  { type, id }: AskedSubject,
  to: (subject: string) => string,
): Promise<Html> {
  const near = type === 'user' ? nearestName(id, await candidatesFor(visit, id)) : null
  return near === null ? EMPTY : html` Did you mean ${link(to(`user:${near}`), name(near))}?`
}

async function candidatesFor(visit: ConsoleVisit, user: string): Promise<ReadonlySet<string>> {
  const { organization: org, deps } = visit
  if (visit.mayEverywhere('directory:read')) {
    const from = [null, user.slice(0, 1)].map((after) =>
      deps.management.directory.users({ after, countMax: CANDIDATES_MAX }),
    )
    return new Set((await Promise.all(from)).flat().map(({ id }) => id))
  }
  if (org === null || !visit.may('directory:read')) return new Set()
  const path = `/v1/organizations/${encodeURIComponent(org)}/members?page_size=${CANDIDATES_MAX}`
  return new Set((await visit.api<Members>('GET', path)).items.map(({ user: id }) => id))
}
