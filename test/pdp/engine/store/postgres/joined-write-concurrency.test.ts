/** Many transactions of applications that write relationships at once, on one organization and from two processes. */
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { user } from '../../../../../pdp/shared/domain/subjects.ts'
import { effort } from '../../../../support/effort.ts'
import { useApplication } from './joined-write-harness.ts'

const a = useApplication()

describe('under concurrency', () => {
  test('keeps revisions without gaps, and a row if and only if its grant', async () => {
    const count = effort({ short: 40, long: 400 })
    const ends: ('commit' | 'rollback')[] = Array.from({ length: count }, (_, i) =>
      i % 3 === 0 ? 'rollback' : 'commit',
    )
    const ids = ends.map((_, i) => a.number * 10_000 + i)
    const queue = [...ends.entries()]
    const worker = async (): Promise<void> => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        const [i, end] = next
        const id = ids[i]
        if (i % 5 === 1) await a.pdp.write(a.org, { write: [`note:${i}#viewer@user:u`] })
        await a.transaction(end, async (client) => {
          await client.query('insert into invoice values ($1, $2)', [id, `u${i}`])
          await a.pdp.write(a.org, { write: [`invoice:${id}#owner@user:u${i}`] }, { client })
        })
        // From the commit on, wherever it is asked.
        for (const one of [a.pdp, a.other])
          expect(await one.can(a.org, user(`u${i}`), 'owner', `invoice:${id}`)).toBe(end === 'commit')
      }
    }
    await Promise.all(Array.from({ length: 8 }, worker))
    const committed = ends.filter((end) => end === 'commit').length
    const plain = ends.filter((_, i) => i % 5 === 1).length
    const entries = await a.store.entries([{ log: a.org, from: 0, to: 100_000 }], 100_000)
    expect(entries.map(({ revision }) => revision)).toEqual(Array.from({ length: committed + plain }, (_, i) => i + 1))
    expect(await a.position()).toMatchObject({ revision: committed + plain })
    const { rows } = await a.pool.query<{ id: number; owner: string }>(
      'select id, owner from invoice where id = any($1)',
      [ids],
    )
    const tuples = (await a.store.tuples(a.org, { relation: 'owner' }, { after: null, countMax: 10_000 })).map(
      ({ object, subject }) => `${object} ${subject}`,
    )
    expect(tuples.toSorted()).toEqual(rows.map(({ id, owner }) => `invoice:${id} user:${owner}`).toSorted())
  })

  test('lets a write of another process wait for the commit, and puts it after', async () => {
    let late: Promise<unknown> = Promise.resolve()
    await a.transaction('commit', async (client) => {
      await a.pdp.write(a.org, { write: ['invoice:13#owner@user:ann'] }, { client })
      late = a.other.write(a.org, { write: ['invoice:13#owner@user:bob'] })
      await delay(50)
      expect(await a.position()).toMatchObject({ revision: 0 })
    })
    expect(await late).toEqual({ revision: 2, changed: true })
  })

  test('does not block decisions while the transaction is open', async () => {
    await a.pdp.write(a.org, { write: ['invoice:14#owner@user:ann'] })
    await a.transaction('rollback', async (client) => {
      await a.pdp.write(a.org, { delete: ['invoice:14#owner@user:ann'] }, { client })
      expect(await a.other.can(a.org, user('ann'), 'owner', 'invoice:14')).toBe(true)
    })
  })
})
