/** What a client command says when it cannot do what it was asked, and its exit statuses. */

/** `check` and `explain` end with 0 for allowed and 1 for denied; every command ends with 2 when it could not do its work. */
export const EXIT = { ok: 0, denied: 1, failed: 2 } as const

/** The message is for a person, one line or several. */
export class CliError extends Error {
  override readonly name = 'CliError'
}

/** RFC 9457 problem details as lines: what is wrong, then each mistake with its place. */
export function problemError(status: number, problem: unknown): CliError {
  if (typeof problem !== 'object' || problem === null) return new CliError(`the PDP answered with status ${status}`)
  const { title, detail, errors }: { [member: string]: unknown } = { ...problem }
  const head = [title, detail].filter((text) => typeof text === 'string').join(': ')
  const mistakes = Array.isArray(errors) ? errors.map((mistake) => `\n  ${mistakeLine(mistake)}`) : []
  return new CliError(`${head || `the PDP answered with status ${status}`}${mistakes.join('')}`)
}

function mistakeLine(mistake: unknown): string {
  const { pointer, parameter, line, column, detail }: { [member: string]: unknown } =
    typeof mistake === 'object' && mistake !== null ? { ...mistake } : {}
  const place =
    line === undefined
      ? (pointer ?? parameter ?? '')
      : `line ${line}${column === undefined ? '' : `, column ${column}`}`
  return `${place === '' ? '' : `${place}: `}${detail ?? 'is not valid'}`
}
