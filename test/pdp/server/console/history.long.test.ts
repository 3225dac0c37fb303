/** What the console shows of what is long or was before: lists of many pages, the log of changes, versions of manifests. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OwnWorld, startOwnWorld } from '../../../console/own-world.ts'
import { MODEL, type PersonId } from '../../../console/world.ts'
import type { Browser } from '../../../support/browser.ts'
import { csrfIn, get, post, signedInTo } from './visitor.ts'

let world: OwnWorld
beforeAll(async () => {
  world = await startOwnWorld()
})
afterAll(() => world?.close())
const signedIn = (person: PersonId): Promise<Browser> => signedInTo(world, person)

describe('lists that are longer than a page', () => {
  const COUNT = 201
  const numbers = Array.from({ length: COUNT }, (_, i) => String(i).padStart(4, '0'))
  beforeAll(async () => {
    await world.manage('PUT', '/v1/organizations/wide', { name: 'Wide' })
    for (let at = 0; at < COUNT; at += 5)
      await Promise.all(
        numbers.slice(at, at + 5).map(async (n) => {
          await world.manage('PUT', `/v1/organizations/wide~${n}`, { name: `Part ${n}`, parent: 'wide' })
          await world.manage('PUT', `/v1/users/p${n}`, { name: `Person ${n}` })
          await world.manage('PUT', `/v1/organizations/wide/members/p${n}`, { role: 'member', status: 'active' })
          await world.manage('PUT', `/v1/organizations/wide/entitlements/feature.f${n}`, { value: true })
          const grant = { app: 'docs', role: 'exporter', subject: `group:g${n}` }
          await world.manage('POST', '/v1/organizations/wide/role-grants', grant)
        }),
      )
  })

  const PARTS: readonly (readonly [list: string, row: RegExp])[] = [
    ['below', /Part \d{4}/g],
    ['members', /user%3Ap\d{4}/g],
    ['entitlements', /name="key" value="feature\.f\d{4}"/g],
    ['roles', /group:g\d{4}</g],
  ]
  test.each(PARTS)('the pages of %s of an organization together have all of them, each once', async (list, row) => {
    const root = await signedIn('root')
    const first = (await get(root, '/console/organization?org=wide')).text
    const to = new RegExp(`href="([^"]*[?;]${list}=[^"]*)">Next page<`).exec(first)?.[1]?.replaceAll('&amp;', '&')
    expect(to).toBeDefined()
    const second = (await get(root, to ?? '')).text
    expect(second).not.toMatch(new RegExp(`[?;]${list}=[^"]*">Next page<`))
    const found = [...(first.match(row) ?? []), ...(second.match(row) ?? [])]
    expect([found.length, new Set(found).size]).toEqual([COUNT, COUNT])
  })

  test('a comparison looks at every resource, and what it compared wholly needs no further word', async () => {
    const root = await signedIn('root')
    const page = '/console/model?org=many&app=docs'
    await world.manage('PUT', '/v1/organizations/many', { name: 'Many' })
    const write = Array.from({ length: 101 }, (_, i) => `doc:${i}#viewer@user:bob`)
    await world.manage('POST', '/v1/organizations/many/relationships', { write })
    const csrf = csrfIn((await get(root, page)).text)
    const compare = async (text: string) =>
      (await post(root, page, { csrf, text, type: 'doc', action: 'compare' })).text
    const fewer = await compare(MODEL.replace('user, user:*, group#member', 'group#member'))
    expect(fewer.replaceAll(/<[^>]*>/g, '')).toContain('viewer: 101 would lose, 0 would gain')
    expect([fewer, await compare(MODEL)].map((text) => text.includes('name="whole" value="yes"'))).toEqual([true, true])
  })

  test('an emptied text is compared as no model', async () => {
    const root = await signedIn('root')
    const page = '/console/model?org=acme&app=docs'
    const csrf = csrfIn((await get(root, page)).text)
    const { status, text } = await post(root, page, { csrf, text: '', type: 'doc', action: 'compare' })
    expect([status, text.includes('Put this model in force')]).toEqual([200, true])
    expect(text.replaceAll(/<[^>]*>/g, '')).toContain('would lose')
  })

  test('a comparison of more relations than it makes at once names the others', async () => {
    const root = await signedIn('root')
    const page = '/console/model?org=acme&app=docs'
    const csrf = csrfIn((await get(root, page)).text)
    const more = numbers.slice(0, 25).map((n) => `    define extra${n}: [user]`)
    const form = { csrf, text: `${MODEL}${more.join('\n')}\n`, type: 'doc', action: 'compare' }
    const { text } = await post(root, page, form)
    expect(text.replaceAll(/<[^>]*>/g, '')).toMatch(/This is not everything: of 29 relations the first 20.*extra0024/)
    const named = await post(root, page, { ...form, relation: 'extra0024' })
    expect(named.text).not.toContain('This is not everything')
  })
})

describe('the log of changes', () => {
  const rowsOf = (text: string): readonly string[] =>
    Array.from(text.matchAll(/<tr><td[^>]*>.*?<\/tr>/gs), ([row]) => row.replaceAll(/<[^>]*>/g, ' '))
  const pagesFrom = async (path: string): Promise<readonly (readonly string[])[]> => {
    const browser = await signedIn('root')
    const pages: (readonly string[])[] = []
    for (let at: string | undefined = path; at !== undefined; ) {
      const { text } = await get(browser, at)
      pages.push(rowsOf(text))
      at = /href="([^"]+)">(?:Older|Search older ones)</.exec(text)?.[1]?.replaceAll('&amp;', '&')
    }
    return pages
  }
  beforeAll(async () => {
    await world.manage('PUT', '/v1/organizations/logged', { name: 'Logged' })
    const write = (of: readonly string[]) =>
      world.manage('POST', '/v1/organizations/logged/relationships', { write: of })
    await write(['doc:first#viewer@user:bob'])
    await write(Array.from({ length: 150 }, (_, i) => `doc:import${i}#viewer@user:bob`))
    for (let i = 0; i < 9; i++) await write([`doc:late${i}#viewer@user:bob`])
  })

  test('begins with the latest change, and its pages together have each change once', async () => {
    const pages = await pagesFrom('/console/changes?org=logged')
    expect(pages.map((page) => page.length)).toEqual([60, 60, 40])
    expect(pages[0]?.[0]).toContain('doc:late8')
    expect(pages.at(-1)?.at(-1)).toContain('doc:first')
    expect(new Set(pages.flat().map((row) => /doc:\w+/.exec(row)?.[0])).size).toBe(160)
  })

  test('has an address for each revision and each filter', async () => {
    const [first] = await pagesFrom('/console/changes?org=logged&until=1')
    expect(first?.[0]).toContain('doc:first')
    const found = await pagesFrom('/console/changes?org=logged&text=import7')
    expect(found.flat()).toHaveLength(11)
    expect(await pagesFrom('/console/changes?org=logged&actor=user:nobody')).toEqual([[]])
  })

  test.each(['until=99999999', 'until=-1', 'until=x&skip=y', 'skip=1000000', 'until=0'])(
    'takes %s for what it can be',
    async (query) => {
      const { status } = await get(await signedIn('root'), `/console/changes?org=logged&${query}`)
      expect(status).toBe(200)
    },
  )

  test.each(['anna', 'bob', 'tom'] as const)('of the environment and of others is not shown to %s', async (person) => {
    const browser = await signedIn(person)
    for (const query of ['org=acme&log=environment', 'org=globex&log=directory', 'org=logged', 'org=nobodys'])
      expect((await get(browser, `/console/changes?${query}`)).status).toBe(403)
  })
})

describe('the versions of a manifest', () => {
  const lessModel = MODEL.replace(' or editor', '')
  let revision = ''
  beforeAll(async () => {
    const { version: _, app, ...manifest } = await world.manage('GET', '/v1/apps/docs/manifest')
    await world.manage('PUT', `/v1/apps/${app}/manifest`, { ...manifest, model: lessModel })
    await world.manage('PUT', `/v1/apps/${app}/manifest`, { ...manifest, permissions: { 'docs:export': 'Take out' } })
    await world.manage('PUT', `/v1/apps/${app}/manifest`, manifest)
  })

  test('are listed with who wrote each, when, and what it changed', async () => {
    const { text } = await get(await signedIn('root'), '/console/model?org=acme&app=docs')
    const rows = Array.from(text.matchAll(/<tr><td[^>]*>(?:(?!<\/tr>).)*revision=(\d+)(?:(?!<\/tr>).)*<\/tr>/gs))
    const shown = rows.map(([row]) => row.replaceAll(/<[^>]*>/g, ' ').replaceAll(/ +/g, ' '))
    expect(shown).toEqual([
      expect.stringMatching(/version 4 .*service:admin.*1 permission/),
      expect.stringMatching(/version 3 .*model \+1 −1 lines, 1 permission/),
      expect.stringMatching(/version 2 .*model \+1 −1 lines/),
      expect.stringMatching(/version 1 .*the first version/),
    ])
    revision = rows[2]?.[1] ?? ''
  })

  test('stand beside the one in force, with who would gain and who would lose', async () => {
    const root = await signedIn('root')
    const here = `/console/model?org=acme&app=docs&revision=${revision}`
    const { text } = await get(root, here)
    expect(text).toMatch(/<del>[^<]* or editor or [^<]*<\/del><ins>/)
    expect(text).toContain(`revision=${revision}&amp;compare=1`)
    const compared = (await get(root, `${here}&compare=1`)).text.replaceAll(/<[^>]*>/g, '')
    expect(compared).toMatch(/viewer: 1 would lose, 0 would gain/)
    expect(compared).toContain('Put this model in force')
  })

  test('do not replace a manifest that was changed after they were compared', async () => {
    const root = await signedIn('root')
    const here = '/console/model?org=acme&app=docs'
    const { text: page } = await get(root, `${here}&revision=${revision}&compare=1`)
    const version = /name="version" value="([^"]+)"/.exec(page)?.[1] ?? ''
    const { version: _, app, ...manifest } = await world.manage('GET', '/v1/apps/docs/manifest')
    await world.manage('PUT', `/v1/apps/${app}/manifest`, { ...manifest, permissions: { 'docs:export': 'Carry out' } })
    const fields = { csrf: csrfIn(page), action: 'apply', text: 'model\n  schema 1.1\ntype user\n', version }
    const unseen = await post(root, here, fields)
    expect([unseen.status, unseen.text.includes('not everything was compared')]).toEqual([400, true])
    const refused = await post(root, here, { ...fields, whole: 'no' })
    expect(refused.status).toBe(409)
    expect(refused.text).toContain('the manifest was changed after you compared')
    expect(refused.text).toMatch(/<textarea[^>]*>\s*model\n {2}schema 1\.1\ntype user/)
    expect((await world.manage('GET', '/v1/apps/docs/manifest')).model).toBe(manifest.model)
    await world.manage('PUT', `/v1/apps/${app}/manifest`, manifest)
  })

  test.each(['999999', '1', '0', '-1', 'x', '1e3', '9'.repeat(40)])('do not have revision %s', async (other) => {
    const { status } = await get(await signedIn('root'), `/console/model?org=acme&app=docs&revision=${other}`)
    expect(status).toBe(404)
  })

  test.each(['anna', 'bob', 'tom'] as const)('are not shown to %s', async (person) => {
    const { status, text } = await get(
      await signedIn(person),
      `/console/model?org=acme&app=docs&revision=${revision}&compare=1`,
    )
    expect([status, text.includes('define viewer')]).toEqual([403, false])
  })
})
