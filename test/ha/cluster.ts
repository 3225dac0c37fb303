/** PostgreSQL servers under Patroni, with etcd, behind HAProxy; beside them Redis with Sentinel. */
import { spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parse } from 'yaml'
import { locateCluster } from '../../pdp/engine/store/embedded-postgres/process.ts'
import { createPart, type Part } from '../faults/part.ts'
import { type Link, openLink } from '../faults/proxy.ts'
import { freePort } from '../support/free-port.ts'
import { installFromPypi } from '../support/programs/pypi.ts'
import { type HaRedis, startRedis } from './redis.ts'

export type Member = {
  readonly name: string
  readonly agent: Part
  readonly port: number
  readonly restPort: number
  readonly dataFolder: string
  /** To etcd. */
  readonly link: Link
  /** From the other members, to its PostgreSQL and its agent. */
  readonly fromMembers: readonly Link[]
}
/** `keeps`: open connections to a former primary stay open. `cuts`: they are ended. */
export type AddressKind = 'keeps' | 'cuts'
export type HaCluster = {
  readonly members: readonly Member[]
  readonly etcd: Part
  readonly proxy: Part
  readonly redis: HaRedis
  readonly ports: { readonly [kind in AddressKind]: number }
  urlAt(port: number): string
  /** The member whose agent says that it is the primary; null: none does. */
  leader(): Promise<Member | null>
  /** One primary, standbys that stream, one of which commits wait for; of Redis too. */
  whole(): Promise<void>
  stop(): Promise<void>
}
type Programs = { readonly bin: string; readonly patroni: string }

const PASSWORD = 'ha-password-0123456789'
const WHOLE_MS = 120_000

/** Null with a line for each program that is missing. */
export function findPrograms(): Programs | null {
  const base = '/usr/lib/postgresql'
  const version = existsSync(base)
    ? readdirSync(base).find((one) => existsSync(join(base, one, 'bin/postgres')))
    : undefined
  const missing = [
    ...['etcd', 'haproxy', 'python3', 'redis-server'].filter((name) => spawnSync('which', [name]).status !== 0),
    ...(version === undefined ? ['postgresql'] : []),
  ]
  for (const name of missing)
    console.log(`${name} is not installed (Debian: apt-get install etcd-server haproxy postgresql redis-server)`)
  if (missing.length > 0 || version === undefined) return null
  const packages = ['patroni[etcd3]==4.1.5', 'psycopg2-binary==2.9.11']
  const patroni = installFromPypi('patroni', { packages, modules: 'patroni, psycopg2' })
  return patroni === null ? null : { bin: join(base, version, 'bin'), patroni }
}

/** `standbys`: one or two. `loopSeconds`: how often an agent looks at its server and at etcd. */
export type Size = { readonly standbys: number; readonly loopSeconds: number }

export async function startCluster(programs: Programs, size: Size): Promise<HaCluster> {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-ha-'))
  const parts: Part[] = []
  const members: Member[] = []
  const stop = async (): Promise<void> => {
    for (const { link, fromMembers } of members) for (const one of [link, ...fromMembers]) one.close()
    for (const part of parts) {
      part.signal('SIGCONT')
      part.signal('SIGKILL')
    }
    for (const member of members) signalServer(member, 'SIGKILL')
    for (const part of parts) await part.ended()
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
  }
  try {
    const cluster = await build(programs, { folder, parts, members, stop, size })
    await cluster.whole()
    return cluster
  } catch (err) {
    await stop()
    throw err
  }
}

type Own = {
  readonly folder: string
  readonly parts: Part[]
  readonly members: Member[]
  readonly size: Size
  stop(): Promise<void>
}

/** Puts what it starts into `parts` and `members`. */
async function build({ bin, patroni }: Programs, { folder, parts, members, size, stop }: Own): Promise<HaCluster> {
  const { standbys, loopSeconds } = size
  chmodSync(folder, 0o755)
  const { account } = await locateCluster(join(folder, 'account'))
  const libraries = join(folder, 'patroni')
  cpSync(patroni, libraries, { recursive: true }) // PostgreSQL's user may not enter the cache
  const own = async (part: Part): Promise<Part> => {
    parts.unshift(part)
    await part.start()
    return part
  }
  const run = (
    name: string,
    of: { file: string; args: readonly string[]; isOurs?: boolean; ready: () => Promise<boolean> },
  ) =>
    createPart({
      name,
      logFile: join(folder, `${name}.log`),
      ready: of.ready,
      launch: (_env, log) =>
        spawn(of.file, of.args, {
          ...(of.isOurs === true || account === null ? {} : account),
          cwd: folder,
          env: { PATH: process.env.PATH ?? '', HOME: folder, PYTHONPATH: libraries, LC_ALL: 'C' },
          stdio: ['ignore', log, log],
        }),
    })
  const [etcdPort, etcdPeer] = [await freePort(), await freePort()]
  const etcdUrl = `http://127.0.0.1:${etcdPort}`
  const etcdArgs = [
    '--data-dir',
    join(folder, 'etcd'),
    '--listen-client-urls',
    etcdUrl,
    '--advertise-client-urls',
    etcdUrl,
  ]
  const peer = ['--listen-peer-urls', `http://127.0.0.1:${etcdPeer}`]
  const isHealthy = async (): Promise<boolean> => (await fetch(`${etcdUrl}/health`)).ok
  const etcd = await own(run('etcd', { file: 'etcd', args: [...etcdArgs, ...peer], isOurs: true, ready: isHealthy }))
  const start = async (name: string): Promise<void> => {
    const [port, restPort, link] = [await freePort(), await freePort(), await openLink(etcdPort)]
    const fromMembers = [await openLink(port), await openLink(restPort)] as const
    const [shown, restShown] = [fromMembers[0].port, fromMembers[1].port]
    const home = join(folder, name)
    mkdirSync(home)
    if (account !== null) chownSync(home, account.uid, account.gid)
    const dataFolder = join(home, 'data')
    const file = join(folder, `${name}.yaml`)
    const place = { name, port, restPort, shown, restShown, etcdPort: link.port, dataFolder, bin, loopSeconds }
    writeFileSync(file, JSON.stringify(settingsOf(place)))
    const ready = async (): Promise<boolean> => (await fetch(`http://127.0.0.1:${restPort}/health`)).ok
    const agent = await own(run(name, { file: 'python3', args: ['-m', 'patroni', file], ready }))
    members.push({ name, agent, port, restPort, dataFolder, link, fromMembers })
  }
  await start('n1')
  await Promise.all(['n2', 'n3'].slice(0, standbys).map(start))
  const redis = await startRedis(folder, (part) => void parts.unshift(part))
  const ports = { keeps: await freePort(), cuts: await freePort() }
  const proxyFile = join(folder, 'haproxy.cfg')
  writeFileSync(proxyFile, proxySettings(members, ports))
  const proxy = await own(
    run('haproxy', {
      file: 'haproxy',
      args: ['-db', '-f', proxyFile],
      isOurs: true,
      ready: () => Promise.resolve(true),
    }),
  )
  return {
    ...{ members, etcd, proxy, ports },
    redis,
    urlAt: (port) => `postgresql://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`,
    async leader() {
      const found = await Promise.all(members.map(({ restPort }) => statusOf(restPort, 'primary')))
      return members[found.indexOf(200)] ?? null
    },
    async whole() {
      for (const deadline = performance.now() + WHOLE_MS; performance.now() < deadline; await delay(200)) {
        const [primaries, replicas, synchronous] = await Promise.all(
          ['primary', 'replica', 'sync'].map(async (role) =>
            (await Promise.all(members.map(({ restPort }) => statusOf(restPort, role)))).filter((one) => one === 200),
          ),
        )
        if (primaries?.length === 1 && replicas?.length === standbys && (synchronous?.length ?? 0) > 0)
          return redis.whole()
      }
      throw new Error(`the cluster is not whole again; see ${folder}`)
    },
    stop,
  }
}

async function statusOf(port: number, path: string): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${port}/${path}`, { signal: AbortSignal.timeout(1_000) }).catch(
    () => null,
  )
  return answer?.status ?? 0
}

/** All processes of its PostgreSQL, or those whose title has `title`. */
export function signalServer({ dataFolder }: Member, signal: NodeJS.Signals, title = ''): void {
  const file = join(dataFolder, 'postmaster.pid')
  const postmaster = existsSync(file) ? Number(readFileSync(file, 'utf8').split('\n')[0]) : 0
  if (!(postmaster > 1)) return
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const parent = Number(/^\d+ \(.*\) \S (\d+)/s.exec(readFileSync(`/proc/${name}/stat`, 'utf8'))?.[1])
      const isOurs = parent === postmaster || (Number(name) === postmaster && title === '')
      if (isOurs && readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(title)) process.kill(Number(name), signal)
    } catch {
      // It has ended by itself.
    }
  }
}

type Place = {
  readonly [one in 'port' | 'restPort' | 'shown' | 'restShown' | 'etcdPort' | 'loopSeconds']: number
} & { readonly name: string; readonly dataFolder: string; readonly bin: string }
const settingsOf = ({
  name,
  port,
  restPort,
  shown,
  restShown,
  etcdPort,
  loopSeconds,
  dataFolder,
  bin,
}: Place): object => ({
  scope: 'portcullis',
  name,
  restapi: { listen: `127.0.0.1:${restPort}`, connect_address: `127.0.0.1:${restShown}` },
  // Without it the agent would go past the link, to what etcd says of itself.
  etcd3: { hosts: [`127.0.0.1:${etcdPort}`], use_proxies: true },
  bootstrap: {
    dcs: {
      ...(parse(printed('bootstrap:\n')).bootstrap.dcs as object),
      loop_wait: loopSeconds,
      postgresql: {
        use_pg_rewind: true,
        parameters: { max_connections: 150, wal_keep_size: '256MB', fsync: 'off', wal_log_hints: 'on' },
      },
    },
    initdb: [{ encoding: 'UTF8' }, 'no-sync'],
  },
  postgresql: {
    ...{ listen: `127.0.0.1:${port}`, connect_address: `127.0.0.1:${shown}`, data_dir: dataFolder, bin_dir: bin },
    pgpass: join(dataFolder, '..', 'pgpass'),
    pg_hba: ['host all all 127.0.0.1/32 scram-sha-256', 'host replication all 127.0.0.1/32 scram-sha-256'],
    parameters: { unix_socket_directories: '' },
    authentication: {
      superuser: { username: 'postgres', password: PASSWORD },
      replication: { username: 'replicator', password: PASSWORD },
    },
  },
})

/** The block of the page for operators that begins so. */
function printed(begin: string): string {
  const [, rest] = readFileSync('docs/availability.md', 'utf8').split(`\n${begin}`)
  return `${begin}${rest?.split('```')[0] ?? ''}`
}

const proxySettings = (members: readonly Member[], ports: HaCluster['ports']): string => {
  const servers = members.map((one) => `  server ${one.name} 127.0.0.1:${one.port} check port ${one.restPort}`)
  const [head = ''] = printed('listen primary\n').split('  server ')
  const listens = Object.entries(ports).map(([kind, port]) => {
    const cuts = head.replace('primary\n', `${kind}\n`).replace(' :5432', ` 127.0.0.1:${port}`)
    return [kind === 'cuts' ? cuts : cuts.replace(' on-marked-down shutdown-sessions', ''), ...servers].join('\n')
  })
  return `
defaults
  mode tcp
  timeout connect 1s
  timeout client 1h
  timeout server 1h

${listens.join('\n\n')}
`
}
