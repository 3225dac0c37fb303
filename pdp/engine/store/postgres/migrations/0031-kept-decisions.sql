-- Decisions of all PDPs, for people who look for them: each denial, and all of a minute as counts. No decision reads them.
create table denied_decision (
  id bigint generated always as identity primary key,
  denied_at timestamptz not null,
  organization_id text collate "C" not null,
  subject text collate "C" not null,
  relation text not null,
  resource text collate "C" not null,
  reason text not null,
  route text not null,
  request_id text not null,
  decision_id text not null
);
create index denied_decision_organization on denied_decision (organization_id, id);
create index denied_decision_age on denied_decision (denied_at);
create table decision_count (
  organization_id text collate "C" not null,
  minute timestamptz not null,
  route text collate "C" not null,
  -- Of a denial; empty for what was allowed.
  reason text collate "C" not null,
  decisions_count bigint not null,
  primary key (organization_id, minute, route, reason)
);
create index decision_count_age on decision_count (minute);
