/** Runs the sidecar's command line inside the test's process, which takes milliseconds instead of a second. */
import { Readable } from 'node:stream'
import { runSidecarCli } from '../../../sidecar/cli.ts'

type Given = { readonly env?: NodeJS.ProcessEnv; readonly input?: string }
export type Ended = { readonly status: number; readonly stdout: string; readonly stderr: string }

class Exit extends Error {
  readonly status: number
  constructor(status: number) {
    super(`exit ${status}`)
    this.status = status
  }
}

/** For commands that end by themselves. */
export async function runCli(args: readonly string[], { env = {}, input = '' }: Given = {}): Promise<Ended> {
  const output = { stdout: '', stderr: '' }
  const into = (name: keyof typeof output) => ({
    write(text: string): void {
      output[name] += text
    },
  })
  const io = {
    argv: ['node', 'portcullis-sidecar', ...args],
    env,
    exitCode: undefined as number | undefined,
    stdin: Readable.from([Buffer.from(input)]),
    stdout: into('stdout'),
    stderr: into('stderr'),
    exit(status: number): never {
      throw new Exit(status)
    },
  }
  try {
    await runSidecarCli(io as unknown as NodeJS.Process)
  } catch (err) {
    if (!(err instanceof Exit)) throw err
    return { status: err.status, ...output }
  }
  return { status: io.exitCode ?? 0, ...output }
}
