/** Python packages that others wrote, in a cache outside of the repository. */
import { spawnSync } from 'node:child_process'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { runs } from './run.ts'

/** The folder for PYTHONPATH; null: they cannot be had here, or not be loaded. `modules`: to import, separated by commas. */
export function installFromPypi(
  name: string,
  { packages, modules }: { readonly packages: readonly string[]; readonly modules: string },
): string | null {
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache')
  const folder = join(cache, `portcullis-${name}`)
  const loads = (): boolean => {
    const env = { ...process.env, PYTHONPATH: folder }
    return spawnSync('python3', ['-c', `import ${modules}`], { env, stdio: 'ignore' }).status === 0
  }
  if (loads()) return folder
  const quietly = ['--quiet', '--disable-pip-version-check', '--no-warn-conflicts', '--root-user-action=ignore']
  const briefly = ['--retries', '1', '--timeout', '15']
  const words = ['-m', 'pip', 'install', ...quietly, ...briefly, '--upgrade', '--target', folder, ...packages]
  if (runs('python3', words, tmpdir()) && loads()) return folder
  console.log(`${packages.join(', ')} of PyPI cannot be installed here: their tests are skipped`)
  return null
}
