-- Who may do what in the database; run by a superuser before the first migration, and again at will:
--   apex_owner   migrates: owns the tables
--   apex_writer  the decision-log: reads, inserts and updates its tables, and nothing else
--   apex_reader  analysts: the views, which hold no prompts and no raw answers
-- What the writer may do on the tables is granted by `migrate upgrade`, which knows them. Passwords are set elsewhere.
do $$
declare
    name text;
begin
    foreach name in array array['apex_owner', 'apex_writer', 'apex_reader'] loop
        if not exists (select from pg_roles where rolname = name) then
            execute format('create role %I login', name);
        end if;
        execute format('alter role %I nosuperuser nocreatedb nocreaterole noreplication nobypassrls', name);
        execute format('grant connect on database %I to %I', current_database(), name);
    end loop;
    execute format('revoke all on database %I from public', current_database());
    revoke all on schema public from public;
    grant usage, create on schema public to apex_owner;
    grant usage on schema public to apex_writer, apex_reader;
    -- What a superuser has migrated before there was an owner becomes the owner's; others keep what is theirs, as
    -- extensions do.
    for name in
        select c.relname from pg_class c join pg_roles r on r.oid = c.relowner
        where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v')
            and (r.rolsuper or r.rolname = current_user)
            and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid
                and d.deptype = 'e')
    loop
        execute format('alter table public.%I owner to apex_owner', name);
    end loop;
    alter role apex_reader set default_transaction_read_only = on;
    alter role apex_writer set statement_timeout = '60s';
    alter role apex_writer set idle_in_transaction_session_timeout = '60s';
end
$$;
