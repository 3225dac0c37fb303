/** Earlier versions of the program, as this repository's history has them, and how one of any version is started. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPart, type Part, spawnNode } from '../faults/part.ts'
import { freePort } from '../support/free-port.ts'

export type Version = {
  readonly commit: string
  /** Its PDPs may serve while those of today do: `docs/operate.md` says so. */
  readonly besideToday: boolean
}
/** Oldest first. */
export const RELEASED: readonly Version[] = [
  { commit: '8eb75df5b7ff796b491813d1920e697636d35990', besideToday: false },
  { commit: '93168c13d1be058fab147486de0b4451f36e6c8d', besideToday: true },
]
export type Ports = readonly [http: number, grpc: number, metrics: number]
export type Pdp = { readonly part: Part; readonly origin: string; readonly ports: Ports }

export const ROOT = join(import.meta.dirname, '../..')
export const MASTER_KEY = Buffer.alloc(32, 'u').toString('base64')
export const ADMIN_SECRET = 'upgrade-admin-secret-0123456789'

export const shortName = ({ commit }: Version): string => commit.slice(0, 7)

/**
 * A new folder with the sources and packages of `version`; the caller deletes it. Null: this clone's history does not reach so far back.
 * It is not kept for the next run: it links to the packages of this clone, and outlived them.
 */
export function checkOut(version: Version): string | null {
  const folder = mkdtempSync(join(tmpdir(), `portcullis-version-${shortName(version)}-`))
  try {
    const archive = spawnSync('git', ['archive', version.commit], { cwd: ROOT, maxBuffer: 512 * 1024 ** 2 })
    const unpacked =
      archive.status === 0 && spawnSync('tar', ['-x'], { cwd: folder, input: archive.stdout }).status === 0
    if (unpacked) {
      install(folder)
      return folder
    }
  } catch (err) {
    rmSync(folder, { recursive: true })
    throw err
  }
  rmSync(folder, { recursive: true })
  return null
}

/** Its own packages; ours where they are the same. */
function install(folder: string): void {
  if (needsOnly(folder, ROOT)) {
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    return
  }
  const { status, stderr } = spawnSync('npm', ['ci', '--omit=dev'], { cwd: folder, encoding: 'utf8' })
  if (status !== 0) throw new Error(`npm ci in ${folder}: ${stderr}`)
}

function needsOnly(folder: string, other: string): boolean {
  const [wanted, held] = [folder, other].map(
    (at) => JSON.parse(readFileSync(join(at, 'package.json'), 'utf8')).dependencies as { [name: string]: string },
  )
  return Object.entries(wanted ?? {}).every(([name, version]) => held?.[name] === version)
}

/** A PDP from the sources in `root`; today's without. Throws when it does not start. */
export async function startPdp(options: {
  readonly name: string
  readonly folder: string
  readonly databaseUrl: string
  readonly root?: string
  /** That of the others; its own when there are none. */
  readonly issuer?: string
  /** Of one that has ended. */
  readonly ports?: Ports
  readonly env?: { readonly [name: string]: string }
}): Promise<Pdp> {
  const { name, folder, databaseUrl, root = ROOT } = options
  const ports: Ports = options.ports ?? [await freePort(), await freePort(), await freePort()]
  const [http, grpc, metrics] = ports
  const origin = `http://127.0.0.1:${http}`
  const env = {
    DATABASE_URL: databaseUrl,
    PORTCULLIS_ISSUER: options.issuer ?? origin,
    PORTCULLIS_ADMIN_SECRET: ADMIN_SECRET,
    PORTCULLIS_MASTER_KEY: MASTER_KEY,
    PORTCULLIS_HTTP_LISTEN: `127.0.0.1:${http}`,
    PORTCULLIS_GRPC_LISTEN: `127.0.0.1:${grpc}`,
    PORTCULLIS_METRICS_LISTEN: `127.0.0.1:${metrics}`,
    PORTCULLIS_DATA_DIR: join(folder, name),
    ...options.env,
  }
  const part = createPart({
    name,
    logFile: join(folder, `${name}.log`),
    launch: (more, log) => spawnNode([join(root, 'pdp/main.ts'), 'serve'], { env: { ...env, ...more }, log }),
    ready: async () => (await fetch(`http://127.0.0.1:${metrics}/readyz`)).ok,
  })
  await part.start()
  return { part, origin, ports }
}

export async function stopPdp({ part }: Pdp): Promise<void> {
  part.signal('SIGTERM')
  await part.ended()
}
