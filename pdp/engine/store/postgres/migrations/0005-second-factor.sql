-- A second factor for people, and sign-ins that are over.

-- The authenticator app of a person (RFC 6238). No code of this time step or an earlier one is accepted again.
create table authenticator (
  user_id text collate "C" primary key references user_account on delete cascade,
  secret_sealed text not null,
  used_step bigint not null default 0
);

-- What a person signed in to before this moment is over, also where the sign-in was not yet finished.
alter table user_account add column signed_out_at timestamptz;
