/** The same grants in casbin (RBAC with a role hierarchy), in one run. */
import { newEnforcer, newModelFromString, StringAdapter } from 'casbin'
import { createPdp } from '../../../pdp/engine/decision-point/create-pdp.ts'
import { memoryStore } from '../../../pdp/engine/store/memory/memory.ts'
import type { Change } from '../../../pdp/shared/domain/change.ts'
import { ENVIRONMENT } from '../../../pdp/shared/domain/journal.ts'
import { user } from '../../../pdp/shared/domain/subjects.ts'
import { context, organization } from '../../support/tuples.ts'
import { grants, median, perSecond, questions } from './data.ts'

export const CASBIN_MODEL = `
[request_definition]
r = sub, obj, act
[policy_definition]
p = sub, obj, act
[role_definition]
g = _, _
[policy_effect]
e = some(where (p.eft == allow))
[matchers]
m = g(r.sub, p.sub) && r.obj == p.obj && r.act == p.act`

export async function benchCasbin(): Promise<void> {
  console.log('casbin, same grants')
  for (const count of [1_000, 20_000]) {
    const data = grants(count)
    const policy = data.tuples.map(({ object, relation, subject }) =>
      relation === 'member' ? `g, ${subject}, ${object}#member` : `p, ${subject}, ${object}, ${relation}`,
    )
    const enforcer = await newEnforcer(newModelFromString(CASBIN_MODEL), new StringAdapter(policy.join('\n')))
    const store = memoryStore()
    await store.write(ENVIRONMENT, [organization('acme')], { context })
    for (let i = 0; i < data.tuples.length; i += 1_000) {
      const changes = data.tuples.slice(i, i + 1_000).map((tuple): Change => ({ kind: 'tuple', op: 'write', tuple }))
      await store.write('acme', changes, { context })
    }
    const pdp = createPdp({ store })
    const asked = questions(data, 2_000)
    const ratios: number[] = []
    let theirs = 0
    let ours = 0
    for (let round = 0; round < 3; round++) {
      theirs = await rate(500, (i) =>
        enforcer.enforce(`user:${asked[i % 2_000]?.user}`, asked[i % 2_000]?.document, 'viewer'),
      )
      ours = await rate(500, (i) =>
        pdp.can('acme', user(asked[i % 2_000]?.user ?? ''), 'viewer', asked[i % 2_000]?.document ?? ''),
      )
      ratios.push(ours / theirs)
    }
    console.log(
      `  ${count.toLocaleString('en').padStart(6)} policies  casbin ${perSecond(theirs)}  ours ${perSecond(ours)}  ${Math.round(median(ratios)).toLocaleString('en')} times`,
    )
  }
}

async function rate(ms: number, call: (i: number) => Promise<unknown>): Promise<number> {
  const begin = performance.now()
  let done = 0
  while (performance.now() - begin < ms) await call(done++)
  return (done / (performance.now() - begin)) * 1_000
}
