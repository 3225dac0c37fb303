/** Compares what a node's caches hold with what the database holds, once nothing is being written. */
import { isDeepStrictEqual } from 'node:util'
import type { JournalCache } from '../../../pdp/engine/store/cache/journal-cache.ts'
import type { RowKey, RowSet, Store } from '../../../pdp/engine/store/contract.ts'
import type { JournalId } from '../../../pdp/shared/domain/journal.ts'

/** What the copy of the source under test hands out; see HOOKS in cases.ts. */
export type Hooks = {
  historyCaches?: (() => ReadonlyMap<JournalId, JournalCache>)[]
  historySheds?: ((share: number) => void)[]
}
export type CacheAudit = { readonly compared: number; readonly wrong: readonly string[] }
/** Of a whole node; `shaken` counts the statements that were delayed, `leased` the questions whose positions came from memory. */
export type Audit = CacheAudit & { readonly shaken: number; readonly leased: number }

/** Logs whose cache is behind or ahead of the statement that reads them are passed over: nothing can be said of them. */
export async function auditCaches(store: Store, caches: ReadonlyMap<JournalId, JournalCache>): Promise<CacheAudit> {
  const wrong: string[] = []
  let compared = 0
  for (const [log, cache] of caches) {
    const held = [...cache.rows.all()]
    const keys = held.map((row) => row.key)
    if (keys.length === 0) continue
    const { position } = cache
    const reading = await store.rows([log], keys)
    if (reading.vector.logs.get(log)?.revision !== position.revision || cache.position !== position) continue
    const stored = new Map(reading.rows.map((rows) => [JSON.stringify(sortedKeys(rows.key)), rows]))
    for (const { key, content } of held) {
      const rows = stored.get(JSON.stringify(sortedKeys(key)))
      compared++
      // A revocation may be forgotten by the database before the cache forgets it, never the other way round.
      const lost =
        isRevocations(content) && rows !== undefined && 'revocations' in rows
          ? rows.revocations.filter((revocation) => content.at(revocation.key) === undefined)
          : null
      if (lost !== null) {
        if (lost.length > 0) wrong.push(`${log} ${position.revision}: the cache lacks ${JSON.stringify(lost)}`)
      } else if (rows !== undefined && !isDeepStrictEqual(normal(content), normal(contentOf(rows))))
        wrong.push(`${log} ${position.revision}: ${nameOf(key)} holds ${JSON.stringify(normal(content))}`)
    }
  }
  return { compared, wrong }
}

const nameOf = (key: RowKey): string => Object.values(key).join(' ')

function contentOf(rows: RowSet): unknown {
  if ('subjects' in rows) return rows.subjects
  if ('groups' in rows) return rows.groups
  if ('grants' in rows) return rows.grants
  if ('manifests' in rows) return rows.manifests
  if ('roles' in rows) return rows.roles
  if ('membership' in rows) return rows.membership
  return 'organization' in rows ? rows.organization : null
}

type Revocations = { at(key: string): number | undefined; readonly bytes: number }
const isRevocations = (content: unknown): content is Revocations =>
  content !== null && typeof content === 'object' && 'at' in content && 'bytes' in content

type Members = {
  members(): Iterable<string>
  expiryOf(subject: string): number | null
  readonly conditional: ReadonlyMap<string, unknown>
}
const isMembers = (content: unknown): content is Members =>
  content !== null && typeof content === 'object' && 'members' in content && 'expiryOf' in content

/** The same for the same content, whatever its order or its layout in memory. */
function normal(content: unknown): unknown {
  if (isMembers(content)) {
    const plain = [...content.members()].map((subject) => ({ subject, expiresAtMs: content.expiryOf(subject) }))
    return normal([...plain, ...content.conditional.values()])
  }
  if (!Array.isArray(content)) return sortedKeys(content)
  return content.map((item) => JSON.stringify(sortedKeys(item))).sort()
}

function sortedKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortedKeys)
  if (value === null || typeof value !== 'object') return value
  const entries = Object.entries(value).map(([key, inner]) => [key, sortedKeys(inner)] as const)
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
}
