/** The pages of the sidecar say what is missing and what to do, in the reader's language and the operator's brand, and to programs nothing more than before. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createKeyFetch } from '../../../sidecar/runtime/key-fetch.ts'
import { createProvider } from '../../../sidecar/sign-in/provider.ts'
import { LANGUAGES, readerWords } from '../../../sidecar/sign-in/words/words.ts'
import { field, type RawAnswer } from '../../support/peers/raw-http.ts'
import { startIssuer } from './scripted-issuer.ts'
import { movableWorlds } from './steps.ts'
import { locationOf, NAVIGATE, openWorld, type TestBrowser, type World } from './world.ts'

const worlds = movableWorlds()
let world: World
let browser: TestBrowser
beforeAll(async () => {
  world = await openWorld({
    routes: `GET /docs/{id}: viewer doc:{id}
GET /docs/{id}/notes: {any: ["editor doc:{id}", "owner doc:{id}"]}
GET /: active_member organization:{claims.org}
GET /bills: permission bills.read
GET /paid: entitlement feature.docs
GET /exact: {equals: {claims.level: secret_level}}
GET /wide: scope docs.all`,
  })
  browser = world.browser()
  await browser.open('/docs/1')
})
afterAll(async () => {
  await world.close()
  await worlds.close()
})

const textOf = ({ body }: RawAnswer): string =>
  body
    .replace(/<style>.*<\/style>/s, '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/ +/g, ' ')
    .replaceAll(/ (?=[.,])/g, '')
const hrefOf = ({ body }: RawAnswer, label: string): string | null =>
  new RegExp(`href="([^"]*)">${label}<`).exec(body)?.[1] ?? null

describe('a denial names what is missing', () => {
  test.each([
    ['a relation of a thing', '/docs/2', 'What is missing: viewer for doc 2.'],
    ['the first of several alternatives', '/docs/2/notes', 'What is missing: editor for doc 2.'],
    ['a membership', '/', 'What is missing: active member in the organization acme.'],
    ['a permission', '/bills', 'What is missing: bills.read in the organization acme.'],
    ['a scope', '/wide', 'What is missing: docs.all.'],
  ])('as %s', async (_, path, text) => {
    const answer = await browser.visit(path)
    expect([answer.status, field(answer, 'content-type')]).toEqual([403, 'text/html; charset=utf-8'])
    expect(textOf(answer)).toContain(text)
    expect(textOf(answer)).toContain(
      `ask the people who run ${new URL(world.origin).host}, and tell them the request below`,
    )
  })

  test('under a head of its own where the organization lacks a capability', async () => {
    const answer = await browser.visit('/paid')
    expect(answer.body).toContain('<h1>Your organization does not have this</h1>')
    expect(textOf(answer)).toContain('What is missing: feature.docs.')
  })

  test('to people without an organization as that', async () => {
    const [issuer] = world.issuers
    issuer.behave.accessClaims = { org: undefined }
    const stray = world.browser()
    expect(textOf(await stray.open('/docs/2'))).toContain('Your sign-in is for no organization.')
    issuer.behave.accessClaims = {}
  })

  test('but not what a claim is compared with, and to programs no more than before', async () => {
    const answer = await browser.visit('/exact')
    expect(answer.body).not.toContain('secret_level')
    expect(answer.body).not.toContain('claims.')
    const program = await browser.fetch('GET /docs/2')
    expect(program.status).toBe(403)
    expect(Object.keys(JSON.parse(program.body))).toEqual(['type', 'title', 'code', 'instance', 'status'])
  })
})

describe('a person who may not get in', () => {
  test('can use another account, which the issuer asks for, and comes back to the page', async () => {
    const denied = await browser.visit('/docs/2?page=3')
    const href = hrefOf(denied, 'Use another account') ?? ''
    expect(href).not.toContain('docs')
    const sent = locationOf(await browser.visit(href.slice(world.origin.length)))
    expect(new URL(sent).searchParams.get('prompt')).toBe('login')
    const callback = (await fetch(sent, { redirect: 'manual' })).headers.get('location') ?? ''
    expect(locationOf(await browser.visit(callback.slice(world.origin.length)))).toBe(`${world.origin}/docs/2?page=3`)
  })

  test('finds the way to the start page, and none on that page itself', async () => {
    expect(hrefOf(await browser.visit('/docs/2'), 'To the start page')).toBe(`${world.origin}/`)
    expect(hrefOf(await browser.visit('/'), 'To the start page')).toBeNull()
  })

  test('is not led to another host by a page that is not of the host where sessions are', async () => {
    const answer = await world.send('GET /nothing', ['Host: other.test', ...NAVIGATE])
    expect(answer.status).toBe(404)
    expect(answer.body).not.toContain('href=')
  })

  test('can try again while nobody can decide, with the status and fields of the problem', async () => {
    const { script } = world.pdp
    world.pdp.script = () => null
    const answer = await browser.visit('/docs/1?x=1')
    world.pdp.script = script
    expect([answer.status, field(answer, 'retry-after')]).toEqual([503, '1'])
    expect(hrefOf(answer, 'Try again')).toBe(`${world.origin}/docs/1?x=1`)
  })
})

test.each([
  ['of ours without metadata', 'https://x.test', undefined, 'login'],
  ['of others without metadata', null, undefined, 'select_account'],
  ['that knows how to choose', null, ['login', 'select_account'], 'select_account'],
  ['that only signs in again', null, ['none', 'login'], 'login'],
])('an issuer %s is asked for another account in words that it takes', async (_, resource, prompts, prompt) => {
  const issuer = await startIssuer({ audience: 'a' })
  issuer.behave.metadata = { prompt_values_supported: prompts }
  const entry = { issuer: issuer.url, clientId: 'web', clientSecretFile: null, clientKeyFile: null, name: '' } as const
  const deps = { fetch: createKeyFetch({}), resource, readSecret: () => '', clock: Date.now }
  const provider = createProvider({ ...entry, label: 'As', scope: 'openid', parameters: { prompt: 'none' } }, deps)
  const secrets = { state: 's', nonce: 'n', verifier: 'v'.repeat(43), redirectUri: 'http://127.0.0.1/' }
  const ask = async (asksWho: boolean): Promise<string | null> =>
    new URL(
      await provider.authorizationUrl({ ...secrets, acrValues: [], maxAgeSeconds: null, asksWho }),
    ).searchParams.get('prompt')
  expect([await ask(true), await ask(false)]).toEqual([prompt, 'none'])
  await issuer.close()
})

test('a person with a session is not told to be signed out', async () => {
  expect((await browser.visit('/.portcullis/signed-out')).body).toContain('<h1>Sign out</h1>')
  expect((await world.browser().visit('/.portcullis/signed-out')).body).toContain('<h1>You are signed out</h1>')
})

test('a service that does not answer is a page for people, and a problem document for programs', async () => {
  const own = await worlds.open()
  const person = own.browser()
  await person.open('/docs/1')
  await own.upstream.close()
  const answer = await person.visit('/docs/1?x=1')
  expect([answer.status, field(answer, 'content-type')]).toEqual([502, 'text/html; charset=utf-8'])
  expect(answer.body).toContain('<h1>The service does not answer</h1>')
  expect(hrefOf(answer, 'Try again')).toBe(`${own.origin}/docs/1?x=1`)
  const program = await person.fetch('GET /api/1')
  expect([program.status, JSON.parse(program.body).code]).toEqual([502, 'upstream_unavailable'])
})

describe('a sign-in that did not work', () => {
  const ways = (answer: RawAnswer): readonly (string | null)[] =>
    ['Try again', 'Use another account', 'To the start page'].map((label) => hrefOf(answer, label))
  const GOAL = expect.stringContaining('/.portcullis/sign-in?goal=')

  test.each<[string, object, string]>([
    ['that was cancelled or refused', { error: 'access_denied' }, 'You did not sign in'],
    ['that must be stronger', { error: 'unmet_authentication_requirements' }, 'A stronger sign-in is needed'],
    ['that the issuer failed at', { error: 'server_error' }, 'Signing in did not work'],
    ['of an account that is not for this service', { accessClaims: { aud: 'https://x.test' } }, 'not accepted here'],
    ['whose session is too large', { padding: 9_000 }, 'The session is too large'],
    ['whose issuer no longer answers', { tokenStatus: 500 }, 'Signing in does not work at the moment'],
  ])('%s can be tried again and with another account, and leads to the start page', async (_, behave, title) => {
    const own = await worlds.open()
    Object.assign(own.issuers[0].behave, behave)
    const answer = await own.browser().open('/docs/1?x=2')
    expect(answer.body).toContain(title)
    expect(ways(answer)).toEqual([GOAL, GOAL, `${own.origin}/`])
    const [, other = ''] = ways(answer)
    const sent = locationOf(await own.browser().visit((other ?? '').slice(own.origin.length)))
    expect(new URL(sent).searchParams.get('prompt')).toBe('login')
  })

  test('at an issuer that is away names whom to ask, and leads to the start page', async () => {
    const own = await worlds.open({ settings: ', pages: {ask: Ask Ann.}' })
    await own.issuers[0].close()
    const answer = await own.browser().visit('/docs/1')
    expect(ways(answer)).toEqual([GOAL, null, `${own.origin}/`])
    expect(textOf(answer)).toContain('Ask Ann.')
    expect(ways(await own.browser().visit('/.portcullis/sign-in'))).toEqual([GOAL, null, null])
  })

  test('well enough for the page leaves the choice of another account', async () => {
    const own = await worlds.open()
    const person = own.browser()
    await person.open('/docs/1')
    const answer = await person.open('/strong')
    expect(answer.status).toBe(401)
    expect(hrefOf(answer, 'Sign in')).toEqual(GOAL)
    expect(ways(answer)).toEqual([null, GOAL, `${own.origin}/`])
  })
})

describe('the language of a page', () => {
  type Texts = { readonly [key: string]: string | Texts }
  const flat = (texts: Texts, prefix = ''): readonly (readonly [string, string])[] =>
    Object.entries(texts).flatMap(([key, value]) =>
      typeof value === 'string' ? [[prefix + key, value] as const] : flat(value, `${prefix}${key}.`),
    )
  const places = (text: string): readonly string[] => (text.match(/\{[^}]*\}/g) ?? []).toSorted()
  const english = flat(readerWords(null))

  test.each([
    ['de', 'Sie dürfen diese Seite nicht öffnen', 'Anderes Konto verwenden'],
    ['fr-CH, en;q=0.5', 'Vous ne pouvez pas ouvrir cette page', 'Utiliser un autre compte'],
    ['nl, es;q=0.9', 'No puede abrir esta página', 'Usar otra cuenta'],
  ])('is the one that the browser asks for: %s', async (accepted, title, act) => {
    const answer = await browser.visit('/docs/2', [...NAVIGATE, `Accept-Language: ${accepted}`])
    expect(Buffer.from(answer.body, 'latin1').toString()).toContain(`<h1>${title}</h1>`)
    expect(hrefOf(answer, act)).toContain('/.portcullis/sign-in?goal=')
    expect(field(answer, 'vary')).toBe('accept-language')
  })

  test.each([
    ['a language that we do not speak', 'nl'],
    ['any language', '*'],
    ['a language that is refused', 'de;q=0'],
    ['bytes that are no tag', '\u00e9'],
    ['the name of a member of every object', 'constructor'],
    ['a list without end', `${'x,'.repeat(3_000)}de`],
  ])('is English for %s', async (_, accepted) => {
    const answer = await browser.visit('/docs/2', [...NAVIGATE, `Accept-Language: ${accepted}`])
    expect(answer.body).toContain('<html lang="en">')
  })

  test.each([...LANGUAGES])('has every text in %s, with the same places to fill in', (lang, words) => {
    const texts = flat(words)
    expect(words.lang).toBe(lang)
    expect(texts.map(([key, text]) => [key, places(text)])).toEqual(english.map(([key, text]) => [key, places(text)]))
    const known = new Map(english)
    const same = lang === 'en' ? [] : texts.filter(([key, text]) => text === known.get(key))
    expect(same.filter(([, text]) => text !== 'Page')).toEqual([])
  })
})

describe('the brand of the route file', () => {
  const settings = `, pages: {ask: "Ask <b>Ann</b> in room 3.", support: "mailto:help@acme.example?subject=access", name: Acme, color: "#7a1fa2", logo: "https://cdn.example/logo.svg?v=1", privacy: https://acme.example/privacy}`

  test('is on each page, with whom to ask, and opens the policy for its picture alone', async () => {
    const own = await worlds.open({ settings })
    const person = own.browser()
    const denied = await person.open('/docs/2')
    expect(denied.body).toContain('Ask &lt;b&gt;Ann&lt;/b&gt; in room 3.')
    expect(hrefOf(denied, 'help@acme.example')).toBe('mailto:help@acme.example?subject=access')
    expect(denied.body).not.toContain('the people who run')
    for (const answer of [denied, await person.visit('/.portcullis/sign-out'), await person.visit('/.portcullis/x')]) {
      expect(answer.body).toContain('<p>Acme</p>')
      expect(answer.body).toContain('href="https://acme.example/privacy"')
      const policy = field(answer, 'content-security-policy') ?? ''
      expect(policy.replace(/'sha256-[^']*'/, 'STYLE')).toBe(
        "default-src 'none'; style-src STYLE; img-src https://cdn.example/logo.svg; frame-ancestors 'none'; base-uri 'none'",
      )
    }
  })

  test('also names whom to ask when an issuer says no', async () => {
    const own = await worlds.open({ settings })
    own.issuers[0].behave.error = 'server_error'
    expect((await own.browser().open('/docs/1')).body).toContain('in room 3.')
  })
})

describe('what others have written', () => {
  test.each([
    ['markup', '/nothing/%3Cscript%3Ealert(1)%3C/script%3E', '<script'],
    ['characters that turn the line around', '/nothing/%E2%80%AEtxt.exe', '\u202e'],
    ['a text without end', `/nothing/${'a'.repeat(4_000)}`, 'a'.repeat(200)],
  ])('is shown bounded, escaped and visible: %s', async (_, path, unseen) => {
    const answer = await browser.visit(path)
    expect(answer.status).toBe(404)
    expect(answer.body).not.toContain(unseen)
    expect(answer.body.length).toBeLessThan(8_000)
  })

  test('in an answer of an issuer cannot become markup', async () => {
    const own = await worlds.open()
    own.issuers[0].behave.error = 'x"><script>'
    const answer = await own.browser().open('/docs/1')
    expect(answer.status).toBe(400)
    expect(answer.body).not.toContain('<script')
  })
})
