/** Plays the rules of each kind over real sockets. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { NO_CERTIFICATES } from '../../../sidecar/config/certificates.ts'
import { field as headerOf } from '../../support/peers/raw-http.ts'
import { type Script, tuples } from '../../support/peers/scripted-pdp.ts'
import { type Harness, loadFile, routeFile, startHarness } from '../support/harness.ts'
import { fieldOf } from '../support/upstream.ts'
import { GATEWAYS } from './other-gateways.ts'
import { ALLOWED, KINDS } from './rule-kinds.ts'

/** A PDP knows the subjects of other issuers by ids of its own. */
const script: Script = (asked) => {
  const answer = tuples(ALLOWED)(asked)
  const { known_as: id } = JSON.parse(Buffer.from(asked.token.split('.')[1] || 'e30', 'base64url').toString())
  if (id === undefined || answer === null || typeof answer === 'string' || answer.subject === undefined) return answer
  return { ...answer, subject: { ...answer.subject, id }, organization: 'acme' }
}

const certificates = { ...NO_CERTIFICATES, assertion: [Buffer.alloc(32, 'k')] as const }
let h: Harness
beforeAll(async () => {
  h = await startHarness({ routes: 'GET /x: public', script, certificates })
})
afterAll(() => h.close())

describe.each(Object.entries({ ...KINDS, ...GATEWAYS }))(
  '%s',
  (_, { routes, extra = '', change = (text) => text, plays }) => {
    test.each(plays.map((one) => [one.line, one.status, one] as const))('%s: %i', async (line, status, one) => {
      const text = change(routeFile(routes, { extra }))
      const file = loadFile(text.replaceAll('UPSTREAM', h.upstream.origin).replace('PDP', h.pdp.address))
      h.sidecar.apply({ file, certificates, hash: text })
      h.upstream.reached.length = 0
      h.log.length = 0
      const { as = {}, put = [], body, host = 'app.test', gets = {}, answers = {} } = one
      const given = await h.issuer.token({ ...as })
      const token = as === null || put.length > 0 ? null : given
      const fields = [...(one.fields ?? []), ...put.map((text) => text.replaceAll('TOKEN', given))]
      const json = body === undefined ? [] : ['Content-Type: application/json']
      const sent = body === undefined ? {} : { body: JSON.stringify(body) }
      const answer = await h.send(line, { token, fields: [...fields, ...json], host, ...sent })
      expect(answer.status, answer.body).toBe(status)
      const isOwn = line.includes('/healthz')
      expect(h.upstream.reached.length).toBe((one.reaches ?? (status === 200 && !isOwn)) ? 1 : 0)
      for (const [name, value] of Object.entries(gets)) expect(fieldOf(h.upstream.reached[0], name)).toBe(value)
      const { logs = {}, hides = '?' } = one
      expect(h.log.findLast((entry) => 'decision' in entry) ?? {}).toMatchObject(logs)
      expect(JSON.stringify(h.log)).not.toContain(hides)
      for (const [name, value] of Object.entries(answers)) expect(headerOf(answer, name)).toBe(value)
    })
  },
)
