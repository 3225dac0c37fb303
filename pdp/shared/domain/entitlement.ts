/** Entitlements: the features that an organization may use. */
import type { JsonObject } from './json.ts'

export const ENFORCEMENTS = ['DecisionApi', 'Claims'] as const
export type Enforcement = (typeof ENFORCEMENTS)[number]
export type Entitlement = { readonly value: JsonObject; readonly enforcement: Enforcement }
