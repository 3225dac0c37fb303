/** The faults that are played, by name: what begins, how long it lasts, what ends it, and what must hold meanwhile. */
import { spawnSync } from 'node:child_process'
import { closeSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Load } from './load.ts'
import type { Part } from './part.ts'
import type { LinkFault } from './proxy.ts'
import type { LinkName, System } from './system.ts'

export type Fault = {
  readonly name: string
  readonly lastsMs: number
  readonly begin: (system: System, load: Load) => Promise<void> | void
  readonly end: (system: System, load: Load) => Promise<void> | void
  /**
   * `unaffected`: no question goes unanswered. `routed around`: none does once the others had time to notice.
   * `kept`: none may be lost; what runs into a deadline does not count.
   * `back`: questions may go unanswered for as long as it lasts.
   */
  readonly questions: 'unaffected' | 'kept' | 'routed around' | 'back'
  /** Of questions with a proof, which need Redis; without: what holds for all. */
  readonly proofs?: Fault['questions']
  /** For the end of a question or a write that runs into it; without: what holds for all. */
  readonly withinMs?: number
  /** Writes that were sent to the frozen process wait for it. */
  readonly freezesPdp?: boolean
  /** From the end of the fault until all is answered again; without: what holds for all. */
  readonly backMs?: number
  /** Why it cannot be played here; null: it can. */
  readonly missing?: (system: System) => string | null
}

const UPSTREAM_SILENT_MS = 63_000
const RESTART_MS = 1_000
/** Until clients have heard that a part is going. */
const HEARD_MS = 500

const noRedis = ({ redis }: System): string | null => (redis === null ? 'redis-server is not installed' : null)

type Target = {
  readonly name: string
  readonly part: (system: System) => Part | null
  readonly questions: Fault['questions']
  readonly proofs?: Fault['questions']
  readonly withinMs?: number
}
/** The second of those that there are several of: the first one serves the key set. */
const TARGETS: readonly Target[] = [
  { name: 'pdp', part: ({ pdps }) => pdps[1]?.part ?? null, questions: 'routed around' },
  { name: 'postgres', part: ({ postgres }) => postgres, questions: 'back' },
  { name: 'redis', part: ({ redis }) => redis, questions: 'unaffected', proofs: 'back' },
  {
    name: 'sidecar',
    part: ({ sidecars }) => sidecars[1]?.part ?? null,
    questions: 'back',
    withinMs: UPSTREAM_SILENT_MS,
  },
  { name: 'upstream', part: ({ upstream }) => upstream, questions: 'back', withinMs: UPSTREAM_SILENT_MS },
]

const kills = TARGETS.map(
  ({ name, part, questions, proofs = questions }): Fault => ({
    name: `kill-${name}`,
    lastsMs: RESTART_MS,
    questions,
    proofs,
    begin(system, load) {
      load.forgetsProofs = name === 'redis'
      part(system)?.signal('SIGKILL')
    },
    async end(system, load) {
      await part(system)?.ended()
      await part(system)?.start()
      await delay(HEARD_MS)
      load.forgetsProofs = false
    },
    missing: (system) => (part(system) === null ? noRedis(system) : null),
  }),
)

const stops = TARGETS.flatMap(({ name, part, questions, proofs = questions, withinMs }) =>
  [2, 10, 30].map(
    (seconds): Fault => ({
      name: `stop-${name}-${seconds}`,
      lastsMs: seconds * 1_000,
      questions,
      proofs,
      ...(withinMs !== undefined && { withinMs }),
      freezesPdp: name === 'pdp',
      begin: (system) => part(system)?.signal('SIGSTOP'),
      end: (system) => part(system)?.signal('SIGCONT'),
      missing: (system) => (part(system) === null ? noRedis(system) : null),
    }),
  ),
)

const LINKS: readonly (readonly [LinkName, 'one' | 'all', Fault['questions']])[] = [
  ['sidecar-pdp', 'one', 'routed around'],
  ['sidecar-pdp', 'all', 'back'],
  ['pdp-postgres', 'one', 'routed around'],
  ['pdp-postgres', 'all', 'back'],
  ['pdp-redis', 'all', 'unaffected'],
  ['sidecar-redis', 'all', 'unaffected'],
  ['sidecar-upstream', 'all', 'back'],
]
const LINK_FAULTS: readonly LinkFault[] = ['half-open', 'slow', 'trickle', 'cut']
const LINK_MS = 8_000

const links = LINKS.flatMap(([link, of, questions]) =>
  LINK_FAULTS.map((fault): Fault => {
    const spoil = (system: System, to: LinkFault | null): void => {
      for (const one of system.links(link, of)) one.spoil(to)
    }
    return {
      name: `${fault}-${link}${of === 'all' ? '' : '-one'}`,
      lastsMs: LINK_MS,
      questions,
      proofs: link === 'sidecar-redis' ? 'back' : questions,
      ...(link === 'sidecar-upstream' && { withinMs: UPSTREAM_SILENT_MS, backMs: UPSTREAM_SILENT_MS }),
      begin: (system) => spoil(system, fault),
      end: (system) => spoil(system, null),
      missing: (system) => (link.endsWith('redis') ? noRedis(system) : null),
    }
  }),
)

const rolling: readonly Fault[] = [
  {
    name: 'rolling-pdp',
    lastsMs: 0,
    questions: 'unaffected',
    // Redis has a short deadline, and is no part of this.
    proofs: 'kept',
    async begin({ pdps }) {
      for (const { part } of pdps) await restart(part)
    },
    end: () => undefined,
  },
  {
    name: 'rolling-sidecar',
    lastsMs: 0,
    questions: 'unaffected',
    proofs: 'kept',
    async begin({ sidecars }, { serving }) {
      for (const [at, { part }] of sidecars.entries()) {
        // Requests under way are the sidecar's to finish; new ones go where the Service sends them.
        serving.delete(at)
        await delay(HEARD_MS)
        await restart(part)
        serving.add(at)
      }
    },
    end: () => undefined,
  },
]

async function restart(part: Part, env?: { readonly [name: string]: string }): Promise<void> {
  part.signal('SIGTERM')
  await part.ended()
  await part.start(env)
}

const clocks = (['sidecar', 'pdp'] as const).flatMap((name) =>
  (['ahead', 'behind'] as const).flatMap((way) =>
    [2, 300].map((seconds): Fault => {
      const shift = { FAULTS_CLOCK_SHIFT_MS: `${(way === 'ahead' ? 1 : -1) * seconds * 1_000}` }
      const swap = async ({ sidecars, pdps }: System, { serving }: Load, env?: typeof shift): Promise<void> => {
        if (name === 'sidecar') {
          serving.delete(1)
          await delay(HEARD_MS)
        }
        const part = (name === 'pdp' ? pdps : sidecars)[1]?.part
        if (part !== undefined) await restart(part, env)
        serving.add(1)
      }
      return {
        name: `clock-${name}-${way}-${seconds}`,
        lastsMs: 4_000,
        // Within seconds nothing is noticed; with minutes the tokens of others look not yet valid.
        questions: seconds > 5 ? 'back' : 'unaffected',
        async begin(system, load) {
          load.refusesTokens = seconds > 5
          await swap(system, load, shift)
        },
        async end(system, load) {
          await swap(system, load)
          load.refusesTokens = false
        },
      }
    }),
  ),
)

const STARVED = ['sidecar', 'pdp'] as const
const starving = ({ sidecars, pdps }: System, name: (typeof STARVED)[number]): Part | undefined =>
  (name === 'pdp' ? pdps[1] : sidecars[1])?.part
const noLimits = (): string | null =>
  spawnSync('prlimit', ['--version']).status === 0 ? null : 'prlimit (util-linux) is not installed'

/** It gets no further memory, so that it ends or denies; whoever runs it starts it again. */
const memory = STARVED.map(
  (name): Fault => ({
    name: `memory-${name}`,
    lastsMs: 5_000,
    questions: 'back',
    begin(system) {
      const pid = starving(system, name)?.pid() ?? 0
      // Reserved addresses count in the address space, so that only a limit on data stops a process that is running.
      const kib = /^VmData:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
      spawnSync('prlimit', ['--pid', `${pid}`, `--data=${Number(kib) * 1_024}:`])
    },
    async end(system) {
      const part = starving(system, name)
      spawnSync('prlimit', ['--pid', `${part?.pid() ?? 0}`, '--data=unlimited:'])
      if (part?.running() === false) await part.start()
    },
    missing: noLimits,
  }),
)

/** New connections and files are refused to a process that has used its descriptors up. */
const descriptors = STARVED.map((name): Fault => {
  const limit = (system: System, count: (used: number) => number): void => {
    const pid = starving(system, name)?.pid() ?? 0
    const used = readdirSync(`/proc/${pid}/fd`).length
    spawnSync('prlimit', ['--pid', `${pid}`, `--nofile=${count(used)}:`])
  }
  return {
    name: `descriptors-${name}`,
    lastsMs: 5_000,
    questions: 'back',
    begin: (system) => limit(system, (used) => used),
    end: (system) => limit(system, () => 4_096),
    missing: noLimits,
  }
})

const full: Fault = {
  name: 'disk-full',
  lastsMs: 5_000,
  questions: 'back',
  backMs: 15_000,
  begin({ disk }) {
    if ('path' in disk) fill(join(disk.path, 'ballast'))
  },
  async end({ disk, postgres }) {
    if ('path' in disk) rmSync(join(disk.path, 'ballast'), { force: true })
    await delay(RESTART_MS)
    // The server ends itself when it cannot write its log; whoever runs it starts it again.
    if (!postgres.running()) await postgres.start()
  },
  missing: ({ disk }) => ('missing' in disk ? disk.missing : null),
}

function fill(path: string): void {
  const file = openSync(path, 'w')
  try {
    for (let bytes = 1 << 20; bytes >= 512; bytes /= 2) while (wrote(file, bytes));
  } finally {
    closeSync(file)
  }
}

function wrote(file: number, bytes: number): boolean {
  try {
    return writeSync(file, Buffer.alloc(bytes)) > 0
  } catch {
    return false
  }
}

export const FAULTS: readonly Fault[] = [
  ...kills,
  ...stops,
  ...links,
  ...rolling,
  ...clocks,
  ...descriptors,
  ...memory,
  full,
]

/** A minute: a process that is gone, and a connection that hangs. */
export const SHORT: readonly string[] = ['kill-pdp', 'half-open-sidecar-pdp-one']
