-- Up Migration

-- The secret that a registration with the same URL replaced, stored in the same form. It also signs until
-- `secret_before_until`, which is always created_at plus 24 hours. A replica of the previous release changes only
-- the secret and created_at. These columns then belong to an older registration, and the secret does not sign.
alter table webhooks add column secret_before text, add column secret_before_until timestamptz;
create index webhooks_secret_before on webhooks (secret_before_until) where secret_before_until is not null;
