/** This PDP, as applications ask it: the model in a manifest, the tuples in an organization. */
import { createPdp } from '../../pdp/engine/decision-point/create-pdp.ts'
import { memoryStore } from '../../pdp/engine/store/memory/memory.ts'
import type { AskedSubject, Pdp } from '../../pdp/shared/domain/decision.ts'
import { PdpError } from '../../pdp/shared/domain/errors.ts'
import { ENVIRONMENT } from '../../pdp/shared/domain/journal.ts'
import { remoteMemoryStore } from '../support/stores.ts'
import { given } from '../support/tuples.ts'
import type { PeerStore, Said } from './openfga.ts'
import type { Brought, World } from './worlds.ts'

/** Every second world is read through the cache, as from a database. */
export async function openOurs(world: World): Promise<PeerStore | { readonly refused: string }> {
  const store = world.seed % 2 === 0 ? memoryStore() : remoteMemoryStore()
  const manifest = { app: 'app', audiences: [], permissions: {}, roles: {}, model: world.model }
  try {
    await given(store, ENVIRONMENT, { kind: 'manifest', manifest })
  } catch (err) {
    if (!(err instanceof PdpError)) throw err
    return { refused: err.message }
  }
  await given(store, 'o', ...world.tuples.map((tuple) => ({ kind: 'tuple', op: 'write', tuple }) as const))
  return storeOf(createPdp({ store }))
}

export function storeOf(pdp: Pdp): PeerStore {
  const common = { organization: 'o', pageSize: 1_000 }
  return {
    checks: (asked) =>
      Promise.all(
        asked.map(async ({ subject, relation, object, ...brought }): Promise<Said<boolean>> => {
          const permissions = [{ relation, resource: object }]
          const question = { organization: 'o', subject: askedSubject(subject), permissions, ...broughtBy(brought) }
          const decision = await pdp.decide(question)
          const [result] = decision.permissions
          return result?.error === undefined ? { value: result?.allowed === true } : { error: result.error }
        }),
      ),
    async listObjects({ subject, relation, type, ...brought }) {
      const page = await pdp.listResources({
        ...common,
        ...broughtBy(brought),
        subject: askedSubject(subject),
        relation,
        type,
      })
      return page.complete ? { value: page.items } : { error: 'not complete' }
    },
    async listUsers({ object, relation, type, subjectRelation, ...brought }) {
      const userset = subjectRelation === null ? {} : { subjectRelation }
      const page = await pdp.listSubjects({
        ...common,
        ...broughtBy(brought),
        ...userset,
        resource: object,
        relation,
        type,
      })
      return page.complete ? { value: page.items } : { error: 'not complete' }
    },
  }
}

const broughtBy = ({ context, contextual }: Brought) => ({ context, contextualTuples: contextual })

function askedSubject(name: string): AskedSubject {
  const [object = '', relation] = name.split('#')
  const at = object.indexOf(':')
  const subject = { type: object.slice(0, at), id: object.slice(at + 1) }
  return relation === undefined ? subject : { ...subject, relation }
}
