-- Up Migration

-- Changes, and attempted changes, of operators through the admin API. There is no foreign key, because an entry
-- outlives its user.
create table admin_audit (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  -- The name of the token, never the token.
  operator text not null,
  method text not null,
  -- The pattern, for example /admin/v1/users/:id.
  route text not null,
  user_id bigint,
  -- The requested changes; null if the request was refused.
  changes jsonb,
  -- The status code of the response.
  status smallint not null,
  request_id text not null
);
create index admin_audit_of_user on admin_audit (user_id, id);
create index admin_audit_of_operator on admin_audit (operator, id);
