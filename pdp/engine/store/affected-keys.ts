/** Finds row sets that a change may alter: for caches, replays and watched questions. */
import type { Change } from '../../shared/domain/change.ts'
import { ENVIRONMENT, type JournalId, TOKENS } from '../../shared/domain/journal.ts'
import { typeOf } from '../../shared/domain/names.ts'
import type { RowKey } from './contract.ts'

/** The keys whose content the change may alter; null: all keys, after a `clear`. */
export function affectedKeys(log: JournalId, change: Change): readonly RowKey[] | null {
  switch (change.kind) {
    case 'tuple': {
      const { object, relation, subject } = change.tuple
      const keys: RowKey[] = [
        { log, kind: 'set', object, relation },
        { log, kind: 'tuple', object, relation, subject },
        { log, kind: 'named', name: subject, where: { type: typeOf(object), relation } },
        { log, kind: 'named', name: subject, where: null },
      ]
      if (isGroupMembership(change)) keys.push({ log, kind: 'groups', subject })
      return keys
    }
    case 'membership':
      return [{ log, kind: 'membership', user: change.user }]
    case 'role_grant':
      return [{ log, kind: 'grants', subject: change.grant.subject }]
    case 'organization':
      return [{ log: ENVIRONMENT, kind: 'organization', id: change.id }]
    case 'manifest':
      return [{ log: ENVIRONMENT, kind: 'manifests' }]
    case 'role':
      return [{ log: ENVIRONMENT, kind: 'roles' }]
    case 'token':
      return [{ log: TOKENS, kind: 'revocations' }]
    case 'clear':
      return null
    default:
      return [] // entitlements are cached by version; users and clients have no row sets
  }
}

export const isGroupMembership = ({ tuple }: Extract<Change, { kind: 'tuple' }>): boolean =>
  tuple.relation === 'member' && tuple.object.startsWith('group:')
