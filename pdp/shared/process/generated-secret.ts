/** Generates a secret at the first start, and keeps it in a file that only its owner can read. */
import { randomBytes, randomUUID } from 'node:crypto'
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { fileProblem } from './command/file-problem.ts'
import { StartError } from './exit.ts'

const BYTES = 32

/**
 * The mode of a generated data directory. When root starts it, PostgreSQL runs as another user, which must be able to
 * traverse the directory but not to list it.
 */
export const dataDirectoryMode = (): number => (process.getuid?.() === 0 ? 0o711 : 0o700)

/** 32 random bytes in base64url, the same at each start, even for two simultaneous starts. Throws StartError. */
export async function generatedSecret(path: string): Promise<string> {
  const draft = `${path}.new-${randomUUID()}`
  try {
    const existing = await readIfThere(path)
    if (existing !== null) return existing
    await mkdir(dirname(path), { recursive: true, mode: dataDirectoryMode() })
    await writeFile(draft, randomBytes(BYTES).toString('base64url'), { mode: 0o600, flag: 'wx' })
    // A hard link is made at one stroke, and never replaces the file of a simultaneous start.
    await link(draft, path).catch((err: unknown) => {
      if (!isCode(err, 'EEXIST')) throw err
    })
    return await readFile(path, 'utf8')
  } catch (err) {
    const advice = 'Name a folder that this user may write to by PORTCULLIS_DATA_DIR'
    throw new StartError(`${fileProblem(path, err, 'written')}. ${advice}`, { cause: err })
  } finally {
    await rm(draft, { force: true }).catch(() => undefined)
  }
}

async function readIfThere(path: string): Promise<string | null> {
  try {
    return (await readFile(path, 'utf8')).trim()
  } catch (err) {
    if (isCode(err, 'ENOENT')) return null
    throw err
  }
}

function isCode(err: unknown, code: string): boolean {
  return err instanceof Error && 'code' in err && err.code === code
}
