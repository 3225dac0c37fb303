/** The plan of an attack case: what is sent, in order, and what happens in between. */
import type { AttackCase, Step } from './case-format.ts'
import { type Clause, readStep, type Sending } from './step-reader.ts'

/** A request of a form of its own, as it stands in the file. */
export type Planned = Clause | { readonly kind: 'own'; readonly request: Exclude<Step, string> }

/** In order; the last that sends is the one that is judged. Throws Unknown for what nobody here knows. */
export function planOf({ request, setup }: AttackCase): Planned[] {
  const planned = (request.steps ?? []).flatMap((step): Planned[] =>
    typeof step === 'string' ? readStep(step) : [{ kind: 'own', request: step }],
  )
  if (!planned.some(isSending)) planned.push(...readStep('send'))
  if (setup.config?.fault === 'SIGTERM') planned.push(...readStep('SIGTERM'))
  return planned
}

export const isSending = (planned: Planned): planned is Sending | Extract<Planned, { kind: 'own' }> =>
  planned.kind === 'send' || planned.kind === 'own'
