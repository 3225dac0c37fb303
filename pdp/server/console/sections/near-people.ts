/** Subjects that do not exist, and the one that was most likely meant. */
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import type { AskedSubject } from '../../../shared/domain/decision.ts'
import { nearestName } from '../../../shared/domain/nearest.ts'
import { link, name } from '../parts.ts'
import type { ConsoleVisit } from '../visit.ts'

/** Ids that a mistyped one is compared with, from the first of all and from those that begin like it. */
const CANDIDATES_MAX = 1_000
type Members = { readonly items: readonly { readonly user: string }[] }

/** The answer to a question about somebody who does not exist, which is most often a slip of the pen. */
export const nobody = ({ type, id }: AskedSubject): Html =>
  html`There is no ${type === 'user' ? 'user' : 'client'} ${name(id)}, and who does not exist may do nothing, whatever relationships say.`

/** A question about the person whose id is near, if there is one that the asking person may see. */
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
