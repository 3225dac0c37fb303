-- An event about a person is for the organizations of which the person is an active member. Whoever writes a membership and whoever
-- stores an event lock the row of the person until they commit, so each sees what the other has committed. No ids of transactions
-- are stored for it any more: on another server, as after a restore, they mean something else.
create function lock_member() returns trigger language plpgsql as $$
begin
  perform from user_account where user_id = new.user_id for share;
  return new;
end
$$;
do $$
begin
  execute format('alter function lock_member set search_path = %I, pg_temp', current_schema());
end
$$;
create trigger lock_member before insert or update on membership
  for each row when (new.status = 'active') execute function lock_member();
