-- Up Migration

-- The audit stores only the first refusal per operator, route and minute. The column has that minute. It is null
-- for other entries, and for entries of older replicas.
alter table admin_audit add column refused_in timestamptz;
create unique index admin_audit_first_refusals on admin_audit (operator, method, route, refused_in)
  where refused_in is not null;
