/** Refuses answers of a server that was overtaken. Each promotion of a standby begins a timeline with a higher number. */
import { PdpError } from '../../../../shared/domain/errors.ts'
import type { JournalId } from '../../../../shared/domain/journal.ts'

/** A primary as a connection found it. `address`: the `host:port` that the server itself reports. */
export type Server = { readonly address: string; readonly timeline: number }
export type ServerEvent =
  | (Server & { readonly kind: 'primary' })
  /** An overtaken server was met. `isNew`: by a new connection, so the address of the database still leads there. */
  | (Server & { readonly kind: 'overtaken'; readonly latest: number; readonly isNew: boolean })
  /** The server committed a heartbeat at its standby (`confirmed`), or could not. */
  | (Server & { readonly kind: 'confirmed' })
  | (Server & { readonly kind: 'unconfirmed'; readonly reason: string })
  | { readonly kind: 'standby'; readonly address: string }
  | { readonly kind: 'unreachable'; readonly error: unknown }
  /** A journal has a lower revision than this process has read before: acknowledged writes are lost. */
  | { readonly kind: 'history'; readonly log: JournalId; readonly revision: number; readonly known: number }
  /** `ended`: the reason why this process no longer answers from memory; null: it begins to. */
  | { readonly kind: 'lease'; readonly ended: string | null }
  /** The number of questions that got their positions from memory. */
  | { readonly kind: 'leased'; readonly questions: number }

export type Fence = {
  /** The timeline of the latest primary that this process has seen; 0 before the first. */
  readonly latest: number
  isOvertaken(server: Server): boolean
  /** Throws PdpError `store_unavailable` when a later timeline has been seen, over whichever connection. */
  pass(server: Server): void
  /** Does what `pass` does for a new connection; `refused` gets the event that says why it is refused. */
  admit(server: Server, refused: (event: ServerEvent) => void): void
  /** Passes an event on to logs and metrics. */
  report(event: ServerEvent): void
}

/** Creates a fence for all connections of a process to one database. */
export function createFence(report: (event: ServerEvent) => void = () => undefined): Fence {
  let latest = 0
  const isOvertaken = ({ timeline }: Server): boolean => timeline < latest
  function meet(server: Server, of: { isNew: boolean; refused: (event: ServerEvent) => void }): void {
    if (isOvertaken(server)) {
      of.refused({ kind: 'overtaken', ...server, latest, isNew: of.isNew })
      throw overtaken()
    }
    latest = server.timeline
    report({ kind: 'primary', ...server })
  }
  return {
    get latest() {
      return latest
    },
    isOvertaken,
    pass(server) {
      if (server.timeline !== latest) meet(server, { isNew: false, refused: report })
    },
    admit: (server, refused) => meet(server, { isNew: true, refused }),
    report,
  }
}

const overtaken = (): PdpError =>
  new PdpError('store_unavailable', 'the database server was overtaken by a newer primary')
