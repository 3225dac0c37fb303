/**
 * `npm run differential -- --tests FILE…`: the tests that OpenFGA keeps of itself (`assets/tests/*.yaml` in its repository),
 * asked of this PDP, in memory and through the cache. Fails when an answer is another one for a cause that is not below.
 */
import { readFile } from 'node:fs/promises'
import { parse } from 'yaml'
import { createPdp } from '../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../pdp/engine/store/contract.ts'
import { memoryStore } from '../../pdp/engine/store/memory/memory.ts'
import { PdpError } from '../../pdp/shared/domain/errors.ts'
import { ENVIRONMENT } from '../../pdp/shared/domain/journal.ts'
import type { JsonObject } from '../../pdp/shared/domain/json.ts'
import type { Tuple } from '../../pdp/shared/domain/tuple.ts'
import { renamed, type TypeNames } from '../../pdp/tools/import/mapping.ts'
import { planOpenFga } from '../../pdp/tools/import/openfga.ts'
import { remoteMemoryStore } from '../support/stores.ts'
import { given } from '../support/tuples.ts'
import { compareCheck, compareOpenFgaUsers } from './judge.ts'
import type { PeerStore, Said } from './openfga.ts'
import { storeOf } from './ours.ts'
import type { Brought } from './worlds.ts'

type Key = {
  readonly object: string
  readonly relation: string
  readonly user: string
  readonly condition?: { readonly name: string; readonly context?: JsonObject }
}
type Asked = {
  readonly context?: JsonObject
  readonly contextualTuples?: readonly Key[]
  readonly expectation?: boolean | readonly string[] | null
  readonly errorCode?: number
}
type Assertions = {
  readonly checkAssertions?: readonly (Asked & { readonly tuple: Key })[]
  readonly listObjectsAssertions?: readonly (Asked & { readonly request: ObjectsRequest })[]
  readonly listUsersAssertions?: readonly (Asked & { readonly request: UsersRequest })[]
}
type ObjectsRequest = { readonly user: string; readonly type: string; readonly relation: string }
type UsersRequest = { readonly filters: readonly string[]; readonly object: string; readonly relation: string }
type Stage = Assertions & { readonly model: string; readonly tuples?: readonly Key[] }
type File = { readonly tests: readonly { readonly name: string; readonly stages: readonly Stage[] }[] }
type Found = Said<boolean | readonly string[]>
type Difference = { readonly test: string; readonly asked: Asked; readonly found: Found }
type Cause = { readonly text: string; readonly explains: (difference: Difference) => boolean }

/** Of an unknown type, relation, subject and contextual tuple. */
const UNKNOWN_CODES: readonly (number | undefined)[] = [2000, 2021, 2022, 2027]
const errorOf = (found: Found): string => ('error' in found ? found.error : '')

const CAUSES: readonly Cause[] = [
  {
    text: 'a type, relation or subject that the model does not know is an error there, and a denial here that says so',
    explains: ({ asked, found }) =>
      UNKNOWN_CODES.includes(asked.errorCode) && 'value' in found && [false, '[]'].includes(nothing(found.value)),
  },
  {
    text: 'the answer would depend on its own absence ("but not"): there it is a denial, and here there is none',
    explains: ({ test, found }) => test === 'true_butnot_cycle_return_false' && 'error' in found,
  },
  {
    text: 'what is resolved too deeply there (2002) is answered here',
    explains: ({ asked, found }) => asked.errorCode === 2002 && 'value' in found,
  },
  {
    text: 'a list of users is an error there for a condition that nobody of the list depends on',
    explains: ({ test, asked, found }) =>
      test === 'relation_through_ttu_with_condition' && asked.errorCode === 2000 && 'value' in found,
  },
  {
    text: 'a question that brings the same tuple twice is refused here',
    explains: ({ found }) => errorOf(found).endsWith('occurs twice'),
  },
]
const nothing = (value: boolean | readonly string[]): boolean | string =>
  typeof value === 'boolean' ? value : JSON.stringify(value)

type Tally = { right: number; readonly causes: Map<Cause, number>; readonly failures: string[] }

/** @returns the exit status. */
export async function compareWithTests(files: readonly string[]): Promise<number> {
  const tally: Tally = { right: 0, causes: new Map(), failures: [] }
  for (const file of files) {
    const { tests }: File = parse(await readFile(file, 'utf8'))
    for (const { name, stages } of tests)
      for (const newStore of [memoryStore, remoteMemoryStore]) await runTest(name, stages, { store: newStore(), tally })
  }
  for (const failure of tally.failures) console.log(failure)
  for (const [{ text }, count] of tally.causes) console.log(`another answer ${count} times: ${text}`)
  console.log(`${tally.right} answers as OpenFGA's tests say, ${tally.failures.length} failed`)
  return tally.failures.length === 0 ? 0 : 1
}

async function runTest(
  test: string,
  stages: readonly Stage[],
  { store, tally }: { store: Store; tally: Tally },
): Promise<void> {
  for (const stage of stages) {
    const brought = allAssertions(stage).flatMap(({ contextualTuples }) => contextualTuples ?? [])
    const { model, names } = importedModel(stage.model, [...(stage.tuples ?? []), ...brought])
    const tuples = (stage.tuples ?? []).map((key) => tupleOf(key, names))
    // As a store would hold them whose model was changed since.
    await given(store, ENVIRONMENT, {
      kind: 'manifest',
      manifest: { app: 'app', audiences: [], permissions: {}, roles: {}, model },
    })
    await given(store, 'o', ...tuples.map((tuple) => ({ kind: 'tuple', op: 'write', tuple }) as const))
    const ours = storeOf(createPdp({ store }))
    for (const { asked, found } of await answers(ours, stage, names)) note(tally, { test, asked, found }, names)
  }
}

const allAssertions = (stage: Assertions): readonly Asked[] => [
  ...(stage.checkAssertions ?? []),
  ...(stage.listObjectsAssertions ?? []),
  ...(stage.listUsersAssertions ?? []),
]

/** As `import openfga` would bring it: types that mean something of their own here have other names. */
function importedModel(text: string, tuples: readonly Key[]): { model: string; names: TypeNames } {
  const plain = tuples.map(({ object, relation, user }) => ({ object, relation, user }))
  const { model, notes } = planOpenFga(text, plain)
  const names = notes.map((line): [string, string] => {
    const [, from = '', to = ''] = /^type "(.*?)" is called "(.*?)" here/.exec(line) ?? []
    return [from, to]
  })
  return { model, names: new Map(names) }
}

const tupleOf = ({ object, relation, user, condition }: Key, names: TypeNames): Tuple => ({
  ...{ object: renamed(object, names), relation, subject: renamed(user, names), expiresAtMs: null },
  ...(condition !== undefined && { condition: { name: condition.name, context: condition.context ?? {} } }),
})

async function answers(ours: PeerStore, stage: Stage, names: TypeNames): Promise<{ asked: Asked; found: Found }[]> {
  const named = (name: string): string => renamed(name, names)
  const typeNamed = (type: string): string => names.get(type) ?? type
  const broughtBy = ({ context = {}, contextualTuples = [] }: Asked): Brought => ({
    context,
    contextual: contextualTuples.map((key) => tupleOf(key, names)),
  })
  const all: { asked: Asked; found: Found }[] = []
  for (const asked of stage.checkAssertions ?? []) {
    const { user, relation, object } = asked.tuple
    const check = { subject: named(user), relation, object: named(object), ...broughtBy(asked) }
    all.push({ asked, found: await said(async () => (await ours.checks([check]))[0] ?? { error: 'none' }) })
  }
  for (const asked of stage.listObjectsAssertions ?? []) {
    const { user, relation, type } = asked.request
    const list = { subject: named(user), relation, type: typeNamed(type), ...broughtBy(asked) }
    all.push({ asked, found: await said(() => ours.listObjects(list)) })
  }
  for (const asked of stage.listUsersAssertions ?? []) {
    const { filters, relation, object } = asked.request
    const found: string[] = []
    let error: Found | null = null
    for (const filter of filters) {
      const [type = '', subjectRelation = null] = filter.split('#')
      const of = { object: named(object), relation, type: typeNamed(type), subjectRelation }
      const page = await said(() => ours.listUsers({ ...of, ...broughtBy(asked) }))
      if ('error' in page) error = page
      else found.push(...(page.value as readonly string[]))
    }
    all.push({ asked, found: error ?? { value: found } })
  }
  return all
}

async function said(ask: () => Promise<Found>): Promise<Found> {
  try {
    return await ask()
  } catch (err) {
    if (err instanceof PdpError) return { error: err.message }
    throw err
  }
}

function note(tally: Tally, difference: Difference, names: TypeNames): void {
  const { test, asked, found } = difference
  const cause = isRight(asked, found, names) ? null : CAUSES.find(({ explains }) => explains(difference))
  if (cause === null) tally.right++
  else if (cause !== undefined) tally.causes.set(cause, (tally.causes.get(cause) ?? 0) + 1)
  else tally.failures.push(`FAIL ${test}: ${JSON.stringify(asked)}: found ${JSON.stringify(found)}`)
}

function isRight({ expectation, errorCode }: Asked, found: Found, names: TypeNames): boolean {
  if (errorCode !== undefined) return 'error' in found
  if (typeof expectation === 'boolean') return compareCheck(expectation, found as Said<boolean>) === 'right'
  const wanted = (expectation ?? []).map((name) => renamed(name, names))
  // Of those who are there as everybody is, OpenFGA names none; here they are all named.
  const list = found as Said<readonly string[]>
  if (!wanted.some((name) => name.endsWith(':*')))
    return JSON.stringify(sorted(list)) === JSON.stringify([...wanted].sort())
  return 'value' in list && compareOpenFgaUsers(list.value, { value: wanted }) === 'right'
}

const sorted = (list: Said<readonly string[]>): unknown => ('error' in list ? list : [...list.value].sort())
