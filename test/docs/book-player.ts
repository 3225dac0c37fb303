/** Does what a book says, in a fresh folder, with the programs of this tree and a person at the sign-in page. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../support/free-port.ts'
import { connectDevice } from '../support/sign-in.ts'
import { type BookStep, isPrinted } from './book-steps.ts'

/** The ports that books name, each with the setting that moves it. */
const PORTS = {
  8080: 'PORTCULLIS_HTTP_LISTEN',
  9090: 'PORTCULLIS_GRPC_LISTEN',
  9091: 'PORTCULLIS_METRICS_LISTEN',
  15080: 'PORTCULLIS_SIDECAR_LISTEN',
  15094: 'PORTCULLIS_SIDECAR_ADMIN_LISTEN',
  3000: 'PORT',
} as const
const START_MS = 180_000
const BIN = join(import.meta.dirname, '../../bin')

export type BookPlayer = {
  readonly folder: string
  /** The last whose address and password a command told the reader. */
  readonly person: { readonly email: string; readonly password: string }
  /** Texts of books that are something else here, such as the address of an identity provider. */
  readonly replaced: Map<string, string>
  /** In the reader's shell from now on. */
  export(name: string, value: string): void
  /** Commands of this folder come first. */
  prefer(binaries: string): void
  /** Runs the steps in order. Throws with the place in the book when one does not do what the book says. */
  play(steps: readonly BookStep[]): Promise<void>
  /** Ends what runs in terminals whose command begins with `command`. */
  end(command: string): Promise<void>
  close(): Promise<void>
}

type Terminal = { readonly command: string; readonly child: ChildProcess; said: string }
type World = { readonly folder: string; readonly env: NodeJS.ProcessEnv }

/** `bin`: where the reader has our commands. */
export async function openBookPlayer(bin = BIN): Promise<BookPlayer> {
  const folder = mkdtempSync(join(tmpdir(), 'book-'))
  const { env, replaced } = await surroundings(folder, bin)
  const here = (text: string): string =>
    [...replaced].reduce((found, [shown, real]) => found.replaceAll(shown, real), text)
  const shown = (text: string): string =>
    [...replaced].reduce((found, [shown, real]) => found.replaceAll(real, shown), text)
  const terminals = createTerminals({ folder, env })
  const person = { email: '', password: '' }
  const run = createShell({ folder, env }, person)

  /** A sidecar that runs loads a changed route file within seconds, which a reader needs for the next command. */
  async function write(step: BookStep & { kind: 'file' }): Promise<void> {
    const path = join(folder, step.name)
    const text = here(step.text)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
    if (step.name !== 'portcullis.yaml') return
    const hash = createHash('sha256').update(text).digest('hex')
    await terminals.says('portcullis-sidecar run', hash)
  }

  async function take(step: BookStep): Promise<void> {
    if (step.kind === 'file') return write(step)
    if (step.kind === 'end') return terminals.end(step.command)
    if (step.mode === 'terminal') return terminals.open(here(step.script.trim()))
    const { status, out, err } = await run(here(step.script))
    if ((status !== 0) !== (step.mode === 'fails')) throw new Error(`${step.script}ended with ${status}\n${out}${err}`)
    const printed = shown(`${out}${step.mode === 'fails' ? err : ''}`)
    if (step.printed !== null && !isPrinted(step.printed, printed))
      throw new Error(`${step.script}printed\n${printed}${err}and the book shows\n${step.printed}`)
  }

  return {
    folder,
    person,
    replaced,
    export(name, value) {
      env[name] = value
    },
    prefer(binaries) {
      env.PATH = `${bin}:${binaries}:${env.PATH}`
    },
    end: terminals.end,
    async play(steps) {
      for (const step of steps) {
        await take(step).catch((err: Error) => {
          throw new Error(`line ${step.line}: ${err.message}`, { cause: err })
        })
      }
    },
    async close() {
      await terminals.end('')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Free ports in place of those of the books, in settings as in texts. */
async function surroundings(
  folder: string,
  bin: string,
): Promise<{ env: NodeJS.ProcessEnv; replaced: Map<string, string> }> {
  const replaced = new Map<string, string>()
  const env: NodeJS.ProcessEnv = {
    PATH: `${bin}:${process.env.PATH}`,
    HOME: folder,
    XDG_CONFIG_HOME: join(folder, '.config'),
  }
  for (const [port, name] of Object.entries(PORTS)) {
    const free = await freePort()
    replaced.set(`:${port}`, `:${free}`).set(`listen(${port}`, `listen(${free}`)
    env[name] = `127.0.0.1:${free}`
  }
  env.PORTCULLIS_URL = `http://${env.PORTCULLIS_HTTP_LISTEN}`
  return { env, replaced }
}

/** What the reader exported and defined so far. */
function stateOf(folder: string): string {
  const state = join(folder, '.shell-state')
  writeFileSync(state, '', { flag: 'a' })
  return state
}

type Ended = { readonly status: number | null; readonly out: string; readonly err: string }

/** What was exported and defined stays, as in the reader's shell. A sign-in page that a command names is answered. */
function createShell(
  { folder, env }: World,
  person: { email: string; password: string },
): (script: string) => Promise<Ended> {
  async function approve(url: string): Promise<void> {
    const last = await connectDevice(url, person)
    if (!last.includes('is connected')) throw new Error(`the sign-in page said: ${last}`)
  }

  return async (script) => {
    const state = stateOf(folder)
    const whole = `. ${state}; set -euo pipefail; ${script}\n{ export -p; declare -f; } > ${state}`
    const child = spawn('bash', ['-c', whole], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
    let [out, err] = ['', '']
    let approving: Promise<void> = Promise.resolve()
    child.stdout.on('data', (chunk) => {
      out += chunk
    })
    child.stderr.on('data', (chunk) => {
      const [, page] = /Open (\S+)/.exec(`${chunk}`) ?? []
      err += chunk
      if (page !== undefined) approving = approve(page)
    })
    const status = await new Promise<number | null>((done) => child.once('close', done))
    await approving
    person.email = / who signs in as (\S+)/.exec(out)?.[1] ?? person.email
    person.password = /^password +(\S+)/m.exec(out)?.[1] ?? person.password
    return { status, out, err }
  }
}

/** Commands that go on running, each in a terminal of its own. */
function createTerminals({ folder, env }: World) {
  const terminals: Terminal[] = []

  async function eventually(ready: () => Promise<boolean>, terminal: Terminal): Promise<void> {
    const endMs = Date.now() + START_MS
    while (!(await ready())) {
      if (terminal.child.exitCode !== null || Date.now() > endMs)
        throw new Error(`${terminal.command} is not there yet: ${terminal.said}`)
      await delay(50)
    }
  }

  return {
    /** Unless it runs already: books share a PDP. */
    async open(command: string): Promise<void> {
      if (terminals.some((terminal) => terminal.command === command && terminal.child.exitCode === null)) return
      const child = spawn('bash', ['-c', `. ${stateOf(folder)}; ${command}`], {
        cwd: folder,
        env,
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      const terminal: Terminal = { command, child, said: '' }
      terminals.push(terminal)
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk) => {
          terminal.said = `${terminal.said}${chunk}`.slice(-16_000)
        })
      await eventually(readinessOf(command, env), terminal)
    },
    /** Waits until a command that runs says this. */
    async says(command: string, text: string): Promise<void> {
      const terminal = terminals.find((one) => one.command === command)
      if (terminal !== undefined) await eventually(async () => terminal.said.includes(text), terminal)
    },
    async end(command: string): Promise<void> {
      for (const terminal of terminals.filter((one) => one.command.startsWith(command))) {
        terminals.splice(terminals.indexOf(terminal), 1)
        const { child } = terminal
        if (child.exitCode !== null || child.pid === undefined) continue
        const closed = new Promise((done) => child.once('close', done))
        process.kill(-child.pid, 'SIGTERM')
        await closed
      }
    },
  }
}

function readinessOf(command: string, env: NodeJS.ProcessEnv): () => Promise<boolean> {
  const admin = command.startsWith('portcullis-pdp')
    ? env.PORTCULLIS_METRICS_LISTEN
    : command.startsWith('portcullis-sidecar')
      ? env.PORTCULLIS_SIDECAR_ADMIN_LISTEN
      : undefined
  if (admin === undefined) return () => accepts(String(env.PORT))
  return () =>
    fetch(`http://${admin}/readyz`).then(
      async (response) => {
        await response.text()
        return response.ok
      },
      () => false,
    )
}

const accepts = (address: string): Promise<boolean> =>
  new Promise((resolve) => {
    const [host = '', port = ''] = address.split(':')
    const socket = connect(Number(port), host, () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
