/** What is asked of the PDP about one request, and what it may answer. */

export type PermissionQuestion = { readonly relation: string; readonly resource: string }
export type PdpQuestion = {
  /** A verified access token, its digest, and whom and which organization it names. */
  readonly token: string
  readonly digest: string
  readonly subject: string
  readonly organization: string | null
  readonly permissions: readonly PermissionQuestion[]
  readonly entitlements: readonly string[]
}
export type PdpAnswer = {
  /** False: the token is dead, and everything is denied. */
  readonly active: boolean
  readonly subjectType: 'user' | 'service'
  /** One per permission asked, in the order asked. */
  readonly permissions: readonly ('allowed' | 'denied' | 'undecided')[]
  /** True only for a value whose `enabled` is boolean true. */
  readonly entitlements: ReadonlyMap<string, boolean>
  /** How and when the subject signed in, as far as the PDP knows. */
  readonly signIn: SignIn
}

export type SignIn = {
  readonly acr: string | null
  /** Seconds since the epoch. */
  readonly authTime: number | null
}
