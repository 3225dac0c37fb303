/** The official SDKs of MCP for TypeScript, as far as they sign in. */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { findNpmPackages } from './programs.ts'

/** A provider of OAuth as both SDKs want one; each asks for the members that it knows. */
export type Auth = (
  provider: object,
  options: { readonly serverUrl: string; readonly authorizationCode?: string; readonly iss?: string },
) => Promise<'AUTHORIZED' | 'REDIRECT'>
export type Sdks = readonly { readonly name: string; readonly auth: Auth }[]

/** Null when they cannot be had here. */
export async function sdks(): Promise<Sdks | null> {
  const modules = findNpmPackages()
  if (modules === null) return null
  const files = {
    'TypeScript 1.32': '@modelcontextprotocol/sdk/dist/esm/client/auth.js',
    'TypeScript 2.4': '@modelcontextprotocol/client/dist/index.mjs',
  }
  const loaded = Object.entries(files).map(async ([name, file]) => {
    const { auth }: { auth: Auth } = await import(pathToFileURL(join(modules, file)).href)
    return { name, auth }
  })
  return Promise.all(loaded)
}
