/** A process of its own that answers from memory, so that it can be stopped. Forked; its arguments are the URL of the database and the lease. */
import { createPdp } from '../../../../../pdp/engine/decision-point/create-pdp.ts'
import { openPostgres } from '../../../../../pdp/engine/store/postgres/postgres.ts'
import { user } from '../../../../../pdp/shared/domain/subjects.ts'

export type Said = { readonly allowed: boolean; readonly leased: number }

let leased = 0
const { store } = await openPostgres(
  { connectionString: process.argv[2] ?? '', lease: process.argv[3] === 'shared' ? 'shared' : 'sole' },
  {
    onServer(event) {
      if (event.kind === 'leased') leased += event.questions
    },
  },
)
const pdp = createPdp({ store })
process.on('message', async ([org, name, object]: readonly [string, string, string]) => {
  const allowed = await pdp.can(org, user(name), 'viewer', object)
  process.send?.({ allowed, leased } satisfies Said)
})
process.on('disconnect', () => process.exit(0))
process.send?.('ready')
