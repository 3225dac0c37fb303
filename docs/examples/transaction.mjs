// A row and its grant commit together, or neither does: the decision point runs in this process, on the database of the rows.
// Install: npm install portcullis pg
// Start: node transaction.mjs
import pg from 'pg'
import { createPdp, postgresStore, user } from 'portcullis'

const connectionString = process.env.DATABASE_URL ?? ''
const pdp = createPdp({ store: await postgresStore({ connectionString, schema: 'portcullis' }) })
const pool = new pg.Pool({ connectionString })
await pdp.putOrganization('acme', { name: 'Acme' })
await pool.query('create table if not exists invoice (id int primary key, owner text not null)')

async function addInvoice(id, owner) {
  const client = await pool.connect()
  try {
    await client.query('begin')
    await pdp.write('acme', { write: [`invoice:${id}#owner@user:alice`] }, { client })
    await client.query('insert into invoice values ($1, $2)', [id, owner])
    await client.query('commit')
  } catch (err) {
    await client.query('rollback')
    console.log(`invoice ${id} was not added: ${err.message}`)
  } finally {
    client.release()
  }
}
await addInvoice(42, 'alice')
await addInvoice(43, null) // the row is refused, and the grant with it
for (const id of [42, 43]) console.log(id, await pdp.can('acme', user('alice'), 'owner', `invoice:${id}`))
await Promise.all([pool.end(), pdp.close()])
