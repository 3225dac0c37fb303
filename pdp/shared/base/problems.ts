/** The one table of RFC 9457 problem codes and titles, shared by the PDP and the sidecar. Status numbers are not in it. */

export const PROBLEM_TITLES = {
  // The request or its document is wrong.
  request_invalid: 'The request is malformed',
  path_too_complex: 'The path has too many segments, or too many that servers read in several ways',
  route_ambiguous: 'Several routes match this path, and none is the most specific',
  target_too_long: 'The request target is too long',
  request_too_large: 'The request body is too large',
  headers_too_large: 'The request header fields are too large',
  request_timeout: 'The request took too long to arrive',
  media_type_unsupported: 'The content type is not supported',
  method_unsupported: 'The method is not supported here',
  route_unknown: 'No route matches this path',
  host_unknown: 'This host is not served',
  // Problems of authentication.
  token_missing: 'An access token is required',
  token_invalid: 'The access token is not valid',
  token_expired: 'The access token has expired',
  proof_missing: 'A DPoP proof is required',
  proof_invalid: 'The DPoP proof is not valid',
  proof_replayed: 'The DPoP proof was used before',
  proof_nonce_required: 'The DPoP proof needs a nonce from this server',
  // Problems of authorization.
  scope_insufficient: 'The access token lacks a required scope',
  permission_denied: 'The subject does not have this permission',
  entitlement_required: 'The organization lacks a required entitlement',
  step_up_required: 'A stronger or more recent sign-in is required',
  origin_refused: 'Pages of this origin may not send this request',
  // The stored state does not allow the operation.
  not_found: 'The object does not exist',
  organization_unknown: 'The organization does not exist',
  conflict: 'The write conflicts with stored data',
  precondition_failed: 'A precondition failed',
  // The server cannot answer.
  overloaded: 'The server has too many requests to answer in time',
  replay_memory_unavailable: 'The server cannot check whether the DPoP proof was used before',
  session_unavailable: 'The server cannot read the session',
  condition_failed: 'The decision depends on a condition that cannot be evaluated',
  evaluation_limit: 'The decision exceeds the evaluation limit',
  store_unavailable: 'The server cannot read its data now',
  pdp_unavailable: 'The policy decision point did not answer',
  keys_unavailable: 'The keys of the token issuer are not available',
  issuer_unavailable: 'The token issuer did not answer',
  issuer_mismatch: 'The token issuer is set up differently here and at the policy decision point',
  upstream_unavailable: 'The upstream service cannot be reached',
  upstream_timeout: 'The upstream service took too long to answer',
  busy: 'Too many requests are in progress',
  draining: 'This server is shutting down',
  internal: 'An unexpected error occurred',
  // Only on a gRPC stream.
  handle_unknown: 'The token of this handle is not known; send the token again',
  watched_limit: 'Too many watched questions are open',
} as const
export type ProblemCode = keyof typeof PROBLEM_TITLES

export const PROBLEM_MEDIA_TYPE = 'application/problem+json'

export type ProblemMembers = { readonly detail?: string; readonly [member: string]: unknown }
/** RFC 9457 problem details; the transport adds `status`. */
export type Problem = ProblemMembers & { readonly type: string; readonly title: string; readonly code: ProblemCode }

/** `members` are extension members (RFC 9457 section 3.2); they are sent to the caller, so they must hold no error causes and no secrets. */
export function problem(code: ProblemCode, members: ProblemMembers = {}): Problem {
  return { type: `urn:portcullis:problem:${code}`, title: PROBLEM_TITLES[code], code, ...members }
}
