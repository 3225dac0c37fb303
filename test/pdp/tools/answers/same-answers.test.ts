/** Every tool gives the answer that the request got: a permission of an app is explained, with the app that it belongs to. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ServedPdp, servePdp } from '../commands/served-pdp.ts'

let served: ServedPdp
beforeAll(async () => {
  served = await servePdp()
  const { good, folder } = served
  await good('org put acme')
  for (const user of ['ann', 'bob']) {
    await good(`user put ${user} --email ${user}@acme.test`)
    await good(`member put ${user} -o acme`)
  }
  for (const app of ['docs', 'bills']) {
    const file = join(folder, `${app}.yaml`)
    await writeFile(
      file,
      `audiences: [https://${app}.example]\npermissions: {${app}:export: Export, shared:run: Run}\nroles: {exporter: {name: Exporter, permissions: [${app}:export, shared:run]}}\n`,
    )
    await good(`manifest apply ${app} ${file}`)
  }
  await good('role grant exporter user:ann -o acme --app docs')
  await good('role put watcher --permissions logs:watch')
  await good('role grant watcher user:bob -o acme')
  await good('client put of-docs --app docs --scope decisions:read --name Docs')
})
afterAll(() => served.close())

const ask = async (tool: 'check' | 'explain', subject: string, key: string, more = '') => {
  const { status, out, err } = await served.run(`${tool} user:${subject} ${key} organization:acme -o acme${more}`)
  expect(err).toBe('')
  return [status, out] as const
}

test.each([
  ['ann', 'docs:export', '', 0, 'by role exporter of app docs'],
  ['ann', 'shared:run', '', 0, 'by role exporter of app docs'],
  ['ann', 'shared:run', ' --app docs', 0, ''],
  ['ann', 'shared:run', ' --app bills', 1, ''],
  ['ann', 'bills:export', '', 1, 'permission bills:export belongs to app bills'],
  ['bob', 'docs:export', '', 1, 'permission docs:export belongs to app docs'],
  ['bob', 'logs:watch', '', 0, ''],
  ['bob', 'docs:exprt', '', 1, 'no model and no role has this relation or permission'],
] as const)('explain and check agree on %s %s%s', async (subject, key, more, status, said) => {
  const [explained, out] = await ask('explain', subject, key, more)
  const [checked] = await ask('check', subject, key, more)
  expect([explained, checked]).toEqual([status, status])
  expect(out).toContain(said)
})

test('a caller without decisions:read names no app', async () => {
  const token = (await served.good('token --client-id admin --scope directory:read -o acme')).trim()
  const response = await fetch(`${served.url}/oauth/decisions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ permissions: [{ relation: 'docs:export', resource: 'organization:acme' }], app: '*' }),
  })
  expect(response.status).toBe(403)
})
