/** A reload while a door waits for the PDP: the new rules judge the request, and say what the service gets. */
import { expect, test } from 'vitest'
import { readCertificates } from '../../../sidecar/config/certificates.ts'
import { DOOR_PROFILES, type DoorProfile, isHttpProfile } from '../../../sidecar/http/door-fields.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { type DoorAnswer, type DoorHarness, openAndClose, WITHOUT_BODIES } from './door-harness.ts'

const start = openAndClose()
const STRIPPING = 'strip_headers: [x-team]'

/** The answer to a request with `X-Team`, asked while `act` happens at each question to the PDP. */
async function askWhile(profile: DoorProfile, act: (doors: DoorHarness) => void): Promise<DoorAnswer> {
  const allow = tuples(['alice viewer doc:1'])
  const doors = await start({ routes: WITHOUT_BODIES, profiles: [profile] })
  doors.inner.pdp.script = (asked) => {
    act(doors)
    return allow(asked)
  }
  const token = await doors.inner.issuer.token()
  return doors.ask(profile, {
    target: '/docs/1',
    fields: [
      ['authorization', `Bearer ${token}`],
      ['x-team', 'red'],
    ],
  })
}

test.each(DOOR_PROFILES)('the door %s lets no field pass that is stripped since the question came', async (profile) => {
  const answer = await askWhile(profile, ({ inner, apply }) => {
    inner.pdp.script = tuples(['alice viewer doc:1'])
    apply(WITHOUT_BODIES, STRIPPING)
  })
  if (!isHttpProfile(profile))
    expect([answer.status, answer.removed]).toEqual([200, expect.arrayContaining(['x-team'])])
  // What the gateway's configuration cannot remove is refused.
  else expect([answer.status, answer.code]).toEqual(profile === 'caddy' ? [400, 'request_invalid'] : [200, null])
})

test.each(DOOR_PROFILES)('the door %s allows nothing by rules that reloads replace without end', async (profile) => {
  const answer = await askWhile(profile, ({ apply }) => apply(WITHOUT_BODIES))
  expect([answer.status, answer.code]).toEqual([503, 'overloaded'])
})

test.each(DOOR_PROFILES)(
  'the door %s gets its answer from the PDP that a reload replaces meanwhile',
  async (profile) => {
    const answer = await askWhile(profile, ({ inner }) => {
      inner.pdp.script = tuples(['alice viewer doc:1'])
      const file = inner.file()
      const pdp = { ...file.pdp, tokenFile: '/another' }
      inner.sidecar.apply({ file: { ...file, pdp }, certificates: readCertificates(file), hash: 'next' })
    })
    expect([answer.status, answer.code]).toEqual([200, null])
  },
)
