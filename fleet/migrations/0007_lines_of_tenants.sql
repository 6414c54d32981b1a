-- A tenant's role may write one line of the operators' log alone: that its own vault was taken over.

UPDATE fleet SET version = 7;

CREATE FUNCTION check_event(event text, subject text)
    RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        IF pg_has_role(session_user, 'steward_operator', 'MEMBER') THEN
            RETURN;
        END IF;
        IF event <> 'take' OR session_user <> 'steward_tenant_' || subject THEN
            RAISE EXCEPTION 'permission denied for the line % of %', event, subject USING ERRCODE = '42501';
        END IF;
    END $$;

CREATE OR REPLACE FUNCTION record_event(operator text, event text, subject text, before jsonb, after jsonb, reason text)
    RETURNS void LANGUAGE sql SECURITY DEFINER
    BEGIN ATOMIC
        SELECT check_event(event, subject);
        INSERT INTO ops_log (role, operator, event, subject, before, after, reason)
        VALUES (session_user, operator, event, subject, before, after, reason);
    END;
