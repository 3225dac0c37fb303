/** Commits the heartbeats of a lease, on a connection of its own. */
import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { PdpError } from '../../../../shared/domain/errors.ts'
import type { Greeting } from './checkout.ts'
import type { Server } from './fence.ts'
import type { Hosts } from './hosts.ts'
import { keptConnection } from './kept.ts'
import { createLease, type Lease } from './lease.ts'

// A message in the write-ahead log: its commit waits for the standby like any write, but nothing is stored.
const HEARTBEAT = `
  select current_setting('synchronous_standby_names') <> '' as replicated,
    set_config('synchronous_commit', 'on', true), pg_logical_emit_message(true, 'portcullis', 'heartbeat')`
// A session that waits for its standby does not notice that its client is gone, and would keep a connection of the server.
const END_FORMER = `
  select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1 and pid <> pg_backend_pid()`
/** How long a commit may take before its connection is given up. */
const STUCK_MS = 4_000
const LATE_MS = 1_000
const WATCH_MS = 100
const NO_STANDBY = 'synchronous_standby_names is empty, so commits wait for no standby'
const LATE = 'a heartbeat waits for the standby, so that nothing is answered after two seconds'

export function startHeartbeat(
  configOf: (url: string) => pg.ClientConfig,
  greeting: Greeting & { readonly hosts: Hosts },
): { readonly lease: Lease; end(): Promise<void> } {
  const { fence } = greeting
  const name = `portcullis heartbeat ${randomUUID()}`
  const { open, drop } = keptConnection(configOf, greeting, async ({ client }) => {
    await client.query(`select set_config('application_name', $1, false)`, [name])
    await client.query(END_FORMER, [name])
  })

  async function beat(): Promise<number> {
    try {
      const { client, server } = await open()
      const { rows } = await unlessStuck(client.query<{ readonly replicated: boolean }>(HEARTBEAT), server)
      if (rows[0]?.replicated !== true) {
        fence.report({ kind: 'unconfirmed', ...server, reason: NO_STANDBY })
        throw new PdpError('store_unavailable', NO_STANDBY)
      }
      fence.pass(server)
      fence.report({ kind: 'confirmed', ...server })
      return server.timeline
    } catch (err) {
      await drop()
      throw err
    }
  }

  function unlessStuck<T>(answer: Promise<T>, server: Server): Promise<T> {
    const sentMs = performance.now()
    let isLate = false
    return new Promise((resolve, reject) => {
      const watch = setInterval(() => {
        const waitedMs = performance.now() - sentMs
        if (waitedMs > LATE_MS && !isLate) {
          isLate = true
          fence.report({ kind: 'unconfirmed', ...server, reason: LATE })
        }
        if (waitedMs > STUCK_MS || fence.isOvertaken(server)) reject(new PdpError('store_unavailable', LATE))
      }, WATCH_MS)
      answer.then(resolve, reject).finally(() => clearInterval(watch))
    })
  }

  const later = (run: () => void, ms: number): unknown => setTimeout(run, ms).unref()
  const lease = createLease({ beat, clock: () => performance.now(), later })
  return {
    lease,
    end() {
      lease.end()
      return drop()
    },
  }
}
