/** A served PDP with two organizations and an app, and the commands of an operator who imports into it. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { runPdpCli } from '../../../../pdp/cli.ts'
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import { given } from '../../../support/tuples.ts'
import { serve } from '../../server/serve/harness.ts'

export async function openImports() {
  const served = await serve()
  const folder = await mkdtemp(join(tmpdir(), 'import-'))
  const token = await served.manager()
  const roles = { reader: { name: 'Reader', permissions: ['docs:read'] } }
  const kept = {
    app: 'docs',
    audiences: ['https://docs.example'],
    permissions: { 'docs:read': 'Read' },
    roles,
    model: null,
  }
  await given(served.store, ENVIRONMENT, { kind: 'manifest', manifest: kept })
  for (const organization of ['acme', 'other']) await given(served.store, organization)
  async function runCommand(...args: readonly string[]) {
    const [stdout, stderr] = [new PassThrough(), new PassThrough()]
    const io = {
      argv: ['node', 'portcullis-pdp', ...args],
      env: { PORTCULLIS_URL: served.url, PORTCULLIS_TOKEN: token },
      stdout,
      stderr,
      exitCode: 0,
      cwd: () => folder,
      exit(status: number): never {
        io.exitCode = status
        throw new Error('exit')
      },
    }
    const printed = Promise.all([text(stdout), text(stderr)])
    await runPdpCli(io as unknown as NodeJS.Process).catch((err: Error) => {
      if (err.message !== 'exit') throw err
    })
    stdout.end()
    stderr.end()
    const [out, err] = await printed
    return { status: io.exitCode, out, err }
  }
  return {
    served,
    folder,
    token,
    runCommand,
    run: (...args: readonly string[]) => runCommand('import', ...args),
    async file(name: string, content: string): Promise<string> {
      await writeFile(join(folder, name), content)
      return join(folder, name)
    },
    can(subject: string, relation: string, resource: string, organization = 'acme') {
      const [type = '', id = ''] = subject.split(':')
      return served.pdp.can(organization, { type, id }, relation, resource)
    },
    async close() {
      await served.close()
      await rm(folder, { recursive: true })
    },
  }
}
