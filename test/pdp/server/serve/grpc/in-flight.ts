/** Budgets that are counted, questions and answers of known weight. */

import type { Answer } from '../../../../../pdp/server/serve/decisions/answer.ts'
import { type Budgets, createBudgets } from '../../../../../pdp/server/serve/grpc/budgets.ts'
import { questionWeight } from '../../../../../pdp/server/serve/grpc/weights.ts'
import type { EntitlementResult } from '../../../../../pdp/shared/domain/decision.ts'
import type { JsonObject } from '../../../../../pdp/shared/domain/json.ts'

export const MIB = 1024 * 1024
export const TOTALS = { streams: 100, watched: 10_000, tokenCharacters: MIB, bytes: 4 * MIB }
export const LARGE = Array.from({ length: 256 }, (_, i) => ({
  relation: 'viewer',
  resource: `doc:${'x'.repeat(250)}${i}`,
}))
export const LARGE_WEIGHT = questionWeight({ permissions: LARGE, entitlements: [], context: '', requestId: '' })

/** Counts what is held, beside the real budgets. */
export function counting(totals = TOTALS) {
  const budgets = createBudgets(totals)
  const held = new Map<string, number>()
  const most = new Map<string, number>()
  const counted: Budgets = {
    used: budgets.used,
    of(caller) {
      const holding = budgets.of(caller)
      const { name } = caller
      const add = (bytes: number): void => {
        held.set(name, (held.get(name) ?? 0) + bytes)
        most.set(name, Math.max(most.get(name) ?? 0, held.get(name) ?? 0))
      }
      return {
        take(kind, amount) {
          const taken = holding.take(kind, amount)
          if (taken && kind === 'bytes') add(amount)
          return taken
        },
        give(kind, amount) {
          holding.give(kind, amount)
          if (kind === 'bytes') add(-amount)
        },
      }
    },
  }
  return {
    budgets: counted,
    heldBy: (caller: string) => held.get(caller) ?? 0,
    mostOf: (caller: string) => most.get(caller) ?? 0,
  }
}

export function answerOf(permissions: number, value: JsonObject | null = null): Answer {
  return {
    active: true,
    subject: null,
    organization: 'acme',
    permissions: LARGE.slice(0, permissions).map((check) => ({
      ...check,
      allowed: true,
      reasonCode: 'tuple' as const,
    })),
    entitlements: new Map<string, EntitlementResult | null>(
      value === null ? [] : [['feature.a', { value, version: 1, boolean: () => false }]],
    ),
    decisionId: 'd',
    revision: 'r',
    validUntilMs: null,
    acr: null,
    authTime: null,
    app: null,
  }
}
