/** Lists all tables with values under the master key, and how their rows are read and replaced. */
import type { Queries } from '../../../engine/store/directory.ts'
import { RECEIVED_STREAM_SEALED_AS, TRANSMITTER_SEALED_AS } from '../../../signals/receiver/registration.ts'
import { AUTHORIZATION_PURPOSE, nameOfAuthorization } from '../../../signals/transmitter/configuration.ts'
import {
  AUTHENTICATOR_PURPOSE,
  HOOK_SEALED_AS,
  INTROSPECTION_SEALED_AS,
  nameOfAuthenticator,
  nameOfRecord,
  PROVIDER_PURPOSE,
  RECORD_PURPOSE,
  SIGNING_KEY_PURPOSE,
} from './sealed-names.ts'

export type SealedRow = { readonly key: readonly string[]; readonly sealed: string }
export type SealedPlace = {
  /** The kind of value, in words for people. */
  readonly what: string
  readonly purpose: string
  /** True for values that end within days: those of sign-ins and requests that are not finished. */
  readonly transient: boolean
  /** The name under which the row is sealed. */
  nameOf(key: readonly string[]): string
  /** A page of rows, ordered by key, that begins after `after`; null: at the first one. */
  page(sql: Queries, after: readonly string[] | null, countMax: number): Promise<readonly SealedRow[]>
  /** Counts the rows. */
  count(sql: Queries): Promise<number>
  /** Replaces rows in one statement and returns how many; a row that changed since it was read stays. */
  replace(sql: Queries, rows: readonly (SealedRow & { readonly replacement: string })[]): Promise<number>
}

export const SEALED_PLACES: readonly SealedPlace[] = [
  {
    what: 'sign-ins under way',
    purpose: RECORD_PURPOSE,
    transient: true,
    nameOf: ([kind = '', id = '']) => nameOfRecord(kind, id),
    ...rowsOf({
      table: 'oidc_record',
      key: ['kind', 'id'],
      sealed: "payload ->> 'sealed'",
      assign: "payload = jsonb_set(t.payload, '{sealed}', to_jsonb(n.replacement))",
    }),
  },
  {
    what: 'authenticators',
    purpose: AUTHENTICATOR_PURPOSE,
    transient: false,
    nameOf: ([user = '']) => nameOfAuthenticator(user),
    ...rowsOf({ table: 'authenticator', key: ['user_id'], sealed: 'secret_sealed' }),
  },
  {
    what: 'the token hook',
    purpose: HOOK_SEALED_AS,
    transient: false,
    nameOf: () => HOOK_SEALED_AS,
    ...rowsOf({ table: 'token_hook', key: ['url'], sealed: 'secret_sealed' }),
  },
  {
    what: 'identity providers',
    purpose: PROVIDER_PURPOSE,
    transient: false,
    nameOf: ([id = '']) => id,
    ...rowsOf({ table: 'identity_provider', key: ['provider_id'], sealed: 'secret_sealed' }),
  },
  {
    what: 'trusted issuers',
    purpose: INTROSPECTION_SEALED_AS,
    transient: false,
    nameOf: () => INTROSPECTION_SEALED_AS,
    ...rowsOf({
      table: 'trusted_issuer',
      key: ['issuer'],
      sealed: "document #>> '{introspection,secret_sealed}'",
      assign: "document = jsonb_set(t.document, '{introspection,secret_sealed}', to_jsonb(n.replacement))",
    }),
  },
  {
    what: 'credentials at transmitters',
    purpose: TRANSMITTER_SEALED_AS,
    transient: false,
    nameOf: () => TRANSMITTER_SEALED_AS,
    ...rowsOf({
      table: 'trusted_issuer',
      key: ['issuer'],
      sealed: "document #>> '{ssf,secret_sealed}'",
      assign: "document = jsonb_set(t.document, '{ssf,secret_sealed}', to_jsonb(n.replacement))",
    }),
  },
  {
    what: 'received streams',
    purpose: RECEIVED_STREAM_SEALED_AS,
    transient: false,
    nameOf: () => RECEIVED_STREAM_SEALED_AS,
    ...rowsOf({ table: 'received_stream', key: ['issuer'], sealed: 'authorization_sealed' }),
  },
  {
    what: 'endpoints of signal streams',
    purpose: AUTHORIZATION_PURPOSE,
    transient: false,
    nameOf: ([stream = '']) => nameOfAuthorization(stream),
    ...rowsOf({ table: 'signal_stream', key: ['stream_id'], sealed: 'authorization_sealed' }),
  },
  {
    what: 'signing keys',
    purpose: SIGNING_KEY_PURPOSE,
    transient: false,
    nameOf: ([kid = '']) => kid,
    ...rowsOf({ table: 'signing_key', key: ['kid'], sealed: 'private_jwk_sealed' }),
  },
]

function rowsOf({
  table,
  key,
  sealed,
  assign = `${sealed} = n.replacement`,
}: {
  readonly table: string
  readonly key: readonly [string, ...string[]]
  /** An SQL expression for the encrypted value. */
  readonly sealed: string
  /** An SQL assignment of `n.replacement` to it. Default: for a column. */
  readonly assign?: string
}): Pick<SealedPlace, 'page' | 'count' | 'replace'> {
  const columns = key.join(', ')
  const parameters = key.map((_, i) => `$${i + 2}`).join(', ')
  return {
    page: (sql, after, countMax) =>
      sql.query<SealedRow>(
        `select array[${columns}] as key, ${sealed} as sealed from ${table}
         where ${sealed} is not null ${after === null ? '' : `and (${columns}) > (${parameters})`}
         order by ${columns} limit $1`,
        [countMax, ...(after ?? [])],
      ),
    async count(sql) {
      const [found] = await sql.query<{ count: number }>(
        `select count(*)::int as count from ${table} where ${sealed} is not null`,
      )
      return found?.count ?? 0
    },
    async replace(sql, rows) {
      const arrays = [...key.map((_, i) => rows.map((row) => row.key[i])), rows.map((row) => row.sealed)]
      const given = [...arrays, rows.map((row) => row.replacement)]
      const names = [...key.map((_, i) => `k${i}`), 'former', 'replacement']
      const replaced = await sql.query(
        `update ${table} t set ${assign}
         from unnest(${given.map((_, i) => `$${i + 1}::text[]`).join(', ')}) as n(${names.join(', ')})
         where ${key.map((column, i) => `t.${column} = n.k${i}`).join(' and ')} and ${sealed} = n.former returning 1`,
        given,
      )
      return replaced.length
    },
  }
}
