-- Makes the role that questions are asked as, and the function that asks them. By the owner of the tables, at the first question and
-- whenever something is missing.
--
-- The role may read what may be known and nothing else: it cannot log in, owns only the function, and was given neither the secret
-- nor the tokens of callbacks. A transaction that only took on the role could put it off again, from inside a SELECT
-- (`set_config('role', …)`); the server refuses that in a function that runs as its owner, and in whatever such a function calls.
DO $prepare$
DECLARE
    me CONSTANT text := current_user;
    home CONSTANT text := current_schema();
    reader CONSTANT text := @READER@;
    readable record;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = reader) THEN
        EXECUTE format('CREATE ROLE %I NOLOGIN', reader);
    END IF;
    EXECUTE format('GRANT USAGE, CREATE ON SCHEMA %I TO %I', home, reader);
    FOR readable IN SELECT t.* FROM @READABLE@ t WHERE t.ours
    LOOP
        EXECUTE format('GRANT SELECT %s ON %I.%I TO %I', readable.columns, home, readable.name, reader);
    END LOOP;

    -- There may be one of a copy from another server, which belongs to whoever made the copy. One that is ours is in use: it is replaced.
    IF EXISTS (
        SELECT FROM pg_proc p JOIN pg_roles o ON o.oid = p.proowner
        WHERE p.oid = to_regprocedure('@ANSWER@(text, int, int)') AND o.rolname <> reader
    ) THEN
        EXECUTE format('DROP FUNCTION %I.@ANSWER@(text, int, int)', home);
    END IF;
    BEGIN
        EXECUTE format('SET LOCAL ROLE %I', reader);
    EXCEPTION WHEN insufficient_privilege THEN
        EXECUTE format('GRANT %I TO %I', reader, me);
        EXECUTE format('SET LOCAL ROLE %I', reader);
    END;
    -- Not volatile, so that the server refuses what writes before the READ ONLY transaction does. A cursor takes one query. It is
    -- read to its end in here: outside it would be read as whoever fetches.
    EXECUTE format($create$
        CREATE OR REPLACE FUNCTION %1$I.@ANSWER@(question text, rows_max int, bytes_max int) RETURNS SETOF text
            LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = %1$I, pg_temp AS $answer$
        DECLARE
            shown CONSTANT text := 'SELECT CASE WHEN octet_length(r.j) <= ' || bytes_max || ' THEN r.j END FROM '
                || '(SELECT row_to_json(q)::text AS j FROM (' || E'\n' || question || E'\n) q) r';
            answers refcursor;
            answer text;
            bytes bigint := 0;
        BEGIN
            OPEN answers NO SCROLL FOR EXECUTE shown;
            -- One more than are wanted, so that it is known whether there are more.
            FOR n IN 0..rows_max LOOP
                FETCH answers INTO answer;
                EXIT WHEN NOT FOUND;
                RETURN NEXT answer;
                bytes := bytes + octet_length(answer);
                EXIT WHEN bytes IS NULL OR bytes > bytes_max;
            END LOOP;
        END $answer$
    $create$, home);
    EXECUTE format('REVOKE ALL ON FUNCTION %I.@ANSWER@(text, int, int) FROM PUBLIC', home);
    EXECUTE format('GRANT EXECUTE ON FUNCTION %I.@ANSWER@(text, int, int) TO %I', home, me);
    EXECUTE format('SET LOCAL ROLE %I', me);
    EXECUTE format('REVOKE CREATE ON SCHEMA %I FROM %I', home, reader);
END $prepare$
