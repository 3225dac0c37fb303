import { describe, expect, test } from 'vitest'
import { consentPage } from '../../../../pdp/identity/html/consent-page.ts'
import { errorPage, type Trouble, troubleOf } from '../../../../pdp/identity/html/error-page.ts'
import { type Frame, nameOf } from '../../../../pdp/identity/html/frame.ts'
import { type Page, page } from '../../../../pdp/identity/html/page.ts'
import { ENGLISH, LANGUAGES, type Words } from '../../../../pdp/identity/html/words/words.ts'
import { approvalPage } from '../../../../pdp/identity/people/sign-in/approval-pages.ts'
import { codePage, loginPage, secondFactorNeededPage } from '../../../../pdp/identity/people/sign-in/sign-in-pages.ts'
import {
  deviceCodePage,
  deviceConfirmPage,
  deviceDonePage,
  formPostPage,
  handOverPage,
  logoutPage,
  signedOutPage,
} from '../../../../pdp/identity/provider/device-pages.ts'
import { html } from '../../../../pdp/shared/base/html.ts'
import { createBrand } from '../../../../pdp/shared/pages/brand.ts'

const frameOf = (words: Words, requestId = ''): Frame => ({
  words,
  issuer: 'https://id.example',
  mount: '',
  requestId,
  brand: createBrand(),
  application: null,
  passkeys: false,
})
const organization = (value: string) => ({ id: value, name: value, parent: null })
const request = (value: string) => ({ name: value, clientName: value, bindingMessage: value, scopes: [value] })
const purpose = (name: string) => ({ kind: 'application', name }) as const

/** Every page that shows a value from outside, with that value in each place. */
const PAGES: { readonly [name: string]: (value: string, words: Words) => Page } = {
  title: (v, w) => page(frameOf(w), v, html`${v}`),
  error: (v, w) => errorPage(frameOf(w, v), { trouble: 'application', code: v, detail: v }),
  'consent to one organization': (v, w) =>
    consentPage(frameOf(w), {
      ...{ clientName: v, person: v, scopes: [v] },
      choice: { kind: 'bound', organization: organization(v) },
    }),
  'consent to one of several organizations': (v, w) =>
    consentPage(frameOf(w), {
      ...{ clientName: v, person: v, scopes: [v] },
      choice: { kind: 'choose', from: [organization(v)] },
    }),
  'sign-in': (v, w) => loginPage(frameOf(w), { purpose: purpose(v), email: v, problem: 'wrong' }),
  code: (v, w) =>
    codePage(frameOf(w), { purpose: purpose(v), hidden: { [v]: v }, problem: 'wrongCode', passkey: false }),
  'second factor needed': (v, w) => secondFactorNeededPage(frameOf(w), { application: v, from: 'a' }),
  approval: (v, w) =>
    approvalPage(frameOf(w), {
      ...{ person: v, xsrf: v, done: 'approved' },
      requests: [
        { ...request(v), choice: { kind: 'choose', from: [organization(v)] } },
        { ...request(v), choice: null },
      ],
    }),
  'device code': (v, w) => deviceCodePage(frameOf(w), { action: v, xsrf: v, problem: 'wrong' }),
  'device confirmation': (v, w) =>
    deviceConfirmPage(frameOf(w), { action: v, xsrf: v, userCode: v, clientName: v, scopes: [v], organization: v }),
  'form post': (v, w) => formPostPage(frameOf(w), { action: v, fields: [[v, v]] }),
  'sign-out': (v, w) => logoutPage(frameOf(w), { action: v, xsrf: v }),
  'hand-over': (v, w) => handOverPage(frameOf(w), { action: v, xsrf: v, isHandOver: true }),
}
/** Those that show nothing from outside. */
const PLAIN: { readonly [name: string]: (value: string, words: Words) => Page } = {
  'a connected device': (_, w) => deviceDonePage(frameOf(w)),
  'a finished sign-out': (_, w) => signedOutPage(frameOf(w)),
  'no request': (v, w) => approvalPage(frameOf(w), { person: v, xsrf: v, done: null, requests: [] }),
}

/** Text and markup apart: a value that escapes its place changes the tags of the page. */
const tagsOf = ({ html: text }: Page, value: string) => text.replaceAll(value, '').match(/<[^>]*>/g)
const ESCAPED: { readonly [value: string]: string } = {
  '<script>alert(1)</script>': '&lt;script&gt;alert(1)&lt;/script&gt;',
  '"><img src=x onerror=alert(1)>': '&quot;&gt;&lt;img src=x onerror=alert(1)&gt;',
  "' onfocus='alert(1)": '&#39; onfocus=&#39;alert(1)',
  '</style></main>': '&lt;/style&gt;&lt;/main&gt;',
  '&lt;b&gt;': '&amp;lt;b&amp;gt;',
  '{$1}$&$`': '{$1}$&amp;$`',
}

describe.each(Object.entries(PAGES))('the page for %s', (_name, make) => {
  test.each(Object.entries(ESCAPED))('shows %j as text, wherever it stands', (value, escaped) => {
    const hostile = make(value, ENGLISH)
    const harmless = make('harmless', ENGLISH)
    expect(hostile.html).not.toContain(value)
    expect(hostile.html.split(escaped).length).toBe(harmless.html.split('harmless').length)
    expect(tagsOf(hostile, escaped)).toEqual(tagsOf(harmless, 'harmless'))
  })
})

describe.each([...LANGUAGES])('in the language %s', (lang, words) => {
  test.each(Object.entries({ ...PAGES, ...PLAIN }))('the page for %s has all its words, and says so', (_name, make) => {
    const { html: text, headers } = make('harmless', words)
    expect(text).toContain(`<html lang="${lang}">`)
    expect(text).not.toMatch(/[{]\w+[}]|undefined|\[object/)
    expect(headers).toMatchObject({ 'cache-control': 'no-store', vary: 'Accept-Language' })
  })
})

test('a page that asks for a password may run the scripts of ours that it names, and no other page any', () => {
  const view = { purpose: purpose('a'), email: '', problem: null }
  const policy = (one: Page): string => /script-src [^;]*/.exec(one.headers['content-security-policy'] ?? '')?.[0] ?? ''
  expect(policy(loginPage(frameOf(ENGLISH), view))).toBe('script-src https://id.example/account/page.js')
  expect(policy(loginPage(frameOf(ENGLISH), { ...view, passkeys: {} }))).toBe(
    'script-src https://id.example/account/page.js https://id.example/account/passkey.js',
  )
  expect(policy(errorPage(frameOf(ENGLISH), { trouble: 'failed', code: 'server_error' }))).toBe('')
})

test('an application without anything to see in its name is called by its id', () => {
  const named = (clientName: string): string => nameOf({ clientName, clientId: 'ledger', portcullis_document: false })
  expect(['\u200b\u2060', '\u3164\u00a0'].map(named)).toEqual(['ledger', 'ledger'])
  expect(['Ledger', '帳簿', '👩‍👧', '$'].map(named)).toEqual(['Ledger', '帳簿', '👩‍👧', '$'])
})

test('a name that is written from right to left turns nothing beside it around', () => {
  const choice = { kind: 'choose', from: [{ id: 'acme', name: 'א\u202e', parent: null }] } as const
  const { html: text } = consentPage(frameOf(ENGLISH), { clientName: 'a', person: 'p', scopes: [], choice })
  expect(text).toContain('<bdi>א\u202e</bdi> <small>(acme)</small>')
})

describe('an error page', () => {
  const TROUBLES = (Object.keys(ENGLISH.errors) as (keyof Words['errors'])[]).filter(
    (name): name is Trouble => typeof ENGLISH.errors[name] === 'object',
  )

  test.each(TROUBLES)('for the trouble %s says what happened, what to do, and what to name', (trouble) => {
    const { html: text } = errorPage(frameOf(ENGLISH, 'request-1'), {
      trouble,
      code: 'some_code',
      detail: 'for developers',
    })
    expect(text).toContain(`<h1>${ENGLISH.errors[trouble].title}</h1><p>${ENGLISH.errors[trouble].text}</p>`)
    expect(text).toContain('<code>some_code</code>')
    expect(text).toContain('<code>request-1</code>')
    expect(text).toContain('<dd lang="en">for developers</dd>')
  })

  test('leaves out what is not known', () => {
    const { html: text } = errorPage(frameOf(ENGLISH), { trouble: 'failed', code: 'server_error', detail: '' })
    expect(text.match(/<dt>/g)).toHaveLength(1)
  })

  test.each([
    ['access_denied', 'refused'],
    ['server_error', 'failed'],
    ['temporarily_unavailable', 'unavailable'],
    ['invalid_client', 'application'],
    ['a code of the future', 'application'],
  ])('for the code %s is about %s', (code, trouble) => {
    expect(troubleOf(code)).toBe(trouble)
  })
})

describe('the html template', () => {
  test('leaves HTML of its own as it is, and a list of it', () => {
    expect(html`<ul>${['<', '"'].map((text) => html`<li>${text}</li>`)}</ul>`.toString()).toBe(
      '<ul><li>&lt;</li><li>&quot;</li></ul>',
    )
  })
})
