-- People whose accounts were deleted while they were members of more organizations than one transaction takes. Any PDP goes on
-- where the last one ended.
create table departure (
  user_id text collate "C" primary key,
  -- Memberships up to this organization have ended, or stay because they keep out what the person still has there.
  looked_to text collate "C" not null,
  actor text not null,
  request_id text not null
);
