/** What the suites of the Store contract share: one store for all tests of a suite, and an organization of its own for each. */
import { afterAll, beforeAll, beforeEach, expect } from 'vitest'
import type { RowKey, RowSet, Store, Written } from '../../../pdp/engine/store/contract.ts'
import type { Change } from '../../../pdp/shared/domain/change.ts'
import { ENVIRONMENT } from '../../../pdp/shared/domain/journal.ts'
import { context, organization } from '../../support/tuples.ts'

export type OpenStore = () => Promise<{ store: Store; close(): Promise<void> }>
type Opened = { readonly store: Store; write(log: string, ...changes: Change[]): Promise<Written> }
type Own = Opened & {
  /** The test's organization, which holds nothing when the test begins. */
  readonly acme: string
  /** An id that no other test uses. Later tests have greater ids. */
  id(name: string): string
  read(key: RowKey): Promise<RowSet>
  /** Subjects of the relation in `acme`, sorted. */
  subjects(object: string, relation: string): Promise<readonly string[]>
}

export const code = (wanted: string) => expect.objectContaining({ code: wanted })

/** Opens the store before the first test of the suite and closes it after the last. */
export function openOnce(open: OpenStore): Opened {
  let opened: Awaited<ReturnType<OpenStore>>
  beforeAll(async () => {
    opened = await open()
  })
  afterAll(() => opened.close())
  return {
    get store() {
      return opened.store
    },
    write: (log, ...changes) => opened.store.write(log, changes, { context }),
  }
}

/** As openOnce, with a new organization for each test. */
export function useStore(open: OpenStore): Own {
  const opened = openOnce(open)
  let testsCount = 0
  const id = (name: string): string => `t${String(testsCount).padStart(4, '0')}-${name}`
  const own: Own = {
    get store() {
      return opened.store
    },
    write: opened.write,
    get acme() {
      return id('acme')
    },
    id,
    async read(key) {
      const { rows } = await opened.store.rows([], [key])
      const found = rows.find((r) => JSON.stringify(r.key) === JSON.stringify(key))
      if (found === undefined) throw new Error('the store did not return the row set')
      return found
    },
    async subjects(object, relation) {
      const set = await own.read({ log: own.acme, kind: 'set', object, relation })
      return 'subjects' in set ? set.subjects.map((s) => s.subject).sort() : []
    },
  }
  beforeEach(async () => {
    testsCount += 1
    await own.write(ENVIRONMENT, organization(own.acme))
  })
  return own
}
