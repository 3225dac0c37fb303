/** The table of reason codes and their texts, for every answer and command line. */
export const REASONS = {
  tuple: 'a tuple grants it',
  group: 'a tuple grants it to a group that has the subject',
  model: 'a rule of the model derives it from what is granted',
  membership: 'the membership of the subject gives it',
  role: 'a role that is granted in the organization gives it',
  role_rolled_down: 'a role that is granted in an organization above gives it',
  role_environment: 'a role that is granted in the whole environment gives it',
  none: 'nothing grants it',
  unknown_relation: 'no model and no role has this relation or permission',
  membership_suspended: 'the membership of the subject is not active, so that nothing that it holds here counts',
  delegation_missing: 'the subject may, but does not let the actor act for it',
  actor_denied: 'the subject may, but the actor may not',
  token_inactive: 'the token is not active, or is bound to no organization',
  evaluation_limit: 'it cannot be decided within the limits',
  condition_failed: 'it depends on a condition that cannot be evaluated with the values that are given',
} as const
export type ReasonCode = keyof typeof REASONS

/** The words for a code of this version; a newer program may send others. */
export const reasonText = (code: string): string =>
  Object.hasOwn(REASONS, code) ? `${code}: ${REASONS[code as ReasonCode]}` : code
