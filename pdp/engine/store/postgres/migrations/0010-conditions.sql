-- Tuples with a condition, apart from the others: what does not ask for conditions cannot take them for grants.
create table conditional_relationship (
  organization_id text collate "C" not null,
  object text collate "C" not null,
  relation text collate "C" not null,
  subject text collate "C" not null,
  expires_at timestamptz,
  condition text collate "C" not null,
  context jsonb not null,
  primary key (organization_id, object, relation, subject)
);
create index conditional_relationship_subject on conditional_relationship (organization_id, subject, relation, object);
create index conditional_relationship_userset on conditional_relationship (organization_id, object, relation, subject)
  where strpos(subject, '#') > 0 or right(subject, 2) = ':*';

-- One object, relation and subject are in one of the two tables only.
create view stored_relationship as
  select organization_id, object, relation, subject, expires_at, null::text collate "C" as condition, null::jsonb as context
  from relationship
  union all
  select organization_id, object, relation, subject, expires_at, condition, context from conditional_relationship;
