import { describe, expect, test } from 'vitest'
import { consentPage, errorPage, type Page, page } from '../../../../pdp/identity/html/page.ts'
import {
  deviceCodePage,
  deviceConfirmPage,
  handOverPage,
  logoutPage,
} from '../../../../pdp/identity/provider/device-pages.ts'
import { approvalPage } from '../../../../pdp/identity/sign-in/approval-pages.ts'
import { codePage, loginPage } from '../../../../pdp/identity/sign-in/sign-in-pages.ts'
import { html } from '../../../../pdp/process/pages/html.ts'

const organization = (value: string) => ({ id: value, name: value, parent: null })
const request = (value: string) => ({ name: value, clientName: value, bindingMessage: value, scopes: [value] })
const purpose = (value: string) => ({ reason: value, application: value, cancel: true })

/** Every page that shows a value from outside, with that value in each place. */
const PAGES: { readonly [name: string]: (value: string) => Page } = {
  title: (v) => page(v, html`${v}`),
  error: (v) => errorPage({ code: v, detail: v }),
  'consent to one organization': (v) =>
    consentPage({ clientName: v, person: v, scopes: [v], choice: { kind: 'bound', organization: organization(v) } }),
  'consent to one of several organizations': (v) =>
    consentPage({ clientName: v, person: v, scopes: [v], choice: { kind: 'choose', from: [organization(v)] } }),
  'sign-in': (v) => loginPage({ purpose: purpose(v), email: v, problem: 'wrong' }),
  code: (v) => codePage({ purpose: purpose(v), hidden: { [v]: v }, problem: 'wrongCode' }),
  approval: (v) =>
    approvalPage({
      ...{ person: v, xsrf: v, done: 'approved' },
      requests: [
        { ...request(v), choice: { kind: 'choose', from: [organization(v)] } },
        { ...request(v), choice: null },
      ],
    }),
  'device code': (v) => deviceCodePage({ action: v, xsrf: v, problem: 'wrong' }),
  'device confirmation': (v) => deviceConfirmPage({ action: v, xsrf: v, userCode: v, clientName: v }),
  'sign-out': (v) => logoutPage({ action: v, xsrf: v }),
  'hand-over': (v) => handOverPage({ action: v, xsrf: v, isHandOver: true }),
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
    const hostile = make(value)
    const harmless = make('harmless')
    expect(hostile.html).not.toContain(value)
    expect(hostile.html.split(escaped).length).toBe(harmless.html.split('harmless').length)
    expect(tagsOf(hostile, escaped)).toEqual(tagsOf(harmless, 'harmless'))
  })
})

describe('the html template', () => {
  test('leaves HTML of its own as it is, and a list of it', () => {
    expect(html`<ul>${['<', '"'].map((text) => html`<li>${text}</li>`)}</ul>`.toString()).toBe(
      '<ul><li>&lt;</li><li>&quot;</li></ul>',
    )
  })
})
