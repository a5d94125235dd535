-- Up Migration

-- How the call was made: console, api or cli. Null in entries of earlier versions.
alter table admin_audit add column channel text;
-- The values before the change of the fields in `changes`, without secrets. Null if nothing was compared.
alter table admin_audit add column previous jsonb;
