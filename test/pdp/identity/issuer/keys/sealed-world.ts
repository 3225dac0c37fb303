import { afterEach, beforeEach, inject } from 'vitest'
import { createPdp } from '../../../../../pdp/engine/decision-point/create-pdp.ts'
import type { Sql } from '../../../../../pdp/engine/store/directory.ts'
import { postgresDirectory } from '../../../../../pdp/engine/store/postgres/directory.ts'
import { appendJournal } from '../../../../../pdp/engine/store/postgres/journal.ts'
import { appendEvents } from '../../../../../pdp/engine/store/postgres/outbox.ts'
import { openPostgres } from '../../../../../pdp/engine/store/postgres/postgres.ts'
import { createIdentity, type Identity } from '../../../../../pdp/identity/identity.ts'
import { type RotationReport, rotateMasterKey } from '../../../../../pdp/identity/issuer/keys/master-key-rotation.ts'
import type { SharedMasterKeys } from '../../../../../pdp/identity/issuer/keys/master-keys.ts'
import { createRecordSecrets } from '../../../../../pdp/identity/issuer/keys/record-secrets.ts'
import { SEALED_PLACES } from '../../../../../pdp/identity/issuer/keys/sealed-places.ts'
import { storeKey } from '../../../../../pdp/identity/issuer/keys/signing-keys.ts'
import { createRevocations } from '../../../../../pdp/identity/issuer/tokens/revocation.ts'
import { createSecondFactor } from '../../../../../pdp/identity/people/factors/second-factor.ts'
import { type MasterKeys, masterKeysOf, open } from '../../../../../pdp/shared/base/encryption.ts'
import { alignRows } from '../../../../../pdp/signals/receiver/streams.ts'
import { sealAuthorization } from '../../../../../pdp/signals/transmitter/configuration.ts'
import { createStream } from '../../../../../pdp/signals/transmitter/streams.ts'
import { codeOf } from '../../../../support/authenticator.ts'
import { openTestDatabase } from '../../../../support/database.ts'
import { CONTEXT, DECOY_HASH, logInto, MASTER_KEY } from '../../harness.ts'

export const NEXT = Buffer.alloc(32, 9)
export const THIRD = Buffer.alloc(32, 11)
const ISSUER = 'https://id.example'
const FOREIGN = 'https://login.partner.example'

export let connectionString: string
export let sql: Sql
let store: Awaited<ReturnType<typeof openPostgres>>['store']
export const ends: (() => Promise<unknown>)[] = []
/** A world for each test of the file that calls it: files that share a process share this module, and not its hooks. */
export function useSealedWorld(): void {
  beforeEach(async () => {
    const database = await openTestDatabase()
    connectionString = database.connectionString
    const opened = await openPostgres({ connectionString, poolCountMax: 4 })
    ;({ sql, store } = opened)
    for (const key of inject('signingKeys')) await storeKey(sql, key)
    ends.push(() => database.drop(), opened.close)
  })
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end()
  })
}

export const given = (next: Buffer | null = NEXT) => ({ current: MASTER_KEY, next })
export const rotate = (over: Partial<Parameters<typeof rotateMasterKey>[0]> = {}): Promise<RotationReport> =>
  rotateMasterKey({
    ...{ sql, current: MASTER_KEY, next: NEXT, dryRun: false, progress: () => undefined, counted: () => undefined },
    ...over,
  })

/** Requests that the identity service sends to others, as a partner's introspection endpoint sees them. */
export async function identityWith(masterKeys: MasterKeys, sent: string[] = []): Promise<Identity> {
  const identity = await createIdentity({
    ...{ issuer: ISSUER, sql, store, directory: postgresDirectory(sql), pdp: createPdp({ store }) },
    ...{ appendJournal, appendEvents, masterKeys, decoyHash: DECOY_HASH, clock: Date.now, log: logInto([]) },
    fetch: async (_url: unknown, init?: RequestInit) => {
      sent.push(new Headers(init?.headers).get('authorization') ?? '')
      return Response.json({ active: false })
    },
  })
  ends.push(() => identity.close())
  return identity
}

/** Something in every place. The secret of Eve's authenticator. */
export async function fill(identity: Identity, sessions = 3): Promise<string> {
  const directory = postgresDirectory(sql)
  await directory.putUser({ id: 'eve', email: null, emailVerified: false, name: null }, CONTEXT)
  const { secret } = await identity.secondFactor.enroll('eve', CONTEXT)
  await identity.hook.configure({ url: 'https://hook.example/', secret: 'the secret of the hook' }, CONTEXT)
  const introspection = {
    endpoint: `${FOREIGN}/introspect`,
    client_id: 'portcullis',
    client_secret: 'the-partner-secret',
  }
  const ssf = { delivery: 'push', authorization: { token: 'the-token-for-their-transmitter' } } as const
  await identity.issuers.put(
    FOREIGN,
    { subject_prefix: 'partner:', audience: 'https://api.example/', organizations: ['acme'], introspection, ssf },
    CONTEXT,
  )
  await identity.identityProviders.put(
    'partner',
    { issuer: FOREIGN, client_id: 'portcullis', name: 'Partner', secret: 'the-secret-for-sign-in' },
    CONTEXT,
  )
  await alignRows(sql, masterKeysOf(MASTER_KEY))
  await directory.putClient({ id: 'siem', app: null, organization: null, metadata: {} }, CONTEXT)
  const stream = {
    id: 'stream',
    endpointUrl: 'https://siem.example/',
    authorizationSealed: sealAuthorization(masterKeysOf(MASTER_KEY), 'stream', 'Bearer of the receiver'),
    eventsRequested: null,
    subjectFormat: 'complex',
    description: null,
  } as const
  await createStream(sql, { client: 'siem', organization: null }, stream)
  const secrets = createRecordSecrets({ masterKeys: masterKeysOf(MASTER_KEY) })
  const rows = Array.from({ length: sessions }, (_, i) => {
    const key = secrets.keyOf('Session', `session-${i}`)
    return { key, payload: JSON.stringify(secrets.seal('Session', key, { jti: `session-${i}`, accountId: 'eve' })) }
  })
  await sql.query(
    `insert into oidc_record (kind, id, payload, expires_at)
     select 'Session', k, p::jsonb, now() + interval '1 day' from unnest($1::text[], $2::text[]) as n(k, p)`,
    [rows.map(({ key }) => key), rows.map(({ payload }) => payload)],
  )
  return secret
}

/** Whether Eve's authenticator is good for a sign-in. */
export async function accepts(masterKeys: MasterKeys, secret: string): Promise<boolean> {
  const clock = Date.now
  const revocations = createRevocations({ sql, appendEvents, clock })
  const parts = {
    issuer: ISSUER,
    sql,
    directory: postgresDirectory(sql),
    appendJournal,
    appendEvents,
    revocations,
    masterKeys,
    clock,
  }
  return (await createSecondFactor(parts).accept('eve', codeOf(secret, clock()))).by === 'app'
}

/** How many values of each place these keys decrypt, and how many they do not. */
export async function readable(
  ...keys: readonly [Buffer, ...Buffer[]]
): Promise<readonly [opened: number, closed: number]> {
  let [opened, closed] = [0, 0]
  for (const place of SEALED_PLACES)
    for (const { key, sealed } of await place.page(sql, null, 100_000)) {
      try {
        open(masterKeysOf(...keys).derive(place.purpose), place.nameOf(key), sealed)
        opened += 1
      } catch {
        closed += 1
      }
    }
  return [opened, closed]
}
/** Two signing keys, one authenticator, one hook, one issuer, with its transmitter and the stream from it, and a stream of ours, and an identity provider. */
export const LASTING = 9

export async function announced(masterKeys: SharedMasterKeys): Promise<() => Promise<void>> {
  const end = await masterKeys.announce({ log: logInto([]), everyMs: 20 })
  ends.push(end)
  return end
}
