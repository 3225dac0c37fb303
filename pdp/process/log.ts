/** Structured logging: one JSON object per line, without secrets. */
import { type DestinationStream, type LogFn, type Logger, pino } from 'pino'
import { createRepeatedLines } from './repeated-lines.ts'

export type Log = Logger
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

const WARN = 40

/** Writes to standard output, line by line, unless told otherwise. Warnings and errors that repeat are counted instead. */
export function createLog(options: {
  readonly service: string
  readonly level: LogLevel
  readonly destination?: DestinationStream
}): Log {
  const repeated = createRepeatedLines()
  const settings = {
    hooks: {
      logMethod(this: Logger, args: Parameters<LogFn>, method: LogFn, level: number): void {
        const [entry] = args
        const counts = level >= WARN && typeof entry === 'object' && entry !== null
        if (!counts || repeated.admit(entry, (summary) => method.call(this, summary))) method.apply(this, args)
      },
    },
    base: { service: options.service },
    level: options.level,
    timestamp: createTimestamps(),
    formatters: { level: (label: string) => ({ level: label }), log: (entry: Entry) => hideSecrets(entry, 1) },
  }
  return options.destination === undefined ? pino(settings) : pino(settings, options.destination)
}

/** ISO 8601, written once for all lines of a millisecond. */
function createTimestamps(): () => string {
  let writtenMs = -1
  let text = ''
  return () => {
    const nowMs = Date.now()
    if (nowMs !== writtenMs) text = `,"time":"${new Date(nowMs).toISOString()}"`
    writtenMs = nowMs
    return text
  }
}

type Entry = { [name: string]: unknown }

// A second safeguard, in case code logs one of these by mistake. (pino's own redaction takes more memory than the whole
// request that is logged.)
const SECRETS = new Set(['authorization', 'dpop', 'cookie', 'token', 'password', 'secret', 'client_secret'])

/** Returns the entry itself when it has no secrets, otherwise a copy. `levels` is the depth of nested objects to check. */
function hideSecrets(entry: Entry, levels: number): Entry {
  let changed: PropertyDescriptorMap | null = null
  for (const name in entry) {
    const value = entry[name]
    if (value === undefined) continue
    const shown = SECRETS.has(name) ? '[redacted]' : hideInside(value, levels)
    if (shown === value) continue
    changed ??= Object.getOwnPropertyDescriptors(entry)
    changed[name] = { value: shown, enumerable: true }
  }
  if (changed === null) return entry
  // Set the stack explicitly, because a copied accessor would return nothing.
  if (entry instanceof Error) changed.stack = { value: entry.stack }
  return Object.create(Object.getPrototypeOf(entry), changed)
}

const hideInside = (value: unknown, levels: number): unknown =>
  levels > 0 && isEntry(value) ? hideSecrets(value, levels - 1) : value

const isEntry = (value: unknown): value is Entry => typeof value === 'object' && value !== null && !Array.isArray(value)
