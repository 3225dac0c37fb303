-- As whom a denied question was asked: app, actors and scopes of its token, and whether these are all that it brought.
alter table denied_decision add column asked_as jsonb not null default '{}';
