-- Up Migration

-- A session begins at login and exists while it has an active record. Records without these columns are from 0.1.
-- The ID of their session is derived from their own ID (session-store.ts). There is no default and no index,
-- because these would rewrite or lock tables that replicas of 0.1 write to.
alter table refresh_tokens
  add column session_id uuid,
  add column session_created_at timestamptz,
  add column user_agent text;
