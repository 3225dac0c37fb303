-- The token log is read whole as far back as a token can live.
create index change_log_tokens on change_log (written_at) where organization_id = '#tokens';
