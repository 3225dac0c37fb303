/** Standard output of the command lines: colours where a person looks, and a reader that has gone. */

/** Green, red or yellow on a terminal, unless NO_COLOR is set (https://no-color.org). */
export function coloured(
  text: string,
  colour: 'green' | 'red' | 'yellow',
  { stdout, env }: Pick<NodeJS.Process, 'stdout' | 'env'>,
): string {
  if (stdout.isTTY !== true || (env.NO_COLOR ?? '') !== '') return text
  return `\u001b[${CODES[colour]}m${text}\u001b[39m`
}
const CODES = { red: 31, green: 32, yellow: 33 } as const

/** The reader of the output, such as head, may close it: it has what it wanted. */
export function endWithReader(io: Pick<NodeJS.Process, 'stdout' | 'exit'>): void {
  // Absent where a test reads what is written.
  io.stdout.on?.('error', (err: NodeJS.ErrnoException) => io.exit(err.code === 'EPIPE' ? 0 : 1))
}
