/** The question, and the service that may ask it about anybody, of the tests of `POST /oauth/decisions`. */
import type { Served } from '../harness.ts'

export const QUESTION = {
  permissions: [
    { relation: 'viewer', resource: 'invoice:1' },
    { relation: 'viewer', resource: 'invoice:2' },
  ],
  entitlements: ['feature.invoicing', 'feature.export'],
}

/** The token of a service with the scope `decisions:read`. */
export const readerToken = (served: Served, state: Parameters<Served['token']>[0] = {}): string =>
  served.token({
    subject: { type: 'service', id: 'backend' },
    clientId: 'backend',
    scopes: new Set(['decisions:read']),
    ...state,
  })
