/** The same grants for every measurement: chains of four nested groups, users in the lowest, one grant for each document. */
import type { Tuple } from '../../../pdp/shared/domain/tuple.ts'

export type Grants = {
  readonly tuples: readonly Tuple[]
  readonly users: number
  readonly documents: number
  readonly chains: number
}
export type Question = { readonly user: string; readonly document: string; readonly allowed: boolean }

/** `count` tuples: 40 % memberships, 50 % grants, 10 % links between groups. */
export function grants(count: number): Grants {
  const users = Math.floor(count * 0.4)
  const documents = Math.floor(count * 0.5)
  const chains = Math.max(1, Math.floor((count * 0.1) / 3))
  const tuples: Tuple[] = []
  const add = (object: string, relation: string, subject: string): void => {
    tuples.push({ object, relation, subject, expiresAtMs: null })
  }
  for (let c = 0; c < chains; c++) {
    for (let level = 0; level < 3; level++) add(`group:c${c}-${level + 1}`, 'member', `group:c${c}-${level}#member`)
  }
  for (let u = 0; u < users; u++) add(`group:c${u % chains}-0`, 'member', `user:${u}`)
  for (let d = 0; d < documents; d++)
    add(`doc:${d}`, 'viewer', `group:c${Math.floor(d / 2) % chains}-${d % 2 ? 3 : 0}#member`)
  return { tuples, users, documents, chains }
}

/** Questions through four groups, half of them denied. */
export function questions(of: Grants, count: number): readonly Question[] {
  const random = lcg(7)
  const out: Question[] = []
  while (out.length < count) {
    const u = Math.floor(random() * of.users)
    const chain = u % of.chains
    const allowed = out.length % 2 === 0
    const rounds = Math.max(1, Math.floor(of.documents / 2 / of.chains))
    const d = 2 * ((allowed ? chain : (chain + 1) % of.chains) + of.chains * Math.floor(random() * rounds)) + 1
    if (d < of.documents) out.push({ user: `${u}`, document: `doc:${d}`, allowed: allowed || of.chains === 1 })
  }
  return out
}

export function lcg(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1103515245 + 12345) % 2147483648
    return state / 2147483648
  }
}

export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
export const perSecond = (value: number): string =>
  `${value >= 1e6 ? `${(value / 1e6).toFixed(2)} M` : Math.round(value).toLocaleString('en')}/s`
