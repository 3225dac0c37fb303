/** Builds a program from a Go module that others published, with the versions that it was released with. */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isObject } from '../../../sidecar/injector/pod/json.ts'
import { askJson, runs } from './run.ts'

export type GoProgram = { readonly module: string; readonly version: string; readonly path: string }

/** Into `cache`/bin; as a module of its own, at low priority. Whether it was made. */
export function buildGo(name: string, { module, version, path }: GoProgram, cache: string): boolean {
  const folder = join(cache, 'build', name)
  mkdirSync(folder, { recursive: true })
  mkdirSync(join(cache, 'bin'), { recursive: true })
  const directives = directivesOf(`${module}@${version}`, folder)
  if (directives === null) return false
  const lines = [`module portcullis.dev/${name}`, 'go 1.26.0', `require ${module} ${version}`, ...directives]
  writeFileSync(join(folder, 'go.mod'), `${lines.join('\n')}\n`)
  const made = join(folder, name)
  const flags = ['-mod=mod', '-trimpath', '-ldflags', '-s -w', '-o', made]
  const source = path === '' ? module : `${module}/${path}`
  if (!runs('nice', ['-n', '19', 'go', 'build', ...flags, source], folder)) return false
  renameSync(made, join(cache, 'bin', name))
  return true
}

/** Go takes replacements and exclusions of the main module only, so those of the module that is built are repeated. */
function directivesOf(module: string, folder: string): readonly string[] | null {
  const downloaded = askJson('go', ['mod', 'download', '-json', module], folder)
  if (!isObject(downloaded) || typeof downloaded.GoMod !== 'string') return null
  const file = askJson('go', ['mod', 'edit', '-json', downloaded.GoMod], folder)
  if (!isObject(file)) return null
  const named = (value: unknown): string =>
    isObject(value) ? `${value.Path}${value.Version === undefined ? '' : ` ${value.Version}`}` : ''
  const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
  const replaces = list(file.Replace).flatMap((entry) => {
    if (!isObject(entry) || (isObject(entry.New) && String(entry.New.Path).startsWith('.'))) return []
    return [`replace ${named(entry.Old)} => ${named(entry.New)}`]
  })
  return [...replaces, ...list(file.Exclude).map((entry) => `exclude ${named(entry)}`)]
}
