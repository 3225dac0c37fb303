/** The log interface of the sidecar. */

export type SidecarLog = {
  readonly info: (entry: object) => void
  readonly warn: (entry: object) => void
  readonly error: (entry: object) => void
}

/** Ignores errors of the log, because a full disk must not deny requests or end the process. */
export function unfailingLog(log: SidecarLog): SidecarLog {
  const guarded = (write: (entry: object) => void) => (entry: object) => {
    try {
      write(entry)
    } catch {
      // The error cannot be reported anywhere else.
    }
  }
  return {
    info: guarded((entry) => log.info(entry)),
    warn: guarded((entry) => log.warn(entry)),
    error: guarded((entry) => log.error(entry)),
  }
}
