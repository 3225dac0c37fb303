/** Creates many users in one transaction: all, or none and the list of what is wrong. */
import type { Change } from '../../../shared/domain/change.ts'
import { DIRECTORY } from '../../../shared/domain/journal.ts'
import { EXTERNAL } from '../../../shared/domain/names.ts'
import type { Directory, ImportedUser, Queries } from '../directory.ts'
import { lockJournal } from '../journal-lock.ts'
import { appendJournal } from './journal.ts'

type Options = Parameters<Directory['importUsers']>[1]
type Issue = { readonly index: number; readonly message: string }

export async function importUsers(
  tx: Queries,
  users: readonly ImportedUser[],
  { context, dryRun }: Options,
): Promise<readonly Issue[]> {
  if (users.length === 0) return []
  // The journal's lock makes other transactions wait that would take an id or an address.
  await lockJournal(tx, DIRECTORY)
  const issues = [...reservedIds(users), ...(await takenIds(tx, users)), ...(await takenAddresses(tx, users))]
  if (issues.length > 0) return issues.sort((a, b) => a.index - b.index)
  if (!dryRun) await insert(tx, users, context)
  return []
}

const reservedIds = (users: readonly ImportedUser[]): readonly Issue[] =>
  users.flatMap(({ id }, index) =>
    id.startsWith(EXTERNAL)
      ? [{ index, message: `ids that begin with ${EXTERNAL} are reserved for subjects of other issuers` }]
      : [],
  )

async function takenIds(tx: Queries, users: readonly ImportedUser[]): Promise<readonly Issue[]> {
  const rows = await tx.query<{ nr: number; kind: string | null; deleted: boolean }>(
    `select g.nr::integer - 1 as nr, p.kind, p.deleted_at is not null as deleted
     from (select id, nr, min(nr) over (partition by id) as first from unnest($1::text[]) with ordinality as g(id, nr)) g
       left join principal p on p.id = g.id
     where g.nr > g.first or (p.id is not null and not (p.kind = 'client' and p.deleted_at is not null))`,
    [users.map(({ id }) => id)],
  )
  return rows.map(({ nr, kind, deleted }) => ({
    index: nr,
    message:
      kind === null
        ? 'an earlier line has this id'
        : deleted
          ? 'the id was deleted, and cannot be used again'
          : `the id belongs to a ${kind} already`,
  }))
}

async function takenAddresses(tx: Queries, users: readonly ImportedUser[]): Promise<readonly Issue[]> {
  const rows = await tx.query<{ nr: number; stored: boolean }>(
    `select g.nr::integer - 1 as nr, u.user_id is not null as stored
     from (select lower(email) as email, nr, min(nr) over (partition by lower(email)) as first
           from unnest($1::text[]) with ordinality as g(email, nr) where email is not null) g
       left join user_account u on lower(u.email) = g.email
     where g.nr > g.first or u.user_id is not null`,
    [users.map(({ email }) => email)],
  )
  return rows.map(({ nr, stored }) => ({
    index: nr,
    message: stored ? 'the e-mail address belongs to another user' : 'an earlier line has this e-mail address',
  }))
}

async function insert(tx: Queries, users: readonly ImportedUser[], context: Options['context']): Promise<void> {
  const changes = users.map(({ id }): Change => ({ kind: 'user', id, op: 'write' }))
  await appendJournal(tx, DIRECTORY, changes, context)
  // takenIds has refused all other ids in use, so an id that conflicts is that of a deleted client.
  await tx.query(
    `insert into principal (id, kind) select id, 'user' from unnest($1::text[]) as u(id)
     on conflict (id) do update set kind = 'user', deleted_at = null`,
    [users.map(({ id }) => id)],
  )
  await tx.query(
    `insert into user_account (user_id, email, email_verified, name, password_hash)
     select * from unnest($1::text[], $2::text[], $3::boolean[], $4::text[], $5::text[])`,
    [
      users.map(({ id }) => id),
      users.map(({ email }) => email),
      users.map(({ emailVerified }) => emailVerified),
      users.map(({ name }) => name),
      users.map(({ passwordHash }) => passwordHash),
    ],
  )
}
