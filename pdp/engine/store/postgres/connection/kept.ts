/** Keeps one connection to the latest primary open, beside the pools. */
import type pg from 'pg'
import { firstOf, type Greeting, openGreeted } from './checkout.ts'
import type { Server } from './fence.ts'
import type { Hosts } from './hosts.ts'

export type Opened = { readonly client: pg.Client; readonly server: Server }

/** `prepare`: the first statements of each connection. One that fails has to be dropped. */
export function keptConnection(
  configOf: (url: string) => pg.ClientConfig,
  greeting: Greeting & { readonly hosts: Hosts },
  prepare: (opened: Opened) => Promise<void>,
): { readonly open: () => Promise<Opened>; readonly drop: () => Promise<void> } {
  const { fence, hosts } = greeting
  let kept: Opened | null = null
  async function drop(): Promise<void> {
    const former = kept
    kept = null
    await former?.client.end()
  }
  return {
    async open() {
      if (kept !== null && !fence.isOvertaken(kept.server)) return kept
      await drop()
      const opened = await firstOf(hosts, fence, (url, refused) => openGreeted(configOf(url), { ...greeting, refused }))
      kept = opened
      await prepare(opened)
      return opened
    },
    drop,
  }
}
