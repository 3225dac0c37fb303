/** Runs programs from an assembled folder as a container would: as its root, read-only, as user 65532. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, copyFileSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'

const running: ChildProcess[] = []

/** What the base image brings: Node and the libraries that it links. */
export function layOutSystem(root: string): void {
  const libraries = execFileSync('ldd', [process.execPath], { encoding: 'utf8' }).match(/\/\S+/g) ?? []
  for (const path of libraries) {
    mkdirSync(join(root, dirname(path)), { recursive: true })
    copyFileSync(path, join(root, path))
  }
  mkdirSync(join(root, 'bin'), { recursive: true })
  copyFileSync(process.execPath, join(root, 'bin', 'node'))
  // The one place in which a sidecar may write: its emptyDir.
  mkdirSync(join(root, CONTROL_FOLDER), { recursive: true })
  chmodSync(join(root, CONTROL_FOLDER), 0o777)
}

const CONTROL_FOLDER = 'run/portcullis'
const isRoot = process.getuid?.() === 0
const AS = isRoot ? ['--userspec=65532:65532'] : []
/** A root file system that nobody can write to, but for one folder, for user 65532 where the system lets us choose. */
const JAIL = `mount --bind "$0" "$0" && mount --bind "$0/${CONTROL_FOLDER}" "$0/${CONTROL_FOLDER}" &&
mount -o remount,bind,ro "$0" && exec chroot ${AS.join(' ')} "$0" "$@"`
const APART = ['--mount', ...(isRoot ? [] : ['--user', '--map-root-user'])]
// Within a container there may be no mounts: files of root are then what a program of another user cannot write.
const canMount = spawnSync('unshare', [...APART, 'true']).status === 0

/** Starts a command as the container's only one. */
export function startIn(root: string, command: readonly string[], env: NodeJS.ProcessEnv = {}): ChildProcess {
  const [program = '', ...words] = canMount ? ['unshare', ...APART, 'sh', '-c', JAIL, root] : ['chroot', ...AS, root]
  const child = spawn(program, [...words, ...command], {
    env: { PATH: `/bin:${process.env.PATH}`, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running.push(child)
  return child
}

/** Whatever was started here. */
export async function endAll(): Promise<void> {
  for (const child of running) await end(child)
}

export async function end(child: ChildProcess): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) {
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    await ended
  }
  return child.exitCode
}

export function outputOf(child: ChildProcess): () => string {
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (piece: string) => {
      text += piece
    })
  return () => text
}
