/** Keeps a process from believing a server that was overtaken. Each promotion of a standby begins a timeline with a higher number. */
import { PdpError } from '../../../../shared/domain/errors.ts'
import type { JournalId } from '../../../../shared/domain/journal.ts'

/** A primary as a connection found it. `address`: its own, `host:port`, whatever leads there. */
export type Server = { readonly address: string; readonly timeline: number }
export type ServerEvent =
  | (Server & { readonly kind: 'primary' })
  /** `isNew`: the address of the database leads there now, rather than a connection from before. */
  | (Server & { readonly kind: 'overtaken'; readonly latest: number; readonly isNew: boolean })
  /** It committed a heartbeat at its standby, or no longer does. */
  | (Server & { readonly kind: 'confirmed' })
  | (Server & { readonly kind: 'unconfirmed'; readonly reason: string })
  | { readonly kind: 'standby'; readonly address: string }
  | { readonly kind: 'unreachable'; readonly error: unknown }
  /** A log has a lower revision than this process has read: acknowledged writes are gone. */
  | { readonly kind: 'history'; readonly log: JournalId; readonly revision: number; readonly known: number }

export type Fence = {
  /** The timeline of the latest primary that this process has seen; 0 before the first. */
  readonly latest: number
  isOvertaken(server: Server): boolean
  /** Throws PdpError `store_unavailable` when a later timeline has been seen, over whichever connection. */
  pass(server: Server): void
  /** As `pass`, for a new connection; `refused` gets what it is refused for. */
  admit(server: Server, refused: (event: ServerEvent) => void): void
  /** Passes an event on to logs and metrics. */
  report(event: ServerEvent): void
}

/** One for all connections of a process to one database. */
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
