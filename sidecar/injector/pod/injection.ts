/** The injector's answers about a Pod, and the possible reasons. */
import type { PatchOperation } from './patch.ts'

/** `required`: no Pod of the namespace can do without a sidecar. */
export const MODES = ['enabled', 'required'] as const
export type Mode = (typeof MODES)[number]
export const DENIALS = [
  'pod_invalid',
  'wish_invalid',
  'wish_refused',
  'opted_out',
  'host_network',
  'processes_shared',
  'ports_missing',
  'routes_missing',
  'label_forged',
  'name_taken',
  'token_taken',
  'sidecar_late',
  'port_taken',
  'port_missing',
  'port_repeated',
  'port_unprotected',
  'port_unfit',
  'port_covered',
  'job_unsupported',
  'windows_unsupported',
] as const
export type DenialCode = (typeof DENIALS)[number]

export type Injection =
  | { readonly verdict: 'inject'; readonly operations: readonly PatchOperation[]; readonly warnings: readonly string[] }
  | {
      readonly verdict: 'skip'
      readonly code: 'opted_out' | 'not_asked' | 'serves_nothing'
      readonly warnings: readonly string[]
    }
  | { readonly verdict: 'deny'; readonly code: DenialCode; readonly message: string }
export type Denial = Extract<Injection, { verdict: 'deny' }>

export const deny = (code: DenialCode, message: string): Denial => ({ verdict: 'deny', code, message })
