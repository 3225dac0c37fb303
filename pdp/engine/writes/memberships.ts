/** One person's membership of an organization, as it is stored. */
import type { JournalId } from '../../shared/domain/journal.ts'
import type { Membership } from '../../shared/domain/membership.ts'
import type { Store } from '../store/contract.ts'

/** Null: the person is no member, also where there is no such organization or person. */
export async function membershipOf(
  store: Pick<Store, 'rows'>,
  organization: JournalId,
  user: string,
): Promise<Membership | null> {
  const { rows } = await store.rows([organization], [{ log: organization, kind: 'membership', user }])
  return rows.map((row) => ('membership' in row ? row.membership : null)).find((found) => found !== null) ?? null
}
