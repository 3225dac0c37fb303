/** Signed texts of others: proofs of possession and security events. */
import { createHash } from 'node:crypto'
import type { AccessClaims } from '../../../pdp/shared/token/claims.ts'
import { createProofVerifier } from '../../../pdp/shared/token/dpop.ts'
import { TokenError } from '../../../pdp/shared/token/errors.ts'
import { SetError } from '../../../pdp/signals/set/errors.ts'
import { parseSet, parseSetClaims, SET_TYPE } from '../../../pdp/signals/set/set.ts'
import { formatSubject, parseSubject, subjectKey } from '../../../pdp/signals/set/subjects.ts'
import { ecKeys, proof, thumbprint } from '../../support/peers/issuer.ts'
import { must, type Parser, readOrRefused } from '../play.ts'

const NOW = Date.parse('2026-01-01T00:00:00Z')
const clock = (): number => NOW
const URL_OF_REQUEST = 'https://app.test/invoices/1'
const keys = ecKeys()
const jkt = await thumbprint(keys.publicKey)
const token = 'a.b.c'
const GOOD = await Promise.all([1, 2, 3].map(() => proof({ keys, method: 'GET', url: URL_OF_REQUEST, token, clock })))
const digest = createHash('sha256').update(token).digest('base64url')
const CLAIMS_OF_TOKEN = { jkt, digest } as AccessClaims & { readonly jkt: string }
/** Forgets at once, so that a proof may be shown again. */
const replay = { seen: () => false, remember: async () => true }
const verify = createProofVerifier({ clock, replay })

/** Of the compact form, all of whose bits count. */
function judgeJws(text: string): void {
  for (const part of text.split('.'))
    must(Buffer.from(part, 'base64url').toString('base64url') === part, 'a part could be written in another way')
}

const dpop: Parser = {
  name: 'dpop',
  seeds: GOOD,
  words: ['.', '=', '-', '_', 'eyJ', 'none', 'dpop+jwt', 'HS256'],
  async read(text) {
    try {
      await verify({ proofs: [text], method: 'GET', url: URL_OF_REQUEST }, CLAIMS_OF_TOKEN)
    } catch (err) {
      if (err instanceof TokenError) return false
      throw err
    }
    must(GOOD.includes(text), 'what nobody signed is accepted')
    judgeJws(text)
    return true
  },
}
const setOf = (claims: object): string =>
  [{ alg: 'RS256', typ: SET_TYPE, kid: 'k' }, claims, 'signature']
    .map((part) => Buffer.from(typeof part === 'string' ? part : JSON.stringify(part)).toString('base64url'))
    .join('.')
const CLAIMS = { iss: 'https://idp.test', aud: ['https://app.test'], iat: NOW / 1_000, jti: 'j' }
const EVENTS = {
  'https://schemas.openid.net/secevent/caep/event-type/session-revoked': { event_timestamp: NOW / 1_000 },
}

const set: Parser = {
  name: 'set',
  seeds: [
    { format: 'opaque', id: 'x' },
    { format: 'iss_sub', iss: 'https://idp.test', sub: 'ann' },
    { format: 'email', email: 'ann@example.com' },
    { format: 'complex', user: { format: 'opaque', id: 'u' }, session: { format: 'opaque', id: 's' } },
    { format: 'aliases', identifiers: [{ format: 'opaque', id: 'x' }] },
  ]
    .map((sub_id) => setOf({ ...CLAIMS, sub_id, events: EVENTS }))
    .filter(
      (text) =>
        readOrRefused(
          () => parseSetClaims(parseSet(text).payload),
          (error) => error instanceof SetError,
        ) !== undefined,
    ),
  words: ['.', 'eyJ', '=', '-', '_'],
  read(text) {
    const found = readOrRefused(
      () => parseSetClaims(parseSet(text).payload),
      (error) => error instanceof SetError,
    )
    if (found === undefined) return false
    judgeJws(text)
    const { subject, aud } = found
    const again = parseSubject(JSON.parse(JSON.stringify(formatSubject(subject))))
    must(subjectKey(again) === subjectKey(subject), 'its subject is not printed as it was read')
    must(aud.length > 0 && aud.every((one) => one !== ''), 'it is for nobody')
    return true
  },
}

export const TOKENS: readonly Parser[] = [dpop, set]
