/** What the steps of `npm run test:release` share. */
import { chmodSync, existsSync, mkdirSync, mkdtempSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { PLATFORMS, readJson } from '../../bin/dev/release/platform.ts'
import { endAll } from '../image/jail.ts'
import { buildGo, type GoProgram } from '../support/programs/go-build.ts'

export const RELEASE = resolve('dist/release')
export const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'portcullis-release')
export const REGISTRY = 'ghcr.io/acme'
export const VERDACCIO = '6.10.4'
export const GO: { readonly [name: string]: GoProgram } = {
  crane: { module: 'github.com/google/go-containerregistry', version: 'v0.20.6', path: 'cmd/crane' },
  helm: { module: 'helm.sh/helm/v3', version: 'v3.21.4', path: 'cmd/helm' },
}
/** Statuses of the journey: nothing granted, granted, taken away. */
export const JOURNEY = '403,200,403'

export const OWN = PLATFORMS.find(({ npm }) => npm === process.arch)?.oci
export const version = String(readJson('package.json').version)
export const at = (name: string): string => join(RELEASE, name.replace('VERSION', version))
/** What everything is installed into. */
export const folder = mkdtempSync(join(tmpdir(), 'portcullis-installed-'))
chmodSync(folder, 0o755)
/** Called at the end, the last one first. */
export const ends: (() => Promise<unknown> | unknown)[] = [endAll]

/** Why a step cannot be played here. */
export class Missing extends Error {}

export function expectSame(found: unknown, expected: unknown): void {
  if (String(found) !== String(expected)) throw new Error(`found ${found}, expected ${expected}`)
}

/** An empty folder that every user of this machine may enter. */
export function empty(name: string): string {
  const path = join(folder, name)
  mkdirSync(path, { recursive: true })
  return path
}

/** A program that Go builds once into the cache. */
export function goProgram(name: string): string {
  const path = join(CACHE, 'bin', name)
  const program = GO[name]
  if (!existsSync(path) && (program === undefined || !buildGo(name, program, CACHE)))
    throw new Missing(`${name} cannot be built here`)
  return path
}
