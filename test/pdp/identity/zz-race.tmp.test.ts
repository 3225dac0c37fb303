import { expect, it } from 'vitest'
import { openTestDatabase } from '../../support/database.ts'
import { openPostgres } from '../../../pdp/store/postgres.ts'
const q = `insert into oidc_record (kind, id, payload, grant_id, uid, user_code, expires_at)
     values ($1, $2, $3::jsonb, $4, $5, $6, now() + make_interval(secs => $7::int))
     on conflict (kind, id) do update set payload = excluded.payload, grant_id = excluded.grant_id, uid = excluded.uid,
       user_code = excluded.user_code, expires_at = excluded.expires_at returning 1`
it('races', async () => {
const database = await openTestDatabase()
const a = await openPostgres({ connectionString: database.connectionString })
const b = await openPostgres({ connectionString: database.connectionString })
const errs = new Map<string, number>()
const end = Date.now() + 15_000
let n = 0
let r = 0
while (Date.now() < end) {
  r++
  await Promise.all(Array.from({ length: 20 }, async (_, i) => {
    try { n++; await (i % 2 ? a : b).sql.query(q, ['Session', `s${r >> 3}`, JSON.stringify({ accountId: 'eve', r, i, pad: 'x'.repeat(300) }), null, `u${r >> 3}`, null, 100]) }
    catch (e) { const m = `${(e as {code?:string}).code} ${(e as Error).message}`; errs.set(m, (errs.get(m) ?? 0) + 1) }
  }))
}
console.log(n, r, errs)
await a.close(); await b.close(); await database.drop()
expect([...errs]).toEqual([])
}, 60_000)
