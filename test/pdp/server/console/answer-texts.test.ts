/** The copies of a question ask the same question, or say what they cannot. */
import { expect, test } from 'vitest'
import { copies, type FormQuestion } from '../../../../pdp/server/console/answer-texts.ts'

const ASKED = {
  organization: 'acme',
  subject: 'group:staff#member',
  relation: 'viewer',
  resource: 'doc:1',
  app: null,
  actors: [],
  scopes: [],
} as const
const NOTHING = { with: '', without: '', asOf: '', context: '' }
const ALL = {
  with: 'doc:1#viewer@user:a\r\n\r\n  doc:1#parent@folder:x  ',
  without: 'doc:1#editor@user:b',
  asOf: '2030-01-31T12:00',
  context: '{"ip": "203.0.113.7"}',
}
const made = (asked: Partial<FormQuestion>, supposed: Partial<typeof NOTHING>): readonly string[] =>
  copies('https://pdp.example', {
    asked: { ...ASKED, ...asked },
    supposed: { ...NOTHING, ...supposed },
    allowed: true,
  }).map(({ text }) => text)

test('a plain question has no supposition in any copy', () => {
  const [command, curl, file, code] = made({}, {})
  expect(command).toBe('portcullis explain group:staff#member viewer doc:1 -o acme')
  expect(curl).not.toMatch(/context|tuples|as_of|"app"/)
  expect(file).not.toMatch(/context|tuples|#[^m]/)
  expect(code).not.toMatch(/context|Tuples|asOf|"app"/)
})

test('every copy has the whole supposition', () => {
  const [command, curl, file, code] = made({}, ALL)
  expect(command).toContain('--with doc:1#viewer@user:a --with doc:1#parent@folder:x --without doc:1#editor@user:b')
  expect(command).toContain(`--as-of 2030-01-31T12:00:00.000Z --context '{"ip":"203.0.113.7"}'`)
  const body: unknown = JSON.parse(/-d '(.*)'$/.exec(curl ?? '')?.[1] ?? '')
  expect(body).toMatchObject({
    subject: { type: 'group', id: 'staff', relation: 'member' },
    contextual_tuples: ['doc:1#viewer@user:a', 'doc:1#parent@folder:x'],
    without_tuples: ['doc:1#editor@user:b'],
    as_of: '2030-01-31T12:00:00.000Z',
    context: { ip: '203.0.113.7' },
  })
  expect(file).toContain('tuples:\n      - {user: "user:a", relation: "viewer", object: "doc:1"}')
  expect(file).toContain('context: {"ip":"203.0.113.7"}')
  expect(JSON.parse(/decide\(([\s\S]*)\)$/.exec(code ?? '')?.[1] ?? '')).toMatchObject({
    contextualTuples: [{ object: 'doc:1' }, { object: 'doc:1', relation: 'parent', subject: 'folder:x' }],
    withoutTuples: [{ object: 'doc:1', relation: 'editor', subject: 'user:b' }],
    asOfMs: Date.UTC(2030, 0, 31, 12),
    context: { ip: '203.0.113.7' },
  })
})

test('a test of a store file names what it cannot say', () => {
  const [, , file] = made({ app: 'docs' }, ALL)
  expect(file).toMatch(/^# .*leave "doc:1#editor@user:b" out/)
  expect(file).toContain('those of 2030-01-31T12:00:00.000Z')
  expect(file).toContain('no roles of app "docs"')
})

test('the app and those who act are in each copy', () => {
  const [command, curl, file, code] = made({ app: 'docs', actors: ['bot'], scopes: ['a', 'b'] }, {})
  expect(command).toContain("--app docs --actor bot --scope 'a b'")
  expect(curl).toContain('"app":"docs","actors":["bot"],"scopes":["a","b"]')
  for (const lost of ['no roles of app "docs".', '"bot" may do no more than that.']) expect(file).toContain(lost)
  expect(code).toContain('"app": "docs"')
  expect(code).toMatch(/"actors": \[\s*{\s*"type": "service",\s*"id": "bot"/)
})

test('every app counts for a key on the organization, and none where none did', () => {
  const [, all] = made({ resource: 'organization:acme', relation: 'docs:export' }, {})
  expect(all).toContain('"app":"*"')
  const [command, none] = made({ resource: 'organization:acme', relation: 'docs:export', app: '#none' }, {})
  expect([command, none?.includes('"app"')]).toEqual([expect.stringContaining('--no-app'), false])
})

test('a name that an app may not have stays one word', () => {
  const [command] = made({ app: 'x\nrm -rf /' }, {})
  expect(command).toContain("--app 'x\nrm -rf /'")
})
