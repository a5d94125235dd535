-- Up Migration

-- Other programs change users too, by whatever search_path they have: triggers that name tables go by the schema that
-- those are in. A later `create or replace` of one of these has to say so again, or it is undone.
do $$
declare
  f regprocedure;
begin
  foreach f in array array[
    'forget_deliveries()', 'forget_mail_of_nobody()', 'forget_mails()', 'void_account_codes()'
  ]::regprocedure[] loop
    execute format('alter function %s set search_path = %I, pg_temp', f,
      (select n.nspname from pg_proc p join pg_namespace n on n.oid = p.pronamespace where p.oid = f));
  end loop;
end
$$;
