/** The content of a row set in memory: how it is made from rows that were read, its size, and how a change updates it. */
import type { StoredManifest } from '../../../shared/domain/manifest.ts'
import type { Membership } from '../../../shared/domain/membership.ts'
import type { Organization } from '../../../shared/domain/organization.ts'
import { revocationKey } from '../../../shared/domain/revocation.ts'
import type { OrganizationRole, RoleGrant } from '../../../shared/domain/role.ts'
import type { JournalEntry, RowKey, RowSet } from '../contract.ts'
import { RevokedTokens } from './revoked-tokens.ts'
import { SubjectSet } from './subject-set.ts'

export type Content =
  | SubjectSet
  | RevokedTokens
  | Membership
  | Organization
  | readonly RoleGrant[]
  | readonly StoredManifest[]
  | readonly OrganizationRole[]
  | null

type KeyedContent = { readonly key: RowKey; readonly content: Content }

/** The content for rows that were read. */
export function contentOf(rows: RowSet): Content {
  if ('subjects' in rows) return SubjectSet.of(rows.subjects, rows)
  if ('sets' in rows) return SubjectSet.of(rows.sets, { complete: rows.complete, usersetsComplete: rows.complete })
  if ('groups' in rows) return SubjectSet.of(rows.groups, { complete: true, usersetsComplete: true })
  if ('membership' in rows) return rows.membership
  if ('grants' in rows) return rows.grants
  if ('organization' in rows) return rows.organization
  if ('manifests' in rows) return rows.manifests
  if ('roles' in rows) return rows.roles
  if ('revocations' in rows) return new RevokedTokens(rows.revocations)
  return null
}

/** The approximate heap bytes of a row set: with its key, its entry in a map, and its content. */
export function bytesOf({ key, content }: KeyedContent): number {
  const name = key.kind === 'set' ? key.object : 'subject' in key ? key.subject : 'name' in key ? key.name : ''
  const measured = content instanceof SubjectSet || content instanceof RevokedTokens
  const held = measured ? content.bytes : Array.isArray(content) ? 40 + content.length * 200 : 100
  return 230 + name.length + held
}

/** The content after a change to its key. A set is changed itself. */
export function contentAfter(
  { key, content }: KeyedContent,
  { change, atMs }: Pick<JournalEntry, 'change' | 'atMs'>,
): Content {
  switch (change.kind) {
    case 'token':
      ;(content as RevokedTokens).add({
        key: revocationKey(change.by, change.id),
        atMs,
        ...(change.issuedUntilMs !== undefined && { issuedUntilMs: change.issuedUntilMs }),
      })
      return content
    case 'tuple': {
      const set = content as SubjectSet
      const { object, relation, ...row } = change.tuple
      if (key.kind === 'groups' || key.kind === 'named') {
        const subject = `${object}#${relation}`
        // `named` has tuples with a condition, too; `groups` has not, because they put no one into a group here.
        const row = { subject, expiresAtMs: change.tuple.expiresAtMs }
        if (change.op === 'write' && (key.kind === 'named' || change.tuple.condition === undefined)) set.put(row)
        else set.remove(subject)
      } else if (change.op === 'write') set.put(row)
      else set.remove(row.subject)
      return set
    }
    case 'membership':
      return change.membership
    case 'role_grant': {
      const others = (content as readonly RoleGrant[]).filter((g) => g.id !== change.grant.id)
      return change.op === 'write' ? [...others, change.grant] : others
    }
    case 'organization':
      return change.organization
    case 'manifest': {
      const manifests = content as readonly StoredManifest[]
      const version = (manifests.find((m) => m.app === change.manifest.app)?.version ?? 0) + 1
      return [...manifests.filter((m) => m.app !== change.manifest.app), { ...change.manifest, version }]
    }
    case 'role':
      return (content as readonly OrganizationRole[])
        .filter((r) => r.key !== change.key)
        .concat(change.role === null ? [] : [change.role])
    default:
      return content
  }
}
