-- Raised when the tokens of a client end. A token counts while it is of the epoch in which its client was authenticated.
alter table client add column token_epoch integer not null default 0;
