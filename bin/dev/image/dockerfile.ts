/** Carries out the Dockerfile without an engine: each stage in a folder of its own, its commands by this machine's shell. */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

export type Step = { readonly instruction: string; readonly words: string }
export type Stage = { readonly name: string; readonly base: string; readonly steps: readonly Step[] }
/** What the image says about how it is started. */
export type ImageConfig = {
  readonly entrypoint: readonly string[]
  readonly user: string
  readonly folder: string
  readonly env: { readonly [name: string]: string }
  readonly ports: readonly string[]
}
export type Built = { readonly root: string; readonly config: ImageConfig }

/** Throws for what this file does not know, rather than leaving it out. */
export function parseDockerfile(text: string): readonly Stage[] {
  const lines = text
    .replace(/^#.*\n/gm, '')
    .replace(/\\\n/g, ' ')
    .split('\n')
  const stages: { name: string; base: string; steps: Step[] }[] = []
  for (const line of lines.map((each) => each.trim()).filter((each) => each !== '')) {
    const [, instruction = '', words = ''] = /^(\S+)\s+(.*)$/.exec(line) ?? []
    const [, base, name] = instruction === 'FROM' ? (/^(\S+) AS (\S+)$/.exec(words) ?? []) : []
    if (base !== undefined && name !== undefined) stages.push({ name, base, steps: [] })
    else if (Object.hasOwn(STEPS, instruction)) stages.at(-1)?.steps.push({ instruction, words })
    else throw new Error(`not known here: ${line}`)
  }
  return stages
}

/** `install`: false puts this checkout's packages in the place of a download of the same ones. Throws when a step fails. */
export function buildImages(folder: string, { install }: { install: boolean }): ReadonlyMap<string, Built> {
  const built = new Map<string, Built>()
  for (const { name, base, steps } of parseDockerfile(readFileSync('Dockerfile', 'utf8'))) {
    const root = join(folder, name)
    mkdirSync(root, { recursive: true })
    const from = built.get(base)
    if (from !== undefined) cpSync(from.root, root, { recursive: true })
    let config = from?.config ?? NOTHING
    for (const step of steps)
      config = { ...config, ...STEPS[step.instruction]?.(step.words, { root, built, config, install }) }
    built.set(name, { root, config })
  }
  return built
}

const NOTHING: ImageConfig = { entrypoint: [], user: '0:0', folder: '/', env: {}, ports: [] }
type Site = {
  readonly root: string
  readonly built: ReadonlyMap<string, Built>
  readonly config: ImageConfig
  readonly install: boolean
}
type Carry = (words: string, site: Site) => Partial<ImageConfig>

const STEPS: { readonly [instruction: string]: Carry } = {
  WORKDIR(words, { root }) {
    mkdirSync(join(root, words), { recursive: true })
    return { folder: words }
  },
  ENV: (words, { config }) => ({ env: { ...config.env, ...pairs(words) } }),
  USER: (words) => ({ user: words }),
  EXPOSE: (words) => ({ ports: words.split(' ') }),
  ENTRYPOINT: (words) => ({ entrypoint: JSON.parse(words) }),
  COPY(words, site) {
    const parts = words.split(' ').filter((word) => !word.startsWith('--chown='))
    const stage = parts.find((word) => word.startsWith('--from='))?.slice('--from='.length)
    const [to = '', ...sources] = parts.filter((word) => !word.startsWith('--')).toReversed()
    const target = resolve(site.config.folder, to)
    for (const source of sources) {
      if (stage !== undefined)
        cpSync(join(site.built.get(stage)?.root ?? '', source), join(site.root, target), { recursive: true })
      else for (const path of source === '.' ? contextPaths() : [source]) copy(path, join(site.root, target, path))
    }
    return {}
  },
  RUN(words, { root, config, install }) {
    const cwd = join(root, config.folder)
    if (words === 'npm ci' && !install) symlinkSync(resolve('node_modules'), join(cwd, 'node_modules'))
    else {
      // Where the stage is not the root of a file system, its absolute paths are below its folder.
      const command = words.replaceAll(/(?<=\s)\/(?=out\b)/g, `${root}/`)
      const path = `${dirname(process.execPath)}:${process.env.PATH}`
      execFileSync('sh', ['-c', command], {
        cwd,
        env: { ...process.env, PATH: path },
        stdio: ['ignore', 'inherit', 'inherit'],
      })
    }
    return {}
  },
}

const pairs = (words: string): { readonly [name: string]: string } =>
  Object.fromEntries(
    words.split(' ').map((word) => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]),
  )

/** What .dockerignore leaves: it ignores everything, then names what is not. */
function contextPaths(): readonly string[] {
  const [everything, ...kept] = readFileSync('.dockerignore', 'utf8').trim().split('\n')
  if (everything !== '**' || !kept.every((line) => line.startsWith('!')))
    throw new Error('.dockerignore has another form')
  return kept.map((line) => line.slice(1))
}

function copy(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true })
  cpSync(from, to, { recursive: true })
}

/** Of a folder with everything in it. */
export function sizeOf(folder: string): { readonly files: number; readonly bytes: number } {
  const sizes = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => statSync(join(entry.parentPath, entry.name)).size)
  return { files: sizes.length, bytes: sizes.reduce((sum, size) => sum + size, 0) }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const folder = process.argv[2]
  if (folder === undefined) throw new Error('usage: build.ts FOLDER')
  for (const [name, { root, config }] of buildImages(resolve(folder), { install: true })) {
    if (config.entrypoint.length === 0) continue
    const { files, bytes } = sizeOf(root)
    const start = config.entrypoint.join(' ')
    console.log(
      `${name}: ${files} files, ${(bytes / 1e6).toFixed(1)} MB beside the base image, as ${config.user}: ${start}`,
    )
  }
}
