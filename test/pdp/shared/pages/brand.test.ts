import { describe, expect, test } from 'vitest'
import { applicationOf, createFrames, type Frame } from '../../../../pdp/identity/html/frame.ts'
import { page } from '../../../../pdp/identity/html/page.ts'
import { createPublicPages } from '../../../../pdp/identity/html/public-pages.ts'
import { loginPage } from '../../../../pdp/identity/people/sign-in/sign-in-pages.ts'
import { html } from '../../../../pdp/shared/base/html.ts'
import { contrast, createBrand, parseBranding } from '../../../../pdp/shared/pages/brand.ts'

const FULL = {
  ...{ name: 'Example', logo: 'https://cdn.example/logo.svg', color: '#7a1fa2' },
  ...{ terms: 'https://x.example/terms', privacy: 'https://x.example/privacy', support: 'mailto:help@x.example' },
}
type Client = Parameters<typeof applicationOf>[0]
const clientOf = (members: { readonly [name: string]: unknown }): Client =>
  ({ clientId: 'app', portcullis_organization: null, ...members }) as unknown as Client
const policyOf = (frame: Frame): string => page(frame, 'x', html``).headers['content-security-policy'] ?? ''

describe('the setting', () => {
  test('takes all members, and none', () => {
    expect(parseBranding(JSON.stringify(FULL))).toEqual(FULL)
    expect(parseBranding('{}')).toEqual({})
    expect(parseBranding('{"logo":"http://127.0.0.1:3000/logo.png"}').logo).toContain('127.0.0.1')
  })

  test.each([
    ['{', 'is not JSON'],
    ['[]', 'is not a JSON object'],
    ['null', 'is not a JSON object'],
    ['{"colour":"#000000"}', 'has no member "colour"'],
    ['{"name":1}', 'has a name that is not a text'],
    ['{"name":" "}', 'needs a name'],
    [`{"name":"${'x'.repeat(81)}"}`, 'needs a name'],
    ['{"color":"red"}', 'needs a color'],
    ['{"color":"#fff"}', 'needs a color'],
    ['{"color":"#000000;}body{display:none"}', 'needs a color'],
    ['{"logo":"http://cdn.example/x.png"}', 'needs a logo'],
    ['{"logo":"data:image/png;base64,AA"}', 'needs a logo'],
    ['{"logo":"/logo.png"}', 'needs a logo'],
    ['{"terms":"javascript:alert(1)"}', 'needs a terms'],
    ['{"terms":"mailto:a@x.example"}', 'needs a terms'],
    ['{"privacy":"https://user:secret@x.example/"}', 'needs a privacy'],
    ['{"support":"tel:123"}', 'needs a support'],
    ['{"support":"mailto:"}', 'needs a support'],
    ['{"support":"mailto:the service desk"}', 'needs a support'],
    [`{"support":"https://x.example/${'x'.repeat(2_100)}"}`, 'needs a support'],
  ])('refuses %s', (text, message) => {
    expect(() => parseBranding(text)).toThrow(message)
  })
})

describe('a colour', () => {
  const actOf = (color: string): readonly string[] =>
    [
      ...createBrand({ color })
        .style.toString()
        .matchAll(/--act:(#[0-9a-f]{6})/gi),
    ].map(([, found = '']) => found)

  test.each(['#ffffff', '#000000', '#ffff00', '#7a1fa2', '#0b57d0', '#808080', '#00ff00', '#ff0000'])(
    '%s can be read in both schemes',
    (color) => {
      const [light = '', dark = ''] = actOf(color)
      expect(contrast(light, '#ffffff')).toBeGreaterThanOrEqual(4.5)
      expect(contrast(dark, '#171b21')).toBeGreaterThanOrEqual(4.5)
    },
  )

  test('stays as it is where it can be read', () => {
    expect(actOf('#7a1fa2')[0]).toBe('#7a1fa2')
    expect(actOf('#ffff00')[1]).toBe('#ffff00')
  })
})

describe('a page', () => {
  const request = { url: '/', headers: {} }

  test('of a brand has its name, picture and links, and may load that picture only', () => {
    const frame = createFrames('https://id.example', FULL)(request)
    const { html: text } = page(frame, 'Title', html`<p>Body</p>`)
    expect(text).toContain('<title>Title · Example</title>')
    expect(text).toContain('<img src="https://cdn.example/logo.svg" alt="" referrerpolicy="no-referrer"><p>Example</p>')
    for (const href of [FULL.terms, FULL.privacy, FULL.support]) expect(text).toContain(`href="${href}"`)
    expect(policyOf(frame)).toMatch(
      /^default-src 'none'; style-src 'sha256-[^']+'; img-src https:\/\/cdn\.example\/logo\.svg; frame-ancestors 'none'; base-uri 'none'$/,
    )
  })

  test('keeps what turns the characters of a name around within the name', () => {
    expect(createBrand({}).style.toString()).toContain('strong{unicode-bidi:isolate}')
  })

  test('without a brand loads nothing', () => {
    const frame = createFrames('https://id.example')(request)
    expect(policyOf(frame)).not.toMatch(/img-src|script-src|http/)
    expect(page(frame, 'x', html``).html).not.toMatch(/<header|<footer|<img/)
  })

  test('of an application has its picture and links', () => {
    const client = clientOf({
      ...{ clientName: 'Ledger', logoUri: 'https://cdn.example/a;b,c.svg?x=1' },
      ...{ tosUri: 'https://l.example/t', policyUri: 'https://l.example/p' },
    })
    const frame = createFrames('https://id.example')(request, { client })
    expect(page(frame, 'x', html``).html).toContain('<bdi>Ledger</bdi>: <a href="https://l.example/t">Terms</a>')
    expect(policyOf(frame)).toContain(' img-src https://cdn.example/a%3Bb%2Cc.svg;')
  })

  test.each([
    ['a script', { logoUri: 'javascript:alert(1)', tosUri: 'javascript:alert(1)' }],
    ['plain http', { logoUri: 'http://cdn.example/a.svg', policyUri: 'http://l.example/p' }],
    ['data', { logoUri: 'data:image/svg+xml,<svg/>' }],
    ['no text', { logoUri: 7, tosUri: {}, policyUri: [] }],
    ['a password', { logoUri: 'https://a:b@cdn.example/a.svg' }],
  ])('takes no address that is %s from an application', (_, members) => {
    expect(applicationOf(clientOf(members))).toEqual({ name: 'app' })
  })

  test('shows no picture of a tenant’s application', () => {
    const members = { logoUri: 'https://cdn.example/a.svg', portcullis_organization: 'acme' }
    expect(applicationOf(clientOf(members))).toEqual({ name: 'app' })
  })
})

describe('a browser', () => {
  const pages = createPublicPages({
    issuer: 'https://id.example/auth',
    frameOf: createFrames('https://id.example', FULL),
  })
  const at = (url: string) => pages({ url, headers: { 'accept-language': 'de', 'x-request-id': 'request-1' } })

  test.each(['/', '/?x=1', '/auth', '/auth/'])('finds a page at the root %s of the issuer', (url) => {
    const { status, page: found } = at(url)
    expect(status).toBe(200)
    expect(found.html).toContain('href="https://id.example/auth/oauth/device"')
    expect(found.html).toContain('<html lang="de">')
  })

  test.each(['/nothing', '/auth/nothing', '//', '/oauth/"><script>'])('is told that there is nothing at %s', (url) => {
    const { status, page: found } = at(url)
    expect(status).toBe(404)
    expect(found.html).toContain('Hier ist nichts')
    expect(found.html).toContain('request-1')
    expect(found.html).not.toContain('script>')
  })
})

test('a link to another page keeps the path of the issuer', () => {
  const frame = createFrames('https://id.example/auth')({ headers: {}, url: '/' })
  const { html } = loginPage(frame, { purpose: { kind: 'account' }, email: '', problem: null })
  expect(html).toContain('href="/auth/account/forgotten?')
})
