-- The whole identity service: sender-constrained grants, the token hook, trusted issuers, and the looks-up they need.

-- The first token of the grant was bound to a DPoP key: a refresh without a proof would be a downgrade.
alter table grant_binding add column sender_constrained boolean not null default false;

create table token_hook (
  singleton boolean primary key default true check (singleton),
  url text not null,
  secret_sealed text not null
);

-- Issuers besides our own whose access tokens the decision endpoints accept.
create table trusted_issuer (
  issuer text collate "C" primary key,
  document jsonb not null
);

-- Sessions and backchannel requests of a person.
create index oidc_record_account on oidc_record ((payload ->> 'accountId'), kind)
  where kind in ('Session', 'BackchannelAuthenticationRequest');
