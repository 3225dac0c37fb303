/** Errors and exit statuses of the client commands, and files that cannot be read as such errors. */
import { readFileSync } from 'node:fs'
import { fileProblem } from '../../shared/process/command/file-problem.ts'

/** `check` and `explain` exit with 0 if allowed and 1 if denied. Every command exits with 2 if it failed. */
export const EXIT = { ok: 0, denied: 1, failed: 2 } as const

/** Runs a command, which exits with 0 unless its work gives another of these statuses. */
export type Run = (work: (() => Promise<number>) | (() => Promise<void>)) => Promise<void>

/** An error with a message of one or more lines for people. */
export class CliError extends Error {
  override readonly name = 'CliError'
  /** The status of the HTTP answer; null: there was no answer. */
  readonly status: number | null
  /** The problem code of the answer; `failed` without one. */
  readonly code: string
  constructor(
    message: string,
    options: { readonly cause?: unknown; readonly status?: number; readonly code?: string } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.status = options.status ?? null
    this.code = options.code ?? 'failed'
  }
}

/** Throws CliError. */
export function bytesOf(file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (err) {
    throw new CliError(fileProblem(file, err), { cause: err })
  }
}

/** Throws CliError. */
export const textOf = (file: string): string => bytesOf(file).toString('utf8')

/** Problem details (RFC 9457) as lines: the problem, then each issue with its position. */
export function problemError(status: number, problem: unknown): CliError {
  if (typeof problem !== 'object' || problem === null)
    return new CliError(`the PDP answered with status ${status}`, { status })
  const { title, detail, errors, code }: { [member: string]: unknown } = { ...problem }
  const lines = Array.isArray(errors) ? errors.map(issueLine) : []
  // Omits a detail that only repeats the issues.
  const isRepeated = lines.length > 0 && lines.every((line) => String(detail).includes(line.replace(': ', ' ')))
  const head = [title, isRepeated ? null : detail].filter((text) => typeof text === 'string').join(': ')
  return new CliError([head || `the PDP answered with status ${status}`, ...lines].join('\n  '), {
    status,
    ...(typeof code === 'string' ? { code } : {}),
  })
}

function issueLine(issue: unknown): string {
  const { pointer, parameter, line, column, detail }: { [member: string]: unknown } =
    typeof issue === 'object' && issue !== null ? { ...issue } : {}
  const place =
    line === undefined
      ? (pointer ?? parameter ?? '')
      : `line ${line}${column === undefined ? '' : `, column ${column}`}`
  return `${place === '' ? '' : `${place}: `}${detail ?? 'is not valid'}`
}
