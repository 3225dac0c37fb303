/** Mistakes of people at `portcullis` that only a running PDP can notice: the answer names them and says what to do. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ServedPdp, servePdp } from './served-pdp.ts'

let served: ServedPdp
let folder: string
beforeAll(async () => {
  served = await servePdp()
  folder = served.folder
  await good('org put acme')
  await good('user put alice --email alice@example.com --email-verified')
  await good('client put portcullis-cli --public --device --scope openid')
  await writeFile(join(folder, 'routes.yaml'), 'resource: https://app.example.com\nissuers: []\n')
})
afterAll(() => served.close())
const run: ServedPdp['run'] = (line, options) => served.run(line, options)
const good: ServedPdp['good'] = (line) => served.good(line)

test('says of a tuple that is deleted with a typing mistake that it took nothing away', async () => {
  await good('tuple write memo:1#viewer@user:alice memo:2#viewer@user:alice -o acme')
  expect(await run('tuple delete memo:1#viewer@user:alcie -o acme')).toEqual({
    status: 0,
    out: 'deleted: 0\n',
    err: 'this tuple was not stored, so nothing was taken away. What is stored: portcullis tuple export\n',
  })
  expect(await run('tuple delete memo:1#viewer@user:alice memo:2#viewr@user:alice -o acme')).toMatchObject({
    out: 'deleted: 1\n',
    err: expect.stringContaining('1 of these 2 tuples was not stored'),
  })
  expect(await good('tuple delete memo:2#viewer@user:alice -o acme')).toBe('deleted: 1\n')
})

test.each([
  [
    'client put importer --scope relationships:wirte -o acme',
    'may not ask for this scope, "relationships:wirte"; did you mean "relationships:write"?',
  ],
  [
    'org list --client-id nobody --client-secret-file SECRET',
    'client authentication failed. Are its id and its secret right?',
  ],
  ['check user:alice viewer invoice:1', 'name the organization with --organization: the client is not bound to one'],
  ['login --scope openid --resource https://app.exmple.com', 'https://app.exmple.com is not the audience of an app'],
  [
    'setup acme ROUTES --user alice@exmple.com',
    'alice has the address alice@example.com; if that is wrong: portcullis user put alice --email alice@exmple.com',
  ],
])('%s says what is wrong', async (line, message) => {
  const secret = join(folder, 'wrong.secret')
  await writeFile(secret, 'wrong')
  const typed = line.replace('SECRET', secret).replace('ROUTES', join(folder, 'routes.yaml'))
  const { status, err } = await run(typed)
  expect([status, err]).toEqual([2, expect.stringContaining(message)])
})

describe('a name that nothing declares is told with the one that was meant', () => {
  beforeAll(async () => {
    const text = 'model\n  schema 1.1\ntype user\ntype memo\n  relations\n    define viewer: [user]\n'
    await writeFile(join(folder, 'memos.yaml'), JSON.stringify({ model: text }))
    await good(`manifest apply memos ${join(folder, 'memos.yaml')}`)
    await good('role put watcher --permissions logs:watch')
  })
  const RELATION = 'type "memo" has no relation "viewr"; did you mean "viewer"?'
  const TYPE = 'no model declares type "mmo", so that only its own tuples count; did you mean "memo"?'
  test.each([
    ['check user:alice viewr memo:9 -o acme', 1, `note: ${RELATION}\n`],
    ['check user:alice viewer mmo:9 -o acme', 1, `note: ${TYPE}\n`],
    ['check user:alice viewer memo:9 -o acme', 1, ''],
    ['list resources user:alice viewr memo -o acme', 2, `no resources found\n  ${RELATION}\n`],
    ['list resources user:alice viewer mmo -o acme', 2, `no resources found\n  ${TYPE}\n`],
    ['list subjects viewr memo:9 -o acme', 2, `no subjects found\n  ${RELATION}\n`],
    ['list subjects viewer memo:9 -o acme', 0, 'no subjects found\n'],
    ['tuple write mmo:1#viewer@user:alice -o acme', 0, `note: ${TYPE}\n`],
    ['tuple write memo:1#viewr@user:alice -o acme', 2, expect.stringContaining(RELATION)],
    ['role grant watchr user:alice -o acme', 2, expect.stringContaining('did you mean "watcher"?')],
    ['role grant any user:alice -o acme --app portculis', 2, expect.stringContaining('did you mean "portcullis"?')],
  ])('%s', async (line, status, err) => {
    expect(await run(line)).toMatchObject({ status, err })
  })
  test.each([
    'check user:alice viewer memo:9 -o acmee',
    'list subjects viewer memo:9 -o acmee',
    'member list -o acem',
    'tuple export -o acmme',
    'changes -o acmee',
  ])('%s', async (line) => {
    const { status, err } = await run(line)
    expect([status, err]).toEqual([2, expect.stringContaining('did you mean "acme"?')])
  })
})
