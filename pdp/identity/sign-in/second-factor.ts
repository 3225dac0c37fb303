/** A person's authenticator app: its secret is stored sealed, and each of its codes is good for one sign-in. */
import { randomBytes } from 'node:crypto'
import type { WriteContext } from '../../domain/change.ts'
import { PdpError } from '../../domain/errors.ts'
import { DIRECTORY } from '../../domain/log.ts'
import { type CredentialChange, credentialChanged } from '../../domain/outbox/events.ts'
import { type MasterKeys, open, seal } from '../../process/encryption.ts'
import type { Directory, Sql } from '../../store/directory.ts'
import { AUTHENTICATOR_PURPOSE, nameOfAuthenticator } from '../keys/sealed-names.ts'
import { lockLog } from '../oauth/log-lock.ts'
import type { AppendEvents, AppendLog, IdentityEvent, Revocations } from '../tokens/revocation.ts'
import { base32, otpauthUri, stepOf, TOTP_SECRET_BYTES } from './totp.ts'

export type SecondFactor = {
  has(user: string): Promise<boolean>
  /** True for a code of the present that is used here for the first time. Throws PdpError `store_unavailable`. */
  accept(user: string, code: string): Promise<boolean>
  /** The secret is shown this once. Throws PdpError `not_found`, and `conflict` when there is one already. */
  enroll(user: string, context: WriteContext): Promise<{ readonly secret: string; readonly uri: string }>
  /** Ends the person's sign-ins with it. False when there was none. */
  remove(user: string, context: WriteContext): Promise<boolean>
}

export function createSecondFactor(deps: {
  readonly issuer: string
  readonly sql: Sql
  readonly directory: Pick<Directory, 'user'>
  readonly appendLog: AppendLog
  readonly appendEvents: AppendEvents
  readonly revocations: Pick<Revocations, 'endUser'>
  readonly masterKeys: MasterKeys
  readonly clock: () => number
}): SecondFactor {
  const { issuer, sql, directory, appendLog, appendEvents, revocations, clock } = deps
  const keys = () => deps.masterKeys.derive(AUTHENTICATOR_PURPOSE)

  return {
    async has(user) {
      const rows = await sql.query('select 1 from authenticator where user_id = $1', [user])
      return rows.length > 0
    },
    async accept(user, code) {
      const [row] = await sql.query<{ sealed: string }>(
        'select secret_sealed as sealed from authenticator where user_id = $1',
        [user],
      )
      if (row === undefined) return false
      const secret = Buffer.from(open(keys(), nameOfAuthenticator(user), row.sealed), 'base64url')
      const step = stepOf(code, { secret, nowMs: clock() })
      if (step === null) return false
      // RFC 6238 section 5.2: once. The database decides who of several was first, on whichever node.
      const used = await sql.query(
        `update authenticator set used_step = $2
         where user_id = $1 and used_step < $2 and secret_sealed = $3 returning 1`,
        [user, step, row.sealed],
      )
      return used.length > 0
    },
    async enroll(user, context) {
      const secret = randomBytes(TOTP_SECRET_BYTES)
      const person = await directory.user(user)
      if (person === null) throw new PdpError('not_found', `there is no user ${user}`)
      await sql.transaction(async (tx) => {
        await appendLog(tx, DIRECTORY, [{ kind: 'authenticator', id: user, op: 'write' }], context)
        const stored = await tx.query(
          `insert into authenticator (user_id, secret_sealed) select user_id, $2 from user_account where user_id = $1
           on conflict do nothing returning 1`,
          [user, seal(keys(), nameOfAuthenticator(user), secret.toString('base64url'))],
        )
        if (stored.length === 0) throw new PdpError('conflict', `${user} has an authenticator; delete it first`)
        await appendEvents(tx, [credentialEvent(user, 'create', context)])
      })
      return { secret: base32(secret), uri: otpauthUri({ issuer, account: person.email ?? user, secret }) }
    },
    remove: (user, context) =>
      sql.transaction(async (tx) => {
        await lockLog(tx, DIRECTORY)
        const removed = await tx.query('delete from authenticator where user_id = $1 returning 1', [user])
        if (removed.length === 0) return false
        await appendLog(tx, DIRECTORY, [{ kind: 'authenticator', id: user, op: 'delete' }], context)
        await revocations.endUser(tx, user, context)
        await appendEvents(tx, [credentialEvent(user, 'delete', context)])
        return true
      }),
  }
}

/** CAEP calls an authenticator app `app`. */
const credentialEvent = (user: string, changed: CredentialChange, { actor }: WriteContext): IdentityEvent => ({
  ...credentialChanged({ user, credential: 'app', changed, actor }),
  tenantsOf: user,
})
