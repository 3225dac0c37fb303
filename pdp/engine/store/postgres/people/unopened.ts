/** Accounts that somebody made for an address, and that nobody has ever opened: who proves the address may have them. */

/** Of a row of user_account. What a directory keeps shut is not among them. */
export const UNOPENED = `(not email_verified and password_hash is null and signed_out_at is distinct from 'infinity'
  and not exists (select 1 from passkey p where p.user_id = user_account.user_id)
  and not exists (select 1 from foreign_identity f where f.user_id = user_account.user_id))`
