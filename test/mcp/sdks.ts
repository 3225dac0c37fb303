/** The official SDKs of MCP for TypeScript, in a cache folder: they are no dependency of ours. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const PACKAGES = { '@modelcontextprotocol/sdk': '1.32.2', '@modelcontextprotocol/client': '2.4.0' }

/** A provider of OAuth as both SDKs want one; each asks for the members that it knows. */
export type Auth = (
  provider: object,
  options: { readonly serverUrl: string; readonly authorizationCode?: string; readonly iss?: string },
) => Promise<'AUTHORIZED' | 'REDIRECT'>
export type Sdks = readonly { readonly name: string; readonly auth: Auth }[]

/** Installed by npm where they are missing. Null when npm cannot reach its registry. */
export async function sdks(environment: NodeJS.ProcessEnv): Promise<Sdks | null> {
  const folder = join(environment.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'portcullis-mcp-sdks')
  const of = (file: string): string => join(folder, 'node_modules', file)
  const files = {
    'TypeScript 1.32': of('@modelcontextprotocol/sdk/dist/esm/client/auth.js'),
    'TypeScript 2.4': of('@modelcontextprotocol/client/dist/index.mjs'),
  }
  if (!Object.values(files).every(existsSync) && !install(folder)) return null
  const loaded = Object.entries(files).map(async ([name, file]) => {
    const { auth }: { auth: Auth } = await import(pathToFileURL(file).href)
    return { name, auth }
  })
  return Promise.all(loaded)
}

function install(folder: string): boolean {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies: PACKAGES }))
  try {
    execFileSync('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts'], { cwd: folder, stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
