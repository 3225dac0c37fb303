/** Servers and clients of MCP that others wrote, of npm and PyPI, in a cache outside of the repository: they are no dependency of ours. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { installFromPypi } from '../support/programs/pypi.ts'

const NPM = {
  '@modelcontextprotocol/sdk': '1.32.2',
  '@modelcontextprotocol/client': '2.4.0',
  '@modelcontextprotocol/server': '2.4.0',
  '@modelcontextprotocol/node': '2.1.2',
  '@modelcontextprotocol/server-everything': '2026.8.31',
  '@modelcontextprotocol/server-filesystem': '2026.8.31',
  '@modelcontextprotocol/server-memory': '2026.8.31',
  '@modelcontextprotocol/conformance': '0.1.16',
  supergateway: '4.0.0',
}
const PYPI = {
  python1: { packages: ['mcp==1.30.0'], modules: 'mcp' },
  python2: { packages: ['mcp==2.3.0'], modules: 'mcp' },
  fastmcp: { packages: ['fastmcp==4.2.3'], modules: 'fastmcp' },
  git: { packages: ['mcp-server-git==2026.10.19'], modules: 'mcp_server_git' },
} as const

/** Null: it cannot be had here. */
export type Programs = { readonly [name in keyof typeof PYPI]: string | null } & { readonly npm: string | null }

/** The folders of each: of `node_modules`, and for PYTHONPATH. What is missing is installed, or said to be missing. */
export function findPrograms(): Programs {
  const python = (name: keyof typeof PYPI): string | null => installFromPypi(`mcp/${name}`, PYPI[name])
  return {
    npm: findNpmPackages(),
    python1: python('python1'),
    python2: python('python2'),
    fastmcp: python('fastmcp'),
    git: python('git'),
  }
}

/** The folder of `node_modules`; null when npm cannot reach its registry. */
export function findNpmPackages(): string | null {
  const folder = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'portcullis-mcp/npm')
  const modules = join(folder, 'node_modules')
  if (Object.entries(NPM).every(([name, version]) => versionIn(modules, name) === version)) return modules
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies: NPM }))
  const words = ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--fetch-retries=1']
  if (spawnSync('npm', words, { cwd: folder, stdio: 'ignore', timeout: 300_000 }).status === 0) return modules
  console.log('the packages of MCP cannot be installed from npm here: what needs them is skipped')
  return null
}

function versionIn(modules: string, name: string): string | null {
  const file = join(modules, name, 'package.json')
  if (!existsSync(file)) return null
  const { version }: { version: string } = JSON.parse(readFileSync(file, 'utf8'))
  return version
}
