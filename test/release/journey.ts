/** From nothing to a gated service: what a newcomer does with the programs of a release, wherever they come from. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { openBookPlayer } from '../docs/book-player.ts'
import { bookSteps } from '../docs/book-steps.ts'
import { end, outputOf } from '../image/jail.ts'
import { freePort } from '../support/free-port.ts'

/** How each program is started: the command and its first words. */
export type Programs = {
  readonly pdp: (words: readonly string[], env: NodeJS.ProcessEnv) => ChildProcess
  readonly sidecar: (words: readonly string[], env: NodeJS.ProcessEnv) => ChildProcess
  readonly command: readonly string[]
  readonly env: NodeJS.ProcessEnv
  /** Folder of the route file and the data, as the test sees it and as the sidecar does. */
  readonly folder: string
  readonly seen: string
}

const RESOURCE = 'https://app.example.com'

/** The statuses that the service's client saw: nothing granted, granted, taken away. */
export async function journey({ pdp, sidecar, command, env, folder, seen }: Programs): Promise<readonly number[]> {
  const [http, grpc, metrics, data, admin] = [
    await freePort(),
    await freePort(),
    await freePort(),
    await freePort(),
    await freePort(),
  ]
  const service = createServer((req, res) => res.end(`for ${req.headers['x-auth-subject']}\n`))
  await new Promise<void>((listening) => service.listen(0, '127.0.0.1', listening))
  const address = service.address()
  if (address === null || typeof address === 'string') throw new Error('the service does not listen')
  writeFileSync(join(folder, 'portcullis.yaml'), routeFile({ http, grpc, upstream: address.port }))
  const decides = pdp(['serve'], {
    ...env,
    PORTCULLIS_HTTP_LISTEN: `127.0.0.1:${http}`,
    PORTCULLIS_GRPC_LISTEN: `127.0.0.1:${grpc}`,
    PORTCULLIS_METRICS_LISTEN: `127.0.0.1:${metrics}`,
  })
  const started = [decides]
  try {
    await ready(decides, `http://127.0.0.1:${metrics}/readyz`)
    const run = (...words: string[]): string => {
      const [program = '', ...first] = command
      const { status, stdout, stderr } = spawnSync(program, [...first, ...words], {
        cwd: folder,
        encoding: 'utf8',
        env: { ...env, PORTCULLIS_URL: `http://127.0.0.1:${http}` },
      })
      if (status !== 0) throw new Error(`portcullis ${words.join(' ')}: ${stdout}${stderr}`)
      return stdout
    }
    run('setup', 'acme')
    const made: { readonly client_secret?: string } = JSON.parse(
      run('client', 'put', 'reporter', '-o', 'acme', '--scope', '', '--json'),
    )
    const enforces = sidecar(
      [
        'run',
        `--file=${join(seen, 'portcullis.yaml')}`,
        `--listen=127.0.0.1:${data}`,
        `--admin-listen=127.0.0.1:${admin}`,
      ],
      env,
    )
    started.push(enforces)
    await ready(enforces, `http://127.0.0.1:${admin}/readyz`)
    const token = await tokenOf(`http://127.0.0.1:${http}/oauth/token`, made.client_secret ?? '')
    const ask = async (): Promise<number> => {
      const answer = await fetch(`http://localhost:${data}/invoices/42`, {
        headers: { authorization: `Bearer ${token}` },
      })
      await answer.arrayBuffer()
      return answer.status
    }
    const before = await ask()
    run('tuple', 'write', 'invoice:42#viewer@service:reporter', '-o', 'acme')
    const granted = await ask()
    run('tuple', 'delete', 'invoice:42#viewer@service:reporter', '-o', 'acme')
    return [before, granted, await ask()]
  } finally {
    for (const child of started.toReversed()) await end(child)
    service.close()
  }
}

async function tokenOf(url: string, secret: string): Promise<string> {
  const authorization = `Basic ${Buffer.from(`reporter:${secret}`).toString('base64')}`
  const body = new URLSearchParams({ grant_type: 'client_credentials', resource: RESOURCE })
  const response = await fetch(url, { method: 'POST', headers: { authorization }, body })
  const answer = (await response.json()) as { readonly access_token?: string }
  if (answer.access_token === undefined) throw new Error(`no token: ${JSON.stringify(answer)}`)
  return answer.access_token
}

/** A first start unpacks, makes a database and migrates it. */
const START_MS = 180_000

/** Throws with what the program printed when it ends instead, or is not ready at last. */
async function ready(child: ChildProcess, url: string): Promise<void> {
  const output = outputOf(child)
  for (const endMs = performance.now() + START_MS; (await fetch(url).catch(() => null))?.status !== 200; ) {
    if (child.exitCode !== null || child.signalCode !== null || performance.now() > endMs) throw new Error(output())
    await delay(50)
  }
}

/** Steps 2 to 6 of docs/start.md, as they are written, with the commands of `bin`. Says how many a reader types. */
export async function walk(bin: string): Promise<string> {
  const [, section = ''] = readFileSync('docs/start.md', 'utf8').split(/^## (?:2\.|With your own).*$/m)
  const steps = bookSteps(section)
  const player = await openBookPlayer(bin)
  try {
    await player.play(steps)
  } finally {
    await player.close()
  }
  return `the ${steps.length} blocks of docs/start.md`
}

type Ports = { readonly [name in 'http' | 'grpc' | 'upstream']: number }
const routeFile = (at: Ports): string => `portcullis: v1
resource: ${RESOURCE}
hosts: [app.example.com, localhost]
issuers: [{issuer: "http://127.0.0.1:${at.http}"}]
upstream: http://127.0.0.1:${at.upstream}
pdp: {address: "127.0.0.1:${at.grpc}", insecure: true}
routes:
  GET /invoices/{id}: viewer invoice:{id}
`

/** Starts a program of this machine. */
export const started =
  (command: readonly string[], cwd: string) =>
  (words: readonly string[], env: NodeJS.ProcessEnv): ChildProcess => {
    const [program = '', ...first] = command
    return spawn(program, [...first, ...words], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  }

/** Ends with the program's output when it fails. */
export async function succeed(child: ChildProcess): Promise<string> {
  const output = outputOf(child)
  const [status] = await once(child, 'exit')
  if (status !== 0) throw new Error(output())
  return output()
}
