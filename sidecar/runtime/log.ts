/** The part of a log that the sidecar writes to. */

export type SidecarLog = {
  readonly info: (entry: object) => void
  readonly warn: (entry: object) => void
  readonly error: (entry: object) => void
}

/** The same log, except that what it throws is dropped: a full disk must neither decide over requests nor end the process. */
export function unfailingLog(log: SidecarLog): SidecarLog {
  const guarded = (write: (entry: object) => void) => (entry: object) => {
    try {
      write(entry)
    } catch {
      // Nowhere is left to say it.
    }
  }
  return {
    info: guarded((entry) => log.info(entry)),
    warn: guarded((entry) => log.warn(entry)),
    error: guarded((entry) => log.error(entry)),
  }
}
