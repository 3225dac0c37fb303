-- Who may act as a client: the client that set its secret or keys; null for what was set before anybody wrote it down.
alter table client add column secret_set_by text collate "C";
create index client_organization on client (organization_id) where organization_id is not null;
create index grant_binding_client on grant_binding (client_id);
