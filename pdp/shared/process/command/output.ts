/** Standard output of commands: colours for people, and a quiet end when the reader has closed it. */

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

/** Ends the command when the reader, such as head, has closed the output. */
export function endWithReader(io: Pick<NodeJS.Process, 'stdout' | 'exit'>): void {
  // A test that reads the output gives no `on`.
  io.stdout.on?.('error', (err: NodeJS.ErrnoException) => io.exit(err.code === 'EPIPE' ? 0 : 1))
}
