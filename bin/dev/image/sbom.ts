/** `node bin/dev/image/sbom.ts FOLDER`: the bill of materials of an assembled program, as CycloneDX 1.6 JSON. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isObject, type Json, type JsonObject, objectAt } from '../../../sidecar/injector/pod/json.ts'

/** The same for the same folder and lock file (npm's own, of what is installed): no time, no random serial number. */
export function billOfMaterials(folder: string, lock: JsonObject): JsonObject {
  const root = readJson(join(folder, 'package.json'))
  const locked = objectAt(lock.packages, 'packages')
  const components = packageFolders(folder).map((path) => {
    const { name, version, license } = readJson(join(folder, path, 'package.json'))
    return component({ name, version, license }, objectAt(locked[path], path).integrity)
  })
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { type: 'application', name: root.name ?? '', version: root.version ?? '' } },
    components,
  }
}

type Named = { readonly [member in 'name' | 'version' | 'license']: Json | undefined }

function component({ name, version, license }: Named, integrity: Json | undefined): JsonObject {
  const purl = `pkg:npm/${String(name).replace('@', '%40')}@${version}`
  const [algorithm, digest = ''] = typeof integrity === 'string' ? integrity.split('-', 2) : []
  return {
    type: 'library',
    'bom-ref': purl,
    name: name ?? '',
    version: version ?? '',
    purl,
    ...(typeof license === 'string' && { licenses: [{ expression: license }] }),
    ...(algorithm === 'sha512' && {
      hashes: [{ alg: 'SHA-512', content: Buffer.from(digest, 'base64').toString('hex') }],
    }),
  }
}

/** Every folder of `node_modules` that is a package, with nested ones. */
export function packageFolders(folder: string): readonly string[] {
  const found: string[] = []
  const open = ['node_modules']
  for (const root of open) {
    if (!existsSync(join(folder, root))) continue
    for (const name of readdirSync(join(folder, root)).toSorted()) {
      const path = join(root, name)
      if (name.startsWith('@')) open.push(path)
      else if (existsSync(join(folder, path, 'package.json'))) {
        found.push(path)
        open.push(join(path, 'node_modules'))
      }
    }
  }
  return found
}

function readJson(path: string): JsonObject {
  const value: unknown = JSON.parse(readFileSync(path, 'utf8'))
  if (isObject(value)) return value
  throw new Error(`${path} holds no object`)
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const bill = billOfMaterials(process.argv[2] ?? '.', readJson(join('node_modules', '.package-lock.json')))
  process.stdout.write(`${JSON.stringify(bill, null, 2)}\n`)
}
