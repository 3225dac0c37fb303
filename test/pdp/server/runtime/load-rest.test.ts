/** What is loaded when the PDP listens already: in order, and never missing while the PDP goes on. */
import { expect, test } from 'vitest'
import { loadRest } from '../../../../pdp/server/runtime/load-rest.ts'
import { StartError } from '../../../../pdp/shared/process/exit.ts'

function shutdownInto(events: string[]) {
  return {
    async hold<T>(work: Promise<T>): Promise<T> {
      try {
        return await work
      } finally {
        events.push('may close')
      }
    },
    async run(reason: string | null) {
      events.push(`closed: ${reason}`)
      return true
    },
  }
}

test('loads one part after the other, with a turn for questions before each', async () => {
  const events: string[] = []
  const load = (name: string) => async () => void events.push(name)
  const loaded = loadRest(shutdownInto(events), [load('first'), load('second')])
  expect(events).toEqual([])
  setImmediate(() => events.push('a question'))
  await loaded
  expect(events).toEqual(['first', 'a question', 'second', 'may close'])
})

test.each([
  ['that cannot be found', new Error("Cannot find package 'oidc-provider'"), "Cannot find package 'oidc-provider'"],
  ['that throws what is no error', 'no reason', 'no reason'],
])('closes everything, then says what it could not load, for a part %s', async (_, cause, said) => {
  const events: string[] = []
  const parts = [() => Promise.reject(cause), async () => void events.push('loaded after it')]
  const failure = await loadRest(shutdownInto(events), parts).catch((err: unknown) => err)
  expect(failure).toBeInstanceOf(StartError)
  expect(failure).toMatchObject({ message: `A part of the PDP cannot be loaded: ${said}`, cause })
  expect(events).toEqual(['may close', 'closed: null'])
})
