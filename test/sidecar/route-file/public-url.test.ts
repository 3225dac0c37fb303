/** DPoP proofs are compared with the public URL, so it is kept as clients write it, or refused. */
import { describe, expect, test } from 'vitest'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'

/** Null: the file has no `public_url`. */
const read = (resource: string, publicUrl: string | null) =>
  parseRouteFile(`portcullis: v1
resource: ${JSON.stringify(resource)}
${publicUrl === null ? '' : `public_url: ${JSON.stringify(publicUrl)}`}
issuers: [{issuer: https://as.test}]
upstream: http://127.0.0.1:1
pdp: {address: 127.0.0.1:1, insecure: true}
routes: {GET /a: public}
`)
const APP = 'https://app.test'

test.each([
  ['HTTPS://APP.test:443/', APP],
  ['https://app.test:08443/a/../b/', 'https://app.test:8443/b'],
  ['https://münchen.test', 'https://xn--mnchen-3ya.test'],
  ['http://127.1/x', 'http://127.0.0.1/x'],
  ['https://[0:0::1]:8443', 'https://[::1]:8443'],
])('%s is kept as %s, from public_url and from resource', (written, kept) => {
  expect(read(APP, written).file?.publicUrl).toBe(kept)
  expect(read(written, null).file).toMatchObject({ publicUrl: kept, resource: written })
})

describe.each([
  'https:app.test',
  'https:/app.test',
  'https:\\\\app.test',
  'https:///app.test',
  ' https://app.test',
  'https://app.test ',
  'https://ann:pw@app.test',
  'https://app.test?',
  'https://app.test?x=1',
])('%j', (written) => {
  test('is refused as public_url', () => {
    expect(read(APP, written).issues.map(({ message }) => message)).toEqual([
      'public_url must be an http or https URL with an optional path, and without query and fragment',
    ])
  })
  test('says nothing of the public URL as resource', () => {
    const messages = read(written, null).issues.map(({ message }) => message)
    expect(messages).toContainEqual(expect.stringMatching(/^(?:public_url is required|resource must be)/))
  })
})
