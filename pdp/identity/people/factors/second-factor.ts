/** Second factors: codes of an app, whose secret is stored encrypted, and recovery codes. Each code works once. */
import { randomBytes } from 'node:crypto'
import { appendArrivals } from '../../../engine/store/arrivals.ts'
import type { Directory, Queries, Sql, User } from '../../../engine/store/directory.ts'
import { lockPerson } from '../../../engine/store/journal-lock.ts'
import { type MasterKeys, open, seal } from '../../../shared/base/encryption.ts'
import type { WriteContext } from '../../../shared/domain/change.ts'
import { PdpError } from '../../../shared/domain/errors.ts'
import { DIRECTORY } from '../../../shared/domain/journal.ts'
import type { AppendEvents } from '../../issuer/append.ts'
import { AUTHENTICATOR_PURPOSE, nameOfAuthenticator } from '../../issuer/keys/sealed-names.ts'
import { isStillSignedIn, type SignedInBy } from '../../issuer/sign-in-validity.ts'
import type { Revocations } from '../../issuer/tokens/revocation.ts'
import { createCredentialChanges, credentialOf } from './credential-events.ts'
import { createRecoveryCodes, isRecoveryCode, type RecoveryCodes } from './recovery-codes.ts'
import { base32, otpauthUri, stepOf, TOTP_SECRET_BYTES } from './totp.ts'

export type Secret = { readonly secret: string; readonly uri: string }
/** `left`: recovery codes that the person has now. */
export type CodeOutcome =
  | { readonly by: 'app' }
  | { readonly by: 'recovery'; readonly left: number }
  | { by: 'nothing' }

export type Kinds = { readonly app: boolean; readonly passkey: boolean }

export type SecondFactor = {
  has(user: string): Promise<boolean>
  kinds(user: string): Promise<Kinds>
  /** Accepts a valid, unused code of the app or recovery code. Throws PdpError `store_unavailable`. */
  accept(user: string, code: string): Promise<CodeOutcome>
  /** Stores a new secret, shown only now. Throws PdpError `not_found`, and `conflict` when there is one already. */
  enroll(user: string, context: WriteContext): Promise<Secret>
  /** Makes a secret that does not count yet, also sealed (encrypted) for this session of the person. */
  propose(user: User, session: string): Secret & { readonly sealed: string }
  /** Opens a secret from `propose`. Null: it is of another session, or too old. */
  proposed(user: User, session: string, sealed: string): Secret | null
  /**
   * Stores the proposed secret if the code proves that the app has it. Returns recovery codes, which are shown only now. `wrong`: the code
   * is wrong; `present`: the person already has an authenticator; null: the proposal is too old.
   */
  confirm(
    user: User,
    proposal: { readonly session: string; readonly sealed: string; readonly code: string },
    context: WriteContext,
  ): Promise<'wrong' | 'present' | readonly string[] | null>
  recoveryCodesLeft(user: string): Promise<number>
  /** New recovery codes in place of the old ones; null: the person has no second factor, or was signed out meanwhile. */
  renewRecoveryCodes(user: string, by: SignedInBy, context: WriteContext): Promise<readonly string[] | null>
  /** Removes the app and ends sign-ins; false: there was none, or the person was signed out. `by`: null for an administrator. */
  remove(user: string, by: SignedInBy | null, context: WriteContext): Promise<boolean>
  /** Removes all passkeys of a person who has lost them, and ends sign-ins. */
  removePasskeys(user: string, context: WriteContext): Promise<boolean>
}

const KINDS = `select exists (select 1 from authenticator where user_id = $1) as app,
  exists (select 1 from passkey where user_id = $1) as passkey`
/** How long a person may take to confirm a new authenticator with its first code. */
const PROPOSED_MS_MAX = 900_000

type SecondFactorDeps = {
  readonly issuer: string
  readonly sql: Sql
  readonly directory: Pick<Directory, 'user'>
  readonly appendEvents: AppendEvents
  readonly revocations: Pick<Revocations, 'endUser'>
  readonly masterKeys: MasterKeys
  readonly clock: () => number
}

export function createSecondFactor(deps: SecondFactorDeps): SecondFactor {
  const { issuer, sql, directory, appendEvents, revocations, masterKeys, clock } = deps
  const recovery = createRecoveryCodes({ sql })
  const changes = createCredentialChanges({ appendEvents, revocations })
  const app = createApp({ issuer, sql, directory, masterKeys, clock, recovery, changes })

  async function kinds(user: string, at: Queries = sql): Promise<Kinds> {
    const [row] = await at.query<Kinds>(KINDS, [user])
    return row ?? { app: false, passkey: false }
  }
  const has = async (user: string, at: Queries = sql): Promise<boolean> => {
    const { app: hasApp, passkey } = await kinds(user, at)
    return hasApp || passkey
  }

  return {
    ...app,
    has: (user) => has(user),
    kinds: (user) => kinds(user),
    async accept(user, code) {
      if (!isRecoveryCode(code))
        return { by: (await acceptOfApp({ sql, masterKeys, clock }, user, code)) ? 'app' : 'nothing' }
      const left = await recovery.use(user, code, { actor: `user:${user}`, requestId: '' })
      return left === null ? { by: 'nothing' } : { by: 'recovery', left }
    },
    recoveryCodesLeft: recovery.left,
    renewRecoveryCodes: (user, by, context) =>
      sql.transaction(async (tx) => {
        await lockPerson(tx, user)
        if (!(await isStillSignedIn(tx, user, by)) || !(await has(user, tx))) return null
        await appendArrivals(tx, DIRECTORY, [{ kind: 'recovery_code', id: user, op: 'write' }], context)
        return recovery.renew(tx, user)
      }),
    removePasskeys: (user, context) =>
      sql.transaction(async (tx) => {
        await lockPerson(tx, user)
        const removed = await tx.query<{ transports: readonly string[] }>(
          'delete from passkey where user_id = $1 returning transports',
          [user],
        )
        if (removed.length === 0) return false
        await changes.removed(tx, { user, kind: 'passkey', credentials: removed.map(credentialOf) }, context)
        return true
      }),
    remove: (user, by, context) =>
      sql.transaction(async (tx) => {
        await lockPerson(tx, user)
        if (by !== null && !(await isStillSignedIn(tx, user, by))) return false
        const removed = await tx.query('delete from authenticator where user_id = $1 returning 1', [user])
        if (removed.length === 0) return false
        await changes.removed(tx, { user, kind: 'authenticator', credentials: ['app'] }, context)
        return true
      }),
  }
}

/** The authenticator app: makes its secret, which counts after its first code. */
function createApp(
  deps: Pick<SecondFactorDeps, 'issuer' | 'sql' | 'directory' | 'masterKeys' | 'clock'> & {
    readonly recovery: RecoveryCodes
    readonly changes: ReturnType<typeof createCredentialChanges>
  },
): Pick<SecondFactor, 'enroll' | 'propose' | 'proposed' | 'confirm'> {
  const { issuer, sql, directory, masterKeys, clock, recovery, changes } = deps
  const keys = () => masterKeys.derive(AUTHENTICATOR_PURPOSE)
  const shown = (secret: Buffer, { email, id }: User): Secret => ({
    secret: base32(secret),
    uri: otpauthUri({ issuer, account: email ?? id, secret }),
  })

  function proposal(user: string, session: string, sealed: string): Buffer | null {
    try {
      const { secret, atMs } = JSON.parse(open(keys(), proposedAs(user, session), sealed))
      return clock() - atMs <= PROPOSED_MS_MAX ? Buffer.from(secret, 'base64url') : null
    } catch {
      return null
    }
  }

  return {
    async enroll(user, context) {
      const secret = randomBytes(TOTP_SECRET_BYTES)
      const person = await directory.user(user)
      if (person === null) throw new PdpError('not_found', `there is no user ${user}`)
      await sql.transaction(async (tx) => {
        await lockPerson(tx, user)
        if (!(await storeSecret(tx, keys(), { user, secret, step: 0 })))
          throw new PdpError('conflict', `${user} has an authenticator; delete it first`)
        await changes.added(tx, { user, kinds: ['authenticator'], credential: 'app' }, context)
      })
      return shown(secret, person)
    },
    propose(user, session) {
      const secret = randomBytes(TOTP_SECRET_BYTES)
      const text = JSON.stringify({ secret: secret.toString('base64url'), atMs: clock() })
      return { ...shown(secret, user), sealed: seal(keys(), proposedAs(user.id, session), text) }
    },
    proposed(user, session, sealed) {
      const secret = proposal(user.id, session, sealed)
      return secret === null ? null : shown(secret, user)
    },
    async confirm(user, { session, sealed, code }, context) {
      const secret = proposal(user.id, session, sealed)
      if (secret === null) return null
      const step = stepOf(code, { secret, nowMs: clock() })
      if (step === null) return 'wrong'
      return sql.transaction(async (tx) => {
        await lockPerson(tx, user.id)
        if (!(await isStillSignedIn(tx, user.id, { session }))) return null
        if (!(await storeSecret(tx, keys(), { user: user.id, secret, step }))) return 'present'
        const codes = await recovery.renew(tx, user.id)
        const kinds = ['authenticator', 'recovery_code'] as const
        await changes.added(tx, { user: user.id, kinds, credential: 'app' }, context)
        return codes
      })
    },
  }
}

/** `step`: the time step of a code that was used already. False when there is an authenticator. */
async function storeSecret(
  tx: Queries,
  keys: ReturnType<MasterKeys['derive']>,
  { user, secret, step }: { readonly user: string; readonly secret: Buffer; readonly step: number },
): Promise<boolean> {
  const stored = await tx.query(
    `insert into authenticator (user_id, secret_sealed, used_step)
     select user_id, $2, $3 from user_account where user_id = $1 on conflict do nothing returning 1`,
    [user, seal(keys, nameOfAuthenticator(user), secret.toString('base64url')), step],
  )
  return stored.length > 0
}

async function acceptOfApp(
  { sql, masterKeys, clock }: Pick<SecondFactorDeps, 'sql' | 'masterKeys' | 'clock'>,
  user: string,
  code: string,
): Promise<boolean> {
  const [row] = await sql.query<{ sealed: string }>(
    'select secret_sealed as sealed from authenticator where user_id = $1',
    [user],
  )
  if (row === undefined) return false
  const keys = masterKeys.derive(AUTHENTICATOR_PURPOSE)
  const secret = Buffer.from(open(keys, nameOfAuthenticator(user), row.sealed), 'base64url')
  const step = stepOf(code, { secret, nowMs: clock() })
  if (step === null) return false
  // A code counts once (RFC 6238 section 5.2). On all nodes, the database decides which request came first.
  const used = await sql.query(
    `update authenticator set used_step = $2
     where user_id = $1 and used_step < $2 and secret_sealed = $3 returning 1`,
    [user, step, row.sealed],
  )
  return used.length > 0
}

const proposedAs = (user: string, session: string): string => `authenticator proposed to ${user} in ${session}`
