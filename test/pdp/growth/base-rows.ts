/** Growth of small readers that every transport uses: addresses, media types, blanks, JSON text, HTML and what claims to be sealed. */

import { requestId } from '../../../pdp/server/serve/http/request-id.ts'
import { clientOf, createNetworks, parseAddress } from '../../../pdp/shared/base/addresses.ts'
import { lowerAscii, trimBlanks } from '../../../pdp/shared/base/blanks.ts'
import { clientAddress, nearestStranger } from '../../../pdp/shared/base/client-address.ts'
import { open } from '../../../pdp/shared/base/encryption.ts'
import { html, unescapeHtml } from '../../../pdp/shared/base/html.ts'
import { endOfString, stringAt } from '../../../pdp/shared/base/json-text.ts'
import { mediaTypeOf, namesOtherCharset } from '../../../pdp/shared/base/media-type.ts'
import { filled, refusable } from '../../sidecar/growth/inputs.ts'
import type { Growth } from '../../support/growth/growth.ts'

const HEAD = 16_384
const TRUSTED = createNetworks([{ address: '10.0.0.0', bits: 8 }])
const KEYS = [Buffer.alloc(32, 'a'), Buffer.alloc(32, 'b')]

const READERS: { readonly [runs: string]: (text: string) => unknown } = {
  'pdp/shared/base/addresses.ts:parseAddress': parseAddress,
  'pdp/shared/base/addresses.ts:clientOf': clientOf,
  'pdp/shared/base/addresses.ts:createNetworks': (text) => TRUSTED.has(text),
  'pdp/shared/base/blanks.ts:trimBlanks': trimBlanks,
  'pdp/shared/base/blanks.ts:lowerAscii': lowerAscii,
  'pdp/shared/base/client-address.ts:clientAddress': (text) =>
    clientAddress(['x-forwarded-for', text, 'forwarded', text], { remoteAddress: '10.0.0.1', trusted: TRUSTED }),
  'pdp/shared/base/client-address.ts:nearestStranger': (text) =>
    nearestStranger({ addresses: text.split(','), schemes: [], hosts: [] }, { peer: '10.0.0.1', trusted: TRUSTED }),
  'pdp/shared/base/encryption.ts:open': (text) => open(KEYS, 'a cookie', text),
  'pdp/shared/base/html.ts:html': (text) => String(html`<p>${text}</p>`),
  'pdp/shared/base/html.ts:unescapeHtml': unescapeHtml,
  'pdp/shared/base/json-text.ts:endOfString': (text) => endOfString(`"${text.replaceAll('"', '\\"')}\\\\"`, 0),
  'pdp/shared/base/json-text.ts:stringAt': (text) =>
    stringAt(`"${text.replaceAll(/["\\]/g, '\\"')}"`, 0, text.length + 2),
  'pdp/shared/base/media-type.ts:mediaTypeOf': mediaTypeOf,
  'pdp/shared/base/media-type.ts:namesOtherCharset': namesOtherCharset,
}
const UNITS = [' ', 'a:', '10.0.0.1,', ';charset=', '\\"', '&amp;']

export const BASE_ROWS: readonly Growth[] = [
  ...Object.entries(READERS).flatMap(([name, read]) =>
    UNITS.map((unit) => ({
      name: `${name.replace(/.*:/, '')} of ${JSON.stringify(unit)}`,
      runs: [name],
      most: HEAD,
      at: (size: number) => {
        const text = filled(size, unit, { before: 'text/html', after: '!' })
        return () => refusable(() => read(text))
      },
    })),
  ),
  ...['a', '-', '\x00'].map((unit) => ({
    name: `a request id of ${JSON.stringify(unit)}`,
    runs: ['pdp/server/serve/http/request-id.ts:requestId'],
    most: HEAD,
    at: (size: number) => {
      const headers = { 'x-request-id': filled(size, unit, { after: '!' }) }
      return () => [requestId({ headers }), requestId({ headers, url: '/access/v1/evaluation' })]
    },
  })),
]
