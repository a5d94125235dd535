-- Up Migration

-- The secret that a registration of the same URL replaced, kept as that one was kept: it signs beside the current one
-- until its time is over. That time is always created_at and 24 hours: a replica of the release before replaces the
-- secret and created_at alone, and what it leaves here belongs to an older registration and signs nothing.
alter table webhooks add column secret_before text, add column secret_before_until timestamptz;
create index webhooks_secret_before on webhooks (secret_before_until) where secret_before_until is not null;
