/** A model that somebody only supposes keeps nobody else waiting. */
import { expect, test } from 'vitest'
import { isLight } from '../../../../pdp/engine/decide/language/model-bounds.ts'
import { knownModel, ModelPending } from '../../../../pdp/engine/decide/models/known-models.ts'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import { createSupposedModels } from '../../../../pdp/engine/decision-point/supposed-models.ts'
import { memoryStore } from '../../../../pdp/engine/store/memory/memory.ts'
import { type Aside, parseAside } from '../../../../pdp/engine/worker/worker.ts'
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import { given, organization } from '../../../support/tuples.ts'

/** A chain of exclusions: each more makes the text dearer than the one before. */
const chain = (count: number, remark: string): string =>
  `model\n  schema 1.1\n# ${remark}\ntype user\ntype d\n  relations\n    define r0: [user]\n${Array.from({ length: count }, (_, i) => `    define r${i + 1}: [user] but not r${i}\n`).join('')}`
const isCompiled = (text: string): boolean => {
  try {
    return knownModel(text).size > 0
  } catch (err) {
    if (err instanceof ModelPending) return false
    throw err
  }
}

/** Two threads that never end their first text. */
function slowThreads() {
  const taken: string[] = []
  const ends: (() => void)[] = []
  const thread: Aside = {
    run: ({ text }) => {
      taken.push(text)
      return new Promise((resolve) => void ends.push(() => resolve(new Map([['d', new Map()]]))))
    },
  }
  return { taken, ends, threads: [thread, thread] }
}

test('a tenant has one of the threads, whatever organizations it makes below its own, and the others have the rest', async () => {
  const { taken, ends, threads } = slowThreads()
  const models = createSupposedModels(threads)
  const texts = ['one', 'two', 'three'].map((remark) => chain(60, `tenant ${remark}`))
  const [one = '', two = '', others = ''] = texts
  const all = [models.prepare('acme', one), models.prepare('acme~below', two), models.prepare('beta', others)]
  await expect.poll(() => taken).toEqual([one, others])
  ends[0]?.()
  await expect.poll(() => taken).toEqual([one, others, two])
  for (const end of ends) end()
  await Promise.all(all)
  expect(texts.map(isCompiled)).toEqual([true, true, true])
})

test('a tenant with too many texts is refused, and the next one is not', async () => {
  const { ends, threads } = slowThreads()
  const models = createSupposedModels(threads)
  const first = Array.from({ length: 17 }, (_, i) => models.prepare('acme', chain(60, `many ${i}`)))
  await expect(models.prepare('acme', chain(60, 'too many'))).rejects.toMatchObject({ code: 'overloaded' })
  const other = models.prepare('beta', chain(60, 'of another'))
  await expect.poll(() => ends.length).toBe(2)
  ends[1]?.()
  await other
  for (const one of first) one.catch(() => undefined)
})

test('a text that is known, light or beyond the bounds needs no thread', async () => {
  const { taken, threads } = slowThreads()
  const models = createSupposedModels(threads)
  const light = chain(3, 'light')
  expect(isLight(light)).toBe(true)
  for (const text of [light, chain(2_001, 'beyond'), 'not a model']) await models.prepare('acme', text)
  expect(taken).toEqual([])
})

test('what is stored is read before the models that a tenant supposes', async () => {
  const store = memoryStore()
  await given(store, ENVIRONMENT, organization('acme'))
  const pdp = createPdp({ store })
  // The threads have loaded what they parse with.
  await Promise.all(['a: 0', 'b: 0', 'c: 0'].map(parseAside))
  const done: string[] = []
  const compared = ['a', 'b', 'c'].map(async (remark) => {
    const model = { app: 'x', text: chain(600, remark) }
    await pdp.compare({ organization: 'acme', relation: 'r0', type: 'd', model })
    done.push('supposed')
  })
  await new Promise((resolve) => setImmediate(resolve))
  await parseAside('a: 1').then(() => done.push('stored'))
  await Promise.all(compared)
  expect(done).toEqual(['stored', 'supposed', 'supposed', 'supposed'])
})
