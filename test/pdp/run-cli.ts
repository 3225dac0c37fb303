/** Runs the command lines of the PDP inside the test's process, which takes milliseconds instead of a second. */
import { PassThrough, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { runPdpCli } from '../../pdp/cli.ts'
import { runClientCli } from '../../pdp/client-cli.ts'

class Exit extends Error {}

export type Ended = { readonly status: number; readonly out: string; readonly err: string }

type Given = { readonly env?: NodeJS.ProcessEnv; readonly input?: string; readonly cwd?: string }

export const runPdp = (args: readonly string[], given: Given = {}): Promise<Ended> =>
  run(runPdpCli, ['node', 'portcullis-pdp', ...args], given)

export const runClient = (args: readonly string[], given: Given = {}): Promise<Ended> =>
  run(runClientCli, ['node', 'portcullis', ...args], given)

/** For commands that end by themselves. What is left of `process` is what they use. */
async function run(
  cli: (io: NodeJS.Process) => Promise<void>,
  argv: readonly string[],
  options: Given,
): Promise<Ended> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const io = {
    argv,
    env: options.env ?? {},
    stdin: Readable.from([Buffer.from(options.input ?? '')]),
    stdout,
    stderr,
    exitCode: 0,
    cwd: () => options.cwd ?? process.cwd(),
    exit(status: number): never {
      io.exitCode = status
      throw new Exit()
    },
  }
  const printed = Promise.all([text(stdout), text(stderr)])
  await cli(io as unknown as NodeJS.Process).catch((err: unknown) => {
    if (!(err instanceof Exit)) throw err
  })
  stdout.end()
  stderr.end()
  const [out, err] = await printed
  return { status: io.exitCode, out, err }
}
