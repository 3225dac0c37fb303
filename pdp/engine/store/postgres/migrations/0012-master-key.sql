-- The rotation of the master key. A key is known here by its fingerprint, from which no key can be computed.

create table master_key (
  singleton boolean primary key default true check (singleton),
  -- What is stored from now on is encrypted with this key.
  sealing text collate "C" not null,
  -- While a rotation is not complete: some of what is stored is still encrypted with this key.
  rotating_from text collate "C"
);

-- The running PDPs, so that a rotation begins only when each has both keys. Each repeats its row while it runs.
create table pdp_process (
  id text collate "C" primary key,
  master_keys text[] not null,
  sealing text collate "C" not null,
  seen_at timestamptz not null default now()
);
