/** A person of one tenant who writes names of another into addresses and forms sees what they see for names that nobody has. */
import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SCREENS } from '../../../../pdp/server/console/screens.ts'
import { type OwnWorld, startOwnWorld } from '../../../console/own-world.ts'
import type { Browser } from '../../../support/browser.ts'
import { csrfIn, get, post, type Shown, signedInTo } from './visitor.ts'

type Names = { readonly [name: string]: string }
const THEIRS: Names = { org: 'globex', user: 'tom', object: 'doc:secret-of-globex', stream: 'stream-of-polling' }
/** As long as theirs, since pictures are as wide as their names. */
const NOBODYS: Names = { org: 'noborg', user: 'nob', object: 'doc:nobody-of-noborg', stream: 'stream-of-nobodys' }

let world: OwnWorld
/** An editor of acme. */
let anna: Browser
beforeAll(async () => {
  world = await startOwnWorld()
  anna = await signedInTo(world, 'anna')
})
afterAll(() => world?.close())

/** What each parameter of an address may name of another tenant. Empty: names of the environment, places in a list, words. */
const NAMED: { readonly [parameter: string]: readonly string[] } = {
  org: ['{org}'],
  object: ['{object}', 'organization:{org}', 'user:{user}'],
  resource: ['{object}', 'organization:{org}'],
  // A question about a person says whether there is one (SECURITY.md).
  subject: ['group:{user}', 'organization:{org}', 'organization:{org}#member'],
  user: ['{org}'],
  actor: ['user:{user}', 'service:{user}'],
  actors: ['{user}'],
  log: ['{org}'],
  stream: ['{stream}'],
  with: ['{object}#viewer@user:{user}'],
  without: ['{object}#viewer@user:{user}'],
  request: ['{object}'],
  q: ['{object}', '{user}', '{org}', 'bob {object}'],
  search: ['{user}'],
  one_role: [],
  audience: ['{org}'],
  ...Object.fromEntries(
    `after app as_of at below claims context csv done everywhere for format from kind lines members method op outcome page reason relation route show skip sort step
     status target text tier to type until compare entitlements now what revision role roles scopes sidecar`
      .split(/\s+/)
      .map((name) => [name, []]),
  ),
}

/** Every parameter that a screen reads. */
function parameters(): readonly string[] {
  const root = new URL('../../../../pdp/server/console/', import.meta.url)
  const files = ['', 'screens/', 'sections/'].flatMap((folder) =>
    readdirSync(new URL(folder, root)).flatMap((name) => (name.endsWith('.ts') ? [folder + name] : [])),
  )
  const sources = files.map((file) => readFileSync(new URL(file, root), 'utf8')).join('\n')
  return [...new Set([...sources.matchAll(/query\('([a-z_]+)'\)/g)].map(([, name = '']) => name))]
}

const filled = (text: string, names: Names): string => text.replaceAll(/\{(\w+)\}/g, (_, name) => names[name] ?? '?')

/** As it stands in a page, in an address, and in an address within an address. */
const written = (name: string): readonly string[] =>
  [name, encodeURIComponent(name), encodeURIComponent(encodeURIComponent(name))].map((text) => RegExp.escape(text))

/** A page without the names that were asked about, and without what is another one each time. */
function told({ status, text }: Shown, names: Names) {
  const forms = Object.values(names).flatMap((name) => [name, name.replace(/^doc:/, '')].flatMap(written))
  const longestFirst = forms.toSorted((a, b) => b.length - a.length).join('|')
  return {
    status,
    text: text
      .replaceAll(new RegExp(`(?<![a-z])(?:${longestFirst})(?![a-z])`, 'g'), '…')
      .replaceAll(/(csrf" value|nonce|id)="[^"]*"|Answered in [\d.]+ ms/g, '')
      .replaceAll(/\b[0-9a-f]{8}-[0-9a-f-]{27}\b/g, ''),
  }
}

/** Questions that a screen answers, and not only shows a form for. */
const WHOLE: Names = {
  org: 'acme',
  subject: 'user:bob',
  relation: 'viewer',
  resource: 'doc:1',
  type: 'doc',
  app: 'docs',
}

test('says of each parameter what it may name', () => {
  expect(parameters().filter((name) => !(name in NAMED))).toEqual([])
  expect(parameters().length).toBeGreaterThan(30)
})

test.each(SCREENS.map(({ path }) => path))(
  'GET /console/%s shows no more of another tenant than of nobody',
  async (path) => {
    for (const [parameter, values] of Object.entries(NAMED))
      for (const value of values)
        for (const base of [{ org: 'acme' }, WHOLE]) {
          const at = async (names: Names) => {
            const query = new URLSearchParams({ ...base, [parameter]: filled(value, names) })
            return told(await get(anna, `/console/${path}?${query}`), names)
          }
          const [theirs, nobodys] = [await at(THEIRS), await at(NOBODYS)]
          expect([parameter, value, theirs]).toEqual([parameter, value, nobodys])
          expect([parameter, value, theirs.text.includes('Globex')]).toEqual([parameter, value, false])
        }
  },
)

test.each(SCREENS.flatMap(({ path, act }) => (act === undefined ? [] : [path])))(
  'POST /console/%s does no more to what is another tenant’s than to what is nobody’s',
  async (path) => {
    const csrf = csrfIn((await get(anna, '/console/relationships?org=acme')).text)
    expect(csrf).not.toBe('')
    const forms: readonly Names[] = [
      { text: '{object}#viewer@user:bob', op: 'write', step: 'preview' },
      { text: '{object}#viewer@user:bob', op: 'delete', action: 'write', confirmed: 'yes' },
      { user: '{user}', action: 'suspend', role: 'member' },
      { id: '{user}', email: 'x@x.example', action: 'withdraw' },
      { key: 'feature.x', value: 'true', action: 'put' },
      { stream: '{stream}', action: 'pause' },
      { stream: '{stream}', action: 'verify' },
    ]
    for (const form of forms)
      for (const org of ['{org}', 'acme']) {
        // What is written to one's own organization under names that nobody has is one's own.
        if (org === 'acme' && 'text' in form) continue
        const at = async (names: Names) => {
          const sent = Object.fromEntries(
            Object.entries({ ...form, csrf }).map(([name, value]) => [name, filled(value, names)]),
          )
          return told(await post(anna, `/console/${path}?org=${filled(org, names)}`, sent), names)
        }
        const theirs = await at(THEIRS)
        expect([form, theirs]).toEqual([form, await at(NOBODYS)])
        expect([form, theirs.text.includes('Globex')]).toEqual([form, false])
      }
  },
)
