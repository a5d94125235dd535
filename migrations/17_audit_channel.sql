-- Up Migration

-- How the request was made: console, api or cli. Null in entries of earlier versions.
alter table admin_audit add column channel text;
-- The previous values of the fields in `changes`, without secrets. Null if nothing was compared.
alter table admin_audit add column previous jsonb;
