-- One open invitation of an organization to an address: inviting again makes the link of before void.
alter table mailed_token add column roles jsonb;
create unique index mailed_token_invitation on mailed_token (organization_id, lower(email)) where kind = 'invitation';
