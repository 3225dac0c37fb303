/** The format of attack files: one request with its expected outcome on each line, over the fixture beside them. */
import { readFileSync } from 'node:fs'

export type TokenDelta = {
  readonly base?: string
  readonly header?: { readonly [name: string]: unknown }
  readonly claims?: { readonly [name: string]: unknown }
  readonly drop?: readonly string[]
  readonly key?: string
  readonly sig?: string
  readonly rawPayload?: string
  readonly mutate?: string
  readonly jwe?: string
}
/** Prose, or a request that is sent before. */
export type Step =
  | string
  | {
      readonly method: string
      readonly target: string
      readonly headers: readonly (readonly [string, string])[]
      readonly body?: unknown
    }
export type AttackCase = {
  readonly id: string
  readonly class: string
  readonly request: {
    readonly method: string
    readonly target: string
    readonly headers: readonly (readonly [string, string])[]
    readonly body?: unknown
    readonly raw?: string
    readonly steps?: readonly Step[]
  }
  readonly setup: {
    readonly note?: string
    readonly tokens?: { readonly [name: string]: TokenDelta }
    readonly proofs?: { readonly [name: string]: TokenDelta }
    readonly config?: { readonly [name: string]: unknown }
  }
  readonly expect: Expectation
}
export type Expectation = {
  readonly status?: readonly number[]
  readonly upstream?: string
  readonly www_authenticate?: string | readonly string[]
  readonly upstream_headers_absent?: readonly string[]
  readonly upstream_headers_present?: readonly string[] | { readonly [name: string]: string }
  readonly note2?: string
  readonly upstream_headers_absent_or_pep_value?: readonly string[]
  readonly upstream_target?: string
  readonly response_headers_absent?: readonly string[]
  readonly response_headers_present?: readonly string[] | { readonly [name: string]: string }
  /** Texts that must not occur in the answer. */
  readonly body_absent?: string | readonly string[]
  /** `client_ip: peer`: the service learns the address of the connection as the client's, and no other. */
  readonly decision_ctx?: { readonly [name: string]: unknown }
  readonly content_type?: string
  readonly no_outbound?: readonly string[]
  readonly max_ms?: number
  readonly first_byte_ms?: number
  readonly rss_growth_max_mb?: number
  /** An upgraded connection is closed by then, with a close code that says why. */
  readonly close_within_s?: number
}
export type FixtureRoute = {
  readonly m: string
  readonly p: string
  readonly host?: string
  readonly public?: boolean
  readonly check?: string
  readonly all?: readonly string[]
  readonly require?: string
  readonly upgrade?: readonly string[]
  readonly encodedSlash?: string
  readonly only_in?: string | readonly string[]
}
export type Fixture = {
  readonly pep: { readonly hosts: readonly string[]; readonly public_origin: string }
  readonly issuers: readonly {
    readonly iss: string
    readonly aud: string
    readonly alg: readonly string[]
    readonly kid: string
    readonly key: string
  }[]
  readonly routes: readonly FixtureRoute[]
  readonly tuples: readonly string[]
  readonly tokens: { readonly [name: string]: TokenDelta }
  readonly proofs: { readonly [name: string]: TokenDelta }
}

/** Throws when it is not JSON; parts that it may leave out are empty. */
export function readFixture(path: string): Fixture {
  const { routes = [], tuples = [], tokens = {}, proofs = {}, ...others } = JSON.parse(readFileSync(path, 'utf8'))
  return { ...others, routes, tuples, tokens, proofs }
}

/** A case that needs something which this machine lacks; the message names it. */
export class Skip extends Error {
  override readonly name = 'Skip'
}

/** A case that asks for something which this runner does not know; it fails, since anything else would be another case. */
export class Unknown extends Error {
  override readonly name = 'Unknown'
}
