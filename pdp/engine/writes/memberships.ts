/** Reads the stored membership of one person in an organization. */
import type { JournalId } from '../../shared/domain/journal.ts'
import type { Membership } from '../../shared/domain/membership.ts'
import type { Store } from '../store/contract.ts'

/** The person's membership; null: no member, or the organization or the person does not exist. */
export async function membershipOf(
  store: Pick<Store, 'rows'>,
  organization: JournalId,
  user: string,
): Promise<Membership | null> {
  const { rows } = await store.rows([organization], [{ log: organization, kind: 'membership', user }])
  return rows.map((row) => ('membership' in row ? row.membership : null)).find((found) => found !== null) ?? null
}
