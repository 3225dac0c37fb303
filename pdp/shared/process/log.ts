/** Structured logging: one JSON object per line, without secrets. */
import { type DestinationStream, type LogFn, type Logger, pino } from 'pino'
import { createRepeatedLines } from './repeated-lines.ts'

export type Log = Logger
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

const WARN = 40

/** A log that writes lines to standard output by default. Repeated warnings and errors are only counted. */
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
    serializers: { err: (err: unknown) => errorFields(err) },
    level: options.level,
    timestamp: createTimestamps(),
    formatters: { level: (label: string) => ({ level: label }), log: (entry: Entry) => hideSecrets(entry, 1) },
  }
  return options.destination === undefined ? pino(settings) : pino(settings, options.destination)
}

/** Times in ISO 8601, formatted once for all lines of a millisecond. */
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

const CAUSES_MAX = 5
/** Members of errors that are logged besides type, message and stack: the code of a system call or database, and where it failed. */
const ERROR_FIELDS = new Set(['code', 'syscall', 'address', 'port', 'constraint'])

/**
 * The members of an error for a log. Others stay out: libraries attach the command with the password (Redis), a row's values (PostgreSQL),
 * the mail (SMTP).
 */
function errorFields(err: unknown, depth = 0): unknown {
  if (!(err instanceof Error)) return typeof err === 'object' ? { type: 'object' } : err
  const causes = causesOf(err)
  const several = causes.find((cause) => cause instanceof AggregateError)
  return {
    type: err.name,
    message: causes.map(({ message, name }) => message || name).join(': '),
    stack: causes.map(({ stack }) => stack).join('\ncaused by: '),
    // Members of the error itself win over members of its causes.
    ...Object.fromEntries(causes.toReversed().flatMap(shownFields)),
    aggregateErrors: depth < 2 ? several?.errors.map((one) => errorFields(one, depth + 1)) : undefined,
  }
}

const shownFields = (err: Error): readonly (readonly [string, unknown])[] =>
  Object.entries(err).filter(([name, value]) => ERROR_FIELDS.has(name) && isPlain(value))

const isPlain = (value: unknown): boolean => typeof value === 'string' || typeof value === 'number'

/** The error, followed by its causes. */
function causesOf(err: Error): readonly Error[] {
  const found: Error[] = []
  for (let at: unknown = err; at instanceof Error && found.length < CAUSES_MAX; at = at.cause) found.push(at)
  return found
}

// Names whose values are hidden, in case code logs them by mistake. (pino's own redaction takes more memory than the whole request that is
// logged.)
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
  // The copied accessor of the stack would return nothing, so the copy gets the text.
  if (entry instanceof Error) changed.stack = { value: entry.stack }
  return Object.create(Object.getPrototypeOf(entry), changed)
}

const hideInside = (value: unknown, levels: number): unknown =>
  levels > 0 && isEntry(value) ? hideSecrets(value, levels - 1) : value

const isEntry = (value: unknown): value is Entry => typeof value === 'object' && value !== null && !Array.isArray(value)
