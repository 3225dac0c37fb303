/** The one table of RFC 9457 problem codes and titles, shared by the PDP and the sidecar. Status numbers are not in it. */

export const PROBLEM_TITLES = {
  // The question or the document sent is wrong.
  request_invalid: 'The request is malformed',
  request_too_large: 'The request body is too large',
  headers_too_large: 'The request header fields are too large',
  request_timeout: 'The request took too long to arrive',
  media_type_unsupported: 'The content type is not supported',
  method_unsupported: 'The method is not supported here',
  route_unknown: 'There is nothing here',
  host_unknown: 'This host is not served here',
  // Who asks.
  token_missing: 'An access token is required',
  token_invalid: 'The access token is not valid',
  token_expired: 'The access token has expired',
  proof_missing: 'A DPoP proof is required',
  proof_invalid: 'The DPoP proof is not valid',
  proof_replayed: 'The DPoP proof was used before',
  proof_nonce_required: 'The DPoP proof needs a nonce of this server',
  // What the asker may not do.
  scope_insufficient: 'The access token lacks a scope',
  permission_denied: 'The subject may not do this',
  entitlement_required: 'The organization lacks a capability',
  step_up_required: 'A stronger or fresher sign-in is required',
  origin_refused: 'This origin may not open a connection here',
  // What the stored state does not allow.
  not_found: 'There is no such thing',
  organization_unknown: 'There is no such organization',
  conflict: 'The write contradicts what is stored',
  precondition_failed: 'A precondition does not hold',
  // No answer could be had.
  overloaded: 'There are more requests than can be answered in time',
  replay_memory_unavailable: 'Whether a DPoP proof was used before cannot be said',
  evaluation_limit: 'The question is too expensive to decide',
  store_unavailable: 'The store cannot be reached',
  pdp_unavailable: 'No decision could be had',
  keys_unavailable: 'The keys of the token issuer cannot be had',
  upstream_unavailable: 'The service behind cannot be reached',
  upstream_timeout: 'The service behind took too long to answer',
  busy: 'Too many requests are under way',
  draining: 'This server is about to stop',
  internal: 'An unexpected error occurred',
  // gRPC stream only.
  handle_unknown: 'The token behind this handle is not known; send it again',
  standing_limit: 'Too many standing questions are open',
} as const
export type ProblemCode = keyof typeof PROBLEM_TITLES

export const PROBLEM_MEDIA_TYPE = 'application/problem+json'

export type ProblemMembers = { readonly detail?: string; readonly [member: string]: unknown }
/** RFC 9457 problem details; the transport adds `status`. */
export type Problem = ProblemMembers & { readonly type: string; readonly title: string; readonly code: ProblemCode }

/** `members` are extension members (RFC 9457 section 3.2); they are sent to the caller, so no causes and no secrets. */
export function problem(code: ProblemCode, members: ProblemMembers = {}): Problem {
  return { type: `urn:portcullis:problem:${code}`, title: PROBLEM_TITLES[code], code, ...members }
}
