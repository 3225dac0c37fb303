/** What models and documents may cost: bounds that are seen at a glance, and a thread of its own for the rest. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { boundIssues, isLight, MODEL_BOUNDS } from '../../../../pdp/engine/decide/language/model-bounds.ts'
import { compileModel } from '../../../../pdp/engine/decide/language/model-language.ts'
import { knownModel, ModelPending } from '../../../../pdp/engine/decide/models/known-models.ts'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import { memoryStore } from '../../../../pdp/engine/store/memory/memory.ts'
import { compileIn, createAside, parseAside, withModels } from '../../../../pdp/engine/worker/worker.ts'
import { parseYaml } from '../../../../pdp/engine/worker/yaml.ts'
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import { context, given, put } from '../../../support/tuples.ts'

const HEAD = 'model\n  schema 1.1\ntype user\n'
const TYPE = `${HEAD}type d\n  relations\n    define r0: [user]\n`
const times = (count: number, line: (i: number) => string): string =>
  Array.from({ length: count }, (_, i) => line(i)).join('')
const operands = (count: number) => `${TYPE}    define a: ${Array.from({ length: count }, () => 'r0').join(' or ')}\n`
const parentheses = (count: number) => `${TYPE}    define a: ${'('.repeat(count)}r0${')'.repeat(count)}\n`
const references = (count: number) =>
  `${TYPE}    define a: [${Array.from({ length: count }, () => 'user').join(', ')}]\n`
const chain = (count: number) => TYPE + times(count, (i) => `    define r${i + 1}: [user] but not r${i}\n`)
const jsonOf = (count: number) => {
  const rules = Object.fromEntries(Array.from({ length: count }, (_, i) => [`r${i}`, { union: { child: [] } }]))
  return JSON.stringify({ schema_version: '1.1', type_definitions: [{ type: 'd', relations: { r: RULE, ...rules } }] })
}
const RULE = { union: { child: [] } }
const { types, relations, nesting, emptyLines } = MODEL_BOUNDS

describe('a model', () => {
  test.each([
    ['types', HEAD + times(types - 1, (i) => `type t${i}\n`), HEAD + times(types, (i) => `type t${i}\n`)],
    ['relations', chain(relations - 1), chain(relations)],
    ['operands', operands(MODEL_BOUNDS.operands + 1), operands(MODEL_BOUNDS.operands + 2)],
    ['references', references(MODEL_BOUNDS.references), references(MODEL_BOUNDS.references + 1)],
    ['nesting', parentheses(nesting), parentheses(nesting + 1)],
    ['emptyLines', HEAD + '\n'.repeat(emptyLines - 1), HEAD + '\n'.repeat(emptyLines)],
    [
      'comments',
      `${HEAD}${'# x\n'.repeat(emptyLines - 1)}type d\n`,
      `${HEAD}${'  # x\n'.repeat(emptyLines + 1)}type d\n`,
    ],
    [
      'operands over lines',
      operands(10),
      `${TYPE}    define a: r0\n${'     or r0\n'.repeat(MODEL_BOUNDS.operands + 1)}`,
    ],
    ['relations in JSON', jsonOf(relations - 1), jsonOf(relations)],
  ])('may have so many %s and no more, which is told with its line', (_, within, beyond) => {
    expect(boundIssues(within)).toEqual([])
    const [issue, ...others] = boundIssues(beyond)
    expect(others).toEqual([])
    expect(issue?.place).toMatch(/^[1-9]\d*:1$/)
    expect(issue?.message).toMatch(/^the model has more than \d+ /)
  })

  // Each of them held a process up for seconds or minutes, or overflowed its stack.
  test.each([
    ['a union of 20,000', operands(20_000)],
    ['3,000 nested parentheses', parentheses(3_000)],
    ['20,000 empty lines', HEAD + '\n'.repeat(20_000)],
    ['a list of 20,000 types', references(20_000)],
    ['100,000 types', HEAD + times(100_000, (i) => `type t${i}\n`)],
  ])('of %s is refused before anything parses it', async (_, text) => {
    expect(boundIssues(text).length).toBeGreaterThan(0)
    const manifest = { app: 'a', audiences: [], permissions: {}, roles: {}, model: text }
    const write = memoryStore().write(ENVIRONMENT, [{ kind: 'manifest', manifest }], { context })
    await expect(write).rejects.toMatchObject({ code: 'request_invalid' })
  })

  test.each([
    ['400 relations, each but not the one before', chain(400)],
    ['many types', HEAD + times(200, (i) => `type t${i}\n`)],
    ['16 nested parentheses', parentheses(16)],
    ['much text', `${TYPE}    define ${'a'.repeat(7_000)}: [user]\n`],
  ])('of %s is not compiled by the thread that answers', (_, text) => {
    expect(isLight(text)).toBe(false)
    expect(() => knownModel(text)).toThrow(ModelPending)
  })

  test('that is compiled aside is the same as one that is compiled here, and its mistakes are', async () => {
    const text = HEAD + times(60, (i) => `type t${i}\n  relations\n    define viewer: [user, user:*, t${i}#viewer]\n`)
    expect(isLight(text)).toBe(false)
    expect(await withModels(() => knownModel(text))).toEqual(compileModel(text))
    expect(knownModel(text)).toEqual(compileModel(text))
    const wrong = `${text}type d\n  relations\n    define a: b\n`
    const said = expect.objectContaining({
      code: 'request_invalid',
      issues: [expect.objectContaining({ place: '186:15' })],
    })
    await expect(withModels(() => knownModel(wrong))).rejects.toEqual(said)
    expect(() => knownModel(wrong)).toThrow(said)
  })

  test('that was stored before there were bounds still decides', async () => {
    const text =
      TYPE + times(MODEL_BOUNDS.emptyLines + 5, () => '  # a remark\n') + times(50, (i) => `    define s${i}: r0\n`)
    expect(boundIssues(text)).not.toEqual([])
    const store = memoryStore()
    await given(store, 'acme', put('d:1#r0@user:alice'))
    const small = TYPE
    await store.write(
      ENVIRONMENT,
      [{ kind: 'manifest', manifest: { app: 'a', audiences: [], permissions: {}, roles: {}, model: small } }],
      { context },
    )
    const stored = {
      ...store,
      currentView: () => Object.assign(store.currentView(), { manifests: () => [manifestOf(text)] }),
    }
    const pdp = createPdp({ store: stored })
    expect(await pdp.can('acme', { type: 'user', id: 'alice' }, 's49', 'd:1')).toBe(true)
    const answers = await Promise.all(['alice', 'bob'].map((id) => pdp.can('acme', { type: 'user', id }, 's3', 'd:1')))
    expect(answers).toEqual([true, false])
  })
})
const manifestOf = (model: string) => ({ app: 'a', version: 1, audiences: [], permissions: {}, roles: {}, model })

describe('the thread', () => {
  test('gives a text up at its deadline, as the fault of who sent it, and takes the next', async () => {
    const aside = createAside({ deadlineMs: 1_500 })
    const [late, next] = [
      aside.run({ kind: 'model', text: parentheses(3_000) }),
      aside.run({ kind: 'yaml', text: 'a: 1' }),
    ]
    await expect(late).rejects.toMatchObject({ code: 'request_invalid' })
    await next.catch(() => undefined) // a busy machine may not start a thread in that time
    await expect
      .poll(() => aside.run({ kind: 'yaml', text: 'a: 1' }).catch(() => null), { timeout: 30_000 })
      .toEqual({ a: 1 })
  }, 60_000)

  test('that gave a model up once may compile it the next time', async () => {
    const text = `${chain(130)}# given up\n`
    const said = { code: 'request_invalid', message: expect.stringContaining('more time or memory') }
    // No thread starts in that time.
    await expect(compileIn(createAside({ deadlineMs: 1 }), text)).rejects.toMatchObject(said)
    expect(() => knownModel(text)).toThrow(ModelPending)
    await compileIn(createAside(), text)
    expect(knownModel(text)).toEqual(compileModel(text))
  }, 60_000)

  test('takes many texts one after the other without a warning of the process', async () => {
    const warnings: Error[] = []
    const note = (warning: Error) => void warnings.push(warning)
    process.on('warning', note)
    onTestFinished(() => void process.off('warning', note))
    const aside = createAside()
    for (let i = 0; i < 20; i++) expect(await aside.run({ kind: 'yaml', text: `a: ${i}` })).toEqual({ a: i })
    expect(warnings).toEqual([])
  }, 60_000)

  test('takes a bounded number of texts', async () => {
    const aside = createAside()
    const all = await Promise.allSettled(Array.from({ length: 70 }, () => aside.run({ kind: 'yaml', text: 'a: 1' })))
    const refused = all.filter(({ status }) => status === 'rejected')
    expect(refused.length).toBe(6)
    expect(refused).toContainEqual({ status: 'rejected', reason: expect.objectContaining({ code: 'overloaded' }) })
  })

  test('reads YAML as this thread does', async () => {
    const text = Array.from({ length: 3_000 }, (_, i) => `key${i}: [${i}, text]`).join('\n')
    expect(await parseAside(text)).toEqual(parseYaml(text))
    await expect(parseAside(`${text}\nkey7: 1`)).rejects.toMatchObject({
      code: 'request_invalid',
      issues: [{ place: '3001:1', message: 'the key "key7" is written twice; the first one is in line 8' }],
    })
  })
})
