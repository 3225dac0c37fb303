/** The engine in the caller's process beside casbin, and its relationships beside what others serve over HTTP. */
import { newEnforcer, newModelFromString, StringAdapter } from 'casbin'
import { createPdp } from '../../../pdp/engine/decision-point/create-pdp.ts'
import { memoryStore } from '../../../pdp/engine/store/memory/memory.ts'
import type { Change } from '../../../pdp/shared/domain/change.ts'
import { ENVIRONMENT } from '../../../pdp/shared/domain/journal.ts'
import { user } from '../../../pdp/shared/domain/subjects.ts'
import { context, organization } from '../../support/tuples.ts'
import { CASBIN_MODEL } from '../engine/casbin.ts'
import { type Grants, grants, questions } from '../engine/data.ts'
import { compareEngines } from '../peers/compare.ts'
import { type Extent, type Group, measureInTurn, type Part, type Way } from './rows.ts'

const POLICIES = 2_000
const ASKED = 1_000
const REFERENCE = 'Portcullis, memory store'

export async function measureEngine(extent: Extent): Promise<Part> {
  const { group, missing } = await compareEngines(extent)
  return { name: 'engine', groups: [await inProcess(extent), group], missing }
}

async function inProcess(extent: Extent): Promise<Group> {
  const data = grants(POLICIES)
  const asked = questions(data, ASKED)
  const can = await ourCan(data)
  const enforce = await casbinEnforce(data)
  const way = (name: string, ask: typeof can, repeats: number): Omit<Way, 'ours' | 'unchecked'> => ({
    name,
    repeats,
    async call(i) {
      for (let at = i * repeats; at < (i + 1) * repeats; at++) {
        const question = asked[at % ASKED]
        if (question === undefined || (await ask(question.user, question.document)) !== question.allowed)
          throw new Error(`${name} is wrong about ${JSON.stringify(question)}`)
      }
    },
  })
  const ways: Way[] = [
    { ...way(REFERENCE, can, 2_000), ours: true, unchecked: '' },
    { ...way('casbin', enforce, 1), ours: false, unchecked: 'no store, no organizations, no reasons' },
  ]
  const title = `the same ${POLICIES.toLocaleString('en')} grants through four nested groups, one caller in process`
  return { title, unit: 'checks', reference: REFERENCE, rows: await measureInTurn(ways, { ...extent, callers: 1 }) }
}

type Ask = (userId: string, document: string) => Promise<boolean>

async function ourCan({ tuples }: Grants): Promise<Ask> {
  const store = memoryStore()
  await store.write(ENVIRONMENT, [organization('acme')], { context })
  const changes = tuples.map((tuple): Change => ({ kind: 'tuple', op: 'write', tuple }))
  await store.write('acme', changes, { context })
  const pdp = createPdp({ store })
  return (userId, document) => pdp.can('acme', user(userId), 'viewer', document)
}

async function casbinEnforce({ tuples }: Grants): Promise<Ask> {
  const lines = tuples.map(({ object, relation, subject }) =>
    relation === 'member' ? `g, ${subject}, ${object}#member` : `p, ${subject}, ${object}, ${relation}`,
  )
  const enforcer = await newEnforcer(newModelFromString(CASBIN_MODEL), new StringAdapter(lines.join('\n')))
  return (userId, document) => enforcer.enforce(`user:${userId}`, document, 'viewer')
}
