/** External OpenID providers, registered by administrators, where people may sign in. */

import type { Sql } from '../../../engine/store/directory.ts'
import { lockJournal } from '../../../engine/store/journal-lock.ts'
import { type MasterKeys, open, seal } from '../../../shared/base/encryption.ts'
import type { WriteContext } from '../../../shared/domain/change.ts'
import { PdpError } from '../../../shared/domain/errors.ts'
import { ENVIRONMENT } from '../../../shared/domain/journal.ts'
import type { AppendJournal } from '../../issuer/append.ts'
import { PROVIDER_PURPOSE } from '../../issuer/keys/sealed-names.ts'

export const AUTH_METHODS = ['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none'] as const
const WITHOUT_SECRET: ReadonlySet<string> = new Set(['private_key_jwt', 'none'])
export type ProviderDocument = {
  readonly issuer: string
  readonly client_id: string
  /** The name on the button. */
  readonly name: string
  readonly token_endpoint_auth_method?: (typeof AUTH_METHODS)[number]
  /** Scopes to ask for, besides `openid`. */
  readonly scopes?: readonly string[]
  /** Domains of which one must have the person's verified address; absent: any address is accepted. */
  readonly email_domains?: readonly string[]
  /** The organizations whose active members may use the provider; absent: everybody may. */
  readonly organizations?: readonly string[]
  readonly creates_accounts?: boolean
  /** The organization whose clients manage the provider. People who have something elsewhere cannot sign in by it. */
  readonly organization?: string
  /** True: with the provider's assertions, clients here get tokens for linked people. */
  readonly identity_assertions?: boolean
  /** Values of the provider's `acr` that count as two factors. */
  readonly trusted_acr?: readonly string[]
}
export type IdentityProvider = ProviderDocument & { readonly id: string }
export type ProviderWithSecret = IdentityProvider & { readonly secret: string | null }
export type IdentityProviders = {
  list(): Promise<readonly IdentityProvider[]>
  find(id: string): Promise<ProviderWithSecret | null>
  /** The providers for pages of this organization; null: pages of no organization. */
  offered(organization: string | null): Promise<readonly Pick<IdentityProvider, 'id' | 'name'>[]>
  /**
   * Stores a provider; false when it is new. `secret` null: the stored one stays. Throws PdpError `conflict` when another provider
   * has the issuer, and `request_invalid` when a secret is missing.
   */
  put(
    id: string,
    provider: ProviderDocument & { readonly secret: string | null },
    context: WriteContext,
  ): Promise<boolean>
  remove(id: string, context: WriteContext): Promise<boolean>
}

type Row = { readonly id: string; readonly document: ProviderDocument; readonly sealed: string | null }
const COLUMNS = 'provider_id as id, document, secret_sealed as sealed'

export function createIdentityProviders(deps: {
  readonly issuer: string
  readonly sql: Sql
  readonly appendJournal: AppendJournal
  readonly masterKeys: MasterKeys
}): IdentityProviders {
  const { sql, appendJournal, masterKeys } = deps
  const keys = () => masterKeys.derive(PROVIDER_PURPOSE)

  return {
    async list() {
      const rows = await sql.query<Row>(`select ${COLUMNS} from identity_provider order by provider_id`)
      return rows.map(({ id, document }) => ({ id, ...document }))
    },
    async find(id) {
      const [row] = await sql.query<Row>(`select ${COLUMNS} from identity_provider where provider_id = $1`, [id])
      if (row === undefined) return null
      return { id, ...row.document, secret: row.sealed === null ? null : open(keys(), id, row.sealed) }
    },
    offered: (organization) =>
      sql.query(
        `select provider_id as id, document ->> 'name' as name from identity_provider
         where document -> 'organizations' is null or document -> 'organizations' ? $1 order by 2, 1`,
        [organization ?? ''],
      ),
    put: (id, { secret, ...document }, context) =>
      sql.transaction(async (tx) => {
        if (document.issuer === deps.issuer) throw new PdpError('conflict', 'this is our own issuer')
        // Refused, because one key signs all our tokens with `iss` as our issuer: any of them could pass as our assertion for this client.
        if (document.client_id === deps.issuer && document.token_endpoint_auth_method === 'private_key_jwt')
          throw new PdpError('conflict', 'client_id is our own issuer')
        await appendJournal(tx, ENVIRONMENT, [{ kind: 'identity_provider', id, op: 'write' }], context)
        const [before] = await tx.query<Row>(`select ${COLUMNS} from identity_provider where provider_id = $1`, [id])
        const [other] = await tx.query<{ id: string }>(
          'select provider_id as id from identity_provider where issuer = $1 and provider_id <> $2',
          [document.issuer, id],
        )
        if (other !== undefined) throw new PdpError('conflict', `identity provider ${other.id} has this issuer`)
        const sealed = secret === null ? null : seal(keys(), id, secret)
        await tx.query(
          `insert into identity_provider (provider_id, issuer, document, secret_sealed) values ($1, $2, $3::jsonb, $4)
           on conflict (provider_id) do update set issuer = excluded.issuer, document = excluded.document,
             secret_sealed = excluded.secret_sealed`,
          [id, document.issuer, JSON.stringify(document), sealedSecret(before, document, sealed)],
        )
        return before !== undefined
      }),
    remove: (id, context) =>
      sql.transaction(async (tx) => {
        await lockJournal(tx, ENVIRONMENT)
        const gone = await tx.query('delete from identity_provider where provider_id = $1 returning 1', [id])
        if (gone.length === 0) return false
        await appendJournal(tx, ENVIRONMENT, [{ kind: 'identity_provider', id, op: 'delete' }], context)
        return true
      }),
  }
}

/** `given`: the secret that came with the document. Throws PdpError `request_invalid` when one is missing. */
function sealedSecret(before: Row | undefined, wanted: ProviderDocument, given: string | null): string | null {
  if (WITHOUT_SECRET.has(wanted.token_endpoint_auth_method ?? '')) return null
  if (given !== null) return given
  // A stored secret stays only while issuer and client are the same.
  const isSame = before?.document.issuer === wanted.issuer && before.document.client_id === wanted.client_id
  if (isSame && before.sealed !== null) return before.sealed
  throw new PdpError('request_invalid', 'client_secret is needed', {
    issues: [{ place: '/client_secret', message: 'is needed for a new issuer or client_id' }],
  })
}
