-- Up Migration

-- A session is born at login and lives as long as it has an active record (CONTRACT §12). Records without these columns
-- are of 0.1: their session's id is derived from their own (session-store.ts). No default and no index: neither rewrites
-- nor locks what replicas of 0.1 write to.
alter table refresh_tokens
  add column session_id uuid,
  add column session_created_at timestamptz,
  add column user_agent text;
