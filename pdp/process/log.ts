/** Structured logging: one JSON object a line, nothing that is a secret. */
import { type DestinationStream, type Logger, pino, stdTimeFunctions } from 'pino'

export type Log = Logger
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

// A second net under the rule that nobody logs these; a path is cheap, a leaked token is not.
const SECRET_PATHS = ['authorization', 'dpop', 'cookie', 'token', 'password', 'secret', 'client_secret'].flatMap(
  (name) => [name, `*.${name}`],
)

/** Writes to standard output unless told otherwise; synchronous, so that the last lines before an exit are not lost. */
export function createLog(options: {
  readonly service: string
  readonly level: LogLevel
  readonly destination?: DestinationStream
}): Log {
  const settings = {
    base: { service: options.service },
    level: options.level,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: SECRET_PATHS, censor: '[redacted]' },
  }
  return options.destination === undefined ? pino(settings) : pino(settings, options.destination)
}
