/** People's passkeys: lists them, makes the requests to authenticators, and verifies the answers. */
import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Queries, Sql, User } from '../../../engine/store/directory.ts'
import { lockPerson } from '../../../engine/store/journal-lock.ts'
import type { JsonMembers } from '../../../shared/base/json-text.ts'
import type { WriteContext } from '../../../shared/domain/change.ts'
import type { Log } from '../../../shared/process/log.ts'
import type { AppendEvents } from '../../issuer/append.ts'
import { isStillSignedIn, type SignedInBy } from '../../issuer/sign-in-validity.ts'
import type { Revocations } from '../../issuer/tokens/revocation.ts'
import { createCredentialChanges, credentialOf } from './credential-events.ts'
import {
  ALGORITHMS,
  parseAssertion,
  partyOf,
  type Registered,
  verifyAssertion,
  verifyRegistration,
} from './passkey-answers.ts'
import { CHALLENGE_SECONDS, createPasskeyChallenges } from './passkey-challenges.ts'
import { createRecoveryCodes } from './recovery-codes.ts'

export const PASSKEYS_MAX = 20
const NAME_CHARACTERS_MAX = 60

export type Passkey = {
  readonly id: string
  readonly name: string
  readonly synced: boolean
  readonly transports: readonly string[]
  /** The time in seconds since the epoch when the passkey was made. */
  readonly createdAt: number
  readonly usedAt: number | null
}
/** `page`: the only page on which the answer is accepted. */
type CeremonyRequest = { readonly req: IncomingMessage; readonly page: string }

/** Passkeys of people. All methods throw PdpError `store_unavailable`. */
export type Passkeys = {
  /** True if the issuer's host can have passkeys. */
  readonly isPossible: boolean
  of(user: string): Promise<readonly Passkey[]>
  /** Options to make a new passkey for the signed-in person, as JSON for `navigator.credentials`. */
  creation(user: User, asked: CeremonyRequest & { readonly res: ServerResponse }): Promise<JsonMembers>
  /** `recoveryCodes`: new ones for a person who had none; they are shown only now. */
  add(
    user: User,
    given: CeremonyRequest & { readonly session: string; readonly answer: string; readonly name: string },
    context: WriteContext,
  ): Promise<'refused' | 'tooMany' | { readonly recoveryCodes: readonly string[]; readonly synced: boolean }>
  /** Options to use a passkey. `user`: the person whose password was right; null: nobody yet, so they must not tell who exists. */
  request(user: string | null, asked: CeremonyRequest & { readonly res: ServerResponse }): Promise<JsonMembers>
  /** Verifies an answer; null: it is wrong. Without a password, the authenticator itself must have verified the person. */
  prove(
    user: string | null,
    given: CeremonyRequest & { readonly answer: string },
  ): Promise<{ readonly user: string; readonly synced: boolean } | null>
  /** Removes a passkey and ends the person's sign-ins. False if the person has no such passkey, or was signed out meanwhile. */
  remove(user: string, id: string, by: SignedInBy, context: WriteContext): Promise<boolean>
}

const OF = `
  select credential_id as id, name, synced, transports, extract(epoch from created_at)::float8 as "createdAt",
    extract(epoch from last_used_at)::float8 as "usedAt"
  from passkey where user_id = $1 order by created_at, credential_id limit ${PASSKEYS_MAX}`
const KEY = `
  select p.user_id as "user", p.public_key as "publicKey", p.synced, o.handle
  from passkey p join passkey_owner o using (user_id) join user_account u using (user_id)
  where p.credential_id = $1 and u.signed_out_at is distinct from 'infinity'`
// A single statement, so that only one of two answers with the same count is right. A lower count shows a copied key.
const USE = `
  update passkey set counter = $2, last_used_at = to_timestamp($3::float8)
  where credential_id = $1 and (counter < $2 or (counter = 0 and $2 = 0)) returning 1`
const OWNER = `
  insert into passkey_owner (user_id, handle) select user_id, $2 from user_account where user_id = $1
  on conflict (user_id) do update set user_id = excluded.user_id returning handle`

type PasskeysDeps = {
  readonly issuer: string
  readonly sql: Sql
  readonly appendEvents: AppendEvents
  readonly revocations: Pick<Revocations, 'endUser'>
  readonly clock: () => number
  readonly log: Log
}

export function createPasskeys(deps: PasskeysDeps): Passkeys {
  const { issuer, sql, appendEvents, revocations, clock, log } = deps
  const party = partyOf(issuer)
  const challenges = createPasskeyChallenges({ issuer, sql, clock })
  const recovery = createRecoveryCodes({ sql })
  const changes = createCredentialChanges({ appendEvents, revocations })
  const of = (user: string) => sql.query<Passkey>(OF, [user])
  const named = async (user: string) =>
    (await of(user)).map(({ id, transports }) => ({ type: 'public-key', id, transports }))
  const newPurpose = (user: User, page: string): string => `new passkey of ${user.id} on ${page}`
  const purpose = (user: string | null, page: string): string => `passkey of ${user ?? 'anybody'} on ${page}`

  return {
    isPossible: party !== null,
    of,
    async creation(user, { page, ...at }) {
      const challenge = await challenges.create({ ...at, purpose: newPurpose(user, page) })
      const [owner] = await sql.query<{ handle: string }>(OWNER, [user.id, randomBytes(32).toString('base64url')])
      return creationOptions(user, { challenge, party, handle: owner?.handle, present: await named(user.id) })
    },
    async add(user, { req, page, session, answer, name }, context) {
      const take = (challenge: string) => challenges.take(challenge, { req, purpose: newPurpose(user, page) })
      const key = party === null ? null : await verifyRegistration(answer, take, party)
      if (key === null) return 'refused'
      return sql.transaction(async (tx) => {
        await lockPerson(tx, user.id)
        if (!(await isStillSignedIn(tx, user.id, { session }))) return 'refused'
        const present = await tx.query('select 1 from passkey where user_id = $1', [user.id])
        if (present.length >= PASSKEYS_MAX) return 'tooMany'
        // The passkey is already stored, for this person or another.
        if (!(await store(tx, user.id, { name, key }))) return 'refused'
        const needsCodes = (await tx.query('select 1 from recovery_code where user_id = $1', [user.id])).length === 0
        const recoveryCodes = needsCodes ? await recovery.renew(tx, user.id) : []
        const kinds = needsCodes ? (['passkey', 'recovery_code'] as const) : (['passkey'] as const)
        await changes.added(tx, { user: user.id, kinds, credential: credentialOf(key) }, context)
        return { recoveryCodes, synced: key.synced }
      })
    },
    async request(user, { page, ...at }) {
      const challenge = await challenges.create({ ...at, purpose: purpose(user, page) })
      return {
        challenge,
        rpId: party?.id,
        timeout: CHALLENGE_SECONDS * 1_000,
        allowCredentials: user === null ? [] : await named(user),
        userVerification: user === null ? 'required' : 'preferred',
      }
    },
    async prove(user, { req, page, answer }) {
      const assertion = parseAssertion(answer)
      if (assertion === null || party === null) return null
      const take = (challenge: string) => challenges.take(challenge, { req, purpose: purpose(user, page) })
      return prove({ sql, clock, log }, assertion, { user, take, party })
    },
    remove: (user, id, by, context) =>
      sql.transaction(async (tx) => {
        await lockPerson(tx, user)
        if (!(await isStillSignedIn(tx, user, by))) return false
        const [removed] = await tx.query<Pick<Registered, 'transports'>>(
          'delete from passkey where user_id = $1 and credential_id = $2 returning transports',
          [user, id],
        )
        if (removed === undefined) return false
        await changes.removed(tx, { user, kind: 'passkey', credentials: [credentialOf(removed)] }, context)
        return true
      }),
  }
}

function creationOptions(
  user: User,
  of: {
    readonly challenge: string
    readonly party: ReturnType<typeof partyOf>
    readonly handle: string | undefined
    readonly present: readonly object[]
  },
): JsonMembers {
  const name = user.email ?? user.name ?? user.id
  return {
    challenge: of.challenge,
    rp: { id: of.party?.id, name: of.party?.id },
    user: { id: of.handle, name, displayName: user.name ?? name },
    pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: 'public-key', alg })),
    timeout: CHALLENGE_SECONDS * 1_000,
    attestation: 'none',
    excludeCredentials: of.present,
    authenticatorSelection: { residentKey: 'preferred', userVerification: 'preferred' },
  }
}

async function store(tx: Queries, user: string, { name, key }: { name: string; key: Registered }): Promise<boolean> {
  const stored = await tx.query(
    `insert into passkey (credential_id, user_id, name, public_key, counter, synced, transports)
     select $1, user_id, $3, $4, $5, $6, $7 from user_account where user_id = $2 on conflict do nothing returning 1`,
    [key.id, user, nameOf(name), key.publicKey, key.counter, key.synced, key.transports],
  )
  return stored.length > 0
}

async function prove(
  { sql, clock, log }: Pick<PasskeysDeps, 'sql' | 'clock' | 'log'>,
  assertion: NonNullable<ReturnType<typeof parseAssertion>>,
  {
    user,
    take,
    party,
  }: Pick<Parameters<typeof verifyAssertion>[2], 'take' | 'party'> & { readonly user: string | null },
): ReturnType<Passkeys['prove']> {
  const { id, userHandle } = assertion
  const [key] = await sql.query<{ user: string; publicKey: string; synced: boolean; handle: string }>(KEY, [id])
  // WebAuthn level 3, section 7.2, step 6: without a known person, the user handle from the authenticator names the person.
  const isTheirs =
    user === null ? userHandle === key?.handle : user === key?.user && (userHandle ?? key.handle) === key.handle
  if (key === undefined || !isTheirs) return null
  const proven = await verifyAssertion(assertion, { id, ...key }, { take, party, userVerification: user === null })
  if (proven === null) return null
  const used = await sql.query(USE, [id, proven.counter, clock() / 1_000])
  if (used.length > 0) return { user: key.user, synced: key.synced }
  // An info line, because repeated warnings are only counted.
  log.info({ event: 'passkey_counter_went_back', user: key.user, passkey: id, counter: proven.counter })
  return null
}

const nameOf = (given: string): string =>
  given
    .replace(/\p{Cc}/gu, '')
    .trim()
    .slice(0, NAME_CHARACTERS_MAX)
    .trim() || 'Passkey'
