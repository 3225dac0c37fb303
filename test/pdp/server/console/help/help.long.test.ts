/** The books in the console: every page, link and picture, for everybody who is signed in. */
import { readdirSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type OwnWorld, startOwnWorld } from '../../../../console/own-world.ts'
import { createBrowser } from '../../../../support/browser.ts'
import { get, signedInTo } from '../visitor.ts'

let world: OwnWorld
beforeAll(async () => {
  world = await startOwnWorld()
})
afterAll(() => world?.close())

const PAGES = readdirSync('docs').flatMap((name) => /^([a-z-]+)\.md$/.exec(name)?.[1] ?? [])

test('every page leads only to pages, sections and pictures that are there', async () => {
  const browser = await signedInTo(world, 'root')
  const texts = new Map<string, string>()
  const read = async (path: string): Promise<string> => {
    const known = texts.get(path)
    if (known !== undefined) return known
    const { status, text } = await get(browser, path)
    expect([path, status]).toEqual([path, 200])
    texts.set(path, text)
    return text
  }
  const paths = ['', '/routes-reference', '/kubernetes', ...PAGES.map((page) => `/${page}`)]
  for (const path of paths.map((page) => `/console/help${page}`)) {
    const book = (await read(path)).split('<div class="book">')[1] ?? ''
    expect(book.length).toBeGreaterThan(200)
    for (const [, to = ''] of book.matchAll(/(?:href|src)="([^"]*)"/g)) {
      if (to.startsWith('https://')) continue
      const [page = '', section] = to.split('#')
      const target = await read(page === '' ? path : page)
      if (section !== undefined) expect([path, to, target.includes(` id="${section}"`)]).toEqual([path, to, true])
    }
  }
})

test('a link keeps the organization', async () => {
  const { text } = await get(await signedInTo(world, 'root'), '/console/help?org=acme')
  expect(text).toContain('href="/console/help/people?org=acme"')
})

test('somebody without any role reads them too, and nobody without a sign-in', async () => {
  expect((await get(await signedInTo(world, 'bob'), '/console/help/people')).text).toContain('id="stop-somebody"')
  expect((await get(createBrowser(world.issuer), '/console/help/people')).status).toBe(303)
})

test.each([
  'help/nothing',
  'help/README',
  'help/people.md',
  'help/..%2fpackage',
  'help/%2e%2e%2f%2e%2e%2fetc%2fpasswd',
  'help/__proto__',
  'help/people/more',
  `help/${'a'.repeat(200)}`,
  'pictures/..%2f..%2fpackage.json',
  'pictures/nothing.svg',
  'pictures/console-model-dark.png',
])('%s is not found, on a page with a way back', async (path) => {
  const { status, text } = await get(await signedInTo(world, 'root'), `/console/${path}`)
  expect(status).toBe(404)
  expect(text).toContain('href="/console')
})
